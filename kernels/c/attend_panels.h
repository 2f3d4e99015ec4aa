/* attend_panels.h - softmax attention by panels of queries: the loops that kernels for NEON and AVX-512 share. A unit
 * is some query heads of a head of the cell (eight at most) in as many rows as make about 64 queries.
 *
 * A panel is a few queries side by side, `lanes` of them, and so are their logits: [key][lane]. Products with keys
 * so need no sums across a vector, and softmax works on many queries at once.
 *
 *     dots    logits [key][lane] = sum over d, in an order of its own, of key [d] * queries [d][lane]
 *     weigh   weights = 2^(logit - largest), per lane; logits are in base 2
 *     adds    sum [lane][col] += weight [key][lane] * value [key][col], in the order of positions
 *
 * Positions are walked in blocks of 64 that begin at multiples of 64, merged one after the other as
 * attend_c.c says. Blocks belong to stretches of positions, each computed by itself and then merged in order: either
 * here, or, where heads are too few for all threads, in two steps, of which the first shares out stretches. Both
 * give the same bits. A row's bits depend on its position and what it sees, not on the pages, the other rows of the
 * call or the width of panels. A value that a row does not see is not multiplied for it, not even by 0: it may be a NaN.
 *
 * The file that includes this defines the functions declared under "what a processor brings". */
#ifndef WEFT_KERNELS_C_ATTEND_PANELS_H
#define WEFT_KERNELS_C_ATTEND_PANELS_H

#include <float.h>
#include <math.h>
#include "kernels/c/attend_panels_block.h"
#include "kernels/c/vec.h"
#include "kernels/c/vec_math.h"

static const float LOG2_E = 0x1.715476p0f;
static const float NOT_SEEN = -FLT_MAX; /* the logit of a position that a query does not see */

/* ---- what a processor brings ---- */

/* How many lanes a panel has for these queries, and whether they read keys and values as stored. */
static int64_t panel_lanes(const attend_work *w);
static bool panel_direct(const attend_work *w);
/* Query i, scaled, into w->q. */
static void query_put(const attend_work *w, int64_t i, const float *q, float scale);
/* Logits of keys [begin, end), or a few more, for panels [from, to). */
static void panel_dots(const attend_work *w, int64_t begin, int64_t end, int64_t from, int64_t to);
/* The logits of a panel become weights, 0 where `some` and the position is not seen; max, total and keep follow. */
static void panel_weigh(attend_work *w, int64_t panel, bool some);
/* keep * the sums of all lanes, and the values of positions [begin, end). */
static void panel_adds(const attend_work *w, int64_t begin, int64_t end, int64_t panel);
/* The values of positions [begin, end) to the sums of query i, whose weights are `lanes` apart. */
static void query_adds(const attend_work *w, int64_t begin, int64_t end, int64_t i);
/* The block at `at`, of which rows [from, to) see something, in codes; where want.codes (attend_codes.h). */
static void block_codes(attend_work *w, int64_t at, int64_t from, int64_t to);
/* n stored numbers, f16 or bf16, as floats. */
static void floats_read(const char *from, dtype type, int64_t n, float *to);

/* ---- softmax ---- */

/* 2^x for x <= 0, the same on every processor. */
static float power_of_2(float x)
{
    return vec_exp(x * 0x1.62e43p-1f);
}

/* Softcap and slopes: what is done to the products of a panel with keys [begin, end) of the block `at`. */
static void panel_logits(const attend_work *w, int64_t panel, int64_t at, int64_t begin,
                         int64_t end)
{
    const float *slopes = w->k->in[3]; /* [H] or NULL */
    float softcap = (float)w->k->scalar.attend.softcap, *s = w->p + panel * KEYS * w->lanes;
    if (softcap != 0)
        for (int64_t i = begin * w->lanes; i < end * w->lanes; i++)
            s[i] = softcap * vec_tanh(s[i] / softcap);
    for (int64_t l = 0; slopes && l < w->lanes; l++) {
        int64_t i = panel * w->lanes + l;
        i = i < w->queries ? i : w->queries - 1;
        float slope = slopes[w->first_head + i % w->heads];
        for (int64_t j = begin; j < end; j++)
            s[j * w->lanes + l] += slope * (float)(at + j - w->pos[i / w->heads]);
    }
    for (int64_t i = begin * w->lanes; i < end * w->lanes; i++)
        s[i] *= LOG2_E;
}

