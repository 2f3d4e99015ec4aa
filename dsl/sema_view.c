/* sema_view.c - weight lines with a checkpoint at hand: which tensors they mean, and how those look
 * after their transforms. No tensor data moves here; a transform only changes offsets and strides. */
#include "dsl/sema.h"

#include <math.h>

enum {
    MAP_ELEMENTS_MAX = 1 << 20, /* an element map is for norms and other small tensors */
    PIECES_MAX = 1 << 16,       /* parts that a reshape may make of one tensor */
    MXFP4_HF_BYTES = 16,        /* of a block; its scale lies in a tensor of its own */
};

/* One alternative of a weight line on its way through the transforms. */
typedef struct {
    sema *s;
    weight *w;
    const ast *key;
    dsl_weight v;
    int64_t blocks; /* elements per block of the stored type */
    bool bias;      /* the bias follows, without the input axis */
    bool bad;       /* told */
} view;

static const char *dims_text(view *x, dtype type, int rank, const int64_t *dim)
{
    strbuf b = {0};
    strbuf_add(&b, "%s [", dtype_row_of(type)->name);
    for (int i = 0; i < rank; i++)
        strbuf_add(&b, "%s%lld", i ? ", " : "", (long long)dim[i]);
    strbuf_add(&b, "]");
    str text = arena_str(x->s->a, strbuf_view(&b));
    strbuf_free(&b);
    return text.p;
}

static const char *view_text(view *x)
{
    return dims_text(x, x->v.type, x->v.rank, x->v.dim);
}

/* Is the view still what the file holds, or did transforms and stacking make another shape of it? */
static bool view_is_stored(const view *x, const host_tensor *t)
{
    return x->v.rank == t->rank && memcmp(x->v.dim, t->dim, (size_t)t->rank * sizeof *t->dim) == 0;
}

static void note_tensor(view *x)
{
    const dsl_host *host = x->s->host;
    if (!x->v.piece)
        return;
    host_tensor t = host->tensor_at(host->ctx, x->v.piece[0].tensor);
    if (view_is_stored(x, &t))
        weft_note(x->s->dg, "the tensor is " STR_FMT " in %s", STR_ARG(t.name), host->file);
    else
        weft_note(x->s->dg, "%s is " STR_FMT " in %s, stored %s",
                  x->v.n_piece > 1 ? "the first of its tensors" : "the tensor", STR_ARG(t.name),
                  host->file, dims_text(x, t.type, t.rank, t.dim));
}

static void view_fail(view *x, weft_code code, const ast *at, const char *why)
{
    if (x->bad)
        return;
    x->bad = true;
    weft_fail(x->s->dg, code, at->loc, STR_FMT ": %s; it is %s", STR_ARG(x->w->name), why,
              view_text(x));
    note_tensor(x);
}

/* ---- from a tensor ---- */

static int64_t block_bytes(dtype t)
{
    return t == DT_MXFP4_HF ? MXFP4_HF_BYTES : (int64_t)dtype_row_of(t)->bytes;
}

static void view_strides(dsl_weight *v)
{
    const dtype_row *row = dtype_row_of(v->type);
    int64_t step = block_bytes(v->type);
    for (int i = v->rank - 1; i >= 0; i--) {
        v->stride[i] = row->elems > 1 && i == v->rank - 1 ? 0 : step;
        step *= i == v->rank - 1 ? v->dim[i] / row->elems : v->dim[i];
    }
}

/* What the file says of a tensor; view_strides then trusts that its elements can be counted. */
static void view_shape(view *x, const host_tensor *t)
{
    x->v.type = t->type;
    x->v.rank = t->rank;
    memcpy(x->v.dim, t->dim, sizeof x->v.dim);
    x->blocks = dtype_row_of(t->type)->elems;
}

static void view_start(view *x, const host_tensor *t)
{
    view_shape(x, t);
    view_strides(&x->v);
}

/* ---- transforms ---- */

static bool int_arg(view *x, const ast *n, uint32_t i, int64_t *out)
{
    const poly *p =
        sema_int(x->s, n->kid[TRANSFORM_ARGUMENTS]->kid[i]->kid[ARG_VALUE], "an argument");
    x->bad |= !p || !poly_value(p, out);
    return !x->bad;
}

