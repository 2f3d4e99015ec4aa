/* test_graph_draw.c - the suite of compiler/graph_json.c, graph_dot.c, graph_svg.c, graph_view.c and
 * graph_layout.c. */
#include "compiler/graph_layout.h"
#include "tests/compiler/graph_samples.h"

/* A feed-forward of experts, as a text of its own. */
static const char moe[] = "graph moe entry decode\n"
                          "input x: f[T, 8] input tokens: i32[T]\n"
                          "weight @blk[0].router: F32[4, 8] in 0 layer 0\n"
                          "weight @blk[0].up: F32[4, 16, 8] in 1 layer 0 weight @blk[0].down: "
                          "F32[4, 8, 16] in 2 layer 0\n"
                          "%0: f[T, 4] = linear(x, @blk[0].router, prec = f32) layer 0\n"
                          "%1: i32[T, 2], %2: f[T, 2] = route(%0, k = 2, renorm = true) layer 0\n"
                          "%3: f[T, 2, 16] = experts(x, @blk[0].up, %1) layer 0\n"
                          "%4: f[T, 2, 16] = silu(%3) layer 0\n"
                          "%5: f[T, 2, 8] = experts(%4, @blk[0].down, %1) layer 0\n"
                          "%6: f[T, 8] = combine(%5, %2) layer 0\n"
                          "%7: f[T, 8] = add(x, %6) layer 0\n"
                          "output resid[0] = %7\n";

static graph *moe_graph(void)
{
    arena *a = arena_create();
    weft_diag *dg = diag_create();
    graph *g = graph_from(dg, a, str_of(moe));
    ck_assert_ptr_nonnull(g);
    diag_destroy(dg);
    arena_destroy(a);
    return g;
}

static void expect_part(const strbuf *b, const char *part)
{
    if (!strstr(b->p, part))
        ck_abort_msg("'%s' is missing", part);
}

/* ---- views ---- */

START_TEST(a_view_shows_one_layer)
{
    arena *a = arena_create();
    graph *g = sample_llama(12, true);
    view v;
    view_init(&v, a, g);
    /* tokens, embed | layer 0: 18 | layer 1: 18 | folded | linear, rows, take_rows, logits */
    ck_assert_uint_eq(v.boxes.n, 2 + 18 + 18 + 1 + 4);
    ck_assert_uint_eq(v.sections.n, 5);
    ck_assert_int_eq(v.sections.at[1].layer, 0);
    ck_assert_int_eq(v.sections.at[2].layer, 1);
    const view_box *folded = &v.boxes.at[2 + 18 + 18];
    ck_assert_int_eq(folded->look, LOOK_FOLDED);
    ck_assert_int_eq(folded->n_line, 2);
    ck_assert(str_eqz(folded->line[0], "layers 2, 4, .. 10 as layer 0"));
    ck_assert(str_eqz(folded->line[1], "layers 3, 5, .. 11 as layer 1"));
    for (size_t i = 0; i < v.edges.n; i++)
        ck_assert_int_lt(v.edges.at[i].from, v.edges.at[i].to);
    view_deinit(&v);
    graph_destroy(g);
    arena_destroy(a);
}
END_TEST

START_TEST(boxes_say_what_they_do)
{
    arena *a = arena_create();
    graph *g = moe_graph();
    view v;
    view_init(&v, a, g);
    ck_assert(str_eqz(v.boxes.at[0].line[0], "linear router"));
    ck_assert(str_eqz(v.boxes.at[0].line[1], "[T, 4] \xC2\xB7 x \xC2\xB7 prec f32"));
    ck_assert_int_eq(v.boxes.at[0].look, LOOK_CONTRACTION);
    ck_assert(str_eqz(v.boxes.at[1].line[0], "route"));
    ck_assert_int_eq(v.boxes.at[1].n_out, 2);
    ck_assert(str_eqz(v.boxes.at[2].line[0], "experts up"));
    view_deinit(&v);
    graph_destroy(g);
    arena_destroy(a);
}
END_TEST

/* ---- layout ---- */

