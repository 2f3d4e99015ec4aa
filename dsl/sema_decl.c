/* sema_decl.c - declarations: params, let, require, include, state. */
#include "dsl/bind.h"

sym *sema_declare(sema *s, scope *sc, str name, sym_class class, val v, weft_loc loc)
{
    sym *y = scope_find(sc, name);
    bool shadows = y &&
                   (y->class == SYM_MODULE || y->class == SYM_FRAGMENT || y->class == SYM_BLOCK) &&
                   class != SYM_BLOCK;
    if (y && !shadows && !(y->class == SYM_INDEX && class == SYM_INDEX)) {
        weft_fail(s->dg, W0202, loc, "`" STR_FMT "` is already %s", STR_ARG(name),
                  sym_class_name(y->class));
        if (y->loc.src)
            weft_note_at(s->dg, y->loc, "first declared here");
        return NULL;
    }
    return scope_add(sc, name, class, v, loc);
}

/* ---- types ---- */

static const struct {
    const char *name;
    val_kind kind;
    bool dims; /* may have them */
} type_names[] = {
    {"int", VAL_INT, false},   {"float", VAL_FLOAT, true}, {"bool", VAL_BOOL, false},
    {"str", VAL_STR, false},   {"list", VAL_LIST, false},  {"f", VAL_TENSOR, true},
    {"i32", VAL_TENSOR, true}, {"word", VAL_WORD, true},
};

/* The kind a type names; VAL_UNKNOWN, and a report, if there is none. */
static val_kind type_kind(sema *s, const ast *type)
{
    enum { N_TYPE = sizeof type_names / sizeof *type_names };
    for (size_t i = 0; i < N_TYPE; i++) {
        if (!str_eqz(type->name, type_names[i].name))
            continue;
        const ast *dims = type->kid[TYPE_DIMS];
        if (dims && !type_names[i].dims) {
            weft_fail(s->dg, W0207, type->loc, "%s takes no dimensions", type_names[i].name);
            return VAL_UNKNOWN;
        }
        return type_names[i].kind == VAL_FLOAT && dims ? VAL_VEC : type_names[i].kind;
    }
    weft_fail(s->dg, W0201, type->name_loc, "unknown type `" STR_FMT "`", STR_ARG(type->name));
    if (!SUGGEST_ROW(s->dg, type->name, type_names, N_TYPE))
        weft_note(s->dg,
                  "the types are int, float, bool, str, list, float[n], f[..], i32[..] and, of an "
                  "argument, word[a, b]");
    return VAL_UNKNOWN;
}

static val typed_tensor(sema *s, const ast *type)
{
    const ast *dims = type->kid[TYPE_DIMS];
    tensor_type *t = ARENA_NEW(s->a, tensor_type);
    t->ids = str_eq(type->name, STR("i32"));
    if (!dims || dims->n_kid > TENSOR_RANK_MAX) {
        weft_fail(s->dg, W0310, type->loc, "a tensor type has 1 to %d dimensions", TENSOR_RANK_MAX);
        return val_unknown();
    }
    for (uint32_t i = 0; i < dims->n_kid; i++)
        if (!(t->dim[t->rank++] = sema_int(s, dims->kid[i], "a dimension")))
            return val_unknown();
    return (val){.kind = VAL_TENSOR, .tensor = t};
}

/* The words of a type word[half, interleaved]; NULL: reported. */
static const char *type_words(sema *s, const ast *type)
{
    const ast *dims = type->kid[TYPE_DIMS];
    strbuf b = {0};
    for (uint32_t i = 0; dims && i < dims->n_kid; i++) {
        if (dims->kid[i]->kind != AST_NAME) {
            dims = NULL;
            break;
        }
        strbuf_add(&b, "%s" STR_FMT, i ? " " : "", STR_ARG(dims->kid[i]->name));
    }
    const char *words = dims ? arena_str(s->a, strbuf_view(&b)).p : NULL;
    strbuf_free(&b);
    if (!words || type->flag) {
        weft_fail(s->dg, W0207, type->loc,
                  words ? "a word is never none" : "a word's type lists what it may be");
        weft_note(s->dg, "such as word[half, interleaved]");
        return NULL;
    }
    return words;
}

