/* attend_cuda.cuh - softmax attention; which positions a row sees, and what is done to a logit, is in ref/attend_ref.c.
 *
 * A unit is some query heads that share a head of the cell, of one row or, where a call has many, of several. Positions are
 * walked in blocks of CUDA_KEYS, which begin at multiples of that: a block's keys and values become floats in scratch, from
 * the tier in which the row sees them; a warp has a query at a time and its lanes the positions, whose logits become weights;
 * then threads add up the values' columns. Blocks belong to stretches of positions, each computed by itself and
 * then merged in order: either here, or in two steps, of which the first shares out stretches, so that one row keeps a
 * whole card busy. Both give the same bits, and those of a row do not depend on the others of its unit.
 *
 * The rows of this call are in the cell already. out overlaps no input. */
#ifndef WEFT_KERNELS_CUDA_ATTEND_CUDA_CUH
#define WEFT_KERNELS_CUDA_ATTEND_CUDA_CUH

#include <math.h>
#include "kernels/cuda/attend_cuda_size.h"
#include "kernels/cuda/cell_cuda.cuh"
#include "kernels/cuda/weights_cuda.cuh"

/* Where a position of the block at hand is. */
struct position_place {
    const char *key, *value; /* the head's parts of its page */
    int32_t tok, tier;
    int32_t pad[2];
};
static_assert(sizeof(position_place) == 8 * sizeof(float), "cuda_attend_size.position");

/* The work on rows [row, row + rows) of one sequence, with stretches of one length: queries are [rows, heads]. */
struct attend_work {
    const kargs *k;
    cuda_attend_size size;
    int64_t head, first_head, heads; /* of the cell; of the query heads, and how many */
    int64_t row, rows, seq;
    const int32_t *pos;    /* [rows] */
    position_place *place; /* [CUDA_KEYS] */
    float *key, *value;    /* [CUDA_KEYS, size.k], [CUDA_KEYS, size.v]; of a latent cell the same */
    float *q;              /* [queries, size.k] */
    float *p;              /* [queries, CUDA_KEYS]: weights */
    float *sum, *sum_all;  /* [queries, size.v]: of a stretch, of all before it */
    float *max, *total, *keep, *max_all, *total_all; /* [queries] */
    int64_t v_pitch;
};

static __device__ inline int64_t queries_of(const attend_work &w)
{
    return w.rows * w.heads;
}

static __device__ inline bool is_one_row(const kargs *k)
{
    return k->size.attend.rows == 1;
}

/* A batch has as many rows as the step, so that no load waits for their count. */
static __device__ inline int row_pos(const kargs *k, int row)
{
    return k->batch->data[KBATCH_POS * k->size.attend.rows + row];
}

/* The first position that a query at `pos` sees. */
static __device__ SHAPE_FN int64_t first_seen(const kargs *k, int64_t pos)
{
    int64_t window = k->size.attend.window, chunk = k->size.attend.chunk, first = 0;
    if (window > 0 && pos - window + 1 > first)
        first = pos - window + 1;
    if (chunk > 0 && pos / chunk * chunk > first)
        first = pos / chunk * chunk;
    return first;
}

/* Scratch: a block's positions, then what each query has. */
static __device__ void work_divide(attend_work &w, void *scratch)
{
    const cuda_attend_size &s = w.size;
    int64_t n = s.rows * s.heads;
    bool latent = w.k->cell->latent;
    w.place = (position_place *)scratch;
    w.key = (float *)(w.place + CUDA_KEYS);
    w.value = latent ? w.key : w.key + CUDA_KEYS * s.k;
    w.v_pitch = latent ? s.k : s.v;
    w.q = latent ? w.key + CUDA_KEYS * s.k : w.value + CUDA_KEYS * s.v;
    w.p = w.q + n * s.k;
    w.sum = w.p + n * CUDA_KEYS;
    w.sum_all = w.sum + n * s.v;
    w.max = w.sum_all + n * s.v;
    w.total = w.max + n;
    w.keep = w.total + n;
    w.max_all = w.keep + n;
    w.total_all = w.max_all + n;
}

