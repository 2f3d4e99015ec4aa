/* passes.h - the passes: each rewrites a legal graph into an equal legal graph, and cannot fail.
 *
 * passes.def lists them in the order they run. Fusing passes move nothing: they put numbers on nodes that
 * belong together (map, chain, recompute; graph.h), so that every node survives with its place. */
#ifndef WEFT_COMPILER_PASSES_H
#define WEFT_COMPILER_PASSES_H

#include "compiler/graph.h"
#include "compiler/target.h"

typedef bool pass_fn(graph *g, const target *t); /* true if anything changed */

typedef struct {
    const char *name, *meaning;
    pass_fn *run;
} pass_row;

const pass_row *pass_rows(int *out_n);
const pass_row *pass_find(const char *name); /* NULL: no such pass */

/* Told before and after each pass that is not skipped; NULL where nobody wants to know. */
typedef struct {
    void (*before)(void *ctx, const pass_row *p, const graph *g);
    void (*after)(void *ctx, const pass_row *p, const graph *g, bool changed, uint64_t ns);
    void *ctx;
} pass_watch;

/* Run all of them, in order, but for those that t->skip names; where t->be fuses nothing, inject_lora alone.
 * W1903 for a name that is no pass. Debug builds verify the graph after each. */
weft_status passes_run(weft_diag *dg, graph *g, const target *t,
                       const pass_watch *watch) WEFT_MUST_USE;

/* A graph of its own, equal to g. Its places point into the same texts, which must outlive it. */
graph *graph_copy(const graph *g);

#endif
