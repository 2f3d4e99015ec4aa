/* dequant.c - the table from storage type to row function. */
#include "kernels/ref/dequant_impl.h"

/* clang-format off */
static dequant_fn *const rows[DT_COUNT] = {
    [DT_F32]    = dequant_f32,
    [DT_F16]    = dequant_f16,
    [DT_BF16]   = dequant_bf16,
    [DT_Q4_0]   = dequant_q4_0,
    [DT_Q4_1]   = dequant_q4_1,
    [DT_Q5_0]   = dequant_q5_0,
    [DT_Q5_1]   = dequant_q5_1,
    [DT_Q8_0]   = dequant_q8_0,
    [DT_Q2_K]   = dequant_q2_k,
    [DT_Q3_K]   = dequant_q3_k,
    [DT_Q4_K]   = dequant_q4_k,
    [DT_Q5_K]   = dequant_q5_k,
    [DT_Q6_K]   = dequant_q6_k,
    [DT_IQ4_NL] = dequant_iq4_nl,
    [DT_IQ4_XS] = dequant_iq4_xs,
    [DT_MXFP4]  = dequant_mxfp4,
};
/* clang-format on */

bool dequant_has(dtype t)
{
    return (unsigned)t < DT_COUNT && rows[t] != NULL;
}

void dequant_row(dtype t, const void *src, float *dst, int64_t n)
{
    WEFT_ASSERT(dequant_has(t));
    WEFT_ASSERT(n >= 0 && n % dtype_row_of(t)->elems == 0);
    rows[t](src, dst, n);
}
