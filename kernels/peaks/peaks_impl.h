/* peaks_impl.h - the tables of rows; and sixteen sums that differ, so that no compiler makes one of them. */
#ifndef WEFT_KERNELS_PEAKS_IMPL_H
#define WEFT_KERNELS_PEAKS_IMPL_H

#include "kernels/peaks/peaks.h"

#include "runtime/base/cpu.h"
#include <stddef.h>

/* The rows of one file, ended by a name NULL. */
extern const peak_row peaks_aarch64[], peaks_avx2[], peaks_avxvnni[], peaks_avx512[], peaks_amx[];

enum { PEAK_SUMS = 16 };

/* clang-format off */
#define PEAK_EACH(F)                                  \
    F(0) F(1) F(2)  F(3)  F(4)  F(5)  F(6)  F(7)      \
    F(8) F(9) F(10) F(11) F(12) F(13) F(14) F(15)
/* clang-format on */

/* A number that the compiler does not know: 1. */
static inline int peak_one(void)
{
    volatile int one = 1;
    return one;
}

#endif
