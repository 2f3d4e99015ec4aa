/* choose.h - what a card is given to choose tokens with, and to put them into the batch of the next call (choose_cuda.cuh). */
#ifndef WEFT_KERNELS_CUDA_CHOOSE_H
#define WEFT_KERNELS_CUDA_CHOOSE_H

#include "kernels/ksample.h"

enum {
    CHOOSE_BLOCK = 1024, /* threads that choose one row's */
    CHOOSE_LIST = 1024,  /* candidates that a block keeps in shared memory, at most */
    CHOOSE_DIGITS = 2048,
    CHOOSE_STRIPES = 4096, /* of a row's logits, at most, whose largest ones are known */
    /* of dynamic shared memory */
    CHOOSE_BYTES = 4 * CHOOSE_STRIPES + 12 * CHOOSE_DIGITS + 4 * 8 + 8,
    CHOOSE_INLINE = 16, /* of so few rows the argument itself says how, */
    CHOOSE_PARTS = 4,   /* and so many blocks find the stripes of each */
    BEST_BLOCK = 256,   /* threads of weft_best, */
    BEST_PARTS = 32     /* and its blocks for a row, a part of the logits for each */
};

/* The argument of weft_choose, which is launched with CHOOSE_PARTS blocks for each row, or without `stripes` with one; and of weft_best,
 * with BEST_PARTS of them, for rows that are all greedy. */
typedef struct {
    const float *logits; /* [rows][width] */
    int64_t width;
    const ksample *how;      /* [rows]; NULL: how_few */
    const ksampled *before;  /* of the call before: what ksample.from counts */
    ksampled *chosen, *host; /* [rows]: on the card, and in memory of the host */
    uint32_t turn;
    float *stripes;  /* [rows][CHOOSE_STRIPES]: the largest of each; NULL: a row is one block's */
    uint64_t *best;  /* [rows][BEST_PARTS]: the best key of each part, */
    uint32_t *found; /* [rows]: and how many parts are there; 0 between launches */
    ksample how_few[CHOOSE_INLINE];
} cuda_choice;

/* A row of which none could be chosen has token 0 in the next batch; the host will see that, and drop the call. */
K_FN int32_t chosen_before(const ksampled *before, int32_t row)
{
    return before[row].id > 0 ? before[row].id : 0;
}

/* The argument of weft_tokens: token i of a batch becomes what row from[i] of the call before chose. */
typedef struct {
    int32_t *token;      /* [n] */
    const int32_t *from; /* [n], -1: it stays; NULL: from_few */
    const ksampled *before;
    int32_t n;
    int32_t from_few[CHOOSE_INLINE];
} cuda_tokens;

#endif
