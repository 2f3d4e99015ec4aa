/* imatrix_collect.h - what passes through the linears of a running session, added up for an importance file.
 *
 *     imatrix_collect *c;
 *     WEFT_TRY(imatrix_collect_begin(dg, im, s, mf, &c));
 *     for each call: imatrix_collect_rows(c, n_tok, n_out); session_eval(...);
 *     imatrix_collect_end(c);
 *
 * In the session's plans every linear reads from the session's memory, and a whole tensor: one for the reference kernels, or one
 * that api_session_create_watched makes. What it reads may be quantised (kernels/act.h), and rounded by that. The checkpoint
 * is a GGUF file, whose names an importance file uses. im, session and checkpoint must outlive the collector. Called by the session's thread alone. */
#ifndef WEFT_RUNTIME_QUANT_IMATRIX_COLLECT_H
#define WEFT_RUNTIME_QUANT_IMATRIX_COLLECT_H

#include "runtime/exec/session.h"
#include "runtime/formats/model_file.h"
#include "runtime/quant/imatrix.h"

typedef struct imatrix_collect imatrix_collect;

/* W1017 for another plan or checkpoint. */
weft_status imatrix_collect_begin(weft_diag *dg, imatrix *im, session *s, const model_file *mf,
                                  imatrix_collect **out_c) WEFT_MUST_USE;
/* How many rows the next call has, and of how many of them outputs are asked for. */
void imatrix_collect_rows(imatrix_collect *c, int64_t n_tok, int64_t n_out);
void imatrix_collect_end(imatrix_collect *c); /* NULL is fine */

/* Row r of a group of quantised rows (kernels/act.h), n numbers, as f32. */
void imatrix_unpack(kact act, const void *rows, int r, int64_t n, float *out);

#endif
