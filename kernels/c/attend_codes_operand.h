/* attend_codes_operand.h - what attend_codes.h multiplies: whole numbers of four queries, and codes of a block. */
#ifndef WEFT_KERNELS_C_ATTEND_CODES_OPERAND_H
#define WEFT_KERNELS_C_ATTEND_CODES_OPERAND_H

#include "kernels/c/attend_panels_size.h"
#include "kernels/c/vec_math.h"

enum { CODES_TILE = 4 }; /* queries that are computed together */

/* Whole numbers as the products of a processor read them: of a quad 16 bytes for each query. */
typedef struct {
    int8_t quad[ATTEND_CODES_MAX / PAGE_QUAD][CODES_TILE][16];
    float sum[CODES_TILE];  /* of the numbers: int32_t, in the bits */
    float unit[CODES_TILE]; /* what one of them, times a code, stands for */
} codes_whole;

/* Codes to be multiplied: those of 64 tokens or columns lie side by side, four bytes each. */
typedef struct {
    const uint8_t *at;
    int64_t pitch;    /* bytes from a quad to the next; q4: from two to the next two */
    int64_t quads;    /* a multiple of 2 */
    int64_t lanes;    /* 64, or fewer columns: a multiple of 16 */
    bool half;        /* q4 */
    const char *hint; /* memory that will be read later, or NULL */
    int64_t hint_bytes;
} codes_operand;

/* What sums begin with: they have the offset of codes times the numbers too much. That of q4 is 120 sixteenths, so that half a
 * unit may be lost: as much as a number's rounding changes with the code 1. */
static inline int32_t codes_offset(const codes_whole *x, int64_t g, bool half)
{
    uint32_t sum = bits_of(x->sum[g]); /* of NaN anything: no signed products */
    int32_t q4 = (int32_t)(PAGE_CODE_MAX / 8 * sum) >> 1;
    return (int32_t)(0 - (half ? (uint32_t)q4 : PAGE_OFFSET * sum));
}

#endif
