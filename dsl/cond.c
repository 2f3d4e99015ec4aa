/* cond.c - interned truths. */
#include "dsl/cond.h"

enum { BUCKETS_FIRST = 256 }; /* a power of two */

struct cond_pool {
    arena *a;
    poly_pool *pp;
    cond **bucket;
    size_t n, n_bucket;
};

cond_pool *cond_pool_create(arena *a, poly_pool *pp)
{
    cond_pool *cp = ARENA_NEW(a, cond_pool);
    cp->a = a;
    cp->pp = pp;
    cp->n_bucket = BUCKETS_FIRST;
    cp->bucket = ARENA_ARRAY(a, cond *, cp->n_bucket);
    return cp;
}

static void grow(cond_pool *cp)
{
    size_t n_bucket = 4 * cp->n_bucket;
    cond **bucket = ARENA_ARRAY(cp->a, cond *, n_bucket);
    for (size_t i = 0; i < cp->n_bucket; i++) {
        for (cond *c = cp->bucket[i], *next; c; c = next) {
            next = c->next;
            c->next = bucket[c->hash & (n_bucket - 1)];
            bucket[c->hash & (n_bucket - 1)] = c;
        }
    }
    cp->bucket = bucket;
    cp->n_bucket = n_bucket;
}

static uint64_t mix(uint64_t h, uint64_t x)
{
    return (h ^ x) * 0x100000001b3u;
}

static const cond *intern(cond_pool *cp, cond want)
{
    uint64_t h = mix(0xcbf29ce484222325u, (uint64_t)want.kind);
    h = mix(h, (uint64_t)(uintptr_t)want.a);
    h = mix(h, (uint64_t)(uintptr_t)want.b);
    h = mix(h, (uint64_t)(uintptr_t)want.size);
    h = mix(h, (uint64_t)(uintptr_t)want.owner);
    h = mix(h, str_hash(want.text));
    h ^= h >> 29;
    for (const cond *c = cp->bucket[h & (cp->n_bucket - 1)]; c; c = c->next)
        if (c->hash == h && c->kind == want.kind && c->a == want.a && c->b == want.b &&
            c->size == want.size && c->owner == want.owner && str_eq(c->text, want.text))
            return c;
    cond *c = ARENA_NEW(cp->a, cond);
    *c = want;
    c->weight = want.kind == COND_NOT                           ? want.a->weight
                : want.kind == COND_AND || want.kind == COND_OR ? want.a->weight + want.b->weight
                                                                : 1;
    c->hash = h;
    if (++cp->n > 2 * cp->n_bucket)
        grow(cp);
    c->next = cp->bucket[h & (cp->n_bucket - 1)];
    cp->bucket[h & (cp->n_bucket - 1)] = c;
    return c;
}

const cond *cond_bool(cond_pool *cp, bool truth)
{
    return intern(cp, (cond){.kind = truth ? COND_TRUE : COND_FALSE});
}

const cond *cond_not(cond_pool *cp, const cond *a)
{
    if (a->kind == COND_NOT)
        return a->a;
    if (a->kind == COND_TRUE || a->kind == COND_FALSE)
        return cond_bool(cp, a->kind == COND_FALSE);
    return intern(cp, (cond){.kind = COND_NOT, .a = a});
}

static const cond *join(cond_pool *cp, cond_kind kind, const cond *a, const cond *b)
{
    cond_kind neutral = kind == COND_AND ? COND_TRUE : COND_FALSE;
    if (a->kind == neutral || a == b)
        return b;
    if (b->kind == neutral)
        return a;
    if (a->kind == COND_TRUE || a->kind == COND_FALSE)
        return a;
    if (b->kind == COND_TRUE || b->kind == COND_FALSE)
        return b;
    if (a == cond_not(cp, b))
        return cond_bool(cp, kind == COND_OR);
    if (a->hash > b->hash) { /* one order, so that a && b is b && a */
        const cond *t = a;
        a = b;
        b = t;
    }
    if (a->weight + b->weight > COND_WEIGHT_MAX) /* bounds every walk over truths */
        return intern(cp, (cond){.kind = COND_ATOM,
                                 .a = a,
                                 .b = b,
                                 .text = kind == COND_AND ? STR("&&") : STR("||")});
    return intern(cp, (cond){.kind = kind, .a = a, .b = b});
}

const cond *cond_and(cond_pool *cp, const cond *a, const cond *b)
{
    return join(cp, COND_AND, a, b);
}

const cond *cond_or(cond_pool *cp, const cond *a, const cond *b)
{
    return join(cp, COND_OR, a, b);
}

static const cond *less_zero(cond_pool *cp, const poly *p)
{
    int64_t v;
    if (!p)
        return intern(cp, (cond){.kind = COND_ATOM, .owner = arena_alloc(cp->a, 1)});
    if (poly_value(p, &v))
        return cond_bool(cp, v < 0);
    /* p < 0 is the negation of -p - 1 < 0, that is of -p <= 0; keep the one that was met first */
    const poly *rest = poly_sub(cp->pp, poly_int(cp->pp, -1), p);
    if (rest && (uintptr_t)rest < (uintptr_t)p)
        return intern(
            cp, (cond){.kind = COND_NOT, .a = intern(cp, (cond){.kind = COND_LESS, .size = rest})});
    return intern(cp, (cond){.kind = COND_LESS, .size = p});
}

const cond *cond_less(cond_pool *cp, const poly *a, const poly *b)
{
    return less_zero(cp, poly_sub(cp->pp, a, b));
}

const cond *cond_equal(cond_pool *cp, const poly *a, const poly *b)
{
    int64_t v;
    const poly *p = poly_sub(cp->pp, a, b);
    const poly *q = poly_sub(cp->pp, b, a);
    if (!p || !q)
        return intern(cp, (cond){.kind = COND_ATOM, .owner = arena_alloc(cp->a, 1)});
    if (poly_value(p, &v))
        return cond_bool(cp, v == 0);
    return intern(cp, (cond){.kind = COND_ZERO, .size = (uintptr_t)p < (uintptr_t)q ? p : q});
}

const cond *cond_none(cond_pool *cp, const void *owner, const poly *index)
{
    return intern(cp, (cond){.kind = COND_NONE, .owner = owner, .size = index});
}

const cond *cond_atom(cond_pool *cp, const void *owner, const poly *index, str text)
{
    return intern(cp, (cond){.kind = COND_ATOM, .owner = owner, .size = index, .text = text});
}

const cond *cond_replace(cond_pool *cp, const cond *c, const poly *sym, const poly *by)
{
    const poly *size = c->size ? poly_replace(cp->pp, c->size, sym, by) : NULL;
    switch (c->kind) {
    case COND_FALSE:
    case COND_TRUE:
        return c;
    case COND_NOT:
        return cond_not(cp, cond_replace(cp, c->a, sym, by));
    case COND_AND:
    case COND_OR:
        return join(cp, c->kind, cond_replace(cp, c->a, sym, by), cond_replace(cp, c->b, sym, by));
    case COND_LESS:
        return less_zero(cp, size);
    case COND_ZERO:
        return cond_equal(cp, size, poly_int(cp->pp, 0));
    case COND_NONE:
    case COND_ATOM:
        if (c->a) /* too heavy to look into: whatever it becomes, it is not compared again */
            return intern(cp, (cond){.kind = COND_ATOM, .owner = arena_alloc(cp->a, 1)});
        return intern(cp,
                      (cond){.kind = c->kind, .owner = c->owner, .size = size, .text = c->text});
    }
    return c;
}
