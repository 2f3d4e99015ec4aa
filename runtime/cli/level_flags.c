#include "runtime/cli/level_flags.h"

#include "runtime/base/diag.h"
#include <string.h>

static const struct {
    const char *name, *machine;
} targets[] = {
#define TARGET(name, machine, ...) {name, machine},
#include "runtime/build/targets.def"
#undef TARGET
};

enum { N_TARGET = (int)(sizeof targets / sizeof targets[0]) };

static weft_status find_arch(weft_diag *dg, const char *name, karch *out)
{
    *out = KARCH_HERE;
    for (int i = 0; name && i < N_TARGET; i++)
        if (strcmp(targets[i].name, name) == 0) {
            *out = karch_find(targets[i].machine);
            return WEFT_OK;
        }
    if (!name)
        return WEFT_OK;
    weft_status st = weft_fail(dg, W1704, WEFT_NOWHERE, "there is no target %s", name);
    if (!SUGGEST_ROW(dg, str_of(name), targets, N_TARGET))
        for (int i = 0; i < N_TARGET; i++)
            weft_note(dg, "%s is one", targets[i].name);
    return st;
}

static weft_status no_level(weft_diag *dg, karch arch, const char *level)
{
    strbuf names = {0};
    str_guess near = {0};
    for (kvariant v = 0; v < VARIANT_COUNT; v++)
        if (kvariant_on(v, arch)) {
            strbuf_add(&names, "%s%s", names.n ? ", " : "", kvariant_name(v));
            str_guess_try(&near, str_of(level), str_of(kvariant_name(v)));
        }
    weft_status st = weft_fail(dg, W1704, WEFT_NOWHERE, "%s has no level %s; it has %s",
                               karch_name(arch), level, names.p);
    weft_suggest(dg, &near);
    strbuf_free(&names);
    return st;
}

weft_status level_flags_backend(weft_diag *dg, const level_flags *f, const backend **out_be)
{
    karch arch;
    const backend *be = NULL;
    *out_be = NULL;
    if (!f->target && !f->level)
        return WEFT_OK;
    WEFT_TRY(find_arch(dg, f->target, &arch));
    for (kvariant v = 0; v < VARIANT_COUNT && !f->level; v++)
        if (kvariant_on(v, arch) && !kvariant_rounds(v))
            be = backend_cpu_for(arch, kvariant_name(v));
    if (f->level)
        be = backend_cpu_for(arch, f->level);
    if (!be)
        return no_level(dg, arch, f->level ? f->level : "c");
    *out_be = be;
    return WEFT_OK;
}