static bool is_word_type(const ast *type)
{
    return type && str_eqz(type->name, "word");
}

val sema_argument(sema *s, const ast *type, const ast *e)
{
    if (!is_word_type(type))
        return sema_eval(s, e);
    val v = {.kind = VAL_WORD, .known = true, .words = type_words(s, type)};
    return v.words && sema_word(s, e, v.words, &v.text) ? v : val_unknown();
}

val sema_typed(sema *s, const ast *type, const void *who, str name)
{
    val v = {.kind = type_kind(s, type), .maybe = type->flag, .who = who};
    switch (v.kind) {
    case VAL_INT:
        v.size = poly_symbol(s->pp, who, name);
        v.known = true;
        break;
    case VAL_BOOL:
        v.truth = cond_atom(s->cp, who, NULL, STR(""));
        v.known = true;
        break;
    case VAL_VEC:
        if (type->kid[TYPE_DIMS]->n_kid != 1) {
            weft_fail(s->dg, W0310, type->loc, "a vector has one dimension");
            return val_unknown();
        }
        v.size = sema_int(s, type->kid[TYPE_DIMS]->kid[0], "a length");
        return v.size ? v : val_unknown();
    case VAL_TENSOR:
        return typed_tensor(s, type);
    case VAL_WORD:
        v.words = type_words(s, type);
        return v.words ? v : val_unknown();
    default:
        break;
    }
    return v;
}

bool sema_fits(sema *s, const ast *type, val *v)
{
    if (v->kind == VAL_UNKNOWN)
        return true;
    if (v->kind == VAL_NONE)
        return type->flag;
    val wanted = sema_typed(s, type, type, STR(".."));
    if (wanted.kind == VAL_UNKNOWN)
        return true;
    if (wanted.kind == VAL_FLOAT && v->kind == VAL_INT) {
        int64_t i = 0;
        bool known = poly_value(v->size, &i);
        *v = (val){.kind = VAL_FLOAT,
                   .known = known,
                   .number = (double)i,
                   .maybe = v->maybe,
                   .who = v->who};
        return true;
    }
    if (wanted.kind == VAL_TENSOR)
        return val_as_tensor(s, v) && types_equal(s, wanted.tensor, v->tensor);
    if (wanted.kind == VAL_VEC && v->kind == VAL_VEC)
        return dims_equal(s, wanted.size, v->size);
    return wanted.kind == v->kind;
}

static void check_fits(sema *s, const ast *type, val v, const ast *at, str name)
{
    str spelt = {type->loc.src->text.p + type->loc.begin, type->loc.end - type->loc.begin};
    if (!sema_fits(s, type, &v))
        weft_fail(s->dg, v.kind == VAL_TENSOR ? W0204 : W0402, at->loc,
                  STR_FMT " is " STR_FMT ", but this is %s", STR_ARG(name), STR_ARG(spelt),
                  val_text(s, v));
}

/* ---- params ---- */

bool sema_in_range(sema *s, const ast *decl, const poly *index, const poly *limit, weft_loc loc)
{
    int64_t low, high;
    const poly *over = limit ? poly_sub(s->pp, index, limit) : NULL;
    bool below = poly_value(index, &low) && low < 0;
    if (!below && (!over || !poly_value(over, &high) || high < 0))
        return true;
    weft_fail(s->dg, W0412, loc, "index %s of " STR_FMT " is outside 0 .. %s", poly_text(s, index),
              STR_ARG(decl->name), limit ? poly_text(s, limit) : "0");
    return false;
}

val sema_series_at(sema *s, const series *ser, const poly *index, weft_loc loc)
{
    int64_t i;
    if (!sema_in_range(s, ser->decl, index, ser->limit, loc))
        return val_unknown();
    if (ser->at && poly_value(index, &i) && i < ser->n)
        return ser->at[i];
    const poly *arg[2] = {poly_symbol(s->pp, ser, ser->decl->name), index};
    val v = {.kind = ser->kind, .maybe = ser->maybe, .who = ser, .index = index};
    if (v.kind == VAL_INT)
        v.size = poly_call(s->pp, "[]", arg, 2);
    else if (v.kind == VAL_BOOL)
        v.truth = cond_atom(s->cp, ser, index, STR(""));
    v.known = v.kind == VAL_INT || v.kind == VAL_BOOL;
    if (v.kind == VAL_INT && !v.size)
        return val_unknown();
    return v;
}

