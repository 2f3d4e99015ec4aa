/* weights_impl.h - what weights.c and weights_interleave.c share. */
#ifndef WEFT_RUNTIME_EXEC_WEIGHTS_IMPL_H
#define WEFT_RUNTIME_EXEC_WEIGHTS_IMPL_H

#include "runtime/exec/weights.h"

enum { HF_BLOCK_BYTES = 16, HF_BLOCK_ELEMS = 32 }; /* MXFP4_HF: and one byte of scale */

/* One piece of a weight, found in the checkpoint. */
typedef struct {
    const plan_weight *w;
    const char *data;   /* of the piece's first element */
    const char *scales; /* MXFP4_HF */
    int64_t rows;       /* of axis 0 */
} piece_view;

weft_status weights_misfit(weft_diag *dg, const plan_weight *w, const char *why);
weft_status weights_cancelled(weft_diag *dg); /* W1412 */
/* Do the pieces make up all of axis 0? */
weft_status weights_check_rows(weft_diag *dg, const plan_weight *w) WEFT_MUST_USE;
/* Piece i, all of whose bytes are inside their tensor. */
weft_status weights_find_piece(weft_diag *dg, const plan_weight *w, int i, const model_file *mf,
                               piece_view *out) WEFT_MUST_USE;
/* One row of n numbers from src to dst, in the type that the plan wants. */
void weights_copy_row(const plan_weight *w, const char *src, const char *scales, char *dst,
                      int64_t n);
size_t weights_block_end(size_t at, size_t bytes); /* of a block begun at PLAN_ALIGN */

/* Interleave all INTERLEAVED weights of p into `interleaved`, with as many threads as opt says; it may be NULL. weights_interleave.c */
weft_status weights_interleave(weft_diag *dg, const plan *p, const model_file *mf,
                               const weights_options *opt, char *interleaved) WEFT_MUST_USE;
/* The checksum of a sample of fixed numbers, interleaved as weights_interleave would; 0 for what it never interleaves. weights_interleave.c */
uint64_t weights_interleave_sample(klayout l, dtype type, dtype stored);
int weights_threads(const weights_options *opt);

#endif
