/* graph_samples.h - graphs for the suites of compiler/graph*.c: a Llama of any depth, and random ones. */
#ifndef WEFT_TESTS_COMPILER_GRAPH_SAMPLES_H
#define WEFT_TESTS_COMPILER_GRAPH_SAMPLES_H

#include "compiler/graph.h"
#include "tests/base/suite.h"
#include <math.h>

#define REF(k, i) ((gref){.kind = REF_##k, .id = (i)})
#define NUMBER(x) ((gref){.kind = REF_NUMBER, .number = (x)})

/* f[dims..]; the list ends with 0 */
static inline gtype float_type(const int64_t *dim)
{
    gtype t = {.cell = -1};
    for (; dim[t.rank]; t.rank++)
        t.dim[t.rank] = dim[t.rank];
    return t;
}
#define F(...) float_type((const int64_t[]){__VA_ARGS__, 0})

static inline int add_input(graph *g, const char *name, gtype t, bool ids)
{
    t.ids = ids;
    ginput in = {.name = arena_str(g->a, str_of(name)), .type = t};
    VEC_PUSH(&g->inputs, in);
    return (int)g->inputs.n - 1;
}

static inline int add_weight(graph *g, str name, int layer, gtype t)
{
    gweight w = {.name = name, .layer = layer, .type = DT_F32, .rank = t.rank, .n_piece = 1};
    w.line = name;
    for (size_t i = 0; i < name.n; i++)
        if (name.p[i] == '.')
            w.line = (str){name.p + i + 1, name.n - i - 1};
    memcpy(w.dim, t.dim, sizeof w.dim);
    int64_t stride = 4;
    for (int i = t.rank - 1; i >= 0; i--, stride *= t.dim[i + 1])
        w.stride[i] = stride;
    gpiece *p = ARENA_NEW(g->a, gpiece);
    *p = (gpiece){.tensor = (int)g->weights.n, .rows = t.rank ? t.dim[0] : 1};
    w.piece = p;
    VEC_PUSH(&g->weights, w);
    return (int)g->weights.n - 1;
}

static inline int layer_weight(graph *g, int layer, const char *line, gtype t)
{
    return add_weight(g, arena_printf(g->a, "blk[%d].%s", layer, line), layer, t);
}

static inline int add_op(graph *g, op_code op, int layer, gtype t, int n_in, const gref *in)
{
    gnode n = {.op = op, .layer = layer, .n_in = n_in};
    for (int i = 0; i < n_in; i++)
        n.in[i] = in[i];
    if (op == OP_rms_norm)
        n.attr[0] = (gattr){.kind = GATTR_FLOAT, .number = 1e-5};
    if (op == OP_attend)
        n.attr[0] = (gattr){.kind = GATTR_FLOAT, .number = 0.125};
    if (op == OP_rope)
        n.attr[0] = (gattr){.kind = GATTR_WORD, .word = STR("half")};
    return graph_add(g, &n, &t, 1);
}
#define OP_ADD(g, op, layer, type, ...)                                                            \
    add_op(g, OP_##op, layer, type, (int)COUNT_OF(((const gref[]){__VA_ARGS__})),                  \
           (const gref[]){__VA_ARGS__})

