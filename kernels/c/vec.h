/* vec.h - what the portable kernels share: rows of operands, loops that compilers vectorise, sums in
 * fixed lanes.
 *
 * A compiler may not reorder a sum of floats by itself, so sums here run in lanes of their own, which
 * fill vector registers and end in the same order on every split and every machine. */
#ifndef WEFT_KERNELS_C_VEC_H
#define WEFT_KERNELS_C_VEC_H

#include "kernels/kernels.h"

/* Before a loop whose iterations do not touch each other's elements, although its pointers may be
 * equal: it needs no check for overlap before it is vectorised. */
#ifdef __clang__
#define VEC_LOOP _Pragma("clang loop vectorize(assume_safety)")
#else
#define VEC_LOOP _Pragma("GCC ivdep")
#endif

enum { VEC_LANES = 16, VEC_LANES_WIDE = 8 }; /* of float, of double */

static inline int64_t vec_round_up(int64_t n)
{
    return (n + VEC_LANES - 1) / VEC_LANES * VEC_LANES;
}

/* Row `row` of an input or a result. */
static inline const float *row_in(const kargs *k, int i, int64_t row)
{
    return (const float *)(const void *)((const char *)k->in[i] + row * k->pitch[i]);
}

static inline float *row_out(const kargs *k, int i, int64_t row)
{
    return (float *)(void *)((char *)k->out[i] + row * k->out_pitch[i]);
}

static inline float lanes_sum(const float *lane)
{
    float a[8], b[4];
    for (int i = 0; i < 8; i++)
        a[i] = lane[i] + lane[i + 8];
    for (int i = 0; i < 4; i++)
        b[i] = a[i] + a[i + 4];
    return (b[0] + b[2]) + (b[1] + b[3]);
}

static inline double lanes_sum_wide(const double *lane)
{
    double a[4];
    for (int i = 0; i < 4; i++)
        a[i] = lane[i] + lane[i + 4];
    return (a[0] + a[2]) + (a[1] + a[3]);
}

#endif
