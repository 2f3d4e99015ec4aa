/* verbs.c - the table of verbs. */
#include "runtime/cli/cli.h"

const verb verbs[] = {
#define VERB(name, operands, least, most, summary)                                                 \
    {#name, operands, least, most, summary, &name##_verb_page, verb_##name},
#include "runtime/cli/verbs.def"
#undef VERB
};
const size_t verb_n = sizeof verbs / sizeof *verbs;

const verb *verb_find(str name)
{
    for (size_t i = 0; i < verb_n; i++)
        if (str_eqz(name, verbs[i].name))
            return &verbs[i];
    return NULL;
}

weft_status verb_unknown(weft_diag *dg, const char *name)
{
    weft_status st = weft_fail(dg, W1901, WEFT_NOWHERE, "unknown verb '%s'", name);
    SUGGEST_ROW(dg, str_of(name), verbs, verb_n);
    return st;
}