/* The pieces; scales lie like their blocks, a byte for each. */
static void set_pieces(view *x, const dsl_piece *piece, int n)
{
    dsl_weight *v = &x->v;
    if (v->scales) {
        dsl_piece *scales = ARENA_ARRAY(x->s->a, dsl_piece, (size_t)n);
        int id = v->scales[0].tensor;
        for (int i = 0; i < n; i++) {
            id = n == v->n_piece ? v->scales[i].tensor : id;
            scales[i] = (dsl_piece){id, piece[i].offset / MXFP4_HF_BYTES, piece[i].rows};
        }
        v->scales = scales;
    }
    v->piece = piece;
    v->n_piece = n;
}

static void view_slice(view *x, const ast *n, int64_t axis, uint32_t first)
{
    const ast *args = n->kid[TRANSFORM_ARGUMENTS];
    int64_t a, b, step = 1;
    dsl_weight *v = &x->v;
    if (!int_arg(x, n, first, &a) || !int_arg(x, n, first + 1, &b) ||
        (args->n_kid > first + 2 && !int_arg(x, n, first + 2, &step)))
        return;
    if (axis < 0 || axis >= v->rank || a < 0 || b < a || b > v->dim[axis] || step < 1) {
        view_fail(x, W0504, n, "the slice lies outside its axis");
        return;
    }
    bool last = axis == v->rank - 1;
    if (last && x->blocks > 1 && (a % x->blocks || b % x->blocks || step != 1)) {
        view_fail(x, W0504, n, "the slice cuts through blocks of a quantised type");
        return;
    }
    if (axis == 0 && v->n_piece > 1) {
        view_fail(x, W0504, n, "a stacked axis cannot be sliced");
        return;
    }
    int64_t bytes =
        last && x->blocks > 1 ? a / x->blocks * block_bytes(v->type) : a * v->stride[axis];
    dsl_piece *piece = ARENA_ARRAY(x->s->a, dsl_piece, (size_t)v->n_piece);
    for (int i = 0; i < v->n_piece; i++) {
        piece[i] = v->piece[i];
        piece[i].offset += bytes;
    }
    if (step > b - a) /* one element, and no second one to step to */
        step = b > a ? b - a : 1;
    v->dim[axis] = (b - a + step - 1) / step;
    if (!(last && x->blocks > 1))
        v->stride[axis] *= step;
    if (axis == 0)
        piece[0].rows = v->dim[0];
    set_pieces(x, piece, v->n_piece);
}

/* Whether axes from .. rank - 1 of a piece lie as one run of bytes. */
static bool is_run(const dsl_weight *v, int from)
{
    dsl_weight dense = *v;
    view_strides(&dense);
    for (int i = from; i < v->rank; i++)
        if (v->dim[i] > 1 && v->stride[i] != dense.stride[i])
            return false;
    return true;
}

static bool view_is_dense(const dsl_weight *v)
{
    return v->n_piece == 1 && is_run(v, 0);
}

/* Of a view in one piece: axes before `from` have gaps, so each of their elements becomes a piece of
 * its own, `run` rows of the new shape. [heads, 1, head_dim, d] out of a fused [heads, 3, ..] is one
 * piece for each head. */
static const dsl_piece *cut_runs(view *x, int from, int64_t n_piece, int64_t run)
{
    const dsl_weight *v = &x->v;
    dsl_piece *piece = ARENA_ARRAY(x->s->a, dsl_piece, (size_t)n_piece);
    for (int64_t i = 0; i < n_piece; i++) {
        int64_t offset = v->piece[0].offset, left = i;
        for (int k = from - 1; k >= 0; k--) {
            offset += left % v->dim[k] * v->stride[k];
            left /= v->dim[k];
        }
        piece[i] = (dsl_piece){v->piece[0].tensor, offset, run};
    }
    return piece;
}

/* Of a view in several pieces, each of which is one run: the same pieces, with rows of the new shape. */
static const dsl_piece *keep_runs(view *x, int64_t row_elems)
{
    const dsl_weight *v = &x->v;
    dsl_piece *piece = ARENA_ARRAY(x->s->a, dsl_piece, (size_t)v->n_piece);
    int64_t inner = 1;
    bool fits = is_run(v, 1);
    for (int i = 1; i < v->rank; i++)
        inner *= v->dim[i];
    for (int i = 0; i < v->n_piece && fits; i++) {
        int64_t elems = v->piece[i].rows * inner;
        piece[i] = (dsl_piece){v->piece[i].tensor, v->piece[i].offset, elems / row_elems};
        fits = elems % row_elems == 0 && (v->piece[i].rows == 1 || is_run(v, 0));
    }
    return fits ? piece : NULL;
}

