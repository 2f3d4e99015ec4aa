/* graph_verify.c - is a graph legal? The first thing that is not is put into words. */
#include "compiler/graph_impl.h"

#include "runtime/base/intmath.h"
#include "runtime/base/mem.h"
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

typedef struct {
    const graph *g;
    strbuf *out;
    int node;    /* being looked at; values of later nodes are not defined yet */
    int *newest; /* for each cell the value that is its newest version, or -1 */
} verifier;

static bool wrong(verifier *v, const char *fmt, ...) WEFT_PRINTF(2, 3);
static bool wrong(verifier *v, const char *fmt, ...)
{
    if (!v->out)
        return false;
    if (v->node >= 0) {
        const gnode *n = &v->g->nodes.at[v->node];
        bool known = (unsigned)n->op < OP_COUNT;
        strbuf_add(v->out, "node %d (%s): ", v->node,
                   known ? op_row_of(n->op)->name : "no such op");
    }
    va_list ap;
    va_start(ap, fmt);
    strbuf_vadd(v->out, fmt, ap);
    va_end(ap);
    return false;
}

/* ---- tables ---- */

static int name_order(const void *a, const void *b)
{
    return str_cmp(*(const str *)a, *(const str *)b);
}

/* Names are how the text form refers to weights, cells and inputs. */
static bool names_unique(verifier *v, const char *what, str *names, size_t n)
{
    qsort(names, n, sizeof *names, name_order);
    for (size_t i = 1; i < n; i++)
        if (str_eq(names[i - 1], names[i]))
            return wrong(v, "two %s are called " STR_FMT, what, STR_ARG(names[i]));
    return true;
}

