/* store_map.h - where a format keeps the weights that are adapted: the way back from sites to tensors.
 *
 * Binding goes from an adapter's tensors to the weights of a model; writing an adapter, or weights with one merged in,
 * goes back. For each tensor that a format would store there is a table: which row of which site each of its rows is. */
#ifndef WEFT_RUNTIME_LORA_STORE_MAP_H
#define WEFT_RUNTIME_LORA_STORE_MAP_H

#include "runtime/lora/adapter.h"

typedef struct {
    int32_t site; /* -1: no site reaches this row */
    int32_t at;   /* its row there; with flip its column */
    bool flip;
} store_row;

typedef struct {
    str name;       /* without .weight */
    bool raw;       /* the name is complete */
    bool embedding; /* its rows are looked up */
    bool
        turned; /* a module that keeps its weight as [in, out]; rows here are outputs all the same */
    int64_t stacked, out, in; /* [stacked, out, in]; stacked 0: [out, in] */
    store_row *row;           /* [stacked * out] */
} store_tensor;

typedef VEC(store_tensor) store_tensors;

/* The tensors of one format that hold these sites, in home. bm is bound with its site names (bind_options.sites). W0705
 * where a weight cannot be taken back, by name. The caller frees out, also after a failure. */
weft_status store_map(weft_diag *dg, const bound_model *bm, const adapter_site *site, size_t n_site,
                      bool gguf, arena *home, store_tensors *out) WEFT_MUST_USE;

/* The factors of one tensor, at one index of its stack: A [rank, in], B [out, rank], in home. Parts whose A is the same
 * are one part. */
typedef struct {
    int64_t rank;
    const float *a, *b;
    double scale;
} store_pair;
store_pair store_pair_of(const store_tensor *t, int64_t index, const adapter_site *site,
                         arena *home);

#endif
