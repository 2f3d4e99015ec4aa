/* plan.h - what the compiler hands to every executor: data only, no pointers into the compiler.
 *
 * A plan is made for one target. It holds a list of steps for each bucket of T; weights, constants,
 * cells and memory are shared by all. Every operand is (space, id, offset); a loader resolves spaces to
 * addresses once. What changes between calls is data in the batch, never a step.
 *
 * Steps stand in the order in which every thread walks them, in items, items in phases. No thread begins
 * a phase before all have ended the previous one; within a phase threads do not wait for each other. An
 * item is one step that each thread computes whole, into memory of its own, or a chain of steps over the
 * same units: a thread claims a range of units and takes it through all steps of the chain.
 *
 * A plan lives in the arena it was made in, and its locations need their sources. It never changes,
 * so any number of sessions may share it. */
#ifndef WEFT_COMPILER_PLAN_H
#define WEFT_COMPILER_PLAN_H

#include "kernels/kernels.h"
#include "runtime/base/source.h"

#include <string.h>

enum { PLAN_ALIGN = 64 }; /* of everything the plan lays out, in bytes */

typedef enum {
    SPACE_NONE,
    SPACE_WEIGHT,  /* id: a weight of the plan */
    SPACE_CONST,   /* offset into the plan's constants */
    SPACE_ARENA,   /* offset into the session's activations */
    SPACE_LOCAL,   /* offset into each thread's own memory, where every thread has the value */
    SPACE_TILE,    /* the same, but it holds only those columns that a range of units covers: the
                     first of them at the offset, rows `pitch` apart */
    SPACE_IO,      /* id: plan_io */
    SPACE_ADAPTER, /* id: a site of the plan; the memory of its slots */
} plan_space;

typedef enum { IO_TOKENS, IO_POS, IO_ROWS, IO_COUNT } plan_io;

typedef struct {
    plan_space space;
    dtype type;
    int32_t id;
    int64_t offset; /* bytes */
} plan_operand;

/* How many rows there are: all tokens, the rows asked for, the sequences, or a fixed number. */
typedef enum { ROWS_T, ROWS_R, ROWS_S, ROWS_FIXED } plan_rows;

/* What a step moves and computes. A multiplication, an addition and a function such as exp count one
 * flop each. */
typedef struct {
    int64_t call_bytes;           /* weights and constants, read whole by every call */
    int64_t row_bytes, row_flops; /* for each row: its activations, and weights chosen by it */
    int64_t key_bytes, key_flops; /* attend: for each row and each position that it sees */
} plan_cost;

/* A kernel that steps name. Whoever loads the plan finds it by its name, in a table of its own; the rest is what a
 * reader of the plan needs to know of it. */
typedef struct {
    const char *name; /* k_linear_Q8_0_c: a row of kernels.def */
    kop op;
    dtype type;     /* of the weight it reads; DT_COUNT: any */
    klayout layout; /* and how its rows lie */
    kact act;       /* how it wants its first operand */
    kunit unit;     /* of work, where it is not tiles */
    bool reference; /* it takes rows without gaps, vectors as they are stored, and no tiles */
    int32_t row;    /* the back end's number for it, which no file has */
} plan_kernel;

typedef struct {
    int32_t kernel; /* of the plan */
    plan_operand in[K_IN_MAX], out[K_OUT_MAX];
    int32_t n_in, n_out;
    /* n[0] is set at each call: the rows there are, times per_row; with ROWS_FIXED it stays. */
    plan_rows rows;
    int64_t per_row;
    /* The kernel's other arguments. */
    int64_t pitch[K_IN_MAX], out_pitch[K_OUT_MAX];
    int64_t stride[K_IN_MAX][K_AXES_MAX];
    union {
        int64_t n[K_SIZES_MAX];
        ksizes size;
    };
    union {
        double f[K_SCALARS_MAX];
        kscalars scalar;
    };
    union {
        int32_t word[K_WORDS_MAX];
        kchoices choice;
    };
    int64_t cols, tile;   /* tile 0: units are those of the kernel's row */
    int32_t code, n_code; /* of a map: instructions of the plan */
    int32_t cell;         /* -1, or the cell it reads or writes */
    int32_t layer;        /* -1 outside layers */
    int32_t node;         /* of the graph: the last one it computes */
    int32_t value
        [K_OUT_MAX]; /* the graph's value that each result is; -1: none, as of a quantize step */
    bool prec_f32;   /* the model file asks that nothing round its activations */
    weft_loc loc;
    plan_cost cost;
} plan_step;

