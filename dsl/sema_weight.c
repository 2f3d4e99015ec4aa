/* sema_weight.c - weight lines: kinds, shapes, modifiers, names in the files, transforms. */
#include "dsl/transform.h"

/* ---- a weight of another layer ---- */

static tensor_type moved(sema *s, const weight *w, tensor_type t, const poly *index)
{
    if (!w->group || !index || index == w->group->index)
        return t;
    const poly **sizes[TENSOR_RANK_MAX + 2 * ORIGIN_COUNT];
    int n = 0;
    for (int i = 0; i < t.rank; i++)
        sizes[n++] = &t.dim[i];
    for (int o = 0; o < ORIGIN_COUNT; o++) {
        sizes[n++] = &t.run[o];
        sizes[n++] = &t.turned[o];
    }
    for (int i = 0; i < n; i++) {
        const poly *p = *sizes[i] ? poly_replace(s->pp, *sizes[i], w->group->index, index) : NULL;
        *sizes[i] = p ? p : *sizes[i];
    }
    return t;
}

tensor_type weight_stored(sema *s, const weight *w, const poly *index)
{
    return moved(s, w, w->stored, index);
}

tensor_type weight_bias(sema *s, const weight *w, const poly *index)
{
    return moved(s, w, w->bias, index);
}

/* Of the lines that share a name, the one that exists where we are. */
const weight *weight_choose(sema *s, const weight *w, const poly *index, weft_loc loc)
{
    for (const weight *it = w; it; it = it->other) {
        const cond *guard = it->guard;
        if (it->group && index && index != it->group->index)
            guard = cond_replace(s->cp, guard, it->group->index, index);
        if (sema_known(s, guard) != 0)
            return it;
    }
    if (loc.src) {
        weft_fail(s->dg, W0201, loc, STR_FMT " does not exist here", STR_ARG(w->name));
        weft_note_at(s->dg, w->decl->name_loc,
                     "it is declared under a condition that is false here");
    }
    return w;
}

/* ---- shapes ---- */

static const poly *size_arg(sema *s, const ast *arg)
{
    if (!arg->name.n)
        return sema_int(s, arg->kid[ARG_VALUE], "a weight's size");
    weft_fail(s->dg, W0205, arg->name_loc, "sizes are given in order, without names");
    return NULL;
}

/* Push a size in front of (or into) a stored shape; a missing one was reported already. */
static bool put_dim(tensor_type *t, const poly *p)
{
    if (p && t->rank < TENSOR_RANK_MAX)
        t->dim[t->rank++] = p;
    return p != NULL;
}

static bool wrong_shape(sema *s, const weight *w, const char *wanted)
{
    weft_fail(s->dg, W0206, w->decl->kid[WEIGHT_SHAPE]->loc,
              "%s weights are declared %s, not (" STR_FMT ")", w->kind->name, wanted,
              STR_ARG(ast_spelt(w->decl->kid[WEIGHT_SHAPE])));
    return false;
}

