/* adapter_merge.h - blends of adapters into weights, or into one adapter.
 *
 * Weights are read, changed and written some rows at a time (runtime/quant/job.h). A model whose head is its embedding
 * gets a head of its own where one of them changes and the other does not. A weight that an adapter holds whole takes
 * the place of the base's, by as much as the adapter's share says. */
#ifndef WEFT_RUNTIME_LORA_ADAPTER_MERGE_H
#define WEFT_RUNTIME_LORA_ADAPTER_MERGE_H

#include "runtime/lora/blend.h"
#include "runtime/quant/job.h"

typedef struct adapter_merge adapter_merge;

/* What a blend of in[n] changes in the tensors of one format; bm is bound with its site names, and it, b and the
 * adapters must outlive the merge. W0706: two of them hold one weight whole. */
weft_status adapter_merge_create(weft_diag *dg, const bound_model *bm, const blend *b,
                                 const blend_input *in, size_t n, bool gguf,
                                 adapter_merge **out) WEFT_MUST_USE;
void adapter_merge_destroy(adapter_merge *m); /* NULL is fine */

/* The changes put into a job for the same model, of GGUF's tensors; the merge must outlive quant_job_write. */
weft_status adapter_merge_attach(weft_diag *dg, adapter_merge *m, quant_job *job) WEFT_MUST_USE;

/* A Hugging Face folder with the changes in it: one file of tensors in the types that they have, and all other files of
 * the folder as they are. It is made if it is not there. progress as in quant_write_options, of merge_folder_bytes. W0705
 * for a head that is shared with the embedding and would have to be parted; W1008, W1904, W1004. */
typedef struct {
    void (*progress)(void *ctx, uint64_t done);
    void *ctx;
} merge_folder_options;
weft_status merge_folder_write(weft_diag *dg, const adapter_merge *m, const char *path,
                               const merge_folder_options *how) WEFT_MUST_USE;
uint64_t merge_folder_bytes(const adapter_merge *m);

/* The blend as sites of one adapter, in home: exact, of the summed rank, where it is a sum and rank is 0; otherwise the
 * nearest of that rank (0: of the summed rank), by threads of the pool. progress is called with how many of b->n_site are done; may be NULL.
 * out_error: the largest share of a site's norm that is lost. */
adapter_site *blend_factors(const blend *b, int64_t rank, int threads, arena *home,
                            void (*progress)(void *ctx, uint64_t done), void *ctx,
                            double *out_error);

#endif
