/* attend_codes.h - for attend_panels.h: attention over a block of codes (page_form.h) with products of whole numbers.
 *
 * A key is mid + step * code, channel by channel, so that
 *
 *     logit = q . mid + unit * sum over c of n[c] * code[c],    n[c] = q[c] * step[c] / unit, rounded
 *
 * with unit such that the largest n is CODES_LARGEST, 14 bits and a sign. A value is step * code, token by token: with a
 * weight p the sum over tokens is that of p[t] * step[t] times codes, and these are rounded likewise, for each 64 columns.
 * Both are the same sum, over *quads* of four numbers: for 64 tokens, or for 64 columns. It is exact in 32 bits: that of n *
 * code is below 2^31 for ATTEND_CODES_MAX channels, and what the offset of codes adds is taken away modulo 2^32 (that of q4
 * to half a unit).
 *
 * Four queries are computed together, a *tile*, but each in lanes of its own: few and many queries, and any company, give
 * the same bits. What prepares numbers works on [quad][query][4], CODES_PARTS vectors for a quad, so that sums and maxima
 * of a query are within four lanes. What is not seen has the weight 0, whatever its step.
 *
 * The file that includes this first defines CODES_INLINE, vectors vf of WIDE floats and vi of as many integers, and what
 * stands under "what a processor brings"; alone it holds nothing. */
#ifndef WEFT_KERNELS_C_ATTEND_CODES_H
#define WEFT_KERNELS_C_ATTEND_CODES_H

#include "kernels/c/attend_codes_operand.h"
#include "kernels/c/attend_panels.h"

#ifdef CODES_INLINE

enum {
    CODES_LANES = CODES_TILE * PAGE_QUAD,
    CODES_PARTS = CODES_LANES / WIDE,
    CODES_LARGEST = 16383, /* 128 * 127 + 127: two bytes */
    CODES_STEPS = KEYS / PAGE_QUAD,
};

/* ---- what a processor brings ---- */

/* Vectors: vf_load, vf_store, vf_all, vf_add, vf_sub, vf_mul, vf_div, vf_fma, vf_max, vi_all, vi_add; vi_bits and vf_of_bits,
 * floats and integers of the same bits; vi_whole, rounded; vi_magnitude_max, of a and of b without its sign; truths vm:
 * vm_less, vm_within_f (a <= b < c), vf_choose. And
 *
 *     vf_four(p)        four floats in all fours of lanes
 *     vf_each(p)        one float for each four lanes; and back: vf_each_put(p, x)
 *     fours_sum(x)      the sum of each four lanes, in all of them: (0 + 2) + (1 + 3); fours_sum_i, fours_max,
 *                       fours_max_i likewise
 *     vf_fours()        0 1 2 3 0 1 2 3 ..
 *     codes_exp2(x)     2^x of x <= 0
 *     quad_put(to, x)   whole numbers as they are multiplied
 *     tokens_turn(s, j, to)   s [query][64] of tokens [16 j, 16 j + 16) as [quad][query][4], 4 CODES_PARTS vectors
 *     codes_steps(from, n, to)   n f16 numbers, a multiple of 32, as floats */

/* out[g][lane] = the sums as floats, for n_q queries. */
static void codes_products(const codes_whole *x, const codes_operand *codes, int64_t n_q,
                           float (*out)[KEYS]);

/* ---- whole numbers ---- */

