/* attend_codes_dotprod.c - products of codes with sdot: a number is 128 * high + low, so that two instructions take it. A
 * code loses its offset (q4's nibbles keep theirs, which the sums begin without), and a lane is a token or a column.
 *
 * Four queries and two vectors have sixteen sums: of 64 channels and one position that is 32 instructions for four queries,
 * with values 64, where products of floats take 128 and 32 to convert f16. */
#include "kernels/neon/attend_codes_dotprod.h"

#include "kernels/neon/neon.h"

enum { WIDE = 4 };

typedef struct {
    int32x4_t high, low;
} codes_sums;

typedef struct {
    int8x16_t code;
    uint8x16_t stored;
} codes_loaded;

NEON_INLINE void vf_store(float *p, float32x4_t a)
{
    vst1q_f32(p, a);
}

NEON_INLINE codes_sums sums_begin(const codes_whole *x, int64_t g, bool half)
{
    int32_t low = half ? codes_offset(x, g, true) : 0;
    return (codes_sums){vdupq_n_s32(0), vdupq_n_s32(low)};
}

NEON_INLINE float32x4_t sums_end(codes_sums s)
{
    return vcvtq_f32_s32(vaddq_s32(vshlq_n_s32(s.high, 7), s.low));
}

NEON_INLINE codes_loaded codes_load(const uint8_t *at, bool half)
{
    uint8x16_t x = vld1q_u8(at);
    uint8x16_t code = half ? vandq_u8(x, vdupq_n_u8(15)) : veorq_u8(x, vdupq_n_u8(PAGE_OFFSET));
    return (codes_loaded){vreinterpretq_s8_u8(code), x};
}

NEON_INLINE codes_loaded codes_upper(codes_loaded x)
{
    x.code = vreinterpretq_s8_u8(vshrq_n_u8(x.stored, 4));
    return x;
}

NEON_INLINE void quad_add(const int8_t (*quad)[4][16], const codes_loaded *code,
                          codes_sums sums[4][4], int n_q, int n_v)
{
#pragma GCC unroll 4
    for (int g = 0; g < n_q; g++) {
        int8x8_t x = vld1_s8((*quad)[g]);
#pragma GCC unroll 4
        for (int v = 0; v < n_v; v++) {
            sums[g][v].high = vdotq_lane_s32(sums[g][v].high, code[v].code, x, 0);
            sums[g][v].low = vdotq_lane_s32(sums[g][v].low, code[v].code, x, 1);
        }
    }
}

NEON_INLINE void codes_fetch(const char *p)
{
    __asm__ volatile("prfm pldl3keep, [%0]" ::"r"(p));
}

#define CODES_INLINE NEON_INLINE
#define CODES_STATIC
#define CODES_VECTORS(n_q) ((n_q) > 2 ? 2 : 4)
#define CODES_NAME attend_codes_sdot
#include "kernels/c/attend_codes_products.h"
