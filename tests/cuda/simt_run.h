/* simt_run.h - runs a grid of blocks of code that simt.h lets a C++ compiler compile. */
#ifndef WEFT_TESTS_CUDA_SIMT_RUN_H
#define WEFT_TESTS_CUDA_SIMT_RUN_H

#include "tests/base/fibres.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    int blocks, threads;
    int more;                   /* threads of a block beside these, which call no kernel */
    size_t dynamic_bytes;       /* of shared memory for each block */
    void (*kernel)(void *args); /* called by every thread */
    void *args;
} simt_grid;

/* All blocks are resident. Every launch has another order of threads. False: what was wrong, in `error`
 * [FIBRE_ERROR_MAX]. */
bool simt_launch(const simt_grid *g, char *error);
/* From here on in this order; FIBRES_ORDERS: another one with every launch, again from the first. */
void simt_order(fibre_order order);

/* A word that the host may write while a grid runs. Look n at such words, from 0 and from here on, finds that it has just written
 * 1; n < 0: none does. */
uint32_t simt_host_word(const uint32_t *p);
void simt_host_writes(int64_t n);

#ifdef __cplusplus
}
#endif

#endif
