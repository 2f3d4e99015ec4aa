/* device.h - where plans run. A device is an instance of a kind; a kind is a table of functions.
 *
 * A device has memory, weights in the layout that its kernels read, and loads a plan into an exec: the
 * plan's activations and everything resolved to addresses. What a device allocated may be memory that the
 * host cannot read: it is read and written through the device's copies only. Several devices may be open at
 * once, and several threads may use one; one thread uses an exec at a time. */
#ifndef WEFT_RUNTIME_EXEC_DEVICE_H
#define WEFT_RUNTIME_EXEC_DEVICE_H

#include "kernels/ksample.h"
#include "runtime/base/diag.h"
#include "runtime/base/memory.h"
#include "runtime/exec/plan_code.h"
#include "runtime/exec/weights.h"

typedef struct exec exec; /* each kind's own */

/* What a plan is loaded with; all of it must outlive the exec. */
typedef struct {
    const plan *p;
    const weights *w;   /* of this device; NULL: the plan has none */
    const kcell *cells; /* [n_cell], in host memory; their bases are the device's */
    const klora
        *lora; /* in host memory, written between calls; NULL: no adapters. Its counts stay */
    const void *slots;         /* of the device: the memory of all sites */
    size_t batch_bytes;        /* of a call, at most */
    int threads;               /* of the host that may take part, at least 1 */
    bool pin;                  /* the threads to CPUs of their own */
    const cancel_flag *cancel; /* stops a call; NULL: nothing does */
    bool for_code;         /* with tables for generated code: need is asked before there is any */
    const plan_code *code; /* of the plan; NULL: none */
    code_options keep;     /* code that the device makes of the plan itself */
} device_load;

/* What a device takes for a plan, in bytes: the plan's activations, memory private to threads for all of
 * them, and its own tables; host: tables of the host's, where the device has memory of its own. */
typedef struct {
    size_t arena, scratch, tables, host;
} device_memory;

/* What was measured of a step. */
typedef struct {
    uint64_t calls, rows; /* rows of the batch, summed over the calls */
    uint64_t ns;          /* in each call the time of the slowest thread, summed over the calls */
    uint64_t ns_busy;     /* summed over all threads too */
} step_time;

/* Called after a phase of a bucket, by the thread that waits for the call, while nothing runs. The
 * arena may be read and written. A failure ends the call with its status; so does memory that is short, so what the hook
 * keeps between its calls has its first block before them (mem_scope.h). */
typedef weft_status device_watch(void *ctx, weft_diag *dg, int32_t bucket, int32_t phase);

/* A call whose tokens the device chooses itself, and which may follow one whose choice nobody has seen yet. */
typedef struct {
    const kbatch *b; /* read before `choose` returns */
    const int32_t *
        from; /* [n_tok]: the token is what this row of the outputs chose in the call before; -1: b has it. NULL:
                            b has all */
    size_t logits; /* in the arena: [n_out, width] */
    int64_t width;
    const ksample *how; /* [n_out]; at least one */
} device_choice;

enum { DEVICE_CALLS = 2 }; /* of them may be under way */

/* How many blocks of threads work at once, and the bytes a second that its memory can be read at by what it is made of; 0: not
 * known. */
typedef struct {
    int blocks;
    double bandwidth;
} device_rates;

typedef struct {
    uint64_t barriers; /* in the last call; its end counts as one */
    uint64_t wait_ns;  /* at barriers, of all threads together, since profiling began */
    int32_t images;    /* of kernels that the device made for the plan */
} run_stats;

