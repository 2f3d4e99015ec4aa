/* fuzz_bound.h - a checkpoint bound and planned, as far as it goes: what binds must be a legal graph, and print;
 * a plan of it is made or refused with a message. */
#ifndef WEFT_TESTS_FUZZ_BOUND_H
#define WEFT_TESTS_FUZZ_BOUND_H

#include "compiler/compiler.h"
#include "compiler/plan_make.h"

#include <stdlib.h>

static inline void plan_it(const graph *g, const backend *be)
{
    weft_diag *dg = diag_create();
    arena *a = arena_create();
    plan *p;
    target t = {.be = be, .n_ctx = 64, .n_seq = 2, .n_tok_max = 4, .n_out_max = 4, .kv = DT_F32};
    weft_status st = plan_make(dg, g, &t, NULL, a, &p);
    if ((st == WEFT_OK) != (diag_errors(dg) == 0))
        abort(); /* a failure without a message, or a message without a failure */
    arena_destroy(a);
    diag_destroy(dg);
}

/* arch is a model file; NULL: the one in the checkpoint, or of the library. */
static inline void bind_it(const model_file *mf, const char *arch, int64_t context)
{
    weft_diag *dg = diag_create();
    bound_model *bm = NULL;
    bind_options how = {.arch = arch, .context = context};
    weft_status st = model_bind(dg, mf, &how, &bm);
    if ((st == WEFT_OK) != (diag_errors(dg) == 0))
        abort();
    strbuf out = {0};
    diag_json(dg, &out);
    if (st == WEFT_OK) {
        strbuf_reset(&out);
        if (!graph_verify(bm->graph, &out)) {
            fprintf(stderr, "%s\n", out.p);
            abort();
        }
        graph_print(bm->graph, true, &out);
        plan_it(bm->graph, backend_reference());
        plan_it(bm->graph, backend_cpu_find("c"));
    }
    bound_model_destroy(bm);
    strbuf_free(&out);
    diag_destroy(dg);
}

#endif
