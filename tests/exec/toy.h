/* toy.h - a tiny random model of two layers: its GGUF file, its graph made by hand, and a forward pass
 * in plain double loops that shares no code with the executor.
 *
 * It is built to need every way a weight can come into memory: in place, every second row, joined,
 * transposed, stepped, experts stored apart and together, converted to f32, computed; and two layers
 * that differ: one fused and dense, one with a window and experts. */
#ifndef WEFT_TESTS_EXEC_TOY_H
#define WEFT_TESTS_EXEC_TOY_H

#include "compiler/plan_make.h"
#include "kernels/ref/dequant.h"
#include "runtime/exec/session.h"
#include "runtime/formats/gguf_write.h"
#include "runtime/formats/model_file.h"
#include "tests/base/suite.h"
#include <math.h>

enum {
    VOCAB = 29,
    D = 32,
    HEADS = 4,
    KV = 2,
    HD = 6,
    PAIRS = 2,
    FF = 20,
    EXPERTS = 3,
    TOP = 2,
    WINDOW = 5,
    TEMP_N = 7, /* length of the vector that scales q by position */
    Q = HEADS * HD,
    K = KV * HD,
    TOY_TENSORS = 32,
    TOY_TOKENS = 24,
};

static const double toy_eps = 1e-5, toy_factor = 1.25, toy_softcap = 3.0;
static const double toy_freqs[PAIRS] = {1.0, 0.0625};

/* The weights as the graph sees them. */
typedef struct {
    float embd[VOCAB * D], out_norm[D];
    float attn_norm[2][D], ffn_norm[2][D];
    float q[2][Q * D], k[2][K * D], v[2][K * D], o[2][D * Q];
    float q_bias[Q], sinks[HEADS], scale[D];
    float gate[FF * D], up[FF * D], down[D * FF]; /* layer 0 */
    float router[EXPERTS * D];                    /* layer 1, from here */
    float exp_up[EXPERTS * FF * D], exp_down[EXPERTS * D * FF], exp_bias[EXPERTS * D];
    double temp[TEMP_N]; /* of position */
} toy_weights;

typedef struct {
    temp_dir dir;
    temp_path path;
    weft_diag *dg;
    model_file *mf;
    graph *g;
    arena *a;
    plan *p;
    toy_weights w;
    gguf_writer *writer;
    void *data[TOY_TENSORS];
    int n_data;
    uint32_t seed;
    gpiece pieces[TOY_TENSORS][EXPERTS];
    int n_pieces;
} toy;

/* ---- random weights and their storage ---- */

static inline double toy_random(toy *t) /* -1 to 1 */
{
    t->seed = t->seed * 1664525u + 1013904223u;
    return (double)(t->seed >> 8) / 8388608.0 - 1.0;
}

static inline float toy_rounded(dtype type, double x)
{
    switch (type) {
    case DT_F16:
        return f16_to_f32(f32_to_f16((float)x));
    case DT_BF16:
        return bf16_to_f32(f32_to_bf16((float)x));
    case DT_Q8_0:
        return (float)(round(x * 64) / 64); /* the scale below */
    default:
        return (float)x;
    }
}

static inline void toy_fill(toy *t, dtype type, float *to, int n, double size)
{
    for (int i = 0; i < n; i++)
        to[i] = toy_rounded(type, toy_random(t) * size);
}

/* Store n numbers, already rounded to the type, under a name. */
static inline void toy_store(toy *t, const char *name, dtype type, int rank, const int64_t *shape,
                             const float *from)
{
    int64_t n = 1;
    size_t bytes;
    for (int i = 0; i < rank; i++)
        n *= shape[i];
    ck_assert(dtype_bytes(type, n, &bytes));
    uint8_t *to = malloc(bytes);
    t->data[t->n_data++] = to;
    for (int64_t i = 0; i < n; i++) {
        uint16_t h = type == DT_F16 ? f32_to_f16(from[i]) : f32_to_bf16(from[i]);
        if (type == DT_F32) {
            memcpy(to + 4 * i, &from[i], 4);
        } else if (type == DT_Q8_0) {
            uint16_t scale = f32_to_f16(1.0f / 64);
            memcpy(to + i / 32 * 34, &scale, 2);
            to[i / 32 * 34 + 2 + i % 32] = (uint8_t)(int8_t)lround(from[i] * 64.0);
        } else {
            memcpy(to + 2 * i, &h, 2);
        }
    }
    gguf_writer_tensor_data(t->writer, str_of(name), type, rank, shape, to);
}

