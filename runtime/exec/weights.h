/* weights.h - the weights of a plan on a device, laid out as its kernels read them.
 *
 * Loading checks every byte range against the checkpoint, so that kernels need not. Weights never
 * change once loaded; any number of sessions on the same device may read them. */
#ifndef WEFT_RUNTIME_EXEC_WEIGHTS_H
#define WEFT_RUNTIME_EXEC_WEIGHTS_H

#include "compiler/plan.h"
#include "runtime/base/cancel.h"
#include "runtime/base/weight_source.h"

typedef struct device device;

/* The beginning of what a device keeps of them. */
typedef struct {
    device *dev;
    const plan *p;
} weights;

/* How far repacking is, or copying to a device, reported now and then by the thread that called. */
typedef struct {
    void (*report)(void *ctx, uint64_t done, uint64_t total); /* bytes; NULL: nobody asks */
    void *ctx;
} weights_progress;

typedef struct {
    int threads;    /* that repack; 0: one */
    bool use_cache; /* keep repacked weights on disk, and use what was kept (weight_cache.h) */
    const char *cache_dir;    /* in this folder; NULL or empty: the environment's */
    uint64_t cache_bytes_max; /* all files in it take no more; 0: CACHE_BYTES_MAX */
    bool check_cache; /* compare all checksums of what was kept, not only if it has changed */
    weights_progress progress;
    /* Repacked weights that no file can hold may take this much memory; 0: any. */
    size_t interleaved_max;
    const cancel_flag *cancel; /* stops loading and repacking; NULL: nothing does */
} weights_options;

/* Memory by purpose, in bytes. */
typedef struct {
    size_t mapped; /* read in place: the file's pages, not memory of ours */
    size_t copied;
    size_t cached;      /* repacked, in a mapped file of the weight cache: the same */
    size_t interleaved; /* repacked, in memory of ours */
    size_t tables;      /* addresses */
    size_t
        host; /* tables of the host's, where the device has memory of its own; else they are in tables */
} weights_memory;

/* Both p and src must outlive the weights; dev NULL: the CPU; opt may be NULL. W1501 if p was not made for
 * src, W0902 if the copies do not fit into memory or into opt->interleaved_max, W1412 if opt->cancel was set
 * before all was loaded. */
weft_status weights_create(weft_diag *dg, device *dev, const plan *p, const weight_source *src,
                           const weights_options *opt, weights **out_w) WEFT_MUST_USE;
void weights_destroy(weights *w); /* NULL is fine */

/* What weights_bytes will say; changes nothing on the disk. src NULL: nothing is cached. */
weights_memory weights_need(device *dev, const plan *p, const weight_source *src,
                            const weights_options *opt);
weights_memory weights_bytes(const weights *w);

/* W1012 if a file of repacked weights became shorter, so that what was read since then may be zeros; see
 * weight_cache.h. What becomes of the source it knows itself (weight_source_kind.check). */
weft_status weights_check(weft_diag *dg, const weights *w) WEFT_MUST_USE;

#endif
