/* profile.h - where the time of prompts and of single tokens goes, step by step and line by line.
 *
 * A run is made twice, once as it is and once with every step timed: timing costs something, and both
 * totals are shown. The time of a step is that of all threads divided by their number, so that steps,
 * waiting and the rest add up to the whole. */
#ifndef WEFT_RUNTIME_ENGINE_PROFILE_H
#define WEFT_RUNTIME_ENGINE_PROFILE_H

#include "kernels/peaks/peaks.h"
#include "runtime/engine/plan_sum.h"
#include "runtime/exec/session.h"

typedef enum { PROFILE_DECODE, PROFILE_PREFILL, PROFILE_PARTS } profile_part;

typedef struct {
    int64_t n_prompt;              /* tokens of the prompt; 0: none */
    int64_t n_decode;              /* tokens one by one after it; 0: none */
    double bandwidth;              /* bytes per second; 0: not known */
    peak_rates peaks;              /* operations per second, by instruction; n 0: not known */
    const volatile int *interrupt; /* looked at before each call; NULL: never */
} profile_options;

/* Of a step, or of several. */
typedef struct {
    double seconds, bytes, flops;
    double roof; /* the least seconds that bandwidth and the kernels' instructions allow */
} profile_sum;

typedef struct {
    int32_t bucket, step;
    profile_sum sum;
} profile_step;

typedef struct {
    int64_t n_tok, n_call;
    double seconds;       /* as it is */
    double timed_seconds; /* with steps timed */
    double wait_seconds;  /* at barriers, of a thread in the mean */
    double barriers;      /* of a call in the mean */
    profile_sum all;      /* of all steps */
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
    const plan *p;
    int threads;
    int32_t images; /* of kernels that the device made for the plan; 0: those of all plans run it */
    double bandwidth;
    peak_rates peaks;
    profile_run run[PROFILE_PARTS];
    int32_t n_line;
    profile_line *line; /* by file, then by number */
} profile;

/* Run s, which is empty, is left empty and holds n_prompt + n_decode tokens or more. Results live in a.
 * `threads` are those it was opened with. */
weft_status profile_make(weft_diag *dg, session *s, const plan *p, int threads,
                         const profile_options *opt, arena *a, profile *out) WEFT_MUST_USE;

void profile_add(profile_sum *to, const profile_sum *more);

#endif
