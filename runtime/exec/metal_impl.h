/* metal_impl.h - the inside of a Metal device; private to the metal_*.c files. */
#ifndef WEFT_RUNTIME_EXEC_METAL_IMPL_H
#define WEFT_RUNTIME_EXEC_METAL_IMPL_H

#include "kernels/metal/metal_rows.h"
#include "runtime/exec/exec_steps.h"
#include "runtime/exec/metal_device.h"
#include "runtime/exec/metal_maps.h"
#include <pthread.h>

enum {
    METAL_ALIGN = 256,      /* of everything that is laid out in a buffer, in bytes */
    METAL_GROUPS_A_CORE = 4 /* threadgroups of a dispatch: what a core has threads for */
};

/* A buffer: memory that host and GPU both see. */
typedef struct metal_block {
    struct metal_device *d;
    struct metal_block *next;
    metal_buffer *buffer;
    char *p; /* as the host sees it */
    size_t bytes;
    uint64_t at;  /* as kernels see it */
    bool wrapped; /* memory of somebody else, which may be in several */
} metal_block;

/* A pipeline that can run the kernels of a mask. */
typedef struct metal_made {
    struct metal_made *next;
    metal_mask mask;
    metal_pipeline *pipeline;
} metal_made;

/* The shaders with the maps of a plan, and their pipelines. */
typedef struct metal_kernels {
    struct metal_kernels *next;
    metal_shaders *shaders;
    metal_made *made;                /* of weft_phase; guarded by the device's lock */
    metal_pipeline *choose, *tokens; /* weft_choose, weft_tokens: the same */
    char maps[];                     /* their text, "" for none */
} metal_kernels;

typedef struct metal_device {
    device base;
    const metal_driver *driver; /* NULL: the GPU is not here */
    metal_gpu *gpu;
    metal_facts facts;
    int groups;      /* threadgroups of a dispatch */
    char place[128]; /* "on metal:0 (Apple M2)" */
    pthread_mutex_t lock;
    metal_block *held;      /* all memory; guarded by lock */
    metal_kernels *kernels; /* of all plans so far; guarded by lock */
} metal_device;

static inline metal_device *metal_of(const device *d)
{
    return (metal_device *)(uintptr_t)d;
}

static inline size_t metal_align_up(size_t n)
{
    return (n + METAL_ALIGN - 1) / METAL_ALIGN * METAL_ALIGN;
}

/* W1610 with what was being done. */
weft_status metal_fail(weft_diag *dg, const metal_device *d, const char *doing,
                       const metal_why *why);

/* ---- memory and pipelines: metal_memory.c ---- */

/* A buffer of so many bytes (W0902), NULL for none; memory of the host as one, of whole pages. */
weft_status metal_take(weft_diag *dg, metal_device *d, size_t bytes,
                       metal_block **out_b) WEFT_MUST_USE;
weft_status metal_wrap(weft_diag *dg, metal_device *d, const void *p, size_t bytes,
                       metal_block **out_b) WEFT_MUST_USE;
void metal_give(metal_block *b); /* NULL is fine */
/* The block that begins at p, as metal_take made it. */
metal_block *metal_block_of(metal_device *d, const void *p);
/* What kernels see where the host sees p, which is in a block that was taken; 0 for NULL. */
uint64_t metal_seen(metal_device *d, const void *p);
/* The shaders with this text of maps, "" for none: compiled when they are first asked for. W1615. */
weft_status metal_kernels_for(weft_diag *dg, metal_device *d, str maps,
                              metal_kernels **out_k) WEFT_MUST_USE;
/* A pipeline of them that can run the kernels of a mask: likewise. */
weft_status metal_pipeline_for(weft_diag *dg, metal_device *d, metal_kernels *k, metal_mask mask,
                               metal_pipeline **out_p) WEFT_MUST_USE;
/* weft_choose and weft_tokens: likewise. */
weft_status metal_choosers(weft_diag *dg, metal_device *d, metal_kernels *k) WEFT_MUST_USE;
void metal_kernels_free(metal_device *d); /* all */

/* ---- weights: metal_weights.c ---- */

weft_status metal_weights_load(weft_diag *dg, device *d, const plan *p, const weight_source *src,
                               const weights_options *opt, weights **out_w);
void metal_weights_free(weights *w);
weights_memory metal_weights_need(device *d, const plan *p, const weight_source *src,
                                  const weights_options *opt);
weights_memory metal_weights_bytes(const weights *w);
weft_status metal_weights_check(weft_diag *dg, const weights *w);
/* What an operand with weight i is given, as kernels see it. */
const void *metal_weights_at(const weights *w, int32_t i);

/* ---- plans ---- */

/* How the phases of a call are dispatched: those that have nothing to do with the next one; apart, for a watch; or an item at a
 * time, to be measured. */
typedef enum { METAL_TOGETHER, METAL_APART, METAL_EACH } metal_manner;

