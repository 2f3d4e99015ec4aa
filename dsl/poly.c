/* poly.c - the operations of poly.h, on top of poly_pool.c (interning) and poly_div.c (products).
 */
#include "dsl/poly_impl.h"

poly_reason poly_failure(const poly_pool *pp)
{
    return pp->reason;
}

/* Every public operation starts here: it may touch this many terms. */
static void op_begin(poly_pool *pp)
{
    pp->steps_left = POLY_STEPS_MAX;
}

/* ... and ends here: halves are fine inside a sum, as in (n + 1)/2, but a number must be whole. */
static const poly *op_end(poly_pool *pp, const poly *p)
{
    if (p && p->n == 1 && p->at[0].mono->n == 0 && p->at[0].c.den != 1)
        return poly_fail(pp, POLY_INEXACT);
    return p;
}

const poly *poly_int(poly_pool *pp, int64_t v)
{
    return poly_of_term(pp, (poly_term){{v, 1}, pp->one});
}

static const poly *atom_poly(poly_pool *pp, poly_atom *a)
{
    const poly_mono *m = a ? poly_mono_atom(pp, a, 1) : NULL;
    return m ? poly_of_term(pp, (poly_term){{1, 1}, m}) : NULL;
}

/* The atom that p consists of, or NULL. */
static poly_atom *poly_atom_of(const poly *p)
{
    bool is = p->n == 1 && p->at[0].c.num == 1 && p->at[0].c.den == 1 && p->at[0].mono->n == 1 &&
              p->at[0].mono->at[0].exp == 1;
    return is ? p->at[0].mono->at[0].atom : NULL;
}

const poly *poly_symbol(poly_pool *pp, const void *owner, str name)
{
    return atom_poly(pp, poly_atom_symbol(pp, owner, name));
}

/* a + c*b, c being 1 or -1. */
static const poly *sum_of(poly_pool *pp, const poly *a, const poly *b, int64_t c)
{
    op_begin(pp);
    poly_work w;
    w.n = a->n;
    if (a->n > 0)
        memcpy(w.at, a->at, (size_t)a->n * sizeof a->at[0]);
    if (!poly_work_add(pp, &w, b->at, b->n, (poly_term){{c, 1}, pp->one}))
        return NULL;
    return op_end(pp, poly_work_end(pp, &w));
}

const poly *poly_add(poly_pool *pp, const poly *a, const poly *b)
{
    return a && b ? sum_of(pp, a, b, 1) : NULL;
}

const poly *poly_sub(poly_pool *pp, const poly *a, const poly *b)
{
    return a && b ? sum_of(pp, a, b, -1) : NULL;
}

const poly *poly_mul(poly_pool *pp, const poly *a, const poly *b)
{
    if (!a || !b)
        return NULL;
    op_begin(pp);
    return op_end(pp, poly_product(pp, a, b));
}

const poly *poly_div(poly_pool *pp, const poly *a, const poly *b)
{
    if (!a || !b)
        return NULL;
    op_begin(pp);
    return op_end(pp, poly_ratio_of(pp, a, b));
}

const poly *poly_quotient(poly_pool *pp, const poly *a, const poly *b)
{
    poly_reason before = pp->reason;
    const poly *q = poly_div(pp, a, b);
    pp->reason = before;
    return q && poly_is_even(q, a) ? q : NULL;
}

/* ---- calls ---- */

/* Division that rounds down, and the remainder that goes with it: for a divisor above 0 the
 * remainder is 0 or more. */
static const poly *fold_idiv(poly_pool *pp, int64_t a, int64_t b, bool want_rest)
{
    if (b == -1) { /* INT64_MIN / -1 has no value, and traps on some machines */
        int64_t minus_a;
        if (want_rest)
            return poly_int(pp, 0);
        if (__builtin_sub_overflow(0, a, &minus_a))
            return poly_fail(pp, POLY_OVERFLOW);
        return poly_int(pp, minus_a);
    }
    int64_t q = a / b, r = a % b;
    if (r != 0 && (r < 0) != (b < 0)) {
        q--;
        r += b;
    }
    return poly_int(pp, want_rest ? r : q);
}

