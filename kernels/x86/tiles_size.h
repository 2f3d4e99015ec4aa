/* tiles_size.h - the scratch of kernels that unpack rows of weights for AMX, for them and for the table. */
#ifndef WEFT_KERNELS_X86_TILES_SIZE_H
#define WEFT_KERNELS_X86_TILES_SIZE_H

/* So many rows and columns of weights are unpacked at once, as bf16: a panel, which stays in the first-level cache
 * while all rows of activations pass; columns are a multiple of 256. */
#ifndef TILES_COLS /* tuning defines others */
#define TILES_COLS 512
#endif
enum { TILES_WIDTH = 32, TILES_PANEL_BYTES = TILES_WIDTH * TILES_COLS * 2 };

/* Of so many rows, so many columns of activations stay in the second-level cache while panels pass. */
#ifndef TILES_RUN
#define TILES_RUN 1024
#endif
enum { TILES_ROWS = 512 };

/* Tiles of sums wait beside them: in the result, whose rows may be a power of two apart, they would drive each
 * other out of the caches. */
enum { TILES_SUMS = 512, TILES_SUMS_BYTES = TILES_SUMS * 1024 };

/* Besides: what sums begin with. */
enum { TILES_BYTES = TILES_PANEL_BYTES + TILES_SUMS_BYTES + TILES_WIDTH * 4 };

/* Rows that chose the same expert, with what separates them (act.h). */
enum {
    TILES_EXPERT_ROWS = 128,
    TILES_EXPERT_PITCH = TILES_RUN * 2 + 64,
    TILES_EXPERTS_BYTES = TILES_BYTES + TILES_EXPERT_ROWS * TILES_EXPERT_PITCH
};

#endif
