/* pair_order.c - which elements of a tensor's last axis pair up, and what rope makes of it.
 *
 * A weight's line says that of every `run` output rows the first `turned` are stored in an order. The tag goes from type
 * to type as long as what it says stays true, and is dropped where it does not. rope pairs elements by its table, so
 * the table must cover exactly the elements that the tag is about. */
#include "dsl/sema.h"

static const char *origin_name(int o)
{
    return o == ORIGIN_GGUF ? "gguf" : "hf";
}

static const char *order_name(pair_order p)
{
    return p == PAIRS_HALF ? "half" : p == PAIRS_INTERLEAVED ? "interleaved" : "untagged";
}

static const char *text(sema *s, const poly *p)
{
    return poly_text(s, sema_narrowed(s, p));
}

static bool sizes_same(sema *s, const poly *a, const poly *b)
{
    return a == b || (a && b && dims_equal(s, a, b));
}

static void drop(tensor_type *t, int o)
{
    t->pairs[o] = PAIRS_NONE;
    t->run[o] = t->turned[o] = NULL;
}

void pairs_drop(tensor_type *t)
{
    for (int o = 0; o < ORIGIN_COUNT; o++)
        drop(t, o);
}

void pairs_copy(tensor_type *t, const tensor_type *from)
{
    for (int o = 0; o < ORIGIN_COUNT; o++) {
        t->pairs[o] = from->pairs[o];
        t->run[o] = from->run[o];
        t->turned[o] = from->turned[o];
    }
}

void pairs_join(sema *s, tensor_type *t, const tensor_type *other)
{
    for (int o = 0; o < ORIGIN_COUNT; o++)
        if (t->pairs[o] != other->pairs[o] || !sizes_same(s, t->run[o], other->run[o]) ||
            !sizes_same(s, t->turned[o], other->turned[o]))
            t->pairs[o] = PAIRS_NONE;
}

/* Elements [first, first + n) of heads in half order are in no order, unless all that pair up is among them. Those of
 * interleaved heads still stand two by two. */
void pairs_split(sema *s, const tensor_type *x, bool first, tensor_type *part)
{
    const poly *n = part->dim[part->rank - 1];
    for (int o = 0; o < ORIGIN_COUNT; o++) {
        if (x->pairs[o] == PAIRS_NONE || !sizes_same(s, x->run[o], x->dim[x->rank - 1]))
            continue; /* whole heads */
        bool all = sizes_same(s, x->turned[o], x->run[o]);
        if (sizes_same(s, n, x->run[o]))
            continue;
        if (first && sizes_same(s, n, x->turned[o]))
            part->run[o] = n;
        else if (all && x->pairs[o] == PAIRS_INTERLEAVED)
            part->run[o] = part->turned[o] = n;
        else
            part->pairs[o] = PAIRS_NONE;
    }
}

/* ---- rope ---- */

static bool fail_width(op_call *c, const tensor_type *x, int o, const poly *rotated)
{
    sema *s = c->s;
    if (x->paired)
        weft_fail(s->dg, W0302, c->site->loc,
                  "rope: the table rotates %s elements of each head, but in %s checkpoints "
                  "pairs(%s, ..) of " STR_FMT " covers %s",
                  text(s, rotated), origin_name(o), order_name(x->pairs[o]),
                  STR_ARG(x->paired->name), text(s, x->turned[o]));
    else
        weft_fail(s->dg, W0302, c->site->loc,
                  "rope: the table rotates %s elements of each head, but in %s checkpoints %s are "
                  "in %s order",
                  text(s, rotated), origin_name(o), text(s, x->turned[o]), order_name(x->pairs[o]));
    sema_note_weight(s, x->paired);
    weft_note(s->dg, "make both the same: rotary(dim = %s), or pairs(%s, %s, %s)",
              text(s, x->turned[o]), order_name(x->pairs[o]), text(s, x->dim[2]), text(s, rotated));
    return false;
}

static bool fail_untagged(op_call *c, const tensor_type *x, int o)
{
    sema *s = c->s;
    if (x->run[o] && x->paired && !sizes_same(s, x->run[o], x->dim[2])) {
        weft_fail(s->dg, W0311, c->site->loc,
                  "rope: in %s checkpoints the rows of " STR_FMT
                  " are paired in runs of %s, but its heads are %s wide",
                  origin_name(o), STR_ARG(x->paired->name), text(s, x->run[o]), text(s, x->dim[2]));
        sema_note_weight(s, x->paired);
        return false;
    }
    weft_fail(s->dg, W0311, c->site->loc, "rope: its operand has no pair order in %s checkpoints",
              origin_name(o));
    if (c->arg[0].from) {
        sema_note_weight(s, c->arg[0].from);
        weft_note(s->dg, "say how its rows are stored: pairs(half, head_dim) or "
                         "pairs(interleaved, head_dim)");
    }
    return false;
}

bool pairs_rope(op_call *c, const tensor_type *x, tensor_type *out)
{
    sema *s = c->s;
    const poly *rotated = poly_mul(s->pp, poly_int(s->pp, 2), c->arg[2].size);
    const poly *rest = rotated ? poly_sub(s->pp, x->dim[2], rotated) : NULL;
    if (!rest)
        return false;
    if (poly_is_negative(sema_narrowed(s, rest))) {
        weft_fail(s->dg, W0302, c->site->loc, "rope: a table of %s pairs does not fit heads of %s",
                  text(s, c->arg[2].size), text(s, x->dim[2]));
        return false;
    }
    const val *word = call_attr(c, "pairs");
    pair_order said = word->kind != VAL_STR             ? PAIRS_NONE
                      : str_eq(word->text, STR("half")) ? PAIRS_HALF
                                                        : PAIRS_INTERLEAVED;
    for (int o = 0; o < ORIGIN_COUNT; o++) {
        if (!s->has_origin[o])
            continue;
        if (said == PAIRS_NONE && x->pairs[o] == PAIRS_NONE)
            return fail_untagged(c, x, o);
        if (said != PAIRS_NONE && x->pairs[o] != PAIRS_NONE && said != x->pairs[o]) {
            weft_fail(s->dg, W0312, c->site->loc,
                      "rope says %s, but the weight is stored %s in %s checkpoints",
                      order_name(said), order_name(x->pairs[o]), origin_name(o));
            return false;
        }
        if (x->pairs[o] != PAIRS_NONE && !sizes_same(s, x->turned[o], rotated))
            return fail_width(c, x, o, rotated);
        if (said != PAIRS_NONE)
            out->pairs[o] = said;
        out->run[o] = x->dim[2];
        out->turned[o] = rotated;
    }
    return true;
}

/* ---- queries and keys ---- */

bool pairs_agree(op_call *c, const tensor_type *q, const pair_order *order,
                 const poly *const *turned)
{
    sema *s = c->s;
    for (int o = 0; o < ORIGIN_COUNT; o++) {
        if (!s->has_origin[o])
            continue;
        if (q->pairs[o] != order[o]) {
            weft_fail(s->dg, W0312, c->site->loc,
                      "%s: in %s checkpoints the queries are %s and the keys %s", c->what,
                      origin_name(o), order_name(q->pairs[o]), order_name(order[o]));
            return false;
        }
        if (order[o] != PAIRS_NONE && !sizes_same(s, q->turned[o], turned[o])) {
            weft_fail(s->dg, W0312, c->site->loc,
                      "%s: in %s checkpoints %s elements of a query pair up and %s of a key",
                      c->what, origin_name(o), text(s, q->turned[o]), text(s, turned[o]));
            return false;
        }
    }
    return true;
}
