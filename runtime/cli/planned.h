/* planned.h - a checkpoint and a plan for it, for verbs that look at plans. No tensor is read. */
#ifndef WEFT_RUNTIME_CLI_PLANNED_H
#define WEFT_RUNTIME_CLI_PLANNED_H

#include "runtime/cli/lora_flags.h"

/* The flags of such a verb, whose options struct T has a model_flags `open`. */
/* clang-format off */
#define PLANNED_FLAG_ROWS(T, batch_normal)                                                                                \
    MODEL_FLAG_ROW (T, open, "the checkpoint"),                                                                                 \
    RANDOM_FLAG_ROW(T, open),                                                                                                   \
    FLAG_ROW_INT   (T, open.context, "ctx-size", "c",  "N", "0", 0, 1 << 30, "context of each sequence; 0: the trained one"), \
    BATCH_FLAG_ROW (T, open, batch_normal),                                                                                     \
    SESSION_FLAG_ROWS(T, open, "0")
/* clang-format on */

/* What no flag of theirs says. */
typedef struct {
    bool fill;         /* numbers into what --random makes up, for verbs that run it */
    const char *entry; /* NULL: decode */
    int64_t sequences; /* 0: one */
    int64_t wants;     /* rows of one call whose outputs may be asked for; 0: one per sequence */
    int64_t held;      /* tokens of state, where that is less than the context; 0: the context */
    const struct backend *be; /* to plan for; NULL: this processor */
    const char *const *outputs, *const *skip;
    int purpose;          /* api_wanted's */
    int n_output, n_skip; /* 0: logits; passes to leave out */
} planned_options;

typedef struct {
    weft_model *m;
    lora adapters; /* of --lora, where the verb has that flag: for each session that it opens */
    api_plan made;
    progress bar; /* of interleaving: the struct must stay where it is */
} planned;

/* Open the checkpoint and plan it; o may be NULL. Close it also after a failure. */
weft_status planned_open(weft_diag *dg, const model_flags *f, const planned_options *o,
                         planned *out) WEFT_MUST_USE;
void planned_close(planned *pl);

#endif
