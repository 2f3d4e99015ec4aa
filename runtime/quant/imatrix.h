/* imatrix.h - what each input column of each linear is worth: the mean square of what passes through it.
 *
 * On disk this is a GGUF file as llama.cpp's llama-imatrix writes it: for the weight NAME a tensor NAME.in_sum2 [mats,
 * columns] with the sums of squares and NAME.counts [mats] with how many rows were added, where mats is the number of
 * experts or 1; the keys general.type = "imatrix", imatrix.datasets, imatrix.chunk_count and imatrix.chunk_size.
 *
 * Collecting: imatrix_create, imatrix_add for every call of a linear, imatrix_write. Not thread-safe. */
#ifndef WEFT_RUNTIME_QUANT_IMATRIX_H
#define WEFT_RUNTIME_QUANT_IMATRIX_H

#include "runtime/base/diag.h"

typedef struct imatrix imatrix;

typedef struct {
    str name;              /* of the weight's tensor in GGUF: blk.0.attn_q.weight */
    int64_t mats, columns; /* experts, or 1 */
    float *sums;           /* [mats, columns]; after reading: means */
    float *counts;         /* [mats] */
} imatrix_entry;

imatrix *imatrix_create(void);
void imatrix_destroy(imatrix *im); /* NULL is fine */

/* Add x[rows, columns], the inputs of one linear; mat is the expert they went to, or 0. The first call for a name
 * settles mats and columns. */
void imatrix_add(imatrix *im, str name, int64_t mats, int64_t mat, const float *x, int64_t rows,
                 int64_t columns);

/* dataset: a name for what was read; chunks of chunk_tokens tokens each. */
weft_status imatrix_write(weft_diag *dg, const imatrix *im, const char *path, const char *dataset,
                          int64_t chunks, int64_t chunk_tokens) WEFT_MUST_USE;

/* Sums become means; an expert that was never used has ones. W1017 if it is a GGUF file of another kind. */
weft_status imatrix_read(weft_diag *dg, const char *path, imatrix **out_im) WEFT_MUST_USE;

size_t imatrix_count(const imatrix *im);
const imatrix_entry *imatrix_at(const imatrix *im, size_t i);
const imatrix_entry *imatrix_find(const imatrix *im, str name); /* NULL: none */
int64_t imatrix_chunks(const imatrix *im);

#endif
