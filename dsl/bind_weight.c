/* bind_weight.c - weight lines with a checkpoint at hand: which tensors they mean, and how those look
 * after their transforms. No tensor data moves here; a transform only changes offsets and strides. */
#include "dsl/transform.h"

#include "dsl/bind_impl.h"

enum { MAP_ELEMENTS_MAX = 1 << 20 }; /* an element map is for norms and other small tensors */

/* ---- from a tensor ---- */

/* What the file says of a tensor; view_strides then trusts that its elements can be counted. */
static void view_shape(view *x, const model_tensor *t)
{
    x->v.type = t->type;
    x->v.rank = t->rank;
    memcpy(x->v.dim, t->shape, sizeof x->v.dim);
    x->blocks = dtype_row_of(t->type)->elems;
}

static void view_start(view *x, const model_tensor *t)
{
    view_shape(x, t);
    view_strides(&x->v);
}

static const model_tensor *stored_tensor(const binding *b, const gweight *v)
{
    return model_file_tensor_at(b->cp->file, (size_t)v->piece[0].tensor);
}

/* The elements of a small weight as numbers; false if it cannot be read. */
static bool read_elements(const binding *b, const gweight *v, double *data, int64_t n)
{
    if (!v->computed)
        return view_is_dense(v) && v->piece[0].offset == 0 &&
               checkpoint_read(b->cp, v->piece[0].tensor, data, n);
    for (int64_t i = 0; i < n; i++)
        data[i] = v->computed[i];
    return true;
}

static void view_map(view *x, const ast *n)
{
    gweight *v = &x->v;
    sema *s = x->b->s;
    int64_t count = 1;
    for (int i = 0; i < v->rank; i++)
        count *= v->dim[i];
    if (x->blocks > 1 || (v->type != DT_F32 && v->type != DT_F16 && v->type != DT_BF16)) {
        view_fail(x, W0507, n, "an element map works on float tensors only");
        return;
    }
    int64_t stored = stored_tensor(x->b, v)->elems;
    if (count > MAP_ELEMENTS_MAX || !view_is_dense(v) || v->piece[0].offset != 0 ||
        stored != count) {
        view_fail(x, W0507, n, "an element map takes a small tensor, whole");
        return;
    }
    double *data = ARENA_ARRAY(s->a, double, (size_t)count);
    x->bad = !read_elements(x->b, v, data, count);
    val it = {.kind = VAL_VEC, .known = true, .size = poly_int(s->pp, count), .data = data};
    const val *outer = s->it;
    s->it = &it;
    val out = x->bad ? val_unknown() : sema_eval(s, n->kid[MAP_VALUE]);
    s->it = outer;
    if (out.kind != VAL_VEC || !out.data || !poly_is(out.size, count)) {
        view_fail(x, W0507, n, "the map does not give one number for each element");
        return;
    }
    float *computed = ARENA_ARRAY(s->a, float, (size_t)count);
    for (int64_t i = 0; i < count; i++)
        computed[i] = (float)out.data[i];
    v->computed = computed;
    v->type = DT_F32;
    view_strides(v);
}

/* ---- names ---- */

str bind_text(sema *s, const ast *n)
{
    val v;
    sema_string(s, n, &v);
    return v.known ? v.text : STR("");
}

/* The tensors of one name: the part itself, and with a join those that are stacked behind it. */
typedef struct {
    VEC(gpiece) part, scales;
    model_tensor first;
} tensor_set;