typedef struct {
    int32_t first, n_step; /* of the bucket's steps */
    int32_t phase;
    bool per_thread; /* every thread computes all of it for itself; else units are shared out */
    int64_t grain; /* units that may be claimed at once, where tiles of a thread bound it; 0: any */
} plan_item;

/* Item `to` reads what item `from` made, or touches a cell after it. Phases follow from these; but memory of values is
 * shared by phases, so whoever runs items in another order has to place values anew. */
typedef struct {
    int32_t from, to;
} plan_edge;

/* The steps for calls of at most n_tok_max rows. */
typedef struct {
    int64_t n_tok_max;
    int32_t n_step, n_item, n_phase, n_edge;
    const plan_step *step;
    const plan_item *item; /* phases ascend; within one, per-thread ones come first */
    const plan_edge *edge;
    const plan_operand *output; /* [n_output]: where each is after a call */
    size_t arena_bytes;         /* of the arena, what this bucket uses */
    size_t local_bytes;         /* of each thread: LOCAL and TILE values */
    size_t scratch_bytes;       /* of each thread, for kernels; behind those */
} plan_bucket;

/* How a weight comes into memory. */
typedef enum {
    WEIGHT_MAPPED, /* in place in the checkpoint; its rows are contiguous and evenly pitched, or groups of them where
                           the source has them interleaved already */
    WEIGHT_COPIED,      /* moved, converted or computed once when loaded: rows without gaps */
    WEIGHT_INTERLEAVED, /* interleaved into another layout once, which may be kept for the next time */
} plan_weight_mode;

typedef struct {
    int32_t tensor; /* in the checkpoint's directory */
    int64_t offset; /* bytes */
    int64_t rows;   /* how much of axis 0 it holds */
} plan_piece;

/* A stored tensor as kernels read it. Axis 0 is made of the pieces; within one, axis i advances
 * stride[i] bytes, and a last axis of blocks has stride 0. */
typedef struct {
    const char *name;
    plan_weight_mode mode;
    klayout layout;     /* once loaded */
    dtype stored, type; /* in the checkpoint, and once loaded */
    int32_t rank;
    int64_t dim[K_AXES_MAX], stride[K_AXES_MAX];
    int64_t rows, pitch; /* once loaded: the axes before the last as one, and bytes between rows;
                            interleaved, between groups of rows */
    int32_t align;       /* MAPPED: its address is a multiple of this; 0: of anything */
    int64_t n_table;     /* 0: operands get the first row's address; else a table of this many
                            addresses, one for each index of axis 0 */
    int32_t n_piece;
    const plan_piece *piece, *scales; /* scales: the second tensor of MXFP4_HF, else NULL */
    const float *computed;            /* its values, where the model maps them; else NULL */
    size_t bytes;                     /* its rows once loaded, without gaps */
} plan_weight;

/* How a cell's rows lie in memory: in pages, all of a sequence in one page, or in pages of which those
 * behind the window are given back. */
typedef enum { PLAN_PAGED, PLAN_CONTIGUOUS, PLAN_RING } plan_cell_layout;

typedef struct {
    const char *name;
    bool latent;         /* one row of k for each token, whose first v serve as value; heads is 1 */
    int64_t heads, k, v; /* for each token: keys [heads, k], values [heads, v] */
    int64_t window;      /* the widest of all that read it; 0: some see everything */
    plan_cell_layout layout;
    int64_t keep; /* PLAN_RING: rows behind a sequence's end that stay */
    bool bounded; /* its pages are never coarser than `coarsest` */
    kform coarsest;
    int64_t pin; /* pages with the first so many tokens stay in tier 0 */
} plan_cell;

