/* attend_ref.c - softmax attention of each query head over its sequence's cached rows.
 *
 * In this order: s = scale * (q . k); softcap * tanh(s / softcap); plus slopes[h] * (pos_j -
 * pos_t); then softmax over the positions j that row t may see, where sinks[h] is one more logit
 * that takes probability and gives no value. Row t sees j <= pos_t, with a window pos_t - pos_j <
 * window, with chunks those of its own chunk, pos_j / chunk == pos_t / chunk: always a run of
 * positions that ends with its own. Two passes, the first for the largest logit, so that no list of
 * scores is kept. Every row sees each page in the tier that cell_tier.h says.
 *
 * The rows of this call are in the cell already. out overlaps no input. */
#include "kernels/kernel_decls.h"

#include <math.h>
#include "kernels/ref/cell_place.h"
#include "kernels/ref/cell_tier.h"
#include "kernels/ref/scalar_math.h"
#include "kernels/ref/weight_read.h"

/* One query head of one row. */
typedef struct {
    const kargs *k;
    const float *q; /* [k] */
    int64_t seq, pos, head, cell_head;
    float *key; /* [k], scratch: the key last read */
} query;

/* The key or the value of position j, in the tier that the row sees it in. */
static void row_read(const query *q, page_kind kind, int64_t j, float *to)
{
    const kcell *c = q->k->cell;
    bool key = kind == PAGE_KEYS;
    int64_t e = j / c->page_tok;
    int tier = cell_tier(c, q->k->batch, q->seq, q->pos, e);
    int32_t page = kbatch_pages(q->k->batch, c->table + tier, q->seq)[e];
    page_part part = key ? cell_key_part(c, tier) : cell_value_part(c, tier);
    const char *at =
        key ? cell_key_at(c, tier, page, q->cell_head) : cell_value_at(c, tier, page, q->cell_head);
    page_read(&part, at, j % c->page_tok, 1, 0, part.width, to, part.width);
}

/* The logit of position j; leaves its key in q->key. */
static double logit(const query *q, int64_t j)
{
    const kcell *c = q->k->cell;
    const float *slopes = q->k->in[3]; /* [H] or NULL */
    double scale = q->k->scalar.attend.scale, softcap = q->k->scalar.attend.softcap;
    row_read(q, PAGE_KEYS, j, q->key);
    double s = scale * dot(q->q, q->key, c->k);
    if (softcap != 0)
        s = softcap * tanh(s / softcap);
    if (slopes)
        s += slopes[q->head] * (double)(j - q->pos);
    return s;
}

static void attend_head(const query *q, double *sum, float *value, float *out)
{
    const kcell *c = q->k->cell;
    const float *sinks = q->k->in[2]; /* [H] or NULL */
    int64_t first = attend_first(q->k, q->pos);
    double max = sinks ? (double)sinks[q->head] : -INFINITY;
    for (int64_t j = first; j <= q->pos; j++)
        max = larger(max, logit(q, j));

    double total = sinks ? exp(sinks[q->head] - max) : 0;
    for (int64_t i = 0; i < c->v; i++)
        sum[i] = 0;
    for (int64_t j = first; j <= q->pos; j++) {
        double p = exp(logit(q, j) - max);
        const float *v = q->key;
        if (!c->latent) {
            row_read(q, PAGE_VALUES, j, value);
            v = value;
        }
        total += p;
        for (int64_t i = 0; i < c->v; i++)
            sum[i] += p * v[i];
    }
    for (int64_t i = 0; i < c->v; i++)
        out[i] = (float)(sum[i] / total);
}

void k_attend_ref(const kargs *k, const kthread *t, int64_t begin, int64_t end)
{
    const kcell *c = k->cell;
    const kbatch *b = k->batch;
    const float *q = k->in[0];          /* [rows, H, k] */
    float *out = k->out[0];             /* [rows, H, v] */
    double *sum = t->scratch;           /* [v] */
    float *key = (float *)(sum + c->v); /* [k] */
    float *value = key + c->k;          /* [v] */
    int64_t heads = k->size.attend.heads;
    int64_t group = heads / c->heads; /* query heads that share a head of the cell */
    for (int64_t unit = begin; unit < end; unit++) {
        int64_t row = unit / heads, head = unit % heads;
        query one = {.k = k,
                     .q = q + unit * c->k,
                     .seq = kbatch_at(b, KBATCH_SEQ)[row],
                     .pos = kbatch_at(b, KBATCH_POS)[row],
                     .head = head,
                     .cell_head = head / group,
                     .key = key};
        attend_head(&one, sum, value, out + unit * c->v);
    }
}
