/* choose.h - what a card is given to choose tokens with, and to put them into the batch of the next call (choose_cuda.cuh). */
#ifndef WEFT_KERNELS_CUDA_CHOOSE_H
#define WEFT_KERNELS_CUDA_CHOOSE_H

#include "kernels/ksample.h"

enum {
    CHOOSE_BLOCK = 1024, /* threads that choose one row's */
    CHOOSE_LIST = 1024,  /* candidates that a block keeps in shared memory, at most */
    CHOOSE_DIGITS = 2048,
    /* of dynamic shared memory */
    CHOOSE_BYTES = 16 * CHOOSE_LIST + 12 * CHOOSE_DIGITS + 4 * 8 + 8,
    CHOOSE_INLINE = 16 /* of so few rows the argument itself says how */
};

/* The argument of weft_choose, which is launched with a block for each row. */
typedef struct {
    const float *logits; /* [rows][width] */
    int64_t width;
    const ksample *how;      /* [rows]; NULL: how_few */
    const ksampled *before;  /* of the call before: what ksample.from counts */
    ksampled *chosen, *host; /* [rows]: on the card, and in memory of the host */
    uint32_t turn;
    ksample how_few[CHOOSE_INLINE];
} cuda_choice;

/* The argument of weft_tokens: token i of a batch becomes what row from[i] of the call before chose. */
typedef struct {
    int32_t *token;      /* [n] */
    const int32_t *from; /* [n], -1: it stays; NULL: from_few */
    const ksampled *before;
    int32_t n;
    int32_t from_few[CHOOSE_INLINE];
} cuda_tokens;

#endif
