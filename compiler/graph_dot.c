/* graph_dot.c - a view of a graph in the language of Graphviz. */
#include "compiler/graph_view.h"

#include "runtime/base/utf8.h"

/* Inside a string in quotes; bytes that are not text become U+FFFD. */
static void put_text(strbuf *out, str s)
{
    for (size_t i = 0; i < s.n;) {
        uint32_t cp;
        size_t n = utf8_decode((str){s.p + i, s.n - i}, &cp);
        if (n == 0 || utf8_is_control(cp)) {
            strbuf_put(out, STR("\xEF\xBF\xBD"));
        } else {
            if (cp == '"' || cp == '\\')
                strbuf_putc(out, '\\');
            strbuf_put(out, (str){s.p + i, n});
        }
        i += n ? n : 1;
    }
}

static void put_box(strbuf *out, const view_box *b, size_t i)
{
    const look_row *look = &look_rows[b->look];
    bool light = b->look == LOOK_VIEW, folded = b->look == LOOK_FOLDED;
    strbuf_add(out, "    b%zu [label=\"", i);
    for (int k = 0; k < b->n_line; k++) {
        if (k > 0)
            strbuf_put(out, light ? STR(" ") : STR("\\n"));
        put_text(out, b->line[k]);
    }
    strbuf_add(out, "\", fillcolor=\"%s\", color=\"%s\", style=\"%s\"%s];\n", look->fill,
               look->line, light || folded ? "filled,rounded,dashed" : "filled,rounded",
               light ? ", fontcolor=\"#777777\", height=0.2" : "");
}

static void put_section(strbuf *out, const view *v, int section)
{
    bool layer = v->sections.at[section].layer >= 0;
    if (layer) {
        strbuf_add(out, "  subgraph cluster_%d {\n    label=\"", section);
        put_text(out, v->sections.at[section].title);
        strbuf_put(out, STR("\"; labeljust=l; color=\"#d5d5e0\"; bgcolor=\"#fbfbfd\";\n"));
    }
    for (size_t i = 0; i < v->boxes.n; i++)
        if (v->boxes.at[i].section == section)
            put_box(out, &v->boxes.at[i], i);
    if (layer)
        strbuf_put(out, STR("  }\n"));
}

void graph_dot(const graph *g, strbuf *out)
{
    arena *a = arena_create();
    view v;
    view_init(&v, a, g);
    strbuf_put(out, STR("digraph \""));
    put_text(out, g->model);
    strbuf_put(out, STR("\" {\n  label=\""));
    put_text(out, g->model);
    strbuf_put(out, STR(" \xC2\xB7 "));
    put_text(out, g->entry);
    strbuf_put(out,
               STR("\"; labelloc=t; fontname=\"monospace\";\n"
                   "  node [shape=box, fontname=\"monospace\", fontsize=10, margin=\"0.1,0.05\"];\n"
                   "  edge [fontname=\"monospace\", fontsize=8, color=\"#666666\", "
                   "fontcolor=\"#888888\", arrowsize=0.6];\n"));
    if (v.too_large)
        strbuf_add(out, "  b [label=\"%zu nodes are too many to draw\"];\n", g->nodes.n);
    for (size_t i = 0; i < v.sections.n; i++)
        put_section(out, &v, (int)i);
    for (size_t i = 0; i < v.edges.n; i++) {
        const view_edge *e = &v.edges.at[i];
        strbuf_add(out, "  b%d -> b%d [label=\"", e->from, e->to);
        put_text(out, e->type);
        strbuf_add(out, "\"%s];\n",
                   e->cell ? ", color=\"#7a4fb3\", fontcolor=\"#7a4fb3\", penwidth=2" : "");
    }
    strbuf_put(out, STR("}\n"));
    view_deinit(&v);
    arena_destroy(a);
}
