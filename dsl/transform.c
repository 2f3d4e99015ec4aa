/* transform.c - the transforms of kinds.def; transform.h says where each effect is used. */
#include "dsl/transform.h"

#include "dsl/bind_impl.h"
#include "runtime/base/intmath.h"

enum { PIECES_MAX = 1 << 16 }; /* parts that a reshape may make of one tensor */

/* A transform with its arguments, evaluated for every size. */
typedef struct {
    sema *s;
    const ast *n;
    const transform_row *row;
    const val *arg;
    int n_arg;
    tensor_type *stored;
    origin o;
} transform_call;

/* ---- trace: the shape for every size ---- */

static const shape_trace shape_unknown = {.rank = 0};

static bool transform_arity(sema *s, const ast *n, const transform_row *row, const val **out_arg,
                            int *out_n)
{
    const ast *args = n->kid[TRANSFORM_ARGUMENTS];
    int n_arg = args ? (int)args->n_kid : 0, n_min = 0, n_max = 0;
    bool first_word = row->code == TRANSFORM_pairs;
    for (str word; (word = word_at(row->arguments, n_max)).n; n_max++)
        n_min += !str_ends(word, STR("?"));
    if (str_ends(str_of(row->arguments), STR("...")))
        n_max = TENSOR_RANK_MAX + 1;
    if (n_arg < n_min || n_arg > n_max) {
        weft_fail(s->dg, W0206, n->loc, "%s takes (%s), not %d argument%s", row->name,
                  words_text(s, row->arguments), n_arg, n_arg == 1 ? "" : "s");
        return false;
    }
    val *arg = ARENA_ARRAY(s->a, val, (size_t)n_arg + 1);
    for (int i = 0; i < n_arg; i++) {
        const ast *a = args->kid[i];
        val_kind wanted = row->code == TRANSFORM_join ? VAL_STR : VAL_INT;
        if (a->name.n) {
            weft_fail(s->dg, W0205, a->name_loc, "%s takes its arguments in order, without names",
                      row->name);
            return false;
        }
        if (i == 0 && first_word) {
            str word;
            if (!sema_word(s, a->kid[ARG_VALUE], "half interleaved", &word))
                return false;
            arg[0] = (val){.kind = VAL_STR, .known = true, .text = word};
            continue;
        }
        arg[i] = sema_eval(s, a->kid[ARG_VALUE]);
        if (arg[i].kind == VAL_UNKNOWN)
            return false;
        if (arg[i].kind != wanted) {
            weft_fail(s->dg, W0207, a->loc, "%s takes %s here, not %s", row->name,
                      wanted == VAL_STR ? "strings" : "integers", val_text(s, arg[i]));
            return false;
        }
    }
    *out_arg = arg;
    *out_n = n_arg;
    return true;
}

/* How many of a, a + step, .. lie below b. */
static const poly *slice_count(sema *s, const val *a, int n)
{
    enum { STEP_MAX = 64 }; /* beyond it the rest is not looked for */
    const poly *span = poly_sub(s->pp, a[1].size, a[0].size);
    int64_t step;
    if (n < 3 || poly_is(a[2].size, 1))
        return span;
    if (!poly_value(a[2].size, &step) || step < 1)
        return poly_quotient(s->pp, span, a[2].size);
    for (int64_t rest = 0; rest < step && rest < STEP_MAX; rest++) {
        const poly *up = poly_add(s->pp, span, poly_int(s->pp, rest));
        const poly *count = up ? poly_quotient(s->pp, up, a[2].size) : NULL;
        if (count)
            return count;
    }
    const poly *both[2] = {poly_add(s->pp, span, poly_int(s->pp, step - 1)), a[2].size};
    return both[0] ? poly_call(s->pp, "idiv", both, 2) : NULL;
}

static bool step_fits(sema *s, const ast *n, const transform_row *row, const poly *step)
{
    int64_t v;
    if (!poly_value(step, &v) || v > 0)
        return true;
    weft_fail(s->dg, W0504, n->loc, "%s: the step is %lld; it must be at least 1", row->name,
              (long long)v);
    return false;
}