static bool is_origin(str name, origin *out)
{
    *out = str_eq(name, STR("gguf")) ? ORIGIN_GGUF : ORIGIN_HF;
    return true;
}

static void check_param_keys(sema *s, const ast *n, bool *has)
{
    const ast *bindings = n->kid[PARAM_BINDINGS];
    for (uint32_t i = 0; i < bindings->n_kid; i++) {
        const ast *b = bindings->kid[i];
        origin o;
        is_origin(b->name, &o);
        if (has[o]) {
            weft_fail(s->dg, W0205, b->name_loc, STR_FMT " is given twice", STR_ARG(b->name));
            weft_note(s->dg, "write alternatives with `|`");
        }
        has[o] = true;
        for (uint32_t k = 0; k < b->n_kid; k++) {
            const ast *key = b->kid[k];
            sema_string(s, key, NULL);
            val it = val_unknown();
            for (uint32_t t = 0; t < key->n_kid; t++) {
                if (key->kid[t]->kind != AST_MAP) {
                    weft_fail(s->dg, W0203, key->kid[t]->loc,
                              "a parameter's value is adapted with `=>`, not with a transform");
                    weft_note(s->dg, "`it` is the value found, such as in => len(it)");
                    continue;
                }
                s->it = &it;
                it = sema_eval(s, key->kid[t]->kid[MAP_VALUE]);
                s->it = NULL;
            }
            if (key->n_kid > 0)
                check_fits(s, n->kid[PARAM_TYPE], it, key->kid[key->n_kid - 1], n->name);
        }
    }
}

/* With a checkpoint: the value, or one for each layer. */
static val declare_bound(sema *s, const ast *n, const ast *index, const poly *limit, sym *at)
{
    int64_t count;
    if (!index)
        return bind_param(s->bind, n, -1);
    if (!limit || !at || !poly_value(limit, &count) || !sema_count(s, index, count, n->name) ||
        !sema_step(s, n->loc, count))
        return val_unknown();
    series *ser = ARENA_NEW(s->a, series);
    val *values = ARENA_ARRAY(s->a, val, (size_t)count);
    for (int64_t i = 0; i < count; i++) {
        at->v.size = poly_int(s->pp, i);
        values[i] = bind_param(s->bind, n, i);
    }
    *ser = (series){.decl = n, .limit = limit, .kind = VAL_UNKNOWN, .at = values, .n = count};
    return (val){.kind = VAL_SERIES, .series = ser};
}

void sema_need_origins(sema *s, weft_code code, const ast *n, const bool *has, const char *what)
{
    bool gguf = s->has_origin[ORIGIN_GGUF] && !has[ORIGIN_GGUF];
    bool hf = s->has_origin[ORIGIN_HF] && !has[ORIGIN_HF];
    if (gguf && hf)
        weft_fail(s->dg, code, n->name_loc, STR_FMT " has neither a gguf nor an hf %s",
                  STR_ARG(n->name), what);
    else if (gguf || hf)
        weft_fail(s->dg, code, n->name_loc, STR_FMT " has no %s %s, but the model matches %s files",
                  STR_ARG(n->name), gguf ? "gguf" : "hf", what, gguf ? "gguf" : "hf");
}

