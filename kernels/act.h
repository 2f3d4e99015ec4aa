/* act.h - the forms in which a kernel may want the activations it multiplies with weights.
 *
 * f32 as they are, or rounded to 8 bits: a row of n elements, n a multiple of 32, is quantised as
 *
 *     int8_t q[n]        padded to ACT_ALIGN bytes
 *     float  d[n / b]    one scale for each b elements: x is about d * q; padded alike
 *     int16_t sum[n/16]  the sum of q over each 16 elements
 *
 * with b = 32 (ACT_Q8) or 256 (ACT_Q8K, n a multiple of 256). q is x / d rounded to nearest, ties to even,
 * with d = max |x| / 127; a block of zeros has d = 0. A NaN or infinity makes d NaN, so that it is not
 * lost. The row as a whole takes act_row_bytes, a multiple of ACT_ALIGN.
 *
 * ACT_Q8D and ACT_Q8KD are the same with every 8 q there twice, for kernels that multiply two weight rows at once:
 * int8_t q[n / 8][2][8].
 *
 * ACT_Q8X4 and ACT_Q8KX4 interleave four such rows, for kernels that multiply them at once, two by two. The parts
 * of four rows, each padded to 4 * ACT_ALIGN bytes, are
 *
 *     int8_t q[n / 8][4][8]    8 of each row in turn
 *     float  d[n / b][8]       scales of rows 0, 1, 0, 1, 2, 3, 2, 3
 *     float  sum[n / 32][4]    Q8X4: d times the sum of q over each 32 elements
 *     int8_t sum[n / 256][2][4][8]   Q8KX4: the sums over 32 elements modulo 128, then divided by it, rounded down
 *
 * The last group of a call is filled up with rows of zeros.
 *
 * ACT_BF1 is a row of bf16, rounded to nearest, ties to even, filled up with zeros to a multiple of 32 numbers.
 *
 * ACT_BF3 is f32 as the sum of three bf16: the nearest one, the one nearest to the rest (0 where that is not finite) and
 * what that leaves, which is exact: two leave out 1e-5 of a logit. Rows hold 4 firsts, 4 seconds, 4 thirds, then the
 * next 4; n may be any number, and is filled up with zeros to a multiple of 8. ACT_BF3T has 32 of each, for tiles, filled
 * up to a multiple of 32. ACT_BF2T is the same without the thirds: what it leaves out of a number is at most 2^-17 of it.
 *
 * ACT_BF1X4 and ACT_BF3X4 interleave four rows of one or three bf16 for products of small matrices, of two rows by four
 * columns each, [n / 4][part][4 rows][4], filled up with zeros to a multiple of 8 columns and with
 * rows of zeros.
 *
 * Rows of ACT_BF1, ACT_BF2T and ACT_BF3T take an odd number of lines, so that those of a tile lie in different sets of a cache; a
 * line at their end may be anything. */
#ifndef WEFT_KERNELS_ACT_H
#define WEFT_KERNELS_ACT_H

#include "kernels/kfn.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    ACT_ALIGN = 64,
    ACT_SPLIT_COLS =
        8 /* of rows that are read as tiles, between whole ones of which units may end */
};

typedef enum {
    ACT_F32,
    ACT_Q8,
    ACT_Q8K,
    ACT_Q8X4,
    ACT_Q8KX4,
    ACT_BF3,
    ACT_BF3X4,
    ACT_Q8D,
    ACT_Q8KD,
    ACT_BF1,
    ACT_BF3T,
    ACT_BF1X4,
    ACT_BF2T,
    ACT_COUNT
} kact;

/* Is each number split into bf16? How many of the first stand before their rests, and in how many parts. */
K_FN bool act_is_split(kact a)
{
    return a == ACT_BF1 || a == ACT_BF3 || a == ACT_BF3T || a == ACT_BF1X4 || a == ACT_BF3X4 ||
           a == ACT_BF2T;
}

K_FN int64_t act_run(kact a)
{
    return a == ACT_BF1 ? 8 : a == ACT_BF3T || a == ACT_BF2T ? 32 : 4;
}

K_FN int64_t act_parts(kact a)
{
    return a == ACT_BF1 || a == ACT_BF1X4 ? 1 : a == ACT_BF2T ? 2 : 3;
}

