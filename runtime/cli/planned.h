/* planned.h - a checkpoint and the plan for it, for verbs that look at plans: their flags, and the way
 * from a file to a plan. No tensor is read on it. */
#ifndef WEFT_RUNTIME_CLI_PLANNED_H
#define WEFT_RUNTIME_CLI_PLANNED_H

#include "compiler/compiler.h"
#include "compiler/plan_make.h"
#include "runtime/base/progress.h"
#include "runtime/cli/cli.h"
#include "runtime/exec/session.h"
#include "runtime/formats/random_model.h"

enum { PLANNED_EXEC_PLAN, PLANNED_EXEC_REF };

typedef struct {
    const char *model, *random, *arch;
    int64_t context, n_tok, threads;
    bool no_weight_cache, no_repack, round_bf16, deterministic;
    /* No flags of all verbs: */
    bool fill;     /* numbers into what `random` makes up, for verbs that run it */
    int64_t n_seq; /* 0: one */
    int64_t n_ctx; /* what a session holds, less than the context the model is bound for; 0: that */
    const char *entry;       /* NULL: decode */
    const char *const *skip; /* passes to leave out */
    int n_skip;
    int64_t n_out; /* rows of one call whose outputs may be asked for; 0: one of each sequence */
    int exec, kv;
} planned_flags;

/* The rows of these flags, for a verb whose options struct T has a planned_flags `plan`. */
/* clang-format off */
#define PLANNED_FLAG_ROWS(T, context_default, n_tok_default)                                                             \
    FLAG_ROW_STR   (T, plan.model,   "model",    "m",  "MODEL", NULL, "the checkpoint"),                                  \
    FLAG_ROW_STR   (T, plan.random,  "random",   NULL, "SHAPE:TYPE", NULL, "or one made up in memory, such as llama-1b:Q4_K_M"), \
    FLAG_ROW_STR   (T, plan.arch,    "arch",     NULL, "FILE",  NULL, "read it with this .weft file"),                    \
    FLAG_ROW_INT   (T, plan.context, "ctx-size", "c",  "N", context_default, 0, 1 << 30, "context of each sequence; 0: the trained one"), \
    FLAG_ROW_INT   (T, plan.n_tok,   "ubatch-size", "ub", "N", n_tok_default, 1, 1 << 20, "rows of the largest call"),    \
    FLAG_ROW_INT   (T, plan.threads, "threads",  "t",  "N", "0", 0, 1024, "threads; 0: as many as this process may use"), \
    FLAG_ROW_CHOICE(T, plan.kv,      "kv",       NULL, "f32|f16|bf16", "f16", "how the state is stored"),                \
    FLAG_ROW_CHOICE(T, plan.exec,    "exec",     NULL, "plan|ref", "plan", "fused for this processor, or step by step as the reference"), \
    FLAG_ROW_BOOL  (T, plan.deterministic, "deterministic", NULL, "the same bits for any number of threads and any batch"), \
    FLAG_ROW_BOOL  (T, plan.round_bf16, "round-bf16", NULL, ROUND_BF16_HELP),                                             \
    FLAG_ROW_BOOL  (T, plan.no_weight_cache, "no-weight-cache", NULL, "keep no interleaved weights on disk"),                                      \
    FLAG_ROW_BOOL  (T, plan.no_repack, "no-repack", NULL, NO_REPACK_HELP)
/* clang-format on */

typedef struct {
    random_model *made; /* NULL: a file */
    model_file *mf;
    bound_model *bm;
    arena *a; /* the plan's */
    plan *p;
    target t;              /* what the plan was made for */
    session_options run;   /* and how to open a session on it */
    progress interleaving; /* its bar: the struct must stay where it is */
} planned;

/* Open the checkpoint, bind its model file and plan it for all calls up to f->n_tok rows; outputs NULL:
 * logits. W1904 without a checkpoint, or with two. Close it in any case, once what dg holds has been told: it may quote
 * the model file. */
weft_status planned_open(weft_diag *dg, const planned_flags *f, const char *const *outputs,
                         int n_output, planned *out) WEFT_MUST_USE;
void planned_close(planned *pl);

#endif
