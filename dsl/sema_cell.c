/* sema_cell.c - cells: which one an operand means, its sizes, and the newest version at each index. */
#include "dsl/bind.h"

void sema_note_cell(sema *s, const cell *cl)
{
    source_place at = source_find(cl->decl->loc.src, cl->decl->name_loc.begin);
    weft_note(s->dg, STR_FMT " is declared at line %u", STR_ARG(cl->name), (unsigned)at.line);
}

void cell_forget(cell *cl)
{
    cl->slots = NULL;
    cl->bucket = NULL;
    cl->n_slot = cl->n_bucket = 0;
}

/* Sizes are interned: an index is its address. */
static cell_slot **bucket_of(const cell *cl, const poly *index)
{
    uint64_t h = (uint64_t)(uintptr_t)index * 0x9e3779b97f4a7c15u;
    return &cl->bucket[(h >> 32) & (cl->n_bucket - 1)];
}

static void grow_slots(sema *s, cell *cl)
{
    cl->n_bucket = cl->n_bucket ? 4 * cl->n_bucket : 8;
    cl->bucket = ARENA_ARRAY(s->a, cell_slot *, cl->n_bucket);
    for (cell_slot *slot = cl->slots; slot; slot = slot->next) {
        cell_slot **home = bucket_of(cl, slot->index);
        slot->chain = *home;
        *home = slot;
    }
}

cell_slot *cell_slot_of(sema *s, cell *cl, const poly *index)
{
    for (cell_slot *slot = cl->bucket ? *bucket_of(cl, index) : NULL; slot; slot = slot->chain)
        if (slot->index == index)
            return slot;
    cell_slot *slot = ARENA_NEW(s->a, cell_slot);
    *slot = (cell_slot){.index = index, .next = cl->slots};
    cl->slots = slot;
    if (++cl->n_slot > 2 * cl->n_bucket) {
        grow_slots(s, cl);
    } else {
        slot->chain = *bucket_of(cl, index);
        *bucket_of(cl, index) = slot;
    }
    if (s->bind)
        emit_cell(s->bind, cl, slot);
    return slot;
}

/* The cell operand, indexed if it has to be, of one of these kinds, and its newest version. */
cell *cell_operand(op_call *c, int i, cell_code a, cell_code b)
{
    val v = c->arg[i];
    weft_loc at = c->at[i] ? c->at[i]->loc : c->site->loc;
    if (v.cell->symbol && !v.index) {
        weft_fail(c->s->dg, W0207, at, STR_FMT " has one cell per layer; choose one with an index",
                  STR_ARG(v.cell->name));
        return NULL;
    }
    if (v.cell->kind->code != a && v.cell->kind->code != b) {
        weft_fail(c->s->dg, W0207, at, "%s takes a %s, but " STR_FMT " is a %s", c->what,
                  cell_rows(&(int){0})[a].name, STR_ARG(v.cell->name), v.cell->kind->name);
        return NULL;
    }
    const cond *guard = v.cell->guard;
    if (v.cell->symbol && v.index)
        guard = cond_replace(c->s->cp, guard, v.cell->symbol, v.index);
    if (sema_known(c->s, guard) == 0) {
        weft_fail(c->s->dg, W0201, at, STR_FMT " does not exist here", STR_ARG(v.cell->name));
        weft_note_at(c->s->dg, v.cell->decl->name_loc,
                     "it is declared under a condition that is false here");
        return NULL;
    }
    const cell_slot *slot = cell_slot_of(c->s, v.cell, v.index);
    if (v.version < slot->version) {
        weft_fail(c->s->dg, W0601, at, "this handle of " STR_FMT " is older than a later append",
                  STR_ARG(v.cell->name));
        weft_note_at(c->s->dg, slot->at, "the later append; its result is the newest handle");
        return NULL;
    }
    return v.cell;
}

/* Size i of the cell, for the layer that the handle v names. */
const poly *cell_size(op_call *c, val v, int i)
{
    const poly *p = v.cell->arg[i];
    if (c->s->bind)
        return cell_slot_of(c->s, v.cell, v.index)->arg[i];
    return p && v.cell->symbol && v.index ? poly_replace(c->s->pp, p, v.cell->symbol, v.index) : p;
}