/* Before the first block of a stretch nothing has been seen. */
static void stretch_begin(attend_work *w)
{
    int64_t n = w->panels * w->lanes;
    for (int64_t i = 0; i < n; i++) {
        w->max[i] = -INFINITY;
        w->total[i] = 0;
    }
    memset(w->sum, 0, (size_t)(n * w->size.v) * sizeof *w->sum);
}

/* Before the first position the sink, a logit without a value, has been seen. */
static void state_begin(const float *sink, float *max, float *total, float *sum, int64_t v)
{
    *max = sink ? *sink * LOG2_E : -INFINITY;
    *total = *max == -INFINITY ? 0 : *max - *max + 1; /* NaN for what has no exp */
    memset(sum, 0, (size_t)v * sizeof *sum);
}

/* What a stretch has, merged into what those before it have. */
static void state_merge(float *max_all, float *total_all, float *sum_all, float max, float total,
                        const float *sum, int64_t v)
{
    if (!(max > NOT_SEEN && max < INFINITY)) {
        if (total == 0)
            return; /* it has seen nothing */
        total = NAN;
    }
    float most = *max_all > max ? *max_all : max;
    float old = power_of_2(*max_all - most), new = power_of_2(max - most);
    *max_all = most;
    *total_all = *total_all * old + total * new;
    for (int64_t i = 0; i < v; i++)
        sum_all[i] = sum_all[i] * old + sum[i] * new;
}

static void stretch_end(attend_work *w)
{
    for (int64_t i = 0; i < w->queries; i++)
        state_merge(&w->max_all[i], &w->total_all[i], w->sum_all + i * w->size.v, w->max[i],
                    w->total[i], w->sum + i * w->size.v, w->k->cell->v);
}

/* ---- a block ---- */

/* Which positions of the block at `at` a row sees: [begin, end), none where end <= begin. */
typedef struct {
    int64_t begin, end;
} span;

static span seen_of(const attend_work *w, int64_t row, int64_t at)
{
    int64_t begin = attend_first(w->k, w->pos[row]) - at, end = w->pos[row] + 1 - at;
    return (span){begin > 0 ? begin : 0, end < KEYS ? end : KEYS};
}

/* What each lane of some panels sees, where rows [from, to) see something; nobody's lanes see what the last query
 * does. True if that is everything. */
static bool spans_fill(attend_work *w, int64_t at, int64_t from, int64_t to, int64_t panel,
                       int64_t panel_end)
{
    span first = seen_of(w, from, at), last = seen_of(w, to - 1, at);
    int64_t lane_end = panel_end * w->lanes < w->queries ? panel_end * w->lanes : w->queries;
    bool all = from * w->heads == panel * w->lanes && to * w->heads == lane_end;
    if (all && last.begin == 0 && first.end == KEYS)
        return true;
    for (int64_t i = panel * w->lanes; i < panel_end * w->lanes; i++) {
        int64_t row = (i < w->queries ? i : w->queries - 1) / w->heads;
        span s = row >= from && row < to ? seen_of(w, row, at) : (span){0, 0};
        w->begin[i] = (int32_t)s.begin;
        w->end[i] = (int32_t)s.end;
    }
    return false;
}

