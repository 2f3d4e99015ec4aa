/* block32_dotprod.c - block32_any.h with sdot.
 *
 * One row, 32 columns of 8 rows, Neoverse V1, GCC 12: Q8_0 12.4 cycles (16 sdot, 10 to scale), which memory bounds at 20;
 * Q4_1 18, Q5_0 19.6, IQ4_NL 20, bound by the vector pipes (16 to 28 instructions to unpack); Q4_0 has its own loop, 13.5.
 * 65536 x 2048 with two threads, of the 79 GB/s that the same program read: Q8_0 92 %, Q4_0 and Q4_1 54 to 59 %. */
#include "kernels/neon/block32_any.h"

BLOCK32_KERNELS(dotprod)
