/* kform.h - how the numbers of a state cell are stored: the rows of kforms.def. */
#ifndef WEFT_KERNELS_KFORM_H
#define WEFT_KERNELS_KFORM_H

#include "kernels/kfn.h"
#include <stdbool.h>
#include "runtime/base/dtype.h"

typedef enum {
#define FORM(name, ...) KFORM_##name,
#include "kernels/kforms.def"
#undef FORM
    KFORM_COUNT
} kform;

const char *kform_name(kform f);    /* "q8" */
const char *kform_meaning(kform f); /* for people */
int kform_bits(kform f);            /* of a number or code: more are finer */
kform kform_find(str name);         /* KFORM_COUNT: there is none */
kform kform_of_dtype(dtype t);      /* the form of floats of this type, or KFORM_COUNT */

/* Of a form that is floats; DT_COUNT: it is quantised. */
K_FN dtype kform_dtype(kform f)
{
    static const dtype types[] = {
#define FORM(name, text, type, ...) type,
#include "kernels/kforms.def"
#undef FORM
    };
    return types[f];
}

/* Of a number of such a form. */
K_FN int64_t kform_bytes(kform f)
{
    static const int8_t bits[] = {
#define FORM(name, text, type, bits, ...) bits,
#include "kernels/kforms.def"
#undef FORM
    };
    return bits[f] / 8;
}

K_FN bool kform_is_float(kform f)
{
    return kform_dtype(f) != DT_COUNT;
}

#endif
