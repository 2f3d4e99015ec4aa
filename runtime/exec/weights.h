/* weights.h - the weights of a plan in memory: views into the checkpoint, and copies where a plan asks
 * for them.
 *
 * Loading checks every byte range against the checkpoint, so that kernels need not. Weights never
 * change once loaded; any number of sessions may read them. */
#ifndef WEFT_RUNTIME_EXEC_WEIGHTS_H
#define WEFT_RUNTIME_EXEC_WEIGHTS_H

#include "compiler/plan.h"
#include "runtime/base/cancel.h"
#include "runtime/formats/model_file.h"

typedef struct weights weights;

/* How far interleaving is, told now and then by the thread that called. */
typedef struct {
    void (*report)(void *ctx, uint64_t done,
                   uint64_t total); /* bytes; NULL: nobody wants to know */
    void *ctx;
} weights_progress;

typedef struct {
    int threads;    /* that interleave; 0: one */
    bool use_cache; /* keep interleaved weights on disk, and use what was kept (weight_cache.h) */
    const char *cache_dir;    /* in this folder; NULL or empty: the environment's */
    uint64_t cache_bytes_max; /* all files in it take no more; 0: CACHE_BYTES_MAX */
    bool check_cache; /* compare all checksums of what was kept, not only if it has changed */
    weights_progress progress;
    /* Interleaved weights that no file can hold may take this much memory; 0: any. */
    size_t interleaved_max;
    const cancel_flag *cancel; /* stops loading and interleaving; NULL: nothing does */
} weights_options;

/* Both p and mf must outlive the weights; opt may be NULL. W1501 if p was not made for mf, W0902 if the
 * copies do not fit into memory or into opt->interleaved_max, W1412 if opt->cancel was set before all was loaded. */
weft_status weights_create(weft_diag *dg, const plan *p, const model_file *mf,
                           const weights_options *opt, weights **out_w) WEFT_MUST_USE;
void weights_destroy(weights *w); /* NULL is fine */

/* W1012 if a file of interleaved weights became shorter, so that what was read since then may be zeros; see
 * weight_cache.h. What becomes of the checkpoint model_file_check knows. */
weft_status weights_check(weft_diag *dg, const weights *w) WEFT_MUST_USE;

/* What an operand with weight i of the plan is given: the address of its first row, or a table of
 * addresses where the plan says so. */
const void *weights_at(const weights *w, int32_t i);

/* Are the interleaved weights in a file that is mapped, so that they need no memory of their own? */
bool weights_cache_mapped(const weights *w);

/* Memory that weights of p have for themselves and for addresses; the copies are p->copied_bytes. */
size_t weights_table_bytes(const plan *p);

#endif