/* A Llama, d = 8, 2 heads over 1, with a window on odd layers if `alternate`. */
static inline graph *sample_llama(int layers, bool alternate)
{
    graph *g = graph_create();
    g->model = STR("llama");
    g->entry = STR("decode");
    int tokens = add_input(g, "tokens", F(GRAPH_T), true);
    int pos = add_input(g, "pos", F(GRAPH_T), true);
    int rows = add_input(g, "rows", F(GRAPH_R), true);
    static const double freqs[] = {1.0, 0.125};
    gconst table = {.n = 2, .data = freqs, .table = true, .factor = 1};
    VEC_PUSH(&g->consts, table);
    int embd = add_weight(g, STR("tok_embd"), -1, F(16, 8));
    gtype row = F(GRAPH_T, 8), q_heads = F(GRAPH_T, 2, 4), k_heads = F(GRAPH_T, 1, 4);
    int x = OP_ADD(g, embed, -1, row, REF(WEIGHT, embd), REF(INPUT, tokens));
    for (int l = 0; l < layers; l++) {
        gcell cell = {
            .kind = CELL_kv_cache, .arg = {1, 4, 4}, .window = alternate && l % 2 ? 64 : 0};
        cell.name = arena_printf(g->a, "kv[%d]", l);
        VEC_PUSH(&g->cells, cell);
        gtype kv = {.cell = l};
        int norm = layer_weight(g, l, "attn_norm", F(8));
        int q_proj = layer_weight(g, l, "q_proj", F(8, 8));
        int k_proj = layer_weight(g, l, "k_proj", F(4, 8));
        int v_proj = layer_weight(g, l, "v_proj", F(4, 8));
        int o_proj = layer_weight(g, l, "o_proj", F(8, 8));
        int up = layer_weight(g, l, "up_proj", F(24, 8));
        int down = layer_weight(g, l, "down_proj", F(8, 24));
        int h = OP_ADD(g, rms_norm, l, row, REF(VALUE, x), REF(WEIGHT, norm));
        int q = OP_ADD(g, linear, l, row, REF(VALUE, h), REF(WEIGHT, q_proj), REF(NONE, 0));
        q = OP_ADD(g, to_heads, l, q_heads, REF(VALUE, q), NUMBER(2));
        q = OP_ADD(g, rope, l, q_heads, REF(VALUE, q), REF(INPUT, pos), REF(CONST, 0));
        int k = OP_ADD(g, linear, l, F(GRAPH_T, 4), REF(VALUE, h), REF(WEIGHT, k_proj));
        k = OP_ADD(g, to_heads, l, k_heads, REF(VALUE, k), NUMBER(1));
        k = OP_ADD(g, rope, l, k_heads, REF(VALUE, k), REF(INPUT, pos), REF(CONST, 0));
        int v = OP_ADD(g, linear, l, F(GRAPH_T, 4), REF(VALUE, h), REF(WEIGHT, v_proj));
        v = OP_ADD(g, to_heads, l, k_heads, REF(VALUE, v), NUMBER(1));
        int c = OP_ADD(g, append, l, kv, REF(CELL, l), REF(VALUE, k), REF(VALUE, v));
        int a = OP_ADD(g, attend, l, q_heads, REF(VALUE, q), REF(VALUE, c));
        if (cell.window) {
            gattr window = {.kind = GATTR_INT, .integer = cell.window};
            g->nodes.at[g->nodes.n - 1].attr[1] = window;
        }
        a = OP_ADD(g, from_heads, l, row, REF(VALUE, a));
        a = OP_ADD(g, linear, l, row, REF(VALUE, a), REF(WEIGHT, o_proj));
        x = OP_ADD(g, add, l, row, REF(VALUE, x), REF(VALUE, a));
        h = OP_ADD(g, linear, l, F(GRAPH_T, 24), REF(VALUE, x), REF(WEIGHT, up));
        h = OP_ADD(g, silu, l, F(GRAPH_T, 24), REF(VALUE, h));
        h = OP_ADD(g, linear, l, row, REF(VALUE, h), REF(WEIGHT, down));
        x = OP_ADD(g, add, l, row, REF(VALUE, x), REF(VALUE, h));
        goutput resid = {.name = STR("resid"), .index = l, .value = x};
        VEC_PUSH(&g->outputs, resid);
    }
    int head = OP_ADD(g, linear, -1, F(GRAPH_T, 16), REF(VALUE, x), REF(WEIGHT, embd));
    head = OP_ADD(g, take_rows, -1, F(GRAPH_R, 16), REF(VALUE, head), REF(INPUT, rows));
    goutput logits = {.name = STR("logits"), .index = -1, .value = head};
    VEC_PUSH(&g->outputs, logits);
    return g;
}

/* ---- random graphs ---- */

typedef struct {
    uint64_t state;
} dice;

static inline uint64_t roll(dice *d, uint64_t n)
{
    d->state = d->state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (d->state >> 33) % n;
}

static inline str random_name(graph *g, dice *d, const char *stem, int i)
{
    static const struct {
        const char *before, *after;
    } shapes[] = {
        {"", ""},     {"", "]"},    {"", "[7].a"},      {"", " "}, {"", ".\"\\"},
        {"\x01", ""}, {"\xff", ""}, {"\xC3\xA9", "\n"}, {"", ";"},
    };
    size_t k = (size_t)roll(d, COUNT_OF(shapes));
    strbuf b = {0};
    strbuf_add(&b, "%s%s%d%s", shapes[k].before, stem, i, shapes[k].after);
    str name = arena_str(g->a, strbuf_view(&b));
    strbuf_free(&b);
    return name;
}

static inline double random_number(dice *d)
{
    static const double odd[] = {
        0.0, -0.0,  INFINITY, -INFINITY,         NAN, 5e-324, 1.7976931348623157e308, 1.0 / 3,
        0.1, -1e-7, 1e22,     9007199254740993.0};
    if (roll(d, 3) == 0)
        return odd[roll(d, COUNT_OF(odd))];
    return (double)roll(d, UINT32_MAX) / 7.0 * (roll(d, 2) ? 1e-9 : -1e3);
}

