/* passes.c - the table of passes, and the driver that runs, times and checks them. */
#include "compiler/passes.h"

#include "compiler/pass_impl.h"
#include "runtime/base/clock.h"

static const pass_row rows[] = {
#define PASS(name, meaning) {#name, meaning, pass_##name},
#include "compiler/passes.def"
#undef PASS
};

enum { N_PASS = (int)(sizeof rows / sizeof *rows) };

const pass_row *pass_rows(int *out_n)
{
    *out_n = N_PASS;
    return rows;
}

const pass_row *pass_find(const char *name)
{
    for (int i = 0; i < N_PASS; i++)
        if (strcmp(rows[i].name, name) == 0)
            return &rows[i];
    return NULL;
}

static weft_status check_names(weft_diag *dg, const target *t)
{
    for (int i = 0; i < t->n_skip; i++) {
        if (pass_find(t->skip[i]))
            continue;
        strbuf names = {0};
        for (int k = 0; k < N_PASS; k++)
            strbuf_add(&names, "%s%s", k ? ", " : "", rows[k].name);
        weft_status st = weft_fail(dg, W1903, WEFT_NOWHERE, "there is no pass '%s'; there are %s",
                                   t->skip[i], names.p);
        strbuf_free(&names);
        return st;
    }
    return WEFT_OK;
}

static bool skipped(const target *t, const char *name)
{
    for (int i = 0; i < t->n_skip; i++)
        if (strcmp(t->skip[i], name) == 0)
            return true;
    return false;
}

/* A pass that breaks a graph is a bug, found where it happens. */
static void check(const graph *g)
{
#ifndef NDEBUG
    strbuf why = {0};
    if (!graph_verify(g, &why))
        weft_bug(__FILE__, __LINE__, why.p);
    strbuf_free(&why);
#else
    (void)g;
#endif
}

weft_status passes_run(weft_diag *dg, graph *g, const target *t, const pass_watch *watch)
{
    WEFT_TRY(check_names(dg, t));
    WEFT_ASSERT(t->be->map_inputs <= K_IN_MAX && t->be->map_results <= K_OUT_MAX &&
                t->be->map_registers <= MAP_REGS_MAX);
    for (int i = 0; i < N_PASS; i++) {
        if (skipped(t, rows[i].name) || (!t->be->fuses && rows[i].run != pass_inject_lora))
            continue;
        if (watch && watch->before)
            watch->before(watch->ctx, &rows[i], g);
        uint64_t begin = clock_ns();
        bool changed = rows[i].run(g, t);
        uint64_t ns = clock_ns() - begin;
        check(g);
        if (watch && watch->after)
            watch->after(watch->ctx, &rows[i], g, changed, ns);
    }
    return WEFT_OK;
}
