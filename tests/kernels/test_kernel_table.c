/* test_kernel_table.c - the table against kernels.def, and against the list of ops. */
#include "kernels/kernels.h"

#include "runtime/base/cpu.h"
#include "tests/base/suite.h"

/* What the words in symbols say of the rows that a kernel is for. */
static const struct {
    const char *word;
    int64_t least, most; /* 0: any; -1: more than one */
} words[] = {
    {"", 0, 0},
    {"_ANY", 1, INT64_MAX},
    {"_ONE", 1, 1},
    {"_FEW", -1, 16},
    {"_SUMS", -1, 32}, /* sums of 256 columns, scaled before */
    {"_MANY", -1, INT64_MAX},
    {"_STORED_MANY", -1, INT64_MAX}, /* where there is one for interleaved weights too */
};

START_TEST(rows_and_names)
{
    int n;
    const kernel_row *rows = kernel_rows(&n);
    ck_assert_int_gt(n, 0);
    for (int i = 0; i < n; i++) {
        const kernel_row *r = &rows[i];
        bool named = false;
        for (size_t w = 0; w < COUNT_OF(words) && !named; w++) {
            char symbol[96];
            snprintf(symbol, sizeof symbol, "k_%s%s%s%s_%s", kop_name(r->op),
                     r->type == DT_COUNT ? "" : "_",
                     r->type == DT_COUNT ? "" : dtype_row_of(r->type)->name, words[w].word,
                     kvariant_name(r->variant));
            named = strcmp(r->symbol, symbol) == 0;
            if (named && words[w].most > 0) {
                ck_assert_int_eq(r->most, words[w].most);
                ck_assert(words[w].least < 0 ? r->least > 1 : words[w].least == r->least);
            }
        }
        ck_assert_msg(named, "%s", r->symbol);
        ck_assert(r->least >= 1 && r->least <= r->most);
        ck_assert_msg((r->fn != NULL) == kvariant_on(r->variant, KARCH_HERE), "%s", r->symbol);
        ck_assert(!kernel_runs(r) || r->fn);
        ck_assert_int_eq(kernel_index(r), i);
        ck_assert_ptr_eq(kernel_by_symbol(r->symbol), r); /* no row twice */
    }
    ck_assert_ptr_null(kernel_find(KOP_linear, "abacus"));
    ck_assert_ptr_null(kernel_find(kop_find("knit"), "ref"));
}
END_TEST

/* Where a kernel for few rows ends, another one of its variant, or of a plainer one, goes on. */
START_TEST(no_gaps)
{
    int n;
    const kernel_row *rows = kernel_rows(&n);
    for (int i = 0; i < n; i++) {
        const kernel_row *r = &rows[i];
        bool goes_on = r->most == INT64_MAX;
        for (int j = 0; j < n && !goes_on; j++)
            goes_on = rows[j].op == r->op && rows[j].type == r->type &&
                      rows[j].layout == r->layout && rows[j].variant <= r->variant &&
                      kernel_takes(&rows[j], r->most + 1);
        ck_assert_msg(goes_on, "%s ends at %d rows", r->symbol, (int)r->most);
    }
}
END_TEST

/* Facts of ops that follow from each other. */
START_TEST(facts_of_ops)
{
    for (kop op = 0; op < KOP_COUNT; op++) {
        const kop_row *r = kop_row_of(op);
        ck_assert_int_eq(kop_find(r->name), op);
        ck_assert_msg(kernel_find(op, "ref") != NULL, "%s", r->name);
        /* convert has its cell alone. */
        ck_assert(r->n_in >= (op != KOP_convert) && r->n_in <= K_IN_MAX && r->n_out <= K_OUT_MAX);
        ck_assert(r->weight < r->n_in);
        bool product = r->col_vectors != KSIZE_NONE && r->col_width != KSIZE_NONE;
        ck_assert_msg(product || r->cut == KCUT_NO || op == KOP_append, "%s", r->name);
    }
    const int64_t n[] = {5, 3, 7};
    const kop_row *linear = kop_row_of(KOP_linear);
    ck_assert_int_eq(kop_size(n, linear->col_width), 3);
    ck_assert_int_eq(kop_size(n, linear->x_width), 7);
    ck_assert_int_eq(kop_size(n, linear->x_vectors), 1);
    ck_assert_int_eq(kop_size(n, KSIZE_NONE), 0);
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
        const kernel_row *row = kernel_find(kop_find(cases[i].op), "ref");
        ck_assert_ptr_nonnull(row);
        ck_assert_str_eq(kunit_name(row->unit), cases[i].unit);
        ck_assert_int_eq(kernel_units(row, &k), cases[i].units);
        ck_assert_uint_eq(kernel_scratch(row, &k), cases[i].scratch);
    }
}
END_TEST

