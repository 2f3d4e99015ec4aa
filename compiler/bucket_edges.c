/* bucket_edges.c - which items wait for which, kept while steps are made.
 *
 * A step waits for the makers of its operands; one that reads a cell, for those that wrote it before; one
 * that writes it, for those that read or wrote it before. Passes see to it that no chain waits for itself. */
#include "compiler/bucket_impl.h"

static void add_wait(bucket *b, int32_t item)
{
    if (item < 0)
        return;
    for (size_t i = 0; i < b->waits.n; i++)
        if (b->waits.at[i] == item)
            return;
    VEC_PUSH(&b->waits, item);
}

static bcell *cell_at(bucket *b, int32_t cell)
{
    while (b->cells.n <= (size_t)cell) {
        bcell none = {{-1, -1}, -1};
        VEC_PUSH(&b->cells, none);
    }
    return &b->cells.at[cell];
}

/* The items that s waits for, into b->waits. */
static void find_waits(bucket *b, const plan_step *s)
{
    b->waits.n = 0;
    for (int i = 0; i < s->n_in; i++) {
        int maker = s->in[i].space == SPACE_ARENA ? b->values.at[s->in[i].id].step : -1;
        if (maker >= 0)
            add_wait(b, b->steps.at[maker].item);
    }
    if (s->cell < 0)
        return;
    const bcell *c = cell_at(b, s->cell);
    bool writes = bucket_op(b, s) == KOP_append;
    for (int half = 0; half < 2; half++) /* convert reads all */
        if (!writes || s->in[half].space != SPACE_NONE)
            add_wait(b, c->write[half]);
    add_wait(b, c->read); /* a reader too, so that the last one stands for all */
}

/* Is it there already? Steps of an item are made close together. */
static bool has_edge(const bucket *b, int32_t from, int32_t to)
{
    enum { EDGES_NEAR = 64 };
    for (size_t i = b->edges.n; i-- > 0 && b->edges.n - i <= EDGES_NEAR;)
        if (b->edges.at[i].from == from && b->edges.at[i].to == to)
            return true;
    return false;
}

int32_t bucket_last_wait(bucket *b, const plan_step *s)
{
    int32_t last = -1;
    find_waits(b, s);
    for (size_t i = 0; i < b->waits.n; i++)
        last = b->waits.at[i] > last ? b->waits.at[i] : last;
    return last;
}

void bucket_add_waits(bucket *b, const plan_step *s, int32_t item)
{
    find_waits(b, s);
    for (size_t i = 0; i < b->waits.n; i++)
        if (b->waits.at[i] != item && !has_edge(b, b->waits.at[i], item))
            VEC_PUSH(&b->edges, ((plan_edge){b->waits.at[i], item}));
    if (s->cell < 0)
        return;
    bcell *c = cell_at(b, s->cell);
    bool writes = bucket_op(b, s) == KOP_append, converts = bucket_op(b, s) == KOP_convert;
    if (!writes && !converts)
        c->read = item;
    for (int half = 0; half < 2; half++)
        if (converts || (writes && s->in[half].space != SPACE_NONE))
            c->write[half] = item;
}
