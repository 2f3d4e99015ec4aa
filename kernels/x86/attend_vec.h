/* attend_vec.h - the vectors of attend_x86.h: vf of floats, vi of integers, vm of truths, WIDE to each.
 *
 * Of eight if ATTEND_AVX2 is defined, else of 16. */
#ifndef WEFT_KERNELS_X86_ATTEND_VEC_H
#define WEFT_KERNELS_X86_ATTEND_VEC_H

#ifdef ATTEND_AVX2
#include "kernels/x86/attend_vec_avx2.h"
#else
#include "kernels/x86/attend_vec_avx512.h"
#endif

X86_INLINE vf vf_load(const float *p)
{
    return WIDE_OP(loadu_ps)(p);
}
X86_INLINE void vf_store(float *p, vf a)
{
    WIDE_OP(storeu_ps)(p, a);
}
X86_INLINE vf vf_all(float x)
{
    return WIDE_OP(set1_ps)(x);
}
X86_INLINE vf vf_add(vf a, vf b)
{
    return WIDE_OP(add_ps)(a, b);
}
X86_INLINE vf vf_sub(vf a, vf b)
{
    return WIDE_OP(sub_ps)(a, b);
}
X86_INLINE vf vf_mul(vf a, vf b)
{
    return WIDE_OP(mul_ps)(a, b);
}
X86_INLINE vf vf_fma(vf a, vf b, vf c)
{
    return WIDE_OP(fmadd_ps)(a, b, c);
}
X86_INLINE vf vf_max(vf a, vf b)
{
    return WIDE_OP(max_ps)(a, b);
}
X86_INLINE vi vi_all(int32_t x)
{
    return WIDE_OP(set1_epi32)(x);
}
X86_INLINE vi vi_add(vi a, vi b)
{
    return WIDE_OP(add_epi32)(a, b);
}

#endif
