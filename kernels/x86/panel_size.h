/* panel_size.h - the scratch of kernels that unpack sixteen rows of weights for AMX, for them and for the table. */
#ifndef WEFT_KERNELS_X86_PANEL_SIZE_H
#define WEFT_KERNELS_X86_PANEL_SIZE_H

/* So many columns are unpacked at once, a multiple of 256: at most 128 KB of a second-level cache. */
enum { TILES_COLS = 2048 };

/* The largest panel is that of BF16, where each number stands twice; then what the tiles are stored to. */
enum { TILES_PANEL_BYTES = 16 * TILES_COLS * 4, TILES_BYTES = TILES_PANEL_BYTES + 8 * 1024 };

#endif
