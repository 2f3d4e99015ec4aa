/* test_strange.c - models that nobody means to make: sizes that fit no tile, numbers that are none, tensors at odd bytes.
 *
 * A llama of two layers is written to a file in every storage type, and each kind of kernels that this machine runs is held
 * against the reference. */
#include "tests/base/suite.h"

#include "kernels/kernels.h"
#include "kernels/ref/dequant.h"
#include "runtime/formats/gguf_write.h"
#include "runtime/weft.h"
#include <math.h>

enum { VOCAB = 37, LAYERS = 2, TOKENS = 21, DATA_MAX = 32 };

/* Sizes by block: none is a multiple of a tile's where it need not be. */
typedef struct {
    int64_t d, heads, kv_heads, head_dim, ff;
} sizes;

static sizes sizes_of(int64_t block)
{
    static const sizes odd = {44, 3, 1, 10, 51}, by_32 = {96, 6, 2, 24, 224},
                       by_256 = {256, 5, 1, 40, 512};
    return block == 1 ? odd : block == 32 ? by_32 : by_256;
}

/* Where a block keeps its f16 scales, and how large they are for weights of about 0.1; MXFP4 has an exponent. */
static const struct {
    dtype type;
    int scale[2]; /* -1: none */
    float size[2];
} kinds[] = {
    {DT_F32, {-1, -1}, {0}},
    {DT_F16, {-1, -1}, {0}},
    {DT_BF16, {-1, -1}, {0}},
    {DT_Q8_0, {0, -1}, {0.002f}},
    {DT_Q4_0, {0, -1}, {0.02f}},
    {DT_Q4_1, {0, 2}, {0.02f, -0.15f}},
    {DT_Q5_0, {0, -1}, {0.01f}},
    {DT_Q5_1, {0, 2}, {0.01f, -0.15f}},
    {DT_IQ4_NL, {0, -1}, {0.002f}},
    {DT_MXFP4, {-1, -1}, {0}},
    {DT_Q2_K, {80, 82}, {0.01f, 0.015f}},
    {DT_Q3_K, {108, -1}, {0.002f}},
    {DT_Q4_K, {0, 2}, {0.0004f, 0.003f}},
    {DT_Q5_K, {0, 2}, {0.0002f, 0.003f}},
    {DT_Q6_K, {208, -1}, {0.00005f}},
    {DT_IQ4_XS, {0, -1}, {0.0001f}},
};
enum { KINDS = sizeof kinds / sizeof *kinds, MXFP4_EXPONENT = 122 };

/* A number that is none: in which tensor, in which row of it. */
typedef struct {
    const char *tensor; /* NULL: nothing is wrong */
    int64_t row;
    float value;
} fault;

typedef struct {
    temp_dir dir;
    temp_path path;
    weft_diag *dg;
    gguf_writer *writer;
    int kind;
    fault bad;
    uint32_t seed;
    void *data[DATA_MAX];
    int n_data;
} maker;

static uint32_t noise(maker *m)
{
    m->seed = m->seed * 1664525u + 1013904223u;
    return m->seed >> 8;
}

static void put_f16(uint8_t *at, float x)
{
    uint16_t h = f32_to_f16(x);
    memcpy(at, &h, sizeof h);
}

static void put_float(uint8_t *at, dtype t, float x)
{
    uint16_t h = t == DT_F16 ? f32_to_f16(x) : f32_to_bf16(x);
    if (t == DT_F32)
        memcpy(at, &x, sizeof x);
    else
        memcpy(at, &h, sizeof h);
}

/* One block of weights. */
static void put_block(maker *m, dtype t, uint8_t *at, bool bad)
{
    size_t bytes = dtype_row_of(t)->bytes;
    if (dtype_row_of(t)->elems == 1) {
        float x = ((float)noise(m) / (1 << 23) - 1) * 0.2f;
        put_float(at, t, bad ? m->bad.value : x);
        return;
    }
    for (size_t i = 0; i < bytes; i++)
        at[i] = (uint8_t)noise(m);
    for (int k = 0; k < KINDS; k++)
        for (int i = 0; i < 2 && kinds[k].type == t; i++)
            if (kinds[k].scale[i] >= 0)
                put_f16(at + kinds[k].scale[i], bad ? m->bad.value : kinds[k].size[i]);
    if (t == DT_MXFP4)
        at[0] = MXFP4_EXPONENT;
}