/* ---- a block of positions as floats ---- */

static __device__ void places_find(const attend_work &w, int64_t begin, int64_t n)
{
    const kcell *c = w.k->cell;
    for (int64_t i = threadIdx.x; i < n; i += block_threads()) {
        int64_t e = (begin + i) / c->page_tok;
        int tier = tier_of(c, w.k->batch, w.seq, w.pos[0], e);
        int32_t page = kbatch_pages(w.k->batch, c->table + tier, w.seq)[e];
        w.place[i].key = key_at(c, tier, page, w.head);
        w.place[i].value = c->latent ? NULL : value_at(c, tier, page, w.head);
        w.place[i].tok = (int32_t)(begin + i - e * c->page_tok);
        w.place[i].tier = tier;
    }
}

/* Eight numbers of 16 bits at a time. */
static __device__ void halves_read(kform form, const char *from, float *to)
{
    bytes16 all = *(const bytes16 *)from;
    for (int i = 0; i < EIGHT; i++) {
        uint16_t h = (uint16_t)(all.w[i / 2] >> 16 * (i % 2));
        to[i] = form == KFORM_F16 ? from_f16(h) : from_bf16(h);
    }
}

/* The keys or the values of n positions; `pad` columns of each, 0 from the width on. Lanes follow on each other in memory:
 * along columns, but for keys of codes, along tokens. */
static __device__ void positions_read(const attend_work &w, page_kind kind, int64_t n, int64_t pad,
                                      int64_t pitch, float *to)
{
    const kcell *c = w.k->cell;
    bool key = kind == PAGE_KEYS;
    page_part part = key ? key_part(c, w.place[0].tier) : value_part(c, w.place[0].tier);
    bool halves = (part.form == KFORM_F16 || part.form == KFORM_BF16) && part.width % EIGHT == 0 &&
                  c->n_tier == 1 && at_16(c->tier[0].base) && c->tier[0].page_bytes % 16 == 0 &&
                  key_part(c, 0).bytes % 16 == 0;
    if (halves) {
        int64_t eights = part.width / EIGHT;
        for (int64_t at = threadIdx.x; at < n * eights; at += block_threads()) {
            const position_place &p = w.place[at / eights];
            int64_t col = at % eights * EIGHT;
            halves_read(part.form, (key ? p.key : p.value) + page_row(&part, p.tok) + 2 * col,
                        to + at / eights * pitch + col);
        }
        return; /* a width of whole eights has no padding */
    }
    bool along_tokens = key && !kform_is_float(part.form);
    for (int64_t at = threadIdx.x; at < n * pad; at += block_threads()) {
        int64_t i = along_tokens ? at % n : at / pad, col = along_tokens ? at / n : at % pad;
        const position_place &p = w.place[i];
        if (c->n_tier > 1)
            part = key ? key_part(c, p.tier) : value_part(c, p.tier);
        to[i * pitch + col] =
            col < part.width ? page_number(part, key ? p.key : p.value, p.tok, col) : 0;
    }
}

/* Positions [begin, begin + n). */
static __device__ void block_read(const attend_work &w, int64_t begin, int64_t n)
{
    const kcell *c = w.k->cell;
    block_sync(); /* the block before has been used */
    places_find(w, begin, n);
    block_sync();
    positions_read(w, PAGE_KEYS, n, (c->k + 3) / 4 * 4, w.size.k, w.key);
    if (!c->latent)
        positions_read(w, PAGE_VALUES, n, c->v, w.size.v, w.value);
    block_sync();
}

/* ---- its weights ---- */