/* The call's value if it has one, NULL with *out_done if it fails, NULL if it stays an atom. */
static const poly *call_fold(poly_pool *pp, const char *fn, const poly *const *args, int n_arg,
                             bool *out_done)
{
    bool mod = strcmp(fn, "mod") == 0, max = strcmp(fn, "max") == 0;
    int64_t a, b;
    *out_done = true;
    if ((mod || strcmp(fn, "idiv") == 0) && n_arg == 2) {
        if (poly_is(args[1], 0))
            return poly_fail(pp, POLY_ZERO_DIVISOR);
        if (poly_value(args[0], &a) && poly_value(args[1], &b))
            return fold_idiv(pp, a, b, mod);
    } else if ((max || strcmp(fn, "min") == 0) && n_arg > 0) {
        const poly *best = args[0];
        bool same = true, numbers = poly_value(best, &a);
        for (int i = 1; i < n_arg; i++) {
            same = same && args[i] == args[0];
            numbers = numbers && poly_value(args[i], &b);
            if (numbers && (max ? b > a : b < a)) {
                a = b;
                best = args[i];
            }
        }
        if (same || numbers)
            return best;
    } else if (strcmp(fn, "??") == 0) {
        if (args[0] == args[1] || poly_value(args[0], &a)) /* a number is present */
            return args[0];
    }
    *out_done = false;
    return NULL;
}

static const poly *call_make(poly_pool *pp, const char *fn, const poly *const *args, int n_arg)
{
    bool done;
    const poly *folded = call_fold(pp, fn, args, n_arg, &done);
    return done ? folded : atom_poly(pp, poly_atom_call(pp, fn, args, n_arg));
}

const poly *poly_call(poly_pool *pp, const char *fn, const poly *const *args, int n_arg)
{
    for (int i = 0; i < n_arg; i++) {
        if (!args[i])
            return NULL;
    }
    op_begin(pp);
    return call_make(pp, fn, args, n_arg);
}

const poly *poly_coalesce(poly_pool *pp, const poly *p, const poly *q)
{
    return poly_call(pp, "??", (const poly *const[]){p, q}, 2);
}

/* ---- rewriting ---- */

/* What to change: `from ?? q` to from or q, or else every `from` to `to`. */
typedef struct {
    const poly *from, *to;
    bool narrow, present;
} rewrite_rule;

static const poly *rewrite(poly_pool *pp, const poly *x, const rewrite_rule *rule);

/* What the atom becomes; for ATOM_SUM, what its sum becomes. */
static const poly *rewrite_atom(poly_pool *pp, poly_atom *a, const rewrite_rule *rule)
{
    if (a->kind == ATOM_SUM)
        return rewrite(pp, a->arg[0], rule);
    if (!rule->narrow && a == poly_atom_of(rule->from))
        return rule->to;
    if (a->kind == ATOM_SYMBOL)
        return atom_poly(pp, a);
    const poly **args = ARENA_ARRAY(pp->home, const poly *, (size_t)a->n_arg);
    for (int i = 0; i < a->n_arg; i++) {
        args[i] = op_end(pp, rewrite(pp, a->arg[i], rule));
        if (!args[i])
            return NULL;
    }
    if (rule->narrow && strcmp(a->fn, "??") == 0 && args[0] == rule->from)
        return args[rule->present ? 0 : 1];
    return call_make(pp, a->fn, args, a->n_arg);
}

static bool factor_is_kept(const poly_factor *f)
{
    const poly *p = f->atom->rebuilt;
    return f->atom->kind == ATOM_SUM ? p == f->atom->arg[0] : poly_atom_of(p) == f->atom;
}

