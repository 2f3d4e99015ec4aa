/* test_code_key.c - the suite of runtime/jit/code_key.c: equal plans have equal keys, and every fact counts. */
#include "runtime/jit/code_key.h"

#include "tests/base/suite.h"

enum { STEPS = 2, ITEMS = 2, CODES = 3 };

typedef struct {
    plan_step step[STEPS];
    plan_item item[ITEMS];
    plan_kernel kernel[2];
    plan_bucket bucket;
    kinstr instr[CODES];
    plan p;
} model;

static void make(model *m, int padding)
{
    memset(m, padding, sizeof *m); /* what lies between fields does not count */
    for (int i = 0; i < STEPS; i++) {
        plan_step s = {.kernel = i, .n_in = 1, .n_out = 1, .per_row = 1, .cols = 64, .cell = -1};
        s.n_code = i ? CODES : 0;
        m->step[i] = s;
    }
    for (int i = 0; i < ITEMS; i++)
        m->item[i] = (plan_item){.first = i, .n_step = 1, .phase = i};
    for (int i = 0; i < CODES; i++)
        m->instr[i] = (kinstr){.op = (uint8_t)i, .f = {1, 2}};
    m->kernel[0] = (plan_kernel){.name = "k_one"};
    m->kernel[1] = (plan_kernel){.name = "k_two"};
    m->bucket = (plan_bucket){
        .n_tok_max = 1, .n_step = STEPS, .step = m->step, .n_item = ITEMS, .item = m->item};
    m->p = (plan){.model = "toy",
                  .backend = "cpu",
                  .level = "c",
                  .n_kernel = 2,
                  .kernel = m->kernel,
                  .n_bucket = 1,
                  .bucket = &m->bucket,
                  .n_code = CODES,
                  .code = m->instr};
}

static bool same(code_key a, code_key b)
{
    return a.lo == b.lo && a.hi == b.hi;
}

START_TEST(equal_plans_have_equal_keys)
{
    model a, b;
    make(&a, 0);
    make(&b, 0x5a);
    ck_assert(same(code_key_of(&a.p, "x", 0), code_key_of(&b.p, "x", 0)));
}
END_TEST

START_TEST(every_fact_counts)
{
    model m;
    make(&m, 0);
    code_key seen[40];
    int n = 0;
    seen[n++] = code_key_of(&m.p, "x", 0);
    seen[n++] = code_key_of(&m.p, "y", 0);
    seen[n++] = code_key_of(&m.p, "x", 1);
#define CHANGED(field, value)                                                                      \
    do {                                                                                           \
        make(&m, 0);                                                                               \
        m.field = value;                                                                           \
        seen[n++] = code_key_of(&m.p, "x", 0);                                                     \
    } while (0)
    CHANGED(p.level, "avx2");
    CHANGED(p.model, "other");
    CHANGED(kernel[1].name, "k_too");
    CHANGED(bucket.n_tok_max, 2);
    CHANGED(bucket.n_item, 1);
    CHANGED(step[0].kernel, 1);
    CHANGED(step[0].in[0].space, SPACE_TILE);
    CHANGED(step[0].in[1].offset, 64);
    CHANGED(step[0].out[0].id, 7);
    CHANGED(step[0].rows, ROWS_R);
    CHANGED(step[1].per_row, 2);
    CHANGED(step[1].pitch[0], 4);
    CHANGED(step[1].out_pitch[0], 4);
    CHANGED(step[1].stride[0][1], 1);
    CHANGED(step[1].n[2], 9);
    CHANGED(step[1].f[0], 0.5);
    CHANGED(step[1].word[0], 3);
    CHANGED(step[1].cols, 65);
    CHANGED(step[1].tile, 8);
    CHANGED(step[1].loc.begin, 5);
    CHANGED(instr[1].op, 9);
    CHANGED(instr[2].f[1], 3);
    CHANGED(item[1].per_thread, true);
    CHANGED(item[1].grain, 2);
    CHANGED(item[1].phase, 0);
#undef CHANGED
    ck_assert_int_le(n, 40);
    for (int i = 0; i < n; i++)
        for (int k = 0; k < i; k++)
            ck_assert_msg(!same(seen[i], seen[k]), "%d and %d", k, i);
}
END_TEST

SUITE_MAIN("code_key", equal_plans_have_equal_keys, every_fact_counts)