static __device__ float logit(const attend_work &w, int64_t query, const float *key, int64_t pos)
{
    const kargs *k = w.k;
    const float *slopes = (const float *)k->in[3]; /* [H] or NULL */
    const float *q = w.q + query * w.size.k;
    float softcap = (float)k->scalar.attend.softcap, s = 0;
    for (int64_t c = 0; c < k->cell->k; c += 4) {
        bytes16 a = *(const bytes16 *)(q + c), b = *(const bytes16 *)(key + c);
        for (int i = 0; i < 4; i++)
            s = mad(float_of(a.w[i]), float_of(b.w[i]), s);
    }
    s *= (float)k->scalar.attend.scale;
    if (softcap != 0)
        s = softcap * tanhf(s / softcap);
    if (slopes)
        s += slopes[w.first_head + query % w.heads] * (float)(pos - w.pos[query / w.heads]);
    return s;
}

/* Of a query by a warp: what it sees of positions [begin, begin + n), a lane each. */
static __device__ void weigh(const attend_work &w, int64_t query, int64_t begin, int64_t n)
{
    int64_t at = begin + lane_index(), pos = w.pos[query / w.heads];
    bool seen = lane_index() < n && at <= pos && at >= first_seen(w.k, pos);
    float s = seen ? logit(w, query, w.key + lane_index() * w.size.k, at) : -INFINITY;
    float old = w.max[query], most = warp_max(s);
    bool any = __ballot_sync(ALL_LANES, seen) != 0;
    most = most > old ? most : old;
    float weight = seen ? expf(s - most) : 0, all = warp_sum(weight);
    w.p[query * CUDA_KEYS + lane_index()] = weight;
    __syncwarp();
    if (lane_index() == 0 && any) {
        float keep = most == old ? 1 : expf(old - most);
        w.keep[query] = keep;
        w.total[query] = w.total[query] * keep + all;
        w.max[query] = most;
    } else if (lane_index() == 0) {
        w.keep[query] = 1;
    }
}

/* ---- its values ---- */

/* Only what a query sees is looked at: what lies elsewhere may be no number. */
static __device__ void values_add(const attend_work &w, int64_t begin, int64_t n)
{
    int64_t v = w.k->cell->v;
    for (int64_t at = threadIdx.x; at < queries_of(w) * v; at += block_threads()) {
        int64_t query = at / v, col = at % v, pos = w.pos[query / w.heads];
        int64_t from = first_seen(w.k, pos) - begin, to = pos + 1 - begin;
        const float *p = w.p + query * CUDA_KEYS, *value = w.value + col;
        float sum = w.sum[query * w.size.v + col] * w.keep[query];
        for (int64_t i = from > 0 ? from : 0; i < least(to, n); i++)
            sum = mad(p[i], value[i * w.v_pitch], sum);
        w.sum[query * w.size.v + col] = sum;
    }
}

/* ---- stretches ---- */

static __device__ ONE_COPY void stretch_run(const attend_work &w, int64_t begin, int64_t end)
{
    int64_t n = queries_of(w), last = w.pos[w.rows - 1] + 1;
    int64_t first = first_seen(w.k, w.pos[0]) / CUDA_KEYS * CUDA_KEYS;
    for (int64_t i = threadIdx.x; i < n; i += block_threads()) {
        w.max[i] = -INFINITY;
        w.total[i] = 0;
    }
    for (int64_t i = threadIdx.x; i < n * w.size.v; i += block_threads())
        w.sum[i] = 0;
    end = least(end, last);
    for (int64_t at = begin > first ? begin : first; at < end; at += CUDA_KEYS) {
        /* The first rows of the block may be nobody's, and not there any more. */
        int64_t from = first_seen(w.k, w.pos[0]), skip = from > at ? from - at : 0;
        int64_t some = least(end - at, CUDA_KEYS);
        block_read(w, at + skip, some - skip);
        for (int64_t query = warp_index(); query < n; query += warp_count())
            weigh(w, query, at + skip, some - skip);
        block_sync();
        values_add(w, at + skip, some - skip);
    }
    block_sync();
}

static const float LOG2_E = 1.44269504f, LN_2 = 0.693147181f;

/* 2 to the power of x, which is 0 or less; 0 for less than floats have. */
static __device__ inline float two_to(float x)
{
#ifdef __CUDACC__
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
#else
    return exp2f(x);
#endif
}

