/* graph_view.c - chooses what a picture of a graph shows and words it. */
#include "compiler/graph_view.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

enum { LINE_CHARS_MAX = 27 };

/* clang-format off */
const look_row look_rows[LOOK_COUNT] = {
    [LOOK_CONTRACTION] = {"contraction",  "#d6e6fa", "#3a6fb0"},
    [LOOK_NORM]        = {"norm",         "#d9f0d8", "#3f8a46"},
    [LOOK_ATTENTION]   = {"attention",    "#fde2c4", "#c0701c"},
    [LOOK_STATE]       = {"state",        "#e8dbf7", "#7a4fb3"},
    [LOOK_ROWWISE]     = {"row-wise",     "#fbf3c4", "#a48a12"},
    [LOOK_ELEMENTWISE] = {"element-wise", "#ececec", "#777777"},
    [LOOK_GATHER]      = {"gather",       "#d3eeee", "#2f8585"},
    [LOOK_VIEW]        = {"view",         "#ffffff", "#b5b5b5"},
    [LOOK_END]         = {NULL,           "#ffffff", "#333333"},
    [LOOK_FOLDED]      = {NULL,           "#f7f7f2", "#8a8a80"},
};
/* clang-format on */

static box_look look_of(const op_row *op)
{
    static const box_look by_class[] = {
        [FUSE_GATHER] = LOOK_GATHER,   [FUSE_CONTRACTION] = LOOK_CONTRACTION,
        [FUSE_ROWWISE] = LOOK_ROWWISE, [FUSE_ELEMENTWISE] = LOOK_ELEMENTWISE,
        [FUSE_VIEW] = LOOK_VIEW,       [FUSE_MOVE] = LOOK_VIEW,
        [FUSE_STATE] = LOOK_STATE,     [FUSE_ATTENTION] = LOOK_ATTENTION,
        [FUSE_INSERTED] = LOOK_GATHER,
    };
    return str_ends(str_of(op->name), STR("_norm")) ? LOOK_NORM : by_class[op->fuses];
}

typedef struct {
    view *v;
    const graph *g;
    arena *a;
    const graph_layers *ls;
    int *box_of;     /* [nodes]: the box that shows it */
    int *input_box;  /* [inputs]: its box, -1: shown as a word */
    int *section_of; /* [layers]: the section that shows it, -1: none yet */
    int *run_end;    /* [layers]: one past the stretch of folded layers it is in */
    int *run_box;    /* [layers]: the box of the stretch that begins here, -1: none yet */
    strbuf text;     /* scratch */
} viewer;

/* ---- words ---- */

static str text_kept(viewer *w)
{
    str s = arena_str(w->a, strbuf_view(&w->text));
    strbuf_reset(&w->text);
    return s;
}

/* Six digits are enough for a picture. */
static void put_short(strbuf *out, double x)
{
    strbuf_add(out, "%.6g", x);
}

/* Words join the last line while it has room for them. */
static void add_words(viewer *w, view_box *b, str words)
{
    if (words.n == 0)
        return;
    str *last = b->n_line > 1 ? &b->line[b->n_line - 1] : NULL;
    if (last && (last->n + words.n + 2 <= LINE_CHARS_MAX || b->n_line == BOX_LINES_MAX))
        *last = arena_printf(w->a, STR_FMT " \xC2\xB7 " STR_FMT, STR_ARG(*last), STR_ARG(words));
    else if (b->n_line < BOX_LINES_MAX)
        b->line[b->n_line++] = words;
}

static str dims_text(viewer *w, const gtype *t)
{
    if (t->cell >= 0)
        return w->g->cells.at[t->cell].name;
    if (t->ids)
        strbuf_put(&w->text, STR("i32"));
    gtext_dims(&w->text, t->rank, t->dim);
    return text_kept(w);
}

/* A weight of the layer by its line's name, another by its own. */
static void put_weight(viewer *w, const gweight *x)
{
    str bias = STR(".bias");
    strbuf_put(&w->text, x->layer >= 0 ? x->line : x->name);
    if (x->layer >= 0 && str_ends(x->name, bias) && !str_ends(x->line, bias))
        strbuf_put(&w->text, bias);
}

/* "linear q_proj + bias", "mul 8", "append kv[0]" */
static str name_line(viewer *w, const gnode *n, const op_row *op)
{
    strbuf_put(&w->text, str_of(op->name));
    const gweight *first = NULL;
    for (int i = 0; i < n->n_in; i++) {
        gref r = n->in[i];
        if (r.kind == REF_WEIGHT) {
            const gweight *x = &w->g->weights.at[r.id];
            bool bias = first && str_eq(first->line, x->line) && first->layer == x->layer;
            strbuf_put(&w->text, first ? STR(" + ") : STR(" "));
            if (bias)
                strbuf_put(&w->text, STR("bias"));
            else
                put_weight(w, x);
            first = x;
        } else if (r.kind == REF_NUMBER && op->kinds[i] != 'n' && op->kinds[i] != 's') {
            strbuf_putc(&w->text, ' ');
            put_short(&w->text, r.number);
            if (i == 0 && (n->op == OP_sub || n->op == OP_div))
                strbuf_put(&w->text, STR(", x"));
        } else if (r.kind == REF_CELL) {
            strbuf_putc(&w->text, ' ');
            strbuf_put(&w->text, w->g->cells.at[r.id].name);
        }
    }
    return text_kept(w);
}