static bool gather_one(view *x, tensor_set *set, str base, bool raw, bool mxfp4, const char *suffix)
{
    sema *s = x->b->s;
    const checkpoint *cp = x->b->cp;
    const char *tail = mxfp4 ? (x->bias ? "_bias" : "_blocks")
                       : raw ? (x->bias ? "_bias" : "")
                             : suffix;
    const model_tensor *found =
        checkpoint_tensor(cp, arena_printf(s->a, STR_FMT "%s", STR_ARG(base), tail));
    if (!found)
        return false;
    model_tensor t = *found;
    for (int i = 0; i < t.rank; i++)
        if (t.shape[i] < 1) { /* then its other sizes may be anything */
            view_shape(x, &t);
            view_fail(x, W0503, x->key,
                      arena_printf(s->a, STR_FMT " has no elements", STR_ARG(t.name)).p);
            return false;
        }
    if (mxfp4 && !x->bias) {
        const model_tensor *scale =
            checkpoint_tensor(cp, arena_printf(s->a, STR_FMT "_scales", STR_ARG(base)));
        if (!scale)
            return false;
        /* blocks [.., n / 32, 16] of bytes, scales [.., n / 32] */
        bool fits = t.rank >= 3 && t.shape[t.rank - 1] == MXFP4_HF_BYTES &&
                    scale->rank == t.rank - 1 && t.type == DT_U8 && scale->type == DT_U8;
        for (int i = 0; fits && i < scale->rank; i++)
            fits = t.shape[i] == scale->shape[i];
        if (!fits) {
            view_start(x, &t);
            view_fail(x, W0504, x->key, "these are not the blocks and scales of MXFP4");
            return false;
        }
        t.rank--;
        t.shape[t.rank - 1] *= 32;
        t.type = DT_MXFP4_HF;
        VEC_PUSH(&set->scales, ((gpiece){checkpoint_tensor_id(cp, scale), 0, t.shape[0]}));
    }
    bool differs = set->part.n > 0 && (t.type != set->first.type || t.rank != set->first.rank);
    for (int i = 1; set->part.n > 0 && !differs && i < t.rank; i++)
        differs = t.shape[i] != set->first.shape[i];
    if (differs) {
        view_start(x, &t);
        view_fail(x, W0503, x->key,
                  arena_printf(s->a, STR_FMT " differs from " STR_FMT ", which it is stacked on",
                               STR_ARG(t.name), STR_ARG(set->first.name))
                      .p);
        return false;
    }
    if (set->part.n == 0)
        set->first = t;
    VEC_PUSH(&set->part,
             ((gpiece){checkpoint_tensor_id(cp, found), 0, t.rank > 0 ? t.shape[0] : 1}));
    return true;
}

/* A line's own index in a name stacks tensors that are stored apart. */
bool weight_names_index(const ast *key, const ast *index)
{
    strbuf b = {0};
    strbuf_add(&b, "{" STR_FMT "}", STR_ARG(index->name));
    bool found = memmem(key->name.p, key->name.n, b.p, b.n) != NULL;
    strbuf_free(&b);
    return found;
}

static bool gather(view *x, str prefix, tensor_set *set, bool *out_stacked)
{
    sema *s = x->b->s;
    const ast *index = x->w->decl->kid[WEIGHT_INDEX];
    const ast *join = transform_in(x->key, TRANSFORM_join);
    bool raw = transform_in(x->key, TRANSFORM_raw), mxfp4 = transform_in(x->key, TRANSFORM_mxfp4);
    const char *suffix = x->bias ? ".bias" : ".weight";
    int64_t count = 1;
    *out_stacked = index && weight_names_index(x->key, index);
    sym *y = *out_stacked ? scope_find_here(s->names, index->name) : NULL;
    if (*out_stacked && !(y && poly_value(x->w->stored.dim[0], &count)))
        return false;
    for (int64_t e = 0; e < count; e++) {
        if (y)
            y->v.size = poly_int(s->pp, e);
        str base =
            arena_printf(s->a, STR_FMT STR_FMT, STR_ARG(prefix), STR_ARG(bind_text(s, x->key)));
        if (!gather_one(x, set, base, raw, mxfp4, suffix))
            return false;
    }
    for (uint32_t i = 0; join && i < join->kid[TRANSFORM_ARGUMENTS]->n_kid; i++) {
        const ast *more = join->kid[TRANSFORM_ARGUMENTS]->kid[i]->kid[ARG_VALUE];
        str base =
            arena_printf(s->a, STR_FMT STR_FMT, STR_ARG(prefix), STR_ARG(bind_text(s, more)));
        if (!gather_one(x, set, base, raw, mxfp4, suffix))
            return false;
    }
    return set->part.n > 0;
}

/* ---- one alternative ---- */

static void keep_pieces(view *x, const tensor_set *set, bool stacked)
{
    sema *s = x->b->s;
    gweight *v = &x->v;
    size_t n = set->part.n;
    view_start(x, &set->first);
    gpiece *piece = ARENA_ARRAY(s->a, gpiece, n);
    memcpy(piece, set->part.at, n * sizeof *piece);
    for (size_t i = 0; stacked && i < n; i++)
        piece[i].rows = 1;
    if (set->scales.n == n) {
        gpiece *scales = ARENA_ARRAY(s->a, gpiece, n);
        memcpy(scales, set->scales.at, n * sizeof *scales);
        for (size_t i = 0; i < n; i++)
            scales[i].rows = piece[i].rows;
        v->scales = scales;
    }
    v->piece = piece;
    v->n_piece = (int)n;
    if (stacked && v->rank < GRAPH_RANK_MAX) { /* a new first axis, one tensor for each index */
        for (int i = v->rank; i > 0; i--) {
            v->dim[i] = v->dim[i - 1];
            v->stride[i] = v->stride[i - 1];
        }
        v->dim[0] = (int64_t)n;
        v->stride[0] = 0;
        v->rank++;
    } else if (n > 1) {
        v->dim[0] = 0;
        for (size_t i = 0; i < n; i++)
            v->dim[0] += piece[i].rows;
    }
}

