/* attend_c.c - softmax attention; a unit is the query heads of a row that share one head of the cell, so
 * that keys and values are read once for all of them.
 *
 * Positions are walked in blocks of BLOCK, which begin at multiples of BLOCK whatever the page size
 * and the first position seen, and are merged one after the other: with the largest logit so far m, the
 * sum of exp(logit - m) and that of the values so weighted are scaled whenever m grows. A row's bits
 * so depend on nothing but its position and what it sees. Rows that are not stored as floats of 32
 * bits become such in scratch once per block, from the tier in which the row sees them. Which positions are seen, and what is done to a logit, is in
 * ref/attend_ref.c. The rows of this call are in the cell already. out overlaps no input. */
#include "kernels/kernel_decls.h"

#include <math.h>
#include "kernels/c/attend_tile.h"
#include "kernels/c/half.h"
#include "kernels/c/vec.h"
#include "kernels/ref/cell_place.h"
#include "kernels/ref/cell_tier.h"

enum { BLOCK = ATTEND_BLOCK };

/* The work on one unit. */
typedef struct {
    const kargs *k;
    int64_t seq, pos, head;  /* of the row; of the cell */
    int64_t group;           /* query heads that share it */
    const float *q;          /* [group, k] */
    const float *key[BLOCK]; /* the block's rows */
    const float *value[BLOCK];
    float *p;           /* [group, BLOCK]: logits, then weights */
    float *sum;         /* [group, v] */
    float *max, *total; /* [group] */
    float *key_mem;     /* [BLOCK, k] */
    float *value_mem;   /* [BLOCK, v] */
} unit;

/* Tokens [tok, tok + n) of a part as floats: where they are, or in mem. */
static void rows_read(const page_part *p, const char *part, int64_t tok, int64_t n, float *mem,
                      const float **to)
{
    const char *from = part + page_row(p, tok);
    const float *at = mem;
    int64_t all = n * p->width;
    if (p->form == KFORM_F32)
        at = (const float *)(const void *)from;
    else if (p->form == KFORM_F16)
        halves_from_f16((const uint16_t *)(const void *)from, mem, all);
    else if (p->form == KFORM_BF16)
        halves_from_bf16((const uint16_t *)(const void *)from, mem, all);
    else
        page_read(p, part, tok, n, 0, p->width, mem, p->width);
    for (int64_t i = 0; i < n; i++)
        to[i] = at + i * p->width;
}

/* Positions [begin, end), a page at a time, each from the tier in which the row sees it. */
static void block_read(unit *u, int64_t begin, int64_t end)
{
    const kcell *c = u->k->cell;
    const kbatch *b = u->k->batch;
    for (int64_t at = begin; at < end;) {
        int64_t e = at / c->page_tok, page_end = (e + 1) * c->page_tok, i = at - begin;
        int64_t n = (page_end < end ? page_end : end) - at, tok = at - e * c->page_tok;
        int tier = cell_tier(c, b, u->seq, u->pos, e);
        int32_t page = kbatch_pages(b, c->table + tier, u->seq)[e];
        page_part key = cell_key_part(c, tier);
        rows_read(&key, cell_key_at(c, tier, page, u->head), tok, n, u->key_mem + i * c->k,
                  u->key + i);
        if (!c->latent) {
            page_part value = cell_value_part(c, tier);
            rows_read(&value, cell_value_at(c, tier, page, u->head), tok, n,
                      u->value_mem + i * c->v, u->value + i);
        }
        at += n;
    }
    for (int64_t i = 0; c->latent && i < end - begin; i++)
        u->value[i] = u->key[i];
}

/* What is done to the products of query head g, of positions [begin, begin + n). */
static void logits(const unit *u, int64_t g, int64_t begin, int64_t n, float *s)
{
    const kargs *k = u->k;
    const float *slopes = k->in[3]; /* [H] or NULL */
    float softcap = (float)k->scalar.attend.softcap;
    if (softcap != 0)
        for (int64_t i = 0; i < BLOCK; i++)
            s[i] = softcap * vec_tanh(s[i] / softcap);
    if (slopes) {
        float slope = slopes[u->head * u->group + g];
        for (int64_t i = 0; i < n; i++)
            s[i] += slope * (float)(begin + i - u->pos);
    }
}

