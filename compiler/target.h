/* target.h - what a graph is compiled for: the back end, and how a session will be used.
 *
 * Passes read it to fuse only what a kernel can do; the stages that make a plan read the rest. */
#ifndef WEFT_COMPILER_TARGET_H
#define WEFT_COMPILER_TARGET_H

#include "compiler/backend.h"
#include "runtime/base/intmath.h"

typedef struct target {
    const backend *be;
    int64_t n_ctx;     /* tokens a sequence may hold */
    int64_t n_seq;     /* sequences */
    int64_t n_tok_max; /* rows in one call: the largest bucket */
    int64_t n_out_max; /* rows of one call that outputs [R] may be asked for; 0: n_tok_max */
    dtype kv;          /* what state cells store: DT_F32, DT_F16 or DT_BF16 */
    kpolicy tiers;     /* by age; n_tier 0: all as kv */
    const char *const *outputs; /* "logits", "resid" (all of them), "resid.3"; NULL: every output */
    int n_output;
    int64_t
        lora_slots; /* adapters that a session may hold; 0: none, and plans have no nodes for them */
    int64_t lora_rank;  /* rows of A that each may have; 0 without slots */
    bool may_fork;      /* sequences may share their beginnings */
    bool deterministic; /* the same bits however rows come together in calls */
    bool round_bf16;    /* round activations for BF16 weights to bf16; be is of that kind */
    bool open;      /* no thread keeps values of whole rows to itself, so that all can be watched */
    bool as_stored; /* use weights as stored, also where kernels want them interleaved */
    const backend *
        laid_for; /* weights lie as this one wants them, wherever be has kernels for that; NULL: as be wants them */
    const char *const *skip; /* passes to leave out, by name */
    int n_skip;
} target;

enum { LORA_SLOTS_MAX = 1024, LORA_RANK_MAX = 4096 };
enum { TARGET_ROWS_MAX = 1 << 20 }; /* of one call */
/* Rows of a call that can be used, of those asked for: no more than all sequences hold, nor TARGET_ROWS_MAX. */
static inline int64_t target_rows(int64_t asked, int64_t n_ctx, int64_t n_seq)
{
    int64_t all;
    if (!i64_mul(n_ctx, n_seq, &all) || all > TARGET_ROWS_MAX)
        all = TARGET_ROWS_MAX;
    return asked < all ? asked : all;
}

#endif