static bool read_shape(sema *s, weight *w, const poly *count)
{
    const ast *shape = w->decl->kid[WEIGHT_SHAPE];
    bool fine = true;
    if (count)
        put_dim(&w->stored, count);
    switch (w->kind->shape) {
    case SHAPE_ARROW: {
        if (shape->kind != AST_ARROW)
            return wrong_shape(s, w, "(in -> out)");
        const poly *in = sema_int(s, shape->kid[ARROW_IN], "a weight's size");
        const poly *out = sema_int(s, shape->kid[ARROW_OUT], "a weight's size");
        fine = put_dim(&w->stored, out);
        w->bias = w->stored;
        return put_dim(&w->stored, in) && fine;
    }
    case SHAPE_NORM:
        if (shape->kind != AST_LIST || shape->n_kid != 2)
            return wrong_shape(s, w, "(n, eps)");
        fine = put_dim(&w->stored, size_arg(s, shape->kid[0]));
        w->bias = w->stored;
        w->eps = sema_eval(s, shape->kid[1]->kid[ARG_VALUE]);
        if (w->eps.kind != VAL_FLOAT && w->eps.kind != VAL_UNKNOWN &&
            !(w->eps.kind == VAL_INT && poly_is(w->eps.size, 0))) {
            weft_fail(s->dg, W0207, shape->kid[1]->loc, "eps must be a small float, not %s",
                      val_text(s, w->eps));
            w->eps = val_unknown();
        }
        return fine;
    case SHAPE_SIZES:
        if (shape->kind != AST_LIST ||
            (w->kind->code == KIND_embed ? shape->n_kid != 2 : shape->n_kid < 1))
            return wrong_shape(s, w, w->kind->code == KIND_embed ? "(rows, d)" : "(sizes..)");
        if (shape->n_kid > TENSOR_RANK_MAX)
            return wrong_shape(s, w, "with at most 6 sizes");
        for (uint32_t i = 0; i < shape->n_kid; i++)
            fine &= put_dim(&w->stored, size_arg(s, shape->kid[i]));
        return fine;
    }
    return false;
}

/* ---- modifiers ---- */

/* Is there more than one precision that its op could be computed in? */
static bool has_precision(const kind_row *kind)
{
    int n = 0;
    const op_row *op = op_find(str_of(kind->name));
    const attr_row *row = op ? op_attrs(op->code, &n) : NULL;
    for (int i = 0; i < n; i++)
        if (strcmp(row[i].name, "prec") == 0)
            return true;
    return false;
}

static void read_modifier(sema *s, weight *w, const ast *n, bool *has_bias)
{
    const modifier_row *row = modifier_find(n->name);
    const ast *args = n->kid[MODIFIER_ARGUMENTS];
    str word;
    if (!row) {
        int n_row;
        const modifier_row *rows = modifier_rows(&n_row);
        weft_fail(s->dg, W0203, n->name_loc, "unknown modifier `" STR_FMT "`", STR_ARG(n->name));
        if (!SUGGEST_ROW(s->dg, n->name, rows, n_row) && transform_find(n->name))
            weft_note(s->dg, "a transform follows the name it applies to");
        return;
    }
    bool takes = *row->takes != 0;
    if (takes ? !args || args->n_kid != 1 || args->kid[0]->name.n : args && args->n_kid > 0) {
        weft_fail(s->dg, W0206, n->loc,
                  takes ? "%s takes one word: %s(%s)" : "%s takes no argument", row->name,
                  row->name, row->takes);
        return;
    }
    if (takes && !sema_word(s, args->kid[0]->kid[ARG_VALUE], row->takes, &word))
        return;
    if (strcmp(row->name, "bias") == 0) {
        if (!strchr(w->kind->fill, 'b'))
            weft_fail(s->dg, W0205, n->loc, "%s weights have no bias", w->kind->name);
        *has_bias = true;
        w->maybe_bias = n->flag;
    } else if (n->flag) {
        weft_fail(s->dg, W0205, n->loc, "only bias takes `?`");
    }
    w->lora_off |= strcmp(row->name, "lora") == 0;
    if (strcmp(row->name, "prec") == 0) {
        w->prec_f32 = true;
        if (!has_precision(w->kind))
            weft_fail(s->dg, W0205, n->loc,
                      "%s weights take no prec; linear, experts and head_linear do", w->kind->name);
    }
}

/* ---- names in the files ---- */