/* A weight that adapters add to. In memory its slots follow each other, in the layout of kernels/lora.h. */
typedef struct {
    const char *name; /* of the model's weight */
    int64_t first;    /* row of that weight, of each part: this one may be a part of it */
    lora_kind kind;
    int64_t in, out, parts;
    size_t offset;     /* in the memory of all slots */
    size_t slot_bytes; /* of one slot */
} plan_site;

typedef struct {
    const char *name;
    int32_t index; /* -1 without one */
    plan_rows rows;
    int64_t width; /* elements per row */
    int64_t n_row; /* ROWS_FIXED: how many */
} plan_output;

typedef struct plan {
    const char *model, *entry;
    const char *backend, *level; /* that it was made for: "cpu", "amx" */
    karch arch;                  /* and of which architecture */
    dtype kv;                    /* what cells store, in their first tier */
    kpolicy tiers;               /* by age; n_tier 0: all as kv */
    bool deterministic;
    int64_t n_tok_max; /* of the largest bucket */
    int64_t n_out_max, n_seq_max;
    int64_t n_ctx;   /* tokens a sequence may hold; 0: the plan does not depend on it */
    int64_t n_vocab; /* token ids are below this; 0: no step looks one up */
    int64_t n_pos;   /* positions are below this; 0: no step looks one up */
    int64_t lora_slots,
        lora_rank; /* adapters that a session holds, and the rank of each at most; 0: none */
    int32_t n_kernel, n_bucket, n_weight, n_cell, n_output, n_code, n_site;
    const plan_kernel *kernel;
    const plan_bucket *bucket; /* by n_tok_max, ascending */
    const plan_weight *weight;
    const plan_cell *cell;
    const plan_output *output;
    const plan_site *site;
    const kinstr *code;
    const void *consts;
    size_t const_bytes;
    size_t arena_bytes, local_bytes, scratch_bytes; /* the most of any bucket */
    size_t input_bytes;       /* of the arena, at its beginning: what another part of a model gives
                           before each call (plan_part); no file has such a plan */
    size_t adapter_bytes;     /* of all slots, each site begun at PLAN_ALIGN */
    size_t copied_bytes;      /* of all COPIED weights, each begun at PLAN_ALIGN */
    size_t table_bytes;       /* of all tables of addresses, each begun at PLAN_ALIGN */
    size_t interleaved_bytes; /* of all INTERLEAVED weights, each begun at PLAN_ALIGN */
    size_t mapped_bytes;      /* of all MAPPED weights, those in the same place counted once */
} plan;

/* A model that is run in parts, one after the other in each call, each a plan for a device of its own. An input is what an
 * earlier part gives as an output, at a place in the arena that is the same in all buckets. */
typedef struct {
    int32_t part, output;
    int64_t offset;
} plan_input;

typedef struct {
    const plan *p;
    bool card; /* else the CPU */
    int32_t n_in;
    const plan_input *in;
} plan_part;

enum { PLAN_PARTS_MAX = 3 };

typedef struct {
    int32_t n_part;
    plan_part part[PLAN_PARTS_MAX];
} plan_parts;

/* The parts of a model that is run whole, too: one. */
static inline plan_parts plan_parts_or(const plan_parts *parts, const plan *whole)
{
    return parts ? *parts : (plan_parts){.n_part = 1, .part = {{.p = whole}}};
}

#define PLAN_HANDED                                                                                \
    "handed on" /* the name of outputs for later parts, which no model file can have */

/* The tiers of a plan or target, and those of a cell. */
static inline kpolicy plan_tiers(const kpolicy *tiers, dtype kv)
{
    kform f = kform_of_dtype(kv);
    return tiers->n_tier ? *tiers : kpolicy_plain(f, f);
}