/* Numbers [quad][query][4] of which `most` is the largest magnitude of each query, in its lanes. */
CODES_INLINE void whole_put(codes_whole *to, const float *from, int64_t quads, const vi *most,
                            bool half)
{
    const vf largest = vf_all(CODES_LARGEST), scale = vf_all((half ? 16.0f : 1.0f) / CODES_LARGEST);
    const vf least = vf_all(0x1p-100f); /* what is below has no inverse, and counts as 0 */
    vf by[CODES_PARTS];
    vi sum[CODES_PARTS];
    for (int p = 0; p < CODES_PARTS; p++) {
        vf m = vf_of_bits(most[p]), infinite = vf_all(INFINITY);
        by[p] = vf_choose(vm_less(m, least), vf_all(0), vf_div(largest, m));
        vf unit = vf_choose(vm_less(m, infinite), vf_mul(m, scale), vf_all(NAN));
        vf_each_put(to->unit + p * (WIDE / PAGE_QUAD), unit);
        sum[p] = vi_all(0);
    }
    for (int64_t i = 0; i < quads; i++)
        for (int p = 0; p < CODES_PARTS; p++) {
            vi n = vi_whole(vf_mul(vf_load(from + i * CODES_LANES + p * WIDE), by[p]));
            sum[p] = vi_add(sum[p], n);
            quad_put(to->quad[i][p * (WIDE / PAGE_QUAD)], n);
        }
    for (int p = 0; p < CODES_PARTS; p++)
        vf_each_put(to->sum + p * (WIDE / PAGE_QUAD), vf_of_bits(fours_sum_i(sum[p])));
}

/* ---- a tile ---- */

/* A tile of a block, and what it needs of the queries. */
typedef struct {
    int64_t at, i, n;                         /* the block; queries [i, i + n) */
    bool all;                                 /* each sees all of it */
    float begin[CODES_TILE], end[CODES_TILE]; /* what each sees, as floats */
    codes_whole x;
    float out[CODES_TILE][KEYS];                         /* sums of products */
    float z[ATTEND_CODES_MAX / PAGE_QUAD * CODES_LANES]; /* numbers before they are whole */
    float p[KEYS / PAGE_QUAD * CODES_LANES]; /* logits, then weights: [quad][query][4] */
    float step[ATTEND_CODES_MAX], mid[ATTEND_CODES_MAX];
} codes_tile;

static codes_operand keys_operand(const attend_work *w, bool hint)
{
    const page_part *p = &w->now->key;
    return (codes_operand){.at = (const uint8_t *)w->key + p->codes,
                           .pitch = p->quad_bytes,
                           .quads = p->padded / PAGE_QUAD,
                           .lanes = KEYS,
                           .half = p->form == KFORM_Q4,
                           .hint = hint ? w->hint_key : NULL,
                           .hint_bytes = p->block_bytes};
}

/* The columns of a group. */
static codes_operand values_operand(const attend_work *w, int64_t col, bool hint)
{
    const page_part *p = &w->now->value;
    int64_t left = attend_pad(p->width - col), n = left < PAGE_GROUP ? left : PAGE_GROUP;
    int64_t bytes = p->block_bytes * n / attend_pad(p->width);
    return (codes_operand){
        .at = (const uint8_t *)w->value + p->codes + col * PAGE_QUAD,
        .pitch = p->quad_bytes,
        .quads = CODES_STEPS,
        .lanes = n,
        .half = p->form == KFORM_Q4,
        .hint = hint && w->hint_value ? w->hint_value + bytes * (col / PAGE_GROUP) : NULL,
        .hint_bytes = bytes};
}

/* Softcap and slopes; logits become those of base 2. */
static void tile_bend(const attend_work *w, codes_tile *t)
{
    const float *slopes = w->k->in[3]; /* [H] or NULL */
    float softcap = (float)w->k->scalar.attend.softcap;
    for (int64_t j = 0; softcap != 0 && j < KEYS * CODES_TILE; j++)
        t->p[j] = softcap * vec_tanh(t->p[j] / softcap);
    for (int64_t g = 0; slopes && g < t->n; g++) {
        int64_t pos = w->pos[(t->i + g) / w->heads];
        float slope = slopes[w->first_head + (t->i + g) % w->heads];
        for (int64_t j = 0; j < KEYS; j++)
            t->p[j / PAGE_QUAD * CODES_LANES + g * PAGE_QUAD + j % PAGE_QUAD] +=
                slope * (float)(t->at + j - pos);
    }
    for (int64_t j = 0; j < KEYS * CODES_TILE; j++)
        t->p[j] *= LOG2_E;
}

