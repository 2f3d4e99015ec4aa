/* cell_rope.c - looks backwards from each append of a cell for the step that made its keys. */
#include "runtime/exec/cell_rope.h"

static kop op_of(const plan *p, const plan_step *s)
{
    return plan_kernel_of(p, s)->op;
}

static bool same_place(const plan_operand *a, const plan_operand *b)
{
    return a->space == b->space && a->id == b->id && a->offset == b->offset;
}

/* The last step before step i that wrote its first operand; NULL: none did. */
static const plan_step *maker_of(const plan_bucket *b, int32_t i)
{
    const plan_operand *x = &b->step[i].in[0];
    while (i-- > 0)
        for (int32_t k = 0; k < b->step[i].n_out; k++)
            if (same_place(&b->step[i].out[k], x))
                return &b->step[i];
    return NULL;
}

/* Do positions go into nothing but ropes? */
static bool only_ropes(const plan *p, const plan_bucket *b)
{
    for (int32_t i = 0; i < b->n_step; i++)
        for (int32_t k = 0; k < b->step[i].n_in; k++) {
            const plan_operand *x = &b->step[i].in[k];
            if (x->space == SPACE_IO && x->id == IO_POS && op_of(p, &b->step[i]) != KOP_rope)
                return false;
        }
    return true;
}

static bool same_turn(const key_turn *a, const key_turn *b)
{
    return a->freqs == b->freqs && a->pairs == b->pairs && a->interleaved == b->interleaved;
}

key_turn cell_rope_of(const plan *p, int32_t cell)
{
    const plan_bucket *b = &p->bucket[0]; /* all have the same graph */
    key_turn found = {0};
    if (p->cell[cell].latent)
        found.why = "it is latent, and which part of a row was turned is not known";
    else if (!only_ropes(p, b))
        found.why = "positions go into the model otherwise than by turning keys";
    for (int32_t i = 0; i < b->n_step && !found.why; i++) {
        const plan_step *s = &b->step[i];
        if (op_of(p, s) != KOP_append || s->cell != cell || s->in[0].space == SPACE_NONE)
            continue;
        const plan_step *made = maker_of(b, i);
        if (!made || op_of(p, made) != KOP_rope || made->in[2].space != SPACE_CONST ||
            made->size.rope.width != p->cell[cell].k)
            return (key_turn){.why = "its keys are not what a rotation made"};
        key_turn one = {
            .freqs = (const float *)(const void *)((const char *)p->consts + made->in[2].offset),
            .pairs = made->size.rope.pairs,
            .interleaved = made->choice.rope.order == ROPE_INTERLEAVED};
        if (found.freqs && !same_turn(&found, &one))
            return (key_turn){.why = "its keys are turned in several ways"};
        found = one;
    }
    if (!found.freqs && !found.why)
        found.why = "nothing writes keys into it";
    return found;
}