static void declare_param(sema *s, const ast *n)
{
    const ast *index = n->kid[PARAM_INDEX];
    const poly *limit = NULL;
    scope *outer = s->names;
    sym *at = NULL;
    val v;
    if (index) {
        limit = sema_int(s, index->kid[INDEX_LIMIT], "the limit of an index");
        s->names = scope_create(s->a, outer);
        val i = {.kind = VAL_INT, .known = true, .size = poly_symbol(s->pp, index, index->name)};
        at = sema_declare(s, s->names, index->name, SYM_INDEX, i, index->name_loc);
    }
    if (s->bind) {
        v = declare_bound(s, n, index, limit, at);
        s->names = outer;
        sema_declare(s, outer, n->name, SYM_PARAM, v, n->name_loc);
        bind_declared(s->bind, n, v);
        return;
    }
    v = sema_typed(s, n->kid[PARAM_TYPE], s->in_fragment ? arena_alloc(s->a, 1) : (const void *)n,
                   n->name);
    if (v.kind == VAL_TENSOR || v.kind == VAL_WORD) {
        weft_fail(s->dg, W0402, n->kid[PARAM_TYPE]->loc,
                  v.kind == VAL_TENSOR ? "a parameter is a constant; its type cannot be a tensor"
                                       : "no file holds a word; only an argument can be one");
        v = val_unknown();
    }
    bool has[ORIGIN_COUNT] = {false};
    check_param_keys(s, n, has);
    for (uint32_t i = 0; i < n->kid[PARAM_BINDINGS]->n_kid; i++)
        for (uint32_t k = 0; k < n->kid[PARAM_BINDINGS]->kid[i]->n_kid; k++)
            if (n->kid[PARAM_DEFAULT] || n->kid[PARAM_TYPE]->flag)
                keys_check_param(s, n->kid[PARAM_BINDINGS]->kid[i]->kid[k]);
    if (n->kid[PARAM_DEFAULT])
        check_fits(s, n->kid[PARAM_TYPE], sema_eval(s, n->kid[PARAM_DEFAULT]),
                   n->kid[PARAM_DEFAULT], n->name);
    if (!n->kid[PARAM_DEFAULT] && !n->kid[PARAM_TYPE]->flag)
        sema_need_origins(s, W0401, n, has, "key and no default");
    s->names = outer;
    if (index && v.kind != VAL_UNKNOWN) {
        series *ser = ARENA_NEW(s->a, series);
        *ser = (series){.decl = n, .limit = limit ? limit : s->T, .kind = v.kind, .maybe = v.maybe};
        v = (val){.kind = VAL_SERIES, .series = ser};
    }
    sema_declare(s, s->names, n->name, SYM_PARAM, v, n->name_loc);
}

static void section_params(sema *s, const ast *n)
{
    for (uint32_t i = 0; i < n->n_kid; i++)
        declare_param(s, n->kid[i]);
}

/* ---- require ---- */

/* `require a % b == 0`, alone or among others: from here on a / b comes out even. */
static void state_divisions(sema *s, const ast *e)
{
    if (e->kind != AST_BINARY)
        return;
    const ast *left = e->kid[BINARY_LEFT], *right = e->kid[BINARY_RIGHT];
    if (str_eq(e->name, STR("&&"))) {
        state_divisions(s, left);
        state_divisions(s, right);
    } else if (str_eq(e->name, STR("==")) && right->kind == AST_INT && right->integer == 0 &&
               left->kind == AST_BINARY && str_eq(left->name, STR("%"))) {
        const poly *a = sema_int(s, left->kid[BINARY_LEFT], "an operand of %");
        const poly *b = sema_int(s, left->kid[BINARY_RIGHT], "an operand of %");
        if (a && b)
            sema_state_exact(s, a, b);
    }
}

enum { VALUES_MAX = 4 }; /* names of a condition whose values are worth a note */

/* What the names of a condition stand for in this checkpoint, each once; seen has n_seen of them. */
static int note_values(sema *s, const ast *e, str *seen, int n_seen)
{
    val v;
    bool known = e->kind == AST_NAME && sema_find(s, e->name, &v) &&
                 (val_is_number(v) || v.kind == VAL_STR || v.kind == VAL_BOOL);
    for (int i = 0; i < n_seen && known; i++)
        known = !str_eq(seen[i], e->name);
    if (known && n_seen < VALUES_MAX) {
        weft_note(s->dg, STR_FMT " is %s", STR_ARG(e->name), val_shown(s, v));
        seen[n_seen++] = e->name;
    }
    for (uint32_t i = e->kind == AST_CALL ? CALL_ARGUMENTS : 0; i < e->n_kid; i++)
        if (e->kid[i])
            n_seen = note_values(s, e->kid[i], seen, n_seen);
    return n_seen;
}

