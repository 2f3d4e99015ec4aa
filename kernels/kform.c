/* kform.c - kforms.def as data. */
#include "kernels/kform.h"

static const struct {
    const char *name, *meaning;
} forms[] = {
#define FORM(name, text, type, bits, meaning) {text, meaning},
#include "kernels/kforms.def"
#undef FORM
};

const char *kform_name(kform f)
{
    return forms[f].name;
}

const char *kform_meaning(kform f)
{
    return forms[f].meaning;
}

kform kform_find(str name)
{
    kform f = 0;
    while (f < KFORM_COUNT && !str_eqz(name, forms[f].name))
        f++;
    return f;
}

kform kform_of_dtype(dtype t)
{
    kform f = 0;
    while (f < KFORM_COUNT && (t == DT_COUNT || kform_dtype(f) != t))
        f++;
    return f;
}
