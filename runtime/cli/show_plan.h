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

/* Add the plan that f asks for to out, and tell what dg holds. */
weft_status show_plan(cli *c, const planned_flags *f, const show_plan_options *o,
                      strbuf *out) WEFT_MUST_USE;

#endif
