/* show_plan.h - the last stage of `weft graph`: the plan that this machine would run. */
#ifndef WEFT_RUNTIME_CLI_SHOW_PLAN_H
#define WEFT_RUNTIME_CLI_SHOW_PLAN_H

#include "runtime/cli/planned.h"

typedef struct {
    const char *outputs; /* names with commas between them */
    int64_t bucket;      /* text: the steps for calls of so many rows */
    bool all;            /* text: every layer */
    bool json;           /* else text */
} show_plan_options;

/* Add the plan that f and want ask for to out, with o->outputs. */
weft_status show_plan(cli *c, const model_flags *f, planned_options want,
                      const show_plan_options *o, strbuf *out) WEFT_MUST_USE;

#endif
