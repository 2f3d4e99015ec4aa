/* plan_parts.c - which part a node is of, what goes from part to part, and a graph for each.
 *
 * Nodes of a layer go where their layer goes. A node outside layers goes with those that it reads, to the first part if it reads
 * none; but what reads layers and is read by none stands behind them. Nodes that no wanted output and no cell needs are of no part. */
#include "compiler/plan_parts.h"

#include "compiler/lower_impl.h"
#include "compiler/plan_make.h"

#include <inttypes.h>
#include <stdlib.h>

enum { PART_BEFORE, PART_CARD = GRAPH_PART_CARD, PART_BEHIND };

typedef struct {
    const graph *g;
    const target *t;
    bool *live;       /* [nodes] */
    bool *of_layers;  /* [nodes]: one of a layer, or one that needs one */
    bool *for_layers; /* [nodes]: one of a layer, or one that it needs */
    int *part;        /* [nodes]; -1: none */
} cutter;

/* What is in the way of a cut. */
typedef struct {
    const gnode *n; /* NULL: nothing */
    int cell;       /* -1: no cell */
    const char *why;
} obstacle;

int64_t graph_layers(const graph *g)
{
    int n = 0;
    for (size_t i = 0; i < g->nodes.n; i++)
        n = g->nodes.at[i].layer >= n ? g->nodes.at[i].layer + 1 : n;
    return n;
}

/* The operands of a node and its attributes that are operands, in one row. */
enum { REFS_MAX = OP_OPERANDS_MAX + OP_ATTRS_MAX };

static int refs_of(gnode *n, gref **out)
{
    int count = 0;
    for (int i = 0; i < n->n_in; i++)
        out[count++] = &n->in[i];
    for (int i = 0; i < OP_ATTRS_MAX; i++)
        if (n->attr[i].kind == GATTR_REF)
            out[count++] = &n->attr[i].ref;
    return count;
}

/* The nodes whose values n reads. */
static int makers_of(const graph *g, const gnode *n, int *out)
{
    gnode copy = *n;
    gref *ref[REFS_MAX];
    int count = refs_of(&copy, ref), made = 0;
    for (int i = 0; i < count; i++)
        if (ref[i]->kind == REF_VALUE)
            out[made++] = g->values.at[ref[i]->id].node;
    return made;
}

/* ---- what is needed ---- */

static void mark_live(cutter *c)
{
    const graph *g = c->g;
    for (size_t i = 0; i < g->outputs.n; i++)
        if (lower_wants(c->t, &g->outputs.at[i]))
            c->live[g->values.at[g->outputs.at[i].value].node] = true;
    for (size_t i = g->nodes.n; i-- > 0;) {
        const gnode *n = &g->nodes.at[i];
        int maker[REFS_MAX], count = makers_of(g, n, maker);
        c->live[i] = c->live[i] || n->op == OP_append || n->op == OP_convert;
        c->for_layers[i] = c->for_layers[i] || (c->live[i] && n->layer >= 0);
        for (int k = 0; k < count; k++) {
            c->live[maker[k]] = c->live[maker[k]] || c->live[i];
            c->for_layers[maker[k]] = c->for_layers[maker[k]] || c->for_layers[i];
        }
    }
    for (size_t i = 0; i < g->nodes.n; i++) {
        int maker[REFS_MAX], count = makers_of(g, &g->nodes.at[i], maker);
        c->of_layers[i] = g->nodes.at[i].layer >= 0;
        for (int k = 0; k < count; k++)
            c->of_layers[i] = c->of_layers[i] || c->of_layers[maker[k]];
    }
}

/* ---- parts ---- */

/* The cell that a node uses; -1: none. */
static int cell_of(const graph *g, const gnode *n)
{
    for (int i = 0; i < n->n_in; i++) {
        gtype t;
        if (n->in[i].kind == REF_CELL)
            return n->in[i].id;
        if (n->in[i].kind == REF_VALUE && graph_type_get(g, n->in[i], &t) && t.cell >= 0)
            return t.cell;
    }
    return -1;
}

