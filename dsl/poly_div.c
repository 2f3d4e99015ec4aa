/* poly_div.c - sums, products and quotients, reduced to the normal form.
 *
 * Dividing by one term multiplies by its inverse, and nothing is left to do. Dividing by a sum
 * multiplies by s^-1, where s is the sum with its content taken out. Then two rules apply:
 *   1. Split: where lead + tail = s, the term u*lead*s^-k becomes u*s^-(k-1) - u*tail*s^-k. This is
 *      polynomial division carried out term by term, so s*s^-1 comes out as 1.
 *   2. Combine: rule 1 alone does not see that (a + b)/a * (a + b)^-1 is 1/a, nor how two sums in one
 *      denominator belong together. Where an atom of a sum is in a denominator too, or there are
 *      several sums, all terms are brought over one denominator and it is cancelled, before rule 1.
 * Equal values then have equal pointers, unless two sums have a factor in common that is a sum, or
 * rule 2 would take too many terms: such values may stay apart, but none is ever wrong. No rule
 * divides by something that was not a divisor before. */
#include "dsl/poly_impl.h"

static poly_term term_one(const poly_pool *pp)
{
    return (poly_term){{1, 1}, pp->one};
}

static void work_copy(poly_work *to, const poly_work *from)
{
    to->n = from->n;
    memcpy(to->at, from->at, (size_t)from->n * sizeof from->at[0]);
}

bool poly_work_add(poly_pool *pp, poly_work *w, const poly_term *at, int n, poly_term by)
{
    if (!poly_spend(pp, w->n + 4 * n)) /* a product costs more than a step of the merge */
        return false;
    poly_work out;
    out.n = 0;
    int i = 0, k = 0;
    poly_term t = term_one(pp); /* at[k] * by */
    bool made = false;
    while (i < w->n || k < n) {
        if (k < n && !made && !(made = poly_term_mul(pp, at[k], by, &t)))
            return false;
        int order = k == n ? 1 : i == w->n ? -1 : poly_mono_cmp(w->at[i].mono, t.mono);
        poly_term next = order >= 0 ? w->at[i] : t;
        if (order == 0 && !ratio_add(next.c, t.c, &next.c))
            return poly_fail(pp, POLY_OVERFLOW);
        if (order >= 0)
            i++;
        if (order <= 0) {
            k++;
            made = false;
        }
        if (next.c.num == 0)
            continue;
        if (out.n == POLY_WORK_MAX)
            return poly_fail(pp, POLY_TOO_LONG);
        out.at[out.n++] = next;
    }
    work_copy(w, &out);
    return true;
}

static bool term_negate(poly_pool *pp, poly_term *t)
{
    return !__builtin_sub_overflow(0, t->c.num, &t->c.num) || poly_fail(pp, POLY_OVERFLOW);
}

/* a / b as terms; both single. */
static bool term_div(poly_pool *pp, poly_term a, poly_term b, poly_term *out_t)
{
    poly_term t;
    poly_ratio inverse;
    if (!ratio_make(b.c.den, b.c.num, &inverse) || !ratio_mul(a.c, inverse, &t.c))
        return poly_fail(pp, POLY_OVERFLOW);
    t.mono = poly_mono_mul(pp, a.mono, b.mono, -1);
    if (!t.mono)
        return false;
    *out_t = t;
    return true;
}

static bool mono_divides(const poly_mono *m, const poly_mono *of)
{
    for (int i = 0; i < m->n; i++) {
        if (poly_mono_exp(of, m->at[i].atom) < m->at[i].exp)
            return false;
    }
    return true;
}

/* Rule 1, until it applies nowhere. */
static bool work_split(poly_pool *pp, poly_work *w)
{
    for (int i = 0; i < w->n; i++) {
        poly_term t = w->at[i];
        for (int k = 0; k < t.mono->n; k++) {
            poly_atom *s = t.mono->at[k].atom;
            if (s->kind != ATOM_SUM || !mono_divides(s->arg[0]->at[0].mono, t.mono))
                continue;
            /* t = u*lead: take u*s away, and put u*s back with s as an atom. */
            poly_term up = {{1, 1}, poly_mono_atom(pp, s, 1)}, u, minus_u;
            if (!up.mono || !term_div(pp, t, s->arg[0]->at[0], &u))
                return false;
            minus_u = u;
            if (!term_negate(pp, &minus_u) ||
                !poly_work_add(pp, w, s->arg[0]->at, s->arg[0]->n, minus_u) ||
                !poly_work_add(pp, w, &up, 1, u))
                return false;
            i = -1; /* the terms have moved */
            break;
        }
    }
    return true;
}

