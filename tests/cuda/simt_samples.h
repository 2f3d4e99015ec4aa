/* simt_samples.h - small kernels for test_simt.c: what each writes, and which are wrong. */
#ifndef WEFT_TESTS_CUDA_SIMT_SAMPLES_H
#define WEFT_TESTS_CUDA_SIMT_SAMPLES_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    const float *x;
    float *y;
    int32_t *i;
    uint32_t *gate;
    int n;
} sample_args;

typedef void sample(void *args);
sample sample_sum;      /* y[block] = sum of x[block * n ..] */
sample sample_sum_racy; /* the same without the barrier before the sum of warps */
sample sample_lanes;    /* i[op * threads + thread]: shuffles, votes and reductions */
sample sample_gate; /* i[thread of all] = what the thread of the next block wrote before the gate */
sample sample_gate_shut;     /* waits for more blocks than there are */
sample sample_barrier_ended; /* a thread ends, the others are at a barrier */
sample sample_barrier_two;   /* two barriers */
sample sample_shuffle_lost;  /* a lane that a shuffle names is at a barrier */
sample sample_shuffle_masks; /* lanes that name each other with different masks */
sample sample_halves;        /* i[k] = bits of f16 and bf16 of x[k], y[k] back again */
sample sample_bytes;         /* i: dp4a, byte_perm */
/* gate: rows of a [16][8 words], then columns of b [8][8 words]. Their products by a warp, [16][8] each: y of f16 and of bf16, i of signed
 * bytes, and of the first 16 of each row and column */
sample sample_products;
sample
    sample_copies; /* i[8 * k ..]: what two groups of copies wrote, before and after waiting for each */

#ifdef __cplusplus
}
#endif

#endif
