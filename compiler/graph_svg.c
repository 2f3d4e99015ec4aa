/* graph_svg.c - a view of a graph as a picture (SVG 1.1), without help from other programs. */
#include "compiler/graph_layout.h"

#include "runtime/base/utf8.h"

static const double width_min = 760, head = 74, foot = 20;
static const double frame_top = 26, frame_bottom = 12;

typedef struct {
    const view *v;
    const layout *l;
    strbuf *out;
    double dx; /* centres the drawing */
} painter;

/* ---- text ---- */

static void put_at(painter *p, double x, double y, const char *class, str s)
{
    strbuf_add(p->out, "<text class=\"%s\" x=\"%.1f\" y=\"%.1f\">", class, x, y);
    utf8_put_xml(p->out, s);
    strbuf_put(p->out, STR("</text>\n"));
}

/* ---- boxes ---- */

static void put_box(painter *p, int i)
{
    const view_box *b = &p->v->boxes.at[i];
    const spot *s = &p->l->spots.at[i];
    const rank_row *row = &p->l->ranks[s->rank];
    const look_row *look = &look_rows[b->look];
    double h = p->l->box_h[i], x = s->x + p->dx, y = row->y + head + (row->h - h) / 2;
    double round = b->look == LOOK_END ? h / 2 : b->look == LOOK_FOLDED ? 3 : 6;
    strbuf_add(p->out,
               "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" rx=\"%.1f\" "
               "fill=\"%s\" stroke=\"%s\"%s/>\n",
               x - s->w / 2, y, s->w, h, round, look->fill, look->line,
               b->look == LOOK_VIEW || b->look == LOOK_FOLDED ? " stroke-dasharray=\"4 3\"" : "");
    const char *title = b->look == LOOK_VIEW ? "light" : b->look == LOOK_FOLDED ? "plain" : "name";
    int lines = layout_flat(b) ? 1 : b->n_line;
    double base = y + h / 2 - (lines - 1) * LAYOUT_LINE_PX / 2 + 4;
    if (layout_flat(b)) {
        strbuf_add(p->out, "<text class=\"%s\" x=\"%.1f\" y=\"%.1f\">", title, x, base);
        utf8_put_xml(p->out, b->line[0]);
        strbuf_put(p->out, STR(" <tspan class=\"more\">"));
        utf8_put_xml(p->out, b->line[1]);
        strbuf_put(p->out, STR("</tspan></text>\n"));
        return;
    }
    for (int k = 0; k < b->n_line; k++)
        put_at(p, x, base + k * LAYOUT_LINE_PX,
               k == 0                   ? title
               : b->look == LOOK_FOLDED ? "plain"
                                        : "more",
               b->line[k]);
}

/* ---- edges ---- */

/* Edges into one box touch it side by side, in the order of where they come from. */
static double port_into(const painter *p, size_t edge)
{
    const view_edge *e = &p->v->edges.at[edge];
    const layout *l = p->l;
    int n = 0, mine = 0;
    for (size_t i = 0; i < p->v->edges.n; i++) {
        const view_edge *o = &p->v->edges.at[i];
        if (o->to != e->to)
            continue;
        int last = l->edge_first[i + 1] - 1, my_last = l->edge_first[edge + 1] - 1;
        int a = last >= l->edge_first[i] ? last : o->from;
        int b = my_last >= l->edge_first[edge] ? my_last : e->from;
        double xa = l->spots.at[a].x, xb = l->spots.at[b].x;
        n++;
        mine += xa < xb || (xa == xb && (o->port < e->port || (o->port == e->port && i < edge)));
    }
    double step = l->spots.at[e->to].w * 0.7 / n;
    step = step > 26 ? 26 : step;
    return (mine - (n - 1) / 2.0) * step;
}

static void curve(strbuf *out, double x0, double y0, double x1, double y1)
{
    if (x1 - x0 < 0.5 && x0 - x1 < 0.5)
        strbuf_add(out, " L%.1f %.1f", x1, y1);
    else
        strbuf_add(out, " C%.1f %.1f %.1f %.1f %.1f %.1f", x0, y0 + (y1 - y0) * 0.6, x1,
                   y1 - (y1 - y0) * 0.6, x1, y1);
}

static void put_edge(painter *p, size_t i)
{
    const view_edge *e = &p->v->edges.at[i];
    const layout *l = p->l;
    const view_box *from = &p->v->boxes.at[e->from];
    const spot *a = &l->spots.at[e->from], *b = &l->spots.at[e->to];
    const rank_row *ra = &l->ranks[a->rank], *rb = &l->ranks[b->rank];
    double x = a->x + layout_port(from, e->port, a->w) + p->dx;
    double y = ra->y + (ra->h + l->box_h[e->from]) / 2 + head;
    strbuf_add(p->out, "<path class=\"%s\" d=\"M%.1f %.1f",
               e->cell  ? "cell"
               : e->ids ? "ids"
                        : "edge",
               x, y);
    double bottom = ra->y + ra->h + head;
    if (bottom > y)
        strbuf_add(p->out, " L%.1f %.1f", x, bottom);
    y = bottom;
    for (int k = l->edge_first[i]; k < l->edge_first[i + 1]; k++) {
        const spot *s = &l->spots.at[k];
        const rank_row *row = &l->ranks[s->rank];
        curve(p->out, x, y, s->x + p->dx, row->y + head);
        x = s->x + p->dx;
        y = row->y + row->h + head;
        strbuf_add(p->out, " L%.1f %.1f", x, y);
    }
    double end = rb->y + (rb->h - l->box_h[e->to]) / 2 + head - 2,
           into = b->x + port_into(p, i) + p->dx;
    double rank_top = rb->y + head - 2;
    curve(p->out, x, y, into, rank_top);
    if (end > rank_top)
        strbuf_add(p->out, " L%.1f %.1f", into, end);
    strbuf_put(p->out, STR("\"/>\n"));
}