/* An attribute's number is in its range. */
static inline double number_in(attr_range range, dice *d)
{
    double x = random_number(d);
    return range_refuses(range, x) ? 1 : x;
}

static inline weft_loc random_loc(graph *g, dice *d, source *const *src)
{
    (void)g;
    if (roll(d, 4) == 0)
        return WEFT_NOWHERE;
    source *s = src[roll(d, 3)];
    uint32_t at = (uint32_t)roll(d, s->text.n + 1);
    return (weft_loc){s, at, at};
}

static inline void random_weight(graph *g, dice *d, int i, source *const *src)
{
    gweight w = {.name = random_name(g, d, "w", i), .layer = (int)roll(d, 3) - 1, .type = DT_Q8_0};
    w.line = roll(d, 2) ? STR("line") : random_name(g, d, "line", i);
    w.loc = random_loc(g, d, src);
    w.rank = 2;
    w.dim[0] = 6;
    w.dim[1] = 32;
    w.stride[0] = roll(d, 2) ? 34 : 99;
    w.pairs = (int)roll(d, 3);
    w.lora = roll(d, 2);
    if (w.lora && roll(d, 3) == 0) {
        w.whole = random_name(g, d, "whole", i);
        w.whole_row = (int64_t)roll(d, 100);
    }
    if (roll(d, 4) == 0) {
        float *x = ARENA_ARRAY(g->a, float, 6 * 32);
        for (int k = 0; k < 6 * 32; k++)
            x[k] = (float)random_number(d);
        w.type = DT_F32;
        w.computed = x;
    }
    w.n_piece = (int)roll(d, 4);
    gpiece *p = ARENA_ARRAY(g->a, gpiece, 4), *scales = ARENA_ARRAY(g->a, gpiece, 4);
    int64_t left = 6;
    for (int k = 0; k < w.n_piece; k++) {
        int64_t rows = k + 1 < w.n_piece ? (int64_t)roll(d, (uint64_t)left) : left;
        left -= rows;
        p[k] = (gpiece){(int)roll(d, 1000), (int64_t)roll(d, 2) << 40, rows};
        scales[k] = (gpiece){(int)roll(d, 1000), 0, rows};
    }
    w.piece = w.n_piece ? p : NULL;
    w.scales = w.n_piece && roll(d, 3) == 0 ? scales : NULL;
    VEC_PUSH(&g->weights, w);
}

/* What passes would leave: maps of one node each, and one linear that is a chain. */
static inline void random_marks(graph *g, dice *d)
{
    gtype row = F(GRAPH_T, 32), out = F(GRAPH_T, 6);
    int w = add_weight(g, random_name(g, d, "chain", 0), -1, F(6, 32));
    int x = OP_ADD(g, layer_norm, -1, row, REF(VALUE, 0));
    g->nodes.at[x].attr[0] = (gattr){.kind = GATTR_FLOAT, .number = 1};
    g->nodes.at[x].chain = 1 + (int)roll(d, 9);
    g->nodes.at[x].recompute = true;
    int y = OP_ADD(g, linear, -1, out, REF(VALUE, x), REF(WEIGHT, w));
    g->nodes.at[y].chain = g->nodes.at[x].chain;
    for (size_t i = 0; i < g->nodes.n; i++) {
        gnode *n = &g->nodes.at[i];
        if (n->op == OP_append && n->n_in > 2 && n->in[2].kind == REF_VALUE && roll(d, 2))
            n->values = g->nodes.at[x].chain;
    }
    for (int i = 0; i < (int)g->nodes.n; i++)
        if (op_row_of(g->nodes.at[i].op)->fuses == FUSE_ELEMENTWISE && roll(d, 2))
            g->nodes.at[i].map = 1 + i * (1 + (int)roll(d, 1000));
    for (size_t i = 0; i < g->nodes.n; i++) /* some numbers meet: leave those out */
        for (size_t k = 0; k < i; k++)
            if (g->nodes.at[i].map == g->nodes.at[k].map)
                g->nodes.at[i].map = 0;
}

