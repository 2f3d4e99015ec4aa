/* test_ref_ops.c - every reference kernel on the recorded cases, and what those cannot say:
 * weights of all stored types, logits that are not numbers. */
#include "tests/base/suite.h"
#include "tests/kernels/ref_case.h"

#include <math.h>
#include "kernels/ref/dequant.h"

static const kernel_row *ref_row(const char *op)
{
    const kernel_row *row = kernel_find(kop_find(op), "ref");
    ck_assert_msg(row != NULL, "%s has no reference kernel", op);
    return row;
}

START_TEST(recorded)
{
    FILE *f = ref_cases_open();
    arena *a = arena_create();
    ref_case c;
    int n = 0;
    for (; ref_case_next(f, a, &c); n++) {
        char what[128];
        snprintf(what, sizeof what, "%s, %s", c.op, c.name);
        run_checked(what, ref_row(c.op), &c.k, c.out, c.n_out, c.inplace);
    }
    ck_assert_int_gt(n, 100);
    arena_destroy(a);
    fclose(f);
}
END_TEST

/* Every kernel has a recorded case; those that touch a cell are in test_ref_cell.c (convert, which
 * is page_form.c, in test_page_form.c), those of adapters are held against
 * merged matrices in exec/test_lora.c. */
START_TEST(all_have_cases)
{
    FILE *f = ref_cases_open();
    arena *a = arena_create();
    int n_row;
    const kernel_row *rows = kernel_rows(&n_row);
    bool *seen = ARENA_ARRAY(a, bool, (size_t)n_row);
    seen[kernel_index(ref_row("attend"))] = seen[kernel_index(ref_row("append"))] = true;
    seen[kernel_index(ref_row("convert"))] = true;
    seen[kernel_index(ref_row("lora_down"))] = seen[kernel_index(ref_row("lora_up"))] = true;
    ref_case c;
    while (ref_case_next(f, a, &c))
        seen[kernel_index(ref_row(c.op))] = true;
    for (int i = 0; i < n_row; i++)
        if (rows[i].variant == VARIANT_ref && !seen[i])
            ck_abort_msg("%s has no case in make_ref_cases.py", kop_name(rows[i].op));
    arena_destroy(a);
    fclose(f);
}
END_TEST

/* ---- weights of every stored type: the same bits as with the dequantised rows as F32 ---- */

enum { W_ROWS = 6, W_WIDTH = 256 };

/* [W_ROWS, W_WIDTH], rows pitch bytes apart. */
typedef struct {
    dtype type;
    char *data;
    int64_t pitch;
} typed_weight;

/* Random bytes that stand for numbers of moderate size. */
static void random_block(dtype type, char *block, unsigned *seed)
{
    const dtype_row *d = dtype_row_of(type);
    float numbers[256];
    bool fine = false;
    while (!fine) {
        for (size_t i = 0; i < d->bytes; i++)
            block[i] = (char)(rand_r(seed) >> 8);
        dequant_row(type, block, numbers, d->elems);
        fine = true;
        for (int64_t i = 0; i < d->elems; i++)
            fine = fine && fabsf(numbers[i]) < 1e6f;
    }
}

static typed_weight random_weight(arena *a, dtype type, unsigned *seed)
{
    size_t bytes, block = dtype_row_of(type)->bytes;
    ck_assert(dtype_bytes(type, W_WIDTH, &bytes));
    typed_weight w = {type, NULL, (int64_t)bytes + 3};
    w.data = arena_alloc(a, (size_t)(W_ROWS * w.pitch));
    for (int64_t r = 0; r < W_ROWS; r++)
        for (size_t at = 0; at < bytes; at += block)
            random_block(type, w.data + r * w.pitch + at, seed);
    return w;
}

static typed_weight as_f32(arena *a, typed_weight w)
{
    typed_weight plain = {DT_F32, NULL, W_WIDTH * (int64_t)sizeof(float)};
    plain.data = arena_alloc(a, (size_t)(W_ROWS * plain.pitch));
    for (int64_t r = 0; r < W_ROWS; r++)
        dequant_row(w.type, w.data + r * w.pitch, (float *)(void *)(plain.data + r * plain.pitch),
                    W_WIDTH);
    return plain;
}

/* The kernel with w as input i and as the table of addresses or the bias, where it has one. */
static const float *run_typed(arena *a, const char *op, kargs k, typed_weight w, int bias,
                              int64_t n_out)
{
    const kernel_row *row = ref_row(op);
    const void **table = ARENA_ARRAY(a, const void *, 2);
    table[0] = w.data;
    table[1] = w.data + 3 * w.pitch;
    bool has_table = strcmp(op, "experts") == 0 || strcmp(op, "head_linear") == 0;
    int at = strcmp(op, "embed") == 0 ? 0 : 1;
    k.in[at] = has_table ? (const void *)table : w.data;
    k.type[at] = w.type;
    k.pitch[at] = w.pitch;
    if (bias) {
        k.in[bias] = w.data;
        k.type[bias] = w.type;
        k.pitch[bias] = w.pitch;
    }
    float *out = ARENA_ARRAY(a, float, (size_t)n_out);
    k.out[0] = out;
    size_t bytes = kernel_scratch(row, &k);
    kthread t = {0, 1, arena_alloc(a, bytes + 1), bytes};
    row->fn(&k, &t, 0, kernel_units(row, &k));
    return out;
}

