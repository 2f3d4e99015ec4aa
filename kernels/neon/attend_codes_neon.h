/* attend_codes_neon.h - c/attend_codes.h for NEON: its vectors of four floats, and products of codes with smlal. Processors
 * with dot products take those of attend_codes_dotprod.c: the sums are exact, so that either gives the same bits. */
#ifndef WEFT_KERNELS_NEON_ATTEND_CODES_NEON_H
#define WEFT_KERNELS_NEON_ATTEND_CODES_NEON_H

#include "kernels/c/half.h"
#include "kernels/neon/attend_codes_dotprod.h"
#include "kernels/neon/vec_neon.h"
#include "runtime/base/cpu.h"

typedef float32x4_t vf;
typedef int32x4_t vi;
typedef uint32x4_t vm;
enum { WIDE = 4 };
#define CODES_INLINE NEON_INLINE

NEON_INLINE vf vf_load(const float *p)
{
    return vld1q_f32(p);
}
NEON_INLINE void vf_store(float *p, vf a)
{
    vst1q_f32(p, a);
}
NEON_INLINE vf vf_all(float x)
{
    return vdupq_n_f32(x);
}
NEON_INLINE vf vf_add(vf a, vf b)
{
    return vaddq_f32(a, b);
}
NEON_INLINE vf vf_sub(vf a, vf b)
{
    return vsubq_f32(a, b);
}
NEON_INLINE vf vf_mul(vf a, vf b)
{
    return vmulq_f32(a, b);
}
NEON_INLINE vf vf_div(vf a, vf b)
{
    return vdivq_f32(a, b);
}
NEON_INLINE vf vf_fma(vf a, vf b, vf c)
{
    return vfmaq_f32(c, a, b);
}
NEON_INLINE vf vf_max(vf a, vf b)
{
    return vmaxq_f32(a, b);
}
NEON_INLINE vi vi_all(int32_t x)
{
    return vdupq_n_s32(x);
}
NEON_INLINE vi vi_add(vi a, vi b)
{
    return vaddq_s32(a, b);
}
NEON_INLINE vi vi_bits(vf a)
{
    return vreinterpretq_s32_f32(a);
}
NEON_INLINE vf vf_of_bits(vi a)
{
    return vreinterpretq_f32_s32(a);
}
NEON_INLINE vi vi_whole(vf a)
{
    return vcvtnq_s32_f32(a);
}
NEON_INLINE vi vi_magnitude_max(vi a, vi b)
{
    uint32x4_t magnitude = vbicq_u32(vreinterpretq_u32_s32(b), vdupq_n_u32(0x80000000u));
    return vreinterpretq_s32_u32(vmaxq_u32(vreinterpretq_u32_s32(a), magnitude));
}
NEON_INLINE vm vm_less(vf a, vf b)
{
    return vcltq_f32(a, b);
}
NEON_INLINE vm vm_within_f(vf a, vf b, vf c)
{
    return vandq_u32(vcleq_f32(a, b), vcltq_f32(b, c));
}
NEON_INLINE vf vf_choose(vm m, vf a, vf b)
{
    return vbslq_f32(m, a, b);
}

NEON_INLINE vf vf_four(const float *p)
{
    return vld1q_f32(p);
}
NEON_INLINE vf vf_fours(void)
{
    static const float count[4] = {0, 1, 2, 3};
    return vld1q_f32(count);
}
NEON_INLINE vf vf_each(const float *p)
{
    return vld1q_dup_f32(p);
}
NEON_INLINE void vf_each_put(float *p, vf x)
{
    vst1q_lane_f32(p, x, 0);
}
NEON_INLINE vf fours_sum(vf x)
{
    x = vaddq_f32(x, vextq_f32(x, x, 2));
    return vaddq_f32(x, vrev64q_f32(x));
}
NEON_INLINE vf fours_max(vf x)
{
    return vdupq_n_f32(vmaxvq_f32(x));
}
NEON_INLINE vi fours_sum_i(vi x)
{
    return vdupq_n_s32(vaddvq_s32(x));
}
NEON_INLINE vi fours_max_i(vi x)
{
    return vreinterpretq_s32_u32(vdupq_n_u32(vmaxvq_u32(vreinterpretq_u32_s32(x))));
}
NEON_INLINE vf codes_exp2(vf x)
{
    return neon_exp2_below(x);
}