#define SHAPE(...)                                                                                 \
    (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (int64_t[])                         \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }

static inline void toy_write_file(toy *t)
{
    toy_weights *w = &t->w;
    float mixed[2 * Q * D], turned[Q * D];
    t->writer = gguf_writer_create();
    gguf_writer_key(t->writer, STR("general.architecture"), value_of_str(STR("toy")));
    toy_fill(t, DT_Q8_0, w->embd, VOCAB * D, 1);
    toy_store(t, "embd", DT_Q8_0, SHAPE(VOCAB, D), w->embd);
    toy_fill(t, DT_F32, w->out_norm, D, 1); /* computed: in no file */
    for (int l = 0; l < 2; l++) {
        char name[32];
        toy_fill(t, DT_F32, w->attn_norm[l], D, 1);
        toy_fill(t, DT_F16, w->ffn_norm[l], D, 1);
        toy_fill(t, DT_F16, w->q[l], Q * D, 0.5);
        toy_fill(t, DT_F16, w->k[l], K * D, 0.5);
        toy_fill(t, DT_F16, w->v[l], K * D, 0.5);
        toy_fill(t, DT_BF16, w->o[l], D * Q, 0.5);
        snprintf(name, sizeof name, "attn_norm.%d", l);
        toy_store(t, arena_printf(t->a, "%s", name).p, DT_F32, SHAPE(D), w->attn_norm[l]);
        toy_store(t, arena_printf(t->a, "ffn_norm.%d", l).p, DT_F16, SHAPE(D), w->ffn_norm[l]);
        for (int i = 0; i < D; i++) /* o is stored [in, out] */
            for (int j = 0; j < Q; j++)
                turned[j * D + i] = w->o[l][i * Q + j];
        toy_store(t, arena_printf(t->a, "o.%d", l).p, DT_BF16, SHAPE(Q, D), turned);
    }
    /* Layer 0: q, k, v apart, to be joined. Layer 1: one tensor, to be cut. */
    toy_store(t, "q.0", DT_F16, SHAPE(Q, D), w->q[0]);
    toy_store(t, "k.0", DT_F16, SHAPE(K, D), w->k[0]);
    toy_store(t, "v.0", DT_F16, SHAPE(K, D), w->v[0]);
    memcpy(mixed, w->q[1], sizeof w->q[1]);
    memcpy(mixed + Q * D, w->k[1], sizeof w->k[1]);
    memcpy(mixed + (Q + K) * D, w->v[1], sizeof w->v[1]);
    toy_store(t, "qkv.1", DT_F16, SHAPE(Q + 2 * K, D), mixed);
    /* Every second element of the stored bias is wanted, every other row of gate and up. */
    toy_fill(t, DT_F16, w->q_bias, Q, 0.5);
    for (int i = 0; i < 2 * Q; i++)
        mixed[i] = i % 2 ? w->q_bias[i / 2] : 99;
    toy_store(t, "q_bias", DT_F16, SHAPE(2 * Q), mixed);
    toy_fill(t, DT_F16, w->sinks, HEADS, 1);
    toy_store(t, "sinks", DT_F16, SHAPE(HEADS), w->sinks);
    toy_fill(t, DT_BF16, w->scale, D, 1);
    toy_store(t, "scale", DT_BF16, SHAPE(D), w->scale);
    toy_fill(t, DT_F32, w->gate, FF * D, 0.5);
    toy_fill(t, DT_F32, w->up, FF * D, 0.5);
    toy_fill(t, DT_F32, w->down, D * FF, 0.5);
    for (int i = 0; i < FF; i++) {
        memcpy(mixed + 2 * i * D, w->gate + i * D, D * sizeof(float));
        memcpy(mixed + (2 * i + 1) * D, w->up + i * D, D * sizeof(float));
    }
    toy_store(t, "gate_up", DT_F32, SHAPE(2 * FF, D), mixed);
    toy_store(t, "down", DT_F32, SHAPE(D, FF), w->down);
    toy_fill(t, DT_F32, w->router, EXPERTS * D, 1);
    toy_store(t, "router", DT_F32, SHAPE(EXPERTS, D), w->router);
    toy_fill(t, DT_Q8_0, w->exp_up, EXPERTS * FF * D, 0.5);
    for (int e = 0; e < EXPERTS; e++)
        toy_store(t, arena_printf(t->a, "exp_up.%d", e).p, DT_Q8_0, SHAPE(FF, D),
                  w->exp_up + e * FF * D);
    toy_fill(t, DT_F16, w->exp_down, EXPERTS * D * FF, 0.5);
    toy_store(t, "exp_down", DT_F16, SHAPE(EXPERTS, D, FF), w->exp_down);
    toy_fill(t, DT_F16, w->exp_bias, EXPERTS * D, 0.5);
    toy_store(t, "exp_bias", DT_F16, SHAPE(EXPERTS, D), w->exp_bias);
    for (int i = 0; i < TEMP_N; i++)
        w->temp[i] = 1 + 0.1 * i;
    ck_assert_int_eq(gguf_writer_write(t->dg, t->writer, t->path.path), WEFT_OK);
    gguf_writer_destroy(t->writer);
    for (int i = 0; i < t->n_data; i++)
        free(t->data[i]);
}

