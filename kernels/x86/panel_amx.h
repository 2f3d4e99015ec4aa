/* panel_amx.h - linear and experts for many rows with AMX: rows of weights become a panel of bf16 tiles, with which
 * all rows of activations are multiplied while it is in the cache. The sums of a panel's columns stay in the tiles.
 *
 * Any type of weights will do that can be unpacked to bf16; activations are ACT_BF1, or ACT_BF3T for products as exact
 * as f32's. */
#ifndef WEFT_KERNELS_X86_PANEL_AMX_H
#define WEFT_KERNELS_X86_PANEL_AMX_H

#include "kernels/kernels.h"
#include "kernels/x86/tiles_size.h"

enum { TILE_ROWS = 16, TILE_COLS = 32, TILE_BYTES = 1024 }; /* of weights */

/* What an unpacking function keeps from piece to piece of 256 columns: scales, for example. */
typedef struct {
    _Alignas(64) char bytes[2048];
} tiles_head;

/* `rows` rows of weights from w on, 1 to 16, as tiles that follow each other: for each 32 columns [16 pairs of
 * columns][16 rows][2] bf16. Rows that are not there may be anything. Columns [first, first + cols), up to a piece of
 * them, which comes after the piece before it and ends with 256 columns or with all; the last tile is filled up with zeros. */
typedef void tiles_unpack_fn(const uint8_t *w, int64_t pitch, int64_t rows, int64_t first,
                             int64_t cols, char *to, tiles_head *head);

typedef struct {
    tiles_unpack_fn *unpack;
    int64_t piece; /* columns that it takes at once: 32 to 256 */
    int64_t group; /* rows of weights for each pitch */
    int64_t bytes; /* of 256 columns of them */
    int parts;     /* bf16 of an activation: 1 or 3 */
} tiles_core;

/* Arguments as in kernel_ops.def; out overlaps no input. */
void tiles_linear(const kargs *k, const kthread *t, int64_t begin, int64_t end,
                  const tiles_core *core);
void tiles_experts(const kargs *k, const kthread *t, int64_t begin, int64_t end,
                   const tiles_core *core);

#endif
