/* build_levels.c - --cpu: the levels that a program has plans for. */
#include "runtime/build/build.h"

static karch arch_of(const build_target *to)
{
    return karch_find(to->machine);
}

static weft_status no_level(weft_diag *dg, const build_target *to, str name)
{
    strbuf all = {0};
    str_guess near = {0};
    for (kvariant v = 0; v < VARIANT_COUNT; v++)
        if (kvariant_on(v, arch_of(to)) && !kvariant_rounds(v)) {
            strbuf_add(&all, "%s%s", all.n ? ", " : "", kvariant_name(v));
            str_guess_try(&near, name, str_of(kvariant_name(v)));
        }
    str_guess_try(&near, name, STR("baseline"));
    str_guess_try(&near, name, STR("native"));
    weft_status st = weft_fail(dg, W1704, WEFT_NOWHERE, "%s has no level '" STR_FMT "'; it has %s",
                               to->name, STR_ARG(name), all.p);
    weft_suggest(dg, &near);
    strbuf_free(&all);
    return st;
}

/* Levels stand from plain to fast, each once. */
static void add_level(const char *level[BUILD_LEVELS_MAX], int *n, const char *name)
{
    int at = *n;
    for (int i = 0; i < *n; i++)
        if (strcmp(level[i], name) == 0)
            return;
    while (at > 0 && backend_cpu_rank(level[at - 1]) > backend_cpu_rank(name))
        at--;
    for (int i = *n; i > at; i--)
        level[i] = level[i - 1];
    level[at] = name;
    ++*n;
}

static weft_status add_named(weft_diag *dg, const build_target *to, str name,
                             const char *level[BUILD_LEVELS_MAX], int *n)
{
    for (kvariant v = 0; v < VARIANT_COUNT; v++)
        if (str_eqz(name, kvariant_name(v)) && kvariant_on(v, arch_of(to)) && !kvariant_rounds(v)) {
            add_level(level, n, kvariant_name(v));
            return WEFT_OK;
        }
    return no_level(dg, to, name);
}

weft_status build_levels(weft_diag *dg, const build_target *to, const char *cpu,
                         const char *level[BUILD_LEVELS_MAX], int *out_n)
{
    bool native = cpu && strcmp(cpu, "native") == 0;
    *out_n = 0;
    if (native && to != build_target_here())
        return weft_fail(dg, W1904, WEFT_NOWHERE, "--cpu native is this machine's, which is not %s",
                         to->name);
    if (native) {
        add_level(level, out_n, backend_cpu_best()->level);
        return WEFT_OK;
    }
    bool baseline = !cpu || strcmp(cpu, "baseline") == 0;
    const char *p = baseline ? to->levels : cpu;
    while (*p) {
        size_t n = strcspn(p, ", ");
        if (n > 0)
            WEFT_TRY(add_named(dg, to, (str){p, n}, level, out_n));
        p += n + strspn(p + n, ", ");
    }
    return *out_n ? WEFT_OK : no_level(dg, to, str_of(cpu));
}
