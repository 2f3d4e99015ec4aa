/* panel_size.h - the scratch of kernels that unpack or copy some weights before they multiply them. */
#ifndef WEFT_KERNELS_NEON_PANEL_SIZE_H
#define WEFT_KERNELS_NEON_PANEL_SIZE_H

/* Of eight interleaved rows so many columns are unpacked at once: with the activations of four rows they stay in a first-level cache of 64 KB. */
enum { ROWS8_COLS = 2048 };

/* Bytes, then what scales 32 or 256 columns of them (panel.h): at most as many again. */
enum { ROWS8_PANEL_BYTES = 2 * 8 * ROWS8_COLS };

/* Of experts, the same and then so many rows of activations, interleaved by four: bytes, scales and sums of ROWS8_COLS columns. */
enum { ROWS8_ROWS = 64, ROWS8_EXPERTS_BYTES = ROWS8_PANEL_BYTES + ROWS8_ROWS * 2 * ROWS8_COLS };

/* Weights of floats are copied into a half of a first-level cache. */
enum { FLOAT_PANEL_BYTES = 32 * 1024 };

#endif