START_TEST(stored_types)
{
    static float x[2 * W_ROWS * W_WIDTH];
    static const int32_t ids[] = {5, 1, 0, 4};
    static const int32_t chosen[] = {1, 0, 0, 1};
    unsigned seed = 7;
    for (size_t i = 0; i < COUNT_OF(x); i++)
        x[i] = (float)(rand_r(&seed) % 256 - 128) / 32;
    const struct {
        const char *op;
        kargs k;
        int bias;
        int64_t n_out;
    } cases[] = {
        {"embed", {.in = {NULL, ids}, .size.embed = {4, W_WIDTH, W_ROWS}}, 0, 4 * W_WIDTH},
        {"linear", {.in = {x}, .size.linear = {2, W_ROWS, W_WIDTH}}, 2, 2 * W_ROWS},
        {"rms_norm",
         {.in = {x}, .size.norm = {2, W_ROWS, W_WIDTH, W_ROWS}, .scalar.norm = {1e-5}},
         0,
         2 * W_ROWS * W_WIDTH},
        {"layer_norm",
         {.in = {x}, .size.norm = {2, W_ROWS, W_WIDTH, W_ROWS}, .scalar.norm = {1e-5}},
         2,
         2 * W_ROWS * W_WIDTH},
        {"experts",
         {.in = {x, NULL, chosen}, .size.experts = {2, 2, 3, W_WIDTH, 1, 2}},
         3,
         2 * 2 * 3},
        {"head_linear", {.in = {x}, .size.head_linear = {2, 2, 3, W_WIDTH}}, 2, 2 * 2 * 3},
    };
    arena *a = arena_create();
    int n_type = 0;
    for (int type = 0; type < DT_COUNT; type++) {
        if (!dequant_has((dtype)type))
            continue;
        n_type++;
        typed_weight w = random_weight(a, (dtype)type, &seed), plain = as_f32(a, w);
        for (size_t i = 0; i < COUNT_OF(cases); i++) {
            size_t bytes = (size_t)cases[i].n_out * sizeof(float);
            const float *got =
                run_typed(a, cases[i].op, cases[i].k, w, cases[i].bias, cases[i].n_out);
            const float *want =
                run_typed(a, cases[i].op, cases[i].k, plain, cases[i].bias, cases[i].n_out);
            if (memcmp(got, want, bytes) != 0)
                ck_abort_msg("%s of %s differs from its F32", cases[i].op,
                             dtype_row_of((dtype)type)->name);
        }
    }
    ck_assert_int_ge(n_type, 16);
    arena_destroy(a);
}
END_TEST

/* ---- route on logits that are not numbers ---- */

/* K different ids in range, whatever the logits and groups are. */
static void expect_ids(const float *logits, const float *bias, int score, int64_t top,
                       int64_t groups, int64_t top_groups)
{
    enum { E = 8 };
    int32_t ids[E];
    float weights[E];
    double scratch[2 * E + E];
    kargs k = {.in = {logits, bias},
               .out = {ids, weights},
               .size.route = {1, E, top, groups, top_groups},
               .scalar.route = {1},
               .choice.route = {score, 1, 0}};
    const kernel_row *row = ref_row("route");
    ck_assert_uint_le(kernel_scratch(row, &k), sizeof scratch);
    kthread t = {0, 1, scratch, sizeof scratch};
    row->fn(&k, &t, 0, 1);
    for (int64_t i = 0; i < top; i++) {
        ck_assert(ids[i] >= 0 && ids[i] < E);
        for (int64_t j = 0; j < i; j++)
            ck_assert_int_ne(ids[i], ids[j]);
    }
}

START_TEST(route_strange)
{
    static const float strange[] = {NAN, INFINITY, -INFINITY, 1, -1, 3e38f, -3e38f, 0};
    unsigned seed = 11;
    for (int round = 0; round < 2000; round++) {
        float logits[8], bias[8];
        for (int i = 0; i < 8; i++) {
            logits[i] = strange[round == 0 ? 0 : rand_r(&seed) % 8];
            bias[i] = strange[rand_r(&seed) % 8];
        }
        int score = round % 4;
        expect_ids(logits, NULL, score, 8, 0, 0);
        expect_ids(logits, bias, score, 3, 4, 2);
        expect_ids(logits, bias, score, 5, 4, 1); /* more than the groups leave */
        expect_ids(logits, bias, score, 2, 3, 2); /* groups that do not divide */
        expect_ids(logits, bias, score, 2, 8, 0);
    }
}
END_TEST

/* A NaN never displaces a number. */
START_TEST(route_nan_is_least)
{
    float logits[] = {NAN, 1, NAN, -5}, weights[2];
    int32_t ids[2];
    double scratch[12];
    kargs k = {.in = {logits},
               .out = {ids, weights},
               .size.route = {1, 4, 2, 1, 1},
               .scalar.route = {1},
               .choice.route = {1, 0, 0}};
    kthread t = {0, 1, scratch, sizeof scratch};
    ref_row("route")->fn(&k, &t, 0, 1);
    ck_assert_int_eq(ids[0], 1);
    ck_assert_int_eq(ids[1], 3);
}
END_TEST

SUITE_MAIN("ref_ops", recorded, all_have_cases, stored_types, route_strange, route_nan_is_least)