/* Logits of the tile's queries q [quad][query][4]. */
CODES_INLINE void tile_logits(const attend_work *w, codes_tile *t, const float *q)
{
    codes_operand keys = keys_operand(w, t->i == 0);
    vf base[CODES_PARTS];
    vi most[CODES_PARTS];
    for (int p = 0; p < CODES_PARTS; p++) {
        base[p] = vf_all(0);
        most[p] = vi_all(0);
    }
    for (int64_t i = 0; i < keys.quads; i++) {
        vf step = vf_four(t->step + i * PAGE_QUAD), mid = vf_four(t->mid + i * PAGE_QUAD);
        for (int p = 0; p < CODES_PARTS; p++) {
            vf x = vf_load(q + i * CODES_LANES + p * WIDE), z = vf_mul(x, step);
            base[p] = vf_fma(x, mid, base[p]);
            most[p] = vi_magnitude_max(most[p], vi_bits(z));
            vf_store(t->z + i * CODES_LANES + p * WIDE, z);
        }
    }
    for (int p = 0; p < CODES_PARTS; p++) {
        base[p] = fours_sum(base[p]);
        most[p] = fours_max_i(most[p]);
    }
    whole_put(&t->x, t->z, keys.quads, most, keys.half);
    codes_products(&t->x, &keys, t->n, t->out);
    for (int64_t j = 0; j < KEYS / 16; j++) {
        vf s[4 * CODES_PARTS];
        tokens_turn(t->out, j, s);
        for (int i = 0; i < 4 * CODES_PARTS; i++) {
            int p = i % CODES_PARTS;
            vf unit = vf_each(t->x.unit + p * (WIDE / PAGE_QUAD));
            vf_store(t->p + j * 4 * CODES_LANES + i * WIDE, vf_fma(s[i], unit, base[p]));
        }
    }
}

/* Is the i-th quad's token seen, in the lanes of part p? */
CODES_INLINE vm tile_seen(const codes_tile *t, int64_t i, int p)
{
    vf at = vf_add(vf_all((float)(i * PAGE_QUAD)), vf_fours());
    return vm_within_f(vf_each(t->begin + p * (WIDE / PAGE_QUAD)), at,
                       vf_each(t->end + p * (WIDE / PAGE_QUAD)));
}

/* Logits become weights; max, total and keep follow. */
CODES_INLINE void tile_weigh(attend_work *w, codes_tile *t)
{
    float old4[CODES_TILE] = {0}, total4[CODES_TILE] = {0}, keep4[CODES_TILE];
    size_t bytes = (size_t)t->n * sizeof *old4;
    memcpy(old4, w->max + t->i, bytes);
    memcpy(total4, w->total + t->i, bytes);
    for (int p = 0; p < CODES_PARTS; p++) {
        int first = p * (WIDE / PAGE_QUAD);
        vf old = vf_each(old4 + first), max = old, sum = vf_all(0);
        for (int64_t i = 0; i < CODES_STEPS; i++) {
            float *at = t->p + i * CODES_LANES + p * WIDE;
            vf s = vf_load(at);
            if (!t->all) {
                s = vf_choose(tile_seen(t, i, p), s, vf_all(NOT_SEEN));
                vf_store(at, s);
            }
            max = vf_max(max, s);
        }
        max = fours_max(max);
        for (int64_t i = 0; i < CODES_STEPS; i++) {
            float *at = t->p + i * CODES_LANES + p * WIDE;
            vf e = codes_exp2(vf_sub(vf_load(at), max));
            if (!t->all)
                e = vf_choose(tile_seen(t, i, p), e, vf_all(0));
            vf_store(at, e);
            sum = vf_add(sum, e);
        }
        vf keep = codes_exp2(vf_sub(old, max));
        vf_each_put(old4 + first, max);
        vf_each_put(keep4 + first, keep);
        vf_each_put(total4 + first, vf_fma(keep, vf_each(total4 + first), fours_sum(sum)));
    }
    memcpy(w->max + t->i, old4, bytes);
    memcpy(w->total + t->i, total4, bytes);
    memcpy(w->keep + t->i, keep4, bytes);
}