/* ---- the rest ---- */

static void put_frames(painter *p, double width)
{
    for (size_t i = 0; i < p->v->sections.n; i++) {
        const section_span *s = &p->l->spans[i];
        if (p->v->sections.at[i].layer < 0 || s->rank_min < 0)
            continue;
        const rank_row *first = &p->l->ranks[s->rank_min], *last = &p->l->ranks[s->rank_max];
        double y = first->y + head - frame_top;
        strbuf_add(p->out,
                   "<rect class=\"frame\" x=\"8\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" "
                   "rx=\"8\"/>\n",
                   y, width - 16, last->y + last->h + head + frame_bottom - y);
        put_at(p, 18, y + 17, "layer", p->v->sections.at[i].title);
    }
}

static void put_legend(painter *p)
{
    double x = 18;
    for (int i = 0; i < LOOK_COUNT; i++) {
        const look_row *look = &look_rows[i];
        if (!look->name)
            continue;
        strbuf_add(p->out,
                   "<rect x=\"%.1f\" y=\"42\" width=\"12\" height=\"12\" rx=\"3\" fill=\"%s\" "
                   "stroke=\"%s\"/>\n",
                   x, look->fill, look->line);
        put_at(p, x + 17, 52, "key", str_of(look->name));
        x += 34 + (double)strlen(look->name) * 10 * LAYOUT_PITCH;
    }
}

static void put_head(painter *p, double width, double height)
{
    strbuf_add(p->out,
               "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" "
               "viewBox=\"0 0 %.0f %.0f\">\n",
               width, height, width, height);
    strbuf_add(p->out,
               "<style>\n"
               "text { font-family: ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace; "
               "font-size: %.0fpx; text-anchor: middle; fill: #222; }\n"
               ".name { font-size: %.0fpx; font-weight: bold; }\n"
               ".light { font-size: %.0fpx; fill: #777; }\n"
               ".plain { fill: #555; }\n"
               ".more { font-size: %.0fpx; font-weight: normal; fill: #555; }\n"
               ".title { font-size: 17px; font-weight: bold; text-anchor: start; }\n"
               ".layer { font-size: 12px; fill: #888; text-anchor: start; }\n"
               ".key { font-size: 10px; fill: #555; text-anchor: start; }\n"
               ".frame { fill: #fbfbfd; stroke: #d5d5e0; }\n"
               ".edge { fill: none; stroke: #666; stroke-width: 1.2; marker-end: url(#head); }\n"
               ".ids { fill: none; stroke: %s; stroke-width: 1.2; stroke-dasharray: 5 2; "
               "marker-end: url(#head); }\n"
               ".cell { fill: none; stroke: %s; stroke-width: 2.2; marker-end: url(#head); }\n"
               "</style>\n"
               "<defs><marker id=\"head\" viewBox=\"0 0 8 8\" refX=\"6\" refY=\"4\" "
               "markerWidth=\"7\" markerHeight=\"7\" markerUnits=\"userSpaceOnUse\" "
               "orient=\"auto\"><path d=\"M0 0.8 L7 4 L0 7.2 z\" fill=\"#555\"/></marker></defs>\n"
               "<rect width=\"%.0f\" height=\"%.0f\" fill=\"#ffffff\"/>\n",
               LAYOUT_TEXT_PX, LAYOUT_TITLE_PX, LAYOUT_TITLE_PX, LAYOUT_TEXT_PX,
               look_rows[LOOK_GATHER].line, look_rows[LOOK_STATE].line, width, height);
    strbuf_put(p->out, STR("<text class=\"title\" x=\"18\" y=\"28\">"));
    utf8_put_xml(p->out, p->v->g->model);
    strbuf_put(p->out, STR(" \xC2\xB7 "));
    utf8_put_xml(p->out, p->v->g->entry);
    strbuf_put(p->out, STR("</text>\n"));
}

/* A graph that no picture can hold still says so. */
static void put_too_large(painter *p)
{
    put_head(p, width_min, 90);
    strbuf_add(p->out,
               "<text class=\"layer\" x=\"18\" y=\"60\">%zu nodes are too many to draw; "
               "the text form shows them all</text>\n</svg>\n",
               p->v->g->nodes.n);
}

void graph_svg(const graph *g, strbuf *out)
{
    arena *a = arena_create();
    view v;
    layout l = {0};
    view_init(&v, a, g);
    painter p = {.v = &v, .l = &l, .out = out};
    if (v.too_large || !layout_init(&l, a, &v)) {
        put_too_large(&p);
        goto done;
    }
    double width = l.width > width_min ? l.width : width_min;
    p.dx = (width - l.width) / 2;
    put_head(&p, width, l.height + head + foot);
    put_legend(&p);
    put_frames(&p, width);
    for (size_t i = 0; i < v.edges.n; i++)
        put_edge(&p, i);
    for (size_t i = 0; i < v.boxes.n; i++)
        put_box(&p, (int)i);
    strbuf_put(out, STR("</svg>\n"));
done:
    layout_deinit(&l);
    view_deinit(&v);
    arena_destroy(a);
}