/* exp(x) of such an x: a factor; x * log2(e) is rounded. */
static __device__ inline float state_exp(float x)
{
    return two_to(x * LOG2_E);
}

/* What a stretch has, merged into what those before it have: factors for the two sums, by any thread. total 0: it has seen
 * nothing. */
struct merge_factors {
    float old_by, new_by, max, total;
};

static __device__ merge_factors merge_of(float max_all, float total_all, float max, float total)
{
    if (total == 0)
        return merge_factors{1, 0, max_all, total_all};
    float most = max_all > max ? max_all : max;
    float old_by = state_exp(max_all - most), new_by = state_exp(max - most);
    return merge_factors{old_by, new_by, most, mad(total_all, old_by, total * new_by)};
}

/* What is multiplied by nothing may be no number. */
static __device__ inline float merge_sum(float old_by, float new_by, float all, float one)
{
    return new_by == 0 ? all : mad(all, old_by, one * new_by);
}

/* Before the first position the sink, a logit without a value, has been seen. */
static __device__ SHAPE_FN void state_begin(const kargs *k, int64_t head, float *max, float *total)
{
    const float *sinks = (const float *)k->in[2]; /* [H] or NULL */
    *max = sinks ? sinks[head] : -INFINITY;
    *total = *max == -INFINITY ? 0 : *max - *max + 1; /* NaN for what has no exp */
}

static __device__ void all_begin(const attend_work &w)
{
    for (int64_t i = threadIdx.x; i < queries_of(w); i += block_threads())
        state_begin(w.k, w.first_head + i % w.heads, &w.max_all[i], &w.total_all[i]);
    for (int64_t i = threadIdx.x; i < queries_of(w) * w.size.v; i += block_threads())
        w.sum_all[i] = 0;
    block_sync();
}

static __device__ void stretch_merge(const attend_work &w)
{
    int64_t v = w.k->cell->v, n = queries_of(w);
    for (int64_t at = threadIdx.x; at < n * v; at += block_threads()) {
        int64_t i = at / v, col = i * w.size.v + at % v;
        merge_factors f = merge_of(w.max_all[i], w.total_all[i], w.max[i], w.total[i]);
        w.sum_all[col] = merge_sum(f.old_by, f.new_by, w.sum_all[col], w.sum[col]);
    }
    block_sync();
    for (int64_t i = threadIdx.x; i < n; i += block_threads()) {
        merge_factors f = merge_of(w.max_all[i], w.total_all[i], w.max[i], w.total[i]);
        w.max_all[i] = f.max;
        w.total_all[i] = f.total;
    }
    block_sync();
}

/* What query i has of a stretch, as the first of two steps leaves it. */
static __device__ float *state_at(const attend_work &w, int64_t i, int64_t stretch)
{
    int64_t head = w.first_head + i % w.heads;
    return row_out(w.k, 0, w.row + i / w.heads) +
           (head * ATTEND_STRETCHES + stretch) * attend_state_floats(w.k->cell->v);
}

static __device__ void states_put(const attend_work &w, int64_t stretch)
{
    int64_t v = w.k->cell->v, n = queries_of(w);
    for (int64_t i = threadIdx.x; i < n; i += block_threads()) {
        float *to = state_at(w, i, stretch);
        to[0] = w.max[i];
        to[1] = w.total[i];
    }
    for (int64_t at = threadIdx.x; at < n * v; at += block_threads())
        state_at(w, at / v, stretch)[ATTEND_PAD + at % v] = w.sum[at / v * w.size.v + at % v];
}

/* ---- the second of two steps ----
 *
 * A row's position says which stretches have something: of others nothing was written. Since each load takes long, all that
 * can be are under way before the first is waited for: largest logits and sums of weights of all stretches, and the values of
 * the first ones, whether they are there or not. */

