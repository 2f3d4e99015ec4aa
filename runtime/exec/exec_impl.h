/* exec_impl.h - the inside of an exec of the CPU; private to the exec_*.c files.
 *
 * Tables are one block, memory of the threads another, activations a third, each allocated by
 * exec_load. While a run is under way its threads share the exec; what they write is said below. */
#ifndef WEFT_RUNTIME_EXEC_EXEC_IMPL_H
#define WEFT_RUNTIME_EXEC_EXEC_IMPL_H

#include "runtime/exec/barrier.h"
#include "runtime/exec/device.h"
#include "runtime/exec/gang_size.h"

typedef struct {
    const plan_step *plan;
    const kernel_row *row;
    kargs args; /* of the call; LOCAL and TILE operands are offsets into a thread's block */
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
    gang_size size;           /* how many threads its calls have */
} cpu_bucket;

/* Where the next range of a thread's share of an item begins. Every thread may take it. */
typedef struct {
    _Alignas(CACHE_LINE) atomic_int_least64_t next;
} cursor;

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

/* exec_profile.c */
void exec_profile_set(exec *e, bool on);
const step_time *exec_profile_steps(const exec *e, int32_t bucket);
/* Before and after a run that is measured. */
void exec_profile_start(exec *e);
void exec_profile_add(exec *e, const cpu_bucket *b);

#endif
