/* rounds.h - does this processor have kernels that round activations for BF16 weights whatever the number of rows? AMX's
 * take many rows alone, so that a call of few, or one that must not depend on their number, has nothing to round. */
#ifndef WEFT_TESTS_GOLDEN_ROUNDS_H
#define WEFT_TESTS_GOLDEN_ROUNDS_H

#include "kernels/kernels.h"

static inline bool rounds_any_rows(void)
{
    kvariant v = kvariant_rounding();
    if (v == VARIANT_COUNT)
        return false;
    klayout l = kernel_layout(KOP_linear, DT_BF16, v);
    const kernel_row *one = kernel_select_as(KOP_linear, DT_BF16, l, 1, v);
    return one && act_rounds_bf16(one->act);
}

#endif
