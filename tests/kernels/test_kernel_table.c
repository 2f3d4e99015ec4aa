/* test_kernel_table.c - the table against kernels.def, and against the list of ops. */
#include "kernels/kernels.h"

#include "runtime/base/cpu.h"
#include "tests/base/suite.h"

START_TEST(rows_and_names)
{
    int n;
    const kernel_row *rows = kernel_rows(&n);
    ck_assert_int_gt(n, 0);
    for (int i = 0; i < n; i++) {
        char symbol[96];
        const char *type = rows[i].type == DT_COUNT ? NULL : dtype_row_of(rows[i].type)->name;
        snprintf(symbol, sizeof symbol, "k_%s_%s%s%s", rows[i].op, type ? type : "",
                 type ? "_" : "", kvariant_name(rows[i].variant));
        ck_assert_str_eq(rows[i].symbol, symbol);
        ck_assert_ptr_nonnull(rows[i].fn);
        ck_assert_int_eq(kernel_index(&rows[i]), i);
        ck_assert_ptr_eq(kernel_by_symbol(symbol), &rows[i]); /* no row twice */
    }
    ck_assert_ptr_null(kernel_find("linear", "abacus"));
    ck_assert_ptr_null(kernel_find("knit", "ref"));
}
END_TEST

START_TEST(units_and_scratch)
{
    kcell cell = {.heads = 2, .k = 6, .v = 4};
    kargs k = {.n = {5, 3, 7, 11}, .cell = &cell};
    const struct {
        const char *op, *unit;
        int64_t units;
        size_t scratch;
    } cases[] = {
        {"add", "row", 5, 0},
        {"linear", "row", 5, 7 * 4},
        {"experts", "row", 5, 11 * 4},
        {"head_linear", "head", 15, 11 * 4},
        {"attend", "head", 15, 4 * 8 + (6 + 4) * 4},
        {"route", "row", 5, (3 + 3 + 11) * 8},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const kernel_row *row = kernel_find(cases[i].op, "ref");
        ck_assert_ptr_nonnull(row);
        ck_assert_str_eq(row->unit, cases[i].unit);
        ck_assert_int_eq(kernel_units(row, &k), cases[i].units);
        ck_assert_uint_eq(kernel_scratch(row, &k), cases[i].scratch);
    }
}
END_TEST

/* Ops of tiers 1 and 2 that no kernel computes, each for its reason. */
static const char *const exempt[] = {
    "to_heads",   /* a view: the same bytes in another shape */
    "from_heads", /* the same */
    "lora",       /* inserted by the compiler once there are adapters */
    "delta",      /* the same, placed by hand */
};

/* Kernels of plans, which no node of a graph asks for by name. */
static const char *const planned[] = {
    "map",  /* a group of element-wise nodes */
    "pack", /* activations rounded for integer dot products */
};

START_TEST(every_op_has_a_reference)
{
    static const struct {
        const char *op;
        int tier;
    } ops[] = {
#define OP(name, tier, ...) {#name, tier},
#define LIB(...)
#include "dsl/ops.def"
#undef OP
#undef LIB
    };
    for (size_t i = 0; i < COUNT_OF(ops); i++) {
        bool need = ops[i].tier <= 2, found = kernel_find(ops[i].op, "ref") != NULL;
        for (size_t j = 0; j < COUNT_OF(exempt); j++)
            if (strcmp(ops[i].op, exempt[j]) == 0) {
                ck_assert_msg(!found, "%s has a reference kernel, and is exempt from having one",
                              exempt[j]);
                need = false;
            }
        if (need && !found)
            ck_abort_msg("%s lacks a reference kernel", ops[i].op);
    }
    int n;
    const kernel_row *rows = kernel_rows(&n);
    for (int r = 0; r < n; r++) {
        bool known = false;
        for (size_t i = 0; i < COUNT_OF(ops); i++)
            known = known || strcmp(ops[i].op, rows[r].op) == 0;
        for (size_t i = 0; i < COUNT_OF(planned); i++)
            known = known || strcmp(planned[i], rows[r].op) == 0;
        ck_assert_msg(known, "%s is no op of dsl/ops.def", rows[r].op);
    }
}
END_TEST

SUITE_MAIN("kernel_table", rows_and_names, units_and_scratch, every_op_has_a_reference)
