/* bucket_edges.c - which items wait for which, kept while steps are made.
 *
 * A step waits for the makers of its operands; one that reads a cell, for those that wrote it before; one
 * that writes it, for those that read or wrote it before. Chains gain steps long after others began to read
 * their values, so one more may close a circle, through values or through a cell, and is then not let in.
 *
 * Every item is deeper than all it waits for. So only what is deeper than an item can wait for it, and most
 * steps that join a chain wait for nothing as deep as that: they are let in without a search. */
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

void bucket_find_waits(bucket *b, const plan_step *s)
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
    bool writes = (bucket_op(b, s) == KOP_append);
    for (int half = 0; half < 2; half++)
        if (!writes || s->in[half].space != SPACE_NONE)
            add_wait(b, c->write[half]);
    add_wait(b, c->read); /* a reader too, so that the last one stands for all */
}

bool bucket_makes_circle(bucket *b, int32_t item)
{
    int32_t depth = b->items.at[item].depth, search = ++b->n_search;
    b->open.n = 0;
    for (size_t i = 0; i < b->waits.n; i++)
        if (b->waits.at[i] != item)
            VEC_PUSH(&b->open, b->waits.at[i]);
    while (b->open.n > 0) {
        int32_t at = b->open.at[--b->open.n];
        bitem *it = &b->items.at[at];
        if (at == item)
            return true;
        if (it->depth <= depth || it->seen == search)
            continue;
        it->seen = search;
        for (int32_t e = it->edges; e > 0; e = b->edges.at[e - 1].next)
            VEC_PUSH(&b->open, b->edges.at[e - 1].from);
    }
    return false;
}

/* Make every item deeper than those it waits for, after one has become so. */
static void sink_others(bucket *b)
{
    bool again = true;
    while (again) {
        again = false;
        for (size_t i = 0; i < b->edges.n; i++) {
            const bedge *e = &b->edges.at[i];
            int32_t depth = b->items.at[e->from].depth + 1;
            if (b->items.at[e->to].depth < depth) {
                b->items.at[e->to].depth = depth;
                again = true;
            }
        }
    }
}

void bucket_add_waits(bucket *b, const plan_step *s, int32_t item)
{
    bitem *it = &b->items.at[item];
    bool sunk = false;
    for (size_t i = 0; i < b->waits.n; i++) {
        int32_t from = b->waits.at[i];
        if (from == item)
            continue;
        bedge e = {from, item, it->edges};
        VEC_PUSH(&b->edges, e);
        it->edges = (int32_t)b->edges.n;
        if (it->depth <= b->items.at[from].depth) {
            it->depth = b->items.at[from].depth + 1;
            sunk = it->n_step > 1; /* a new one has nobody waiting for it */
        }
    }
    if (sunk)
        sink_others(b);
    if (s->cell < 0)
        return;
    bcell *c = cell_at(b, s->cell);
    if (!(bucket_op(b, s) == KOP_append))
        c->read = item;
    for (int half = 0; half < 2; half++)
        if ((bucket_op(b, s) == KOP_append) && s->in[half].space != SPACE_NONE)
            c->write[half] = item;
}
