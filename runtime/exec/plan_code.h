/* plan_code.h - generated code in place of the executor's own loop, and what such code may call.
 *
 * A plan may come with code: a function for each bucket, and functions for steps (maps) that have the signature of a
 * kernel. The executor prepares a call as ever: units, n[0], addresses, cursors; a bucket's function then does what
 * run_phases of exec_run.c does, on every thread of the call. Where somebody watches or measures the call the executor
 * runs its own loop, with the functions of the steps.
 *
 * A function of a bucket, for item numbers and phases that are known when it is made:
 *
 *     void bucket(const code_run *r, int index, int count)
 *         th = &r->thread[index];
 *         if (count == 1)                        one thread: no phases, no cursors, no barriers
 *             for each item i:
 *                 per_thread: if (units[i]) { if (code_leaves(th)) return; chain(0, units[i]) }
 *                 else:       for (b = 0; b < units[i]; b = e) {
 *                                 if (code_leaves(th)) return;
 *                                 e = min(b + most[i], units[i]); chain(b, e) }
 *         else
 *             for each phase, items [first, end):
 *                 if (!code_phase(th, first, end)) continue;     waits for the phase before; sets cursors
 *                 for each item i in it:
 *                     per_thread: if (units[i]) { if (code_leaves(th)) continue; chain(0, units[i]) }
 *                     else:       range = {0}; while (code_claim(th, i, &range)) chain(range.begin, range.end)
 *
 * chain(b, e) is the steps of the item, one after the other: kernel(th->args[step], &th->t, b, e). The block
 * th->args[step] is ready for the call; only TILE operands depend on b: before its kernel is called the code stores
 * th->block + offset - b * tile * 4 into in[i] or out[i] of that block, which is this thread's own to write iff the step has
 * LOCAL or TILE operands. A map that is part of the function reads addresses from the same block, or folds them: LOCAL ones
 * are th->block + offset, TILE ones as above, ARENA ones r->arena + offset, CONST ones r->consts + offset; n[0] is
 * th->args[step]->n[0]. A step whose n[0] is 0 has units 0. An item has as many units for each of its steps.
 *
 * What this avoids, measured when decoding stories-7m with one thread (perf, AVX-512: 850 us a token, of which linears take
 * 82 %): maps that are interpreted 7 %; claiming with atomic instructions, in a dozen ever smaller ranges for each item,
 * and the kernels called so often for few units 5 %; copying 776 bytes of arguments for each item with `rep movs` 1.5 %; the
 * walk over items and steps 1.5 %. So: blocks of arguments are made once for each thread and only when a call has other
 * rows than the one before, one thread takes an item whole, and maps belong into the function. A call of a helper or
 * of a kernel costs 1 to 2 ns, there are about 200 in a token: folding calls away gains nothing that can be measured.
 *
 * The helpers are C functions, found by these names when code is loaded (code_helpers) or linked. */
#ifndef WEFT_RUNTIME_EXEC_PLAN_CODE_H
#define WEFT_RUNTIME_EXEC_PLAN_CODE_H

#include "compiler/plan.h"
#include "runtime/base/diag.h"

/* A thread of a call. Generated code reads the first three fields. */
typedef struct {
    kthread t;
    char *block;  /* of the thread: where its LOCAL and TILE operands have their offsets */
    kargs **args; /* [n_step] of the bucket */
    struct code_place *place; /* the helpers': where in the call it is */
} code_thread;

typedef struct {
    code_thread *thread;  /* [count] */
    const int64_t *units; /* [n_item] of the bucket: of this call; 0: nothing to do */
    const int64_t *most;  /* [n_item]: units that a range has at most */
    char *arena;
    const char *consts;
} code_run;

typedef void code_bucket_fn(const code_run *r, int index, int count);

/* Code for a plan. It lies in what the code was loaded as, and must outlive the execs that use it. */
typedef struct {
    kernel_fn *const *
        map; /* [n_step]: in place of the kernel's function; NULL: that one. NULL instead of a table: no step has one */
    code_bucket_fn *run; /* in place of the executor's loop; NULL: that one */
} code_bucket;

typedef struct {
    int64_t n_bucket;          /* the plan's */
    const code_bucket *bucket; /* [n_bucket] */
} plan_code;

/* Who makes code for a plan when a session opens, and lets go of it when it ends: out_own is what release takes. */
typedef struct {
    bool use_cache;        /* use code that is on disk, and leave it for the next time */
    const char *cache_dir; /* in this folder; NULL or empty: the maker's */
    /* Called now and then while a device's kernels are compiled: how many images are done, and in all. NULL: nobody asks. */
    void (*compiling)(void *ctx, uint64_t done, uint64_t total);
    void *ctx;
} code_options;

typedef struct {
    weft_status (*make)(weft_diag *dg, const plan *p, const code_options *how,
                        const plan_code **out_code, void **out_own);
    void (*release)(void *own); /* NULL is fine */
} code_maker;

/* A range of units; begin with zeros. */
typedef struct {
    int64_t begin, end;
    int64_t shares; /* the helpers': how many shares were looked at */
} code_range;

/* Was the call cancelled? Then what is left of the phase is left out, and with one thread all the rest. */
bool code_leaves(code_thread *th);
/* Begin the phase of items [first, end): true if there is anything to do. Every thread calls it for all phases in order. */
bool code_phase(code_thread *th, int32_t first, int32_t end);
/* The next range of item i of that phase for this thread; false: all are taken. */
bool code_claim(code_thread *th, int32_t i, code_range *range);

/* A name that code refers to. Besides kernels it refers to these functions. */
typedef struct {
    const char *name;
    const void *address;
} code_symbol;
const code_symbol *code_helpers(int *out_n);

#endif
