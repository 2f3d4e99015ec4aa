/* show_plan.c - a plan as text, or as a file that `weft eval --plan` runs. */
#include "runtime/cli/show_plan.h"

#include "compiler/plan_file.h"

enum { OUTPUTS_MAX = 64 };

static weft_status list_outputs(weft_diag *dg, const char *names, arena *a, const char **out,
                                int *out_n)
{
    int n = 0;
    for (const char *p = names; *p;) {
        size_t len = strcspn(p, ",");
        if (len > 0 && n == OUTPUTS_MAX)
            return weft_fail(dg, W1903, WEFT_NOWHERE, "--outputs names more than %d", OUTPUTS_MAX);
        if (len > 0)
            out[n++] = arena_str(a, (str){p, len}).p;
        p += len;
        p += *p == ',';
    }
    *out_n = n;
    return n ? WEFT_OK : weft_fail(dg, W1903, WEFT_NOWHERE, "--outputs names none");
}

weft_status show_plan(cli *c, const model_flags *f, planned_options want,
                      const show_plan_options *o, strbuf *out)
{
    const char *outputs[OUTPUTS_MAX];
    arena *a = arena_create();
    planned pl = {0};
    want.outputs = outputs;
    weft_status st = list_outputs(c->dg, o->outputs, a, outputs, &want.n_output);
    if (st == WEFT_OK)
        st = planned_open(c->dg, f, &want, &pl);
    if (st == WEFT_OK && o->json)
        plan_json(pl.made.p, model_file_hash(pl.m->file), out);
    else if (st == WEFT_OK)
        plan_text(pl.made.p, o->bucket, o->all, out);
    planned_close(&pl);
    arena_destroy(a);
    return st;
}