static void put_tensor(maker *m, const char *name, int64_t rows, int64_t columns)
{
    dtype t = kinds[m->kind].type;
    size_t bytes;
    if (columns % dtype_row_of(t)->elems != 0)
        t = DT_F16;
    ck_assert(dtype_bytes(t, rows * columns, &bytes));
    int64_t per_row = columns / dtype_row_of(t)->elems;
    uint8_t *to = malloc(bytes);
    ck_assert(m->n_data < DATA_MAX);
    m->data[m->n_data++] = to;
    bool here = m->bad.tensor && strcmp(m->bad.tensor, name) == 0;
    for (int64_t i = 0; i < rows * per_row; i++)
        put_block(m, t, to + (size_t)i * dtype_row_of(t)->bytes,
                  here && i == m->bad.row * per_row + per_row / 2);
    gguf_writer_tensor_data(m->writer, str_of(name), t, 2, (int64_t[]){rows, columns}, to);
}

static void put_norm(maker *m, const char *name, int64_t columns)
{
    float *to = malloc((size_t)columns * sizeof *to);
    ck_assert(m->n_data < DATA_MAX);
    m->data[m->n_data++] = to;
    for (int64_t i = 0; i < columns; i++)
        to[i] = 1;
    gguf_writer_tensor_data(m->writer, str_of(name), DT_F32, 1, &columns, to);
}

static void put_keys(maker *m, const sizes *z, int64_t alignment)
{
    const struct {
        const char *name;
        int64_t n;
    } ints[] = {{"llama.block_count", LAYERS},
                {"llama.context_length", 64},
                {"llama.embedding_length", z->d},
                {"llama.feed_forward_length", z->ff},
                {"llama.attention.head_count", z->heads},
                {"llama.attention.head_count_kv", z->kv_heads},
                {"llama.attention.key_length", z->head_dim},
                {"llama.attention.value_length", z->head_dim},
                {"llama.rope.dimension_count", z->head_dim},
                {"llama.vocab_size", VOCAB},
                {"general.alignment", alignment}};
    gguf_writer_key(m->writer, STR("general.architecture"), value_of_str(STR("llama")));
    gguf_writer_key(m->writer, STR("llama.attention.layer_norm_rms_epsilon"),
                    value_of_float(VT_F32, 1e-5));
    for (size_t i = 0; i < COUNT_OF(ints); i++)
        gguf_writer_key(m->writer, str_of(ints[i].name), value_of_int(VT_U32, ints[i].n));
}

/* The file, at m->path. One tensor has a name of odd length, so that with an alignment of 1 offsets are odd too. */
static void make(maker *m, int kind, fault bad, int64_t alignment)
{
    *m = (maker){.kind = kind, .bad = bad, .dg = diag_create(), .seed = 5};
    m->dir = temp_dir_create();
    m->path = temp_join(&m->dir, "model.gguf");
    m->writer = gguf_writer_create();
    sizes z = sizes_of(dtype_row_of(kinds[kind].type)->elems);
    put_keys(m, &z, alignment);
    put_tensor(m, "token_embd.weight", VOCAB, z.d);
    put_norm(m, "output_norm.weight", z.d);
    put_tensor(m, "output.weight", VOCAB, z.d);
    static char names[LAYERS][9][32];
    static const char *const tails[] = {"attn_norm", "attn_q",   "attn_k", "attn_v",  "attn_output",
                                        "ffn_norm",  "ffn_gate", "ffn_up", "ffn_down"};
    for (int l = 0; l < LAYERS; l++) {
        for (int i = 0; i < 9; i++)
            snprintf(names[l][i], sizeof names[l][i], "blk.%d.%s.weight", l, tails[i]);
        put_norm(m, names[l][0], z.d);
        put_tensor(m, names[l][1], z.heads * z.head_dim, z.d);
        put_tensor(m, names[l][2], z.kv_heads * z.head_dim, z.d);
        put_tensor(m, names[l][3], z.kv_heads * z.head_dim, z.d);
        put_tensor(m, names[l][4], z.d, z.heads * z.head_dim);
        put_norm(m, names[l][5], z.d);
        put_tensor(m, names[l][6], z.ff, z.d);
        put_tensor(m, names[l][7], z.ff, z.d);
        put_tensor(m, names[l][8], z.d, z.ff);
    }
    ck_assert_msg(gguf_writer_write(m->dg, m->writer, m->path.path) == WEFT_OK, "%s",
                  weft_diag_text(m->dg));
    gguf_writer_destroy(m->writer);
    for (int i = 0; i < m->n_data; i++)
        free(m->data[i]);
}

static void unmake(maker *m)
{
    diag_destroy(m->dg);
    ck_assert_int_eq(unlink(m->path.path), 0);
    ck_assert_int_eq(rmdir(m->dir.path), 0);
}

