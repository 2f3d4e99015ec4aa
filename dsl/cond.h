/* cond.h - truths over symbols, interned like sizes: two are the same when their pointers are.
 *
 * A comparison of sizes is kept as `p < 0` or `p == 0`, so `l < dense` and `dense > l` are one truth
 * and `l >= dense` is its negation. Whatever cannot be compared is an atom with an owner. */
#ifndef WEFT_DSL_COND_H
#define WEFT_DSL_COND_H

#include "dsl/poly.h"

typedef struct cond cond;
typedef struct cond_pool cond_pool;
typedef enum {
    COND_FALSE,
    COND_TRUE,
    COND_NOT,
    COND_AND,
    COND_OR,
    COND_LESS,
    COND_ZERO,
    COND_NONE,
    COND_ATOM
} cond_kind;

enum { COND_WEIGHT_MAX = 256 };

struct cond {
    cond_kind kind;
    const cond *a, *b; /* NOT: a; AND, OR: both; ATOM: of one too heavy to look into */
    const poly *size;  /* LESS: size < 0; ZERO: size == 0; ATOM, NONE: an index or NULL */
    const void *owner; /* ATOM, NONE */
    str text;          /* ATOM: what a string is compared with; empty otherwise */
    uint32_t weight;   /* leaves below; a truth over COND_WEIGHT_MAX is kept as an atom */
    uint64_t hash;
    struct cond *next;
};

cond_pool *cond_pool_create(arena *a, poly_pool *pp);
const cond *cond_bool(cond_pool *cp, bool truth);
const cond *cond_not(cond_pool *cp, const cond *a);
const cond *cond_and(cond_pool *cp, const cond *a, const cond *b);
const cond *cond_or(cond_pool *cp, const cond *a, const cond *b);
const cond *cond_less(cond_pool *cp, const poly *a, const poly *b);         /* a < b */
const cond *cond_equal(cond_pool *cp, const poly *a, const poly *b);        /* a == b */
const cond *cond_none(cond_pool *cp, const void *owner, const poly *index); /* is it absent? */
const cond *cond_atom(cond_pool *cp, const void *owner, const poly *index, str text);
/* c with the symbol replaced in every size. */
const cond *cond_replace(cond_pool *cp, const cond *c, const poly *sym, const poly *by);

#endif