/* The lanes of a panel see different positions: those that all see together, the others one by one. */
static void panel_adds_some(attend_work *w, int64_t panel)
{
    const int32_t *begin = w->begin + panel * w->lanes, *end = w->end + panel * w->lanes;
    int32_t from = begin[0], to = end[0];
    bool same = true;
    for (int64_t l = 1; l < w->lanes; l++) {
        same = same && begin[l] == begin[0] && end[l] == end[0];
        from = begin[l] > from ? begin[l] : from;
        to = end[l] < to ? end[l] : to;
    }
    to = from < to ? to : from;
    for (int64_t l = 0; !same && l < w->lanes; l++) {
        int64_t i = panel * w->lanes + l;
        for (int64_t j = 0; j < w->size.v; j++)
            w->sum[i * w->size.v + j] *= w->keep[i];
        w->keep[i] = 1;
        query_adds(w, begin[l], end[l] < from ? end[l] : from, i);
    }
    panel_adds(w, from, to, panel);
    for (int64_t l = 0; !same && l < w->lanes; l++)
        query_adds(w, begin[l] > to ? begin[l] : to, end[l], panel * w->lanes + l);
}

/* The block at `at`, of which rows [from, to) see something. */
static void block_merge(attend_work *w, int64_t at, int64_t from, int64_t to)
{
    int64_t first = from * w->heads / w->lanes;
    int64_t last = (to * w->heads + w->lanes - 1) / w->lanes;
    int64_t begin = seen_of(w, from, at).begin, end = seen_of(w, to - 1, at).end;
    bool whole = spans_fill(w, at, from, to, first, last);
    panel_dots(w, begin, end, first, last);
    for (int64_t i = first; i < last; i++) {
        if (w->k->scalar.attend.softcap != 0 || w->k->in[3])
            panel_logits(w, i, at, begin, end);
        panel_weigh(w, i, !whole);
    }
    for (int64_t i = first; i < last; i++)
        if (whole)
            panel_adds(w, 0, KEYS, i);
        else
            panel_adds_some(w, i);
}

/* ---- a unit ---- */

/* Query i as attend_codes.h wants it: [quad of columns][query][4] for each four queries, padded with zeros. */
static void tile_put(const attend_work *w, int64_t i, const float *q, float scale)
{
    int64_t each = 4 * w->size.codes;
    float *to = w->q_tiles + i / 4 * each + i % 4 * 4;
    for (int64_t c = 0; c < w->size.codes; c++)
        to[c / 4 * 16 + c % 4] = c < w->k->cell->k ? q[c] * scale : 0;
}

/* Queries as panels, and nothing seen but the sink. */
static void work_begin(attend_work *w, int64_t row)
{
    const float *sinks = w->k->in[2]; /* [H] or NULL */
    bool plain = w->k->scalar.attend.softcap == 0 && !w->k->in[3];
    float scale = (float)w->k->scalar.attend.scale * (plain ? LOG2_E : 1);
    memset(w->q, 0, (size_t)(attend_pad(w->queries) * w->k_width) * sizeof *w->q);
    for (int64_t i = 0; i < w->queries; i++) {
        int64_t head = w->first_head + i % w->heads;
        const float *q = row_in(w->k, 0, row + i / w->heads) + head * w->k->cell->k;
        query_put(w, i, q, scale);
        if (w->q_tiles)
            tile_put(w, i, q, scale);
        state_begin(sinks ? &sinks[head] : NULL, &w->max_all[i], &w->total_all[i],
                    w->sum_all + i * w->size.v, w->size.v);
    }
}

/* Blocks from `begin` to `stop`. */
static void work_run(attend_work *w, int64_t begin, int64_t stop)
{
    int64_t last = w->pos[w->rows - 1], from = 0;
    for (int64_t at = begin; at <= last && at < stop; at += KEYS) {
        int64_t to;
        while (from < w->rows && w->pos[from] < at)
            from++;
        for (to = from; to < w->rows && attend_first(w->k, w->pos[to]) < at + KEYS;)
            to++;
        if (from == to)
            continue;
        for (int64_t run = from; run < to;) {
            int64_t stop_run = run_end(w, at, run, to);
            block_hint(w, stop_run - 1, at / KEYS, attend_first(w->k, w->pos[0]) / KEYS,
                       last / KEYS);
            block_read(w, stop_run - 1, at, seen_of(w, run, at).begin,
                       seen_of(w, stop_run - 1, at).end);
            if (w->codes)
                block_codes(w, at, run, stop_run);
            else
                block_merge(w, at, run, stop_run);
            run = stop_run;
        }
    }
}

