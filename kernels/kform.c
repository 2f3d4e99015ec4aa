/* kform.c - kforms.def as data. */
#include "kernels/kform.h"

static const struct {
    const char *name, *meaning;
    int bits;
} forms[] = {
#define FORM(name, text, type, bits, meaning) {text, meaning, bits},
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

int kform_bits(kform f)
{
    return forms[f].bits;
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