/* The elements of a shape, NULL if they cannot be counted. */
static const poly *product(sema *s, const poly *const *dim, int rank)
{
    const poly *n = poly_int(s->pp, 1);
    for (int i = 0; i < rank; i++)
        n = n && dim[i] ? poly_mul(s->pp, n, dim[i]) : NULL;
    return n;
}

static void trace_sync(shape_trace *t)
{
    if (t->rank >= 2) {
        t->out = t->dim[t->rank - 2];
        t->in = t->dim[t->rank - 1];
    }
}

static void trace_pairs(const transform_call *c, shape_trace *t)
{
    (void)t;
    c->stored->pairs[c->o] = str_eq(c->arg[0].text, STR("half")) ? PAIRS_HALF : PAIRS_INTERLEAVED;
    c->stored->run[c->o] = c->arg[1].size;
    c->stored->turned[c->o] = c->arg[c->n_arg > 2 ? 2 : 1].size;
    const poly *rest = poly_sub(c->s->pp, c->arg[1].size, c->stored->turned[c->o]);
    if (rest && poly_is_negative(sema_narrowed(c->s, rest)))
        weft_fail(c->s->dg, W0504, c->n->loc, "pairs: of %s rows the first %s cannot be in order",
                  poly_text(c->s, c->arg[1].size), poly_text(c->s, c->stored->turned[c->o]));
}

static void trace_rows(const transform_call *c, shape_trace *t)
{
    if (c->n_arg == 3 && !step_fits(c->s, c->n, c->row, c->arg[2].size)) {
        *t = shape_unknown;
        return;
    }
    t->out = slice_count(c->s, c->arg, c->n_arg);
    if (t->rank >= 2)
        t->dim[t->rank - 2] = t->out;
    t->rank = t->out ? t->rank : 0;
}

static void trace_take(const transform_call *c, shape_trace *t)
{
    const poly *at = c->arg[0].size, *count = NULL;
    int64_t axis;
    if (!poly_value(at, &axis) || (t->rank && (axis < 0 || axis >= t->rank)))
        weft_fail(c->s->dg, W0504, c->n->loc, "take: there is no axis %s", poly_text(c->s, at));
    else if (c->n_arg < 4 || step_fits(c->s, c->n, c->row, c->arg[3].size))
        count = slice_count(c->s, c->arg + 1, c->n_arg - 1);
    if (!count || t->rank == 0) {
        *t = shape_unknown;
        return;
    }
    t->dim[axis] = count;
    trace_sync(t);
}

static void trace_reshape(const transform_call *c, shape_trace *t)
{
    const poly *had = t->rank > 0 ? product(c->s, t->dim, t->rank) : NULL;
    t->rank = c->n_arg < TENSOR_RANK_MAX ? c->n_arg : TENSOR_RANK_MAX;
    for (int i = 0; i < t->rank; i++)
        t->dim[i] = c->arg[i].size;
    const poly *has = product(c->s, t->dim, t->rank);
    if (had && has && !dims_equal(c->s, had, has))
        weft_fail(c->s->dg, W0504, c->n->loc, "reshape: there are %s elements, not %s",
                  poly_text(c->s, had), poly_text(c->s, has));
    trace_sync(t);
}

static void trace_transpose(const transform_call *c, shape_trace *t)
{
    (void)c;
    const poly *in = t->in;
    t->in = t->out;
    t->out = in;
    if (t->rank >= 2) {
        t->dim[t->rank - 2] = t->out;
        t->dim[t->rank - 1] = t->in;
    }
}

static void trace_join(const transform_call *c, shape_trace *t)
{
    (void)c;
    *t = (shape_trace){.in = t->in};
}

/* ---- view: the stored tensor ---- */

static const char *dims_text(view *x, dtype type, int rank, const int64_t *dim)
{
    strbuf b = {0};
    strbuf_add(&b, "%s [", dtype_row_of(type)->name);
    for (int i = 0; i < rank; i++)
        strbuf_add(&b, "%s%lld", i ? ", " : "", (long long)dim[i]);
    strbuf_add(&b, "]");
    str text = arena_str(x->b->s->a, strbuf_view(&b));
    strbuf_free(&b);
    return text.p;
}