/* Lower g to the least exponents of g and m; atoms that one of them lacks count as 0. */
static const poly_mono *mono_gcd(poly_pool *pp, const poly_mono *g, const poly_mono *m)
{
    poly_factor at[2 * POLY_FACTORS_MAX];
    int n = 0, i = 0, k = 0;
    while (i < g->n || k < m->n) {
        poly_factor f;
        if (k == m->n || (i < g->n && g->at[i].atom->id < m->at[k].atom->id)) {
            f = g->at[i++];
            f.exp = f.exp < 0 ? f.exp : 0;
        } else if (i == g->n || m->at[k].atom->id < g->at[i].atom->id) {
            f = m->at[k++];
            f.exp = f.exp < 0 ? f.exp : 0;
        } else {
            f = g->at[i++];
            f.exp = m->at[k].exp < f.exp ? m->at[k].exp : f.exp;
            k++;
        }
        if (f.exp != 0)
            at[n++] = f;
    }
    return poly_mono_intern(pp, at, n);
}

/* The sums in denominators of w, each with its least exponent. */
static int work_sums(const poly_work *w, poly_factor *at)
{
    int n = 0;
    for (int i = 0; i < w->n; i++) {
        for (int k = 0; k < w->at[i].mono->n; k++) {
            poly_factor f = w->at[i].mono->at[k];
            int j = 0;
            if (f.atom->kind != ATOM_SUM)
                continue;
            while (j < n && at[j].atom != f.atom)
                j++;
            if (j == POLY_FACTORS_MAX)
                return j; /* more than one term can hold: rule 2 fails on it */
            if (j == n)
                at[n++] = f;
            else if (f.exp < at[j].exp)
                at[j] = f;
        }
    }
    return n;
}

/* Does rule 2 apply to w, which holds these sums? */
static bool work_is_mixed(const poly_work *w, const poly_factor *sums, int n_sum)
{
    if (n_sum != 1)
        return n_sum > 1;
    const poly *s = sums[0].atom->arg[0];
    for (int i = 0; i < w->n; i++) {
        const poly_mono *m = w->at[i].mono;
        for (int k = 0; k < m->n; k++) {
            for (int j = 0; m->at[k].exp < 0 && j < s->n; j++) {
                if (poly_mono_exp(s->at[j].mono, m->at[k].atom) != 0)
                    return true;
            }
        }
    }
    return false;
}

/* Bring all terms of w over s^exp: what is over a higher power is multiplied by s * s^-1. */
static bool work_raise(poly_pool *pp, poly_work *w, poly_factor s)
{
    poly_work out;
    poly_term one = term_one(pp), down = {{1, 1}, poly_mono_atom(pp, s.atom, -1)};
    if (!down.mono)
        return false;
    for (int exp = 0; exp > s.exp; exp--) {
        out.n = 0;
        for (int i = 0; i < w->n; i++) {
            poly_term t = w->at[i];
            if (poly_mono_exp(t.mono, s.atom) < exp) {
                if (!poly_work_add(pp, &out, &t, 1, one))
                    return false;
            } else if (!poly_term_mul(pp, t, down, &t) ||
                       !poly_work_add(pp, &out, s.atom->arg[0]->at, s.atom->arg[0]->n, t)) {
                return false;
            }
        }
        work_copy(w, &out);
    }
    return true;
}

