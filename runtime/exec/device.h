/* device.h - a device is a table of functions; the CPU is the first row.
 *
 * A device loads a plan into an exec, which holds the plan's activations and everything resolved to
 * addresses, and runs it on one batch after another. Memory that a device gave is used through that
 * device only; on the CPU it is ordinary memory. */
#ifndef WEFT_RUNTIME_EXEC_DEVICE_H
#define WEFT_RUNTIME_EXEC_DEVICE_H

#include "compiler/plan.h"
#include "runtime/base/diag.h"
#include "runtime/base/memory.h"
#include "runtime/exec/weights.h"

typedef struct exec exec; /* each device's own */

/* What a plan is loaded with; all of it must outlive the exec. */
typedef struct {
    const plan *p;
    const weights *w;
    const kcell *cells;        /* [n_cell], in the device's memory */
    int threads;               /* at least 1; devices of their own take no notice */
    bool pin;                  /* the threads to CPUs of their own */
    const cancel_flag *cancel; /* stops a run; NULL: nothing does */
} device_load;

/* What a device takes for a plan, in bytes: the plan's activations, memory private to threads for all of
 * them, and its own tables. */
typedef struct {
    size_t arena, scratch, tables;
} device_memory;

/* What was measured of a step. */
typedef struct {
    uint64_t calls, rows; /* rows of the batch, summed over the calls */
    uint64_t ns;          /* in each call the time of the slowest thread, summed over the calls */
    uint64_t ns_busy;     /* summed over all threads too */
} step_time;

/* Called after a phase of a bucket, by the thread that runs the call, while all others wait. */
typedef void device_watch(void *ctx, int32_t bucket, int32_t phase);

typedef struct {
    uint64_t barriers; /* in the last run; its end counts as one */
    uint64_t wait_ns;  /* at barriers, of all threads together, since profiling began */
} run_stats;

typedef struct {
    const char *name; /* "cpu" */
    /* Can it be used here, and how much memory has it to give? */
    weft_status (*probe)(weft_diag *dg, memory_room *out_room);
    /* Not zeroed, aligned to PLAN_ALIGN; W0902 when there is no more. */
    weft_status (*alloc)(weft_diag *dg, size_t bytes, void **out_p);
    void (*free)(void *p);                                      /* NULL is fine */
    void (*copy_in)(void *to, const void *from, size_t bytes);  /* host to device */
    void (*copy_out)(void *to, const void *from, size_t bytes); /* device to host */
    void (*copy)(void *to, const void *from, size_t bytes);     /* within the device */

    /* What load will take; and what it took, the same numbers. W1406 for a count of threads that
     * cannot be. */
    weft_status (*need)(weft_diag *dg, const plan *p, int threads, device_memory *out_m);
    void (*bytes)(const exec *e, device_memory *out_m);
    weft_status (*load)(weft_diag *dg, const device_load *what, exec **out_e);
    void (*unload)(exec *e); /* NULL is fine */
    /* The batch is in host memory, as are its page tables. Does not allocate. W1412 when
     * cancelled: activations are undefined then, and cells behind the ends of their sequences. */
    weft_status (*run)(weft_diag *dg, exec *e, const kbatch *b);
    /* Where an output of the plan is after a run, in the device's memory. */
    const void *(*output)(const exec *e, int32_t i);
    run_stats (*stats)(const exec *e);
    void (*profile)(exec *e, bool on); /* on: from zero; off: what was measured stays */
    const step_time *(*profile_steps)(const exec *e, int32_t bucket); /* NULL: never measured */
    void (*watch)(exec *e, device_watch *hook, void *ctx); /* from the next run on; NULL: no more */
    void *(*activations)(exec *e); /* the plan's arena, in the device's memory */
} device;

extern const device device_cpu; /* device_cpu.c */

#endif