const char *view_text(view *x)
{
    return dims_text(x, x->v.type, x->v.rank, x->v.dim);
}

bool view_is_stored(const view *x, const model_tensor *t)
{
    return x->v.rank == t->rank &&
           memcmp(x->v.dim, t->shape, (size_t)t->rank * sizeof *t->shape) == 0;
}

void view_note_tensor(view *x)
{
    const checkpoint *cp = x->b->cp;
    if (!x->v.piece)
        return;
    const model_tensor *t = model_file_tensor_at(cp->file, (size_t)x->v.piece[0].tensor);
    if (view_is_stored(x, t))
        weft_note(x->b->s->dg, "the tensor is " STR_FMT " in %s", STR_ARG(t->name), cp->path);
    else
        weft_note(x->b->s->dg, "%s is " STR_FMT " in %s, stored %s",
                  x->v.n_piece > 1 ? "the first of its tensors" : "the tensor", STR_ARG(t->name),
                  cp->path, dims_text(x, t->type, t->rank, t->shape));
}

void view_fail(view *x, weft_code code, const ast *at, const char *why)
{
    if (x->bad)
        return;
    x->bad = true;
    weft_fail(x->b->s->dg, code, at->loc, STR_FMT ": %s; it is %s", STR_ARG(x->w->name), why,
              view_text(x));
    view_note_tensor(x);
}

static int64_t block_bytes(dtype t)
{
    return t == DT_MXFP4_HF ? MXFP4_HF_BYTES : (int64_t)dtype_row_of(t)->bytes;
}

void view_strides(gweight *v)
{
    const dtype_row *row = dtype_row_of(v->type);
    int64_t step = block_bytes(v->type);
    for (int i = v->rank - 1; i >= 0; i--) {
        v->stride[i] = row->elems > 1 && i == v->rank - 1 ? 0 : step;
        step *= i == v->rank - 1 ? v->dim[i] / row->elems : v->dim[i];
    }
}

static bool int_arg(view *x, const ast *n, uint32_t i, int64_t *out)
{
    const poly *p =
        sema_int(x->b->s, n->kid[TRANSFORM_ARGUMENTS]->kid[i]->kid[ARG_VALUE], "an argument");
    x->bad |= !p || !poly_value(p, out);
    return !x->bad;
}