static str attr_words(viewer *w, const attr_row *row, const gattr *a)
{
    strbuf *out = &w->text;
    if (a->kind == GATTR_NONE || (a->kind == GATTR_BOOL && !a->integer))
        return (str){0};
    strbuf_put(out, str_of(row->name));
    if (a->kind == GATTR_BOOL)
        return text_kept(w);
    strbuf_putc(out, ' ');
    if (a->kind == GATTR_INT)
        strbuf_add(out, "%" PRId64, a->integer);
    else if (a->kind == GATTR_FLOAT)
        put_short(out, a->number);
    else if (a->kind == GATTR_WORD)
        strbuf_put(out, a->word);
    else if (a->ref.kind == REF_WEIGHT)
        put_weight(w, &w->g->weights.at[a->ref.id]);
    else
        gtext_ref(out, w->g, a->ref);
    return text_kept(w);
}

static void describe(viewer *w, const gnode *n, view_box *b)
{
    const op_row *op = op_row_of(n->op);
    b->look = look_of(op);
    b->line[0] = name_line(w, n, op);
    b->n_line = 1;
    for (int i = 0; i < n->n_out; i++)
        if (w->g->values.at[n->first + i].type.cell < 0)
            add_words(w, b, dims_text(w, &w->g->values.at[n->first + i].type));
    for (int i = 0; i < n->n_in; i++) {
        if (n->in[i].kind == REF_INPUT && w->input_box[n->in[i].id] < 0)
            add_words(w, b, w->g->inputs.at[n->in[i].id].name);
        else if (n->in[i].kind == REF_CONST)
            add_words(w, b, arena_printf(w->a, "#%d", n->in[i].id));
    }
    int n_attr;
    const attr_row *rows = op_attrs(n->op, &n_attr);
    for (int i = 0; i < n_attr; i++)
        add_words(w, b, attr_words(w, &rows[i], &n->attr[i]));
    gtext_marks(&w->text, n);
    str marks = text_kept(w);
    add_words(w, b, marks.n ? (str){marks.p + 1, marks.n - 1} : marks);
}

/* ---- boxes and edges ---- */

static int add_section(viewer *w, int layer)
{
    view_section s = {.layer = layer};
    if (layer >= 0) {
        strbuf_add(&w->text, "layer %d", layer);
        s.title = text_kept(w);
    }
    VEC_PUSH(&w->v->sections, s);
    return (int)w->v->sections.n - 1;
}

static int add_box(viewer *w, view_box b)
{
    VEC_PUSH(&w->v->boxes, b);
    return (int)w->v->boxes.n - 1;
}

static void add_edge(viewer *w, view_edge e)
{
    if (e.from >= e.to) /* within folded layers, or back into them */
        return;
    for (size_t i = w->v->edges.n; i > 0 && w->v->edges.at[i - 1].to == e.to; i--)
        if (w->v->edges.at[i - 1].from == e.from && w->v->edges.at[i - 1].port == e.port)
            return;
    VEC_PUSH(&w->v->edges, e);
}

static void edge_from_value(viewer *w, int value, int to)
{
    const gvalue *val = &w->g->values.at[value];
    int from = w->box_of[val->node];
    bool whole = w->v->boxes.at[from].node >= 0;
    add_edge(w, (view_edge){
                    .from = from,
                    .to = to,
                    .port = whole ? value - w->g->nodes.at[val->node].first : 0,
                    .type = dims_text(w, &val->type),
                    .cell = val->type.cell >= 0,
                    .ids = val->type.ids,
                });
}

static void edges_into(viewer *w, const gnode *n, int to)
{
    for (int i = 0; i < n->n_in; i++) {
        gref r = n->in[i];
        if (r.kind == REF_VALUE)
            edge_from_value(w, r.id, to);
        else if (r.kind == REF_INPUT && w->input_box[r.id] >= 0)
            add_edge(w, (view_edge){.from = w->input_box[r.id],
                                    .to = to,
                                    .type = dims_text(w, &w->g->inputs.at[r.id].type),
                                    .ids = w->g->inputs.at[r.id].type.ids});
    }
    for (int i = 0; i < OP_ATTRS_MAX; i++)
        if (n->attr[i].kind == GATTR_REF && n->attr[i].ref.kind == REF_VALUE)
            edge_from_value(w, n->attr[i].ref.id, to);
}

/* An input that one drawn node reads becomes a box above it. */
static void show_inputs(viewer *w, const gnode *n, int section)
{
    for (int i = 0; i < n->n_in; i++) {
        if (n->in[i].kind != REF_INPUT || w->input_box[n->in[i].id] != -2)
            continue;
        const ginput *in = &w->g->inputs.at[n->in[i].id];
        view_box b = {.look = LOOK_END, .node = -1, .section = section, .n_out = 1, .n_line = 2};
        b.line[0] = in->name;
        b.line[1] = dims_text(w, &in->type);
        w->input_box[n->in[i].id] = add_box(w, b);
    }
}