/* ---- the graph ---- */

static inline int toy_tensor(const toy *t, const char *name)
{
    for (size_t i = 0; i < model_file_tensor_count(t->mf); i++)
        if (str_eqz(model_file_tensor_at(t->mf, i)->name, name))
            return (int)i;
    ck_abort_msg("no tensor %s", name);
    return -1;
}

/* A weight whose axis 0 begins in `tensor` at a byte offset; strides follow from the shape. */
static inline gref toy_weight(toy *t, const char *name, const char *tensor, int64_t offset,
                              dtype type, int rank, const int64_t *shape)
{
    gweight w = {
        .name = str_of(name), .line = str_of(name), .layer = -1, .type = type, .rank = rank};
    const dtype_row *row = dtype_row_of(type);
    int64_t stride = row->elems > 1 ? 0 : (int64_t)row->bytes;
    for (int i = rank - 1; i >= 0; i--) {
        w.dim[i] = shape[i];
        w.stride[i] = stride;
        stride = i == rank - 1 ? shape[i] / row->elems * (int64_t)row->bytes : stride * shape[i];
    }
    gpiece *p = t->pieces[t->n_pieces++];
    p[0] = (gpiece){.tensor = toy_tensor(t, tensor), .offset = offset, .rows = shape[0]};
    w.n_piece = 1;
    w.piece = p;
    VEC_PUSH(&t->g->weights, w);
    return (gref){.kind = REF_WEIGHT, .id = (int)t->g->weights.n - 1};
}

static inline gweight *toy_last(toy *t)
{
    return &t->g->weights.at[t->g->weights.n - 1];
}

/* Make the last weight the join of three tensors. */
static inline void toy_join(toy *t, const char *b, const char *c, int64_t rows_a, int64_t rows_b,
                            int64_t rows_c)
{
    gpiece *p = t->pieces[t->n_pieces - 1];
    p[0].rows = rows_a;
    p[1] = (gpiece){toy_tensor(t, b), 0, rows_b};
    p[2] = (gpiece){toy_tensor(t, c), 0, rows_c};
    toy_last(t)->n_piece = 3;
}

static inline gref toy_number(double x)
{
    return (gref){.kind = REF_NUMBER, .number = x};
}

static inline gtype toy_type(int rank, const int64_t *dim)
{
    gtype t = {.rank = rank, .cell = -1};
    for (int i = 0; i < rank; i++)
        t.dim[i] = dim[i];
    return t;
}

/* A node with one result; operands end with REF_NONE. */
#define NODE(t, op, type, ...) toy_node(t, OP_##op, type, (gref[]){__VA_ARGS__, {.kind = REF_NONE}})
#define TYPE(...) toy_type(SHAPE(__VA_ARGS__))

static inline gref toy_node(toy *t, op_code op, gtype type, const gref *in)
{
    gnode n = {.op = op, .layer = -1};
    while (in[n.n_in].kind != REF_NONE) {
        n.in[n.n_in] = in[n.n_in];
        n.n_in++;
    }
    return (gref){.kind = REF_VALUE, .id = graph_add(t->g, &n, &type, 1)};
}

static inline gattr *toy_attr(toy *t, const char *name)
{
    gnode *n = &t->g->nodes.at[t->g->nodes.n - 1];
    int count;
    const attr_row *rows = op_attrs(n->op, &count);
    for (int i = 0; i < count; i++)
        if (strcmp(rows[i].name, name) == 0)
            return &n->attr[i];
    ck_abort_msg("no attribute %s", name);
    return NULL;
}

