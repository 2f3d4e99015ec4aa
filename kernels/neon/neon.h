/* neon.h - what the NEON kernels share. */
#ifndef WEFT_KERNELS_NEON_NEON_H
#define WEFT_KERNELS_NEON_NEON_H

#include <arm_neon.h>
#include "kernels/kernels.h"

/* Loops are written once for all types, and inlined with what is constant for each. */
#define NEON_INLINE static inline __attribute__((always_inline))

/* Of weights, which nobody writes while a plan runs, the thread sanitizer need not be told: it takes ten times the time
 * of everything else. A function of NEON_UNTOLD tells it nothing; its caller tells, once, of what else is read there. */
#ifdef __SANITIZE_THREAD__
void __tsan_read_range(void *p, unsigned long bytes);
#define NEON_UNTOLD __attribute__((noinline, no_sanitize("thread")))
#define NEON_TELL(p, bytes) __tsan_read_range((void *)(p), (unsigned long)(bytes))
#else
#define NEON_UNTOLD
#define NEON_TELL(p, bytes) ((void)0)
#endif

/* How far ahead of its use a line of weights is asked for. Measured on Neoverse-V1 with two threads: 8 KB
 * ahead gives 63 GB/s, 24 to 64 KB 78 GB/s, no hint 52. */
enum { NEON_AHEAD = 24 * 1024, NEON_LINE = 64 };

/* Every line of `bytes` bytes, some way ahead; past the end of a weight the hint does nothing. What comes
 * next begins where these end, so that no line is left out. */
NEON_INLINE void neon_hint(const void *p, int bytes)
{
    for (int line = 0; line < bytes; line += NEON_LINE)
        __asm__ volatile("prfm pldl3keep, [%0, %1]" ::"r"((const char *)p + line),
                         "r"((int64_t)NEON_AHEAD));
}

/* The same into the first cache, for loops that take less time than memory: one core of a Neoverse N1 reads some 15 GB/s
 * and waits 0.1 us for a line, so that 1.5 KB are on their way at any time, and a far hint is no more than a wish where there
 * is no third cache. Not measured there. */
enum { NEON_NEAR = 4 * 1024 };
NEON_INLINE void neon_hint_near(const void *p, int bytes)
{
    for (int line = 0; line < bytes; line += NEON_LINE)
        __asm__ volatile("prfm pldl1keep, [%0, %1]" ::"r"((const char *)p + line),
                         "r"((int64_t)NEON_NEAR));
}

NEON_INLINE int8x16_t neon_load(const void *p)
{
    return vld1q_s8(p);
}

/* Eight bytes in both halves. */
NEON_INLINE int8x16_t neon_twice(const void *p)
{
    return vreinterpretq_s8_s64(vld1q_dup_s64(p));
}

/* Eight f16 as f32. */
NEON_INLINE void neon_halves(const void *p, float32x4_t to[2])
{
    float16x8_t h = vreinterpretq_f16_u8(vld1q_u8(p));
    to[0] = vcvt_f32_f16(vget_low_f16(h));
    to[1] = vcvt_high_f32_f16(h);
}

/* Eight neighbouring columns of a row of the result, plus their bias. */
NEON_INLINE void neon_store8(float *out, const float *bias, const float32x4_t sum[2])
{
    vst1q_f32(out, bias ? vaddq_f32(sum[0], vld1q_f32(bias)) : sum[0]);
    vst1q_f32(out + 4, bias ? vaddq_f32(sum[1], vld1q_f32(bias + 4)) : sum[1]);
}

#endif
