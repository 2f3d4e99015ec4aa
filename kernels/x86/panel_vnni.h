/* panel_vnni.h - a panel (panel_layout.h) times a tile of activations with vpdpbusd, in either width of registers.
 *
 * vpdpbusd adds four products of bytes to a dword. Sums begin with what the offset of codes adds, taken away, which costs
 * nothing. Instructions for 32 columns of a register and one row of activations, of which two ports take two a cycle:
 *
 *     blocks of 32     8 vpdpbusd, cvt, mul, fma (two with minima): 11, 5.5 cycles
 *     blocks of 256    8 vpdpbusd, cvt, fma (both twice where scales are of 16): 10 or 12; once in 256 columns mul, fma, and
 *                      4 or 8 vpdpwssd with minima */
#ifndef WEFT_KERNELS_X86_PANEL_VNNI_H
#define WEFT_KERNELS_X86_PANEL_VNNI_H

#include "kernels/x86/panel_layout.h"

#if PANEL_ROWS == 32
typedef __m512i vec;
typedef __m512 vecf;

X86_INLINE vec vec_load(const void *p)
{
    return _mm512_loadu_si512(p);
}
X86_INLINE vec vec_repeat(const void *four)
{
    int32_t v;
    memcpy(&v, four, sizeof v);
    return _mm512_set1_epi32(v);
}
X86_INLINE vec vec_set(int32_t x)
{
    return _mm512_set1_epi32(x);
}
X86_INLINE vec vec_dot(vec z, vec codes, vec acts)
{
    return _mm512_dpbusd_epi32(z, codes, acts);
}
X86_INLINE vec vec_dot16(vec z, vec a, vec b)
{
    return _mm512_dpwssd_epi32(z, a, b);
}
X86_INLINE vecf vecf_load(const float *p)
{
    return _mm512_loadu_ps(p);
}
X86_INLINE void vecf_store(float *p, vecf v)
{
    _mm512_storeu_ps(p, v);
}
X86_INLINE vecf vecf_set(float x)
{
    return _mm512_set1_ps(x);
}
X86_INLINE vecf vecf_of(vec z)
{
    return _mm512_cvtepi32_ps(z);
}
X86_INLINE vecf vecf_mul(vecf a, vecf b)
{
    return _mm512_mul_ps(a, b);
}
X86_INLINE vecf vecf_add(vecf a, vecf b, vecf c)
{
    return _mm512_fmadd_ps(a, b, c);
}
#else
typedef __m256i vec;
typedef __m256 vecf;

/* Once: compilers would load it again for each use, and loads become the limit. */
X86_INLINE vec vec_load(const void *p)
{
    vec v = _mm256_loadu_si256(p);
    __asm__("" : "+x"(v));
    return v;
}
X86_INLINE vec vec_repeat(const void *four)
{
    int32_t v;
    memcpy(&v, four, sizeof v);
    return _mm256_set1_epi32(v);
}
X86_INLINE vec vec_set(int32_t x)
{
    return _mm256_set1_epi32(x);
}
X86_INLINE vec vec_dot(vec z, vec codes, vec acts)
{
    return _mm256_dpbusd_avx_epi32(z, codes, acts);
}
X86_INLINE vec vec_dot16(vec z, vec a, vec b)
{
    return _mm256_dpwssd_avx_epi32(z, a, b);
}
X86_INLINE vecf vecf_load(const float *p)
{
    return _mm256_loadu_ps(p);
}
X86_INLINE void vecf_store(float *p, vecf v)
{
    _mm256_storeu_ps(p, v);
}
X86_INLINE vecf vecf_set(float x)
{
    return _mm256_set1_ps(x);
}
X86_INLINE vecf vecf_of(vec z)
{
    return _mm256_cvtepi32_ps(z);
}
X86_INLINE vecf vecf_mul(vecf a, vecf b)
{
    return _mm256_mul_ps(a, b);
}
X86_INLINE vecf vecf_add(vecf a, vecf b, vecf c)
{
    return _mm256_fmadd_ps(a, b, c);
}
#endif

enum { TILE = 4, LANES = PANEL_ROWS / 2 };

/* Steps of 4 columns, added to z, of two registers of weights and each row. */
X86_INLINE void multiply_steps(const uint8_t *w, const panel_tile *x, int64_t col, int steps,
                               int count, vec z[TILE][2])
{
#pragma GCC unroll 8
    for (int s = 0; s < steps; s++) {
        const vec w0 = vec_load(w + s * PANEL_STEP), w1 = vec_load(w + s * PANEL_STEP + PANEL_REG);
#pragma GCC unroll 4
        for (int i = 0; i < count; i++) {
            const vec v = vec_repeat(x->q[i] + col + s * 4);
            z[i][0] = vec_dot(z[i][0], w0, v);
            z[i][1] = vec_dot(z[i][1], w1, v);
        }
    }
}

/* *t += z * d */
X86_INLINE void add_to(float *t, vec z, vecf d)
{
    vecf_store(t, vecf_add(vecf_of(z), d, vecf_load(t)));
}

