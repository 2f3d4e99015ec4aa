/* fuzz_graph.c - any bytes as graph text. What is read comes back from its own text, and can be drawn. */
#include "compiler/graph.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static graph *read_text(arena *a, str text)
{
    weft_diag *dg = diag_create();
    graph *g = NULL;
    weft_status st = graph_parse(dg, source_from_text(a, "fuzz.graph", text), &g);
    diag_destroy(dg);
    return st == WEFT_OK ? g : NULL;
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
        strbuf_free(&text);
        strbuf_free(&other);
        graph_destroy(g);
    }
    arena_destroy(a);
    return 0;
}
