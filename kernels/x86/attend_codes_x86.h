/* attend_codes_x86.h - c/attend_codes.h with the vectors of attend_vec.h; what multiplies codes is in attend_codes_avx512.h
 * or attend_codes_avx2.h. */
#ifndef WEFT_KERNELS_X86_ATTEND_CODES_X86_H
#define WEFT_KERNELS_X86_ATTEND_CODES_X86_H

#include "kernels/x86/attend_x86.h"
#define CODES_INLINE X86_INLINE

X86_INLINE vf vf_div(vf a, vf b)
{
    return WIDE_OP(div_ps)(a, b);
}
X86_INLINE vi vi_whole(vf a)
{
    return WIDE_OP(cvtps_epi32)(a);
}
X86_INLINE vf codes_exp2(vf x)
{
    return exp2_below(x);
}
X86_INLINE void codes_steps(const uint16_t *from, int64_t n, float *to)
{
    for (int64_t c = 0; c < n; c += WIDE)
        vf_store(to + c, vf_from_f16(from + c));
}

#ifdef ATTEND_AVX2
#include "kernels/x86/attend_codes_avx2.h"
#else
#include "kernels/x86/attend_codes_avx512.h"
#endif

/* ---- within four lanes ---- */

/* Those two apart change places, or those next to each other. */
#define TURN(name, T, op, order)                                                                   \
    X86_INLINE T name(T x)                                                                         \
    {                                                                                              \
        return WIDE_OP(op)(x, order);                                                              \
    }
TURN(turn_2_vf, vf, permute_ps, 0x4e)
TURN(turn_1_vf, vf, permute_ps, 0xb1)
TURN(turn_2_vi, vi, shuffle_epi32, 0x4e)
TURN(turn_1_vi, vi, shuffle_epi32, 0xb1)
#undef TURN

#define FOURS(name, T, op)                                                                         \
    X86_INLINE T name(T x)                                                                         \
    {                                                                                              \
        x = op(x, turn_2_##T(x));                                                                  \
        return op(x, turn_1_##T(x));                                                               \
    }
FOURS(fours_sum, vf, vf_add)
FOURS(fours_max, vf, vf_max)
FOURS(fours_sum_i, vi, vi_add)
FOURS(fours_max_i, vi, vi_magnitude_max)
#undef FOURS

#include "kernels/c/attend_codes.h"

X86_INLINE void codes_fetch(const char *p)
{
    _mm_prefetch(p, _MM_HINT_T1);
}

#define CODES_STATIC static
#define CODES_VECTORS(n_q) ((n_q) > 2 ? 2 : 4)
#define CODES_NAME codes_products
#include "kernels/c/attend_codes_products.h"

#endif
