/* test_peaks.c - which instruction a kernel is compared with, on rates made up; and that measuring gives some. */
#include "kernels/peaks/peaks.h"

#include "runtime/base/cpu.h"
#include "tests/base/suite.h"

static const peak_row rows[] = {
    {.name = "portable C", .kind = PEAK_F32},
    {.name = "fmla", .kind = PEAK_F32, .needs = CPU_NEON},
    {.name = "sdot", .kind = PEAK_INT8, .needs = CPU_DOTPROD},
    {.name = "smmla", .kind = PEAK_INT8, .needs = CPU_I8MM},
    {.name = "bfmmla", .kind = PEAK_BF16, .needs = CPU_BF16},
};
static const double rates[] = {1, 3, 12, 24, 12};
enum { N = sizeof rows / sizeof *rows };

static const char *peak_of(const peak_rates *r, kvariant v, kact act)
{
    return r->row[peaks_of(r, &(kernel_row){.variant = v, .act = act})]->name;
}

START_TEST(kernel_to_instruction)
{
    peak_rates r = {.n = N};
    for (int i = 0; i < N; i++) {
        r.row[i] = &rows[i];
        r.rate[i] = rates[i];
    }
    ck_assert_str_eq(peak_of(&r, VARIANT_ref, ACT_F32), "portable C");
    ck_assert_str_eq(peak_of(&r, VARIANT_c, ACT_Q8), "portable C");
    ck_assert_str_eq(peak_of(&r, VARIANT_neon, ACT_F32), "fmla");
    ck_assert_str_eq(peak_of(&r, VARIANT_neon, ACT_Q8), "portable C"); /* no such instruction */
    ck_assert_str_eq(peak_of(&r, VARIANT_dotprod, ACT_Q8D), "sdot");
    ck_assert_str_eq(peak_of(&r, VARIANT_i8mm, ACT_Q8KX4), "smmla");
    ck_assert_str_eq(peak_of(&r, VARIANT_bf16, ACT_BF3), "bfmmla");
    ck_assert_str_eq(peak_of(&r, VARIANT_bf16, ACT_F32), "bfmmla"); /* it rounds by itself */
}
END_TEST

START_TEST(measured)
{
    peak_rates r;
    peaks_measure(1, &r);
    ck_assert_int_ge(r.n, 1);
    ck_assert_str_eq(r.row[0]->name, "portable C");
    for (int i = 0; i < r.n; i++) {
        bool runs = (cpu_features() & r.row[i]->needs) == r.row[i]->needs;
        ck_assert_double_ge(r.rate[i], 0);
        if (runs && !r.row[i]->allowed) /* a system may refuse the registers of the others */
            ck_assert_double_gt(r.rate[i], 1e6);
        if (!runs)
            ck_assert_double_eq(r.rate[i], 0);
    }
}
END_TEST

SUITE_MAIN("peaks", kernel_to_instruction, measured)
