/* job.h - a checkpoint on its way into a GGUF file: keys, and tensors each with a source and a type.
 *
 *     quant_job *j;
 *     WEFT_TRY(quant_job_create(dg, mf, arch, &j));            keys and tensors, as GGUF has them
 *     WEFT_TRY(quant_job_choose(dg, j, preset, rules, im));    the type of each; what each column is worth
 *     status = quant_job_write(dg, j, path, &how);
 *     quant_job_destroy(j);
 *
 * A GGUF file keeps every key. A Hugging Face folder gets its keys, names and row orders from the model file that
 * fits it, whose lines have both formats' names; what GGUF would read differently is refused (W1016).
 * The model_file must outlive the job. Tensors are read, converted and written some rows at a time: memory stays at
 * a few rows for each thread. The result does not depend on the number of threads. */
#ifndef WEFT_RUNTIME_QUANT_JOB_H
#define WEFT_RUNTIME_QUANT_JOB_H

#include "runtime/base/diag.h"
#include "runtime/base/vec.h"
#include "runtime/formats/model_file.h"
#include "runtime/quant/imatrix.h"
#include "runtime/quant/mix.h"

typedef struct quant_job quant_job;

/* Where a tensor comes from; opaque. */
typedef struct quant_source quant_source;

/* What is done to the numbers of row i after they are read, by any thread. */
typedef struct {
    void (*apply)(const void *ctx, int64_t row, float *x, int64_t n);
    const void *ctx;
} quant_change;

typedef struct {
    str name;
    int rank;
    int64_t shape[4];      /* slowest first */
    int64_t rows, columns; /* rows of the last axis */
    const quant_source *source;
    dtype from, to;
    dtype
        wanted; /* by the preset or rule; differs from `to` where rows are no whole blocks of it */
    bool ruled; /* by a rule, not the preset */
    const imatrix_entry *importance; /* NULL: none */
    quant_change change;             /* apply NULL: none */
} quant_tensor;

/* arch: a .weft file for a Hugging Face folder; NULL: the library. There is a job to destroy in any case. */
weft_status quant_job_create(weft_diag *dg, const model_file *mf, const char *arch,
                             quant_job **out_j) WEFT_MUST_USE;
void quant_job_destroy(quant_job *j); /* NULL is fine */

/* rules and im may be NULL. W1008 if a tensor has to change that Weft cannot read, W1017 if im does not fit, W1903 if a
 * rule fits no tensor. im must outlive the job. */
weft_status quant_job_choose(weft_diag *dg, quant_job *j, const mix_preset *preset,
                             const mix_rules *rules, const imatrix *im) WEFT_MUST_USE;

/* Rows of this tensor, by its GGUF name, are changed on their way; ctx must outlive the job. False: no such tensor. W1008
 * if it is stored in a type that cannot be read, or not be written again. */
weft_status quant_job_change(weft_diag *dg, quant_job *j, str name, quant_change change,
                             bool *out_there) WEFT_MUST_USE;
/* One tensor once more under another name; false: there is none to copy, or already one of that name. */
bool quant_job_repeat(quant_job *j, str name, str as);

size_t quant_job_count(const quant_job *j);
const quant_tensor *quant_job_tensor(const quant_job *j, size_t i);
uint64_t quant_job_bytes(const quant_job *j); /* of all tensors as they are read */

typedef struct {
    int threads;
    bool
        allow_nan; /* write numbers that are NaN or infinite, or become so, instead of failing with W1018 */
    /* Called with how many of quant_job_bytes were read; may be NULL. */
    void (*progress)(void *ctx, uint64_t done);
    void *ctx;
    /* Called with the name of the file that is written until it is complete, with NULL once it is gone. */
    void (*part)(const char *path);
} quant_write_options;

/* The file, whole or not at all. W1018 names the first number that is not finite, or that its type cannot hold. */
weft_status quant_job_write(weft_diag *dg, quant_job *j, const char *path,
                            const quant_write_options *how) WEFT_MUST_USE;

#endif
