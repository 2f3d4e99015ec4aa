/* dot_impl.h - what the cores share: scales, prefetching, and the making of a core. */
#ifndef WEFT_KERNELS_C_DOT_IMPL_H
#define WEFT_KERNELS_C_DOT_IMPL_H

#include "kernels/c/dot_c.h"
#include "kernels/c/half.h"
#include "kernels/c/lanes.h"

/* 32 numbers as bytes. */
typedef struct {
    i8x16 a, b;
} bytes32;

/* A weight row follows another, so what is needed soon lies far ahead: so many bytes. It pays for F32
 * and Q8_0, whose cores would be as fast as memory allows: on two Neoverse V1 cores F32 goes from 48 to
 * 64 GB/s, Q8_0 from 28 to 29. Others take longer to unpack than to fetch, and a hint is one
 * instruction more. */
enum { DOT_AHEAD = 24 << 10 };
LANES_INLINE void prefetch(const uint8_t *p)
{
#if defined(__GNUC__)
    __builtin_prefetch((const void *)((uintptr_t)p + DOT_AHEAD), 0, 1);
#else
    (void)p;
#endif
}

/* The scale of a block. */
LANES_INLINE float half_at(const uint8_t *p)
{
#if defined(__ARM_FP16_FORMAT_IEEE)
    __fp16 h;
    memcpy(&h, p, sizeof h);
    return (float)h;
#else
    return half_from_f16((uint16_t)(p[0] | p[1] << 8));
#endif
}

/* 16 bytes of 4-bit codes: number j in the low half of byte j, number j + 16 in the high one. */
LANES_INLINE bytes32 nibbles_at(const uint8_t *p)
{
    i8x16 c = bytes_at(p);
    return (bytes32){bytes_bits(c, 0, 15, 0), bytes_bits(c, 4, 15, 0)};
}

/* The 16 values of IQ4_NL and IQ4_XS. */
static const int8_t dot_iq4_values[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                          1,    13,   25,  38,  53,  69,  89,  113};

/* The two functions of a core, from `name`, which is inlined with 1 and 4. */
#define DOT_CORE(name)                                                                             \
    static void name##_1(const void *w, const void *const *x, int64_t n, float *out)               \
    {                                                                                              \
        name(w, x, n, out, 1);                                                                     \
    }                                                                                              \
    static void name##_4(const void *w, const void *const *x, int64_t n, float *out)               \
    {                                                                                              \
        name(w, x, n, out, 4);                                                                     \
    }

extern const dot_core dot_core_F32, dot_core_F16, dot_core_BF16;
extern const dot_core dot_core_Q8_0, dot_core_Q4_0, dot_core_Q4_1, dot_core_Q5_0, dot_core_Q5_1,
    dot_core_IQ4_NL, dot_core_MXFP4;
extern const dot_core dot_core_Q2_K, dot_core_Q3_K, dot_core_Q4_K, dot_core_Q5_K, dot_core_Q6_K,
    dot_core_IQ4_XS;

#endif