/* How a stretch of a query head is merged: factors for what was seen before it and for it, and what its weights add. */
struct merge_step {
    float old_by, new_by, total, pad;
};
static_assert(sizeof(merge_step) * ATTEND_STRETCHES == CUDA_MERGE_BYTES, "CUDA_MERGE_BYTES");

enum {
    MERGE_PAIRS = 2, /* of query heads and stretches, of a thread */
    MERGE_LOADS = 4, /* stretches whose values are loaded together, */
    MERGE_BLIND = 2, /* and those that are before it is known how many there are; */
    MERGE_MANY = 8,  /* of those of four columns, where there are many */
};

/* The row of query head i, counted over rows. */
static __device__ SHAPE_FN int merge_row(const kargs *k, int i)
{
    return is_one_row(k) ? 0 : (int)((uint32_t)i / (uint32_t)k->size.attend.heads);
}

static __device__ SHAPE_FN int merge_head(const kargs *k, int i)
{
    return i - merge_row(k, i) * (int)k->size.attend.heads;
}

/* Its states. */
static __device__ SHAPE_FN const float *merge_states(const kargs *k, int i)
{
    return row_in(k, 0, merge_row(k, i)) +
           merge_head(k, i) * ATTEND_STRETCHES * (int)attend_state_floats(k->cell->v);
}

/* The stretches of a row that have something. */
struct stretch_range {
    int first, last;
};

static __device__ SHAPE_FN stretch_range stretches_of(const kargs *k, int row)
{
    const int pos = row_pos(k, row), len = cuda_stretch_len(k->cell, pos);
    return stretch_range{(int)((uint32_t)first_seen(k, pos) / (uint32_t)len),
                         (int)((uint32_t)pos / (uint32_t)len)};
}

/* Of a stretch of query head i, by a lane; those of a head are ATTEND_STRETCHES lanes. */
static __device__ SHAPE_FN merge_step merge_step_of(const kargs *k, int i, stretch_range there,
                                                    float max, float total)
{
    const int j = lane_index() % ATTEND_STRETCHES;
    float begin_max, begin_total;
    state_begin(k, merge_head(k, i), &begin_max, &begin_total);
    total = j < there.first || j > there.last ? 0 : total;
    float most = total == 0 ? -INFINITY : max;
    UNROLL
    for (int step = 1; step < ATTEND_STRETCHES; step *= 2) {
        const float y = __shfl_up_sync(ALL_LANES, most, step);
        most = j >= step && y > most ? y : most;
    }
    most = begin_max > most ? begin_max : most;
    float before = __shfl_up_sync(ALL_LANES, most, 1);
    before = j == 0 ? begin_max : before;
    const float old_by = state_exp(before - most), new_by = state_exp(max - most);
    return total == 0 ? merge_step{1, 0, 0, 0} : merge_step{old_by, new_by, total * new_by, 0};
}
static_assert(WARP % ATTEND_STRETCHES == 0, "heads of a warp");

/* Eight columns of a query head, of a thread. */
struct merge_part {
    const float *from; /* of stretch 0 */
    float total, sum[EIGHT];
};

/* Values of stretches j + first to before j + end, as far as there are `n`. */
static __device__ SHAPE_FN void merge_load(const merge_part &m, int j, int each, int first, int end,
                                           int n, bytes16 (*x)[2])
{
    UNROLL
    for (int a = first; a < end; a++)
        if (j + a < n) {
            x[a][0] = *(const bytes16 *)(m.from + (j + a) * each);
            x[a][1] = *(const bytes16 *)(m.from + (j + a) * each + 4);
        }
}

/* The first n of them, or all; before the first that is there some add nothing. */
static __device__ SHAPE_FN void merge_add(merge_part &m, int n, const merge_step *steps,
                                          const bytes16 (*x)[2])
{
    UNROLL
    for (int a = 0; a < MERGE_LOADS; a++) {
        if (a >= n)
            break;
        const bytes16 s = *(const bytes16 *)(steps + a);
        const float old_by = float_of(s.w[0]), new_by = float_of(s.w[1]);
        m.total = mad(m.total, old_by, float_of(s.w[2])); /* which may be no number */
        if (new_by == 0)
            continue;
        UNROLL
        for (int i = 0; i < EIGHT; i++)
            m.sum[i] = merge_sum(old_by, new_by, m.sum[i], float_of(x[a][i / 4].w[i % 4]));
    }
}