static inline void toy_set(toy *t, const char *name, double x)
{
    *toy_attr(t, name) = (gattr){.kind = GATTR_FLOAT, .number = x};
}

static inline void toy_set_int(toy *t, const char *name, int64_t x)
{
    *toy_attr(t, name) = (gattr){.kind = GATTR_INT, .integer = x};
}

static inline gref toy_norm(toy *t, gref x, gref w)
{
    gref r = NODE(t, rms_norm, TYPE(GRAPH_T, D), x, w);
    toy_set(t, "eps", toy_eps);
    return r;
}

static inline gref toy_rope(toy *t, gref x, int64_t heads, gref pos, gref table)
{
    gref r = NODE(t, rope, TYPE(GRAPH_T, heads, HD), x, pos, table);
    *toy_attr(t, "pairs") = (gattr){.kind = GATTR_WORD, .word = STR("half")};
    return r;
}

static inline void toy_output(toy *t, const char *name, int index, gref from)
{
    goutput o = {.name = str_of(name), .index = index, .value = from.id};
    VEC_PUSH(&t->g->outputs, o);
}

static inline gref toy_input(toy *t, const char *name, int64_t dim)
{
    ginput in = {.name = str_of(name), .type = toy_type(1, &dim)};
    in.type.ids = true;
    VEC_PUSH(&t->g->inputs, in);
    return (gref){.kind = REF_INPUT, .id = (int)t->g->inputs.n - 1};
}

static inline gref toy_const(toy *t, int64_t n, const double *data, bool table)
{
    gconst c = {.n = n, .data = data, .table = table, .factor = table ? toy_factor : 0};
    VEC_PUSH(&t->g->consts, c);
    return (gref){.kind = REF_CONST, .id = (int)t->g->consts.n - 1};
}

static inline gref toy_cell(toy *t, const char *name, int64_t window)
{
    gcell c = {.name = str_of(name), .kind = CELL_kv_cache, .arg = {KV, HD, HD}, .window = window};
    VEC_PUSH(&t->g->cells, c);
    return (gref){.kind = REF_CELL, .id = (int)t->g->cells.n - 1};
}

/* Attention of layer l on its q, k, v rows, and the output projection. */
static inline gref toy_attend(toy *t, int l, gref q, gref k, gref v, gref pos, gref table)
{
    gref cell = toy_cell(t, l ? "kv[1]" : "kv[0]", l ? WINDOW : 0);
    gtype handle = {.cell = cell.id};
    q = NODE(t, to_heads, TYPE(GRAPH_T, HEADS, HD), q, toy_number(HEADS));
    k = NODE(t, to_heads, TYPE(GRAPH_T, KV, HD), k, toy_number(KV));
    v = NODE(t, to_heads, TYPE(GRAPH_T, KV, HD), v, toy_number(KV));
    q = toy_rope(t, q, HEADS, pos, table);
    k = toy_rope(t, k, KV, pos, table);
    if (l == 0) { /* q grows with its position */
        gref temp = NODE(t, at_pos, TYPE(GRAPH_T), toy_const(t, TEMP_N, t->w.temp, false), pos);
        q = NODE(t, mul, TYPE(GRAPH_T, HEADS, HD), q, temp);
    }
    cell = NODE(t, append, handle, cell, k, v);
    gref a = NODE(t, attend, TYPE(GRAPH_T, HEADS, HD), q, cell);
    toy_set(t, "scale", 0.4);
    if (l == 0) {
        toy_set(t, "softcap", toy_softcap);
    } else {
        gref sinks = toy_weight(t, "sinks", "sinks", 0, DT_F16, SHAPE(HEADS));
        toy_set_int(t, "window", WINDOW);
        *toy_attr(t, "sinks") = (gattr){.kind = GATTR_REF, .ref = sinks};
    }
    a = NODE(t, from_heads, TYPE(GRAPH_T, Q), a);
    gref o = toy_weight(t, l ? "o.1" : "o.0", l ? "o.1" : "o.0", 0, DT_BF16, SHAPE(D, Q));
    toy_last(t)->stride[0] = 2; /* stored [Q, D] */
    toy_last(t)->stride[1] = 2 * D;
    return NODE(t, linear, TYPE(GRAPH_T, D), a, o);
}

