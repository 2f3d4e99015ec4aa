/* sema_known.c - what is known where: conditions assumed, divisions that come out even, what may be
 * none, and sizes that are equal under all of it. */
#include "dsl/sema.h"

int sema_known(sema *s, const cond *c)
{
    if (c->kind == COND_TRUE || c->kind == COND_FALSE)
        return c->kind == COND_TRUE;
    s->n_scan += s->known.n + 1;
    for (size_t i = s->known.n; i-- > 0;)
        if (s->known.at[i].truth == c)
            return s->known.at[i].holds;
    if (c->kind == COND_NOT) {
        int k = sema_known(s, c->a);
        return k < 0 ? k : !k;
    }
    if (c->kind == COND_AND || c->kind == COND_OR) {
        int stop = c->kind == COND_OR;
        int a = sema_known(s, c->a), b = sema_known(s, c->b);
        return a == stop || b == stop ? stop : a < 0 || b < 0 ? -1 : !stop;
    }
    return -1;
}

size_t sema_assume(sema *s, const cond *c, bool holds)
{
    size_t mark = s->known.n;
    if (c->kind == COND_NOT) {
        sema_assume(s, c->a, !holds);
    } else if (c->kind == (holds ? COND_AND : COND_OR)) {
        sema_assume(s, c->a, holds);
        sema_assume(s, c->b, holds);
    } else {
        VEC_PUSH(&s->known, ((assumption){c, holds}));
    }
    return mark;
}

void sema_forget(sema *s, size_t mark)
{
    s->known.n = mark;
}

const poly *sema_narrowed(sema *s, const poly *p)
{
    s->n_scan += s->known.n;
    for (size_t i = 0; i < s->known.n; i++) {
        const cond *c = s->known.at[i].truth;
        if (c->kind == COND_NONE && !c->size) {
            const poly *q =
                poly_narrow(s->pp, p, poly_symbol(s->pp, c->owner, STR("")), !s->known.at[i].holds);
            p = q ? q : p;
        }
    }
    return p;
}

void sema_state_exact(sema *s, const poly *a, const poly *b)
{
    const poly *q = poly_div(s->pp, a, b);
    if (q && s->known.n == 0 && !poly_quotient(s->pp, a, b))
        VEC_PUSH(&s->exact, ((exact_division){b, q}));
}

const poly *sema_quotient(sema *s, const poly *a, const poly *b)
{
    const poly *even = poly_quotient(s->pp, a, b);
    if (even || s->exact.n == 0)
        return even;
    const poly *q = poly_div(s->pp, a, b);
    s->n_scan += s->exact.n;
    for (size_t i = 0; q && i < s->exact.n; i++)
        if (s->exact.at[i].by == b && poly_quotient(s->pp, q, s->exact.at[i].quotient))
            return q;
    return NULL;
}

const cond *val_is_none(sema *s, val v)
{
    if (v.kind == VAL_UNKNOWN)
        return cond_atom(s->cp, arena_alloc(s->a, 1), NULL, STR(""));
    if (v.kind == VAL_NONE || !v.maybe)
        return cond_bool(s->cp, v.kind == VAL_NONE);
    return cond_none(s->cp, v.who, v.kind == VAL_WEIGHT ? v.index : NULL);
}

val val_settle(sema *s, val v)
{
    if (!v.maybe)
        return v;
    int none = sema_known(s, val_is_none(s, v));
    if (none == 1)
        return (val){.kind = VAL_NONE, .known = true};
    v.maybe = none < 0;
    return v;
}

bool dims_equal(sema *s, const poly *a, const poly *b)
{
    return a == b || sema_narrowed(s, a) == sema_narrowed(s, b);
}

bool types_equal(sema *s, const tensor_type *a, const tensor_type *b)
{
    if (a->ids != b->ids || a->rank != b->rank)
        return false;
    for (int i = 0; i < a->rank; i++)
        if (!dims_equal(s, a->dim[i], b->dim[i]))
            return false;
    return true;
}
