/* panel_size.h - the scratch of kernels that unpack eight woven rows of weights before they multiply them. */
#ifndef WEFT_KERNELS_NEON_PANEL_SIZE_H
#define WEFT_KERNELS_NEON_PANEL_SIZE_H

#include <stddef.h>

/* So many columns are unpacked at once: with the activations of four rows they stay in a first-level cache of 64 KB. */
enum { WOVEN_COLS = 2048 };

/* Bytes, then what scales 32 or 256 columns of them (panel.h): at most as many again. */
enum { WOVEN_PANEL_BYTES = 2 * 8 * WOVEN_COLS };

/* Of experts, the same and then so many rows of activations, woven by four: bytes, scales and sums of WOVEN_COLS columns. */
enum { WOVEN_ROWS = 64, WOVEN_EXPERTS_BYTES = WOVEN_PANEL_BYTES + WOVEN_ROWS * 2 * WOVEN_COLS };

#endif
