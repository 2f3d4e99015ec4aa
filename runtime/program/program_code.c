/* program_code.c - generated code that was linked into a program: a table for each level that has some. */
#include "runtime/program/program_code.h"

#include <string.h>

/* runtime/build/build_code.c names them; without a definition their address is NULL. */
#define VARIANT(name, ...) extern const plan_code weft_##name##_code __attribute__((weak));
#include "kernels/variants.def"
#undef VARIANT

static const struct {
    const char *level;
    const plan_code *code;
} codes[] = {
#define VARIANT(name, ...) {#name, &weft_##name##_code},
#include "kernels/variants.def"
#undef VARIANT
};

static const plan_code *find(const plan *p)
{
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        if (codes[i].code && strcmp(codes[i].level, p->level) == 0 &&
            codes[i].code->n_bucket == p->n_bucket)
            return codes[i].code;
    return NULL;
}

static weft_status make(weft_diag *dg, const plan *p, const code_options *how,
                        const plan_code **out_code, void **out_own)
{
    (void)dg, (void)how;
    *out_code = find(p);
    *out_own = NULL;
    return WEFT_OK;
}

static void release(void *own)
{
    (void)own; /* it is part of the program */
}

const code_maker *program_code_maker(const plan *p)
{
    static const code_maker maker = {make, release};
    return find(p) ? &maker : NULL;
}