/* Layers from `first` on are the card's. */
static int part_of(const cutter *c, size_t i, int64_t first)
{
    const gnode *n = &c->g->nodes.at[i];
    int maker[REFS_MAX], count = makers_of(c->g, n, maker), latest = PART_BEFORE;
    for (int k = 0; k < count; k++)
        latest = c->part[maker[k]] > latest ? c->part[maker[k]] : latest;
    if (n->layer >= 0)
        return n->layer >= first ? PART_CARD : PART_BEFORE;
    return c->of_layers[i] && !c->for_layers[i] ? PART_BEHIND : latest;
}

/* Can what node i reads of other parts be handed to it? */
static obstacle look_at(const cutter *c, size_t i)
{
    const gnode *n = &c->g->nodes.at[i];
    for (int k = 0; k < n->n_in; k++) {
        gtype t;
        if (n->in[k].kind != REF_VALUE || !graph_type_get(c->g, n->in[k], &t))
            continue;
        int from = c->part[c->g->values.at[n->in[k].id].node];
        if (from == c->part[i] || t.cell >= 0) /* cells are looked at by themselves */
            continue;
        if (from > c->part[i])
            return (obstacle){n, -1, "it needs what a later layer makes"};
        if (t.ids)
            return (obstacle){n, -1, "it needs numbers of rows that are on the other device"};
        if (n->op == OP_to_heads || n->op == OP_from_heads)
            return (obstacle){n, -1, "it regroups what is on the other device"};
    }
    for (int k = 0; k < OP_ATTRS_MAX; k++)
        if (n->attr[k].kind == GATTR_REF && n->attr[k].ref.kind == REF_VALUE &&
            c->part[c->g->values.at[n->attr[k].ref.id].node] != c->part[i])
            return (obstacle){n, -1, "it needs a vector that is on the other device"};
    return (obstacle){NULL, -1, NULL};
}

/* Put every node into its part; what is in the way. */
static obstacle assign(cutter *c, int64_t first, arena *a)
{
    const graph *g = c->g;
    int *home = ARENA_ARRAY(a, int, g->cells.n + 1); /* of a cell: its part, plus one */
    for (size_t i = 0; i < g->nodes.n; i++) {
        c->part[i] = c->live[i] ? part_of(c, i, first) : -1;
        if (!c->live[i])
            continue;
        obstacle o = look_at(c, i);
        int cell = cell_of(g, &g->nodes.at[i]);
        if (o.n)
            return o;
        if (cell >= 0 && home[cell] != 0 && home[cell] != c->part[i] + 1)
            return (obstacle){&g->nodes.at[i], cell, "layers on both devices use it"};
        if (cell >= 0)
            home[cell] = c->part[i] + 1;
    }
    return (obstacle){NULL, -1, NULL};
}

/* The number of layers nearest to n that can be on the card; 0: there is none. */
static int64_t nearest(cutter *c, int64_t n, int64_t layers, arena *a)
{
    for (int64_t far = 1; far < layers; far++)
        for (int side = -1; side <= 1; side += 2) {
            int64_t other = n + side * far;
            if (other >= 1 && other <= layers && !assign(c, layers - other, a).n)
                return other;
        }
    return 0;
}

static weft_status refuse(weft_diag *dg, cutter *c, const obstacle *o, int64_t n, int64_t layers,
                          arena *a)
{
    str what = o->cell >= 0 ? c->g->cells.at[o->cell].name : str_of(op_row_of(o->n->op)->name);
    weft_status st = weft_fail(dg, W1611, o->n->loc,
                               "the last %" PRId64 " of %" PRId64
                               " layers cannot be on a device of their own: " STR_FMT ": %s",
                               n, layers, STR_ARG(what), o->why);
    int64_t other = nearest(c, n, layers, a);
    if (other > 0)
        weft_note(dg, "%" PRId64 " of them can be", other);
    else
        weft_note(dg, "all of it can be on one device, the card or the CPU");
    return st;
}