/* A stretch of folded layers: "layers 1..31 as layer 0", a line for each kind. */
static int folded_box(viewer *w, int layer)
{
    int end = w->run_end[layer], begin = layer;
    while (begin > 0 && graph_folded(w->ls, begin - 1))
        begin--;
    if (w->run_box[begin] >= 0)
        return w->run_box[begin];
    view_box b = {.look = LOOK_FOLDED, .node = -1, .n_out = 1};
    b.section = add_section(w, -1);
    for (int like = 0; like < begin; like++) {
        if (w->ls->like[like] != like || !graph_fold_list(w->ls, like, begin, end, &w->text))
            continue;
        str words = text_kept(w);
        if (b.n_line < BOX_LINES_MAX)
            b.line[b.n_line++] = words;
    }
    return w->run_box[begin] = add_box(w, b);
}

static int node_box(viewer *w, int node, int section)
{
    const gnode *n = &w->g->nodes.at[node];
    show_inputs(w, n, section);
    view_box b = {.node = node, .section = section, .n_out = n->n_out};
    describe(w, n, &b);
    return add_box(w, b);
}

/* Outputs inside layers are words in the box that makes them; those outside stand alone. */
static void show_outputs(viewer *w, int node)
{
    const gnode *n = &w->g->nodes.at[node];
    for (size_t i = 0; i < w->g->outputs.n; i++) {
        const goutput *o = &w->g->outputs.at[i];
        if (o->value < n->first || o->value >= n->first + n->n_out)
            continue;
        strbuf_put(&w->text, o->name);
        if (o->index >= 0)
            strbuf_add(&w->text, "[%d]", o->index);
        str name = text_kept(w);
        view_box *made = &w->v->boxes.at[w->box_of[node]];
        if (n->layer >= 0) {
            add_words(w, made, arena_printf(w->a, "output " STR_FMT, STR_ARG(name)));
            continue;
        }
        view_box b = {.look = LOOK_END, .node = -1, .section = made->section, .n_line = 2};
        b.line[0] = name;
        b.line[1] = dims_text(w, &w->g->values.at[o->value].type);
        edge_from_value(w, o->value, add_box(w, b));
    }
}

static int *filled(arena *a, size_t n, int x)
{
    int *at = ARENA_ARRAY(a, int, n);
    for (size_t i = 0; i < n; i++)
        at[i] = x;
    return at;
}

/* Which inputs are boxes (-2 until then), and where stretches of folded layers end. */
static void prepare(viewer *w)
{
    const graph *g = w->g;
    size_t n_layer = (size_t)w->ls->n;
    w->box_of = filled(w->a, g->nodes.n, -1);
    w->section_of = filled(w->a, n_layer, -1);
    w->run_box = filled(w->a, n_layer, -1);
    w->run_end = filled(w->a, n_layer, 0);
    for (int l = w->ls->n - 1; l >= 0; l--)
        w->run_end[l] = l + 1 < w->ls->n && graph_folded(w->ls, l + 1) ? w->run_end[l + 1] : l + 1;
    int *uses = filled(w->a, g->inputs.n, 0);
    for (size_t i = 0; i < g->nodes.n; i++)
        for (int k = 0; k < g->nodes.at[i].n_in; k++)
            if (g->nodes.at[i].in[k].kind == REF_INPUT)
                uses[g->nodes.at[i].in[k].id]++;
    w->input_box = filled(w->a, g->inputs.n, -1);
    for (size_t i = 0; i < g->inputs.n; i++)
        w->input_box[i] = uses[i] == 1 ? -2 : -1;
}

void view_init(view *v, arena *a, const graph *g)
{
    *v = (view){.g = g};
    viewer w = {.v = v, .g = g, .a = a, .ls = graph_fold(a, g, false)};
    prepare(&w);
    int outside = -1; /* the section of nodes outside layers, while it goes on */
    for (size_t i = 0; i < g->nodes.n; i++) {
        const gnode *n = &g->nodes.at[i];
        bool folded = graph_folded(w.ls, n->layer);
        if (v->boxes.n > VIEW_BOXES_MAX) {
            v->boxes.n = v->edges.n = v->sections.n = 0;
            v->too_large = true;
            break;
        }
        if (folded) {
            w.box_of[i] = folded_box(&w, n->layer);
        } else if (n->layer < 0) {
            outside = outside < 0 ? add_section(&w, -1) : outside;
            w.box_of[i] = node_box(&w, (int)i, outside);
        } else {
            if (w.section_of[n->layer] < 0)
                w.section_of[n->layer] = add_section(&w, n->layer);
            w.box_of[i] = node_box(&w, (int)i, w.section_of[n->layer]);
        }
        if (n->layer >= 0)
            outside = -1;
        edges_into(&w, n, w.box_of[i]);
        if (!folded)
            show_outputs(&w, (int)i);
    }
    strbuf_free(&w.text);
}

void view_deinit(view *v)
{
    VEC_FREE(&v->boxes);
    VEC_FREE(&v->edges);
    VEC_FREE(&v->sections);
}
