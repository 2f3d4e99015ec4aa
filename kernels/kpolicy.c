/* kpolicy.c - lists of tiers: plain ones, those of a cell, what they may be, as text. */
#include "kernels/kpolicy.h"

#include <inttypes.h>
#include <stdio.h>

static kform float_of(kform f)
{
    return kform_is_float(f) ? f : KFORM_F16;
}

kpolicy kpolicy_plain(kform key, kform value)
{
    kpolicy p = {0};
    if (!kform_is_float(key) || !kform_is_float(value))
        p.tier[p.n_tier++] = (kpolicy_tier){float_of(key), float_of(value), 0};
    p.tier[p.n_tier++] = (kpolicy_tier){key, value, KPOLICY_REST};
    return p;
}

static bool coarser(kform a, kform b)
{
    return kform_bits(a) < kform_bits(b);
}

bool kpolicy_follows(kform from, kform to)
{
    return from == to || coarser(to, from);
}

/* f or, if that is too coarse, the bound; `before` where that is coarse enough already. */
static kform bounded(kform f, kform coarsest, const kform *before)
{
    if (coarsest != KFORM_COUNT && coarser(f, coarsest))
        f = coarsest;
    return before && !coarser(f, *before) ? *before : f;
}

kpolicy kpolicy_for_cell(const kpolicy *p, kform coarsest, bool latent)
{
    kpolicy c = {0};
    for (int32_t i = 0; i < p->n_tier; i++) {
        const kpolicy_tier *from = &p->tier[i];
        kpolicy_tier *before = c.n_tier ? &c.tier[c.n_tier - 1] : NULL;
        kpolicy_tier t = {bounded(from->key, coarsest, before ? &before->key : NULL),
                          bounded(from->value, coarsest, before ? &before->value : NULL),
                          from->last};
        if (latent)
            t.value = t.key;
        if (before && before->key == t.key && before->value == t.value)
            before->last = t.last;
        else
            c.tier[c.n_tier++] = t;
    }
    return c;
}

static const char *tier_wrong(const kpolicy *p, int32_t i)
{
    const kpolicy_tier *t = &p->tier[i], *before = i ? t - 1 : NULL;
    if ((unsigned)t->key >= KFORM_COUNT || (unsigned)t->value >= KFORM_COUNT)
        return "a tier has no form";
    if (!before && (!kform_is_float(t->key) || !kform_is_float(t->value)))
        return "the first tier is not floats";
    if (before &&
        (!kpolicy_follows(before->key, t->key) || !kpolicy_follows(before->value, t->value)))
        return "a tier is finer than the one before";
    if (before && before->key == t->key && before->value == t->value)
        return "a tier is the one before";
    if (t->last < 0 || (before && t->last <= before->last) ||
        (t->last == KPOLICY_REST) != (i + 1 == p->n_tier))
        return "`last` does not grow";
    return NULL;
}

const char *kpolicy_wrong(const kpolicy *p)
{
    if (p->n_tier < 1 || p->n_tier > K_TIERS_MAX)
        return "it has no tiers, or too many";
    const char *why = NULL;
    for (int32_t i = 0; i < p->n_tier && !why; i++)
        why = tier_wrong(p, i);
    return why;
}

bool kpolicy_same_forms(const kpolicy *a, const kpolicy *b)
{
    bool same = a->n_tier == b->n_tier;
    for (int32_t i = 0; i < a->n_tier && same; i++)
        same = a->tier[i].key == b->tier[i].key && a->tier[i].value == b->tier[i].value;
    return same;
}

void kpolicy_print(const kpolicy *p, strbuf *out)
{
    for (int32_t i = 0; i < p->n_tier; i++) {
        const kpolicy_tier *t = &p->tier[i];
        strbuf_add(out, "%s%s", i ? ", " : "", kform_name(t->key));
        if (t->value != t->key)
            strbuf_add(out, "/%s", kform_name(t->value));
        if (t->last != KPOLICY_REST)
            strbuf_add(out, " last=%" PRId32, t->last);
        else if (i > 0)
            strbuf_add(out, " rest");
    }
}

const char *kpolicy_text(const kpolicy *p, char to[KPOLICY_TEXT_MAX])
{
    strbuf b = {0};
    kpolicy_print(p, &b);
    snprintf(to, KPOLICY_TEXT_MAX, "%s", b.n ? b.p : "");
    strbuf_free(&b);
    return to;
}

double kpolicy_bytes(const kpolicy *p, int64_t length)
{
    double bits = 0;
    int64_t had = 0;
    for (int32_t i = 0; i < p->n_tier; i++) {
        int64_t end = p->tier[i].last < length ? p->tier[i].last : length;
        bits +=
            (double)(end - had) * (kform_bits(p->tier[i].key) + kform_bits(p->tier[i].value)) / 2;
        had = end;
    }
    return length > 0 ? bits / 8 / (double)length : 0;
}
