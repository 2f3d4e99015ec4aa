/* poly_pool.c - interned atoms, products and sums, and the checked arithmetic under them.
 *
 * One chained hash table holds all three kinds. A node is built once, from parts that are interned
 * already, so comparing two nodes never looks deeper than one level. */
#include "dsl/poly_impl.h"

enum { BUCKETS_FIRST = 256 };

bool poly_spend(poly_pool *pp, int64_t steps)
{
    pp->steps_left -= steps;
    pp->spent += (uint64_t)steps;
    return pp->steps_left >= 0 || poly_fail(pp, POLY_TOO_LONG);
}

uint64_t poly_spent(const poly_pool *pp)
{
    return pp->spent;
}

/* ---- ratios ---- */

uint64_t poly_gcd(int64_t a, int64_t b)
{
    uint64_t x = a < 0 ? 0 - (uint64_t)a : (uint64_t)a;
    uint64_t y = b < 0 ? 0 - (uint64_t)b : (uint64_t)b;
    while (y != 0) {
        uint64_t r = x % y;
        x = y;
        y = r;
    }
    return x;
}

bool ratio_make(int64_t num, int64_t den, poly_ratio *out_r)
{
    if (den < 0 && (__builtin_sub_overflow(0, num, &num) || __builtin_sub_overflow(0, den, &den)))
        return false;
    int64_t g = (int64_t)poly_gcd(num, den); /* at most den, so it fits */
    *out_r = (poly_ratio){num / g, den / g};
    return true;
}

bool ratio_add(poly_ratio a, poly_ratio b, poly_ratio *out_r)
{
    int64_t g = (int64_t)poly_gcd(a.den, b.den);
    int64_t left, right, num, den;
    if (__builtin_mul_overflow(a.num, b.den / g, &left) ||
        __builtin_mul_overflow(b.num, a.den / g, &right) ||
        __builtin_add_overflow(left, right, &num) || __builtin_mul_overflow(a.den, b.den / g, &den))
        return false;
    return ratio_make(num, den, out_r);
}

bool ratio_mul(poly_ratio a, poly_ratio b, poly_ratio *out_r)
{
    int64_t g = (int64_t)poly_gcd(a.num, b.den), h = (int64_t)poly_gcd(b.num, a.den);
    int64_t num, den;
    if (__builtin_mul_overflow(a.num / g, b.num / h, &num) ||
        __builtin_mul_overflow(a.den / h, b.den / g, &den))
        return false;
    *out_r = (poly_ratio){num, den};
    return true;
}

/* ---- the table ---- */

static uint64_t mix(uint64_t h, uint64_t v)
{
    h = (h ^ v) * UINT64_C(0x9e3779b97f4a7c15);
    return h ^ (h >> 29);
}

static void table_grow(poly_pool *pp)
{
    size_t n = pp->n_bucket ? pp->n_bucket * 2 : BUCKETS_FIRST;
    poly_node **to = ARENA_ARRAY(pp->home, poly_node *, n);
    for (size_t i = 0; i < pp->n_bucket; i++) {
        for (poly_node *nd = pp->bucket[i], *next; nd; nd = next) {
            next = nd->next;
            nd->next = to[nd->hash & (n - 1)];
            to[nd->hash & (n - 1)] = nd;
        }
    }
    pp->bucket = to;
    pp->n_bucket = n;
}

static poly_node *table_find(const poly_pool *pp, poly_node_kind kind, uint64_t hash,
                             bool (*same)(const poly_node *nd, const void *want), const void *want)
{
    for (poly_node *nd = pp->bucket[hash & (pp->n_bucket - 1)]; nd; nd = nd->next) {
        if (nd->hash == hash && nd->kind == kind && same(nd, want))
            return nd;
    }
    return NULL;
}

static void *table_add(poly_pool *pp, poly_node_kind kind, uint64_t hash, size_t bytes)
{
    if (bytes > POLY_POOL_BYTES_MAX - pp->bytes)
        return poly_fail(pp, POLY_TOO_LONG);
    if (pp->n_node >= pp->n_bucket)
        table_grow(pp);
    poly_node *nd = arena_alloc(pp->home, bytes);
    poly_node **slot = &pp->bucket[hash & (pp->n_bucket - 1)];
    *nd = (poly_node){*slot, hash, kind};
    *slot = nd;
    pp->n_node++;
    pp->bytes += bytes;
    return nd;
}

poly_pool *poly_pool_create(arena *a)
{
    poly_pool *pp = ARENA_NEW(a, poly_pool);
    pp->home = a;
    table_grow(pp);
    pp->one = poly_mono_intern(pp, NULL, 0);
    return pp;
}

