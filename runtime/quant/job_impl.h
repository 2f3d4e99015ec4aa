/* job_impl.h - the inside of a quant_job. */
#ifndef WEFT_RUNTIME_QUANT_JOB_IMPL_H
#define WEFT_RUNTIME_QUANT_JOB_IMPL_H

#include "compiler/compiler.h"
#include "runtime/formats/gguf_write.h"
#include "runtime/quant/job.h"
#include "runtime/text/tok.h"

/* One of these three. */
struct quant_source {
    const model_tensor *stored; /* a tensor of a GGUF file, as it is */
    const other_weight *bound;  /* a weight of a Hugging Face checkpoint, and how GGUF wants it */
    const quant_source *next;   /* the weight whose rows follow in this tensor; NULL: none */
    const float *values;        /* made here */
};

struct quant_job {
    arena *a;
    const model_file *mf;
    bound_model *bm; /* Hugging Face */
    VEC(value_member) keys;
    VEC(quant_tensor) tensors;
};

void job_put_key(quant_job *j, str name, value v); /* the name is copied */
/* W1016 if GGUF has no room for it. */
weft_status job_put_tensor(weft_diag *dg, quant_job *j, str name, dtype from, int rank,
                           const int64_t *shape, quant_source place) WEFT_MUST_USE;
const value *job_key(const quant_job *j, const char *name); /* NULL: none; full name */

/* job_rows.c: row i of the tensor as f32, in the order it is written; scratch[columns] may be used. */
void job_read_row(const quant_job *j, const quant_tensor *t, int64_t i, float *dst, float *scratch);

/* job_hf.c */
weft_status job_from_hf(weft_diag *dg, quant_job *j, const char *arch) WEFT_MUST_USE;
/* job_hf_text.c: the tokenizer, where there is one. */
weft_status job_put_tokenizer(weft_diag *dg, quant_job *j) WEFT_MUST_USE;
/* job_text_same.c: are these keys, with those of the job, a tokenizer like t? What differs is warned of (W1212).
 * False, with out_why, if too much does. */
bool job_text_same(weft_diag *dg, quant_job *j, tok *t, const tok_keys *keys,
                   const char **out_why) WEFT_MUST_USE;
/* job_same.c: does a GGUF file with these keys and tensors compute the same? W1016 if not. */
weft_status job_check_same(weft_diag *dg, quant_job *j, const char *arch) WEFT_MUST_USE;

/* job_write.c: all keys and tensors; the tensors' data is made by job_fill. */
typedef struct job_writing job_writing;
gguf_writer *job_writer(quant_job *j, job_writing *w);

#endif