NEON_INLINE void tokens_turn(float (*s)[ATTEND_KEYS], int64_t j, vf to[16])
{
    for (int i = 0; i < 16; i++)
        to[i] = vld1q_f32(s[i % 4] + 16 * j + i / 4 * 4);
}

static void codes_steps(const uint16_t *from, int64_t n, float *to)
{
    halves_from_f16(from, to, n);
}

/* For sdot the upper eight bits of four numbers and their lower seven; for smlal the numbers as words. */
NEON_INLINE void quad_put(int8_t *to, vi x)
{
    int16x4_t words = vmovn_s32(x);
    int16x8_t parts = vcombine_s16(vshr_n_s16(words, 7), vand_s16(words, vdup_n_s16(127)));
    vst1_s8(to, vmovn_s16(parts));
    vst1_s16((int16_t *)(void *)(to + 8), words);
}

#include "kernels/c/attend_codes.h"

/* ---- products with smlal ---- */

/* Four tokens or columns, each with the four sums of a quad's numbers. */
typedef struct {
    int32x4_t sum[4];
} codes_sums;

typedef struct {
    uint8x16_t code, stored;
} codes_loaded;

NEON_INLINE codes_sums sums_begin(const codes_whole *x, int64_t g, bool half)
{
    int32x4_t first = vsetq_lane_s32(codes_offset(x, g, half), vdupq_n_s32(0), 0);
    return (codes_sums){{first, first, first, first}};
}

NEON_INLINE float32x4_t sums_end(codes_sums s)
{
    return vcvtq_f32_s32(
        vpaddq_s32(vpaddq_s32(s.sum[0], s.sum[1]), vpaddq_s32(s.sum[2], s.sum[3])));
}

NEON_INLINE codes_loaded codes_load(const uint8_t *at, bool half)
{
    uint8x16_t x = vld1q_u8(at);
    return (codes_loaded){half ? vandq_u8(x, vdupq_n_u8(15)) : x, x};
}

NEON_INLINE codes_loaded codes_upper(codes_loaded x)
{
    x.code = vshrq_n_u8(x.stored, 4);
    return x;
}

NEON_INLINE void quad_add(const int8_t (*quad)[4][16], const codes_loaded *code,
                          codes_sums sums[4][4], int n_q, int n_v)
{
#pragma GCC unroll 4
    for (int v = 0; v < n_v; v++) {
        int16x8_t low = vreinterpretq_s16_u16(vmovl_u8(vget_low_u8(code[v].code)));
        int16x8_t high = vreinterpretq_s16_u16(vmovl_high_u8(code[v].code));
#pragma GCC unroll 4
        for (int g = 0; g < n_q; g++) {
            int16x4_t x = vld1_s16((const int16_t *)(const void *)((*quad)[g] + 8));
            int32x4_t *sum = sums[g][v].sum;
            sum[0] = vmlal_s16(sum[0], vget_low_s16(low), x);
            sum[1] = vmlal_s16(sum[1], vget_high_s16(low), x);
            sum[2] = vmlal_s16(sum[2], vget_low_s16(high), x);
            sum[3] = vmlal_s16(sum[3], vget_high_s16(high), x);
        }
    }
}

NEON_INLINE void codes_fetch(const char *p)
{
    __asm__ volatile("prfm pldl3keep, [%0]" ::"r"(p));
}

/* One vector at a time: four queries have sixteen sums. */
#define CODES_STATIC static
#define CODES_VECTORS(n_q) 1
#define CODES_NAME codes_products_smlal
#include "kernels/c/attend_codes_products.h"

static void codes_products(const codes_whole *x, const codes_operand *codes, int64_t n_q,
                           float (*out)[KEYS])
{
    if (cpu_features() & CPU_DOTPROD)
        attend_codes_sdot(x, codes, n_q, out);
    else
        codes_products_smlal(x, codes, n_q, out);
}

#endif