static inline gref toy_dense(toy *t, gref h)
{
    gref gate = toy_weight(t, "gate", "gate_up", 0, DT_F32, SHAPE(FF, D));
    toy_last(t)->stride[0] = 2 * D * 4;
    gref up = toy_weight(t, "up", "gate_up", D * 4, DT_F32, SHAPE(FF, D));
    toy_last(t)->stride[0] = 2 * D * 4;
    gref down = toy_weight(t, "down", "down", 0, DT_F32, SHAPE(D, FF));
    gref g = NODE(t, linear, TYPE(GRAPH_T, FF), h, gate);
    g = NODE(t, silu, TYPE(GRAPH_T, FF), g);
    gref u = NODE(t, linear, TYPE(GRAPH_T, FF), h, up);
    g = NODE(t, mul, TYPE(GRAPH_T, FF), g, u);
    return NODE(t, linear, TYPE(GRAPH_T, D), g, down);
}

static inline gref toy_experts(toy *t, gref h)
{
    gref router = toy_weight(t, "router", "router", 0, DT_F32, SHAPE(EXPERTS, D));
    gref up = toy_weight(t, "exp_up", "exp_up.0", 0, DT_Q8_0, SHAPE(EXPERTS, FF, D));
    toy_join(t, "exp_up.1", "exp_up.2", 1, 1, 1);
    gref down = toy_weight(t, "exp_down", "exp_down", 0, DT_F16, SHAPE(EXPERTS, D, FF));
    gref bias = toy_weight(t, "exp_bias", "exp_bias", 0, DT_F16, SHAPE(EXPERTS, D));
    gref logits = NODE(t, linear, TYPE(GRAPH_T, EXPERTS), h, router);
    gtype ids_w[2] = {TYPE(GRAPH_T, TOP), TYPE(GRAPH_T, TOP)};
    ids_w[0].ids = true;
    gnode n = {.op = OP_route, .layer = -1, .n_in = 1, .in = {logits}};
    gref ids = {.kind = REF_VALUE, .id = graph_add(t->g, &n, ids_w, 2)};
    gref w = {.kind = REF_VALUE, .id = ids.id + 1};
    toy_set_int(t, "k", TOP);
    *toy_attr(t, "renorm") = (gattr){.kind = GATTR_BOOL, .integer = 1};
    gref y = NODE(t, experts, TYPE(GRAPH_T, TOP, FF), h, up, ids);
    y = NODE(t, silu, TYPE(GRAPH_T, TOP, FF), y);
    y = NODE(t, experts, TYPE(GRAPH_T, TOP, D), y, down, ids, bias);
    return NODE(t, combine, TYPE(GRAPH_T, D), y, w);
}

