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

#ifdef __cplusplus
}
#endif

#endif
