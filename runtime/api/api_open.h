/* api_open.h - from a checkpoint to a plan: the one way of the library and of all verbs.
 *
 * api_source and api_wanted say what is wanted; weft_model and api_plan own what was opened. No tensor is read. */
#ifndef WEFT_RUNTIME_API_API_OPEN_H
#define WEFT_RUNTIME_API_API_OPEN_H

#include "compiler/compiler.h"
#include "compiler/plan_make.h"
#include "runtime/exec/session.h"
#include "runtime/weft.h"

typedef struct random_model random_model;

/* Where a model comes from: the first of path, random and data that is set, else the descriptor. */
typedef struct {
    const char *path;
    const char *random; /* SHAPE:TYPE, made up in memory */
    int fillers;        /* threads that fill `random` with numbers; 0: it is not to be run */
    const void *data;   /* [bytes] */
    size_t bytes;
    int fd;
    const char *name; /* of data or fd, for messages */
    model_file_options file;
    bind_options bind;
} api_source;

struct weft_model {
    random_model *made; /* the memory of `random`; else NULL */
    model_file *file;
    bound_model *bound;
    int64_t context; /* that it is bound for; 0: not known */
};

weft_status api_model_open(weft_diag *dg, const api_source *from,
                           weft_model **out_model) WEFT_MUST_USE;

/* A plan, and how a session runs it. */
typedef struct {
    weft_session_options how; /* context 0: the trained one */
    int64_t held; /* tokens of state, where that is less than the context; 0: the context */
    const char *const *skip; /* passes to leave out */
    int n_skip;
    /* For session_watch: every linear reads from the session's arena, all rows of a call, and a whole tensor. Not with a plan
     * of a file, which is as it is, nor with `skip`. */
    bool watched;
} api_wanted;

typedef struct {
    bound_model *bound; /* with its own context, where the model's graph depends on it; else NULL */
    arena *a;           /* the plan's */
    plan *p;
    target t; /* what it was made for; all 0 of a plan file */
    session_options run;
} api_plan;

/* How w is compiled; context and threads are set. W1602, W1603. */
weft_status api_target(weft_diag *dg, const api_wanted *w, target *out) WEFT_MUST_USE;
session_options api_run_options(const api_wanted *w);
/* Make the plan, or read how.plan. W1406 for numbers that cannot be. Close it also after a failure. */
weft_status api_plan_open(weft_diag *dg, const weft_model *m, const api_wanted *wanted,
                          api_plan *out) WEFT_MUST_USE;
void api_plan_close(api_plan *p);

/* Does `name` mean this output: "logits", "resid" for any index of it, "resid.3" for one? */
bool api_output_is(const plan_output *o, const char *name);
bool api_in_range(const weft_session_options *o);

#endif
