/* poly_print.c - sizes as text.
 *
 * Terms with the same denominator are printed over one fraction bar, so that (a + b)/2 comes back
 * as it was written. Terms go by the degree of their numerators, then in their stored order. */
#include "dsl/poly_impl.h"
#include <inttypes.h>

static void print_poly(const poly *p, strbuf *out);

static bool mono_is_whole(const poly_mono *m)
{
    for (int i = 0; i < m->n; i++) {
        if (m->at[i].exp < 0)
            return false;
    }
    return true;
}

static bool term_is_whole(const poly_term *t)
{
    return t->c.den == 1 && mono_is_whole(t->mono);
}

static int numerator_degree(const poly_mono *m)
{
    int degree = 0;
    for (int i = 0; i < m->n; i++)
        degree += m->at[i].exp > 0 ? m->at[i].exp : 0;
    return degree;
}

static bool same_denominator(const poly_term *a, const poly_term *b)
{
    if (a->c.den != b->c.den)
        return false;
    for (int i = 0, k = 0;; i++, k++) {
        while (i < a->mono->n && a->mono->at[i].exp > 0)
            i++;
        while (k < b->mono->n && b->mono->at[k].exp > 0)
            k++;
        if (i == a->mono->n || k == b->mono->n)
            return i == a->mono->n && k == b->mono->n;
        if (a->mono->at[i].atom != b->mono->at[k].atom || a->mono->at[i].exp != b->mono->at[k].exp)
            return false;
    }
}

static bool is_coalesce(const poly_atom *a)
{
    return a->kind == ATOM_CALL && strcmp(a->fn, "??") == 0;
}

/* Would p, printed, be a bare `x ?? y`? */
static bool poly_is_coalesce(const poly *p)
{
    return p->n == 1 && p->at[0].c.num == 1 && p->at[0].c.den == 1 && p->at[0].mono->n == 1 &&
           p->at[0].mono->at[0].exp == 1 && is_coalesce(p->at[0].mono->at[0].atom);
}

static void print_bracketed(const poly *p, strbuf *out, bool brackets)
{
    if (brackets)
        strbuf_putc(out, '(');
    print_poly(p, out);
    if (brackets)
        strbuf_putc(out, ')');
}

static void print_coalesce(const poly_atom *a, strbuf *out)
{
    print_bracketed(a->arg[0], out, poly_is_coalesce(a->arg[0]));
    strbuf_put(out, STR(" ?? "));
    print_poly(a->arg[1], out);
}

/* As part of a product. */
static void print_atom(const poly_atom *a, strbuf *out)
{
    if (a->kind == ATOM_SYMBOL) {
        strbuf_put(out, a->name);
    } else if (a->kind == ATOM_SUM) {
        print_bracketed(a->arg[0], out, true);
    } else if (is_coalesce(a)) {
        strbuf_putc(out, '(');
        print_coalesce(a, out);
        strbuf_putc(out, ')');
    } else {
        bool index = strcmp(a->fn, "[]") == 0 && a->n_arg > 0;
        if (index)
            print_poly(a->arg[0], out);
        else
            strbuf_put(out, str_of(a->fn));
        strbuf_putc(out, index ? '[' : '(');
        for (int i = index; i < a->n_arg; i++) {
            strbuf_put(out, i > index ? STR(", ") : STR(""));
            print_poly(a->arg[i], out);
        }
        strbuf_putc(out, index ? ']' : ')');
    }
}

/* The number, unless it is 1, and the factors whose exponents have the given sign. */
static void print_product(uint64_t number, const poly_mono *m, int sign, strbuf *out)
{
    bool first = true;
    if (number != 1) {
        strbuf_add(out, "%" PRIu64, number);
        first = false;
    }
    for (int i = 0; i < m->n; i++) {
        int exp = sign * m->at[i].exp;
        if (exp < 0)
            continue;
        if (!first)
            strbuf_putc(out, '*');
        first = false;
        print_atom(m->at[i].atom, out);
        if (exp > 1)
            strbuf_add(out, "^%d", exp);
    }
    if (first)
        strbuf_putc(out, '1');
}

static void print_numerator(const poly_term *t, strbuf *out)
{
    uint64_t size = t->c.num < 0 ? 0 - (uint64_t)t->c.num : (uint64_t)t->c.num;
    print_product(size, t->mono, 1, out);
}

static void print_denominator(const poly_term *t, strbuf *out)
{
    int n_factor = t->c.den != 1;
    for (int i = 0; i < t->mono->n; i++)
        n_factor += t->mono->at[i].exp < 0;
    if (n_factor == 0)
        return;
    strbuf_put(out, n_factor > 1 ? STR("/(") : STR("/"));
    print_product((uint64_t)t->c.den, t->mono, -1, out);
    if (n_factor > 1)
        strbuf_putc(out, ')');
}

static void print_sign(bool minus, bool first, strbuf *out)
{
    if (first)
        strbuf_put(out, minus ? STR("-") : STR(""));
    else
        strbuf_put(out, minus ? STR(" - ") : STR(" + "));
}

/* The terms group[0..n), all over one denominator, with the sign of the first in front. */
static void print_group(const poly_term *const *group, int n, bool first, strbuf *out)
{
    bool minus = group[0]->c.num < 0;
    print_sign(minus, first, out);
    if (n > 1)
        strbuf_putc(out, '(');
    for (int i = 0; i < n; i++) {
        if (i > 0)
            print_sign((group[i]->c.num < 0) != minus, false, out);
        print_numerator(group[i], out);
    }
    if (n > 1)
        strbuf_putc(out, ')');
    print_denominator(group[0], out);
}

static void print_poly(const poly *p, strbuf *out)
{
    if (p->n == 0) {
        strbuf_putc(out, '0');
        return;
    }
    if (poly_is_coalesce(p)) {
        print_coalesce(p->at[0].mono->at[0].atom, out);
        return;
    }
    const poly_term *order[POLY_TERMS_MAX];
    for (int i = 0; i < p->n; i++) {
        int degree = numerator_degree(p->at[i].mono), k = i;
        for (; k > 0 && numerator_degree(order[k - 1]->mono) < degree; k--)
            order[k] = order[k - 1];
        order[k] = &p->at[i];
    }
    for (int i = 0; i < p->n; i++) {
        const poly_term *lead = order[i], *group[POLY_TERMS_MAX];
        int n = 0;
        if (!lead)
            continue; /* printed with an earlier group */
        group[n++] = lead;
        for (int k = i + 1; k < p->n && !term_is_whole(lead); k++) {
            if (order[k] && same_denominator(lead, order[k])) {
                group[n++] = order[k];
                order[k] = NULL;
            }
        }
        print_group(group, n, i == 0, out);
    }
}

void poly_print(const poly *p, strbuf *out)
{
    if (p)
        print_poly(p, out);
}