static void view_reshape(view *x, const ast *n)
{
    const ast *args = n->kid[TRANSFORM_ARGUMENTS];
    int64_t have = 1, want = 1, n_piece = 1;
    int rank = (int)args->n_kid - x->bias, from = 0; /* a bias has no input axis */
    dsl_weight *v = &x->v;
    for (int i = 0; i < v->rank; i++)
        have *= v->dim[i];
    int64_t dim[DSL_RANK_MAX] = {0};
    for (int i = 0; i < rank && i < DSL_RANK_MAX; i++) {
        if (!int_arg(x, n, (uint32_t)i, &dim[i]))
            return;
        if (dim[i] < 1 || __builtin_mul_overflow(want, dim[i], &want)) {
            view_fail(x, W0504, n, "the new shape is not a shape");
            return;
        }
    }
    if (rank < 1 || rank > DSL_RANK_MAX || have != want) {
        view_fail(x, W0504, n, "the new shape has other elements");
        return;
    }
    const dsl_piece *piece = NULL;
    int64_t row_elems = want / dim[0];
    if (v->n_piece > 1) {
        n_piece = v->n_piece;
        piece = keep_runs(x, row_elems);
    } else {
        for (; from < v->rank && !is_run(v, from); from++)
            n_piece *= v->dim[from]; /* below `have`, which does not overflow */
        if (n_piece <= PIECES_MAX && have / n_piece % row_elems == 0 &&
            sema_step(x->s, n->loc, n_piece / 16))
            piece = cut_runs(x, from, n_piece, have / n_piece / row_elems);
    }
    if (!piece || (rank == 1 ? piece[0].rows : dim[rank - 1]) % x->blocks) {
        view_fail(x, W0504, n, "the rows of the new shape do not lie in one run each");
        return;
    }
    memcpy(v->dim, dim, sizeof dim);
    v->rank = rank;
    set_pieces(x, piece, (int)n_piece);
    view_strides(v);
}

static void view_transpose(view *x, const ast *n)
{
    dsl_weight *v = &x->v;
    int a = v->rank - 2, b = v->rank - 1;
    if (a < 0 || x->blocks > 1 || (a == 0 && v->n_piece > 1)) {
        view_fail(x, W0504, n,
                  x->blocks > 1 ? "a quantised tensor cannot be transposed"
                                : "there are no two axes to swap");
        return;
    }
    int64_t t = v->dim[a];
    v->dim[a] = v->dim[b];
    v->dim[b] = t;
    t = v->stride[a];
    v->stride[a] = v->stride[b];
    v->stride[b] = t;
    if (a == 0) {
        dsl_piece *piece = ARENA_NEW(x->s->a, dsl_piece);
        *piece = (dsl_piece){v->piece[0].tensor, v->piece[0].offset, v->dim[0]};
        v->piece = piece;
    }
}