/* After its transforms, what the file holds must have the declared shape. */
static void check_trace(sema *s, const weight *w, const ast *key, const shape_trace *t)
{
    const tensor_type *d = &w->stored;
    bool fits = true;
    int lead = d->rank - t->rank; /* 1 where the line's own index stacks the tensors */
    if (t->rank > 0 && (lead == 0 || lead == 1)) {
        for (int i = 0; i < t->rank; i++)
            fits &= dims_equal(s, t->dim[i], d->dim[i + lead]);
    } else if (t->rank > 0) {
        fits = false;
    } else if (d->rank >= 2) {
        fits = (!t->out || dims_equal(s, t->out, d->dim[d->rank - 2])) &&
               (!t->in || dims_equal(s, t->in, d->dim[d->rank - 1]));
    } else if (d->rank == 1 && t->out) {
        fits = dims_equal(s, t->out, d->dim[0]);
    }
    if (fits)
        return;
    tensor_type got = {.rank = t->rank};
    memcpy(got.dim, t->dim, sizeof got.dim);
    const char *says =
        t->rank ? type_text(s, &got)
                : arena_printf(s->a, "%s output rows", poly_text(s, t->out ? t->out : t->in)).p;
    weft_fail(s->dg, W0504, key->loc, "the transforms give %s, but " STR_FMT " is stored %s", says,
              STR_ARG(w->name), type_text(s, d));
}

static bool read_key(sema *s, weight *w, const ast *key, origin o)
{
    shape_trace t = {.rank = 0};
    bool fine = true;
    sema_string(s, key, NULL);
    for (uint32_t i = 0; i < key->n_kid; i++) {
        const ast *n = key->kid[i];
        if (n->kind == AST_TRANSFORM) {
            fine &= transform_trace(s, w, n, o, &t);
            continue;
        }
        val it = {.kind = VAL_VEC,
                  .size = w->stored.rank ? w->stored.dim[w->stored.rank - 1] : poly_int(s->pp, 1)};
        s->it = &it;
        val v = sema_eval(s, n->kid[MAP_VALUE]);
        s->it = NULL;
        if (v.kind != VAL_VEC && v.kind != VAL_UNKNOWN)
            weft_fail(s->dg, W0207, n->loc, "`=>` must map the stored elements, but this is %s",
                      val_text(s, v));
    }
    if (fine && w->stored.rank)
        check_trace(s, w, key, &t);
    return fine;
}

/* False: nobody can tell what the weight is like in the files. */
static bool read_bindings(sema *s, weight *w, bool *has)
{
    const ast *bindings = w->decl->kid[WEIGHT_BINDINGS];
    bool fine = true;
    for (uint32_t i = 0; i < bindings->n_kid; i++) {
        const ast *b = bindings->kid[i];
        origin o = str_eq(b->name, STR("gguf")) ? ORIGIN_GGUF : ORIGIN_HF;
        if (has[o]) {
            weft_fail(s->dg, W0205, b->name_loc, STR_FMT " is given twice", STR_ARG(b->name));
            weft_note(s->dg, "write alternatives with `|`");
        }
        has[o] = true;
        for (uint32_t k = 0; k < b->n_kid; k++)
            fine &= read_key(s, w, b->kid[k], o);
    }
    return fine;
}

/* ---- a line ---- */

static void read_fallback(sema *s, const weight *w)
{
    const ast *n = w->decl->kid[WEIGHT_FALLBACK];
    if (!n)
        return;
    val v = sema_eval(s, n);
    if (v.kind == VAL_UNKNOWN || v.kind == VAL_NONE)
        return;
    if (v.kind != VAL_WEIGHT) {
        weft_fail(s->dg, W0207, n->loc, "a weight falls back to another weight, not to %s",
                  val_text(s, v));
        return;
    }
    *v.weight->used = true;
    tensor_type other = weight_stored(s, v.weight, v.index);
    if (types_equal(s, &other, &w->stored))
        return;
    weft_fail(s->dg, W0503, n->loc, STR_FMT " is stored %s, but " STR_FMT " is %s",
              STR_ARG(w->name), type_text(s, &w->stored), STR_ARG(v.weight->name),
              type_text(s, &other));
    sema_note_weight(s, v.weight);
}