/* n of the columns, to `to`. */
static __device__ SHAPE_FN void merge_put(const merge_part &m, float *to, int n)
{
    const float by = 1 / m.total;
    bytes16 all[2];
    UNROLL
    for (int i = 0; i < EIGHT; i++)
        all[i / 4].w[i % 4] = bits_of(m.sum[i] * by);
    if (n >= EIGHT && at_16(to)) {
        *(bytes16 *)to = all[0];
        *(bytes16 *)(to + 4) = all[1];
        return;
    }
    UNROLL
    for (int i = 0; i < EIGHT; i++)
        if (i < n)
            to[i] = float_of(all[i / 4].w[i % 4]);
}

/* The largest logit and the sum of weights of a stretch. */
struct alignas(8) merge_pair {
    float max, total;
};

/* How the stretches of n query heads are merged, from what the threads have of them. */
static __device__ SHAPE_FN void steps_put(const kargs *k, int begin, int n, stretch_range one,
                                          const merge_pair *pair, merge_step *steps)
{
    UNROLLED(1)
    for (int e = 0; e < MERGE_PAIRS; e++) {
        const uint32_t at = threadIdx.x + (uint32_t)(e * block_threads());
        const bool used = at < (uint32_t)n * ATTEND_STRETCHES;
        const int i = begin + (used ? (int)(at / ATTEND_STRETCHES) : 0);
        const stretch_range there = is_one_row(k) ? one : stretches_of(k, merge_row(k, i));
        const merge_pair p = e == 0 ? pair[0] : pair[1];
        const merge_step s = merge_step_of(k, i, there, p.max, p.total);
        const bytes16 all = {{bits_of(s.old_by), bits_of(s.new_by), bits_of(s.total), 0u}};
        if (used)
            *(bytes16 *)(steps + at) = all;
    }
    block_sync();
}

/* The same of many stretches of one row, where a thread has no more than four columns: twice as many of these under way, since a
 * round of loads takes longer than merging what came. */
static __device__ SHAPE_FN void many_merge(const kargs *k, int begin, int n, stretch_range there,
                                           const merge_pair *pair, merge_step *steps)
{
    const int v = (int)k->cell->v, each = (int)attend_state_floats(v);
    const bool used = (int)threadIdx.x < n * (v / 4);
    const int i = used ? (int)threadIdx.x / (v / 4) : 0, col = (int)threadIdx.x % (v / 4) * 4;
    const float *from = merge_states(k, begin + i) + ATTEND_PAD + col;
    bytes16 x[MERGE_MANY] = {}, sum;
    float unused, total, one[4] = {0, 0, 0, 0};
    state_begin(k, begin + i, &unused, &total);
    UNROLLED(1)
    for (int j = 0; j <= there.last; j += MERGE_MANY) {
        UNROLL
        for (int a = 0; a < MERGE_MANY; a++)
            if (j + a <= there.last)
                x[a] = *(const bytes16 *)(from + (j + a) * each);
        if (j == 0)
            steps_put(k, begin, n, there, pair, steps);
        UNROLL
        for (int a = 0; a < MERGE_MANY; a++) {
            if (j + a > there.last)
                break;
            const bytes16 s = *(const bytes16 *)(steps + i * ATTEND_STRETCHES + j + a);
            const float old_by = float_of(s.w[0]), new_by = float_of(s.w[1]);
            total = mad(total, old_by, float_of(s.w[2]));
            UNROLL
            for (int e = 0; e < 4; e++)
                one[e] = merge_sum(old_by, new_by, one[e], float_of(x[a].w[e]));
        }
    }
    const float by = 1 / total;
    UNROLL
    for (int e = 0; e < 4; e++)
        sum.w[e] = bits_of(one[e] * by);
    if (used)
        *(bytes16 *)(row_out(k, 0, 0) + (begin + i) * v + col) = sum;
}

