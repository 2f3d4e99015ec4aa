/* cache_key.c - the facts of a plan's interleaved weights, mixed into one number of 128 bits. */
#include "runtime/exec/cache_key.h"

#include "runtime/exec/cache_file.h"

/* Samples taken before: a plan interleaves weights of a few types. */
enum { KINDS_MAX = 16 };

typedef struct {
    cache_sample_fn *sample;
    struct {
        klayout layout;
        dtype type, stored;
        uint64_t sum;
    } kind[KINDS_MAX];
    int n;
} samples;

static uint64_t sample_of(samples *s, const plan_weight *w)
{
    for (int i = 0; i < s->n; i++)
        if (s->kind[i].layout == w->layout && s->kind[i].type == w->type &&
            s->kind[i].stored == w->stored)
            return s->kind[i].sum;
    uint64_t sum = s->sample(w->layout, w->type, w->stored);
    if (s->n < KINDS_MAX) {
        s->kind[s->n].layout = w->layout;
        s->kind[s->n].type = w->type;
        s->kind[s->n].stored = w->stored;
        s->kind[s->n++].sum = sum;
    }
    return sum;
}

static void mix(model_hash *h, uint64_t x)
{
    h->lo = (h->lo ^ x) * 0x9e3779b97f4a7c15u;
    h->lo ^= h->lo >> 29;
    h->hi = (h->hi + h->lo) * 0xbf58476d1ce4e5b9u;
    h->hi ^= h->hi >> 32;
}

bool cache_key(const plan *p, const weight_source *src, cache_sample_fn *sample, model_hash *out)
{
    model_hash h;
    samples known = {.sample = sample};
    if (!src->kind->stamp || !src->kind->stamp(src, &h))
        return false;
    mix(&h, CACHE_VERSION);
    mix(&h, (uint64_t)p->interleaved_bytes);
    for (int32_t i = 0; i < p->n_weight; i++) {
        const plan_weight *w = &p->weight[i];
        if (w->mode != WEIGHT_INTERLEAVED)
            continue;
        const uint64_t facts[] = {(uint64_t)w->layout, (uint64_t)w->type,   (uint64_t)w->stored,
                                  (uint64_t)w->bytes,  (uint64_t)w->rank,   (uint64_t)w->n_piece,
                                  (uint64_t)w->pitch,  sample_of(&known, w)};
        for (size_t k = 0; k < sizeof facts / sizeof facts[0]; k++)
            mix(&h, facts[k]);
        for (int k = 0; k < w->rank; k++) {
            mix(&h, (uint64_t)w->dim[k]);
            mix(&h, (uint64_t)w->stride[k]);
        }
        for (int k = 0; k < w->n_piece; k++) {
            mix(&h, (uint64_t)w->piece[k].tensor);
            mix(&h, (uint64_t)w->piece[k].offset);
            mix(&h, (uint64_t)w->piece[k].rows);
            mix(&h, w->scales ? (uint64_t)w->scales[k].tensor : 0);
            mix(&h, w->scales ? (uint64_t)w->scales[k].offset : 0);
        }
    }
    *out = h;
    return true;
}
