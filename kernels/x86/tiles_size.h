/* tiles_size.h - the scratch of kernels that unpack rows of weights for AMX, for them and for the table. */
#ifndef WEFT_KERNELS_X86_TILES_SIZE_H
#define WEFT_KERNELS_X86_TILES_SIZE_H

/* So many rows of weights and so many columns of them are unpacked as bf16, a panel, to meet all rows of activations,
 * whose columns stay in the second-level cache while panels pass. There are two: one is multiplied while the other is
 * unpacked. Columns are a multiple of 1024. */
#ifndef TILES_RUN /* tuning defines others */
#define TILES_RUN 1024
#endif
enum { TILES_ROWS = 512, TILES_WIDTH = 32, TILES_PANEL_BYTES = TILES_WIDTH * TILES_RUN * 2 };

/* Tiles of sums wait beside them: in the result, whose rows may be a power of two apart, they would drive each
 * other out of the caches. */
enum { TILES_SUMS = 512, TILES_SUMS_BYTES = TILES_SUMS * 1024 };

/* Besides: what sums begin with. */
enum { TILES_BYTES = 2 * TILES_PANEL_BYTES + TILES_SUMS_BYTES + TILES_WIDTH * 4 };

/* Rows that chose the same expert, with what separates them (act.h). */
enum {
    TILES_EXPERT_ROWS = 128,
    TILES_EXPERT_PITCH = TILES_RUN * 2 + 64,
    TILES_EXPERTS_BYTES = TILES_BYTES + TILES_EXPERT_ROWS * TILES_EXPERT_PITCH
};

#endif