static void check_layout(const graph *g)
{
    arena *a = arena_create();
    view v;
    layout l;
    view_init(&v, a, g);
    ck_assert(layout_init(&l, a, &v));
    for (size_t i = 0; i < v.edges.n; i++)
        ck_assert_int_lt(l.spots.at[v.edges.at[i].from].rank, l.spots.at[v.edges.at[i].to].rank);
    for (int r = 0; r < l.n_rank; r++) {
        for (int i = l.ranks[r].first; i < l.ranks[r].first + l.ranks[r].n; i++) {
            const spot *s = &l.spots.at[l.order[i]];
            ck_assert_int_eq(s->rank, r);
            ck_assert(s->x - s->w / 2 >= 0 && s->x + s->w / 2 <= l.width);
            if (i > l.ranks[r].first) /* nothing overlaps */
                ck_assert(s->x - s->w / 2 >=
                          l.spots.at[l.order[i - 1]].x + l.spots.at[l.order[i - 1]].w / 2);
        }
        if (r > 0)
            ck_assert(l.ranks[r].y >= l.ranks[r - 1].y + l.ranks[r - 1].h);
    }
    layout_deinit(&l);
    view_deinit(&v);
    arena_destroy(a);
}

START_TEST(layouts_keep_boxes_apart)
{
    graph *g = sample_llama(3, true);
    check_layout(g);
    graph_destroy(g);
    g = moe_graph();
    check_layout(g);
    graph_destroy(g);
    for (uint64_t seed = 0; seed < 60; seed++) {
        g = sample_random(seed);
        check_layout(g);
        graph_destroy(g);
    }
}
END_TEST

/* ---- pictures ---- */

/* Every tag is closed in order, every & begins a known entity, and all of it is UTF-8. */
static void expect_well_formed(const char *text)
{
    VEC(str) open = {0};
    for (const char *p = text; *p; p++) {
        ck_assert_int_ge((unsigned char)*p == '\n' ? ' ' : (unsigned char)*p, ' ');
        if (*p == '&')
            ck_assert(!strncmp(p, "&lt;", 4) || !strncmp(p, "&gt;", 4) || !strncmp(p, "&amp;", 5));
        if (*p != '<')
            continue;
        const char *end = strchr(p, '>');
        ck_assert_ptr_nonnull(end);
        bool closing = p[1] == '/', empty = end[-1] == '/';
        str name = {p + 1 + closing, strcspn(p + 1 + closing, " />\n")};
        if (closing) {
            ck_assert_uint_gt(open.n, 0);
            ck_assert(str_eq(open.at[--open.n], name));
        } else if (!empty) {
            VEC_PUSH(&open, name);
        }
        p = end;
    }
    ck_assert_uint_eq(open.n, 0);
    VEC_FREE(&open);
}

/* Runs `command FILE` where the probe finds that it can be run. */
static void expect_accepted(const char *probe, const char *command, const strbuf *text)
{
    if (system(probe) != 0)
        return;
    temp_dir dir = temp_dir_create();
    temp_path p = temp_file(&dir, "g", strbuf_view(text));
    char line[1024];
    snprintf(line, sizeof line, command, p.path);
    ck_assert_msg(system(line) == 0, "%s", line);
    unlink(p.path);
    rmdir(dir.path);
}

static void draw(const graph *g, bool ask)
{
    strbuf svg = {0}, dot = {0};
    graph_svg(g, &svg);
    graph_dot(g, &dot);
    expect_well_formed(svg.p);
    if (ask) {
        expect_accepted("command -v xmllint >/dev/null", "xmllint --noout %s", &svg);
        expect_accepted("command -v dot >/dev/null", "dot -Tsvg -o /dev/null %s", &dot);
    }
    strbuf_free(&svg);
    strbuf_free(&dot);
}