typedef struct {
    const char *name;  /* "cpu" */
    bool host_memory;  /* can the host read and write what it allocates? */
    bool holds_mapped; /* does what it reads in place in files have to fit into its memory too? */
    /* Of a card, else NULL: "cpu+cuda", what sessions are called with some layers on it and the others on the CPU; one that is not here, which says what memory plans and weights need on a usual one and does nothing
     * else, always open; and what is known of one's speed. */
    const char *beside_cpu;
    device *(*absent)(void);
    device_rates (*rates)(const device *d);
    /* which: what the name has behind a colon, such as the number of a card; NULL: nothing. W1605 if there is none such. */
    weft_status (*open)(weft_diag *dg, const char *which, device **out_d);
    void (*close)(device *d);
    /* How much memory has it to give? */
    weft_status (*room)(weft_diag *dg, device *d, memory_room *out_room);

    /* Not zeroed, aligned to PLAN_ALIGN; W0902 when there is no more. */
    weft_status (*alloc)(weft_diag *dg, device *d, size_t bytes, void **out_p);
    void (*free)(device *d, void *p); /* NULL is fine */
    /* Memory of the host that the device copies to fast, for outputs; W1110. Both NULL: any memory will do. */
    weft_status (*host_alloc)(weft_diag *dg, device *d, size_t bytes, void **out_p);
    void (*host_free)(device *d, void *p); /* NULL is fine */
    /* From host to device, from device to host, within the device; done on return. */
    weft_status (*copy_in)(weft_diag *dg, device *d, void *to, const void *from, size_t bytes);
    weft_status (*copy_out)(weft_diag *dg, device *d, void *to, const void *from, size_t bytes);
    weft_status (*copy)(weft_diag *dg, device *d, void *to, const void *from, size_t bytes);

    /* As the functions of weights.h; dev and opt are there. */
    weft_status (*weights_load)(weft_diag *dg, device *d, const plan *p, const weight_source *src,
                                const weights_options *opt, weights **out_w);
    void (*weights_free)(weights *w);
    weights_memory (*weights_need)(device *d, const plan *p, const weight_source *src,
                                   const weights_options *opt);
    weights_memory (*weights_bytes)(const weights *w);
    weft_status (*weights_check)(weft_diag *dg, const weights *w);

    /* What load will take, before there are weights, cells and slots; and what it took, the same numbers. W1406
     * for a count of threads that cannot be. */
    weft_status (*need)(weft_diag *dg, device *d, const device_load *what, device_memory *out_m);
    weft_status (*load)(weft_diag *dg, device *d, const device_load *what, exec **out_e);
    void (*unload)(exec *e); /* NULL is fine */
    void (*bytes)(const exec *e, device_memory *out_m);

    /* Begin a call; it may be over on return. The batch is in host memory and stays as it is until wait.
     * Allocates nothing. */
    weft_status (*submit)(weft_diag *dg, exec *e, const kbatch *b);
    /* Until the call is over. W1412, from either, when cancelled: activations are undefined then, and
     * cells behind the ends of their sequences. */
    weft_status (*wait)(weft_diag *dg, exec *e);

    /* As submit, then choose a token for each row of the outputs: the ids that the host's sampler would give. Only calls of this
     * kind are under way, DEVICE_CALLS at most; nobody measures or watches. */
    weft_status (*choose)(weft_diag *dg, exec *e, const device_choice *c);
    /* Until the oldest of them is over: [n_out] of it. On failure none is under way any more. */
    weft_status (*chosen)(weft_diag *dg, exec *e, ksampled *out);
    /* Until all of them are over; nobody wants to know. All three NULL: the host chooses. */
    void (*drop)(exec *e);

    /* The plan's arena between calls and in a watch, by the offsets of operands. host: where the host can
     * read it; only with host_memory. */
    weft_status (*read)(weft_diag *dg, const exec *e, size_t offset, void *to, size_t bytes);
    weft_status (*write)(weft_diag *dg, exec *e, size_t offset, const void *from, size_t bytes);
    const void *(*host)(const exec *e, size_t offset);

    run_stats (*stats)(const exec *e);
    void (*profile)(exec *e, bool on); /* on: from zero; off: what was measured stays */
    const step_time *(*profile_steps)(const exec *e, int32_t bucket); /* NULL: never measured */
    void (*watch)(exec *e, device_watch *hook,
                  void *ctx); /* from the next call on; NULL: no more */
} device_kind;

/* The beginning of what a kind keeps of an open device. */
struct device {
    const device_kind *kind;
};

/* By the name of its kind, and perhaps which of them it is: "cpu", "cuda", "cuda:1"; W1605 names those that there are. Outlives
 * all that is made with it. devices.c, which knows every kind: built programs have the CPU alone. */
weft_status device_open(weft_diag *dg, const char *name, device **out_d) WEFT_MUST_USE;
void device_close(device *d); /* NULL is fine */
/* The kind that such a name means; NULL: there is none. */
const device_kind *device_kind_find(const char *name);
/* What is known of a device's speed; the CPU says nothing. */
device_rates device_rates_of(const device *d);

extern const device_kind device_kind_cpu;
device *device_cpu(void); /* one for the process, always open */

#endif
