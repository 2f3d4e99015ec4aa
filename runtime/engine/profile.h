/* profile.h - where the time of prompts and of single tokens goes, step by step and line by line.
 *
 * A run is made twice, once as it is and once with every step timed: timing costs something, and both
 * totals are shown. The time of a step is that of all threads divided by their number, so that steps,
 * waiting and the rest add up to the whole.
 *
 * A model whose layers are on two devices is a plan for each part; steps are held against the limits of the device that their part is
 * on. */
#ifndef WEFT_RUNTIME_ENGINE_PROFILE_H
#define WEFT_RUNTIME_ENGINE_PROFILE_H

#include "kernels/peaks/peaks.h"
#include "runtime/engine/plan_sum.h"
#include "runtime/exec/session.h"

typedef enum { PROFILE_DECODE, PROFILE_PREFILL, PROFILE_PARTS } profile_part;

/* What a device is, and can do. */
typedef struct {
    int threads;      /* that take part: those the session was opened with, or blocks of a card */
    double bandwidth; /* bytes per second; 0: not known */
    peak_rates peaks; /* operations per second, by instruction; n 0: not known */
} profile_limits;

typedef struct {
    int64_t n_prompt;                      /* tokens of the prompt; 0: none */
    int64_t n_decode;                      /* tokens one by one after it; 0: none */
    profile_limits limits[PLAN_PARTS_MAX]; /* of the device of each part of the session */
    const volatile int *interrupt;         /* looked at before each call; NULL: never */
} profile_options;

/* Of a step, or of several. */
typedef struct {
    double seconds, bytes, flops;
    double roof; /* the least seconds that bandwidth and the kernels' instructions allow */
} profile_sum;

typedef struct {
    int32_t plan, bucket, step; /* plan: of the profile's */
    profile_sum sum;
} profile_step;

typedef struct {
    int64_t n_tok, n_call;
    double seconds;                   /* as it is */
    double timed_seconds;             /* with steps timed */
    double wait_seconds;              /* at barriers, of a thread in the mean */
    double barriers;                  /* of a call in the mean */
    profile_sum all;                  /* of all steps */
    profile_sum each[PLAN_PARTS_MAX]; /* of those of each plan */
    int32_t n_step;
    profile_step *step; /* those that ran, in the order of the plan */
} profile_run;

/* A line of a model file. */
typedef struct {
    const source *src;
    uint32_t line;
    profile_sum part[PROFILE_PARTS];
} profile_line;

typedef struct {
    const plan *p;    /* of the whole model */
    plan_parts plans; /* that run one after the other, each on its device; of most models one */
    profile_limits limits[PLAN_PARTS_MAX]; /* of those devices */
    int32_t images; /* of kernels that a device made for its plan; 0: those of all plans run it */
    profile_run run[PROFILE_PARTS];
    int32_t n_line;
    profile_line *line; /* by file, then by number */
} profile;

/* Run s, which is empty, is left empty and holds n_prompt + n_decode tokens or more. Results live in a. */
weft_status profile_make(weft_diag *dg, session *s, const profile_options *opt, arena *a,
                         profile *out) WEFT_MUST_USE;

/* What was measured. */
static inline const plan_step *profile_step_of(const profile *f, const profile_step *x)
{
    return &f->plans.part[x->plan].p->bucket[x->bucket].step[x->step];
}

static inline const plan_kernel *profile_kernel_of(const profile *f, const profile_step *x)
{
    return plan_kernel_of(f->plans.part[x->plan].p, profile_step_of(f, x));
}

void profile_add(profile_sum *to, const profile_sum *more);

#endif
