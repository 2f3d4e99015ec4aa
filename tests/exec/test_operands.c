/* test_operands.c - contractions with operands that few models have: weights joined of pieces that are no whole groups of
 * rows, and weights that are multiplied with weights. Every variant gives what the reference gives. */
#include "compiler/plan_check.h"
#include "compiler/plan_make.h"
#include "runtime/exec/session.h"
#include "runtime/formats/model_file.h"
#include "tests/base/suite.h"
#include "tests/formats/gguf_bytes.h"
#include <math.h>

enum { ROWS = 4, WIDTH_MAX = 64 };

static const gguf_row tensors[] = {
    {"embd", DT_F32, 2, {32, 40}},    {"x", DT_F32, 2, {32, 4}},   {"four", DT_Q8_0, 2, {32, 4}},
    {"twelve", DT_Q8_0, 2, {32, 12}}, {"a", DT_Q8_0, 2, {32, 32}}, {"b", DT_Q8_0, 2, {32, 32}},
};

#define HEAD                                                                                       \
    "graph g entry decode\ninput tokens: i32[T]\ninput pos: i32[T]\ninput rows: i32[R]\n"          \
    "weight @embd: F32[40, 32] in 0\nweight @x: F32[4, 32] in 1\n"                                 \
    "weight @joined: Q8_0[16, 32] in 2 rows 4, 3 rows 12\n"                                        \
    "weight @a: Q8_0[32, 32] in 4\nweight @b: Q8_0[32, 32] in 5\n"

typedef struct {
    strbuf gguf;
    weft_diag *dg;
    arena *a;
    model_file *mf;
    graph *g;
} stage;

/* Numbers of F32 from -1 to 1; blocks of Q8_0 with a scale of 2^-6. */
static void put_data(strbuf *b, const gguf_row *r, uint32_t seed)
{
    for (size_t n = gguf_row_bytes(r); n > 0; seed = seed * 1664525u + 1013904223u) {
        float x = (float)(seed >> 8) / 8388608.0f - 1.0f;
        size_t bytes = r->type == DT_F32 ? sizeof x : 34;
        if (r->type == DT_F32) {
            strbuf_put(b, (str){(const char *)&x, sizeof x});
        } else {
            strbuf_put(b, (str){"\x00\x24", 2});
            put_noise(b, 32, seed);
        }
        n -= bytes;
    }
    put_padding(b, GGUF_ALIGN);
}

static void stage_open(stage *s, const char *text)
{
    *s = (stage){.dg = diag_create(), .a = arena_create()};
    put_head(&s->gguf, 3, COUNT_OF(tensors), 1);
    put_key_str(&s->gguf, "general.architecture", "toy");
    put_rows(&s->gguf, tensors, COUNT_OF(tensors));
    for (size_t i = 0; i < COUNT_OF(tensors); i++)
        put_data(&s->gguf, &tensors[i], (uint32_t)i + 1);
    ck_assert_int_eq(model_file_open_memory(s->dg, s->gguf.p, s->gguf.n, "toy.gguf", &s->mf),
                     WEFT_OK);
    const source *src = source_from_text(s->a, "g", str_of(text));
    ck_assert_int_eq(graph_parse(s->dg, src, &s->g), WEFT_OK);
}

static void stage_close(stage *s)
{
    graph_destroy(s->g);
    model_file_close(s->mf);
    arena_destroy(s->a);
    diag_destroy(s->dg);
    strbuf_free(&s->gguf);
}

/* Output y of a call of ROWS tokens, with kernels up to `best`. */
static int64_t run(stage *s, const backend *be, float *to)
{
    target t = {.be = be, .n_ctx = 8, .n_seq = 1, .n_tok_max = ROWS, .kv = DT_F32};
    session_options opt = {.n_ctx = 8, .n_seq = 1};
    plan *p;
    session *run = NULL;
    batch_row rows[ROWS];
    const float *y;
    int64_t n_row, width;
    for (int i = 0; i < ROWS; i++)
        rows[i] = (batch_row){.id = 7 * i, .pos = i, .out = true};
    ck_assert_int_eq(plan_make(s->dg, s->g, &t, NULL, s->a, &p), WEFT_OK);
    ck_assert_int_eq(plan_check(s->dg, be, p), WEFT_OK);
    ck_assert_int_eq(session_create(s->dg, p, model_file_source(s->mf), &opt, &run), WEFT_OK);
    ck_assert_int_eq(session_eval(s->dg, run, rows, ROWS), WEFT_OK);
    ck_assert(session_output(run, "y", -1, &y, &n_row, &width));
    ck_assert(width <= WIDTH_MAX && n_row == ROWS);
    memcpy(to, y, (size_t)(n_row * width) * sizeof *to);
    session_destroy(run);
    return n_row * width;
}

/* Activations of 8 bits are off by 2^-8 of the largest at most, so sums of 32 by some hundredths. */
static void expect_same(const char *text)
{
    stage s;
    float want[ROWS * WIDTH_MAX], got[ROWS * WIDTH_MAX];
    stage_open(&s, text);
    int64_t n = run(&s, backend_reference(), want);
    double most = 0;
    for (int64_t i = 0; i < n; i++)
        most = fmax(most, fabs((double)want[i]));
    for (kvariant v = VARIANT_c; v < VARIANT_COUNT; v++) {
        if (!kvariant_runs(v))
            continue;
        ck_assert_int_eq(run(&s, backend_cpu_find(kvariant_name(v)), got), n);
        for (int64_t i = 0; i < n; i++)
            ck_assert_msg(fabs((double)got[i] - (double)want[i]) < 0.02 * most,
                          "%s: number %d is %g, not %g", kvariant_name(v), (int)i, (double)got[i],
                          (double)want[i]);
    }
    stage_close(&s);
}

START_TEST(pieces_need_not_be_groups)
{
    expect_same(HEAD "%0: f[T, 32] = embed(@embd, tokens)\n%1: f[T, 16] = linear(%0, @joined)\n"
                     "output y = %1\n");
}
END_TEST

/* The number of a weight says nothing about the value of that number. */
START_TEST(weights_are_multiplied_too)
{
    expect_same(HEAD "%0: f[4, 32] = linear(@x, @a)\n%1: f[4, 32] = linear(%0, @b)\n"
                     "%2: f[4, 32] = linear(@x, @b)\n%3: f[4, 32] = add(%1, %2)\n"
                     "output y = %3\n");
}
END_TEST

SUITE_MAIN("operands", pieces_need_not_be_groups, weights_are_multiplied_too)
