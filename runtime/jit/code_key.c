/* code_key.c - the facts of a plan, field by field, mixed into one number of 128 bits. */
#include "runtime/jit/code_key.h"

#include "runtime/base/checksum.h"

static void mix(code_key *h, uint64_t x)
{
    h->lo = (h->lo ^ x) * 0x9e3779b97f4a7c15u;
    h->lo ^= h->lo >> 29;
    h->hi = (h->hi + h->lo) * 0xbf58476d1ce4e5b9u;
    h->hi ^= h->hi >> 32;
}

/* Bytes without padding among them. */
static void mix_bytes(code_key *h, const void *data, size_t n)
{
    const char *at = data;
    mix(h, n);
    for (; n > 0;) {
        uint64_t word = 0;
        size_t take = n < sizeof word ? n : sizeof word;
        memcpy(&word, at, take);
        mix(h, word);
        at += take;
        n -= take;
    }
}

static void mix_text(code_key *h, const char *text)
{
    mix_bytes(h, text ? text : "", text ? strlen(text) : 0);
}

static void mix_operand(code_key *h, const plan_operand *o)
{
    mix(h, (uint64_t)o->space << 32 | (uint64_t)o->type);
    mix(h, (uint64_t)(int64_t)o->id);
    mix(h, (uint64_t)o->offset);
}

static void mix_code(code_key *h, const kinstr *c)
{
    mix(h, (uint64_t)c->op | (uint64_t)c->to << 8 | (uint64_t)c->at[0] << 16 |
               (uint64_t)c->at[1] << 24 | (uint64_t)c->at[2] << 32);
    mix_bytes(h, c->f, sizeof c->f);
}

/* Lines and columns follow from the text, which is mixed once for all steps that come from it. */
static void mix_loc(code_key *h, const weft_loc *loc, const source **last)
{
    if (loc->src != *last && loc->src) {
        mix_text(h, loc->src->name);
        mix(h, checksum(loc->src->text.p, loc->src->text.n));
    }
    *last = loc->src;
    mix(h, (uint64_t)loc->begin << 32 | loc->end);
}

static void mix_step(code_key *h, const plan *p, const plan_step *s, const source **last)
{
    const int64_t facts[] = {s->kernel, s->n_in,   s->n_out, (int64_t)s->rows, s->per_row, s->cols,
                             s->tile,   s->n_code, s->cell,  s->layer,         s->node};
    mix_bytes(h, facts, sizeof facts);
    for (int i = 0; i < K_IN_MAX; i++)
        mix_operand(h, &s->in[i]);
    for (int i = 0; i < s->n_out; i++)
        mix_operand(h, &s->out[i]);
    mix_bytes(h, s->pitch, sizeof s->pitch);
    mix_bytes(h, s->out_pitch, sizeof s->out_pitch);
    mix_bytes(h, s->stride, sizeof s->stride);
    mix_bytes(h, s->n, sizeof s->n);
    mix_bytes(h, s->f, sizeof s->f);
    mix_bytes(h, s->word, sizeof s->word);
    for (int32_t i = 0; i < s->n_code; i++)
        mix_code(h, &p->code[s->code + i]);
    mix_loc(h, &s->loc, last);
}

static void mix_bucket(code_key *h, const plan *p, const plan_bucket *b, const source **last)
{
    mix(h, (uint64_t)b->n_tok_max);
    mix(h, (uint64_t)b->n_step);
    for (int32_t i = 0; i < b->n_step; i++)
        mix_step(h, p, &b->step[i], last);
    mix(h, (uint64_t)b->n_item);
    for (int32_t i = 0; i < b->n_item; i++) {
        const plan_item *it = &b->item[i];
        const int64_t facts[] = {it->first, it->n_step, it->phase, it->per_thread, it->grain};
        mix_bytes(h, facts, sizeof facts);
    }
}

code_key code_key_of(const plan *p, const char *maker, uint64_t how)
{
    const source *last = NULL;
    code_key h = {0x243f6a8885a308d3u, 0x13198a2e03707344u}; /* any numbers */
    mix_text(&h, maker);
    mix(&h, how);
    mix_text(&h, p->model);
    mix_text(&h, p->backend);
    mix_text(&h, p->level);
    mix(&h, (uint64_t)p->n_kernel);
    for (int32_t i = 0; i < p->n_kernel; i++)
        mix_text(&h, p->kernel[i].name);
    mix(&h, (uint64_t)p->n_bucket);
    for (int32_t i = 0; i < p->n_bucket; i++)
        mix_bucket(&h, p, &p->bucket[i], &last);
    return h;
}