/* Are rows read as tiles? */
K_FN bool act_is_tiled(kact a)
{
    return a == ACT_BF1 || a == ACT_BF2T || a == ACT_BF3T;
}

/* A row of split numbers is filled up to a multiple of so many. */
K_FN int64_t act_fill(kact a)
{
    return act_is_tiled(a) ? 32 : 8;
}

/* Are numbers rounded by more than f32's own sums are off? */
K_FN bool act_rounds(kact a)
{
    return a != ACT_F32 && (!act_is_split(a) || act_parts(a) < 3);
}

/* To one bf16? */
K_FN bool act_rounds_bf16(kact a)
{
    return act_is_split(a) && act_parts(a) == 1;
}

/* By so little that whoever asks for no more than that may have it: to two bf16? */
K_FN bool act_rounds_near(kact a)
{
    return act_is_split(a) && act_parts(a) == 2;
}

/* Numbers that are rounded together. */
K_FN int64_t act_block(kact a)
{
    if (act_is_split(a))
        return 1;
    return a == ACT_Q8K || a == ACT_Q8KX4 || a == ACT_Q8KD ? 256 : 32;
}

/* Rows that are quantised together, so that none can be read without the others. */
K_FN int64_t act_group(kact a)
{
    return a == ACT_Q8X4 || a == ACT_Q8KX4 || a == ACT_BF1X4 || a == ACT_BF3X4 ? 4 : 1;
}

/* Where part p of number i stands, counted in bf16, in a row or among the four rows of which it is row r. */
K_FN int64_t act_split_at(kact a, int64_t i, int64_t p, int64_t r)
{
    int64_t run = act_run(a), parts = act_parts(a);
    if (act_group(a) > 1)
        return ((i / 4 * parts + p) * 4 + r) * 4 + i % 4;
    return (i / run * parts + p) * run + i % run;
}

K_FN int64_t act_pad(int64_t bytes)
{
    return (bytes + ACT_ALIGN - 1) / ACT_ALIGN * ACT_ALIGN;
}

/* Is every q there twice? */
K_FN bool act_is_double(kact a)
{
    return a == ACT_Q8D || a == ACT_Q8KD;
}

/* Bytes of q of a row that is quantised alone, with its padding. */
K_FN int64_t act_q_bytes(kact a, int64_t n)
{
    return act_pad(act_is_double(a) ? 2 * n : n);
}

/* Bytes of a quantised row, or of one row's part of a group; f32 rows are not padded. */
K_FN int64_t act_row_bytes(kact a, int64_t n)
{
    if (a == ACT_F32)
        return n * 4;
    if (act_is_split(a)) {
        int64_t bytes =
            act_pad((n + act_fill(a) - 1) / act_fill(a) * act_fill(a) * 2 * act_parts(a));
        return act_is_tiled(a) ? bytes | ACT_ALIGN : bytes;
    }
    return act_q_bytes(a, n) + act_pad(n / act_block(a) * (act_group(a) == 4 ? 8 : 4)) +
           act_pad(a == ACT_Q8KX4 ? n / 16 : n / 8);
}

K_FN const int8_t *act_q(const void *row)
{
    return (const int8_t *)row;
}

/* The scales of a row whose q are there once; act_d_of: of any that is quantised alone. */
K_FN const float *act_d(const void *row, int64_t n)
{
    return (const float *)((const char *)row + act_pad(n));
}

K_FN const float *act_d_of(kact a, const void *row, int64_t n)
{
    return (const float *)((const char *)row + act_q_bytes(a, n));
}

K_FN const int16_t *act_sum(kact a, const void *row, int64_t n)
{
    return (const int16_t *)((const char *)row + act_q_bytes(a, n) + act_pad(n / act_block(a) * 4));
}

/* Where the scales and sums of a group of four begin; sums are f32 or bytes. */
K_FN const float *act_d4(const void *group, int64_t n)
{
    return (const float *)((const char *)group + 4 * act_pad(n));
}

K_FN const void *act_sum4(kact a, const void *group, int64_t n)
{
    return (const char *)act_d4(group, n) + 4 * act_pad(n / act_block(a) * 8);
}

#endif