/* Logits [TOKENS, VOCAB] of the file, evaluated in calls of `step` rows; false: no such kernels here. */
static bool logits_of(maker *m, const char *variant, bool no_mmap, int step, float *out)
{
    weft_model *w = NULL;
    weft_session *s = NULL;
    weft_row rows[TOKENS];
    weft_view v;
    bool ref = strcmp(variant, "ref") == 0;
    if (ref)
        unsetenv("WEFT_CPU");
    else
        setenv("WEFT_CPU", variant, 1);
    weft_session_options how = {.size = sizeof how,
                                .context = 32,
                                .threads = 2,
                                .kv = WEFT_KV_F32,
                                .no_weight_cache = true,
                                .exec = ref ? WEFT_EXEC_REF : WEFT_EXEC_PLAN};
    ck_assert_msg(weft_model_open(
                      m->dg, m->path.path,
                      &(weft_model_options){.size = sizeof(weft_model_options), .no_mmap = no_mmap},
                      &w) == WEFT_OK,
                  "%s", weft_diag_text(m->dg));
    if (weft_session_create(m->dg, w, &how, &s) != WEFT_OK) {
        ck_assert_msg(strstr(weft_diag_text(m->dg), "W1602"), "%s", weft_diag_text(m->dg));
        weft_diag_clear(m->dg);
        weft_model_close(w);
        return false;
    }
    for (int i = 0; i < TOKENS; i++)
        rows[i] = (weft_row){.token = i * 5 % VOCAB, .pos = i, .want = true};
    for (int i = 0; i < TOKENS; i += step) {
        int n = i + step < TOKENS ? step : TOKENS - i;
        ck_assert_int_eq(weft_eval(m->dg, s, rows + i, n), WEFT_OK);
        ck_assert_int_eq(weft_output(m->dg, s, "logits", -1, &v), WEFT_OK);
        ck_assert(v.rows == n && v.width == VOCAB);
        memcpy(out + i * VOCAB, v.data, (size_t)n * VOCAB * sizeof *out);
    }
    weft_session_destroy(s);
    weft_model_close(w);
    return true;
}

/* How far apart, as a share of the size; only numbers that are finite in both. */
static double distance(const float *a, const float *b)
{
    double off = 0, all = 0;
    for (int i = 0; i < TOKENS * VOCAB; i++)
        if (isfinite(a[i]) && isfinite(b[i])) {
            off += ((double)a[i] - (double)b[i]) * ((double)a[i] - (double)b[i]);
            all += (double)a[i] * (double)a[i];
        }
    return all > 0 ? sqrt(off / all) : 0;
}

/* Activations in 8 bits move logits of random weights by a few percent, in bf16, which the variants named so have, by
 * less; splits of f32 and sums in another order hardly. */
static double bound_of(int kind, const char *variant)
{
    if (dtype_row_of(kinds[kind].type)->elems > 1)
        return 0.1;
    return strstr(variant, "_bf16") ? 0.02 : 1e-3;
}

static void near_reference(maker *m, const char *variant, int step, const float *want)
{
    static float got[TOKENS * VOCAB];
    const char *type = dtype_row_of(kinds[m->kind].type)->name;
    if (!logits_of(m, variant, false, step, got))
        return;
    for (int i = 0; i < TOKENS * VOCAB; i++)
        ck_assert_msg(isfinite(want[i]) == isfinite(got[i]),
                      "%s, %s, calls of %d, fault in %s: logit %d of row %d is %g, expected %g",
                      type, variant, step, m->bad.tensor ? m->bad.tensor : "nothing", i % VOCAB,
                      i / VOCAB, (double)got[i], (double)want[i]);
    double off = distance(want, got);
    ck_assert_msg(off <= bound_of(m->kind, variant), "%s, %s, calls of %d: %g off", type, variant,
                  step, off);
}

/* In calls of so many rows; 0 ends. */
static void every_variant(maker *m, const int *steps, const float *want)
{
    for (int v = VARIANT_ref + 1; v < VARIANT_COUNT; v++)
        for (const int *step = steps; *step; step++)
            near_reference(m, kvariant_name((kvariant)v), *step, want);
}

START_TEST(sizes_that_fit_no_tile)
{
    static float want[TOKENS * VOCAB];
    maker m;
    make(&m, _i, (fault){0}, 32);
    ck_assert(logits_of(&m, "ref", false, TOKENS, want));
    for (int i = 0; i < TOKENS * VOCAB; i++)
        ck_assert(isfinite(want[i]));
    every_variant(&m, (const int[]){1, 3, 9, TOKENS, 0}, want);
    unmake(&m);
}
END_TEST