/* n query heads from `begin` on, counted over rows; states lie at multiples of 16 bytes. */
static __device__ SHAPE_FN void heads_merge(const kargs *k, int begin, int n, merge_step *steps)
{
    const int v = (int)k->cell->v, each = (int)attend_state_floats(v);
    const uint32_t eights = (uint32_t)(v + EIGHT - 1) / EIGHT, all = (uint32_t)n * eights;
    merge_pair pair[MERGE_PAIRS]; /* of heads that are not there those of the first */
    UNROLL
    for (int e = 0; e < MERGE_PAIRS; e++) {
        const int at = (int)threadIdx.x + e * block_threads();
        const int i = at < n * ATTEND_STRETCHES ? at / ATTEND_STRETCHES : 0;
        pair[e] = *(const merge_pair *)(merge_states(k, begin + i) + at % ATTEND_STRETCHES * each);
    }
    if (is_one_row(k) && v % 4 == 0 && n * (v / 4) <= block_threads() && at_16(row_out(k, 0, 0))) {
        const stretch_range there = stretches_of(k, 0);
        if (there.last >= MERGE_LOADS) {
            many_merge(k, begin, n, there, pair, steps);
            return;
        }
    }
    UNROLLED(1)
    for (uint32_t base = 0; base < all; base += (uint32_t)block_threads()) {
        const uint32_t at = base + threadIdx.x;
        const int i = at < all ? (int)(at / eights) : 0;
        const int col = (int)(at % eights) * EIGHT, head = merge_head(k, begin + i);
        const int row = merge_row(k, begin + i);
        bytes16 x[MERGE_LOADS][2] = {};
        merge_part m = {};
        m.from = merge_states(k, begin + i) + ATTEND_PAD + col;
        m.total = m.from[1 - ATTEND_PAD - col]; /* of the first stretch */
        merge_load(m, 0, each, 0, MERGE_BLIND, ATTEND_STRETCHES, x);
        const stretch_range there = stretches_of(k, row);
        if (is_one_row(k) && there.last == 0 && !k->in[2]) { /* as the rest would have it */
            UNROLL
            for (int e = 0; e < EIGHT; e++)
                m.sum[e] = float_of(x[0][e / 4].w[e % 4]) + 0.0f; /* no -0 */
        } else {
            merge_load(m, 0, each, MERGE_BLIND, MERGE_LOADS, there.last + 1, x);
            if (base == 0)
                steps_put(k, begin, n, there, pair, steps);
            float unused;
            state_begin(k, head, &unused, &m.total);
            UNROLLED(1)
            for (int j = 0;;) {
                merge_add(m, there.last + 1 - j, steps + i * ATTEND_STRETCHES + j, x);
                j += MERGE_LOADS;
                if (j > there.last)
                    break;
                merge_load(m, j, each, 0, MERGE_LOADS, there.last + 1, x);
            }
        }
        if (at < all)
            merge_put(m, row_out(k, 0, row) + head * v + col, v - col);
    }
}
static_assert(ATTEND_STRETCHES % MERGE_LOADS == 0 && MERGE_PAIRS == 2, "rounds, steps_put");

static __device__ SHAPE_FN void states_merge(const kargs *k, const kthread *t, int64_t begin,
                                             int64_t end)
{
    const int room = block_threads() * MERGE_PAIRS / ATTEND_STRETCHES;
    const int most = room < CUDA_MERGE_HEADS ? room : CUDA_MERGE_HEADS;
    UNROLLED(1)
    for (int i = (int)begin; i < (int)end; i += most) {
        if (i > (int)begin)
            block_sync(); /* steps of the heads before have been used */
        heads_merge(k, i, (int)end - i < most ? (int)end - i : most, (merge_step *)t->scratch);
    }
}

/* ---- units ---- */