static float sum_of(const float *x)
{
    float lane[VEC_LANES] = {0};
    for (int64_t i = 0; i < BLOCK; i += VEC_LANES)
        for (int l = 0; l < VEC_LANES; l++)
            lane[l] += x[i + l];
    return lanes_sum(lane);
}

/* The products of query head g with n keys become weights; what it has so far is scaled to match. */
static void weigh(unit *u, int64_t g, int64_t begin, int64_t n)
{
    int64_t width = u->k->cell->v;
    float *p = u->p + g * BLOCK, *sum = u->sum + g * width;
    for (int64_t i = n; i < BLOCK; i++)
        p[i] = 0; /* so that softcap meets numbers */
    logits(u, g, begin, n, p);
    float old = u->max[g], max = old;
    for (int64_t i = 0; i < n; i++)
        max = p[i] > max ? p[i] : max;
    VEC_LOOP
    for (int64_t i = 0; i < BLOCK; i++)
        p[i] = vec_exp(p[i] - max);
    for (int64_t i = n; i < BLOCK; i++)
        p[i] = 0;

    float keep = max == old ? 1 : vec_exp(old - max);
    u->total[g] = u->total[g] * keep + sum_of(p);
    u->max[g] = max;
    if (keep != 1)
        for (int64_t i = 0; i < width; i++)
            sum[i] *= keep;
}

/* Merge n positions from `begin` on into what the query heads have so far. */
static void block_merge(unit *u, int64_t begin, int64_t n)
{
    const kcell *c = u->k->cell;
    attend_dot(u->q, u->group, u->key, n, c->k, (float)u->k->scalar.attend.scale, u->p);
    for (int64_t g = 0; g < u->group; g++)
        weigh(u, g, begin, n);
    attend_add(u->p, u->group, u->value, n, c->v, u->sum);
}

/* Before the first block: the sink, a logit without a value, has been seen. */
static void unit_begin(unit *u)
{
    const float *sinks = u->k->in[2]; /* [H] or NULL */
    for (int64_t g = 0; g < u->group; g++) {
        float sink = sinks ? sinks[u->head * u->group + g] : -INFINITY;
        u->max[g] = sink;
        u->total[g] = sink == -INFINITY ? 0 : sink - sink + 1; /* NaN for what has no exp */
    }
    for (int64_t i = 0; i < u->group * u->k->cell->v; i++)
        u->sum[i] = 0;
}

static void unit_end(const unit *u, float *out)
{
    int64_t width = u->k->cell->v;
    for (int64_t g = 0; g < u->group; g++)
        for (int64_t i = 0; i < width; i++)
            out[g * width + i] = u->sum[g * width + i] / u->total[g];
}

void k_attend_c(const kargs *k, const kthread *t, int64_t begin, int64_t end)
{
    const kcell *c = k->cell;
    attend_size size = attend_size_of(k);
    unit u = {.k = k, .group = size.group, .p = t->scratch};
    u.key_mem = u.p + size.p;
    u.value_mem = u.key_mem + size.key;
    u.sum = u.value_mem + size.value;
    u.max = u.sum + size.sum;
    u.total = u.max + size.group;
    for (int64_t i = begin; i < end; i++) {
        int64_t row = i / c->heads;
        u.head = i % c->heads;
        u.seq = kbatch_at(k->batch, KBATCH_SEQ)[row];
        u.pos = kbatch_at(k->batch, KBATCH_POS)[row];
        u.q = row_in(k, 0, row) + u.head * u.group * c->k;
        unit_begin(&u);
        for (int64_t at = attend_first(k, u.pos); at <= u.pos;) {
            int64_t block_end = (at / BLOCK + 1) * BLOCK;
            int64_t n = (block_end <= u.pos ? block_end : u.pos + 1) - at;
            block_read(&u, at, at + n);
            block_merge(&u, at, n);
            at += n;
        }
        unit_end(&u, row_out(k, 0, row) + u.head * u.group * c->v);
    }
}