static void view_map(view *x, const ast *n)
{
    dsl_weight *v = &x->v;
    sema *s = x->s;
    int64_t count = 1;
    for (int i = 0; i < v->rank; i++)
        count *= v->dim[i];
    if (x->blocks > 1 || (v->type != DT_F32 && v->type != DT_F16 && v->type != DT_BF16)) {
        view_fail(x, W0507, n, "an element map works on float tensors only");
        return;
    }
    host_tensor t = s->host->tensor_at(s->host->ctx, v->piece[0].tensor);
    int64_t stored = 1;
    for (int i = 0; i < t.rank; i++)
        stored *= t.dim[i];
    if (count > MAP_ELEMENTS_MAX || !view_is_dense(v) || v->piece[0].offset != 0 ||
        stored != count) {
        view_fail(x, W0507, n, "an element map takes a small tensor, whole");
        return;
    }
    double *data = ARENA_ARRAY(s->a, double, (size_t)count);
    if (v->computed)
        for (int64_t i = 0; i < count; i++)
            data[i] = v->computed[i];
    else if (!s->host->read(s->host->ctx, v->piece[0].tensor, data, count))
        x->bad = true;
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

/* The rows stay; what is known of their order goes with the weight. */
int bind_pairs(sema *s, const ast *transform)
{
    str word = STR("half");
    const ast *order = transform->kid[TRANSFORM_ARGUMENTS]->kid[0]->kid[ARG_VALUE];
    sema_word(s, order, "half interleaved", &word); /* which was checked without a checkpoint */
    return str_eqz(word, "half") ? PAIRS_HALF : PAIRS_INTERLEAVED;
}

static void view_pairs(view *x, const ast *n)
{
    const ast *args = n->kid[TRANSFORM_ARGUMENTS];
    tensor_type *t = &x->w->stored;
    int o = x->s->host->gguf ? ORIGIN_GGUF : ORIGIN_HF;
    uint32_t last = args->n_kid > 2 ? 2 : 1;
    x->v.pairs = bind_pairs(x->s, n);
    t->pairs[o] = (pair_order)x->v.pairs;
    t->run[o] = sema_int(x->s, args->kid[1]->kid[ARG_VALUE], "an argument");
    t->turned[o] = sema_int(x->s, args->kid[last]->kid[ARG_VALUE], "an argument");
}

static void view_transform(view *x, const ast *n)
{
    const transform_row *row = n->kind == AST_TRANSFORM ? transform_find(n->name) : NULL;
    int64_t axis;
    if (n->kind == AST_MAP) {
        if (!x->bias)
            view_map(x, n);
        return;
    }
    switch (row->code) {
    case TRANSFORM_pairs:
        view_pairs(x, n);
        break;
    case TRANSFORM_rows:
        view_slice(x, n, x->v.rank - (x->bias || x->v.rank == 1 ? 1 : 2), 0);
        break;
    case TRANSFORM_take:
        if (int_arg(x, n, 0, &axis))
            view_slice(x, n, axis, 1);
        break;
    case TRANSFORM_reshape:
        view_reshape(x, n);
        break;
    case TRANSFORM_transpose:
        if (!x->bias)
            view_transpose(x, n);
        break;
    default:
        break; /* join, raw and mxfp4 choose the tensors */
    }
}

/* ---- names ---- */

static const ast *find_transform(const ast *key, transform_code code)
{
    for (uint32_t i = 0; i < key->n_kid; i++) {
        const transform_row *row =
            key->kid[i]->kind == AST_TRANSFORM ? transform_find(key->kid[i]->name) : NULL;
        if (row && row->code == code)
            return key->kid[i];
    }
    return NULL;
}

str bind_text(sema *s, const ast *n)
{
    val v;
    sema_string(s, n, &v);
    return v.known ? v.text : STR("");
}

static bool find(sema *s, str name, host_tensor *out)
{
    return s->host->tensor(s->host->ctx, name, out);
}

static void claim(sema *s, int id)
{
    s->claimed[id] = 1;
}

/* The tensors of one name: the part itself, and with a join those that are stacked behind it. */
typedef struct {
    VEC(dsl_piece) part, scales;
    host_tensor first;
} tensor_set;

static bool gather_one(view *x, tensor_set *set, str base, bool raw, bool mxfp4, const char *suffix)
{
    sema *s = x->s;
    host_tensor t, scale = {0};
    const char *tail = mxfp4 ? (x->bias ? "_bias" : "_blocks")
                       : raw ? (x->bias ? "_bias" : "")
                             : suffix;
    if (!find(s, arena_printf(s->a, STR_FMT "%s", STR_ARG(base), tail), &t))
        return false;
    for (int i = 0; i < t.rank; i++)
        if (t.dim[i] < 1) { /* then its other sizes may be anything */
            view_shape(x, &t);
            view_fail(x, W0503, x->key,
                      arena_printf(s->a, STR_FMT " has no elements", STR_ARG(t.name)).p);
            return false;
        }
    if (mxfp4 && !x->bias) {
        if (!find(s, arena_printf(s->a, STR_FMT "_scales", STR_ARG(base)), &scale))
            return false;
        /* blocks [.., n / 32, 16] of bytes, scales [.., n / 32] */
        bool fits = t.rank >= 3 && t.dim[t.rank - 1] == MXFP4_HF_BYTES &&
                    scale.rank == t.rank - 1 && t.type == DT_U8 && scale.type == DT_U8;
        for (int i = 0; fits && i < scale.rank; i++)
            fits = t.dim[i] == scale.dim[i];
        if (!fits) {
            view_start(x, &t);
            view_fail(x, W0504, x->key, "these are not the blocks and scales of MXFP4");
            return false;
        }
        t.rank--;
        t.dim[t.rank - 1] *= 32;
        t.type = DT_MXFP4_HF;
        VEC_PUSH(&set->scales, ((dsl_piece){scale.id, 0, t.dim[0]}));
    }
    bool differs = set->part.n > 0 && (t.type != set->first.type || t.rank != set->first.rank);
    for (int i = 1; set->part.n > 0 && !differs && i < t.rank; i++)
        differs = t.dim[i] != set->first.dim[i];
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
    VEC_PUSH(&set->part, ((dsl_piece){t.id, 0, t.rank > 0 ? t.dim[0] : 1}));
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
    sema *s = x->s;
    const ast *index = x->w->decl->kid[WEIGHT_INDEX];
    const ast *join = find_transform(x->key, TRANSFORM_join);
    bool raw = find_transform(x->key, TRANSFORM_raw),
         mxfp4 = find_transform(x->key, TRANSFORM_mxfp4);
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
    sema *s = x->s;
    dsl_weight *v = &x->v;
    size_t n = set->part.n;
    view_start(x, &set->first);
    dsl_piece *piece = ARENA_ARRAY(s->a, dsl_piece, n);
    memcpy(piece, set->part.at, n * sizeof *piece);
    for (size_t i = 0; stacked && i < n; i++)
        piece[i].rows = 1;
    if (set->scales.n == n) {
        dsl_piece *scales = ARENA_ARRAY(s->a, dsl_piece, n);
        memcpy(scales, set->scales.at, n * sizeof *scales);
        for (size_t i = 0; i < n; i++)
            scales[i].rows = piece[i].rows;
        v->scales = scales;
    }
    v->piece = piece;
    v->n_piece = (int)n;
    if (stacked && v->rank < DSL_RANK_MAX) { /* a new first axis, one tensor for each index */
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
    sema *s = x->s;
    dsl_weight *v = &x->v;
    bool fits = v->rank == declared->rank;
    for (int i = 0; fits && i < v->rank; i++)
        fits = poly_is(declared->dim[i], v->dim[i]);
    if (fits || x->bad)
        return;
    x->bad = true;
    const ast *at = x->w->decl;
    host_tensor t = s->host->tensor_at(s->host->ctx, v->piece[0].tensor);
    weft_fail(s->dg, transformed ? W0504 : W0503, at->name_loc,
              STR_FMT "%s is declared %s, but %s %s", STR_ARG(x->w->name), x->bias ? "'s bias" : "",
              type_text(s, declared),
              view_is_stored(x, &t) ? "the file holds"
              : transformed         ? "its transforms give"
                                    : "its tensors, stacked, are",
              view_text(x));
    note_tensor(x);
}

/* 1: this alternative is the one; 0: its tensors are not there; -1: they are, and do not fit. */
static int try_alternative(sema *s, weight *w, const ast *key, str prefix, bool bias,
                           dsl_weight *out)
{
    view x = {.s = s, .w = w, .key = key, .bias = bias};
    tensor_set set = {.part = {0}};
    bool stacked, transformed = false;
    bool there = gather(&x, prefix, &set, &stacked);
    for (size_t i = 0; there && i < set.part.n; i++)
        claim(s, set.part.at[i].tensor);
    for (size_t i = 0; there && i < set.scales.n; i++)
        claim(s, set.scales.at[i].tensor);
    if (there) {
        keep_pieces(&x, &set, stacked);
        for (uint32_t i = 0; i < key->n_kid && !x.bad; i++) {
            const transform_row *row =
                key->kid[i]->kind == AST_TRANSFORM ? transform_find(key->kid[i]->name) : NULL;
            transformed |= row && row->code != TRANSFORM_pairs && row->code != TRANSFORM_raw;
            view_transform(&x, key->kid[i]);
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

const ast *bind_lines(const sema *s, const ast *list)
{
    for (uint32_t i = 0; i < list->n_kid; i++)
        if (str_eq(list->kid[i]->name, STR("gguf")) == s->host->gguf)
            return list->kid[i];
    return NULL;
}

static void name_weight(sema *s, const weight *w, dsl_weight *v, const char *tail)
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

static int bind_bias(sema *s, weight *w, const ast *key, str prefix, bool wanted)
{
    if (!wanted)
        return 1;
    int got = try_alternative(s, w, key, prefix, true, &w->bound->bias);
    if (got < 1)
        w->bound->bias.rank = 0;
    if (got == 0 && !w->maybe_bias) {
        weft_fail(s->dg, W0502, w->decl->name_loc,
                  STR_FMT " must have a bias, but the file holds none", STR_ARG(w->name));
        weft_note(s->dg, "looked for that of " STR_FMT STR_FMT " in %s", STR_ARG(prefix),
                  STR_ARG(bind_text(s, key)), s->host->file);
        weft_note(s->dg, "write `bias?` where it is optional");
        return -1;
    }
    if (got == 1)
        name_weight(s, w, &w->bound->bias, ".bias");
    return got < 0 ? -1 : 1;
}

static void note_tried(sema *s, const str *name, size_t n)
{
    strbuf b = {0};
    for (size_t i = 0; i < n; i++)
        strbuf_add(&b, "%s" STR_FMT, i ? ", " : "", STR_ARG(name[i]));
    weft_note(s->dg, "looked for %s in %s", n ? b.p : "no name at all", s->host->file);
    suggest_tensor(s, name, n);
    strbuf_free(&b);
}

int bind_weight(sema *s, weight *w, bool has_bias)
{
    const ast *binding = bind_lines(s, w->decl->kid[WEIGHT_BINDINGS]);
    const ast *prefixes = w->group ? bind_lines(s, w->group->decl->kid[GROUP_PREFIXES]) : NULL;
    uint32_t n_prefix = prefixes ? prefixes->n_kid : 1;
    VEC(str) tried = {0};
    int got = 0;
    w->bound = ARENA_NEW(s->a, weight_bound);
    w->bound->id = w->bound->bias_id = -1;
    for (uint32_t p = 0; p < n_prefix && binding && got == 0; p++) {
        str prefix = prefixes ? bind_text(s, prefixes->kid[p]) : STR("");
        for (uint32_t k = 0; k < binding->n_kid && got == 0; k++) {
            const ast *key = binding->kid[k];
            got = try_alternative(s, w, key, prefix, false, &w->bound->stored);
            if (got == 0)
                VEC_PUSH(&tried, arena_printf(s->a, STR_FMT STR_FMT, STR_ARG(prefix),
                                              STR_ARG(bind_text(s, key))));
            if (got == 1)
                got = bind_bias(s, w, key, prefix, has_bias);
        }
    }
    if (got == 1) {
        name_weight(s, w, &w->bound->stored, "");
        other_weight(s, w);
    }
    if (got == 0 && !w->optional && !w->decl->kid[WEIGHT_FALLBACK]) {
        weft_fail(s->dg, W0501, w->decl->name_loc, STR_FMT " is not in the file", STR_ARG(w->name));
        note_tried(s, tried.at, tried.n);
        got = -1;
    }
    VEC_FREE(&tried);
    return got;
}

void bind_set_aside(sema *s, const weight *w)
{
    const ast *binding = bind_lines(s, w->decl->kid[WEIGHT_BINDINGS]);
    const ast *prefixes = w->group ? bind_lines(s, w->group->decl->kid[GROUP_PREFIXES]) : NULL;
    for (uint32_t p = 0; p < (prefixes ? prefixes->n_kid : 1) && binding; p++) {
        str prefix = prefixes ? bind_text(s, prefixes->kid[p]) : STR("");
        for (uint32_t k = 0; k < binding->n_kid; k++) {
            static const char *const tail[] = {"", ".weight", ".bias"};
            for (size_t i = 0; i < sizeof tail / sizeof *tail; i++) {
                host_tensor t;
                str key = bind_text(s, binding->kid[k]);
                if (find(s,
                         arena_printf(s->a, STR_FMT STR_FMT "%s", STR_ARG(prefix), STR_ARG(key),
                                      tail[i]),
                         &t))
                    claim(s, t.id);
            }
        }
    }
}

void bind_alias(sema *s, weight *w, const weight *other)
{
    if (!other->bound)
        return;
    w->bound = ARENA_NEW(s->a, weight_bound);
    *w->bound = (weight_bound){.stored = other->bound->stored, .id = -1, .bias_id = -1};
    w->bias.rank = 0; /* a fallback brings no bias */
    name_weight(s, w, &w->bound->stored, "");
}

val bind_constant(sema *s, const weight *w)
{
    const dsl_weight *v = &w->bound->stored;
    bool small = v->dim[0] <= MAP_ELEMENTS_MAX; /* as what is computed always is */
    double *data = ARENA_ARRAY(s->a, double, small ? (size_t)v->dim[0] : 0);
    val out = {.kind = VAL_VEC, .known = true, .size = w->stored.dim[0], .data = data};
    if (v->computed) {
        for (int64_t i = 0; i < v->dim[0]; i++)
            data[i] = v->computed[i];
    } else if (!small || !view_is_dense(v) || v->piece[0].offset != 0 ||
               !s->host->read(s->host->ctx, v->piece[0].tensor, data, v->dim[0])) {
        weft_fail(s->dg, W0506, w->decl->name_loc, STR_FMT " cannot be read as a constant",
                  STR_ARG(w->name));
        return val_unknown();
    }
    return out;
}