X86_INLINE void multiply32(const uint8_t *w, const panel_acts *acts, float *t,
                           const panel_type *type, int count)
{
    const panel_layout l = panel_layout32(type->has_min, 1);
    const panel_tile x = panel_tile_of(ACT_Q8, acts, count);
    int32_t start[TILE][PANEL_COLS / 32];
    float sum[TILE][PANEL_COLS / 32];
    for (int i = 0; i < count; i++)
        panel_begin32(&x, i, acts->cols, type->offset, start[i], type->has_min, sum[i]);
    memset(t, 0, (size_t)count * PANEL_ROWS * sizeof *t);
    for (int64_t k = 0; k < acts->cols / 32; k++, w += l.bytes) {
        const float *d = (const float *)(const void *)(w + l.d);
        vec z[TILE][2];
        for (int i = 0; i < count; i++)
            z[i][0] = z[i][1] = vec_set(type->offset ? start[i][k] : 0);
        multiply_steps(w, &x, k * 32, 8, count, z);
        for (int h = 0; h < 2; h++)
#pragma GCC unroll 4
            for (int i = 0; i < count; i++) {
                float *at = t + i * PANEL_ROWS + h * LANES;
                vecf both = vecf_mul(vecf_load(d + h * LANES), vecf_set(x.d[i][k]));
                add_to(at, z[i][h], both);
                if (type->has_min)
                    vecf_store(at, vecf_add(vecf_load(d + PANEL_ROWS + h * LANES),
                                            vecf_set(sum[i][k]), vecf_load(at)));
            }
        PANEL_SPILL();
    }
}

/* ---- blocks of 256 ---- */

/* What the sums of each group begin with. */
typedef struct {
    int32_t start[TILE][PANEL_COLS / 16];
} begin256;

X86_INLINE void begin_tile(begin256 *b, const panel_tile *x, int64_t cols, const panel_type *type,
                           int count)
{
    for (int i = 0; i < count && type->offset; i++) {
        if (type->groups == 16)
            panel_begin16(x, i, cols, type->offset, b->start[i]);
        else
            panel_begin32(x, i, cols, type->offset, b->start[i], false, NULL);
    }
}

/* 32 columns times scales of one group or two, added to u. */
X86_INLINE void multiply_sub(const uint8_t *w, const panel_tile *x, const begin256 *begin,
                             int64_t col, const panel_type *type, const float *scale, int count,
                             float u[TILE][PANEL_ROWS])
{
    const int steps = type->groups == 16 ? 4 : 8;
#pragma GCC unroll 2
    for (int s = 0; s < 8; s += steps, scale += PANEL_ROWS) {
        vec z[TILE][2];
        for (int i = 0; i < count; i++)
            z[i][0] = z[i][1] = vec_set(type->offset ? begin->start[i][(col / 4 + s) / steps] : 0);
        multiply_steps(w + s * PANEL_STEP, x, col + s * 4, steps, count, z);
        for (int h = 0; h < 2; h++)
#pragma GCC unroll 4
            for (int i = 0; i < count; i++)
                add_to(u[i] + h * LANES, z[i][h], vecf_load(scale + h * LANES));
        PANEL_SPILL();
    }
}

/* Minima of a register's rows times the sums of activations, pairs of groups at a time. */
X86_INLINE vec minima_of(const uint8_t *less, const int16_t *sum, int pairs)
{
    vec z = vec_set(0);
#pragma GCC unroll 8
    for (int p = 0; p < pairs; p++)
        z = vec_dot16(z, vec_load(less + p * PANEL_LINE), vec_repeat(sum + 2 * p));
    return z;
}

/* What block k leaves in u, times its scale, added to t. */
X86_INLINE void end_block256(float *t, float u[TILE][PANEL_ROWS], const panel_tile *x, int64_t k,
                             const uint8_t *less, const float *d, const panel_type *type, int count)
{
    for (int i = 0; i < count; i++) {
        const int16_t *sum = x->sum[i] + k * 16;
        int16_t sum32[8];
        if (type->has_min && type->groups == 8) {
            panel_sums32(sum, sum32);
            sum = sum32;
        }
        for (int h = 0; h < 2; h++) {
            float *at = t + i * PANEL_ROWS + h * LANES;
            vecf both = vecf_mul(vecf_load(d + h * LANES), vecf_set(x->d[i][k]));
            vecf_store(at, vecf_add(vecf_load(u[i] + h * LANES), both, vecf_load(at)));
            if (type->has_min)
                add_to(at, minima_of(less + h * PANEL_STEP, sum, type->groups / 2),
                       vecf_mul(vecf_load(d + PANEL_ROWS + h * LANES), vecf_set(-x->d[i][k])));
        }
    }
}

X86_INLINE void multiply256(const uint8_t *w, const panel_acts *acts, float *t,
                            const panel_type *type, int count)
{
    const panel_layout l = panel_layout256(type->groups, 1);
    const panel_tile x = panel_tile_of(ACT_Q8K, acts, count);
    begin256 begin;
    begin_tile(&begin, &x, acts->cols, type, count);
    memset(t, 0, (size_t)count * PANEL_ROWS * sizeof *t);
    for (int64_t k = 0; k < acts->cols / 256; k++, w += l.bytes) {
        const float *scale = (const float *)(const void *)(w + l.scales);
        float u[TILE][PANEL_ROWS] __attribute__((aligned(64)));
        memset(u, 0, (size_t)count * sizeof *u);
        for (int sub = 0; sub < 8; sub++, scale += type->groups / 8 * PANEL_ROWS)
            multiply_sub(w + sub * PANEL_SUB, &x, &begin, k * 256 + sub * 32, type, scale, count,
                         u);
        end_block256(t, u, &x, k, w + l.less, (const float *)(const void *)(w + l.d), type, count);
    }
}

#endif