void sema_require(sema *s, const ast *n)
{
    const cond *c = sema_truth(s, n->kid[REQUIRE_CONDITION], "what is required");
    const ast *message = n->kid[REQUIRE_MESSAGE];
    val text = {.kind = VAL_UNKNOWN};
    if (message)
        sema_string(s, message, &text);
    if (sema_known(s, c) != 0) {
        state_divisions(s, n->kid[REQUIRE_CONDITION]);
        return;
    }
    if (text.known)
        weft_fail(s->dg, W0411, n->kid[REQUIRE_CONDITION]->loc, STR_FMT, STR_ARG(text.text));
    else
        weft_fail(s->dg, W0411, n->kid[REQUIRE_CONDITION]->loc,
                  s->bind ? "this requirement does not hold for %s"
                          : "this requirement can never hold%s",
                  s->bind ? bind_path(s->bind) : "");
    str seen[VALUES_MAX];
    if (s->bind)
        note_values(s, n->kid[REQUIRE_CONDITION], seen, 0);
}

/* ---- include ---- */

static sym *find_fragment(sema *s, const ast *path)
{
    str name = path->name;
    const scope *sc = s->names;
    for (const char *dot; (dot = memchr(name.p, '.', name.n)) != NULL;) {
        str head = {name.p, (size_t)(dot - name.p)};
        sym *y = scope_find(sc, head);
        if (!y || y->v.kind != VAL_SCOPE)
            return NULL;
        sc = y->v.scope;
        name = (str){dot + 1, name.n - head.n - 1};
    }
    sym *y = scope_find(sc, name);
    return y && y->class == SYM_FRAGMENT ? y : NULL;
}

/* Bind a fragment's formals in its new scope; the arguments are evaluated where the include stands. */
static void bind_formals(sema *s, const ast *n, const ast *fragment, scope *inner)
{
    const ast *formals = fragment->kid[FRAGMENT_FORMALS], *args = n->kid[INCLUDE_ARGUMENTS];
    uint32_t n_positional = 0;
    bool fine = true; /* no argument went astray: what is missing was left out */
    for (uint32_t i = 0; i < args->n_kid; i++) {
        const ast *arg = args->kid[i];
        str_guess best = {0};
        bool found = !arg->name.n && n_positional < formals->n_kid;
        n_positional += !arg->name.n;
        s->n_scan += formals->n_kid;
        for (uint32_t f = 0; arg->name.n && f < formals->n_kid; f++) {
            found |= str_eq(arg->name, formals->kid[f]->name);
            str_guess_try(&best, arg->name, formals->kid[f]->name);
        }
        if (found)
            continue;
        fine = false;
        if (arg->name.n)
            weft_fail(s->dg, W0804, arg->name_loc, STR_FMT " has no argument `" STR_FMT "`",
                      STR_ARG(fragment->name), STR_ARG(arg->name));
        else
            weft_fail(s->dg, W0804, arg->loc, STR_FMT " takes %u argument%s, not %u",
                      STR_ARG(fragment->name), (unsigned)formals->n_kid,
                      formals->n_kid == 1 ? "" : "s", (unsigned)args->n_kid);
        weft_suggest(s->dg, &best);
    }
    for (uint32_t f = 0, p = 0; f < formals->n_kid && sema_step(s, n->loc, 1); f++) {
        const ast *formal = formals->kid[f], *given = NULL;
        s->n_scan += args->n_kid;
        for (uint32_t i = 0, at = 0; i < args->n_kid; i++) {
            const ast *arg = args->kid[i];
            bool here = arg->name.n ? str_eq(arg->name, formal->name) : at++ == p;
            if (here && given)
                weft_fail(s->dg, W0205, arg->loc, STR_FMT " is given twice", STR_ARG(formal->name));
            given = here ? arg : given;
        }
        p++;
        val v = val_unknown();
        const ast *expr = given ? given->kid[ARG_VALUE] : formal->kid[FORMAL_DEFAULT];
        if (!expr && fine) {
            weft_fail(s->dg, W0804, n->loc, STR_FMT " needs the argument `" STR_FMT "`",
                      STR_ARG(fragment->name), STR_ARG(formal->name));
        } else if (expr) {
            scope *outer = s->names;
            s->names = given ? outer : inner;
            v = sema_argument(s, formal->kid[FORMAL_TYPE], expr);
            s->names = inner;
            if (formal->kid[FORMAL_TYPE] && !sema_fits(s, formal->kid[FORMAL_TYPE], &v)) {
                weft_fail(s->dg, W0307, expr->loc,
                          STR_FMT " of " STR_FMT " must be " STR_FMT ", not %s",
                          STR_ARG(formal->name), STR_ARG(fragment->name),
                          STR_ARG(formal->kid[FORMAL_TYPE]->name), val_text(s, v));
                v = val_unknown();
            }
            s->names = outer;
        }
        scope_add(inner, formal->name, SYM_FORMAL, v, formal->name_loc);
    }
}

