/* graph_fold.c - which layers are equal up to their number, so that one can stand for all.
 *
 * Each layer is compared with the earliest of its likes found so far, node by node in order. Values
 * and cells of the two layers are paired up as they are met, one to one. What comes in from outside
 * pairs up when it is the same value, or when it stands in the same relation to the layer: the
 * previous layer's result is paired with what the first layer starts from. */
#include "compiler/graph_impl.h"

typedef struct {
    const graph *g;
    const graph_layers *ls;
    bool storage;     /* weights must be stored alike too */
    int *pair, *back; /* [values]: paired with, or -1; from layer a to b, and from b to a */
    int *cell_pair, *cell_back;         /* [cells] */
    int *mark_pair, *mark_back;         /* [2 * marks]: maps, then chains */
    int marks;                          /* one past the highest number of either */
    VEC(int) met, met_cells, met_marks; /* what was paired in this comparison, to be undone */
} folder;

static const gnode *node_of(const folder *f, int layer, int place)
{
    return &f->g->nodes.at[f->ls->node[f->ls->first[layer] + place]];
}

static int size_of(const graph_layers *ls, int layer)
{
    return ls->first[layer + 1] - ls->first[layer];
}

static bool pair_up(int *pair, int *back, int a, int b, bool *out_new)
{
    *out_new = pair[a] < 0 && back[b] < 0;
    if (*out_new) {
        pair[a] = b;
        back[b] = a;
    }
    return pair[a] == b && back[b] == a;
}

static bool pair_values(folder *f, int a, int b)
{
    bool is_new, good = pair_up(f->pair, f->back, a, b, &is_new);
    if (is_new) {
        VEC_PUSH(&f->met, a);
        VEC_PUSH(&f->met, b);
    }
    return good;
}

static bool cells_alike(folder *f, int a, int b)
{
    const gcell *x = &f->g->cells.at[a], *y = &f->g->cells.at[b];
    if (x->kind != y->kind || x->window != y->window || x->layout != y->layout ||
        x->keep != y->keep || x->bounded != y->bounded || x->coarsest != y->coarsest ||
        x->pin != y->pin || memcmp(x->arg, y->arg, sizeof x->arg) != 0)
        return false;
    bool is_new, good = pair_up(f->cell_pair, f->cell_back, a, b, &is_new);
    if (is_new) {
        VEC_PUSH(&f->met_cells, a);
        VEC_PUSH(&f->met_cells, b);
    }
    return good;
}

static bool types_alike(folder *f, const gtype *a, const gtype *b)
{
    if (a->cell >= 0 || b->cell >= 0)
        return a->cell >= 0 && b->cell >= 0 && cells_alike(f, a->cell, b->cell);
    return graph_type_equal(a, b);
}

/* Values a and b are read by layers la and lb, and neither was made there. */
static bool incoming_alike(const folder *f, int a, int b, int la, int lb)
{
    if (a == b)
        return true;
    const gvalue *x = &f->g->values.at[a], *y = &f->g->values.at[b];
    int from_a = f->g->nodes.at[x->node].layer, from_b = f->g->nodes.at[y->node].layer;
    if (from_a < 0 || from_b < 0) /* what the first layer starts from, against a previous layer */
        return from_a < 0 ? from_b == lb - 1 : from_a == la - 1;
    if (la - from_a != lb - from_b ||
        a - f->g->nodes.at[x->node].first != b - f->g->nodes.at[y->node].first)
        return false;
    int place_a = f->ls->place[x->node], place_b = f->ls->place[y->node];
    return place_a == place_b ||
           size_of(f->ls, from_a) - place_a == size_of(f->ls, from_b) - place_b;
}

static bool values_alike(folder *f, int a, int b, int la, int lb)
{
    const gvalue *x = &f->g->values.at[a], *y = &f->g->values.at[b];
    bool in_a = f->g->nodes.at[x->node].layer == la, in_b = f->g->nodes.at[y->node].layer == lb;
    if (in_a != in_b || !types_alike(f, &x->type, &y->type))
        return false;
    return (in_a || incoming_alike(f, a, b, la, lb)) && pair_values(f, a, b);
}

static bool weights_alike(const folder *f, int a, int b, int la, int lb)
{
    const gweight *x = &f->g->weights.at[a], *y = &f->g->weights.at[b];
    if (a == b)
        return true;
    if (x->layer != la || y->layer != lb || !str_eq(x->line, y->line) || x->rank != y->rank ||
        x->pairs != y->pairs || x->lora != y->lora || x->whole_row != y->whole_row ||
        memcmp(x->dim, y->dim, sizeof *x->dim * (size_t)x->rank) != 0)
        return false;
    return !f->storage || (x->type == y->type && x->n_piece == y->n_piece &&
                           !x->scales == !y->scales && !x->computed == !y->computed &&
                           memcmp(x->stride, y->stride, sizeof *x->stride * (size_t)x->rank) == 0);
}