/* The term with its atoms exchanged for what they became. */
static const poly *rewrite_term(poly_pool *pp, poly_term t)
{
    poly_factor at[POLY_FACTORS_MAX];
    int n = 0;
    for (int i = 0; i < t.mono->n; i++) {
        if (factor_is_kept(&t.mono->at[i]))
            at[n++] = t.mono->at[i];
    }
    poly_term kept = {t.c, poly_mono_intern(pp, at, n)};
    const poly *p = kept.mono ? poly_of_term(pp, kept) : NULL;
    for (int i = 0; p && i < t.mono->n; i++) {
        const poly_factor *f = &t.mono->at[i];
        if (factor_is_kept(f))
            continue;
        const poly *by = poly_power(pp, f->atom->rebuilt, f->exp < 0 ? -f->exp : f->exp);
        if (!by)
            return NULL;
        p = f->exp < 0 ? poly_ratio_of(pp, p, by) : poly_product(pp, p, by);
    }
    return p;
}

static const poly *rewrite(poly_pool *pp, const poly *x, const rewrite_rule *rule)
{
    bool changed = false;
    if (!poly_spend(pp, x->n))
        return NULL;
    for (int i = 0; i < x->n; i++) {
        for (int k = 0; k < x->at[i].mono->n; k++) {
            poly_atom *a = x->at[i].mono->at[k].atom;
            if (a->rewrite != pp->rewrite) {
                const poly *r = rewrite_atom(pp, a, rule);
                if (!r)
                    return NULL;
                a->rebuilt = r;
                a->rewrite = pp->rewrite;
            }
            changed = changed || !factor_is_kept(&x->at[i].mono->at[k]);
        }
    }
    if (!changed)
        return x;
    poly_work *w = &pp->scratch; /* in use from here on only, where nothing recurses */
    w->n = 0;
    for (int i = 0; i < x->n; i++) {
        const poly *p = rewrite_term(pp, x->at[i]);
        if (!p || !poly_work_add(pp, w, p->at, p->n, (poly_term){{1, 1}, pp->one}))
            return NULL;
    }
    return poly_work_end(pp, w);
}

static const poly *rewrite_all(poly_pool *pp, const poly *x, const rewrite_rule *rule)
{
    op_begin(pp);
    pp->rewrite++;
    return op_end(pp, rewrite(pp, x, rule));
}

const poly *poly_narrow(poly_pool *pp, const poly *x, const poly *p, bool present)
{
    if (!x || !p)
        return NULL;
    return rewrite_all(pp, x, &(rewrite_rule){.from = p, .narrow = true, .present = present});
}

const poly *poly_replace(poly_pool *pp, const poly *x, const poly *sym, const poly *by)
{
    if (!x || !sym || !by)
        return NULL;
    return rewrite_all(pp, x, &(rewrite_rule){.from = sym, .to = by});
}

/* ---- questions ---- */

bool poly_value(const poly *p, int64_t *out_v)
{
    if (!p || p->n > 1 || (p->n == 1 && (p->at[0].mono->n > 0 || p->at[0].c.den != 1)))
        return false;
    *out_v = p->n ? p->at[0].c.num : 0;
    return true;
}

bool poly_is(const poly *p, int64_t v)
{
    int64_t is;
    return poly_value(p, &is) && is == v;
}

/* Parameters, also one that may be absent or has a value for each layer; not what idiv or mod gives, which may be 0. */
static bool is_setting(const poly_atom *a)
{
    return a->kind == ATOM_SYMBOL ||
           (a->kind == ATOM_CALL && (strcmp(a->fn, "??") == 0 || strcmp(a->fn, "[]") == 0));
}

bool poly_is_negative(const poly *p)
{
    for (int i = 0; i < p->n; i++) {
        if (p->at[i].c.num > 0)
            return false;
        for (int k = 0; k < p->at[i].mono->n; k++)
            if (!is_setting(p->at[i].mono->at[k].atom))
                return false;
    }
    return p->n > 0;
}