static void check_shape(view *x, const tensor_type *declared, bool transformed)
{
    sema *s = x->b->s;
    gweight *v = &x->v;
    bool fits = v->rank == declared->rank;
    for (int i = 0; fits && i < v->rank; i++)
        fits = poly_is(declared->dim[i], v->dim[i]);
    if (fits || x->bad)
        return;
    x->bad = true;
    const ast *at = x->w->decl;
    const model_tensor *t = stored_tensor(x->b, v);
    weft_fail(s->dg, transformed ? W0504 : W0503, at->name_loc,
              STR_FMT "%s is declared %s, but %s %s", STR_ARG(x->w->name), x->bias ? "'s bias" : "",
              type_text(s, declared),
              view_is_stored(x, t) ? "the file holds"
              : transformed        ? "its transforms give"
                                   : "its tensors, stacked, are",
              view_text(x));
    view_note_tensor(x);
}

/* 1: this alternative is the one; 0: its tensors are not there; -1: they are, and do not fit. */
static int try_alternative(binding *b, weight *w, const ast *key, str prefix, bool bias,
                           gweight *out)
{
    view x = {.b = b, .w = w, .key = key, .bias = bias};
    tensor_set set = {.part = {0}};
    bool stacked, transformed = false;
    bool there = gather(&x, prefix, &set, &stacked);
    for (size_t i = 0; there && i < set.part.n; i++)
        b->claimed[set.part.at[i].tensor] = 1;
    for (size_t i = 0; there && i < set.scales.n; i++)
        b->claimed[set.scales.at[i].tensor] = 1;
    if (there) {
        keep_pieces(&x, &set, stacked);
        for (uint32_t i = 0; i < key->n_kid && !x.bad; i++) {
            const ast *n = key->kid[i];
            if (n->kind == AST_TRANSFORM) {
                transform_code code = transform_find(n->name)->code;
                transformed |= code != TRANSFORM_pairs && code != TRANSFORM_raw;
                transform_view(&x, n);
            } else if (!bias) {
                view_map(&x, n);
            }
        }
        check_shape(&x, bias ? &w->bias : &w->stored, transformed);
        if (!x.bad && !dtype_row_of(x.v.type)->is_weight)
            view_fail(&x, W0506, key, "its storage type cannot be computed with");
    }
    VEC_FREE(&set.part);
    VEC_FREE(&set.scales);
    *out = x.v;
    return x.bad ? -1 : there;
}

/* ---- a line ---- */

const ast *bind_lines(const ast *list, origin o)
{
    for (uint32_t i = 0; list && i < list->n_kid; i++)
        if (origin_of(list->kid[i]->name) == o)
            return list->kid[i];
    return NULL;
}

static void name_weight(sema *s, const weight *w, gweight *v, const char *tail)
{
    const group *g = w->group;
    if (g && s->in_group)
        v->name = arena_printf(s->a, STR_FMT "[%d]." STR_FMT "%s", STR_ARG(g->decl->name), s->layer,
                               STR_ARG(w->name), tail);
    else
        v->name = arena_printf(s->a, STR_FMT "%s", STR_ARG(w->name), tail);
    v->line = w->name;
    v->loc = w->decl->name_loc;
    v->layer = g ? s->layer : -1;
    v->lora = !w->lora_off && *tail == 0 &&
              (w->kind->code == KIND_linear || w->kind->code == KIND_experts ||
               w->kind->code == KIND_head_linear || w->kind->code == KIND_embed);
}

static int bind_bias(binding *b, weight *w, const ast *key, str prefix, bool wanted)
{
    sema *s = b->s;
    if (!wanted)
        return 1;
    int got = try_alternative(b, w, key, prefix, true, &w->bound->bias);
    if (got < 1)
        w->bound->bias.rank = 0;
    if (got == 0 && !w->maybe_bias) {
        weft_fail(s->dg, W0502, w->decl->name_loc,
                  STR_FMT " must have a bias, but the file holds none", STR_ARG(w->name));
        weft_note(s->dg, "looked for that of " STR_FMT STR_FMT " in %s", STR_ARG(prefix),
                  STR_ARG(bind_text(s, key)), b->cp->path);
        weft_note(s->dg, "write `bias?` where it is optional");
        return -1;
    }
    if (got == 1)
        name_weight(s, w, &w->bound->bias, ".bias");
    return got < 0 ? -1 : 1;
}