/* Two lines may share a name where one exists only when the other does not. */
static bool shares_name(sema *s, weight *w)
{
    sym *y = scope_find_here(s->names, w->name);
    if (!y || y->class != SYM_WEIGHT || y->v.kind != VAL_WEIGHT)
        return false;
    for (const weight *it = y->v.weight; it; it = it->other) {
        size_t mark = sema_assume(s, it->guard, true);
        int known = sema_known(s, w->guard);
        sema_forget(s, mark);
        if (known != 0)
            return false;
    }
    w->other = y->v.weight;
    y->v.weight = w;
    y->v.maybe |= w->optional;
    return true;
}

static const kind_row *read_kind(sema *s, const ast *n)
{
    const ast *kind = n->kid[WEIGHT_KIND];
    const kind_row *row = kind_find(kind->name);
    if (row)
        return row;
    int n_row;
    const kind_row *rows = kind_rows(&n_row);
    weft_fail(s->dg, W0203, kind->loc, "unknown kind of weight `" STR_FMT "`", STR_ARG(kind->name));
    SUGGEST_ROW(s->dg, kind->name, rows, n_row);
    return NULL;
}

/* Without a checkpoint: a format that the model matches must be able to hold the weight. */
static void check_origins(sema *s, const weight *w, const bool *has)
{
    if (!w->decl->kid[WEIGHT_FALLBACK] && s->guard->kind == COND_TRUE)
        sema_need_origins(s, W0501, w->decl, has, "name");
}

/* "heads * 2 is 12", or "12" where the text says so itself. */
static const char *stated(sema *s, const ast *e, int64_t n)
{
    if (e->kind == AST_INT)
        return arena_printf(s->a, "%lld", (long long)n).p;
    return arena_printf(s->a, STR_FMT " is %lld", STR_ARG(ast_spelt(e)), (long long)n).p;
}

bool sema_count(sema *s, const ast *index, int64_t n, str who)
{
    const ast *e = index->kid[INDEX_LIMIT];
    if (n < 0)
        weft_fail(s->dg, W0413, e->loc, STR_FMT ": %s, but a count is at least 0", STR_ARG(who),
                  stated(s, e, n));
    else if (n > DSL_COUNT_MAX)
        weft_fail(s->dg, W1106, e->loc, STR_FMT ": %s, but a count is at most %d", STR_ARG(who),
                  stated(s, e, n), DSL_COUNT_MAX);
    return n >= 0 && n <= DSL_COUNT_MAX;
}

bool sema_positive(sema *s, const ast *e, int64_t size, str who)
{
    if (size < 1)
        weft_fail(s->dg, W0413, e->loc, STR_FMT ": %s, but a size is at least 1", STR_ARG(who),
                  stated(s, e, size));
    else if (size > DSL_SIZE_MAX)
        weft_fail(s->dg, W1106, e->loc, STR_FMT ": %s, but a size is at most %d", STR_ARG(who),
                  stated(s, e, size), DSL_SIZE_MAX);
    return size >= 1 && size <= DSL_SIZE_MAX;
}

/* With a checkpoint: a weight has elements. What is optional may have none, and then is not there. */
static bool has_elements(sema *s, const weight *w)
{
    const ast *shape = w->decl->kid[WEIGHT_SHAPE], *index = w->decl->kid[WEIGHT_INDEX];
    bool fine = true;
    for (int i = 0; i < w->stored.rank; i++) {
        int at = i - (index != NULL); /* among the sizes written */
        const ast *e = at < 0                     ? index->kid[INDEX_LIMIT]
                       : shape->kind == AST_ARROW ? shape->kid[at == 0 ? ARROW_OUT : ARROW_IN]
                                                  : shape->kid[at]->kid[ARG_VALUE];
        int64_t n;
        if (poly_value(w->stored.dim[i], &n))
            fine &=
                sema_positive(s, e, n, w->name) && (at >= 0 || sema_count(s, index, n, w->name));
    }
    return fine;
}