/* ---- a graph for each part ---- */

/* Values of the whole graph that a part gives to later ones, in the order of its outputs. */
static bool is_handed_on(const cutter *c, int value)
{
    int from = c->part[c->g->values.at[value].node];
    for (size_t i = 0; i < c->g->nodes.n; i++) {
        const gnode *n = &c->g->nodes.at[i];
        for (int k = 0; k < n->n_in && c->part[i] > from; k++)
            if (n->in[k].kind == REF_VALUE && n->in[k].id == value)
                return true;
    }
    return false;
}

static void hand_on(const cutter *c, int part, const int *value_of, graph *to)
{
    for (size_t v = 0; v < c->g->values.n; v++)
        if (c->part[c->g->values.at[v].node] == part && c->g->values.at[v].type.cell < 0 &&
            is_handed_on(c, (int)v))
            graph_add_output(to, &(goutput){.name = STR(PLAN_HANDED),
                                            .index = (int)v,
                                            .value = value_of[v],
                                            .loc = c->g->nodes.at[c->g->values.at[v].node].loc});
}

/* What a part reads of an earlier one: an input of its graph, named by the value of the whole one. */
static gref take_over(const graph *g, int value, int *input_of, graph *to)
{
    if (input_of[value] == 0) {
        char name[16];
        snprintf(name, sizeof name, "%s%d", LOWER_HANDED, value);
        input_of[value] = graph_add_input(to, str_of(name), &g->values.at[value].type) + 1;
    }
    return (gref){.kind = REF_INPUT, .id = input_of[value] - 1};
}

/* NULL: there is nothing in it. */
static graph *graph_of(const cutter *c, int part, arena *a)
{
    const graph *g = c->g;
    graph *to = graph_copy(g);
    int *value_of = ARENA_ARRAY(a, int, g->values.n + 1),
        *input_of = ARENA_ARRAY(a, int, g->values.n + 1);
    to->nodes.n = to->values.n = to->outputs.n = 0;
    for (size_t i = 0; i < g->nodes.n; i++) {
        gnode n = g->nodes.at[i];
        gref *ref[REFS_MAX];
        gtype *types = ARENA_ARRAY(a, gtype, (size_t)n.n_out + 1);
        if (c->part[i] != part)
            continue;
        int count = refs_of(&n, ref);
        for (int k = 0; k < count; k++)
            if (ref[k]->kind == REF_VALUE)
                *ref[k] = c->part[g->values.at[ref[k]->id].node] == part
                              ? (gref){.kind = REF_VALUE, .id = value_of[ref[k]->id]}
                              : take_over(g, ref[k]->id, input_of, to);
        for (int k = 0; k < n.n_out; k++)
            types[k] = g->values.at[n.first + k].type;
        int first = graph_add(to, &n, types, n.n_out);
        for (int k = 0; k < n.n_out; k++)
            value_of[g->nodes.at[i].first + k] = first + k;
    }
    for (size_t i = 0; i < g->outputs.n; i++) {
        goutput o = g->outputs.at[i];
        if (!lower_wants(c->t, &o) || c->part[g->values.at[o.value].node] != part)
            continue;
        o.value = value_of[o.value];
        graph_add_output(to, &o);
    }
    hand_on(c, part, value_of, to);
    if (to->nodes.n > 0)
        return to;
    graph_destroy(to);
    return NULL;
}

weft_status graph_cut(weft_diag *dg, const graph *g, const target *t, int64_t n, graph_parts *out)
{
    int64_t layers = graph_layers(g);
    if (layers == 0)
        return weft_fail(dg, W1611, WEFT_NOWHERE,
                         STR_FMT " has no layers to divide: its model file has no loop over them",
                         STR_ARG(g->model));
    WEFT_ASSERT(n >= 1 && n <= layers);
    WEFT_TRY(lower_check(dg, g, t));
    arena *scratch = arena_create();
    cutter c = {.g = g,
                .t = t,
                .live = ARENA_ARRAY(scratch, bool, g->nodes.n),
                .of_layers = ARENA_ARRAY(scratch, bool, g->nodes.n),
                .for_layers = ARENA_ARRAY(scratch, bool, g->nodes.n),
                .part = ARENA_ARRAY(scratch, int, g->nodes.n)};
    mark_live(&c);
    obstacle o = assign(&c, layers - n, scratch);
    weft_status st = o.n ? refuse(dg, &c, &o, n, layers, scratch) : WEFT_OK;
    for (int i = 0; i < PLAN_PARTS_MAX && st == WEFT_OK; i++)
        out->part[i] = graph_of(&c, i, scratch);
    arena_destroy(scratch);
    return st;
}

