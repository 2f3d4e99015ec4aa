/* rows8_size.h - the scratch of kernels that unpack or copy some weights before they multiply them. */
#ifndef WEFT_KERNELS_NEON_ROWS8_SIZE_H
#define WEFT_KERNELS_NEON_ROWS8_SIZE_H

/* Of eight interleaved rows so many columns are unpacked at once: with the activations of four rows they stay in a first-level cache of 64 KB. */
enum { ROWS8_COLS = 2048 };

/* Weights of floats are copied into a half of a first-level cache. */
enum { FLOAT_PANEL_BYTES = 32 * 1024 };

#endif
