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

/* The changes of a blend of in[n] put into a job for the same model; bm is bound with its site names. job, bm, b and the
 * adapters must outlive the merge, which must outlive quant_job_write. W0706: two of them hold one weight whole. */
weft_status adapter_merge_create(weft_diag *dg, quant_job *job, const bound_model *bm,
                                 const blend *b, const blend_input *in, size_t n,
                                 adapter_merge **out) WEFT_MUST_USE;
void adapter_merge_destroy(adapter_merge *m); /* NULL is fine */

/* The blend as sites of one adapter, in home: exact, of the summed rank, where it is a sum and rank is 0; otherwise the
 * nearest of that rank (0: of the summed rank). progress is called with how many of b->n_site are done; may be NULL.
 * out_error: the largest share of a site's norm that is lost. */
adapter_site *blend_factors(const blend *b, int64_t rank, arena *home,
                            void (*progress)(void *ctx, uint64_t done), void *ctx,
                            double *out_error);

#endif