static inline void random_node(graph *g, dice *d, source *const *src)
{
    gtype row = F(GRAPH_T, 32);
    gref x = REF(VALUE, (int)roll(d, g->values.n)), y = REF(VALUE, (int)roll(d, g->values.n));
    gnode n = {.op = OP_add, .layer = (int)roll(d, 4) - 1, .loc = random_loc(g, d, src), .n_in = 2};
    n.in[0] = x;
    n.in[1] = roll(d, 2) ? y : NUMBER(random_number(d));
    gtype out[4] = {row, row, row, row};
    int n_out = 1;
    switch (roll(d, 6)) {
    case 0:
        n.op = OP_gelu;
        n.n_in = 1;
        if (roll(d, 2))
            n.attr[0] = (gattr){.kind = GATTR_WORD, .word = STR("tanh")};
        break;
    case 1:
        n.op = OP_clamp;
        n.n_in = 1;
        for (int i = 0; i < 2; i++)
            if (roll(d, 2))
                n.attr[i] = (gattr){.kind = GATTR_FLOAT, .number = number_in(RANGE_NUMBER, d)};
        break;
    case 2:
        n.op = OP_layer_norm;
        n.n_in = 3;
        n.in[1] = REF(NONE, 0);
        n.in[2] = roll(d, 2) ? REF(CONST, 0) : REF(NONE, 0);
        n.attr[0] = (gattr){.kind = GATTR_FLOAT, .number = number_in(RANGE_FROM_0, d)};
        break;
    case 3:
        n.op = OP_mul;
        n.in[0] = NUMBER(random_number(d));
        n.in[1] = y;
        break;
    case 4:
        n.op = OP_select;
        n.n_in = 3;
        n.in[2] = REF(INPUT, 0);
        break;
    default:
        break;
    }
    for (int i = 0; i < n_out; i++)
        out[i].pairs = (int)roll(d, 3);
    graph_add(g, &n, out, n_out);
}

static inline graph *sample_random(uint64_t seed)
{
    dice d = {seed * 2 + 1};
    graph *g = graph_create();
    g->model = random_name(g, &d, "model", 0);
    g->entry = random_name(g, &d, "entry", 0);
    source *src[] = {
        source_from_text(g->a, "a/m.weft", STR("one\ntwo\r\n\n\xC3\xA9\xC3\xA9 three")),
        source_from_text(g->a, "b/m.weft", STR("")),
        source_from_text(g->a, "odd \"name\n", STR("x\ny")),
    };
    ginput in = {.name = random_name(g, &d, "in", 0), .type = F(GRAPH_T, 32)};
    VEC_PUSH(&g->inputs, in);
    double *data = ARENA_ARRAY(g->a, double, 32);
    for (int i = 0; i < 32; i++)
        data[i] = random_number(&d);
    gconst c = {.n = 32, .data = data, .factor = roll(&d, 2) ? 0 : random_number(&d)};
    VEC_PUSH(&g->consts, c);
    for (int i = 0, n = (int)roll(&d, 5); i < n; i++)
        random_weight(g, &d, i, src);
    for (int i = 0, n = (int)roll(&d, 3); i < n; i++) {
        gcell cell = {.name = random_name(g, &d, "cell", i), .loc = random_loc(g, &d, src)};
        cell.kind = (cell_code)roll(&d, CELL_KIND_COUNT);
        cell.arg[0] = (int64_t)roll(&d, 9);
        cell.arg[1] = (int64_t)roll(&d, 9);
        cell.window = (int64_t)roll(&d, 2) * 77;
        cell.layout = (cell_layout)roll(&d, CELL_RING + 1);
        cell.keep = cell.layout == CELL_RING ? (int64_t)roll(&d, 5000) : 0;
        VEC_PUSH(&g->cells, cell);
    }
    OP_ADD(g, neg, -1, F(GRAPH_T, 32), REF(INPUT, 0));
    for (int i = 0, n = (int)roll(&d, 30); i < n; i++)
        random_node(g, &d, src);
    if (roll(&d, 2))
        random_marks(g, &d);
    for (int i = 0, n = (int)roll(&d, 3); i < n; i++) {
        goutput o = {.name = random_name(g, &d, "out", i), .index = (int)roll(&d, 3) - 1};
        o.value = (int)roll(&d, g->values.n);
        o.loc = random_loc(g, &d, src);
        VEC_PUSH(&g->outputs, o);
    }
    return g;
}

/* ---- reading ---- */

/* The graph in text, or NULL; dg holds why not. */
static inline graph *graph_from(weft_diag *dg, arena *a, str text)
{
    graph *g = NULL;
    const source *src = source_from_text(a, "test.graph", text);
    weft_status st = graph_parse(dg, src, &g);
    ck_assert_int_eq(st == WEFT_OK, diag_errors(dg) == 0);
    return st == WEFT_OK ? g : NULL;
}

#endif