#define TABLE_UNIQUE(v, what, table)                                                               \
    static bool what##_unique(verifier *v)                                                         \
    {                                                                                              \
        size_t n = v->g->table.n;                                                                  \
        str *names = mem_alloc(mem_product(n ? n : 1, sizeof *names));                             \
        for (size_t i = 0; i < n; i++)                                                             \
            names[i] = v->g->table.at[i].name;                                                     \
        bool good = names_unique(v, #table, names, n);                                             \
        mem_free(names);                                                                           \
        return good;                                                                               \
    }
TABLE_UNIQUE(v, weight, weights)
TABLE_UNIQUE(v, cell, cells)
TABLE_UNIQUE(v, input, inputs)

static bool dims_good(int rank, const int64_t *dim, bool symbols)
{
    if (rank < 0 || rank > GRAPH_RANK_MAX)
        return false;
    for (int i = 0; i < rank; i++)
        if (dim[i] < (symbols ? GRAPH_S : 0))
            return false;
    return true;
}

static bool type_good(const graph *g, const gtype *t)
{
    if (t->cell >= 0)
        return (size_t)t->cell < g->cells.n && t->rank == 0 && !t->ids && t->pairs == 0;
    return t->cell == -1 && dims_good(t->rank, t->dim, true) && t->pairs >= 0 && t->pairs <= 2;
}

static bool tables_good(verifier *v)
{
    const graph *g = v->g;
    for (size_t i = 0; i < g->inputs.n; i++)
        if (!type_good(g, &g->inputs.at[i].type) || g->inputs.at[i].type.cell >= 0)
            return wrong(v, "input " STR_FMT " has no tensor type", STR_ARG(g->inputs.at[i].name));
    for (size_t i = 0; i < g->weights.n; i++) {
        const gweight *w = &g->weights.at[i];
        bool parts = w->n_piece >= 0 && (w->n_piece == 0 || w->piece) && (w->n_piece || !w->scales);
        if ((unsigned)w->type >= DT_COUNT || !dims_good(w->rank, w->dim, false) || w->layer < -1 ||
            w->layer >= GRAPH_LAYERS_MAX || w->pairs < 0 || w->pairs > 2 || !parts)
            return wrong(v, "weight " STR_FMT " has a bad type, size, layer or piece",
                         STR_ARG(w->name));
        int64_t rows = 0;
        for (int k = 0; k < w->n_piece; k++)
            if (w->piece[k].tensor < 0 || w->piece[k].offset < 0 || w->piece[k].rows < 0 ||
                !i64_add(rows, w->piece[k].rows, &rows))
                return wrong(v, "weight " STR_FMT ": piece %d is bad", STR_ARG(w->name), k);
        if (w->n_piece > 0 && w->rank > 0 && rows != w->dim[0])
            return wrong(v, "weight " STR_FMT ": its pieces hold %" PRId64 " of %" PRId64 " rows",
                         STR_ARG(w->name), rows, w->dim[0]);
    }
    for (size_t i = 0; i < g->consts.n; i++)
        if (g->consts.at[i].n < 0 || (g->consts.at[i].n > 0 && !g->consts.at[i].data))
            return wrong(v, "const #%zu has no data", i);
    for (size_t i = 0; i < g->cells.n; i++) {
        const gcell *c = &g->cells.at[i];
        bool good = (unsigned)c->kind < CELL_KIND_COUNT && c->window >= 0 &&
                    (unsigned)c->layout <= CELL_RING && (c->layout == CELL_RING || c->keep == 0) &&
                    c->keep >= 0 && (unsigned)c->coarsest < KFORM_COUNT && c->pin >= 0;
        for (int k = 0; k < 3; k++)
            good = good && c->arg[k] >= 0;
        if (!good)
            return wrong(v, "cell " STR_FMT " has a bad kind or size", STR_ARG(c->name));
    }
    return input_unique(v) && weight_unique(v) && cell_unique(v);
}

/* ---- operands ---- */

typedef enum { SORT_FLOAT, SORT_IDS, SORT_CELL, SORT_TABLE, SORT_NUMBER } ref_sort;

enum {
    IS_FLOAT = 1 << SORT_FLOAT,
    IS_IDS = 1 << SORT_IDS,
    IS_CELL = 1 << SORT_CELL,
    IS_TABLE = 1 << SORT_TABLE,
    IS_NUMBER = 1 << SORT_NUMBER,
};

/* What the letters of ops.def let an operand be. */
static const struct {
    char letter;
    int sorts;
    const char *wanted;
} letters[] = {
    {'t', IS_FLOAT, "a float tensor"},
    {'w', IS_FLOAT, "a stored weight or float tensor"},
    {'d', IS_IDS, "an i32 tensor"},
    {'c', IS_CELL, "a state cell"},
    {'n', IS_NUMBER, "an integer"},
    {'s', IS_NUMBER, "a size"},
    {'r', IS_TABLE, "a rope table"},
    {'v', IS_FLOAT | IS_NUMBER, "a constant"},
    {'x', IS_FLOAT | IS_NUMBER, "a float tensor or a number"},
};

/* In range, and defined by an earlier node. */
static bool ref_defined(verifier *v, gref r, const char *what, int i)
{
    if (r.kind == REF_NUMBER || r.kind == REF_NONE)
        return true;
    if ((unsigned)r.kind > REF_NUMBER || r.id < 0 || (size_t)r.id >= graph_ref_count(v->g, r.kind))
        return wrong(v, "%s %d refers to nothing", what, i);
    if (r.kind == REF_VALUE && v->g->values.at[r.id].node >= v->node)
        return wrong(v, "%s %d is %%%d, which is not defined before it", what, i, r.id);
    return true;
}

static ref_sort sort_of(const graph *g, gref r)
{
    gtype t;
    if (!graph_type_get(g, r, &t))
        return SORT_NUMBER;
    if (t.cell >= 0)
        return SORT_CELL;
    if (r.kind == REF_CONST && g->consts.at[r.id].table)
        return SORT_TABLE;
    return t.ids ? SORT_IDS : SORT_FLOAT;
}

/* A cell is read through its newest version, so that the order of its writes is that of the values. */
static bool version_newest(verifier *v, gref r, int i)
{
    gtype t;
    if (!graph_type_get(v->g, r, &t) || t.cell < 0)
        return true;
    int newest = v->newest[t.cell];
    if (newest == (r.kind == REF_VALUE ? r.id : -1))
        return true;
    return wrong(v, "operand %d is not the newest version of " STR_FMT, i,
                 STR_ARG(v->g->cells.at[t.cell].name));
}

static bool operand_good(verifier *v, const gnode *n, const op_row *op, int i)
{
    gref r = n->in[i];
    int last = (int)strlen(op->kinds) - 1;
    /* A list of sizes is as many operands as there are sizes. */
    bool in_list = last >= 0 && op->kinds[last] == 's' && i >= last;
    int k = in_list ? last : i;
    if (k > last)
        return wrong(v, "%d operands, but it takes %d", n->n_in, last + 1);
    char letter = op->kinds[k];
    if (r.kind == REF_NONE) {
        /* What to_heads and split are given stands in their results' types too. */
        if (op_operand_optional(op, k) || letter == 'n' || letter == 's')
            return true;
        return wrong(v, "operand %d is missing", i);
    }
    if (!ref_defined(v, r, "operand", i))
        return false;
    for (size_t j = 0; j < sizeof letters / sizeof *letters; j++) {
        if (letters[j].letter != letter)
            continue;
        bool whole = r.kind != REF_NUMBER || strchr("ns", letter) == NULL ||
                     (r.number >= 0 && r.number < 9e15 && r.number == floor(r.number));
        if (!(letters[j].sorts & 1 << sort_of(v->g, r)) || !whole)
            return wrong(v, "operand %d is not %s", i, letters[j].wanted);
    }
    return version_newest(v, r, i);
}

/* ---- attributes ---- */

static bool attr_good(verifier *v, const attr_row *row, const gattr *a)
{
    static const gattr_kind kind_of[] = {
        [ATTR_INT] = GATTR_INT,    [ATTR_FLOAT] = GATTR_FLOAT, [ATTR_BOOL] = GATTR_BOOL,
        [ATTR_VECTOR] = GATTR_REF, [ATTR_WORD] = GATTR_WORD,
    };
    if (a->kind == GATTR_NONE)
        return row->otherwise ? true : wrong(v, "attribute %s is required", row->name);
    if (a->kind != kind_of[row->type])
        return wrong(v, "attribute %s is of the wrong type", row->name);
    if (a->kind == GATTR_WORD && word_find(row->words, a->word) < 0)
        return wrong(v, "attribute %s cannot be " STR_FMT, row->name, STR_ARG(a->word));
    if (a->kind == GATTR_BOOL && a->integer != 0 && a->integer != 1)
        return wrong(v, "attribute %s is neither true nor false", row->name);
    if (a->kind == GATTR_INT || a->kind == GATTR_FLOAT) {
        const char *wanted =
            range_refuses(row->range, a->kind == GATTR_INT ? (double)a->integer : a->number);
        return !wanted || wrong(v, "attribute %s must be %s", row->name, wanted);
    }
    if (a->kind != GATTR_REF)
        return true;
    if (a->ref.kind == REF_NONE || a->ref.kind == REF_NUMBER)
        return wrong(v, "attribute %s is not a vector", row->name);
    if (!ref_defined(v, a->ref, row->name, 0))
        return false;
    return sort_of(v->g, a->ref) == SORT_FLOAT ||
           wrong(v, "attribute %s is not a vector", row->name);
}

/* ---- nodes ---- */

static bool results_good(verifier *v, const gnode *n)
{
    if (n->n_out < 1 || n->first < 0 || (size_t)n->first + (size_t)n->n_out > v->g->values.n)
        return wrong(v, "its results are not in the table of values");
    for (int i = n->first; i < n->first + n->n_out; i++) {
        const gvalue *val = &v->g->values.at[i];
        if (val->node != v->node)
            return wrong(v, "%%%d belongs to node %d", i, val->node);
        if (!type_good(v->g, &val->type))
            return wrong(v, "%%%d has a bad type", i);
        if (val->type.cell >= 0)
            v->newest[val->type.cell] = i;
    }
    return true;
}

static bool node_good(verifier *v, const gnode *n)
{
    if ((unsigned)n->op >= OP_COUNT)
        return wrong(v, "no such op");
    const op_row *op = op_row_of(n->op);
    if (n->n_in < 0 || n->n_in > OP_OPERANDS_MAX || n->layer < -1 || n->layer >= GRAPH_LAYERS_MAX)
        return wrong(v, "bad number of operands, or bad layer");
    for (int i = 0; i < n->n_in; i++)
        if (!operand_good(v, n, op, i))
            return false;
    for (int i = n->n_in, full = (int)strlen(op->kinds); i < full; i++)
        if (!op_operand_optional(op, i) && op->kinds[i] != 'n' && op->kinds[i] != 's')
            return wrong(v, "%d operands, but operand %d is required", n->n_in, i);
    int n_attr;
    const attr_row *rows = op_attrs(n->op, &n_attr);
    for (int i = 0; i < n_attr; i++)
        if (!attr_good(v, &rows[i], &n->attr[i]))
            return false;
    for (int i = n_attr; i < OP_ATTRS_MAX; i++)
        if (n->attr[i].kind != GATTR_NONE)
            return wrong(v, "it has %d attributes, but number %d is set", n_attr, i);
    if (!results_good(v, n))
        return false;
    const char *fault = graph_shape_fault(v->g, n);
    return fault ? wrong(v, "%s", fault) : true;
}

static bool outputs_good(verifier *v)
{
    const graph *g = v->g;
    for (size_t i = 0; i < g->outputs.n; i++) {
        const goutput *o = &g->outputs.at[i];
        if (o->index < -1 || o->value < 0 || (size_t)o->value >= g->values.n ||
            g->values.at[o->value].type.cell >= 0)
            return wrong(v, "output " STR_FMT " is not a tensor of the graph", STR_ARG(o->name));
    }
    return true;
}

bool graph_verify(const graph *g, strbuf *out)
{
    return graph_verify_at(g, out, &(int){0});
}

bool graph_verify_at(const graph *g, strbuf *out, int *out_node)
{
    verifier v = {.g = g, .out = out, .node = -1};
    *out_node = -1;
    if (!tables_good(&v))
        return false;
    v.newest = mem_alloc(mem_product(g->cells.n + 1, sizeof *v.newest));
    for (size_t i = 0; i < g->cells.n; i++)
        v.newest[i] = -1;
    bool good = true;
    size_t n_value = 0;
    for (size_t i = 0; good && i < g->nodes.n; i++) {
        v.node = (int)i;
        good = node_good(&v, &g->nodes.at[i]);
        n_value += (size_t)g->nodes.at[i].n_out;
    }
    *out_node = good ? -1 : v.node;
    v.node = -1;
    if (good && n_value != g->values.n)
        good = wrong(&v, "%zu values, but the nodes give %zu", g->values.n, n_value);
    const char *fault = good ? graph_marks_fault(g, &v.node) : NULL;
    if (fault) {
        *out_node = v.node;
        good = wrong(&v, "%s", fault);
    }
    v.node = -1;
    good = good && outputs_good(&v);
    mem_free(v.newest);
    return good;
}
