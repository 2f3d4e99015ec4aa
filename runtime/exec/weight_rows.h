/* weight_rows.h - a weight of a plan where the checkpoint has it: found and checked, then made into rows of
 * the type and layout that the plan wants. For the devices; knows nothing of where they keep them.
 *
 *     WEFT_TRY(weight_check(dg, w));
 *     for (int i = 0; i < w->n_piece; i++) {
 *         WEFT_TRY(weight_find(dg, w, i, src, &piece));
 *         weight_make(&piece, 0, piece.rows, to, gather);
 *         to += piece.rows * piece.row_bytes;
 *     }
 */
#ifndef WEFT_RUNTIME_EXEC_WEIGHT_ROWS_H
#define WEFT_RUNTIME_EXEC_WEIGHT_ROWS_H

#include "compiler/plan.h"
#include "runtime/base/weight_source.h"

/* One piece of a weight, found in the checkpoint. Its rows are all axes but the last, counted as one, or
 * groups of LAYOUT_GROUP of them where they are interleaved; a piece of a vector is one row. */
typedef struct {
    const plan_weight *w;
    const char *data;   /* of its first element */
    const char *scales; /* MXFP4_HF */
    size_t bytes;       /* what it reaches over, from data on */
    int64_t n;          /* numbers of a row */
    int64_t rows;
    size_t row_bytes; /* once made */
} weight_piece;

weft_status weight_misfit(weft_diag *dg, const plan_weight *w, const char *why); /* W1501 */
weft_status weight_cancelled(weft_diag *dg);                                     /* W1412 */
/* Do the pieces make up all of axis 0? */
weft_status weight_check(weft_diag *dg, const plan_weight *w) WEFT_MUST_USE;
/* Piece i, all of whose bytes are inside their tensor. */
weft_status weight_find(weft_diag *dg, const plan_weight *w, int i, const weight_source *src,
                        weight_piece *out) WEFT_MUST_USE;
/* How many bytes of its tensor piece i reaches over, which are not looked at; false: that cannot be. */
bool weight_reach(const plan_weight *w, int i, size_t *out_bytes) WEFT_MUST_USE;
/* Rows [first, first + n) of a piece, one after the other. gather: row_bytes of memory where they are
 * interleaved, else not used. */
void weight_make(const weight_piece *v, int64_t first, int64_t n, char *to, char *gather);
/* Where the next of the blocks that begin at PLAN_ALIGN begins. */
size_t weight_block_end(size_t at, size_t bytes);

/* The checksum of fixed numbers made into rows; 0 for what is never interleaved. For names of files. */
uint64_t weight_make_sample(klayout l, dtype type, dtype stored);

#endif