static void section_include(sema *s, const ast *n)
{
    const ast *path = n->kid[INCLUDE_PATH];
    sym *y = find_fragment(s, path);
    val v = val_unknown();
    if (!y) {
        sema_unknown(s, path, W0201, "fragment");
    } else if (s->n_call == DSL_CALLS_MAX) {
        weft_fail(s->dg, W1102, n->loc, "fragments include each other deeper than %d",
                  DSL_CALLS_MAX);
    } else {
        scope *outer = s->names, *inner = scope_create(s->a, y->v.home);
        bool was = s->in_fragment;
        bind_formals(s, n, y->v.block, inner);
        size_t errors = diag_errors(s->dg);
        s->n_call++;
        s->names = inner;
        s->in_fragment = true;
        sema_sections(s, y->v.block->kid[FRAGMENT_BODY], true);
        s->in_fragment = was;
        s->names = outer;
        s->n_call--;
        if (diag_errors(s->dg) > errors && y->v.block->loc.src != n->loc.src)
            weft_note_at(s->dg, n->loc, "included here");
        v = (val){.kind = VAL_SCOPE, .scope = inner};
    }
    sema_declare(s, s->names, n->name, SYM_INCLUDE, v, n->name_loc);
}

/* ---- state ---- */

/* False: there is no such argument, and it was reported. */
static bool cell_argument(sema *s, cell *cl, const ast *arg, uint32_t *given)
{
    str name = arg->name, word;
    int at = word_find(cl->kind->arguments, name);
    if (at >= 0) {
        if (*given & (1u << at))
            weft_fail(s->dg, W0205, arg->name_loc, STR_FMT " is given twice", STR_ARG(name));
        *given |= 1u << at;
        cl->arg[at] = sema_int(s, arg->kid[ARG_VALUE], "a cell's size");
    } else if (str_eq(name, STR("coarsest"))) {
        sema_word(s, arg->kid[ARG_VALUE], "f32 f16 bf16 q8 q4", &word);
    } else if (str_eq(name, STR("pin"))) {
        sema_int(s, arg->kid[ARG_VALUE], "pin");
    } else {
        if (name.n)
            weft_fail(s->dg, W0205, arg->name_loc, "%s has no argument `" STR_FMT "`",
                      cl->kind->name, STR_ARG(name));
        else
            weft_fail(s->dg, W0205, arg->loc, "a cell's arguments are given by name");
        if (!weft_suggest_word(s->dg, name, cl->kind->arguments))
            weft_note(s->dg, "it takes %s, coarsest, pin", words_text(s, cl->kind->arguments));
        return false;
    }
    return true;
}