START_TEST(pictures_are_well_formed)
{
    graph *g = sample_llama(4, false);
    draw(g, true);
    strbuf svg = {0}, dot = {0};
    graph_svg(g, &svg);
    graph_dot(g, &dot);
    expect_part(&svg, ">llama \xC2\xB7 decode</text>");
    expect_part(&svg, ">linear q_proj</text>");
    expect_part(&svg, ">layers 1..3 as layer 0</text>");
    expect_part(&svg, ">layer 0</text>");
    expect_part(&svg, ">append kv[0]</text>");
    ck_assert_ptr_null(strstr(svg.p, "kv[1]"));
    expect_part(&dot, "label=\"linear q_proj\\n[T, 8]\"");
    expect_part(&dot, "subgraph cluster_1");
    expect_part(&dot, "label=\"[T, 2, 4]\"");
    strbuf_free(&svg);
    strbuf_free(&dot);
    graph_destroy(g);
    g = moe_graph();
    draw(g, true);
    graph_destroy(g);
    for (uint64_t seed = 0; seed < 60; seed++) {
        g = sample_random(seed);
        draw(g, seed < 3);
        graph_destroy(g);
    }
}
END_TEST

/* More boxes than a picture can hold, and edges that pass too many ranks. */
START_TEST(large_graphs_say_so)
{
    graph *g = graph_create();
    g->model = g->entry = STR("big");
    gtype row = F(GRAPH_T, 4);
    int x = OP_ADD(g, neg, -1, row, REF(INPUT, add_input(g, "x", row, false)));
    for (int i = 1; i < VIEW_BOXES_MAX / 2; i++)
        x = OP_ADD(g, add, -1, row, REF(VALUE, x), REF(VALUE, 0));
    strbuf svg = {0};
    graph_svg(g, &svg);
    expect_part(&svg, "750 nodes are too many to draw");
    expect_well_formed(svg.p);
    for (int i = 0; i < VIEW_BOXES_MAX; i++)
        x = OP_ADD(g, neg, -1, row, REF(VALUE, x));
    draw(g, false);
    strbuf_free(&svg);
    graph_destroy(g);
}
END_TEST

/* ---- JSON ---- */

START_TEST(json_tells_everything)
{
    graph *g = sample_llama(1, true);
    strbuf out = {0};
    graph_json(g, &out);
    expect_part(&out, "{\"model\":\"llama\",\"entry\":\"decode\",\"inputs\":[{\"name\":\"tokens\","
                      "\"type\":\"i32\",\"dims\":[\"T\"],\"pairs\":null}");
    expect_part(&out, "{\"kind\":\"rope_table\",\"factor\":1,\"data\":[1,0.125]}");
    expect_part(&out, "\"name\":\"blk[0].q_proj\",\"line\":\"q_proj\",\"layer\":0,\"type\":\"F32\","
                      "\"dims\":[8,8],\"strides\":[32,4],\"pairs\":null,"
                      "\"pieces\":[{\"tensor\":2,\"offset\":0,\"rows\":8}]");
    expect_part(&out, "{\"name\":\"kv[0]\",\"kind\":\"kv_cache\",\"heads\":1,\"k\":4,\"v\":4,"
                      "\"window\":null,\"loc\":null}");
    expect_part(&out, "{\"op\":\"to_heads\",\"in\":[{\"value\":2},{\"number\":2}],\"attrs\":{},"
                      "\"out\":[{\"value\":3,\"type\":\"f\",\"dims\":[\"T\",2,4],\"pairs\":null}],"
                      "\"layer\":0,\"loc\":null}");
    expect_part(&out,
                "{\"op\":\"append\",\"in\":[{\"cell\":\"kv[0]\"},{\"value\":7},{\"value\":9}],"
                "\"attrs\":{},\"out\":[{\"value\":10,\"cell\":\"kv[0]\"}]");
    expect_part(&out, "\"attrs\":{\"pairs\":\"half\"}");
    expect_part(&out, "{\"name\":\"logits\",\"index\":null,\"value\":20,\"loc\":null}]}");
    strbuf_free(&out);
    graph_destroy(g);
}
END_TEST

SUITE_MAIN("graph_draw", a_view_shows_one_layer, boxes_say_what_they_do, layouts_keep_boxes_apart,
           pictures_are_well_formed, large_graphs_say_so, json_tells_everything)