static inline kpolicy plan_cell_tiers(const plan_cell *c, const kpolicy *tiers)
{
    return kpolicy_for_cell(tiers, c->bounded ? c->coarsest : KFORM_COUNT, c->latent);
}

/* What cells store, as --kv takes it. */
static inline const char *plan_kv_text(const plan *p, char to[KPOLICY_TEXT_MAX])
{
    return p->tiers.n_tier ? kpolicy_text(&p->tiers, to) : kform_name(kform_of_dtype(p->kv));
}

/* A cell as kernels see it, without memory and pages. */
static inline kcell plan_cell_view(const plan_cell *c, const kpolicy *tiers)
{
    kpolicy own = plan_cell_tiers(c, tiers);
    kcell to = {.n_tier = own.n_tier, .heads = c->heads, .k = c->k, .v = c->v, .latent = c->latent};
    for (int32_t i = 0; i < own.n_tier; i++)
        to.tier[i] = (kcell_tier){.key = own.tier[i].key, .value = own.tier[i].value};
    return to;
}

/* The bucket for a call of n_tok rows, at most n_tok_max of them. */
static inline const plan_bucket *plan_bucket_for(const plan *p, int64_t n_tok)
{
    const plan_bucket *b = p->bucket;
    while (b->n_tok_max < n_tok)
        b++;
    return b;
}

/* n[0] of a step in a call of so many rows, rows asked for and sequences. */
static inline int64_t plan_step_rows(const plan_step *s, int64_t n_tok, int64_t n_out,
                                     int64_t n_seq)
{
    const int64_t rows[] = {n_tok, n_out, n_seq};
    return s->rows == ROWS_FIXED ? s->n[0] : rows[s->rows] * s->per_row;
}

/* How a site's slots lie in memory. */
static inline lora_shape plan_site_shape(const plan *p, const plan_site *s)
{
    return (lora_shape){
        .kind = s->kind, .in = s->in, .out = s->out, .parts = s->parts, .rank = p->lora_rank};
}

/* May all shared items of a phase be without units, because no row of a call uses an adapter? What every thread does for
 * itself there may then run together with the next phase, without a barrier between them. */
static inline bool plan_phase_may_idle(const plan *p, const plan_bucket *b, int32_t first)
{
    int32_t phase = b->item[first].phase;
    bool down = false;
    for (int32_t i = first; i < b->n_item && b->item[i].phase == phase; i++) {
        if (b->item[i].per_thread)
            continue;
        if (p->kernel[b->step[b->item[i].first].kernel].op != KOP_lora_down)
            return false;
        down = true;
    }
    return down;
}

/* Attention with this kernel may be two steps, the second of which merges what the first made of stretches of positions. */
static inline bool plan_kernel_splits(const plan_kernel *k)
{
    return kunit_splits(k->unit);
}

static inline const plan_kernel *plan_kernel_of(const plan *p, const plan_step *s)
{
    return &p->kernel[s->kernel];
}

/* The output of this name and index, -1 for one without; NULL if the plan has none such. */
static inline const plan_output *plan_output_find(const plan *p, const char *name, int32_t index)
{
    for (int32_t i = 0; i < p->n_output; i++)
        if (p->output[i].index == index && strcmp(p->output[i].name, name) == 0)
            return &p->output[i];
    return NULL;
}

/* Is a mapped weight in the same bytes of the checkpoint as another one, as a head that is tied to the
 * embedding? */
static inline bool plan_weights_share(const plan_weight *a, const plan_weight *b)
{
    bool same = a->mode == WEIGHT_MAPPED && b->mode == WEIGHT_MAPPED && a->bytes == b->bytes &&
                a->n_piece == b->n_piece;
    for (int32_t i = 0; i < a->n_piece && same; i++)
        same = a->piece[i].tensor == b->piece[i].tensor && a->piece[i].offset == b->piece[i].offset;
    return same;
}

#endif
