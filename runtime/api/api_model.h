/* api_model.h - what is behind a weft_model: a kind, which is a table of functions, and what every kind has.
 *
 * There are two kinds: a model file, which is compiled here (api_open.h), and the model that a built program carries.
 * Sessions, generations, tokenizers and templates need nothing but this header, so that a program links without the
 * language, the compiler and the readers of model files. */
#ifndef WEFT_RUNTIME_API_API_MODEL_H
#define WEFT_RUNTIME_API_API_MODEL_H

#include "runtime/exec/session.h"
#include "runtime/formats/value.h"
#include "runtime/text/chat.h"
#include "runtime/text/tok.h"
#include "runtime/weft.h"

/* What a plan is for: to be run, to be looked at, to know what memory it takes. */
typedef enum { API_RUNS, API_PLANS, API_PLANS_MEMORY } api_purpose;

/* A session as its caller wants it. */
typedef struct {
    weft_session_options how; /* context 0: the trained one */
    int64_t held; /* tokens of state, where that is less than the context; 0: the context */
    const struct backend *be; /* to compile for (backend_cpu_for); NULL: this processor */
    const struct backend
        *laid_for;           /* with be: whose weights it is to read, where it can; NULL: its own */
    const char *const *skip; /* passes to leave out */
    int n_skip;
    /* For session_watch: every linear reads from the session's arena, all rows of a call, and a whole tensor. Not with a plan
     * of a file, which is as it is, nor with `skip`. */
    bool watched;
    /* Nothing will run: a device that is not here will do, and one that is here is opened only if its memory is asked for. */
    int purpose; /* api_purpose */
} api_wanted;

/* A plan, and how a session runs it. */
typedef struct {
    arena *a; /* the plan's, or what else goes with it */
    const plan *p;
    const struct target
        *t; /* what it was made for, in a; all 0 of a plan file; NULL: made elsewhere */
    /* Of parts: what those of the card were made for, and t those of the CPU; else NULL. */
    const struct target *t_card;
    session_options run;
    device *
        dev; /* that it opened, and the plan's to close; NULL: the CPU, or one that is not here (run.dev) */
    void *keep; /* of the kind; released with the plan by keep_close */
    void (*keep_close)(void *keep);
} api_plan;

typedef struct {
    void (*close)(weft_model *m);
    /* Stands for the model without its weights: plan files and adapters belong to it. */
    model_hash (*hash)(const weft_model *m);
    /* A parameter by its name in the model file; NULL: none such. */
    const value *(*param)(const weft_model *m, const char *name);
    /* The plan of a session: to p, and to run what only the kind knows. Options have been checked and have no defaults left
     * in them; a and run are set. What it cannot serve is refused by name (api_plan_serves). */
    weft_status (*plan)(weft_diag *dg, const weft_model *m, const api_wanted *w, api_plan *out);
    /* What such a plan keeps as state: its cells, kv, tiers and n_tok_max. */
    weft_status (*cells)(weft_diag *dg, const weft_model *m, const api_wanted *w, arena *a,
                         plan *out);
    weft_status (*tokenizer)(weft_diag *dg, const weft_model *m, tok **out);
    /* choice: as chat_open has it. */
    weft_status (*chat)(weft_diag *dg, const weft_model *m, const char *choice,
                        chat_template **out);
} model_kind;

/* The beginning of what a kind keeps of an open model. */
struct weft_model {
    const model_kind *kind;
    const weight_source *weights;
    const char *name;
    int64_t context; /* that it was trained for; 0: not known */
};

/* Check the options, fill in defaults, and get the plan from the model's kind. W1406 for numbers that cannot be. Close it also
 * after a failure. */
weft_status api_plan_open(weft_diag *dg, const weft_model *m, const api_wanted *wanted,
                          api_plan *out) WEFT_MUST_USE;
void api_plan_close(api_plan *p);

/* Can the plan p, which `name` names in messages, serve a session with these options? Its context, rows of a call and outputs
 * are those of p or fewer. W0201, W1406. */
weft_status api_plan_serves(weft_diag *dg, const plan *p, const char *name,
                            const api_wanted *w) WEFT_MUST_USE;
/* The same for options that ask for a plan of another kind: how state is stored, adapters, the executor and its arithmetic.
 * What is not set fits any plan. For models that have no other plan; of a plan file these are as they are. W1406. */
weft_status api_plan_serves_kind(weft_diag *dg, const plan *p, const char *name,
                                 const api_wanted *w) WEFT_MUST_USE;

/* What state stores: the policy's text, where there is one; else kv. W1414. */
weft_status api_kv(weft_diag *dg, const weft_session_options *o, dtype *out_kv,
                   kpolicy *out_tiers) WEFT_MUST_USE;
/* Does a level of kernels round what the options want with all bits? W1617. */
weft_status api_check_exact(weft_diag *dg, const weft_session_options *o,
                            const char *level) WEFT_MUST_USE;
/* How a session with these options runs its plan, and whether their numbers can be. */
session_options api_run_options(const api_wanted *w);
bool api_in_range(const weft_session_options *o);
/* Of options that are checked: sequences, texts kept for others, tokens of state, rows of a call. */
int64_t api_sequences(const weft_session_options *o);
int64_t api_prefixes(const weft_session_options *o);
int64_t api_held(const api_wanted *w);
int64_t api_rows_of_call(const api_wanted *w);

/* Does `name` mean this output: "logits", "resid" for any index of it, "resid.3" for one? */
bool api_output_is(const plan_output *o, const char *name);

#endif