/* Weights times the values of the group at column `col`. */
CODES_INLINE void tile_values(attend_work *w, codes_tile *t, int64_t col)
{
    const uint16_t *stored = (const uint16_t *)(const void *)w->value + col / PAGE_GROUP * KEYS;
    codes_operand values = values_operand(w, col, t->i == 0);
    float step[KEYS];
    vi most[CODES_PARTS];
    for (int p = 0; p < CODES_PARTS; p++)
        most[p] = vi_all(0);
    codes_steps(stored, KEYS, step);
    for (int64_t i = 0; i < CODES_STEPS; i++)
        for (int p = 0; p < CODES_PARTS; p++) {
            vf z =
                vf_mul(vf_load(t->p + i * CODES_LANES + p * WIDE), vf_four(step + i * PAGE_QUAD));
            if (!t->all) /* a step that is not seen may be NaN */
                z = vf_choose(tile_seen(t, i, p), z, vf_all(0));
            most[p] = vi_magnitude_max(most[p], vi_bits(z));
            vf_store(t->z + i * CODES_LANES + p * WIDE, z);
        }
    for (int p = 0; p < CODES_PARTS; p++)
        most[p] = fours_max_i(most[p]);
    whole_put(&t->x, t->z, CODES_STEPS, most, values.half);
    codes_products(&t->x, &values, t->n, t->out);
    for (int64_t g = 0; g < t->n; g++) {
        float *sum = w->sum + (t->i + g) * w->size.v + col;
        vf keep = vf_all(w->keep[t->i + g]), unit = vf_all(t->x.unit[g]);
        for (int64_t c = 0; c < values.lanes; c += WIDE)
            vf_store(sum + c, vf_fma(vf_load(t->out[g] + c), unit, vf_mul(vf_load(sum + c), keep)));
    }
}

/* What each of the tile's queries sees; nobody's see nothing. */
static void tile_spans(const attend_work *w, codes_tile *t)
{
    t->all = true;
    for (int64_t g = 0; g < CODES_TILE; g++) {
        span s = g < t->n ? seen_of(w, (t->i + g) / w->heads, t->at) : (span){0, KEYS};
        t->begin[g] = (float)s.begin;
        t->end[g] = (float)s.end;
        t->all = t->all && s.begin == 0 && s.end == KEYS;
    }
}

/* ---- a block ---- */

/* Queries [i, i + CODES_TILE) of the unit as tiles want them: they are kept as whole tiles, and copied where a run of rows
 * begins within one. */
static const float *tile_queries(const attend_work *w, int64_t i, int64_t n, float *room)
{
    int64_t quads = w->now->key.padded / PAGE_QUAD, each = quads * CODES_LANES;
    if (i % CODES_TILE == 0)
        return w->q_tiles + i / CODES_TILE * each;
    memset(room, 0, (size_t)each * sizeof *room);
    for (int64_t g = 0; g < n; g++) {
        const float *from = w->q_tiles + (i + g) / CODES_TILE * each + (i + g) % CODES_TILE * 4;
        for (int64_t j = 0; j < quads; j++)
            memcpy(room + j * CODES_LANES + g * 4, from + j * CODES_LANES, 4 * sizeof *room);
    }
    return room;
}

static void block_codes(attend_work *w, int64_t at, int64_t from, int64_t to)
{
    const page_part *key = &w->now->key;
    bool bent = w->k->scalar.attend.softcap != 0 || w->k->in[3];
    codes_tile t; /* large: what is used of it is written first */
    float room[ATTEND_CODES_MAX * CODES_TILE];
    codes_steps((const uint16_t *)(const void *)w->key, key->padded, t.step);
    codes_steps((const uint16_t *)(const void *)(w->key + key->mid), key->padded, t.mid);
    t.at = at;
    for (t.i = from * w->heads; t.i < to * w->heads; t.i += CODES_TILE) {
        int64_t left = to * w->heads - t.i;
        t.n = left < CODES_TILE ? left : CODES_TILE;
        tile_spans(w, &t);
        tile_logits(w, &t, tile_queries(w, t.i, t.n, room));
        if (bent)
            tile_bend(w, &t);
        tile_weigh(w, &t);
        for (int64_t col = 0; col < w->now->value.width; col += PAGE_GROUP)
            tile_values(w, &t, col);
    }
}

#endif /* CODES_INLINE */
#endif
