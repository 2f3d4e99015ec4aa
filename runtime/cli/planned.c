#include "runtime/cli/planned.h"

weft_status planned_open(weft_diag *dg, const model_flags *f, const planned_options *o,
                         planned *out)
{
    static const planned_options normal;
    *out = (planned){0};
    o = o ? o : &normal;
    api_source from = model_flags_source(f);
    from.bind.context = f->context;
    from.bind.entry = o->entry;
    if (!o->fill)
        from.fillers = 0;
    api_wanted w = {.how = model_flags_session(f, &out->bar),
                    .held = o->held,
                    .be = o->be,
                    .skip = o->skip,
                    .n_skip = o->n_skip,
                    .purpose = o->purpose};
    w.how.sequences = o->sequences ? o->sequences : 1;
    w.how.wants = o->wants ? o->wants : w.how.sequences;
    w.how.outputs = o->outputs;
    w.how.n_output = o->n_output;
    WEFT_TRY(model_flags_check(dg, f));
    WEFT_TRY(api_model_open(dg, &from, &out->m));
    WEFT_TRY(lora_open(dg, out->m, f, &out->adapters));
    lora_want(&out->adapters, &w.how);
    return api_plan_open(dg, out->m, &w, &out->made);
}

void planned_close(planned *pl)
{
    api_plan_close(&pl->made);
    lora_close(&pl->adapters);
    weft_model_close(pl->m);
    *pl = (planned){0};
}