static bool consts_alike(const folder *f, int a, int b)
{
    const gconst *x = &f->g->consts.at[a], *y = &f->g->consts.at[b];
    return a == b || (x->n == y->n && x->table == y->table && x->factor == y->factor &&
                      memcmp(x->data, y->data, sizeof *x->data * (size_t)x->n) == 0);
}

static bool refs_alike(folder *f, gref a, gref b, int la, int lb)
{
    if (a.kind != b.kind)
        return false;
    switch (a.kind) {
    case REF_VALUE:
        return values_alike(f, a.id, b.id, la, lb);
    case REF_WEIGHT:
        return weights_alike(f, a.id, b.id, la, lb);
    case REF_CONST:
        return consts_alike(f, a.id, b.id);
    case REF_CELL:
        return cells_alike(f, a.id, b.id);
    case REF_NONE:
    case REF_INPUT:
    case REF_NUMBER:
        break;
    }
    return graph_ref_equal(a, b);
}

static bool attrs_alike(folder *f, const gattr *a, const gattr *b, int la, int lb)
{
    if (a->kind == GATTR_REF && b->kind == GATTR_REF)
        return refs_alike(f, a->ref, b->ref, la, lb);
    return graph_attr_equal(a, b);
}

/* Numbers of maps or chains, from 0 on; below: none. They pair up like values do. */
static bool marks_alike(folder *f, int a, int b, int base)
{
    if (a < 0 || b < 0)
        return a == b;
    bool is_new, good = pair_up(f->mark_pair, f->mark_back, base + a, base + b, &is_new);
    if (is_new) {
        VEC_PUSH(&f->met_marks, base + a);
        VEC_PUSH(&f->met_marks, base + b);
    }
    return good;
}

static bool nodes_alike(folder *f, const gnode *a, const gnode *b)
{
    if (a->op != b->op || a->n_in != b->n_in || a->n_out != b->n_out ||
        a->recompute != b->recompute || !graph_loc_equal(a->loc, b->loc))
        return false;
    if (!marks_alike(f, a->map - 1, b->map - 1, 0) ||
        !marks_alike(f, a->chain - 1, b->chain - 1, f->marks) ||
        !marks_alike(f, a->values - 1, b->values - 1, f->marks))
        return false;
    for (int i = 0; i < a->n_in; i++)
        if (!refs_alike(f, a->in[i], b->in[i], a->layer, b->layer))
            return false;
    for (int i = 0; i < OP_ATTRS_MAX; i++)
        if (!attrs_alike(f, &a->attr[i], &b->attr[i], a->layer, b->layer))
            return false;
    for (int i = 0; i < a->n_out; i++)
        if (!values_alike(f, a->first + i, b->first + i, a->layer, b->layer))
            return false;
    return true;
}

static bool layers_alike(folder *f, int a, int b)
{
    int n = size_of(f->ls, a);
    bool good = n == size_of(f->ls, b);
    for (int i = 0; good && i < n; i++)
        good = nodes_alike(f, node_of(f, a, i), node_of(f, b, i));
    for (size_t i = 0; i < f->met.n; i++)
        f->pair[f->met.at[i]] = f->back[f->met.at[i]] = -1;
    for (size_t i = 0; i < f->met_cells.n; i++)
        f->cell_pair[f->met_cells.at[i]] = f->cell_back[f->met_cells.at[i]] = -1;
    for (size_t i = 0; i < f->met_marks.n; i++)
        f->mark_pair[f->met_marks.at[i]] = f->mark_back[f->met_marks.at[i]] = -1;
    f->met.n = f->met_cells.n = f->met_marks.n = 0;
    return good;
}

/* ---- gathering ---- */

static void note_cell(graph_layers *ls, const graph *g, gref r, int layer)
{
    gtype t;
    if (graph_type_get(g, r, &t) && t.cell >= 0 && ls->cell_in[t.cell] < 0)
        ls->cell_in[t.cell] = layer;
}

