/* adapter_merge_impl.h - the inside of a merge, for the two ways of writing one. */
#ifndef WEFT_RUNTIME_LORA_ADAPTER_MERGE_IMPL_H
#define WEFT_RUNTIME_LORA_ADAPTER_MERGE_IMPL_H

#include "runtime/lora/adapter_merge.h"
#include "runtime/lora/store_map.h"

/* What a weight gets: a blend, or a whole weight in its place. */
typedef struct {
    adapter_site place;
    const blend_site *sum; /* one of the two */
    const adapter_full *full;
    double share; /* of full */
} merge_gain;

struct adapter_merge {
    arena *home;
    const bound_model *bm;
    const blend *b;
    merge_gain *from; /* by weight, then index */
    size_t n;
    store_tensors tensors;
};

/* Row `row` of a stored tensor, x[n], with what it gets. */
void merge_row(const adapter_merge *m, const store_tensor *t, int64_t row, float *x, int64_t n);
/* Whether one table serves as embedding and head, and only one of them changes; and which weights these are. */
bool merge_unties(const adapter_merge *m, const gweight **out_table, const gweight **out_head);

#endif