/* With a checkpoint: the tensors that serve, those of the fallback, or none. */
static val settle_weight(sema *s, weight *w, const cond *when, bool has_bias)
{
    const ast *fallback = w->decl->kid[WEIGHT_FALLBACK];
    bool wanted = !when || sema_known(s, when) != 0;
    if (wanted && !w->optional && !has_elements(s, w))
        return val_unknown();
    int got = wanted ? bind_weight(s->bind, w, has_bias) : 0;
    if (!wanted && fallback)
        bind_set_aside(s->bind, w);
    if (got < 0 || (got > 0 && w->optional && !has_elements(s, w)))
        return val_unknown();
    if (got == 0 && fallback) {
        val other = sema_eval(s, fallback);
        if (other.kind != VAL_WEIGHT)
            return other;
        *other.weight->used = true;
        bind_alias(s->bind, w, other.weight);
        got = 1;
    }
    if (got == 0)
        return (val){.kind = VAL_NONE, .known = true};
    if (w->bound->bias.rank == 0)
        w->bias.rank = 0;
    return (val){.kind = VAL_WEIGHT, .weight = w, .who = w};
}

static void line_weight(sema *s, const ast *n)
{
    const ast *index = n->kid[WEIGHT_INDEX];
    weight *w = ARENA_NEW(s->a, weight);
    *w = (weight){.decl = n,
                  .name = n->name,
                  .text = arena_str(s->a, n->name).p,
                  .kind = read_kind(s, n),
                  .group = s->in_group,
                  .guard = s->guard,
                  .optional = n->flag,
                  .in_fragment = s->in_fragment,
                  .used = ARENA_NEW(s->a, bool)};
    if (!w->kind) {
        sema_declare(s, s->names, n->name, SYM_WEIGHT, val_unknown(), n->name_loc);
        return;
    }
    scope *outer = s->names;
    const poly *count = NULL;
    if (index && w->kind->index == INDEX_NO)
        weft_fail(s->dg, W0207, index->loc, "a %s weight takes no index of its own", w->kind->name);
    if (!index && w->kind->index == INDEX_MUST)
        weft_fail(s->dg, W0208, n->name_loc, "%s needs an index: " STR_FMT "[i < count]",
                  w->kind->name, STR_ARG(n->name));
    if (index) {
        count = sema_int(s, index->kid[INDEX_LIMIT], "the limit of an index");
        s->names = scope_create(s->a, outer);
        val i = {.kind = VAL_INT, .known = true, .size = poly_symbol(s->pp, w, index->name)};
        sema_declare(s, s->names, index->name, SYM_INDEX, i, index->name_loc);
    }
    bool known = read_shape(s, w, count) &&
                 (count ? w->kind->index != INDEX_NO : w->kind->index != INDEX_MUST);
    bool has_bias = false, has[ORIGIN_COUNT] = {false};
    const ast *modifiers = n->kid[WEIGHT_MODIFIERS];
    for (uint32_t i = 0; i < modifiers->n_kid; i++)
        read_modifier(s, w, modifiers->kid[i], &has_bias);
    if (!has_bias)
        w->bias.rank = 0;
    if (!known)
        w->stored.rank = 0;
    const cond *when =
        n->kid[WEIGHT_WHEN] ? sema_truth(s, n->kid[WEIGHT_WHEN], "the condition of when") : NULL;
    val v = {.kind = VAL_WEIGHT, .weight = w, .maybe = w->optional, .who = w};
    if (s->bind) {
        v = known ? settle_weight(s, w, when, has_bias) : val_unknown();
        s->names = outer;
    } else {
        known &= read_bindings(s, w, has);
        s->names = outer;
        if (known)
            read_fallback(s, w);
        v.maybe |= when && !n->kid[WEIGHT_FALLBACK];
        v.index = s->in_group ? s->in_group->index : NULL;
        v = known ? v : val_unknown();
        if (!when && !w->optional)
            check_origins(s, w, has);
    }
    if (v.kind != VAL_WEIGHT)
        sema_declare(s, s->names, n->name, SYM_WEIGHT, v, n->name_loc);
    else if (shares_name(s, w) || sema_declare(s, s->names, n->name, SYM_WEIGHT, v, n->name_loc))
        VEC_PUSH(&s->weights, w);
}

