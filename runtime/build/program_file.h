/* program_file.h - writes a program: the linked file, its image behind it, and the weights in that or in a file of their own.
 *
 * Weights are made one by one as they are written, so that a large model takes no more memory than its largest tensor. */
#ifndef WEFT_RUNTIME_BUILD_PROGRAM_FILE_H
#define WEFT_RUNTIME_BUILD_PROGRAM_FILE_H

#include "runtime/build/build_weights.h"

typedef struct {
    const char *path;
    strbuf *elf; /* as the linker made it; changed */
    build_weights *weights;
    model_hash identity; /* of the model */
    image_part *part;    /* [n_part]: all but tensors and weights; data and bytes */
    int n_part;
    bool external;                                            /* weights go to PATH.weights */
    bool lib;                                                 /* not to be executed */
    void (*report)(void *ctx, uint64_t done, uint64_t total); /* bytes of weights; may be NULL */
    void *ctx;
    const volatile int *stop; /* as in build_options */
} program_file;

/* There whole or not at all. W1004, W1412, W1705. */
weft_status program_file_write(weft_diag *dg, program_file *f) WEFT_MUST_USE;

#endif
