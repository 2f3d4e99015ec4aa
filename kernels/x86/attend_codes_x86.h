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

/* ---- products by form and number of queries ---- */

/* Lanes from `lane` on, n_v vectors of them, for n_q queries. */
X86_INLINE void products_at(const codes_whole *x, const codes_operand *codes, int64_t lane,
                            const char *hint, int64_t hint_lines, float (*out)[KEYS], bool half,
                            int n_q, int n_v)
{
    const uint8_t *at = codes->at + lane * PAGE_QUAD;
    codes_sums sums[CODES_TILE][4];
#pragma GCC unroll 4
    for (int g = 0; g < n_q; g++)
#pragma GCC unroll 4
        for (int v = 0; v < n_v; v++)
            sums[g][v] = sums_begin(codes_offset(x, g, half));
    for (int64_t i = 0; i < codes->quads; i += half ? 2 : 1) {
        codes_loaded code[4];
        for (int64_t j = 0; j < hint_lines; j++, hint += LINE)
            _mm_prefetch(hint, _MM_HINT_T1);
#pragma GCC unroll 4
        for (int v = 0; v < n_v; v++)
            code[v] = codes_load(at + v * WIDE * PAGE_QUAD, half);
        quad_add(&x->quad[i], code, sums, n_q, n_v);
#pragma GCC unroll 4
        for (int v = 0; half && v < n_v; v++)
            code[v] = codes_upper(code[v]);
        if (half)
            quad_add(&x->quad[i + 1], code, sums, n_q, n_v);
        at += codes->pitch;
    }
#pragma GCC unroll 4
    for (int g = 0; g < n_q; g++)
#pragma GCC unroll 4
        for (int v = 0; v < n_v; v++)
            vf_store(out[g] + lane + v * WIDE, sums_end(sums[g][v]));
}

/* So many vectors of codes at a time that sums do not wait for each other, and fit into registers. */
X86_INLINE void products_of(const codes_whole *x, const codes_operand *codes, float (*out)[KEYS],
                            bool half, int n_q)
{
    const int n_v = n_q > 2 ? 2 : 4;
    int64_t steps = codes->quads / (half ? 2 : 1), turns = codes->lanes / (n_v * WIDE), lane = 0;
    int64_t lines =
        codes->hint && turns ? (codes->hint_bytes / LINE + steps * turns - 1) / (steps * turns) : 0;
    for (int64_t i = 0; i < turns; i++, lane += n_v * WIDE)
        products_at(x, codes, lane, lines ? codes->hint + i * steps * lines * LINE : NULL, lines,
                    out, half, n_q, n_v);
    for (; lane < codes->lanes; lane += WIDE)
        products_at(x, codes, lane, NULL, 0, out, half, n_q, 1);
}

#define PRODUCTS(half, n)                                                                          \
    static void products_##half##_##n(const codes_whole *x, const codes_operand *codes,            \
                                      float(*out)[KEYS])                                           \
    {                                                                                              \
        products_of(x, codes, out, half, n);                                                       \
    }
PRODUCTS(0, 1)
PRODUCTS(0, 2)
PRODUCTS(0, 3)
PRODUCTS(0, 4)
PRODUCTS(1, 1)
PRODUCTS(1, 2)
PRODUCTS(1, 3)
PRODUCTS(1, 4)
#undef PRODUCTS

static void codes_products(const codes_whole *x, const codes_operand *codes, int64_t n_q,
                           float (*out)[KEYS])
{
    typedef void products_fn(const codes_whole *, const codes_operand *, float(*)[KEYS]);
    static products_fn *const by[2][CODES_TILE] = {
        {products_0_1, products_0_2, products_0_3, products_0_4},
        {products_1_1, products_1_2, products_1_3, products_1_4}};
    by[codes->half][n_q - 1](x, codes, out);
}

#endif
