/* test_plan_sum.c - the suite of runtime/engine/plan_sum.c, on plans written down by hand. */
#include "runtime/engine/plan_sum.h"
#include "tests/base/kernel_list.h"

static kernel_list kernels;

static plan_step step_of(const char *op, int32_t layer, plan_rows rows, plan_cost cost)
{
    plan_step s = {.layer = layer, .rows = rows, .per_row = 1, .cost = cost};
    s.kernel = kernel_list_select(&kernels, backend_reference(), kop_find(op), 1);
    return s;
}

START_TEST(bytes_and_flops_of_a_call)
{
    const plan_step linear = step_of("linear", 0, ROWS_T, (plan_cost){1000, 10, 7, 0, 0});
    plan_work w = plan_work_of_step(&linear, &(plan_call){.pos = 3, .n_tok = 4, .n_out = 1});
    ck_assert_double_eq(w.bytes, 1000 + 4 * 10);
    ck_assert_double_eq(w.flops, 4 * 7);
    const plan_step head = step_of("linear", -1, ROWS_R, (plan_cost){1000, 10, 7, 0, 0});
    w = plan_work_of_step(&head, &(plan_call){.pos = 3, .n_tok = 4, .n_out = 1});
    ck_assert_double_eq(w.bytes, 1000 + 10);
}
END_TEST

START_TEST(keys_that_are_seen)
{
    plan_step attend = step_of("attend", 0, ROWS_T, (plan_cost){0, 0, 0, 2, 3});
    const plan_call call = {.pos = 10, .n_tok = 3, .n_out = 1};
    ck_assert_double_eq(plan_work_of_step(&attend, &call).bytes, 2 * (11 + 12 + 13));
    ck_assert_double_eq(plan_work_of_step(&attend, &call).flops, 3 * (11 + 12 + 13));
    attend.n[2] = 12; /* a window */
    ck_assert_double_eq(plan_work_of_step(&attend, &call).bytes, 2 * (11 + 12 + 12));
    attend.n[2] = 0;
    attend.n[3] = 4; /* a chunk: position 10 is the third of its own */
    ck_assert_double_eq(plan_work_of_step(&attend, &call).bytes, 2 * (3 + 4 + 1));
}
END_TEST

START_TEST(phases_and_kernels)
{
    /* Outside; layer 0 in two phases, the second with work of layer 1 that each thread does for itself;
     * layer 1 in one. */
    const plan_cost cost = {.call_bytes = 5};
    const plan_step steps[] = {
        step_of("embed", -1, ROWS_T, cost),   step_of("linear", 0, ROWS_T, cost),
        step_of("rms_norm", 1, ROWS_T, cost), step_of("linear", 0, ROWS_T, cost),
        step_of("linear", 1, ROWS_T, cost),
    };
    const plan_item items[] = {{0, 1, 0, false, 0},
                               {1, 1, 1, false, 0},
                               {2, 1, 2, true, 0},
                               {3, 1, 2, false, 0},
                               {4, 1, 3, false, 0}};
    const plan_bucket b = {
        .n_tok_max = 1, .n_step = 5, .n_item = 5, .n_phase = 4, .step = steps, .item = items};
    plan_phases n = plan_phases_of(&b);
    ck_assert_int_eq(n.all, 4);
    ck_assert_int_eq(n.layers, 2);
    ck_assert_int_eq(n.outside, 1);
    ck_assert_int_eq(n.per_layer_min, 1);
    ck_assert_int_eq(n.per_layer_max, 2);
    const int32_t layer[] = {-1, 0, 0, 1, -1}; /* there is no fifth */
    for (int32_t i = 0; i < 5; i++)
        ck_assert_int_eq(plan_phase_layer(&b, i), layer[i]);

    const plan p = {.n_kernel = kernels.n, .kernel = kernels.at, .n_bucket = 1, .bucket = &b};
    arena *a = arena_create();
    const plan_use *use;
    ck_assert_int_eq(plan_uses_of_call(&p, &(plan_call){.n_tok = 1}, a, &use), 3);
    ck_assert_int_eq(use[0].kernel, steps[1].kernel); /* what moves most comes first */
    ck_assert_int_eq(use[0].n_step, 3);
    ck_assert_double_eq(use[0].work.bytes, 15);
    ck_assert_double_eq(plan_work_of_call(&p, &(plan_call){.n_tok = 1}).bytes, 25);
    arena_destroy(a);
}
END_TEST

SUITE_MAIN("plan_sum", bytes_and_flops_of_a_call, keys_that_are_seen, phases_and_kernels)
