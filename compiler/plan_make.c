/* plan_make.c - from a graph to a plan: the wanted outputs, the passes, then each bucket. */
#include "compiler/plan_make.h"

#include "compiler/lower_impl.h"

weft_status plan_make(weft_diag *dg, const graph *g, const target *t, const pass_watch *watch,
                      arena *a, plan **out_plan)
{
    WEFT_TRY(lower_check(dg, g, t));
    (void)watch;
    arena *scratch = arena_create();
    lower lo;
    lower_init(&lo, dg, g, t, a, scratch);
    lower_mark_live(&lo);
    weft_status status = lower_outputs(&lo);
    if (status == WEFT_OK)
        status = plan_make_ref(&lo);
    if (status == WEFT_OK) {
        lower_finish(&lo);
        *out_plan = lo.p;
    }
    lower_deinit(&lo);
    arena_destroy(scratch);
    return status;
}
