/* panel_size.h - the scratch of kernels that unpack some weights before they multiply them (panel.h). */
#ifndef WEFT_KERNELS_C_PANEL_SIZE_H
#define WEFT_KERNELS_C_PANEL_SIZE_H

enum { PANEL_ROWS_MAX = 32, PANEL_TILE_MAX = 8, PANEL_COLS_MAX = 2048 };

/* What any core has of weights at a time: codes and what scales them. */
enum { PANEL_BYTES = 48 * 1024 };

/* Of experts, the same and then so many rows of activations, interleaved by four: bytes, scales and sums of
 * PANEL_COLS_MAX columns. */
enum { PANEL_CHOSEN = 64, PANEL_EXPERTS_BYTES = PANEL_BYTES + PANEL_CHOSEN * 2 * PANEL_COLS_MAX };

#endif
