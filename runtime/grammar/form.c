/* form.c - parts and rules. */
#include "runtime/grammar/form.h"

#include <stdlib.h>

enum { CHAR_MAX_UNICODE = 0x10ffff, SURROGATE_LO = 0xd800, SURROGATE_HI = 0xdfff };

void form_init(form *f, size_t parts_max)
{
    *f = (form){.a = arena_create(), .parts_max = parts_max};
}

void form_deinit(form *f)
{
    VEC_FREE(&f->rules);
    arena_destroy(f->a);
}

int32_t form_rule_add(form *f, str name, weft_loc loc)
{
    form_rule r = {.name = name.n ? arena_str(f->a, name) : name, .loc = loc};
    f->n_part++;
    VEC_PUSH(&f->rules, r);
    return (int32_t)(f->rules.n - 1);
}

static part *part_new(form *f, part_kind kind)
{
    part *p = ARENA_NEW(f->a, part);
    p->kind = kind;
    f->n_part++;
    return p;
}

const part *part_never(form *f)
{
    return part_new(f, PART_NEVER);
}

const part *part_empty(form *f)
{
    return part_new(f, PART_BYTES);
}

const part *part_bytes(form *f, str s)
{
    part *p = part_new(f, PART_BYTES);
    p->bytes = arena_str(f->a, s);
    f->n_part += s.n / 16;
    return p;
}

const part *part_text(form *f, const char *z)
{
    return part_bytes(f, str_of(z));
}

static int range_order(const void *a, const void *b)
{
    const char_range *x = a, *y = b;
    return x->lo < y->lo ? -1 : x->lo > y->lo;
}

/* Adds a range without its surrogates to a list that ends before it. */
static void range_put(range_vec *to, uint32_t lo, uint32_t hi)
{
    if (lo > hi)
        return;
    if (lo <= SURROGATE_HI && hi >= SURROGATE_LO) {
        if (lo < SURROGATE_LO)
            range_put(to, lo, SURROGATE_LO - 1);
        if (hi > SURROGATE_HI)
            range_put(to, SURROGATE_HI + 1, hi);
        return;
    }
    if (to->n && to->at[to->n - 1].hi + 1 >= lo) {
        if (to->at[to->n - 1].hi < hi)
            to->at[to->n - 1].hi = hi;
        return;
    }
    VEC_PUSH(to, ((char_range){lo, hi}));
}

const part *part_set(form *f, const char_range *r, size_t n, bool invert)
{
    range_vec sorted = {0}, out = {0};
    for (size_t i = 0; i < n; i++)
        VEC_PUSH(&sorted, r[i]);
    if (n)
        qsort(sorted.at, n, sizeof *sorted.at, range_order);
    uint32_t next = 0; /* the first character that no range so far has */
    for (size_t i = 0; i < n; i++) {
        if (invert && sorted.at[i].lo > next)
            range_put(&out, next, sorted.at[i].lo - 1);
        if (!invert)
            range_put(&out, sorted.at[i].lo, sorted.at[i].hi);
        if (sorted.at[i].hi >= next)
            next = sorted.at[i].hi + 1;
    }
    if (invert && next <= CHAR_MAX_UNICODE)
        range_put(&out, next, CHAR_MAX_UNICODE);
    part *p = part_new(f, out.n ? PART_SET : PART_NEVER);
    char_range *copy = ARENA_ARRAY(f->a, char_range, out.n + 1);
    for (size_t i = 0; i < out.n; i++)
        copy[i] = out.at[i];
    p->range = copy;
    p->n = out.n;
    f->n_part += out.n / 4;
    VEC_FREE(&sorted);
    VEC_FREE(&out);
    return p;
}

const part *part_char(form *f, uint32_t lo, uint32_t hi)
{
    return part_set(f, &(char_range){lo, hi}, 1, false);
}

const part *part_rule(form *f, int32_t rule)
{
    part *p = part_new(f, PART_RULE);
    p->rule = rule;
    return p;
}

const part *part_repeat(form *f, const part *item, int64_t min, int64_t max)
{
    if (min == 1 && max == 1)
        return item;
    if (max == 0)
        return part_empty(f);
    part *p = part_new(f, PART_REPEAT);
    const part **one = ARENA_ARRAY(f->a, const part *, 1);
    one[0] = item;
    p->item = one;
    p->n = 1;
    p->min = min;
    p->max = max;
    return p;
}

static part *part_of_items(form *f, part_kind kind, const part *const *item, size_t n)
{
    part *p = part_new(f, kind);
    const part **copy = ARENA_ARRAY(f->a, const part *, n + 1);
    for (size_t i = 0; i < n; i++)
        copy[i] = item[i];
    p->item = copy;
    p->n = n;
    f->n_part += n / 2;
    return p;
}

const part *part_list(form *f, part_kind kind, const part *const *item, size_t n)
{
    if (n == 1)
        return item[0];
    if (n == 0)
        return kind == PART_ALT ? part_never(f) : part_empty(f);
    return part_of_items(f, kind, item, n);
}

const part *part_ordered(form *f, const part *const *item, const bool *optional, size_t n,
                         const part *between, const part *more, bool some)
{
    part *p = part_of_items(f, PART_ORDERED, item, n);
    bool *copy = ARENA_ARRAY(f->a, bool, n + 1);
    for (size_t i = 0; i < n; i++)
        copy[i] = optional[i];
    p->optional = copy;
    p->between = between;
    p->more = more;
    p->min = some;
    return p;
}