static void work_end(const attend_work *w, int64_t row)
{
    int64_t width = w->k->cell->v;
    for (int64_t i = 0; i < w->queries; i++) {
        float *out = row_out(w->k, 0, row + i / w->heads) + (w->first_head + i % w->heads) * width;
        const float *sum = w->sum_all + i * w->size.v;
        for (int64_t j = 0; j < width; j++)
            out[j] = sum[j] / w->total_all[i];
    }
}

/* What each query has of a stretch: nothing but its two numbers where it has seen none of it. */
static void states_put(const attend_work *w, int64_t row, int64_t stretch)
{
    int64_t each = attend_state_floats(w->k->cell->v);
    for (int64_t i = 0; i < w->queries; i++) {
        int64_t head = w->first_head + i % w->heads;
        float *to =
            row_out(w->k, 0, row + i / w->heads) + (head * ATTEND_STRETCHES + stretch) * each;
        to[0] = w->max[i];
        to[1] = w->total[i];
        if (to[0] > NOT_SEEN || to[1] != 0)
            memcpy(to + ATTEND_PAD, w->sum + i * w->size.v, (size_t)w->size.v * sizeof *to);
    }
}

static void states_put_none(const attend_work *w, int64_t row, int64_t n, int64_t stretch)
{
    int64_t each = attend_state_floats(w->k->cell->v);
    for (int64_t i = 0; i < n * w->heads; i++) {
        int64_t head = w->first_head + i % w->heads;
        float *to =
            row_out(w->k, 0, row + i / w->heads) + (head * ATTEND_STRETCHES + stretch) * each;
        to[0] = -INFINITY;
        to[1] = 0;
    }
}

static void rows_begin(attend_work *w, int64_t row, int64_t n)
{
    const kargs *k = w->k;
    const kcell *c = k->cell;
    int64_t pad = w->want.pad;
    w->row = row;
    w->seq = kbatch_at(k->batch, KBATCH_SEQ)[row];
    w->rows = n;
    w->queries = n * w->heads;
    w->lanes = panel_lanes(w);
    w->panels = (w->queries + w->lanes - 1) / w->lanes;
    w->pos = kbatch_at(k->batch, KBATCH_POS) + row;
    for (int i = 0; i < c->n_tier; i++)
        w->tier[i].pages = kcell_pages(c, i, k->batch, row);
    w->k_width = (c->k + pad - 1) / pad * pad;
    w->v_width = (c->v + pad - 1) / pad * pad;
    work_begin(w, row);
}

/* Stretch number i of the rows at hand. */
static void stretch_run(attend_work *w, int64_t i)
{
    int64_t len = attend_stretch(w->pos[0]), begin = i * len;
    int64_t first = attend_first(w->k, w->pos[0]) / KEYS * KEYS;
    stretch_begin(w);
    work_run(w, begin > first ? begin : first, begin + len);
}

/* Rows [row, row + n), of one sequence and with stretches of one length. */
static void rows_run(attend_work *w, int64_t row, int64_t n, int64_t stretch)
{
    const int32_t *pos = kbatch_at(w->k->batch, KBATCH_POS) + row;
    int64_t len = attend_stretch(pos[0]);
    int64_t first = attend_first(w->k, pos[0]) / len, last = pos[n - 1] / len;
    bool states = w->k->choice.attend.part == ATTEND_STATES;
    if (states && (stretch < first || stretch > last)) {
        states_put_none(w, row, n, stretch);
        return;
    }
    rows_begin(w, row, n);
    for (int64_t i = states ? stretch : first; i <= (states ? stretch : last); i++) {
        stretch_run(w, i);
        if (!states)
            stretch_end(w);
    }
    if (states)
        states_put(w, row, stretch);
    else
        work_end(w, row);
}