static __device__ void out_put(const attend_work &w)
{
    int64_t v = w.k->cell->v;
    for (int64_t at = threadIdx.x; at < queries_of(w) * v; at += block_threads()) {
        int64_t i = at / v;
        row_out(w.k, 0, w.row + i / w.heads)[(w.first_head + i % w.heads) * v + at % v] =
            w.sum_all[i * w.size.v + at % v] * (1 / w.total_all[i]);
    }
}

static __device__ void queries_read(const attend_work &w)
{
    int64_t width = w.k->cell->k, pad = (width + 3) / 4 * 4;
    block_sync(); /* what was there has been used */
    for (int64_t at = threadIdx.x; at < queries_of(w) * pad; at += block_threads()) {
        int64_t i = at / pad, col = at % pad;
        const float *q = row_in(w.k, 0, w.row + i / w.heads) + (w.first_head + i % w.heads) * width;
        w.q[i * w.size.k + col] = col < width ? q[col] : 0;
    }
}

/* Rows that go together. `stretch`: the one that is wanted, where the states are to be left. */
static __device__ ONE_COPY void rows_run(const attend_work &w, int64_t stretch)
{
    bool states = w.k->choice.attend.part == ATTEND_STATES;
    int len = cuda_stretch_len(w.k->cell, w.pos[0]);
    int64_t first = first_seen(w.k, w.pos[0]) / len, last = w.pos[w.rows - 1] / len;
    if (states && (stretch < first || stretch > last))
        return;
    queries_read(w);
    if (states) {
        stretch_run(w, stretch * len, (stretch + 1) * len);
        states_put(w, stretch);
        return;
    }
    all_begin(w);
    for (int64_t i = first; i <= last; i++) {
        stretch_run(w, i * len, (i + 1) * len);
        stretch_merge(w);
    }
    out_put(w);
}

/* Rows from `row` on, before `end`, that go together: of one sequence, with stretches of one length, and each page in the
 * same tier for all. */
static __device__ int64_t rows_alike(const kargs *k, int64_t row, int64_t end)
{
    const int32_t *seq = kbatch_at(k->batch, KBATCH_SEQ), *pos = kbatch_at(k->batch, KBATCH_POS);
    int64_t same = row + 1;
    while (k->cell->n_tier == 1 && same < end && seq[same] == seq[row] &&
           cuda_stretch_len(k->cell, pos[same]) == cuda_stretch_len(k->cell, pos[row]))
        same++;
    return same - row;
}

static __device__ void unit_run(attend_work &w, int64_t i, int64_t stretch)
{
    const kargs *k = w.k;
    const cuda_attend_size &s = w.size;
    int64_t part = i % s.parts, block = i / s.parts / k->cell->heads;
    int64_t left = s.group - part * s.heads;
    w.head = i / s.parts % k->cell->heads;
    w.first_head = w.head * s.group + part * s.heads;
    w.heads = left < s.heads ? left : s.heads;
    int64_t end = (block + 1) * s.rows;
    end = least(end, k->size.attend.rows);
    for (w.row = block * s.rows; w.row < end && w.heads > 0; w.row += w.rows) {
        w.rows = rows_alike(k, w.row, end);
        w.seq = kbatch_at(k->batch, KBATCH_SEQ)[w.row];
        w.pos = kbatch_at(k->batch, KBATCH_POS) + w.row;
        rows_run(w, stretch);
    }
}

static __device__ ONE_COPY void k_attend_cuda(const kargs *k, const kthread *t, int64_t begin,
                                              int64_t end)
{
    if (k->choice.attend.part == ATTEND_MERGE) {
        states_merge(k, t, begin, end);
        return;
    }
    attend_work w = {};
    w.k = k;
    w.size = cuda_attend_size_of(k);
    work_divide(w, t->scratch);
    bool states = k->choice.attend.part == ATTEND_STATES;
    for (int64_t i = begin; i < end; i++)
        unit_run(w, states ? i / ATTEND_STRETCHES : i, states ? i % ATTEND_STRETCHES : 0);
}

#endif