static graph_layers *gather(arena *a, const graph *g)
{
    graph_layers *ls = ARENA_NEW(a, graph_layers);
    for (size_t i = 0; i < g->nodes.n; i++)
        if (g->nodes.at[i].layer >= ls->n)
            ls->n = g->nodes.at[i].layer + 1;
    ls->first = ARENA_ARRAY(a, int, (size_t)ls->n + 1);
    ls->like = ARENA_ARRAY(a, int, (size_t)ls->n);
    ls->node = ARENA_ARRAY(a, int, g->nodes.n);
    ls->place = ARENA_ARRAY(a, int, g->nodes.n);
    ls->cell_in = ARENA_ARRAY(a, int, g->cells.n);
    for (size_t i = 0; i < g->cells.n; i++)
        ls->cell_in[i] = -1;
    int *count = ARENA_ARRAY(a, int, (size_t)ls->n);
    for (size_t i = 0; i < g->nodes.n; i++)
        if (g->nodes.at[i].layer >= 0)
            ls->place[i] = count[g->nodes.at[i].layer]++;
    for (int l = 0; l < ls->n; l++)
        ls->first[l + 1] = ls->first[l] + count[l];
    for (size_t i = 0; i < g->nodes.n; i++) {
        const gnode *n = &g->nodes.at[i];
        if (n->layer >= 0)
            ls->node[ls->first[n->layer] + ls->place[i]] = (int)i;
        for (int k = 0; k < n->n_in; k++)
            note_cell(ls, g, n->in[k], n->layer);
    }
    return ls;
}

static int *unpaired(arena *a, size_t n)
{
    int *x = ARENA_ARRAY(a, int, n);
    for (size_t i = 0; i < n; i++)
        x[i] = -1;
    return x;
}

graph_layers *graph_fold(arena *a, const graph *g, bool storage)
{
    graph_layers *ls = gather(a, g);
    int maps = graph_maps(g), chains = graph_chains(g), marks = maps > chains ? maps : chains;
    folder f = {
        .g = g,
        .ls = ls,
        .storage = storage,
        .pair = unpaired(a, g->values.n),
        .back = unpaired(a, g->values.n),
        .cell_pair = unpaired(a, g->cells.n),
        .cell_back = unpaired(a, g->cells.n),
        .mark_pair = unpaired(a, 2 * (size_t)marks),
        .mark_back = unpaired(a, 2 * (size_t)marks),
        .marks = marks,
    };
    for (int l = 0; l < ls->n; l++) {
        ls->like[l] = l;
        for (int k = 0; k < l && ls->like[l] == l; k++)
            if (ls->like[k] == k && layers_alike(&f, k, l))
                ls->like[l] = k;
    }
    VEC_FREE(&f.met);
    VEC_FREE(&f.met_cells);
    VEC_FREE(&f.met_marks);
    return ls;
}

/* ---- asking ---- */

bool graph_folded(const graph_layers *ls, int layer)
{
    return layer >= 0 && layer < ls->n && ls->like[layer] != layer;
}

static int next_like(const graph_layers *ls, int like, int from, int end)
{
    while (from < end && ls->like[from] != like)
        from++;
    return from;
}

bool graph_fold_list(const graph_layers *ls, int like, int from, int end, strbuf *out)
{
    from = from > like ? from : like + 1;
    int l = next_like(ls, like, from, end), n = 0;
    for (int i = l; i < end; i = next_like(ls, like, i + 1, end))
        n++;
    if (n == 0)
        return false;
    strbuf_put(out, n == 1 ? STR("layer ") : STR("layers "));
    for (const char *comma = ""; l < end; comma = ", ") {
        /* The longest run of equal steps from here. */
        int next = next_like(ls, like, l + 1, end), step = next - l, last = l;
        while (last + step < end && next_like(ls, like, last + 1, end) == last + step)
            last += step;
        if (step == 1 && last > l)
            strbuf_add(out, "%s%d..%d", comma, l, last);
        else if (next < end && last > l + 2 * step)
            strbuf_add(out, "%s%d, %d, .. %d", comma, l, l + step, last);
        else
            strbuf_add(out, "%s%d", comma, last = l);
        l = next_like(ls, like, last + 1, end);
    }
    strbuf_add(out, " as layer %d", like);
    return true;
}

bool graph_fold_output(const graph_layers *ls, const graph *g, const goutput *o)
{
    int node = g->values.at[o->value].node, layer = g->nodes.at[node].layer;
    if (!graph_folded(ls, layer))
        return false;
    const gnode *pair = &g->nodes.at[ls->node[ls->first[ls->like[layer]] + ls->place[node]]];
    int value = pair->first + o->value - g->nodes.at[node].first;
    for (size_t i = 0; i < g->outputs.n; i++)
        if (g->outputs.at[i].value == value && str_eq(g->outputs.at[i].name, o->name))
            return true;
    return false;
}
