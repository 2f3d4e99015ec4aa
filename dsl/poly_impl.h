/* poly_impl.h - the inside of poly.h, shared by poly*.c only.
 *
 * Sizes are kept as Laurent polynomials over the rationals: `d/2` is the term 1/2 * d and `d/heads`
 * the term d * heads^-1. That makes a division by a single term undo itself by plain arithmetic,
 * inside any product and any sum. Dividing by a sum is the one case that needs an atom: ATOM_SUM
 * stands for the sum, made primitive, and occurs with negative exponents only. Terms with
 * such an atom are reduced like a polynomial division (poly_div.c).
 *
 * Every function that returns a pointer or a bool gives NULL or false on failure, after poly_fail.
 */
#ifndef WEFT_DSL_POLY_IMPL_H
#define WEFT_DSL_POLY_IMPL_H

#include "dsl/poly.h"

enum {
    POLY_FACTORS_MAX = 64,        /* distinct atoms in one term */
    POLY_EXP_MAX = 255,           /* of an atom in one term */
    POLY_DEPTH_MAX = 64,          /* atoms inside atoms, so that recursion stays shallow */
    POLY_SIZE_MAX = 16384,        /* symbols in one poly when written out in full */
    POLY_WORK_MAX = 512,          /* terms while an operation is under way */
    POLY_STEPS_MAX = 1 << 22,     /* terms touched by one operation */
    POLY_POOL_BYTES_MAX = 1 << 26 /* a model file takes well under one MiB */
};

typedef enum { NODE_ATOM, NODE_MONO, NODE_POLY } poly_node_kind;

/* What the three interned kinds start with. */
typedef struct poly_node {
    struct poly_node *next; /* in its bucket */
    uint64_t hash;
    poly_node_kind kind;
} poly_node;

typedef enum { ATOM_SYMBOL, ATOM_SUM, ATOM_CALL } poly_atom_kind;

typedef struct poly_atom {
    poly_node node;
    poly_atom_kind kind;
    int id;            /* counts up; the order of factors */
    int depth;         /* 0 for a symbol */
    int64_t size;      /* symbols when written out */
    const void *owner; /* ATOM_SYMBOL */
    str name;
    const char *fn; /* ATOM_CALL; "??" for a coalesce */
    int n_arg;      /* ATOM_SUM has one */
    const poly **arg;
    const poly *rebuilt; /* what it became in the rewrite numbered rewrite (poly.c) */
    uint64_t rewrite;
} poly_atom;

typedef struct {
    poly_atom *atom;
    int exp; /* never 0; negative in a denominator */
} poly_factor;

/* A product of atoms, by ascending id; the empty one is 1. */
typedef struct poly_mono {
    poly_node node;
    int degree; /* sum of exponents */
    int depth;
    int64_t size;
    int n;
    poly_factor at[];
} poly_mono;

typedef struct {
    int64_t num, den; /* lowest terms, den > 0 */
} poly_ratio;

typedef struct {
    poly_ratio c; /* never 0 */
    const poly_mono *mono;
} poly_term;

/* Terms in descending poly_mono_cmp order; the empty sum is 0. */
struct poly {
    poly_node node;
    int depth;
    int64_t size;
    int n;
    poly_term at[];
};

/* A sum under way: sorted terms, no zeros, not interned. */
typedef struct {
    int n;
    poly_term at[POLY_WORK_MAX];
} poly_work;

struct poly_pool {
    arena *home;
    poly_node **bucket;
    size_t n_bucket, n_node, bytes;
    int n_atom;
    const poly_mono *one;
    poly_reason reason;
    int64_t steps_left;
    uint64_t spent;
    uint64_t rewrite;  /* counts calls of poly_narrow and poly_replace */
    poly_work scratch; /* the sum of a rewrite; on the stack it would be there once per level */
};

/* Returns NULL; inline, so that compilers see it and know that nothing was handed out. */
static inline void *poly_fail(poly_pool *pp, poly_reason why)
{
    pp->reason = why;
    return NULL;
}

/* poly_pool.c */
bool poly_spend(poly_pool *pp, int64_t steps);

bool ratio_make(int64_t num, int64_t den, poly_ratio *out_r); /* den not 0 */
bool ratio_add(poly_ratio a, poly_ratio b, poly_ratio *out_r);
bool ratio_mul(poly_ratio a, poly_ratio b, poly_ratio *out_r);
uint64_t poly_gcd(int64_t a, int64_t b);

poly_atom *poly_atom_symbol(poly_pool *pp, const void *owner, str name);
poly_atom *poly_atom_sum(poly_pool *pp, const poly *p);
poly_atom *poly_atom_call(poly_pool *pp, const char *fn, const poly *const *args, int n_arg);

const poly_mono *poly_mono_atom(poly_pool *pp, poly_atom *a, int exp);
const poly_mono *poly_mono_intern(poly_pool *pp, const poly_factor *at, int n);
/* a * b^power, power being 1 or -1. */
const poly_mono *poly_mono_mul(poly_pool *pp, const poly_mono *a, const poly_mono *b, int power);
int poly_mono_cmp(const poly_mono *a, const poly_mono *b); /* by degree, then lexical */
int poly_mono_exp(const poly_mono *m, const poly_atom *a);

const poly *poly_intern(poly_pool *pp, const poly_term *at, int n);
const poly *poly_of_term(poly_pool *pp, poly_term t);
bool poly_term_mul(poly_pool *pp, poly_term a, poly_term b, poly_term *out_t);

/* poly_div.c */
/* w += sum(at) * by */
bool poly_work_add(poly_pool *pp, poly_work *w, const poly_term *at, int n, poly_term by);
/* w in its normal form. */
const poly *poly_work_end(poly_pool *pp, poly_work *w);
const poly *poly_product(poly_pool *pp, const poly *a, const poly *b);
const poly *poly_power(poly_pool *pp, const poly *base, int exp);       /* exp >= 0 */
const poly *poly_ratio_of(poly_pool *pp, const poly *a, const poly *b); /* a / b */
/* Does q have no denominator that a lacks? */
bool poly_is_even(const poly *q, const poly *a);

#endif