static inline void toy_graph(toy *t)
{
    t->g = graph_create();
    t->g->model = STR("toy");
    t->g->entry = STR("decode");
    gref tokens = toy_input(t, "tokens", GRAPH_T), pos = toy_input(t, "pos", GRAPH_T);
    gref rows = toy_input(t, "rows", GRAPH_R);
    gref table = toy_const(t, PAIRS, toy_freqs, true);
    gref embd = toy_weight(t, "embd", "embd", 0, DT_Q8_0, SHAPE(VOCAB, D));
    gref x = NODE(t, embed, TYPE(GRAPH_T, D), embd, tokens);
    x = NODE(t, mul, TYPE(GRAPH_T, D), x, toy_number(1.5));
    for (int l = 0; l < 2; l++) {
        gref norm = toy_weight(t, l ? "attn_norm.1" : "attn_norm.0",
                               l ? "attn_norm.1" : "attn_norm.0", 0, DT_F32, SHAPE(D));
        gref h = toy_norm(t, x, norm), q, k, v;
        if (l == 0) {
            gref w = toy_weight(t, "qkv.0", "q.0", 0, DT_F16, SHAPE(Q + 2 * K, D));
            toy_join(t, "k.0", "v.0", Q, K, K);
            gref all = NODE(t, linear, TYPE(GRAPH_T, Q + 2 * K), h, w);
            gtype parts[3] = {TYPE(GRAPH_T, Q), TYPE(GRAPH_T, K), TYPE(GRAPH_T, K)};
            /* The sizes stand in the results' types. */
            gnode n = {.op = OP_split, .layer = 0, .n_in = 1, .in = {all}};
            q = k = v = (gref){.kind = REF_VALUE, .id = graph_add(t->g, &n, parts, 3)};
            k.id += 1;
            v.id += 2;
        } else {
            gref wq = toy_weight(t, "q.1", "qkv.1", 0, DT_F16, SHAPE(Q, D));
            gref wk = toy_weight(t, "k.1", "qkv.1", Q * D * 2, DT_F16, SHAPE(K, D));
            gref wv = toy_weight(t, "v.1", "qkv.1", (Q + K) * D * 2, DT_F16, SHAPE(K, D));
            gref bias = toy_weight(t, "q_bias", "q_bias", 2, DT_F16, SHAPE(Q));
            toy_last(t)->stride[0] = 4;
            q = NODE(t, linear, TYPE(GRAPH_T, Q), h, wq, bias);
            k = NODE(t, linear, TYPE(GRAPH_T, K), h, wk);
            v = NODE(t, linear, TYPE(GRAPH_T, K), h, wv);
        }
        x = NODE(t, add, TYPE(GRAPH_T, D), x, toy_attend(t, l, q, k, v, pos, table));
        gref ffn = toy_weight(t, l ? "ffn_norm.1" : "ffn_norm.0", l ? "ffn_norm.1" : "ffn_norm.0",
                              0, DT_F16, SHAPE(D));
        h = toy_norm(t, x, ffn);
        x = NODE(t, add, TYPE(GRAPH_T, D), x, l ? toy_experts(t, h) : toy_dense(t, h));
        toy_output(t, "resid", l, x);
    }
    gref scale = toy_weight(t, "scale", "scale", 0, DT_BF16, SHAPE(D));
    x = NODE(t, mul, TYPE(GRAPH_T, D), x, scale);
    gref norm = toy_weight(t, "out_norm", "sinks", 0, DT_F32, SHAPE(D));
    toy_last(t)->computed = t->w.out_norm;
    toy_last(t)->n_piece = 0;
    gref h = toy_norm(t, x, norm);
    toy_output(t, "hidden", -1, h);
    gref taken = NODE(t, take_rows, TYPE(GRAPH_R, D), h, rows);
    toy_output(t, "logits", -1, NODE(t, linear, TYPE(GRAPH_R, VOCAB), taken, embd));
    strbuf why = {0};
    if (!graph_verify(t->g, &why))
        ck_abort_msg("%s", why.p);
    strbuf_free(&why);
}

static inline toy *toy_open(void)
{
    toy *t = calloc(1, sizeof *t);
    t->dir = temp_dir_create();
    t->path = temp_join(&t->dir, "toy.gguf");
    t->dg = diag_create();
    t->a = arena_create();
    t->seed = 12345;
    toy_write_file(t);
    ck_assert_int_eq(model_file_open(t->dg, t->path.path, NULL, &t->mf), WEFT_OK);
    toy_graph(t);
    target limits = {.be = backend_reference(), .n_tok_max = TOY_TOKENS};
    ck_assert_int_eq(plan_make(t->dg, t->g, &limits, NULL, t->a, &t->p), WEFT_OK);
    return t;
}

static inline void toy_close(toy *t)
{
    model_file_close(t->mf);
    graph_destroy(t->g);
    arena_destroy(t->a);
    diag_destroy(t->dg);
    unlink(t->path.path);
    rmdir(t->dir.path);
    free(t);
}

/* ---- the same in plain loops ---- */

typedef struct {
    int n;
    double resid[2][TOY_TOKENS][D], hidden[TOY_TOKENS][D], logits[TOY_TOKENS][VOCAB];
} toy_result;

static inline void plain_matrix(const float *w, const double *x, int m, int n, double *y)
{
    for (int i = 0; i < m; i++) {
        y[i] = 0;
        for (int j = 0; j < n; j++)
            y[i] += w[i * n + j] * x[j];
    }
}

static inline void plain_norm(const double *x, const float *w, double *y)
{
    double ss = 0;
    for (int i = 0; i < D; i++)
        ss += x[i] * x[i];
    for (int i = 0; i < D; i++)
        y[i] = x[i] / sqrt(ss / D + toy_eps) * w[i];
}

static inline void plain_rope(double *x, int heads, int pos)
{
    for (int h = 0; h < heads; h++)
        for (int i = 0; i < PAIRS; i++) {
            double c = cos(pos * toy_freqs[i]) * toy_factor,
                   s = sin(pos * toy_freqs[i]) * toy_factor;
            double a = x[h * HD + i], b = x[h * HD + i + PAIRS];
            x[h * HD + i] = a * c - b * s;
            x[h * HD + i + PAIRS] = b * c + a * s;
        }
}