/* A number that is none, or infinite, is seen by exactly the rows and logits that depend on it. */
START_TEST(numbers_that_are_none)
{
    static const fault faults[] = {
        {"output.weight", 5, NAN},       /* one logit */
        {"output.weight", 36, INFINITY}, /* of the last, incomplete group of rows */
        {"token_embd.weight", 15, NAN},  /* the token at position 3, and all that see it */
        {"blk.0.attn_k.weight", 3, NAN}, /* scores */
        {"blk.1.attn_v.weight", 7, -INFINITY},
        {"blk.0.ffn_down.weight", 9, NAN}, /* everything */
        {"blk.1.ffn_gate.weight", 2, INFINITY},
    };
    static float want[TOKENS * VOCAB];
    maker m;
    if (kinds[_i].type == DT_MXFP4) /* a power of two and a code: it has numbers only */
        return;
    for (size_t f = 0; f < COUNT_OF(faults); f++) {
        int n = 0;
        make(&m, _i, faults[f], 32);
        ck_assert(logits_of(&m, "ref", false, TOKENS, want));
        for (int i = 0; i < TOKENS * VOCAB; i++)
            n += !isfinite(want[i]);
        ck_assert_int_gt(n, 0);
        if (f == 0)
            ck_assert_int_eq(n, TOKENS);
        if (f == 2)
            ck_assert_int_eq(n, (TOKENS - 3) * VOCAB);
        every_variant(&m, (const int[]){1, TOKENS, 0}, want);
        unmake(&m);
    }
}
END_TEST

/* Tensors that begin at any byte give the same bits as aligned ones, mapped and read. */
START_TEST(tensors_at_odd_bytes)
{
    static float want[TOKENS * VOCAB], got[TOKENS * VOCAB];
    maker even, odd;
    make(&even, _i, (fault){0}, 32);
    make(&odd, _i, (fault){0}, 1);
    for (int v = VARIANT_ref; v < VARIANT_COUNT; v++)
        for (int no_mmap = 0; no_mmap < 2; no_mmap++) {
            const char *name = kvariant_name((kvariant)v);
            if (!logits_of(&even, name, no_mmap, 8, want))
                continue;
            ck_assert(logits_of(&odd, name, no_mmap, 8, got));
            ck_assert_msg(memcmp(want, got, sizeof want) == 0, "%s, %s: %g off",
                          dtype_row_of(kinds[_i].type)->name, name, distance(want, got));
        }
    unmake(&even);
    unmake(&odd);
}
END_TEST

START_TEST(no_rows_at_all)
{
    maker m;
    weft_model *w = NULL;
    weft_session *s = NULL;
    weft_row row = {.token = 1, .want = true};
    weft_view v;
    unsetenv("WEFT_CPU");
    make(&m, 3, (fault){0}, 32);
    ck_assert_int_eq(weft_model_open(m.dg, m.path.path, NULL, &w), WEFT_OK);
    ck_assert_int_eq(
        weft_session_create(
            m.dg, w, &(weft_session_options){.size = sizeof(weft_session_options), .context = 8},
            &s),
        WEFT_OK);
    ck_assert_int_eq(weft_eval(m.dg, s, NULL, 0), WEFT_ERR_LIMIT);
    ck_assert_int_eq(weft_eval(m.dg, s, &row, 0), WEFT_ERR_LIMIT);
    ck_assert_int_eq(weft_eval(m.dg, s, &row, -1), WEFT_ERR_LIMIT);
    ck_assert_int_eq(weft_length(s, 0), 0);
    row.want = false; /* none asked for: evaluated, and no logits */
    ck_assert_int_eq(weft_eval(m.dg, s, &row, 1), WEFT_OK);
    ck_assert_int_eq(weft_length(s, 0), 1);
    ck_assert(weft_output(m.dg, s, "logits", -1, &v) != WEFT_OK || v.rows == 0);
    weft_session_destroy(s);
    weft_model_close(w);
    unmake(&m);
}
END_TEST

int main(void)
{
    TCase *c = tcase_create("all");
    tcase_set_timeout(c, 120);
    tcase_add_loop_test(c, sizes_that_fit_no_tile, 0, KINDS);
    tcase_add_loop_test(c, numbers_that_are_none, 0, KINDS);
    tcase_add_loop_test(c, tensors_at_odd_bytes, 0, KINDS);
    tcase_add_test(c, no_rows_at_all);
    return suite_run("strange", c, CK_FORK_GETENV);
}
