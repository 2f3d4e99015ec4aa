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
    str_guess_try(&near, name, STR("auto"));
    str_guess_try(&near, name, STR("baseline"));
    str_guess_try(&near, name, STR("native"));
    weft_status st = weft_fail(dg, W1704, WEFT_NOWHERE, "%s has no level '" STR_FMT "'; it has %s",
                               to->name, STR_ARG(name), all.p);
    if (str_eqz(name, "native") || str_eqz(name, "baseline"))
        weft_note(dg, STR_FMT " stands alone: --cpu " STR_FMT, STR_ARG(name), STR_ARG(name));
    else
        weft_suggest(dg, &near);
    strbuf_free(&all);
    return st;
}

/* Levels stand from plain to fast, each once. */
static void add_level(build_choice *c, const char *name)
{
    int at = c->n_level;
    for (int i = 0; i < c->n_level; i++)
        if (strcmp(c->level[i], name) == 0)
            return;
    while (at > 0 && backend_cpu_rank(c->level[at - 1]) > backend_cpu_rank(name))
        at--;
    for (int i = c->n_level; i > at; i--)
        c->level[i] = c->level[i - 1];
    c->level[at] = name;
    c->n_level++;
}

static weft_status add_named(weft_diag *dg, const build_target *to, str name, build_choice *c)
{
    for (kvariant v = 0; v < VARIANT_COUNT; v++)
        if (str_eqz(name, kvariant_name(v)) && kvariant_on(v, arch_of(to)) && !kvariant_rounds(v)) {
            add_level(c, kvariant_name(v));
            return WEFT_OK;
        }
    return no_level(dg, to, name);
}

/* Names with commas or blanks between them. */
static weft_status add_all(weft_diag *dg, const build_target *to, const char *names,
                           build_choice *c)
{
    for (const char *p = names; *p;) {
        size_t n = strcspn(p, ", ");
        if (n > 0)
            WEFT_TRY(add_named(dg, to, (str){p, n}, c));
        p += n + strspn(p + n, ", ");
    }
    return c->n_level ? WEFT_OK : no_level(dg, to, str_of(names));
}

/* What `weft run` would do here, and whatever else can be had for the same weights. */
static weft_status like_here(weft_diag *dg, const build_target *to, build_choice *c)
{
    const backend *be;
    WEFT_TRY(backend_cpu(dg, false, &be));
    if (kvariant_rounds((kvariant)backend_cpu_rank(be->level)))
        be = backend_cpu_best();
    c->lie = BUILD_LIKE;
    c->like = be->level;
    WEFT_TRY(add_all(dg, to, to->levels, c));
    add_level(c, be->level);
    return WEFT_OK;
}

weft_status build_levels(weft_diag *dg, const build_target *to, const char *cpu, build_choice *out)
{
    bool here = to == build_target_here();
    *out = (build_choice){.lie = BUILD_EACH};
    cpu = cpu ? cpu : "auto";
    if (strcmp(cpu, "auto") == 0 && here)
        return like_here(dg, to, out);
    if (strcmp(cpu, "auto") == 0 || strcmp(cpu, "baseline") == 0) {
        out->lie = BUILD_STORED;
        return add_all(dg, to, to->levels, out);
    }
    if (strcmp(cpu, "native") != 0)
        return add_all(dg, to, cpu, out);
    if (!here)
        return weft_fail(dg, W1904, WEFT_NOWHERE, "--cpu native is this machine's, which is not %s",
                         to->name);
    add_level(out, backend_cpu_best()->level);
    return WEFT_OK;
}