/* w / p, if p divides it exactly. Both without denominators. */
static bool work_divide(poly_pool *pp, const poly_work *w, const poly *p, poly_work *out_q)
{
    poly_work rest;
    work_copy(&rest, w);
    out_q->n = 0;
    while (rest.n > 0) {
        poly_term q, minus_q;
        if (out_q->n == POLY_WORK_MAX || !mono_divides(p->at[0].mono, rest.at[0].mono) ||
            !term_div(pp, rest.at[0], p->at[0], &q))
            return false;
        minus_q = q;
        if (!term_negate(pp, &minus_q) || !poly_work_add(pp, &rest, p->at, p->n, minus_q))
            return false;
        out_q->at[out_q->n++] = q;
    }
    return true;
}

/* Rule 2. The terms of w become numerator * g, with g the common denominator. */
static bool work_combine(poly_pool *pp, poly_work *w, const poly_factor *sums, int n_sum)
{
    poly_work next;
    for (int i = 0; i < n_sum; i++) {
        if (!work_raise(pp, w, sums[i]))
            return false;
    }
    const poly_mono *g = w->n > 0 ? w->at[0].mono : pp->one;
    for (int i = 1; g && i < w->n; i++)
        g = mono_gcd(pp, g, w->at[i].mono);
    if (!g)
        return false;
    for (int i = 0; i < w->n; i++) {
        w->at[i].mono = poly_mono_mul(pp, w->at[i].mono, g, -1);
        if (!w->at[i].mono)
            return false;
    }
    for (int i = 0; i < n_sum; i++) {
        const poly_mono *up = poly_mono_atom(pp, sums[i].atom, 1);
        for (int exp = sums[i].exp; exp < 0 && work_divide(pp, w, sums[i].atom->arg[0], &next);
             exp++) {
            work_copy(w, &next);
            g = g && up ? poly_mono_mul(pp, g, up, 1) : NULL;
        }
    }
    if (!g)
        return false;
    next.n = 0;
    if (!poly_work_add(pp, &next, w->at, w->n, (poly_term){{1, 1}, g}))
        return false;
    work_copy(w, &next);
    return true;
}

const poly *poly_work_end(poly_pool *pp, poly_work *w)
{
    poly_factor sums[POLY_FACTORS_MAX];
    int n_sum = work_sums(w, sums);
    if (work_is_mixed(w, sums, n_sum)) {
        /* A trial that leads nowhere is no failure. It may use half of what is left to do. */
        poly_work trial;
        poly_reason before = pp->reason;
        int64_t kept = pp->steps_left / 2;
        pp->steps_left -= kept;
        work_copy(&trial, w);
        if (work_combine(pp, &trial, sums, n_sum))
            work_copy(w, &trial);
        pp->reason = before;
        pp->steps_left += kept;
    }
    if (n_sum > 0 && !work_split(pp, w))
        return NULL;
    return poly_intern(pp, w->at, w->n);
}

const poly *poly_product(poly_pool *pp, const poly *a, const poly *b)
{
    poly_work w;
    w.n = 0;
    for (int i = 0; i < b->n; i++) {
        if (!poly_work_add(pp, &w, a->at, a->n, b->at[i]))
            return NULL;
    }
    return poly_work_end(pp, &w);
}

const poly *poly_power(poly_pool *pp, const poly *base, int exp)
{
    const poly *p = poly_of_term(pp, term_one(pp));
    for (int i = 0; p && i < exp; i++)
        p = poly_product(pp, p, base);
    return p;
}

/* The inverse of one term. A sum in its denominator comes back as a sum. */
static const poly *term_inverse(poly_pool *pp, poly_term t)
{
    poly_factor at[POLY_FACTORS_MAX];
    int n = 0;
    for (int i = 0; i < t.mono->n; i++) {
        if (t.mono->at[i].atom->kind != ATOM_SUM)
            at[n++] = t.mono->at[i];
    }
    poly_term plain = {t.c, poly_mono_intern(pp, at, n)}, inverse;
    if (!plain.mono || !term_div(pp, term_one(pp), plain, &inverse))
        return NULL;
    const poly *p = poly_of_term(pp, inverse);
    for (int i = 0; p && i < t.mono->n; i++) {
        const poly_factor *f = &t.mono->at[i];
        if (f->atom->kind != ATOM_SUM)
            continue;
        const poly *s = poly_power(pp, f->atom->arg[0], -f->exp);
        p = s ? poly_product(pp, p, s) : NULL;
    }
    return p;
}