void graph_parts_destroy(graph_parts *parts)
{
    for (int i = 0; i < PLAN_PARTS_MAX; i++)
        if (parts->part[i])
            graph_destroy(parts->part[i]);
}

/* ---- plans ---- */

/* Where the inputs of a part's graph come from. */
static void find_inputs(const graph *g, const plan_parts *before, plan_part *to, arena *a)
{
    plan_input *in = ARENA_ARRAY(a, plan_input, g->inputs.n);
    for (size_t i = 0; i < g->inputs.n; i++) {
        str name = g->inputs.at[i].name;
        if (!lower_input_is_handed(&g->inputs.at[i]))
            continue;
        int value = atoi(name.p + strlen(LOWER_HANDED));
        plan_input *x = &in[to->n_in++];
        x->offset = lower_input_offset(g, to->p, (int)i);
        for (int32_t p = 0; p < before->n_part; p++)
            for (int32_t o = 0; o < before->part[p].p->n_output; o++)
                if (before->part[p].p->output[o].index == value &&
                    strcmp(before->part[p].p->output[o].name, PLAN_HANDED) == 0)
                    *x = (plan_input){.part = p, .output = o, .offset = x->offset};
    }
    to->in = in;
}

static weft_status make_part(weft_diag *dg, const graph *g, const target *t, const target *as,
                             arena *a, plan **out)
{
    if (!as)
        return plan_make(dg, g, t, NULL, a, out);
    graph *after;
    WEFT_TRY(plan_graph(dg, g, t, NULL, &after));
    weft_status st = plan_make(dg, after, as, NULL, a, out);
    graph_destroy(after);
    return st;
}

/* All that its graph has; and where nothing of one part can be rounded, another part has what can. */
static target target_of_part(const target *t)
{
    target own = *t;
    own.outputs = NULL;
    own.n_output = 0;
    own.round_bf16 = false;
    return own;
}

static weft_status make_parts(weft_diag *dg, const graph_parts *cut, const target *cpu,
                              const target *card, const target *as, arena *a, plan_parts *out)
{
    target other = as ? target_of_part(as) : (target){0};
    for (int i = 0; i < PLAN_PARTS_MAX; i++) {
        target t = target_of_part(i == PART_CARD ? card : cpu);
        plan *p;
        if (!cut->part[i])
            continue;
        WEFT_TRY(make_part(dg, cut->part[i], &t, as ? &other : NULL, a, &p));
        plan_part made = {.p = p, .card = i == PART_CARD && !as};
        find_inputs(cut->part[i], out, &made, a);
        out->part[out->n_part++] = made;
    }
    return WEFT_OK;
}

weft_status plan_make_parts_as(weft_diag *dg, const graph *g, const target *cpu, const target *card,
                               int64_t n, const target *as, arena *a, plan_parts *out)
{
    graph_parts cut;
    WEFT_TRY(graph_cut(dg, g, cpu, n, &cut));
    *out = (plan_parts){.n_part = 0};
    weft_status st = make_parts(dg, &cut, cpu, card, as, a, out);
    graph_parts_destroy(&cut);
    return st;
}

weft_status plan_make_parts(weft_diag *dg, const graph *g, const target *cpu, const target *card,
                            int64_t n, arena *a, plan_parts *out)
{
    return plan_make_parts_as(dg, g, cpu, card, n, NULL, a, out);
}
