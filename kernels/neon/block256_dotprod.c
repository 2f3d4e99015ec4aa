/* block256_dotprod.c - block256_any.h with sdot.
 *
 * One row, 32 columns of 8 rows, Neoverse V1, GCC 12: Q4_K 16.4 cycles, Q5_K 23, Q6_K 20.7, all bound by the vector pipes:
 * of Q4_K 16 sdot, 16 to unpack, 8 for scales and minima, and a sixth of it once in 256 columns. 65536 x 2048 with
 * two threads, of the 79 GB/s that the same program read: Q4_K 53 %, Q5_K 48 %, Q6_K 59 %. */
#include "kernels/neon/block256_any.h"

BLOCK256_KERNELS(dotprod)
