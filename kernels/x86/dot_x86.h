/* dot_x86.h - the cores (kernels/c/dot_c.h) of each x86 variant: a weight row times one or four rows of
 * activations. */
#ifndef WEFT_KERNELS_X86_DOT_X86_H
#define WEFT_KERNELS_X86_DOT_X86_H

#include "kernels/c/dot_c.h"

/* Stored type, and its name in functions. Whole numbers take f32 and have cores of each variant; blocks take ACT_Q8, the
 * last of them ACT_Q8K, and have AVX2's: AVX-512 wants them interleaved. */
#define X86_FLOATS(X)                                                                              \
    X(F32, f32)                                                                                    \
    X(F16, f16)                                                                                    \
    X(BF16, bf16)
#define X86_BLOCKS(X)                                                                              \
    X(Q8_0, q8_0)                                                                                  \
    X(Q4_0, q4_0)                                                                                  \
    X(Q4_1, q4_1)                                                                                  \
    X(Q5_0, q5_0)                                                                                  \
    X(Q5_1, q5_1)                                                                                  \
    X(IQ4_NL, iq4_nl)                                                                              \
    X(MXFP4, mxfp4)                                                                                \
    X(Q2_K, q2_k)                                                                                  \
    X(Q3_K, q3_k)                                                                                  \
    X(Q4_K, q4_k)                                                                                  \
    X(Q5_K, q5_k)                                                                                  \
    X(Q6_K, q6_k)                                                                                  \
    X(IQ4_XS, iq4_xs)

#define X86_DECLARE(type, name) extern const dot_core dot_avx2_##name;
X86_FLOATS(X86_DECLARE)
X86_BLOCKS(X86_DECLARE)
#undef X86_DECLARE
extern const dot_core dot_avx512_f32, dot_avx512_f16, dot_avx512_bf16;

#endif
