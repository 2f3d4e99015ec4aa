/* backend.h - what the compiler knows of the machine that will run a plan: its kernels, the layouts they want weights
 * in, the limits that fusing has to keep, and the stage that turns a fused graph into buckets of steps.
 *
 * The CPU has one back end for each level of kernels/variants.def, and the reference is the lowest of them; cards have one of each kind. Passes and
 * lowering ask the back end at hand; none of them knows a variant. */
#ifndef WEFT_COMPILER_BACKEND_H
#define WEFT_COMPILER_BACKEND_H

#include "compiler/plan.h"
#include "runtime/base/diag.h"

typedef struct backend backend;

/* A kernel that is looked for. */
typedef struct {
    kop op;
    dtype type;     /* of the weight it reads; DT_F32 where it reads none */
    klayout layout; /* of that weight */
    int64_t rows;   /* that a call may give it at most */
    bool exact;     /* it may not round what it multiplies */
    bool any_rows;  /* calls of all sizes use it, so that their bits are the same */
} kernel_want;

enum { CHAIN_STEPS_MAX = 16 }; /* of an item */

struct lower;

struct backend {
    const char *name;  /* of the devices that run its plans: "cpu" */
    karch arch;        /* of their processors */
    const char *level; /* "amx" */
    /* Nodes are fused, and values share memory. Else every node is a step and every value has memory of its own, so that
     * any of them can be looked at after a run: the reference. */
    bool fuses;
    /* Of one map: operands, results, and registers, within what a plan can hold (K_IN_MAX, K_OUT_MAX, MAP_REGS_MAX); and
     * steps of a chain: 1 makes each step an item of its own. */
    int map_inputs, map_results, map_registers, chain_steps;
    /* Calls of more rows than chain_rows have no chains but of contractions, and nothing that every thread computes for
     * itself. */
    int64_t chain_rows;
    /* There each phase is a launch: steps of whole rows that follow each other are one item. */
    bool launches;
    /* Elements that a thread computes again rather than wait for others, in calls of one row and of more. */
    int64_t recompute_elems[2];
    /* Columns of a chain's tile, at least, for calls of up to tile_rows rows and of more; bytes of the tiles that a thread
     * has at once; and the most that a chain may have of them, though a tile should need more: its other values are
     * shared. */
    int64_t tile_rows;
    int tile_cols[2];
    int64_t tile_bytes, tile_bytes_max;
    int64_t tile_bytes_few; /* tile_bytes of calls of up to whole_rows; 0: the same */
    /* Columns that cannot be cut, such as those of a head, in calls of one row, of 2 to whole_rows and of more: a step that has
     * more begins another item of its chain, so that threads share out what comes before it by fewer. */
    int64_t whole_rows, whole_cols[3];
    /* Attention of few rows shares out stretches of positions where a row has fewer units than these, and a context may have
     * so many positions. */
    int64_t split_units, split_positions;
    /* Where a context may have so many, stretches of one row are merged once, not by each thread for itself. 0: never. */
    int64_t merge_positions;
    /* But not in calls of several rows if those of a head, of 16 bits, have no more elements than these. */
    int64_t walk_elems;

    /* Kernels read vectors of so many bytes of weights that are floats of 16 bits: rows that do not begin at whole ones of these
     * are copied, unless they are none of whole vectors themselves. 0: they may begin anywhere. */
    int64_t vector_bytes;

    /* The best kernel for this; false: there is none. */
    bool (*select)(const backend *be, const kernel_want *want, plan_kernel *out);
    /* The kernel of this name; false: the back end has none, or this machine cannot run it. */
    bool (*find)(const backend *be, const char *name, plan_kernel *out);
    /* The layout that the kernels of an op want weights of a type in. */
    klayout (*layout)(const backend *be, kop op, dtype type, bool exact);
    /* Has it kernels of an op for weights that lie so, although it might want them otherwise? NULL: only as it wants them. */
    bool (*reads)(const backend *be, kop op, dtype type, klayout layout, bool exact);
    /* Scratch that one thread needs for a kernel, one of its own, with these arguments. */
    size_t (*scratch)(const backend *be, const plan_kernel *k, const kargs *args);
    /* Units of such a step. */
    int64_t (*units)(const backend *be, const plan_kernel *k, const kargs *args);
    /* The buckets of lo's plan from its graph: kernels, order and memory. NULL: by the compiler's own stages, of which the
     * programs that only run plans know nothing; lower_buckets if it fuses, else lower_reference. */
    weft_status (*lower)(struct lower *lo);
};

/* The best back end of this machine's processor, or the one that WEFT_CPU names (W1602 if that cannot run here).
 * round_bf16: the best that rounds activations for BF16 weights to bf16, which no others do (W1603 if there is none, or
 * WEFT_CPU leaves it out). */
weft_status backend_cpu(weft_diag *dg, bool round_bf16, const backend **out_be) WEFT_MUST_USE;
/* The best that rounds nothing, and the best that does (NULL: there is none), whatever WEFT_CPU says. */
const backend *backend_cpu_best(void);
const backend *backend_cpu_rounding(void);
/* Those that this processor can run, from plain to fast; NULL after the last. */
const backend *backend_cpu_at(int i);
/* By the name of its level; NULL if there is none such, or this processor cannot run it. */
const backend *backend_cpu_find(const char *level);
/* To make plans with for any processor of an architecture that has what the level needs, this one or not. NULL: it has no
 * such level. */
const backend *backend_cpu_for(karch arch, const char *level);
const backend *backend_reference(void);
/* To make plans with for CUDA cards, whether there is one here or not. */
const backend *backend_cuda(void);
const backend *backend_cuda_rounding(void); /* activations for BF16 and F16 weights, to bf16 */
const backend *backend_cuda_exact(void);    /* nothing of these */
/* The same for Metal GPUs. */
const backend *backend_metal(void);
/* What becomes of activations for BF16 and F16 weights: what is usual there, which rounds them little or not at all; all of their bits;
 * one bf16. */
typedef enum { ROUNDING_USUAL, ROUNDING_NONE, ROUNDING_BF16 } backend_rounding;
/* The one for a card by the name of its device, such as "cuda:1". NULL: cards of no such name are known, or none of it rounds so.
 * backend_card.c */
const backend *backend_card(const char *device, backend_rounding how);
/* Is it for a card, and of this kind? */
bool backend_card_is(const backend *be, backend_rounding how);

/* How a level of the CPU's stands to this machine: its number, from plain to fast, -1 if there is none such; and the
 * features that it needs and the processor lacks, with commas between them. */
int backend_cpu_rank(const char *level);
void backend_cpu_lacks(const char *level, strbuf *out);

#endif