/* What all terms of p have in common: the coefficient that leaves whole numbers without a common
 * divisor, the first of them positive, and the product that leaves no denominators. */
static bool poly_content(poly_pool *pp, const poly *p, poly_term *out_t)
{
    poly_term t = p->at[0];
    for (int i = 1; i < p->n; i++) {
        poly_ratio c = p->at[i].c;
        if (__builtin_mul_overflow(t.c.den, c.den / (int64_t)poly_gcd(t.c.den, c.den), &t.c.den))
            return poly_fail(pp, POLY_OVERFLOW);
        uint64_t g = poly_gcd(t.c.num, c.num);
        if (g > INT64_MAX) /* both are INT64_MIN */
            return poly_fail(pp, POLY_OVERFLOW);
        t.c.num = (int64_t)g;
        t.mono = mono_gcd(pp, t.mono, p->at[i].mono);
        if (!t.mono)
            return false;
    }
    if (p->at[0].c.num < 0 && __builtin_sub_overflow(0, t.c.num, &t.c.num))
        return poly_fail(pp, POLY_OVERFLOW);
    *out_t = t;
    return true;
}

static const poly_factor *poly_find_sum(const poly *p)
{
    for (int i = 0; i < p->n; i++) {
        for (int k = 0; k < p->at[i].mono->n; k++) {
            if (p->at[i].mono->at[k].atom->kind == ATOM_SUM)
                return &p->at[i].mono->at[k];
        }
    }
    return NULL;
}

const poly *poly_ratio_of(poly_pool *pp, const poly *a, const poly *b)
{
    /* Sums in the denominators of b go to both sides first, so that sums do not nest. The step
     * limit ends this where several sums keep each other in place. */
    const poly_factor *f;
    while (b && b->n > 1 && (f = poly_find_sum(b)) != NULL) {
        if (!poly_spend(pp, POLY_STEPS_MAX / POLY_DEPTH_MAX))
            return NULL;
        const poly *s = f->atom->arg[0];
        a = poly_product(pp, a, s);
        b = a ? poly_product(pp, b, s) : NULL;
    }
    if (!b)
        return NULL;
    if (b->n == 0)
        return poly_fail(pp, POLY_ZERO_DIVISOR);

    const poly *inverse;
    if (b->n == 1) {
        inverse = term_inverse(pp, b->at[0]);
    } else {
        poly_term content, t;
        poly_work w;
        w.n = b->n;
        if (!poly_content(pp, b, &content))
            return NULL;
        for (int i = 0; i < b->n; i++) {
            if (!term_div(pp, b->at[i], content, &w.at[i]))
                return NULL;
        }
        const poly *primitive = poly_intern(pp, w.at, w.n);
        poly_atom *s = primitive ? poly_atom_sum(pp, primitive) : NULL;
        t = (poly_term){{1, 1}, s ? poly_mono_atom(pp, s, -1) : NULL};
        if (!t.mono || !term_div(pp, t, content, &t))
            return NULL;
        inverse = poly_of_term(pp, t);
    }
    return inverse ? poly_product(pp, a, inverse) : NULL;
}

static int exp_least(const poly *p, const poly_atom *a)
{
    int least = 0;
    for (int i = 0; i < p->n; i++) {
        int exp = poly_mono_exp(p->at[i].mono, a);
        least = exp < least ? exp : least;
    }
    return least;
}

bool poly_is_even(const poly *q, const poly *a)
{
    for (int i = 0; i < q->n; i++) {
        /* The least common multiple of the denominators of a, as far as it divides q's. */
        int64_t lcm = 1;
        for (int k = 0; k < a->n; k++) {
            int64_t g = (int64_t)poly_gcd(q->at[i].c.den, a->at[k].c.den);
            lcm = lcm / (int64_t)poly_gcd(lcm, g) * g;
        }
        if (lcm != q->at[i].c.den)
            return false;
        const poly_mono *m = q->at[i].mono;
        for (int k = 0; k < m->n; k++) {
            if (m->at[k].exp < 0 && m->at[k].exp < exp_least(a, m->at[k].atom))
                return false;
        }
    }
    return true;
}
