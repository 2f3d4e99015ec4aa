/* fuzz_graph.c - any bytes as graph text. What is read comes back from its own text, can be drawn, and is
 * legal after each pass. */
#include "compiler/graph.h"
#include "compiler/passes.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static graph *read_text(arena *a, str text)
{
    weft_diag *dg = diag_create();
    graph *g = NULL;
    weft_status st = graph_parse(dg, source_from_text(a, "fuzz.graph", text), &g);
    diag_destroy(dg);
    return st == WEFT_OK ? g : NULL;
}

/* Passes see graphs as binding makes them, without marks. */
static void run_passes(const graph *from)
{
    target t = {.be = backend_cpu_find("c"), .n_ctx = 64, .n_seq = 2, .n_tok_max = 8};
    graph *g = graph_copy(from);
    for (size_t i = 0; i < g->nodes.n; i++) {
        g->nodes.at[i].map = g->nodes.at[i].chain = g->nodes.at[i].values = 0;
        g->nodes.at[i].recompute = false;
    }
    int n;
    const pass_row *rows = pass_rows(&n);
    for (int i = 0; i < n; i++) {
        rows[i].run(g, &t);
        WEFT_ASSERT(graph_verify(g, NULL));
        WEFT_ASSERT(!rows[i].run(g, &t));
    }
    graph_destroy(g);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    arena *a = arena_create();
    graph *g = read_text(a, (str){(const char *)data, size});
    if (g) {
        strbuf text = {0}, other = {0};
        graph_print(g, false, &text);
        graph *back = read_text(a, strbuf_view(&text));
        WEFT_ASSERT(back && graph_equal(g, back));
        graph_destroy(back);
        graph_print(g, true, &other);
        graph_json(g, &other);
        graph_dot(g, &other);
        graph_svg(g, &other);
        run_passes(g);
        strbuf_free(&text);
        strbuf_free(&other);
        graph_destroy(g);
    }
    arena_destroy(a);
    return 0;
}
