/* block32_neon.c - block32_any.h for processors without sdot: Cortex-A53, A57, A72.
 *
 * 256 products, of 32 columns of 8 rows, are 32 smull and smlal, which one of the two vector pipes of Cortex-A72 takes, one
 * a cycle. Both pipes share the rest: 20 slots to add up products of 16 bits (8 where codes are small), 10 to scale, and 16 to
 * 32 to unpack; that bounds one row at 32 to 47 cycles. By llvm-mca's model of Cortex-A57, not measured: Q8_0 42, Q4_0 45,
 * Q4_1 47, Q5_0 54, IQ4_NL 69 (whose table costs two slots of a vector); four rows of Q8_0 149. */
#include "kernels/neon/block32_any.h"

BLOCK32_KERNELS(neon)