static inline double plain_silu(double x)
{
    return x / (1 + exp(-x));
}

static inline void plain_attend(const toy_weights *w, int l, int t, double q[][Q], double k[][K],
                                double v[][K], double *out)
{
    int first = l == 1 && t - WINDOW + 1 > 0 ? t - WINDOW + 1 : 0;
    for (int h = 0; h < HEADS; h++) {
        int g = h / (HEADS / KV);
        double total = l == 1 ? exp(w->sinks[h]) : 0, sum[HD] = {0};
        for (int j = first; j <= t; j++) {
            double s = 0;
            for (int i = 0; i < HD; i++)
                s += q[t][h * HD + i] * k[j][g * HD + i];
            s *= 0.4;
            if (l == 0)
                s = toy_softcap * tanh(s / toy_softcap);
            total += exp(s);
            for (int i = 0; i < HD; i++)
                sum[i] += exp(s) * v[j][g * HD + i];
        }
        for (int i = 0; i < HD; i++)
            out[h * HD + i] = sum[i] / total;
    }
}

static inline void plain_ffn(const toy_weights *w, int l, const double *h, double *y)
{
    double g[FF], u[FF], logits[EXPERTS], one[D];
    if (l == 0) {
        plain_matrix(w->gate, h, FF, D, g);
        plain_matrix(w->up, h, FF, D, u);
        for (int i = 0; i < FF; i++)
            g[i] = plain_silu(g[i]) * u[i];
        plain_matrix(w->down, g, D, FF, y);
        return;
    }
    int worst = 0;
    double total = 0;
    plain_matrix(w->router, h, EXPERTS, D, logits);
    for (int e = 1; e < EXPERTS; e++)
        if (logits[e] < logits[worst])
            worst = e;
    for (int e = 0; e < EXPERTS; e++)
        total += e == worst ? 0 : exp(logits[e]);
    memset(y, 0, D * sizeof *y);
    for (int e = 0; e < EXPERTS; e++) {
        if (e == worst)
            continue;
        plain_matrix(w->exp_up + e * FF * D, h, FF, D, g);
        for (int i = 0; i < FF; i++)
            g[i] = plain_silu(g[i]);
        plain_matrix(w->exp_down + e * D * FF, g, D, FF, one);
        for (int i = 0; i < D; i++)
            y[i] += exp(logits[e]) / total * (one[i] + w->exp_bias[e * D + i]);
    }
}

static inline void toy_forward(const toy_weights *w, const int32_t *ids, int n, toy_result *r)
{
    static double x[TOY_TOKENS][D], q[TOY_TOKENS][Q], k[TOY_TOKENS][K], v[TOY_TOKENS][K];
    double h[D], a[Q], y[D];
    r->n = n;
    for (int t = 0; t < n; t++)
        for (int i = 0; i < D; i++)
            x[t][i] = 1.5 * w->embd[ids[t] * D + i];
    for (int l = 0; l < 2; l++) {
        for (int t = 0; t < n; t++) {
            plain_norm(x[t], w->attn_norm[l], h);
            plain_matrix(w->q[l], h, Q, D, q[t]);
            plain_matrix(w->k[l], h, K, D, k[t]);
            plain_matrix(w->v[l], h, K, D, v[t]);
            for (int i = 0; i < Q && l == 1; i++)
                q[t][i] += w->q_bias[i];
            plain_rope(q[t], HEADS, t);
            plain_rope(k[t], KV, t);
            for (int i = 0; i < Q && l == 0; i++)
                q[t][i] *= w->temp[t < TEMP_N ? t : TEMP_N - 1];
        }
        for (int t = 0; t < n; t++) {
            plain_attend(w, l, t, q, k, v, a);
            plain_matrix(w->o[l], a, D, Q, y);
            for (int i = 0; i < D; i++)
                x[t][i] += y[i];
            plain_norm(x[t], w->ffn_norm[l], h);
            plain_ffn(w, l, h, y);
            for (int i = 0; i < D; i++)
                r->resid[l][t][i] = x[t][i] += y[i];
        }
    }
    for (int t = 0; t < n; t++) {
        for (int i = 0; i < D; i++)
            y[i] = x[t][i] * w->scale[i];
        plain_norm(y, w->out_norm, r->hidden[t]);
        plain_matrix(w->embd, r->hidden[t], VOCAB, D, r->logits[t]);
    }
}

#endif