/* Ops of tiers 1 and 2 that no kernel computes, each for its reason. */
/* Kernels of plans, which no node of a graph asks for by name. */
static const char *const planned[] = {
    "map",       /* a group of element-wise nodes */
    "quantize",  /* activations rounded for integer dot products */
    "quantize4", /* the same, four rows interleaved */
};

static const struct {
    const char *op;
    int tier;
    const char *fuses, *runs;
} ops[] = {
#define OP(name, tier, kinds, rule, fuses, runs, ...) {#name, tier, #fuses, #runs},
#define LIB(...)
#include "dsl/ops.def"
#undef OP
#undef LIB
};

static bool has_kernel(size_t i)
{
    return strcmp(ops[i].runs, "KERNEL") == 0;
}

/* `weft ops`, the reference page and W0901 go by the column `runs` of ops.def, so it must be true. */
START_TEST(every_op_has_a_reference_or_says_so)
{
    int n_view = 0;
    for (size_t i = 0; i < COUNT_OF(ops); i++) {
        bool found = kernel_find(kop_find(ops[i].op), "ref") != NULL;
        ck_assert_msg(found == has_kernel(i), "%s: ops.def says %s, and there is %s kernel",
                      ops[i].op, ops[i].runs, found ? "a" : "no");
        n_view += strcmp(ops[i].runs, "VIEW") == 0;
    }
    ck_assert_int_eq(n_view, 2); /* to_heads and from_heads: the same bytes in another shape */
    int n;
    const kernel_row *rows = kernel_rows(&n);
    for (int r = 0; r < n; r++) {
        bool known = false;
        for (size_t i = 0; i < COUNT_OF(ops); i++)
            known = known || strcmp(ops[i].op, kop_name(rows[r].op)) == 0;
        for (size_t i = 0; i < COUNT_OF(planned); i++)
            known = known || strcmp(planned[i], kop_name(rows[r].op)) == 0;
        ck_assert_msg(known, "%s is no op of dsl/ops.def", kop_name(rows[r].op));
    }
}
END_TEST

/* So that a plan is complete on any machine. It runs element-wise nodes as maps. */
START_TEST(every_op_has_a_portable_kernel)
{
    for (size_t i = 0; i < COUNT_OF(ops); i++) {
        bool found = kernel_find(kop_find(ops[i].op), "c") != NULL;
        if (strcmp(ops[i].fuses, "ELEMENTWISE") == 0)
            ck_assert_msg(!found, "%s is run as a map, and has a kernel of its own", ops[i].op);
        else
            ck_assert_msg(found == has_kernel(i), "%s: ops.def says %s, and there is %s kernel",
                          ops[i].op, ops[i].runs, found ? "a portable" : "no portable");
    }
    for (size_t i = 0; i < COUNT_OF(planned); i++)
        ck_assert_msg(kernel_find(kop_find(planned[i]), "c") != NULL, "%s lacks one", planned[i]);
}
END_TEST

START_TEST(portable_scratch)
{
    kcell cell = {.n_tier = 1, .heads = 2, .k = 6, .v = 4};
    kargs k = {.n = {5, 8, 7, 11}, .cell = &cell};
    const struct {
        const char *op;
        bool latent;
        dtype type;
        int64_t units;
        size_t floats;
    } cases[] = {
        {"rms_norm", false, DT_F16, 5, 0},
        {"rope", false, DT_F16, 5, 2 * 11},
        {"map", false, DT_F16, 5, 16 * 256},
        {"attend", false, DT_F16, 10, 4 * 64 + 64 * (6 + 4) + 4 * (4 + 2)},
        {"attend", true, DT_BF16, 10, 4 * 64 + 64 * 6 + 4 * (4 + 2)},
        {"attend", false, DT_F32, 10, 4 * 64 + 4 * (4 + 2)},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const kernel_row *row = kernel_find(kop_find(cases[i].op), "c");
        ck_assert_ptr_nonnull(row);
        cell.latent = cases[i].latent;
        cell.tier[0].key = cell.tier[0].value = kform_of_dtype(cases[i].type);
        ck_assert_int_eq(kernel_units(row, &k), cases[i].units);
        ck_assert_uint_eq(kernel_scratch(row, &k), cases[i].floats * sizeof(float));
    }
    k.cols = 100;
    k.tile = 32;
    ck_assert_int_eq(kernel_units(kernel_find(KOP_map, "c"), &k), 4);
}
END_TEST