/* The pieces; scales lie like their blocks, a byte for each. */
static void set_pieces(view *x, const gpiece *piece, int n)
{
    gweight *v = &x->v;
    if (v->scales) {
        gpiece *scales = ARENA_ARRAY(x->b->s->a, gpiece, (size_t)n);
        int id = v->scales[0].tensor;
        for (int i = 0; i < n; i++) {
            id = n == v->n_piece ? v->scales[i].tensor : id;
            scales[i] = (gpiece){id, piece[i].offset / MXFP4_HF_BYTES, piece[i].rows};
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
    gweight *v = &x->v;
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
    gpiece *piece = ARENA_ARRAY(x->b->s->a, gpiece, (size_t)v->n_piece);
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
static bool is_run(const gweight *v, int from)
{
    gweight dense = *v;
    view_strides(&dense);
    for (int i = from; i < v->rank; i++)
        if (v->dim[i] > 1 && v->stride[i] != dense.stride[i])
            return false;
    return true;
}

bool view_is_dense(const gweight *v)
{
    return v->n_piece == 1 && is_run(v, 0);
}

/* Of a view in one piece: axes before `from` have gaps, so each of their elements becomes a piece of
 * its own, `run` rows of the new shape. [heads, 1, head_dim, d] out of a fused [heads, 3, ..] is one
 * piece for each head. */
static const gpiece *cut_runs(view *x, int from, int64_t n_piece, int64_t run)
{
    const gweight *v = &x->v;
    gpiece *piece = ARENA_ARRAY(x->b->s->a, gpiece, (size_t)n_piece);
    for (int64_t i = 0; i < n_piece; i++) {
        int64_t offset = v->piece[0].offset, left = i;
        for (int k = from - 1; k >= 0; k--) {
            offset += left % v->dim[k] * v->stride[k];
            left /= v->dim[k];
        }
        piece[i] = (gpiece){v->piece[0].tensor, offset, run};
    }
    return piece;
}

/* Of a view in several pieces, each of which is one run: the same pieces, with rows of the new shape. */
static const gpiece *keep_runs(view *x, int64_t row_elems)
{
    const gweight *v = &x->v;
    gpiece *piece = ARENA_ARRAY(x->b->s->a, gpiece, (size_t)v->n_piece);
    int64_t inner = 1;
    bool fits = is_run(v, 1);
    for (int i = 1; i < v->rank; i++)
        inner *= v->dim[i];
    for (int i = 0; i < v->n_piece && fits; i++) {
        int64_t elems = v->piece[i].rows * inner;
        piece[i] = (gpiece){v->piece[i].tensor, v->piece[i].offset, elems / row_elems};
        fits = elems % row_elems == 0 && (v->piece[i].rows == 1 || is_run(v, 0));
    }
    return fits ? piece : NULL;
}

static void view_reshape(view *x, const ast *n)
{
    const ast *args = n->kid[TRANSFORM_ARGUMENTS];
    int64_t have = 1, want = 1, n_piece = 1;
    int rank = (int)args->n_kid - x->bias, from = 0; /* a bias has no input axis */
    gweight *v = &x->v;
    for (int i = 0; i < v->rank; i++)
        have *= v->dim[i];
    int64_t dim[GRAPH_RANK_MAX] = {0};
    for (int i = 0; i < rank && i < GRAPH_RANK_MAX; i++) {
        if (!int_arg(x, n, (uint32_t)i, &dim[i]))
            return;
        if (dim[i] < 1 || __builtin_mul_overflow(want, dim[i], &want)) {
            view_fail(x, W0504, n, "the new shape is not a shape");
            return;
        }
    }
    if (rank < 1 || rank > GRAPH_RANK_MAX || have != want) {
        view_fail(x, W0504, n, "the new shape has other elements");
        return;
    }
    const gpiece *piece = NULL;
    int64_t row_elems = want / dim[0];
    if (v->n_piece > 1) {
        n_piece = v->n_piece;
        piece = keep_runs(x, row_elems);
    } else {
        for (; from < v->rank && !is_run(v, from); from++)
            n_piece *= v->dim[from]; /* below `have`, which does not overflow */
        if (n_piece <= PIECES_MAX && have / n_piece % row_elems == 0 &&
            sema_step(x->b->s, n->loc, n_piece / 16))
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
    gweight *v = &x->v;
    int a = v->rank - 2, b = v->rank - 1;
    if (x->bias)
        return;
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
        gpiece *piece = ARENA_NEW(x->b->s->a, gpiece);
        *piece = (gpiece){v->piece[0].tensor, v->piece[0].offset, v->dim[0]};
        v->piece = piece;
    }
}

/* The rows stay; what is known of their order goes with the weight. */
pair_order transform_order(sema *s, const ast *n)
{
    str word = STR("half");
    const ast *order = n->kid[TRANSFORM_ARGUMENTS]->kid[0]->kid[ARG_VALUE];
    sema_word(s, order, "half interleaved", &word); /* which was checked without a checkpoint */
    return str_eqz(word, "half") ? PAIRS_HALF : PAIRS_INTERLEAVED;
}

static void view_pairs(view *x, const ast *n)
{
    const ast *args = n->kid[TRANSFORM_ARGUMENTS];
    tensor_type *t = &x->w->stored;
    origin o = x->b->from;
    uint32_t last = args->n_kid > 2 ? 2 : 1;
    t->pairs[o] = transform_order(x->b->s, n);
    x->v.pairs = (int)t->pairs[o];
    t->run[o] = sema_int(x->b->s, args->kid[1]->kid[ARG_VALUE], "an argument");
    t->turned[o] = sema_int(x->b->s, args->kid[last]->kid[ARG_VALUE], "an argument");
}

static void view_rows(view *x, const ast *n)
{
    view_slice(x, n, x->v.rank - (x->bias || x->v.rank == 1 ? 1 : 2), 0);
}

static void view_take(view *x, const ast *n)
{
    int64_t axis;
    if (int_arg(x, n, 0, &axis))
        view_slice(x, n, axis, 1);
}

/* ---- other: the name in the other format ---- */

static int64_t int_or(sema *s, const ast *n, uint32_t i, int64_t absent)
{
    const ast *args = n->kid[TRANSFORM_ARGUMENTS];
    int64_t x;
    const poly *p =
        i < args->n_kid ? sema_int(s, args->kid[i]->kid[ARG_VALUE], "an argument") : NULL;
    return p && poly_value(p, &x) ? x : absent;
}

static bool other_pairs(other_view *x, const ast *n)
{
    x->rows_allowed = false;
    x->out.pairs = (int)transform_order(x->b->s, n);
    x->out.run = int_or(x->b->s, n, 1, 0);
    x->out.turned = int_or(x->b->s, n, 2, x->out.run);
    return true;
}

static bool other_rows(other_view *x, const ast *n)
{
    if (!x->rows_allowed || n->kid[TRANSFORM_ARGUMENTS]->n_kid != 2)
        return false;
    x->rows_allowed = false;
    x->out.first = int_or(x->b->s, n, 0, 0);
    if (!i64_sub(int_or(x->b->s, n, 1, 0), x->out.first, &x->out.rows))
        x->out.rows = 0;
    return true;
}

static bool other_raw(other_view *x, const ast *n)
{
    (void)n;
    return x->raw = true;
}

/* ---- the table ---- */

/* No trace or view: nothing changes there (join, raw and mxfp4 choose the tensors). No other: a tensor that
 * was stored so is not the weight itself. */
static const struct {
    void (*trace)(const transform_call *c, shape_trace *t);
    void (*view)(view *x, const ast *n);
    bool (*other)(other_view *x, const ast *n);
} effects[TRANSFORM_COUNT] = {
    /* clang-format off */
    [TRANSFORM_pairs]     = {trace_pairs,     view_pairs,     other_pairs},
    [TRANSFORM_rows]      = {trace_rows,      view_rows,      other_rows},
    [TRANSFORM_take]      = {trace_take,      view_take,      NULL},
    [TRANSFORM_reshape]   = {trace_reshape,   view_reshape,   NULL},
    [TRANSFORM_join]      = {trace_join,      NULL,           NULL},
    [TRANSFORM_transpose] = {trace_transpose, view_transpose, NULL},
    [TRANSFORM_raw]       = {NULL,            NULL,           other_raw},
    [TRANSFORM_mxfp4]     = {NULL,            NULL,           NULL},
    /* clang-format on */
};

bool transform_trace(sema *s, weight *w, const ast *n, origin o, shape_trace *t)
{
    transform_call c = {
        .s = s, .n = n, .row = transform_find(n->name), .stored = &w->stored, .o = o};
    if (!c.row) {
        int n_row;
        const transform_row *rows = transform_rows(&n_row);
        weft_fail(s->dg, W0203, n->name_loc, "unknown transform `" STR_FMT "`", STR_ARG(n->name));
        SUGGEST_ROW(s->dg, n->name, rows, n_row);
        return false;
    }
    if (!transform_arity(s, n, c.row, &c.arg, &c.n_arg)) {
        *t = shape_unknown;
        return false;
    }
    if (effects[c.row->code].trace)
        effects[c.row->code].trace(&c, t);
    return true;
}

void transform_view(view *x, const ast *n)
{
    transform_code code = transform_find(n->name)->code;
    if (effects[code].view)
        effects[code].view(x, n);
}

bool transform_other(other_view *x, const ast *n)
{
    const transform_row *row = n->kind == AST_TRANSFORM ? transform_find(n->name) : NULL;
    return row && effects[row->code].other && effects[row->code].other(x, n);
}

const ast *transform_in(const ast *key, transform_code code)
{
    for (uint32_t i = 0; i < key->n_kid; i++) {
        const transform_row *row =
            key->kid[i]->kind == AST_TRANSFORM ? transform_find(key->kid[i]->name) : NULL;
        if (row && row->code == code)
            return key->kid[i];
    }
    return NULL;
}
