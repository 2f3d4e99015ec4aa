/* block256_neon.c - block256_any.h for processors without sdot: Cortex-A53, A57, A72.
 *
 * As in block32_neon.c: 32 cycles of one pipe for the products of 32 columns of 8 rows. By llvm-mca's model of Cortex-A57, not
 * measured, with what comes once in 256 columns: Q4_K 43, Q5_K 57, Q6_K 52. */
#include "kernels/neon/block256_any.h"

BLOCK256_KERNELS(neon)
