/* flop_rate.h - how fast this machine multiplies and adds, for comparing with. */
#ifndef WEFT_RUNTIME_BASE_FLOP_RATE_H
#define WEFT_RUNTIME_BASE_FLOP_RATE_H

/* Flops per second of `threads` threads, 1 to 1024, in f32: independent multiplications and additions on
 * values in registers, in C as portable kernels are compiled. Takes about 50 ms. Measured anew by each
 * call. */
double flop_rate(int threads);

#endif
