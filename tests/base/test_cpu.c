/* test_cpu.c - the feature table, and what is found on the machine the test runs on. */
#include "runtime/base/cpu.h"
#include "tests/base/suite.h"

#include <stdio.h>

START_TEST(names_are_unique)
{
    for (int i = 0; i < CPU_FEATURE_COUNT; i++)
        for (int k = 0; k < i; k++)
            ck_assert_str_ne(cpu_feature_name(i), cpu_feature_name(k));
}
END_TEST

START_TEST(features_belong_to_this_architecture)
{
    const uint32_t arm = CPU_NEON | CPU_FP16 | CPU_DOTPROD | CPU_FHM | CPU_SVE | CPU_SVE2 |
                         CPU_I8MM | CPU_BF16 | CPU_SME;
    uint32_t found = cpu_features();
#if defined(__aarch64__)
    ck_assert_uint_eq(found & ~arm, 0);
    ck_assert(found & CPU_NEON);
#else
    ck_assert_uint_eq(found & arm, 0);
#endif
}
END_TEST

/* What one feature implies about another holds on every processor made. */
START_TEST(features_are_consistent)
{
    uint32_t found = cpu_features();
    if (found & CPU_AVX2)
        ck_assert(found & CPU_AVX);
    if (found & CPU_AVX512BW)
        ck_assert(found & CPU_AVX512F);
    if (found & CPU_AMX_INT8)
        ck_assert(found & CPU_AMX_TILE);
    if (found & CPU_SVE2)
        ck_assert(found & CPU_SVE);
    ck_assert_uint_eq(found, cpu_features());
}
END_TEST

/* Linux lists the same features in /proc/cpuinfo, under names of its own. */
START_TEST(features_agree_with_linux)
{
    static const struct {
        uint32_t feature;
        const char *word;
    } known[] = {
        {CPU_NEON, " asimd "},        {CPU_DOTPROD, " asimddp "},
        {CPU_FHM, " asimdfhm "},      {CPU_I8MM, " i8mm "},
        {CPU_BF16, " bf16 "},         {CPU_SVE, " sve "},
        {CPU_FP16, " asimdhp "},      {CPU_AVX2, " avx2 "},
        {CPU_FMA, " fma "},           {CPU_F16C, " f16c "},
        {CPU_AVX512F, " avx512f "},   {CPU_AVX512_VNNI, " avx512_vnni "},
        {CPU_AVX_VNNI, " avx_vnni "},
    };
    FILE *f = fopen("/proc/cpuinfo", "r");
    if (!f)
        return;
    static char line[1 << 16];
    bool listed = false;
    while (!listed && fgets(line, sizeof line - 1, f))
        listed = strncmp(line, "flags", 5) == 0 || strncmp(line, "Features", 8) == 0;
    fclose(f);
    if (!listed)
        return;
    line[strcspn(line, "\n")] = ' ';
    uint32_t found = cpu_features();
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        ck_assert_msg(!(found & known[i].feature) == !strstr(line, known[i].word),
                      "%s differs from /proc/cpuinfo", known[i].word);
}
END_TEST

START_TEST(name_is_one_line)
{
    strbuf name = {0};
    cpu_name(&name);
    ck_assert(name.n == 0 || !memchr(name.p, '\n', name.n));
    strbuf_free(&name);
}
END_TEST

SUITE_MAIN("cpu", names_are_unique, features_belong_to_this_architecture, features_are_consistent,
           features_agree_with_linux, name_is_one_line)