/* The names under which a line may be stored: each prefix of its group with each of its own. */
typedef struct {
    const ast *keys, *prefixes; /* NULL: none */
    uint32_t n_prefix;
} line_names;

static line_names names_of(const binding *b, const weight *w)
{
    line_names names = {.keys = bind_lines(w->decl->kid[WEIGHT_BINDINGS], b->from), .n_prefix = 1};
    if (w->group)
        names.prefixes = bind_lines(w->group->decl->kid[GROUP_PREFIXES], b->from);
    if (names.prefixes)
        names.n_prefix = names.prefixes->n_kid;
    if (!names.keys)
        names.n_prefix = 0;
    return names;
}

static void note_tried(binding *b, const str *name, size_t n)
{
    strbuf names = {0};
    for (size_t i = 0; i < n; i++)
        strbuf_add(&names, "%s" STR_FMT, i ? ", " : "", STR_ARG(name[i]));
    weft_note(b->s->dg, "looked for %s in %s", n ? names.p : "no name at all", b->cp->path);
    suggest_tensor(b, name, n);
    strbuf_free(&names);
}

int bind_weight(binding *b, weight *w, bool has_bias)
{
    sema *s = b->s;
    line_names names = names_of(b, w);
    VEC(str) tried = {0};
    int got = 0;
    w->bound = ARENA_NEW(s->a, weight_bound);
    w->bound->id = w->bound->bias_id = -1;
    for (uint32_t p = 0; p < names.n_prefix && got == 0; p++) {
        str prefix = names.prefixes ? bind_text(s, names.prefixes->kid[p]) : STR("");
        for (uint32_t k = 0; k < names.keys->n_kid && got == 0; k++) {
            const ast *key = names.keys->kid[k];
            got = try_alternative(b, w, key, prefix, false, &w->bound->stored);
            if (got == 0)
                VEC_PUSH(&tried, arena_printf(s->a, STR_FMT STR_FMT, STR_ARG(prefix),
                                              STR_ARG(bind_text(s, key))));
            if (got == 1)
                got = bind_bias(b, w, key, prefix, has_bias);
        }
    }
    if (got == 1) {
        name_weight(s, w, &w->bound->stored, "");
        other_weights(b, w);
        bind_sites(b, w);
    }
    if (got == 0 && !w->optional && !w->decl->kid[WEIGHT_FALLBACK]) {
        weft_fail(s->dg, W0501, w->decl->name_loc, STR_FMT " is not in the file", STR_ARG(w->name));
        note_tried(b, tried.at, tried.n);
        got = -1;
    }
    VEC_FREE(&tried);
    return got;
}

void bind_set_aside(binding *b, const weight *w)
{
    static const char *const tail[] = {"", ".weight", ".bias"};
    sema *s = b->s;
    line_names names = names_of(b, w);
    for (uint32_t p = 0; p < names.n_prefix; p++) {
        str prefix = names.prefixes ? bind_text(s, names.prefixes->kid[p]) : STR("");
        for (uint32_t k = 0; k < names.keys->n_kid; k++) {
            str key = bind_text(s, names.keys->kid[k]);
            for (size_t i = 0; i < sizeof tail / sizeof *tail; i++) {
                const model_tensor *t =
                    checkpoint_tensor(b->cp, arena_printf(s->a, STR_FMT STR_FMT "%s",
                                                          STR_ARG(prefix), STR_ARG(key), tail[i]));
                if (t)
                    b->claimed[checkpoint_tensor_id(b->cp, t)] = 1;
            }
        }
    }
}

void bind_alias(binding *b, weight *w, const weight *other)
{
    if (!other->bound)
        return;
    w->bound = ARENA_NEW(b->s->a, weight_bound);
    *w->bound = (weight_bound){.stored = other->bound->stored, .id = -1, .bias_id = -1};
    w->bias.rank = 0; /* a fallback brings no bias */
    name_weight(b->s, w, &w->bound->stored, "");
    bind_sites(b, w);
}

val bind_constant(binding *b, const weight *w)
{
    const gweight *v = &w->bound->stored;
    bool small = v->dim[0] <= MAP_ELEMENTS_MAX; /* as what is computed always is */
    double *data = ARENA_ARRAY(b->s->a, double, small ? (size_t)v->dim[0] : 0);
    if (small && read_elements(b, v, data, v->dim[0]))
        return (val){.kind = VAL_VEC, .known = true, .size = w->stored.dim[0], .data = data};
    weft_fail(b->s->dg, W0506, w->decl->name_loc, STR_FMT " cannot be read as a constant",
              STR_ARG(w->name));
    return val_unknown();
}