/* Query heads of rows [begin, end): what their stretches have, in order. */
static void states_merge(const kargs *k, float *sum, int64_t begin, int64_t end)
{
    const float *sinks = k->in[2];
    int64_t heads = k->size.attend.heads, v = k->cell->v, each = attend_state_floats(v);
    for (int64_t i = begin; i < end; i++) {
        const float *state = row_in(k, 0, i / heads) + i % heads * ATTEND_STRETCHES * each;
        float *out = row_out(k, 0, i / heads) + i % heads * v, max, total;
        state_begin(sinks ? &sinks[i % heads] : NULL, &max, &total, sum, v);
        for (int64_t j = 0; j < ATTEND_STRETCHES; j++, state += each)
            state_merge(&max, &total, sum, state[0], state[1], state + ATTEND_PAD, v);
        for (int64_t j = 0; j < v; j++)
            out[j] = sum[j] / total;
    }
}

/* Scratch: what each query has, then room for a block. */
static void work_divide(attend_work *w, float *mem)
{
    const attend_panels_size *s = &w->size;
    int64_t n = s->queries;
    w->q = mem;
    w->q_tiles = w->want.codes && s->codes ? w->q + n * s->k : NULL;
    w->p = w->q + n * (s->k + s->codes);
    w->sum = w->p + n * KEYS;
    w->sum_all = w->sum + n * s->v;
    w->key_mem = w->sum_all + n * s->v;
    w->value_mem = w->key_mem + KEYS * s->k;
    w->max = w->value_mem + KEYS * s->v;
    w->total = w->max + n;
    w->keep = w->total + n;
    w->max_all = w->keep + n;
    w->total_all = w->max_all + n;
    w->begin = (int32_t *)(void *)(w->total_all + n);
    w->end = w->begin + n;
}

/* Rows of a unit from `row` on that go together. */
static int64_t rows_alike(const kbatch *b, int64_t row, int64_t end)
{
    const int32_t *seq = kbatch_at(b, KBATCH_SEQ), *pos = kbatch_at(b, KBATCH_POS);
    int64_t same = row + 1;
    while (same < end && seq[same] == seq[row] &&
           attend_stretch(pos[same]) == attend_stretch(pos[row]))
        same++;
    return same;
}

static void unit_run(attend_work *w, int64_t i, int64_t stretch, bool more)
{
    const kargs *k = w->k;
    int64_t part = i % w->size.parts, block = i / w->size.parts / k->cell->heads;
    int64_t first = part * w->size.heads, left = w->size.group - first;
    w->head = i / w->size.parts % k->cell->heads;
    w->first_head = w->head * w->size.group + first;
    w->heads = left < w->size.heads ? left : w->size.heads;
    int64_t row = block * w->size.rows, end = row + w->size.rows;
    end = end < k->size.attend.rows ? end : k->size.attend.rows;
    bool next = more && w->size.parts == 1 && w->head + 1 < k->cell->heads;
    while (row < end && w->heads > 0) {
        int64_t same = rows_alike(k->batch, row, end);
        w->next_head = next && row == block * w->size.rows && same == end;
        rows_run(w, row, same - row, stretch);
        row = same;
    }
}

static inline void attend_units(attend_traits want, const kargs *k, const kthread *t, int64_t begin,
                                int64_t end)
{
    attend_work w = {.k = k, .size = attend_panels_size_of(k, want.many), .want = want};
    bool states = k->choice.attend.part == ATTEND_STATES;
    if (k->choice.attend.part == ATTEND_MERGE) {
        states_merge(k, t->scratch, begin, end);
        return;
    }
    work_divide(&w, t->scratch);
    tiers_begin(&w);
    for (int64_t i = begin; i < end; i++)
        if (states)
            unit_run(&w, i / ATTEND_STRETCHES, i % ATTEND_STRETCHES, false);
        else
            unit_run(&w, i, 0, i + 1 < end);
}

#endif