/* With a checkpoint every layer has names of its own. */
static void bind_layers(sema *s, const ast *n, group *g, scope *outer)
{
    const ast *index = n->kid[GROUP_INDEX];
    if (!poly_value(g->limit, &g->n_layer) || !sema_count(s, index, g->n_layer, g->decl->name) ||
        !sema_step(s, n->loc, g->n_layer)) {
        g->n_layer = 0;
        return;
    }
    g->layer = ARENA_ARRAY(s->a, scope *, (size_t)g->n_layer);
    for (int64_t i = 0; i < g->n_layer; i++) {
        val at = {.kind = VAL_INT, .known = true, .size = poly_int(s->pp, i)};
        s->names = g->layer[i] = scope_create(s->a, outer);
        scope_add(s->names, index->name, SYM_INDEX, at, index->name_loc);
        s->layer = (int)i;
        sema_weights(s, n->kid[GROUP_BODY]);
        if (bind_spoilt(s->bind)) /* the layers after it would say the same */
            g->n_layer = i + 1;
    }
    s->layer = -1;
}

static void line_group(sema *s, const ast *n)
{
    const ast *index = n->kid[GROUP_INDEX], *prefixes = n->kid[GROUP_PREFIXES];
    group *g = ARENA_NEW(s->a, group);
    if (s->in_group) {
        weft_fail(s->dg, W0207, n->name_loc, "groups do not nest");
        return;
    }
    g->decl = n;
    g->limit = sema_int(s, index->kid[INDEX_LIMIT], "the limit of an index");
    g->index = poly_symbol(s->pp, g, index->name);
    g->names = scope_create(s->a, s->names);
    val i = {.kind = VAL_INT, .known = true, .size = g->index};
    sema_declare(s, s->names, n->name, SYM_GROUP, (val){.kind = VAL_GROUP, .group = g},
                 n->name_loc);
    scope *outer = s->names;
    s->names = g->names;
    sema_declare(s, g->names, index->name, SYM_INDEX, i, index->name_loc);
    for (uint32_t p = 0; p < prefixes->n_kid; p++)
        for (uint32_t k = 0; k < prefixes->kid[p]->n_kid; k++)
            sema_string(s, prefixes->kid[p]->kid[k], NULL);
    if (!g->limit)
        g->limit = s->T;
    s->in_group = g;
    if (s->bind)
        bind_layers(s, n, g, outer);
    else
        sema_weights(s, n->kid[GROUP_BODY]);
    s->in_group = NULL;
    s->names = outer;
}

static void line_if(sema *s, const ast *n)
{
    const cond *c = sema_truth(s, n->kid[IF_CONDITION], "the condition");
    const cond *outer = s->guard;
    int known = sema_known(s, c);
    for (int arm = 0; arm < 2; arm++) {
        const ast *body = n->kid[arm == 0 ? IF_THEN : IF_ELSE];
        if (!body || known == arm)
            continue;
        s->guard = cond_and(s->cp, outer, arm == 0 ? c : cond_not(s->cp, c));
        size_t mark = sema_assume(s, c, arm == 0);
        sema_weights(s, body);
        sema_forget(s, mark);
    }
    s->guard = outer;
}

static void line_ignore(sema *s, const ast *n)
{
    if (s->bind)
        bind_ignore(s->bind, n);
    for (uint32_t i = 0; i < n->n_kid && !s->bind; i++)
        sema_string(s, n->kid[i], NULL);
}

void sema_weights(sema *s, const ast *list)
{
    for (uint32_t i = 0; i < list->n_kid && !s->stopped; i++) {
        const ast *n = list->kid[i];
        if (!sema_step(s, n->loc, 1))
            return;
        s->depth++;
        switch (n->kind) {
        case AST_WEIGHT:
            line_weight(s, n);
            break;
        case AST_GROUP:
            line_group(s, n);
            break;
        case AST_IF:
            line_if(s, n);
            break;
        default:
            line_ignore(s, n);
        }
        s->depth--;
    }
}
