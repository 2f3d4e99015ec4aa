/* verify.h - a plan against the reference, value by value, on a model's own weights.
 *
 * All run the same calls. The rounded reference rounds activations and state where the plan does. After
 * each phase of the plan, every value of the graph that stands in the arena is compared with the rounded
 * reference's and then replaced by it, so that an error does not travel: what is measured of a value is
 * what the steps since the last such values did, beyond rounding. A second session of the plan runs on
 * undisturbed and is held against the reference itself: how far the plan drifts in real use, which is
 * what rounding costs.
 *
 * Of a model that runs in parts the references are in the same parts, so that a value has the same number in all. What one part hands
 * to the next is replaced before it goes there.
 *
 * Errors are relative: the root of the mean square of differences of a row, against that of the
 * reference's row (or, of a row of nearly nothing, of a hundredth of all rows); of a value, its worst row. */
#ifndef WEFT_RUNTIME_ENGINE_VERIFY_H
#define WEFT_RUNTIME_ENGINE_VERIFY_H

#include "runtime/exec/session.h"

typedef struct {
    const plan *ref;      /* of the graph that the passes left: values have the numbers of p's */
    const plan *rounded;  /* the same with the state of p; may be ref where that is f32 */
    const plan *original; /* the reference for the graph before the passes; NULL: do not compare */
    const plan *p;
    const plan_parts *ref_parts,
        *rounded_parts; /* of ref and rounded, as run has those of p; NULL: none have any */
    const weight_source *src;
    session_options run; /* of all sessions; its device runs the plans that were made for it */
    /* Called with each session and its plan before the first call, to load what all of them use; may be NULL. */
    weft_status (*prepare)(void *ctx, weft_diag *dg, const plan *p, session *s);
    void *prepare_ctx;
    const int32_t *ids;
    int64_t n_id;
} verify_options;

/* An element: the row of the call, the column in the row, what was expected and what came. */
typedef struct {
    int64_t row, col;
    double want, got;
} verify_element;

typedef struct {
    int32_t part, bucket, step; /* which step made it first */
    int32_t value;              /* of the part's graph */
    int32_t n_call;             /* calls it was looked at in */
    double bound;
    double error; /* of the worst call, against the rounded reference */
    double drift; /* of the session that runs on undisturbed, against the reference */
    /* Of the worst call: */
    int64_t n_row, width;
    int64_t n_row_bad;         /* rows over the bound */
    int64_t col_min, col_last; /* columns that differ by more than it */
    verify_element worst;
    bool not_finite; /* a NaN or an infinity where the reference has none */
} verify_value;

typedef struct {
    const char *name;
    int32_t index;
    double bound, error; /* of the plan, undisturbed, against the reference */
    double passes; /* of the reference after the passes against the one before; 0: not compared */
    double passes_bound;
} verify_output;

typedef struct {
    int32_t n_value;
    verify_value *value; /* in the order of the plan */
    int32_t first_bad;   /* index of value; -1: all are within their bounds */
    int32_t n_hidden; /* values of the graph that the reference has and the plan keeps to itself */
    int32_t n_output;
    verify_output *output;
    int32_t n_layer;
    double *layer_drift; /* [n_layer]: of the last value of each layer that was seen; -1: none */
    /* Of the rows with logits: */
    int64_t n_row, n_top_same; /* how many, and of how many the likeliest token is the same */
    double kl_mean, kl_max;    /* nats */
} verify_report;

/* Results live in a. Fails as sessions do; a plan that is wrong is a report, not a failure. */
weft_status verify_run(weft_diag *dg, const verify_options *opt, arena *a,
                       verify_report *out) WEFT_MUST_USE;
bool verify_passed(const verify_report *r); /* values, outputs and passes */

/* ---- verify_bound.c ---- */

/* The bound of each result of each step of a bucket: [n_step][K_OUT_MAX]. `seen` says which values of
 * the graph are compared, and so replaced, when they stand in the arena. */
typedef bool verify_seen(const void *ctx, int32_t value);
double (*verify_bounds(const plan *p, int32_t bucket, verify_seen *seen, const void *ctx,
                       arena *a))[K_OUT_MAX];
/* Of an output after the whole model. */
double verify_output_bound(const plan_parts *p);
/* What a step rounds beyond f32; NULL: nothing. */
const char *verify_reason(const plan *p, const plan_step *s);

/* ---- verify_rounded.c ---- */

typedef struct verify_rounded verify_rounded;

bool verify_rounds(const plan_parts *p); /* do they round anything? */
/* On a session of the plans `ref`; lives in a. */
verify_rounded *verify_rounded_create(const plan_parts *p, const plan_parts *ref, session *s,
                                      arena *a);
void verify_rounded_destroy(verify_rounded *t); /* what is not in the arena; NULL is fine */
weft_status verify_rounded_eval(weft_diag *dg, verify_rounded *t, const batch_row *rows,
                                int64_t n) WEFT_MUST_USE;

#endif
