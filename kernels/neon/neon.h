/* neon.h - what the NEON kernels share. */
#ifndef WEFT_KERNELS_NEON_NEON_H
#define WEFT_KERNELS_NEON_NEON_H

#include <arm_neon.h>
#include "kernels/kernels.h"

/* How far ahead of its use a line of weights is asked for. Measured on Neoverse-V1 with two threads: 8 KB
 * ahead gives 63 GB/s, 24 to 64 KB 78 GB/s, no hint 52. */
enum { NEON_AHEAD = 24 * 1024 };

/* Past the end of a weight the hint does nothing. */
static inline void neon_hint(const void *p)
{
    __asm__ volatile("prfm pldl3keep, [%0, %1]" ::"r"(p), "r"((int64_t)NEON_AHEAD));
}

static inline int8x16_t neon_load(const void *p)
{
    return vld1q_s8(p);
}

/* Eight bytes in both halves. */
static inline int8x16_t neon_twice(const void *p)
{
    return vreinterpretq_s8_s64(vld1q_dup_s64(p));
}

/* Eight neighbouring columns of a row of the result, plus their bias. */
static inline void neon_store8(const kargs *k, int64_t row, int64_t col, const float32x4_t sum[2])
{
    float *out = (float *)((char *)k->out[0] + row * k->out_pitch[0]) + col;
    const float *bias = k->in[2]; /* [m] or NULL */
    vst1q_f32(out, bias ? vaddq_f32(sum[0], vld1q_f32(bias + col)) : sum[0]);
    vst1q_f32(out + 4, bias ? vaddq_f32(sum[1], vld1q_f32(bias + col + 4)) : sum[1]);
}

#endif
