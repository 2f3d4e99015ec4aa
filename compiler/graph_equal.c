/* graph_equal.c - are two graphs the same, number by number and name by name? */
#include "compiler/graph_impl.h"

#include <math.h>

static bool same_number(double a, double b)
{
    return (isnan(a) && isnan(b)) || (a == b && signbit(a) == signbit(b));
}

bool graph_loc_equal(weft_loc a, weft_loc b)
{
    if (!a.src || !b.src)
        return !a.src && !b.src;
    if (a.src == b.src && a.begin == b.begin)
        return true;
    if (strcmp(a.src->name, b.src->name) != 0)
        return false;
    source_place at = source_find(a.src, a.begin), bt = source_find(b.src, b.begin);
    return at.line == bt.line && at.column == bt.column;
}

static bool same_dims(int rank, const int64_t *a, const int64_t *b)
{
    return memcmp(a, b, sizeof *a * (size_t)rank) == 0;
}

bool graph_dims_equal(const gtype *a, const gtype *b)
{
    return a->rank == b->rank && same_dims(a->rank, a->dim, b->dim);
}

bool graph_type_equal(const gtype *a, const gtype *b)
{
    return a->ids == b->ids && a->cell == b->cell && a->pairs == b->pairs && graph_dims_equal(a, b);
}

bool graph_ref_equal(gref a, gref b)
{
    if (a.kind != b.kind)
        return false;
    if (a.kind == REF_NUMBER)
        return same_number(a.number, b.number);
    return a.kind == REF_NONE || a.id == b.id;
}

bool graph_attr_equal(const gattr *a, const gattr *b)
{
    if (a->kind != b->kind)
        return false;
    switch (a->kind) {
    case GATTR_NONE:
        return true;
    case GATTR_INT:
    case GATTR_BOOL:
        return a->integer == b->integer;
    case GATTR_FLOAT:
        return same_number(a->number, b->number);
    case GATTR_WORD:
        return str_eq(a->word, b->word);
    case GATTR_REF:
        return graph_ref_equal(a->ref, b->ref);
    }
    return false;
}

static bool same_node(const gnode *a, const gnode *b)
{
    if (a->op != b->op || a->layer != b->layer || a->first != b->first || a->n_out != b->n_out ||
        a->map != b->map || a->chain != b->chain || a->values != b->values ||
        a->recompute != b->recompute || !graph_loc_equal(a->loc, b->loc))
        return false;
    const gref none = {.kind = REF_NONE};
    for (int i = 0; i < OP_OPERANDS_MAX; i++)
        if (!graph_ref_equal(i < a->n_in ? a->in[i] : none, i < b->n_in ? b->in[i] : none))
            return false;
    for (int i = 0; i < OP_ATTRS_MAX; i++)
        if (!graph_attr_equal(&a->attr[i], &b->attr[i]))
            return false;
    return true;
}

static bool same_pieces(const gpiece *a, const gpiece *b, int n)
{
    if (!a || !b)
        return n == 0 || (!a && !b);
    for (int i = 0; i < n; i++)
        if (a[i].tensor != b[i].tensor || a[i].offset != b[i].offset || a[i].rows != b[i].rows)
            return false;
    return true;
}

bool graph_weights_share(const gweight *a, const gweight *b)
{
    if (a->type != b->type || a->rank != b->rank || a->n_piece != b->n_piece ||
        (a->n_piece > 0 && a->piece[0].tensor != b->piece[0].tensor))
        return false;
    if (!same_dims(a->rank, a->dim, b->dim) || !same_dims(a->rank, a->stride, b->stride) ||
        !same_pieces(a->piece, b->piece, a->n_piece) ||
        !same_pieces(a->scales, b->scales, a->n_piece) || !a->computed != !b->computed)
        return false;
    int64_t n = a->computed ? graph_weight_count(a) : 0;
    for (int64_t i = 0; i < n; i++)
        if (!same_number((double)a->computed[i], (double)b->computed[i]))
            return false;
    return true;
}

static bool same_weight(const gweight *a, const gweight *b)
{
    return str_eq(a->name, b->name) && str_eq(a->line, b->line) && a->layer == b->layer &&
           a->pairs == b->pairs && a->lora == b->lora && str_eq(a->whole, b->whole) &&
           a->whole_row == b->whole_row && graph_loc_equal(a->loc, b->loc) &&
           graph_weights_share(a, b);
}

static bool same_const(const gconst *a, const gconst *b)
{
    if (a->n != b->n || a->table != b->table || !same_number(a->factor, b->factor))
        return false;
    for (int64_t i = 0; i < a->n; i++)
        if (!same_number(a->data[i], b->data[i]))
            return false;
    return true;
}

static bool same_cell(const gcell *a, const gcell *b)
{
    return str_eq(a->name, b->name) && a->kind == b->kind && same_dims(3, a->arg, b->arg) &&
           a->window == b->window && a->layout == b->layout && a->keep == b->keep &&
           a->bounded == b->bounded && a->coarsest == b->coarsest && a->pin == b->pin &&
           graph_loc_equal(a->loc, b->loc);
}

static bool same_input(const ginput *a, const ginput *b)
{
    return str_eq(a->name, b->name) && graph_type_equal(&a->type, &b->type);
}

static bool same_output(const goutput *a, const goutput *b)
{
    return str_eq(a->name, b->name) && a->index == b->index && a->value == b->value &&
           graph_loc_equal(a->loc, b->loc);
}

static bool same_value(const gvalue *a, const gvalue *b)
{
    return a->node == b->node && graph_type_equal(&a->type, &b->type);
}

#define SAME_TABLE(table, same)                                                                    \
    do {                                                                                           \
        if (a->table.n != b->table.n)                                                              \
            return false;                                                                          \
        for (size_t i = 0; i < a->table.n; i++)                                                    \
            if (!same(&a->table.at[i], &b->table.at[i]))                                           \
                return false;                                                                      \
    } while (0)

bool graph_equal(const graph *a, const graph *b)
{
    if (!str_eq(a->model, b->model) || !str_eq(a->entry, b->entry))
        return false;
    SAME_TABLE(inputs, same_input);
    SAME_TABLE(consts, same_const);
    SAME_TABLE(weights, same_weight);
    SAME_TABLE(cells, same_cell);
    SAME_TABLE(values, same_value);
    SAME_TABLE(nodes, same_node);
    SAME_TABLE(outputs, same_output);
    return true;
}
