/* peaks_aarch64.c - fmla, sdot, smmla and bfmmla: the products of four vectors and four others, loaded anew
 * in each step as a matrix product does.
 *
 * The loads matter: a Neoverse-V1 multiplies at half its rate when both operands were last written by vector
 * arithmetic, so operands that stay in registers do not show the peak. */
#include "kernels/peaks/peaks_impl.h"

#include <arm_neon.h>
#include <string.h>

enum { VECTOR_BYTES = 16 };

/* clang-format off */
/* Sum i is of the products of vectors i / 4 and 4 + i % 4. */
#define EACH_PAIR(F)                                      \
    F(0, 0, 4)  F(1, 0, 5)  F(2, 0, 6)  F(3, 0, 7)        \
    F(4, 1, 4)  F(5, 1, 5)  F(6, 1, 6)  F(7, 1, 7)        \
    F(8, 2, 4)  F(9, 2, 5)  F(10, 2, 6) F(11, 2, 7)       \
    F(12, 3, 4) F(13, 3, 5) F(14, 3, 6) F(15, 3, 7)
/* clang-format on */
#define EACH_VECTOR(F) F(0) F(1) F(2) F(3) F(4) F(5) F(6) F(7)

#define BEGIN(i, x, y) SUMS s##i = FILL(one * i);
#define LOAD(i) VECTOR v##i = GET(from + i * VECTOR_BYTES);
#define STEP(i, x, y) s##i = MULTIPLY(s##i, v##x, v##y);
#define ADD(i, x, y) s0 = PLUS(s0, s##i);

/* The asm says that the operands may have changed, or it would load them once; bytes of 0x3c are small
 * positive numbers in every type. The body of a function, with the names above defined for its type. */
#define RUN(lane, loads)                                                                           \
    int one = peak_one();                                                                          \
    _Alignas(64) int8_t operands[8 * VECTOR_BYTES];                                                \
    const int8_t *from = operands;                                                                 \
    memset(operands, 0x3b + one, sizeof operands);                                                 \
    EACH_PAIR(BEGIN)                                                                               \
    for (int64_t n = 0; n < steps; n++) {                                                          \
        if (loads)                                                                                 \
            __asm__ volatile("" : : "r"(from) : "memory");                                         \
        EACH_VECTOR(LOAD)                                                                          \
        EACH_PAIR(STEP)                                                                            \
    }                                                                                              \
    EACH_PAIR(ADD)                                                                                 \
    return (double)lane(s0, 0);

static inline float32x4_t load_f32(const int8_t *p)
{
    return vreinterpretq_f32_s8(vld1q_s8(p));
}
static inline bfloat16x8_t load_bf16(const int8_t *p)
{
    return vreinterpretq_bf16_s8(vld1q_s8(p));
}
static inline float32x4_t float_sums(int x)
{
    return vdupq_n_f32((float)x);
}

#define SUMS float32x4_t
#define FILL float_sums
#define PLUS vaddq_f32
#define VECTOR float32x4_t
#define GET load_f32
#define MULTIPLY vfmaq_f32
static double run_fmla(int64_t steps)
{
    RUN(vgetq_lane_f32, true)
}
#undef VECTOR
#undef GET
#undef MULTIPLY

#define VECTOR bfloat16x8_t
#define GET load_bf16
#define MULTIPLY vbfmmlaq_f32
static double run_bfmmla(int64_t steps)
{
    RUN(vgetq_lane_f32, false) /* as loaded before the loop: 4 a cycle, not 3.2 */
}
#undef SUMS
#undef FILL
#undef PLUS
#undef VECTOR
#undef GET
#undef MULTIPLY

#define SUMS int32x4_t
#define FILL vdupq_n_s32
#define PLUS vorrq_s32 /* a sum would overflow */
#define VECTOR int8x16_t
#define GET vld1q_s8
#define MULTIPLY vdotq_s32
static double run_sdot(int64_t steps)
{
    RUN(vgetq_lane_s32, true)
}
#undef MULTIPLY

#define MULTIPLY vmmlaq_s32
static double run_smmla(int64_t steps)
{
    RUN(vgetq_lane_s32, true)
}

/* clang-format off */
const peak_row peaks_aarch64[] = {
    {"fmla",   PEAK_F32,  CPU_NEON,    2.0 * 4 * PEAK_SUMS,  run_fmla, NULL},
    {"sdot",   PEAK_INT8, CPU_DOTPROD, 2.0 * 16 * PEAK_SUMS, run_sdot, NULL},
    {"smmla",  PEAK_INT8, CPU_I8MM,    2.0 * 32 * PEAK_SUMS, run_smmla, NULL},
    {"bfmmla", PEAK_BF16, CPU_BF16,    2.0 * 16 * PEAK_SUMS, run_bfmmla, NULL},
    {.name = NULL},
};
/* clang-format on */
