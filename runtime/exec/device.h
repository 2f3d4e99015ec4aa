/* device.h - a device is a table of functions; the CPU is the first row.
 *
 * A device loads a plan into an exec, which holds the plan's activations and everything resolved to
 * addresses, and runs it on one batch after another. Memory that a device gave is used through that
 * device only; on the CPU it is ordinary memory. */
#ifndef WEFT_RUNTIME_EXEC_DEVICE_H
#define WEFT_RUNTIME_EXEC_DEVICE_H

#include "compiler/plan.h"
#include "runtime/base/diag.h"
#include "runtime/exec/weights.h"

typedef struct exec exec; /* each device's own */

typedef struct {
    int threads;    /* that a session may usefully ask for; 1 where it makes no difference */
    uint64_t bytes; /* of memory in all; 0 if unknown */
} device_info;

/* What a plan is loaded with; all of it must outlive the exec. */
typedef struct {
    const plan *p;
    const weights *w;
    const kcell *cells; /* [n_cell], in the device's memory */
    int threads;        /* at least 1; devices of their own take no notice */
} device_load;

/* Called after each step: its number, the rows it had and how long it took. */
typedef void device_profile(void *ctx, int32_t step, int64_t rows, uint64_t ns);

typedef struct {
    const char *name; /* "cpu" */
    /* Can it be used here, and what is it? The name of the processor is added to out_name. */
    weft_status (*probe)(weft_diag *dg, device_info *out_info, strbuf *out_name);
    /* Not zeroed, aligned to PLAN_ALIGN; W0902 when there is no more. */
    weft_status (*alloc)(weft_diag *dg, size_t bytes, void **out_p);
    void (*free)(void *p);                                      /* NULL is fine */
    void (*copy_in)(void *to, const void *from, size_t bytes);  /* host to device */
    void (*copy_out)(void *to, const void *from, size_t bytes); /* device to host */
    void (*copy)(void *to, const void *from, size_t bytes);     /* within the device */

    weft_status (*load)(weft_diag *dg, const device_load *what, exec **out_e);
    void (*unload)(exec *e); /* NULL is fine */
    /* The batch is in host memory, as are its page tables. Does not allocate. */
    weft_status (*run)(weft_diag *dg, exec *e, const kbatch *b);
    /* Where an output of the plan is after a run, in the device's memory. */
    const void *(*output)(const exec *e, int32_t i);
    void (*profile)(exec *e, device_profile *hook, void *ctx); /* NULL ends it */
    /* Memory it holds: the plan's activations, scratch of all threads, and its own steps. */
    void (*bytes)(const exec *e, size_t *out_arena, size_t *out_scratch, size_t *out_steps);
} device;

const device *device_at(int i);              /* NULL past the last */
const device *device_find(const char *name); /* NULL: no such device */

extern const device device_cpu; /* device_cpu.c */

#endif