/* What changes from call to call. There is one of it for each call that may be under way, so that the next can be made ready. */
typedef struct {
    metal_step *steps;     /* [n_step], in memory that the GPU sees */
    metal_item *items;     /* [n_item] */
    metal_phase *phases;   /* [n_item] of room */
    metal_pipeline **pipe; /* [n_item] of room: of each phase */
    uint32_t *shared;      /* the same: its threadgroup memory */
    int64_t *units;        /* [n_item] */
    int32_t n_phase;
    /* The call that it was last made ready for. */
    bool ready;
    metal_manner manner;
    int64_t n_row[ROWS_FIXED];
    uint64_t lora;
} metal_tables;

typedef struct {
    const plan_bucket *plan;
    metal_shape *shapes; /* [n_shape]; n_step of room. In memory that the GPU sees */
    int32_t n_shape;
    kargs *args;             /* [n_step], with the GPU's addresses */
    exec_spaces *own;        /* [n_step] */
    const kernel_row **rows; /* [n_step] */
    size_t local_bytes;
    metal_tables of[DEVICE_CALLS];
} metal_bucket;

/* Where what each call has of its own is, in tables: offsets from the beginning of its part. */
typedef struct {
    size_t cells, lora, batch, batch_end, how, from, chosen, end;
} metal_parts;

struct exec {
    metal_device *d;
    const plan *p;
    device_memory bytes;
    const kcell *cells; /* of the host, written between calls */
    const klora *lora;
    size_t lora_bytes;
    const cancel_flag *cancel;
    metal_kernels *kernels;
    metal_block *arena, *blocks, *tables;
    size_t block_bytes, local_bytes, table_bytes;
    size_t consts, code, cancel_at; /* in tables; then what each call has: */
    size_t call_at[DEVICE_CALLS];
    metal_parts part;
    kcell *seen[DEVICE_CALLS]; /* [n_cell]: what those in tables were made of */
    metal_bucket *buckets;
    metal_queue *queue;
    metal_call call[DEVICE_CALLS]; /* under way, by turn */
    uint32_t turn;                 /* calls so far */
    int calls;                     /* whose tokens the GPU chooses, that are under way */
    int64_t rows[DEVICE_CALLS];    /* outputs of each, by its turn */
    metal_bucket *now;             /* of the call that was begun; NULL: there is none */
    int64_t n_tok;                 /* and its rows */
    uint64_t barriers;
    bool measure;
    step_time **times; /* [n_bucket][n_step]; NULL before the first time */
    uint64_t *ns;      /* [n_step_max], of the call */
    device_watch *watch;
    void *watch_ctx;
};

/* Which of what there are DEVICE_CALLS of a turn has. */
static inline int metal_which(uint32_t turn)
{
    return (int)(turn % DEVICE_CALLS);
}

/* Where offset `at` of a turn's part is, as the host sees it and as kernels do. */
static inline char *metal_part(const exec *e, uint32_t turn, size_t at)
{
    return e->tables->p + e->call_at[metal_which(turn)] + at;
}

static inline uint64_t metal_part_at(const exec *e, uint32_t turn, size_t at)
{
    return e->tables->at + e->call_at[metal_which(turn)] + at;
}

/* metal_load.c */
weft_status metal_need(weft_diag *dg, device *d, const device_load *what, device_memory *out_m);
weft_status metal_load(weft_diag *dg, device *d, const device_load *what, exec **out_e);
void metal_unload(exec *e);

/* metal_phases.c: the phases of a call of these units, and their pipelines. */
weft_status metal_list_phases(weft_diag *dg, exec *e, const metal_bucket *c,
                              metal_tables *t) WEFT_MUST_USE;
/* Make the tables of the turn's call ready. */
weft_status metal_prepare(weft_diag *dg, exec *e, metal_bucket *c, const kbatch *b) WEFT_MUST_USE;
/* Pipelines for all calls that a plan may have. */
weft_status metal_pipelines_make(weft_diag *dg, exec *e) WEFT_MUST_USE;

/* metal_run.c */
weft_status metal_submit(weft_diag *dg, exec *e, const kbatch *b);
weft_status metal_wait(weft_diag *dg, exec *e);
/* What the batch of a new turn is, in its part of the tables; all is made ready for its phases. */
weft_status metal_begin(weft_diag *dg, exec *e, const kbatch *b,
                        metal_bucket **out_c) WEFT_MUST_USE;
/* Into a call that is being made: phases [first, end) with a barrier behind each. */
void metal_dispatch(exec *e, metal_bucket *c, metal_call *call, int32_t first, int32_t end);
/* Until a call is over, looking whether it is cancelled. */
weft_status metal_finish(weft_diag *dg, exec *e, metal_call *call, double *out_s) WEFT_MUST_USE;
weft_status metal_cancelled(weft_diag *dg, const exec *e); /* W1412 */
bool metal_is_cancelled(const exec *e);
void metal_cancel_begin(exec *e);

/* metal_choose.c */
weft_status metal_choose(weft_diag *dg, exec *e, const device_choice *c);
weft_status metal_chosen(weft_diag *dg, exec *e, ksampled *out);
void metal_drop(exec *e);

/* metal_profile.c */
void metal_profile_set(exec *e, bool on);
const step_time *metal_profile_steps(const exec *e, int32_t bucket);
/* Phase i, which is an item, took so long. */
void metal_profile_phase(exec *e, const metal_bucket *c, int32_t i, double s);
/* All of a call was measured. */
void metal_profile_add(exec *e, const metal_bucket *c);

#endif
