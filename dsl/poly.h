/* poly.h - sizes as integer polynomials in a normal form.
 *
 * A poly is a sum of terms, each an integer times a product of atoms. An atom is a symbol (a
 * parameter, T, R, S, a loop index) or an operation that could not be carried out on symbols:
 * `a / b` that does not come out even, `p ?? q`, `idiv(a, b)`, `ff[l]`. Polys and atoms are interned
 * in their pool, so two sizes are equal exactly when their pointers are. Everything lives in the
 * arena given to poly_pool_create. Not thread-safe.
 *
 * Operations return NULL when the result cannot be represented; poly_failure says why. NULL in gives
 * NULL out, so a chain may be checked once at its end. POLY_TOO_LONG stands for every limit on size:
 * terms, factors, atoms nested in atoms, the work of one operation, the memory of the pool. */
#ifndef WEFT_DSL_POLY_H
#define WEFT_DSL_POLY_H

#include "runtime/base/arena.h"

typedef struct poly poly;
typedef struct poly_pool poly_pool;

enum { POLY_TERMS_MAX = 256 }; /* a product of sums grows fast; nobody writes one this long */

typedef enum {
    POLY_FINE,
    POLY_OVERFLOW,
    POLY_TOO_LONG,
    POLY_ZERO_DIVISOR,
    POLY_INEXACT
} poly_reason;

poly_pool *poly_pool_create(arena *a);
poly_reason poly_failure(const poly_pool *pp); /* of the newest operation that returned NULL */
uint64_t poly_spent(const poly_pool *pp);      /* terms touched so far, as a measure of time */

const poly *poly_int(poly_pool *pp, int64_t v);
/* The symbol that stands for *owner, printed as name; the same owner gives the same symbol. */
const poly *poly_symbol(poly_pool *pp, const void *owner, str name);

const poly *poly_add(poly_pool *pp, const poly *a, const poly *b);
const poly *poly_sub(poly_pool *pp, const poly *a, const poly *b);
const poly *poly_mul(poly_pool *pp, const poly *a, const poly *b);
/* a / b when it comes out even on symbols, NULL when not (no failure is recorded). */
const poly *poly_quotient(poly_pool *pp, const poly *a, const poly *b);
/* The quotient, even or not: `a / b` times b is a again, in any product, and d/2 + d/2 is d. A result
 * that is a number and not whole is POLY_INEXACT, here as in every operation; a zero divisor is
 * POLY_ZERO_DIVISOR. */
const poly *poly_div(poly_pool *pp, const poly *a, const poly *b);
/* The atom fn(args...), for what has no normal form; fn must be a literal. "[]" prints as
 * name[index]: args[0] is then the symbol that is indexed. On numbers, idiv, mod, min and max give
 * a number: idiv rounds down, mod is what it leaves (0 or more for a divisor above 0). min and max
 * of equal args are that arg. */
const poly *poly_call(poly_pool *pp, const char *fn, const poly *const *args, int n_arg);
/* `p ?? q`, where p is the symbol of an optional value; p if both are the same or p is a number. */
const poly *poly_coalesce(poly_pool *pp, const poly *p, const poly *q);
/* x, knowing that the optional p is present (or absent): every `p ?? q` in it becomes p (or q), also
 * inside other atoms. */
const poly *poly_narrow(poly_pool *pp, const poly *x, const poly *p, bool present);
/* x with every occurrence of the symbol sym replaced by `by`, also inside other atoms. */
const poly *poly_replace(poly_pool *pp, const poly *x, const poly *sym, const poly *by);

bool poly_value(const poly *p, int64_t *out_v); /* true, and the number, if p is one */
bool poly_is(const poly *p, int64_t v);
/* Is it below 0 whatever positive numbers its symbols stand for? */
bool poly_is_negative(const poly *p);

/* `2*heads*head_dim + d/2`: terms by descending degree, symbols in the order of their creation. */
void poly_print(const poly *p, strbuf *out);

#endif