static void declare_cell(sema *s, const ast *n)
{
    const ast *kind = n->kid[CELL_KIND], *index = n->kid[CELL_INDEX],
              *args = n->kid[CELL_ARGUMENTS];
    cell *cl = ARENA_NEW(s->a, cell);
    *cl = (cell){
        .decl = n, .name = n->name, .kind = cell_find(kind->name), .guard = cond_bool(s->cp, true)};
    if (!cl->kind) {
        int n_row;
        const cell_row *row = cell_rows(&n_row);
        weft_fail(s->dg, W0203, kind->loc, "unknown kind of cell `" STR_FMT "`",
                  STR_ARG(kind->name));
        SUGGEST_ROW(s->dg, kind->name, row, n_row);
        sema_declare(s, s->names, n->name, SYM_CELL, val_unknown(), n->name_loc);
        return;
    }
    scope *outer = s->names;
    if (index) {
        cl->limit = sema_int(s, index->kid[INDEX_LIMIT], "the limit of an index");
        cl->symbol = poly_symbol(s->pp, cl, index->name);
        s->names = scope_create(s->a, outer);
        val i = {.kind = VAL_INT, .known = true, .size = cl->symbol};
        sema_declare(s, s->names, index->name, SYM_INDEX, i, index->name_loc);
    }
    uint32_t given = 0;
    bool fine = true;
    for (uint32_t i = 0; i < args->n_kid; i++)
        fine &= cell_argument(s, cl, args->kid[i], &given);
    str word;
    for (int i = 0; fine && (word = word_at(cl->kind->arguments, i)).n; i++)
        if (!(given & (1u << i)))
            weft_fail(s->dg, W0208, kind->loc, "%s needs the argument `" STR_FMT "`",
                      cl->kind->name, STR_ARG(word));
    if (n->kid[CELL_WHEN])
        cl->guard = sema_truth(s, n->kid[CELL_WHEN], "the condition of when");
    s->names = outer;
    if (sema_declare(s, s->names, n->name, SYM_CELL, (val){.kind = VAL_CELL, .cell = cl},
                     n->name_loc))
        VEC_PUSH(&s->cells, cl);
}

static void section_state(sema *s, const ast *n)
{
    for (uint32_t i = 0; i < n->n_kid; i++)
        declare_cell(s, n->kid[i]);
}

/* ---- sections ---- */

static void section_match(sema *s, const ast *n)
{
    if (n->kid[MATCH_CONDITION])
        sema_truth(s, n->kid[MATCH_CONDITION], "the condition of a match");
}

static void section_tokenizer(sema *s, const ast *n)
{
    static const char *const words = "auto spm bpe wordpiece unigram rwkv";
    if (word_find(words, n->name) >= 0)
        return;
    weft_fail(s->dg, W0203, n->name_loc, "unknown tokenizer `" STR_FMT "`", STR_ARG(n->name));
    weft_note(s->dg, "the tokenizers are %s", words_text(s, words));
}

static void section_weights(sema *s, const ast *n)
{
    if (s->bind)
        bind_table(s->bind, n);
    sema_weights(s, n);
    if (s->bind)
        bind_table(s->bind, NULL);
}

static void section_pass(sema *s, const ast *n)
{
    (void)s;
    (void)n;
}

void sema_sections(sema *s, const ast *body, bool fragment)
{
    static void (*const by_kind[AST_KIND_COUNT])(sema *, const ast *) = {
        [AST_MATCH] = section_match,
        [AST_TOKENIZER] = section_tokenizer,
        [AST_CHAT] = section_pass,
        [AST_PARAMS] = section_params,
        [AST_LET] = sema_let,
        [AST_REQUIRE] = sema_require,
        [AST_INCLUDE] = section_include,
        [AST_WEIGHTS] = section_weights,
        [AST_STATE] = section_state,
        [AST_BLOCK] = section_pass,
        [AST_ENTRY] = section_pass,
    };
    const ast *once[AST_KIND_COUNT] = {NULL};
    for (uint32_t i = 0; i < body->n_kid; i++) {
        const ast *n = body->kid[i];
        if (n->kind == AST_BLOCK) /* a block may stand below its first use */
            sema_declare(s, s->names, n->name, SYM_BLOCK,
                         (val){.kind = VAL_BLOCK, .block = n, .home = s->names}, n->name_loc);
    }
    for (uint32_t i = 0; i < body->n_kid && !s->stopped; i++) {
        const ast *n = body->kid[i];
        bool models_only = n->kind == AST_MATCH || n->kind == AST_TOKENIZER ||
                           n->kind == AST_CHAT || n->kind == AST_ENTRY;
        if (fragment && models_only)
            weft_fail(s->dg, W0210, n->loc, "`%s` belongs in a model, not in a fragment",
                      ast_kind_name(n->kind));
        if ((n->kind == AST_TOKENIZER || n->kind == AST_CHAT) && once[n->kind]) {
            weft_fail(s->dg, W0210, n->loc, "`%s` stands twice", ast_kind_name(n->kind));
            weft_note_at(s->dg, once[n->kind]->loc, "first here");
        }
        once[n->kind] = n;
        by_kind[n->kind](s, n);
    }
}
