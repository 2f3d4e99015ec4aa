/* exec_impl.h - the inside of an exec of the CPU; private to the exec_*.c files.
 *
 * Tables are one block, memory of the threads another, activations a third, each allocated by
 * exec_load. While a run is under way its threads share the exec; what they write is said below. */
#ifndef WEFT_RUNTIME_EXEC_EXEC_IMPL_H
#define WEFT_RUNTIME_EXEC_EXEC_IMPL_H

#include "runtime/exec/barrier.h"
#include "runtime/exec/exec_steps.h"
#include "runtime/exec/gang_size.h"
#include "runtime/exec/plan_code.h"

typedef struct {
    const plan_step *plan;
    const kernel_row *row;
    kernel_fn *fn; /* the row's, or generated code */
    kargs args;    /* of the call; LOCAL and TILE operands are offsets into a thread's block */
    int8_t io[K_IN_MAX];  /* a plan_io where an operand is one, else -1 */
    uint32_t local, tile; /* which operands are such: bit i is in[i], bit K_IN_MAX + i is out[i] */
} cpu_step;

typedef struct {
    const plan_bucket *plan;
    cpu_step *steps; /* [n_step] */
    int64_t *units;  /* [n_item], of the call */
    int64_t *most;   /* [n_item]: units of a range at most, for the time it takes */
    /* The call that steps and units were last made ready for; NULL: none. */
    const kbatch *batch;
    int64_t rows[ROWS_FIXED]; /* its rows, by plan_rows */
    uint64_t lora;            /* and the version of the adapters in use; 0: there are none */
    uint64_t made;            /* counts how often they were */
    gang_size size;           /* how many threads its calls have */
    code_bucket_fn *code;     /* NULL: none */
    int32_t n_own;            /* steps with LOCAL or TILE operands */
} cpu_bucket;

/* Where the next range of a thread's share of an item begins. Every thread may take it. */
typedef struct {
    _Alignas(CACHE_LINE) atomic_int_least64_t next;
} cursor;

/* Where a thread is in a call that generated code runs; its own to write. */
typedef struct code_place {
    exec *e;
    const cpu_bucket *b;
    item_span now, next;
    unsigned set;
    bool stopped;
    /* What args was made for. */
    const cpu_bucket *made_of;
    uint64_t made;
    kargs *own; /* [own_max]: of steps with LOCAL or TILE operands */
} code_place;

/* What is measured, one block: allocated when profiling begins. */
typedef struct {
    bool on;
    step_time **steps; /* [n_bucket][n_step] */
    uint64_t **ns;     /* [threads][n_step_max]: of this call; each thread writes its own */
    uint64_t *wait_ns; /* [threads]: the same */
    uint64_t all_wait_ns;
} exec_profile;

struct exec {
    const plan *p;
    int threads;
    bool for_code;  /* has tables for generated code */
    unsigned forks; /* pool_forks when its threads were acquired */
    device_memory bytes;
    char *arena;
    char *
        blocks; /* [threads][block_bytes]: local memory, then scratch; each thread writes its own */
    size_t block_bytes, local_bytes;
    cpu_bucket *buckets; /* written between runs only */
    /* [2][items_max][threads]: two sets take turns from phase to phase. */
    cursor *cursors;
    int32_t items_max; /* of a phase */
    /* [threads][chain_max]: arguments of the steps of a chain that have operands of the thread; each
     * thread writes its own. */
    kargs *own;
    int32_t chain_max;
    barrier gate;
    const klora *lora;         /* the session's adapters; NULL: none */
    const cancel_flag *cancel; /* NULL: nothing stops a run */
    /* Units of a phase were left out, by its set of cursors: no thread begins the next one. */
    atomic_bool stopped[2];
    uint64_t barriers; /* of the last run; written by the caller's thread */
    code_run run; /* where there is code: what it sees; written between runs, but for its threads */
    exec_profile *prof;
    device_watch *watch; /* this and the next written between runs only */
    void *watch_ctx;
    weft_status watch_status; /* of the last call; written by the caller's thread */
};

/* exec_load.c */
weft_status exec_need(weft_diag *dg, device *d, const device_load *what, device_memory *out_m);
weft_status exec_load(weft_diag *dg, device *d, const device_load *what, exec **out_e);
void exec_unload(exec *e);
weft_status exec_alloc(weft_diag *dg, size_t bytes, void **out_p);

/* exec_run.c */
weft_status exec_submit(weft_diag *dg, exec *e, const kbatch *b);
kthread exec_thread(const exec *e, int index, int count);
/* Put the addresses of these operands into k, which are at their offsets from base. */
static inline void exec_place(const cpu_step *s, kargs *k, uint32_t operands, uintptr_t base)
{
    for (; operands; operands &= operands - 1) {
        int i = __builtin_ctz(operands), o = i - K_IN_MAX;
        if (o < 0)
            k->in[i] = (const void *)(base + (uintptr_t)s->args.in[i]);
        else
            k->out[o] = (void *)(base + (uintptr_t)s->args.out[o]);
    }
}

/* A thread's memory. */
static inline char *exec_block(const exec *e, int index)
{
    return e->blocks + (size_t)index * e->block_bytes;
}

/* exec_code.c */
/* A thread of a run whose bucket has code; and how many barriers that had, its end among them. */
void exec_code_run(exec *e, const cpu_bucket *b, int index, int count);
uint64_t exec_code_barriers(const exec *e, const cpu_bucket *b);

/* exec_claim.c */
/* Whether to leave out what is left of this phase. */
bool exec_leaves(exec *e, unsigned set);
/* Behind the phase's barrier all threads read the same: the set's next phase begins behind another one. */
bool exec_stopped(const exec *e, unsigned set);
/* exec_span_from of the call; phases stay apart where somebody looks at each of them. */
item_span exec_phase_from(const exec *e, const cpu_bucket *b, int32_t from);
/* Of thread `index`, for the items of a phase. */
void exec_cursors_set(const exec *e, const cpu_bucket *b, item_span s, unsigned set, int index,
                      int count);
/* Item `item`, number `slot` of its phase, whose cursors are this set. */
typedef struct {
    int32_t item, slot;
    unsigned set;
} claim_at;
/* The next range of it for a thread; false: all are taken, or the call was cancelled. */
bool exec_claim(exec *e, const cpu_bucket *b, claim_at at, const kthread *t, code_range *r);

/* exec_profile.c */
void exec_profile_set(exec *e, bool on);
const step_time *exec_profile_steps(const exec *e, int32_t bucket);
/* Before and after a run that is measured. */
void exec_profile_start(exec *e);
void exec_profile_add(exec *e, const cpu_bucket *b);

#endif