/* ---- atoms ---- */

static bool atom_same(const poly_node *nd, const void *want)
{
    const poly_atom *a = (const poly_atom *)nd, *b = want;
    if (a->kind != b->kind || a->owner != b->owner || a->n_arg != b->n_arg)
        return false;
    if (a->kind == ATOM_CALL && strcmp(a->fn, b->fn) != 0)
        return false;
    for (int i = 0; i < a->n_arg; i++) {
        if (a->arg[i] != b->arg[i])
            return false;
    }
    return true;
}

/* want has the fields that tell atoms apart; its args need not outlive the call. */
static poly_atom *atom_intern(poly_pool *pp, poly_atom want)
{
    uint64_t hash = mix((uint64_t)want.kind, (uint64_t)(uintptr_t)want.owner);
    if (want.fn)
        hash = mix(hash, str_hash(str_of(want.fn)));
    want.size = 1;
    for (int i = 0; i < want.n_arg; i++) {
        hash = mix(hash, want.arg[i]->node.hash);
        want.size += want.arg[i]->size;
        if (want.arg[i]->depth >= want.depth)
            want.depth = want.arg[i]->depth + 1;
    }
    poly_node *old = table_find(pp, NODE_ATOM, hash, atom_same, &want);
    if (old)
        return (poly_atom *)old;
    if (want.depth > POLY_DEPTH_MAX || want.size > POLY_SIZE_MAX)
        return poly_fail(pp, POLY_TOO_LONG);

    poly_atom *a = table_add(pp, NODE_ATOM, hash, sizeof *a);
    if (!a)
        return NULL;
    want.node = a->node;
    want.id = pp->n_atom++;
    if (want.kind == ATOM_SYMBOL)
        want.name = arena_str(pp->home, want.name);
    if (want.n_arg > 0) {
        const poly **arg = ARENA_ARRAY(pp->home, const poly *, (size_t)want.n_arg);
        memcpy(arg, want.arg, (size_t)want.n_arg * sizeof *arg);
        want.arg = arg;
    }
    *a = want;
    return a;
}

poly_atom *poly_atom_symbol(poly_pool *pp, const void *owner, str name)
{
    return atom_intern(pp, (poly_atom){.kind = ATOM_SYMBOL, .owner = owner, .name = name});
}

poly_atom *poly_atom_sum(poly_pool *pp, const poly *p)
{
    return atom_intern(pp, (poly_atom){.kind = ATOM_SUM, .n_arg = 1, .arg = &p});
}

poly_atom *poly_atom_call(poly_pool *pp, const char *fn, const poly *const *args, int n_arg)
{
    return atom_intern(pp, (poly_atom){.kind = ATOM_CALL,
                                       .fn = fn,
                                       .n_arg = n_arg,
                                       .arg = (const poly **)(uintptr_t)args});
}

/* ---- products ---- */

typedef struct {
    const poly_factor *at;
    int n;
} factor_list;

static bool mono_same(const poly_node *nd, const void *want)
{
    const poly_mono *m = (const poly_mono *)nd;
    const factor_list *l = want;
    if (m->n != l->n)
        return false;
    for (int i = 0; i < m->n; i++) {
        if (m->at[i].atom != l->at[i].atom || m->at[i].exp != l->at[i].exp)
            return false;
    }
    return true;
}

const poly_mono *poly_mono_intern(poly_pool *pp, const poly_factor *at, int n)
{
    if (n > POLY_FACTORS_MAX)
        return poly_fail(pp, POLY_TOO_LONG);
    uint64_t hash = mix(NODE_MONO, (uint64_t)n);
    int degree = 0, depth = 0;
    int64_t size = 1;
    for (int i = 0; i < n; i++) {
        if (at[i].exp > POLY_EXP_MAX || at[i].exp < -POLY_EXP_MAX)
            return poly_fail(pp, POLY_OVERFLOW);
        hash = mix(mix(hash, (uint64_t)at[i].atom->id), (uint64_t)at[i].exp);
        degree += at[i].exp;
        size += at[i].atom->size;
        if (at[i].atom->depth > depth)
            depth = at[i].atom->depth;
    }
    factor_list want = {at, n};
    poly_node *old = table_find(pp, NODE_MONO, hash, mono_same, &want);
    if (old)
        return (const poly_mono *)old;
    size_t at_bytes = (size_t)n * sizeof *at;
    poly_mono *m = table_add(pp, NODE_MONO, hash, sizeof *m + at_bytes);
    if (!m)
        return NULL;
    m->degree = degree;
    m->depth = depth;
    m->size = size;
    m->n = n;
    if (n > 0)
        memcpy(m->at, at, at_bytes);
    return m;
}

