/* quant.c - the table of types, and those that are floats themselves. */
#include "runtime/quant/quant.h"

#include "runtime/quant/quant_impl.h"
#include <string.h>

static void quant_f32(const float *src, const float *importance, uint8_t *dst, int64_t n)
{
    (void)importance;
    memcpy(dst, src, (size_t)n * sizeof *src);
}

static void quant_f16(const float *src, const float *importance, uint8_t *dst, int64_t n)
{
    (void)importance;
    for (int64_t i = 0; i < n; i++)
        store_u16(dst + 2 * i, f32_to_f16(src[i]));
}

static void quant_bf16(const float *src, const float *importance, uint8_t *dst, int64_t n)
{
    (void)importance;
    for (int64_t i = 0; i < n; i++)
        store_u16(dst + 2 * i, f32_to_bf16(src[i]));
}

/* clang-format off */
static quant_fn *const table[DT_COUNT] = {
    [DT_F32]  = quant_f32,
    [DT_F16]  = quant_f16,
    [DT_BF16] = quant_bf16,
    [DT_Q4_0] = quant_q4_0,
    [DT_Q4_1] = quant_q4_1,
    [DT_Q5_0] = quant_q5_0,
    [DT_Q5_1] = quant_q5_1,
    [DT_Q8_0] = quant_q8_0,
    [DT_Q4_K] = quant_q4_k,
    [DT_Q5_K] = quant_q5_k,
    [DT_Q6_K] = quant_q6_k,
};
/* clang-format on */

bool quant_has(dtype t)
{
    return (unsigned)t < DT_COUNT && table[t];
}

void quant_row(dtype t, const float *src, const float *importance, void *dst, int64_t n)
{
    table[t](src, importance, dst, n);
}