/* The sizes of buckets, and others: there is a kernel that is for every number of rows and any kind of weights. */
START_TEST(numbers_of_rows)
{
    static const int64_t counts[] = {1, 2, 3, 4, 5, 8, 9, 11, 12, 16, 17, 32, 512, 4096};
    static const kop contractions[] = {KOP_linear, KOP_experts};
    const kernel_row some = {.least = 2, .most = 16};
    ck_assert(!kernel_takes(&some, 1) && kernel_takes(&some, 2));
    ck_assert(kernel_takes(&some, 16) && !kernel_takes(&some, 17));
    for (kvariant v = VARIANT_c; v < VARIANT_COUNT; v++)
        for (int i = 0; kvariant_runs(v) && i < (int)(COUNT_OF(contractions) * DT_COUNT); i++) {
            kop op = contractions[i / DT_COUNT];
            dtype type = i % DT_COUNT;
            klayout l = kernel_layout(op, type, v);
            for (size_t k = 0; k < COUNT_OF(counts); k++) {
                const kernel_row *row = kernel_select_as(op, type, l, counts[k], v);
                ck_assert_ptr_nonnull(row);
                ck_assert(kernel_takes(row, counts[k]) && row->layout == l);
            }
        }
}
END_TEST

/* Levels of every architecture, for plans that are made elsewhere: what they choose is theirs. */
START_TEST(levels_of_all_architectures)
{
    for (kvariant v = VARIANT_c; v < VARIANT_COUNT; v++) {
        klevel l = klevel_of(v);
        ck_assert(klevel_has(l, v) && klevel_has(l, VARIANT_c));
        for (kvariant w = VARIANT_c + 1; w < VARIANT_COUNT; w++)
            for (karch a = KARCH_X86_64; a < KARCH_OTHER; a++)
                ck_assert(kvariant_on(v, a) || v <= VARIANT_c || !kvariant_on(w, a) ||
                          !klevel_has(l, w));
        for (int i = 0; i < (int)(KOP_COUNT * DT_COUNT); i++) {
            kop op = (kop)(i / DT_COUNT);
            dtype type = (dtype)(i % DT_COUNT);
            klayout to = kernel_layout_at(l, op, type, false);
            for (int64_t n = 1; n <= 1024; n *= 2) {
                const kernel_row *row = kernel_select_at(l, op, type, to, n, false);
                ck_assert(!row || (row->variant <= v && klevel_has(l, row->variant)));
                ck_assert(row || !kernel_select_at(klevel_of(VARIANT_c), op, type, to, n, false));
            }
        }
        if (kvariant_runs(v)) /* what it needs is here, so it may do no less than the level alone */
            ck_assert_int_ge(kernel_layout(KOP_linear, DT_Q8_0, v),
                             kernel_layout_at(l, KOP_linear, DT_Q8_0, false));
    }
    const kernel_row *many =
        kernel_select_at(klevel_of(VARIANT_i8mm), KOP_linear, DT_Q8_0, LAYOUT_ROWS8, 512, false);
    ck_assert_str_eq(many->symbol, "k_linear_Q8_0_MANY_i8mm");
    many =
        kernel_select_at(klevel_of(VARIANT_avx512), KOP_linear, DT_Q8_0, LAYOUT_ROWS8, 512, false);
    ck_assert_str_eq(many->symbol, "k_linear_Q8_0_MANY_avx512");
    for (karch a = 0; a < KARCH_COUNT; a++)
        ck_assert_int_eq(karch_find(karch_name(a)), a);
    ck_assert_int_eq(karch_find("abacus"), KARCH_COUNT);
}
END_TEST

/* What rounds activations to bf16 is never chosen by itself, and serves many rows with BF16 weights. */
START_TEST(rounding_is_asked_for)
{
    static const int64_t counts[] = {1, 2, K_ROWS_FEW, K_ROWS_FEW + 1, 512};
    kvariant rounds = kvariant_rounding();
    ck_assert(kvariant_best() != rounds);
    for (size_t i = 0; i < COUNT_OF(counts); i++) {
        klayout l = kernel_layout(KOP_linear, DT_BF16, kvariant_best());
        const kernel_row *row =
            kernel_select_as(KOP_linear, DT_BF16, l, counts[i], kvariant_best());
        ck_assert(!act_rounds_bf16(row->act));
    }
    if (rounds == VARIANT_COUNT)
        return;
    ck_assert(kvariant_runs(rounds));
    klayout l = kernel_layout(KOP_linear, DT_BF16, rounds);
    ck_assert(act_rounds_bf16(kernel_select_as(KOP_linear, DT_BF16, l, 512, rounds)->act));
}
END_TEST

SUITE_MAIN("kernel_table", rows_and_names, no_gaps, facts_of_ops, units_and_scratch,
           every_op_has_a_reference_or_says_so, every_op_has_a_portable_kernel, portable_scratch,
           numbers_of_rows, levels_of_all_architectures, rounding_is_asked_for)