const poly_mono *poly_mono_atom(poly_pool *pp, poly_atom *a, int exp)
{
    poly_factor f = {a, exp};
    return poly_mono_intern(pp, &f, exp != 0);
}

const poly_mono *poly_mono_mul(poly_pool *pp, const poly_mono *a, const poly_mono *b, int power)
{
    if (b->n == 0)
        return a;
    if (a->n == 0 && power == 1)
        return b;
    poly_factor at[2 * POLY_FACTORS_MAX];
    int n = 0, i = 0, k = 0;
    while (i < a->n || k < b->n) {
        if (k == b->n || (i < a->n && a->at[i].atom->id < b->at[k].atom->id)) {
            at[n++] = a->at[i++];
        } else if (i == a->n || b->at[k].atom->id < a->at[i].atom->id) {
            at[n++] = (poly_factor){b->at[k].atom, power * b->at[k].exp};
            k++;
        } else {
            int exp = a->at[i].exp + power * b->at[k].exp;
            if (exp != 0)
                at[n++] = (poly_factor){a->at[i].atom, exp};
            i++;
            k++;
        }
    }
    return poly_mono_intern(pp, at, n);
}

/* Graded, then by the exponent of the oldest atom they differ in. Multiplying both sides by a
 * product keeps the order, negative exponents included. */
int poly_mono_cmp(const poly_mono *a, const poly_mono *b)
{
    if (a == b)
        return 0;
    if (a->degree != b->degree)
        return a->degree < b->degree ? -1 : 1;
    int i = 0;
    while (i < a->n && i < b->n && a->at[i].atom == b->at[i].atom && a->at[i].exp == b->at[i].exp)
        i++;
    int ea = i < a->n ? a->at[i].exp : 0, eb = i < b->n ? b->at[i].exp : 0;
    if (i < a->n && i < b->n && a->at[i].atom != b->at[i].atom) {
        if (a->at[i].atom->id < b->at[i].atom->id)
            eb = 0;
        else
            ea = 0;
    }
    return ea < eb ? -1 : 1;
}

int poly_mono_exp(const poly_mono *m, const poly_atom *a)
{
    for (int i = 0; i < m->n; i++) {
        if (m->at[i].atom == a)
            return m->at[i].exp;
    }
    return 0;
}

/* ---- sums ---- */

typedef struct {
    const poly_term *at;
    int n;
} term_list;

static bool poly_same(const poly_node *nd, const void *want)
{
    const poly *p = (const poly *)nd;
    const term_list *l = want;
    if (p->n != l->n)
        return false;
    for (int i = 0; i < p->n; i++) {
        if (p->at[i].mono != l->at[i].mono || p->at[i].c.num != l->at[i].c.num ||
            p->at[i].c.den != l->at[i].c.den)
            return false;
    }
    return true;
}

const poly *poly_intern(poly_pool *pp, const poly_term *at, int n)
{
    if (n > POLY_TERMS_MAX)
        return poly_fail(pp, POLY_TOO_LONG);
    uint64_t hash = mix(NODE_POLY, (uint64_t)n);
    int depth = 0;
    int64_t size = 0;
    for (int i = 0; i < n; i++) {
        hash = mix(hash, at[i].mono->node.hash);
        hash = mix(mix(hash, (uint64_t)at[i].c.num), (uint64_t)at[i].c.den);
        size += at[i].mono->size;
        if (at[i].mono->depth > depth)
            depth = at[i].mono->depth;
    }
    term_list want = {at, n};
    poly_node *old = table_find(pp, NODE_POLY, hash, poly_same, &want);
    if (old)
        return (const poly *)old;
    if (size > POLY_SIZE_MAX)
        return poly_fail(pp, POLY_TOO_LONG);
    size_t at_bytes = (size_t)n * sizeof *at;
    poly *p = table_add(pp, NODE_POLY, hash, sizeof *p + at_bytes);
    if (!p)
        return NULL;
    p->depth = depth;
    p->size = size;
    p->n = n;
    if (n > 0)
        memcpy(p->at, at, at_bytes);
    return p;
}

const poly *poly_of_term(poly_pool *pp, poly_term t)
{
    return poly_intern(pp, &t, t.c.num != 0);
}

bool poly_term_mul(poly_pool *pp, poly_term a, poly_term b, poly_term *out_t)
{
    poly_term t;
    if (!ratio_mul(a.c, b.c, &t.c))
        return poly_fail(pp, POLY_OVERFLOW);
    t.mono = poly_mono_mul(pp, a.mono, b.mono, 1);
    if (!t.mono)
        return false;
    *out_t = t;
    return true;
}
