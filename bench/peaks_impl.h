/* peaks_impl.h - sixteen sums that differ, so that no compiler makes one of them. */
#ifndef WEFT_BENCH_PEAKS_IMPL_H
#define WEFT_BENCH_PEAKS_IMPL_H

#include "bench/peaks.h"

#include "runtime/base/cpu.h"
#include <stddef.h>

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
