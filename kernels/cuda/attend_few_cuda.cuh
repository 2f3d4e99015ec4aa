/* attend_few_cuda.cuh - softmax attention of a few rows, many of which are of sequences of their own.
 *
 * A warp walks along positions by itself, so that nobody waits: with several query heads that share a head of the cell, so
 * that a key is read once for all of them. A row of 16-bit numbers is 16 bytes of each of 8, 16 or 32 lanes; a load of the warp
 * is so 4, 2 or 1 positions, and eight loads of keys and as many of values are under way. Lanes then add up each other's
 * parts of the products until each has some logits, which become weights, and values are added up lane by lane.
 *
 * Positions are cut into stretches (attend_cuda.cuh), each of which is a warp's. Where they are units (ATTEND_STATES) another
 * step merges them, else the block whose warps share out those of a unit: with the same bits. Cells of other forms are attend_cuda.cuh's. The rows of this call are in the cell
 * already. out overlaps no input. */
#ifndef WEFT_KERNELS_CUDA_ATTEND_FEW_CUDA_CUH
#define WEFT_KERNELS_CUDA_ATTEND_FEW_CUDA_CUH

#include "kernels/cuda/attend_cuda.cuh"
#include "kernels/cuda/attend_few_size.h"

enum { FEW_LOADS = 8, FEW_COLS = 8 }; /* under way; numbers of one of them */

/* The work of a unit: positions [begin, end) of a row, seen by query heads [first_head, first_head + heads). */
struct few_attend {
    const kargs *k;
    const int32_t *pages;
    int64_t head; /* of the cell */
    int first_head, heads;
    int row, pos;
    int seen;                   /* the first position that the row sees */
    int key_bytes, value_bytes; /* of a token */
    int64_t value_at;           /* of the head's values, from its page */
    int64_t key_at;
};

/* What a lane has: of each query head a part of the sums of eight columns. */
struct few_sums {
    float max[FEW_HEADS], total[FEW_HEADS];
    float sum[FEW_HEADS * FEW_COLS];
};

/* ---- 16 bits ---- */

template <bool BF16> static __device__ inline float low_half(uint32_t w)
{
    return BF16 ? float_of(w << 16) : from_f16((uint16_t)w);
}

template <bool BF16> static __device__ inline float high_half(uint32_t w)
{
    return BF16 ? float_of(w & 0xffff0000u) : from_f16((uint16_t)(w >> 16));
}

/* ---- sums across lanes ---- */

/* N numbers of each of some lanes are added up; each lane keeps a part of the sums. The lanes are those whose numbers differ in
 * the bits from `LEAST` to below 2 * MOST: a lane with the upper bit keeps the upper half, and so on. */
template <int N, int MOST, int LEAST> struct scatter {
    static __device__ inline void add(float *v)
    {
        const bool up = (lane_index() & MOST) != 0;
        UNROLL
        for (int i = 0; i < N / 2; i++) {
            float send = up ? v[i] : v[i + N / 2], keep = up ? v[i + N / 2] : v[i];
            v[i] = keep + __shfl_xor_sync(ALL_LANES, send, MOST);
        }
        scatter<N / 2, MOST / 2, (MOST > LEAST ? LEAST : 0)>::add(v);
    }
};

template <int N, int MOST> struct scatter<N, MOST, 0> {
    static __device__ inline void add(float *)
    {
    }
};

/* ---- loads ---- */

/* Eight loads of positions from `at` on, LANES lanes to each; zeros where the row sees nothing, or `end` is before. All of them
 * lie in one page. */
template <int LANES>
static __device__ inline void few_load(const few_attend &w, const char *page, int at, int end,
                                       int tok, int bytes, bytes16 *to)
{
    enum { EACH = WARP / LANES };
    const char *from = page + (int64_t)tok * bytes + lane_index() % LANES * 16;
    UNROLL
    for (int u = 0; u < FEW_LOADS; u++) {
        const int i = u * EACH + lane_index() / LANES;
        to[u] = bytes16{};
        if (at + i >= w.seen && at + i < end)
            to[u] = *(const bytes16 *)(from + i * bytes);
    }
}

static __device__ inline const char *few_page(const few_attend &w, int at, int *tok)
{
    const kcell *c = w.k->cell;
    const int page_tok = (int)c->page_tok, e = at / page_tok;
    *tok = at - e * page_tok;
    return c->tier[0].base + w.pages[e] * c->tier[0].page_bytes;
}

/* ---- weights ---- */

/* Of a position by a lane: what is done to a logit, and -inf for what the row does not see. */
static __device__ inline float few_logit(const few_attend &w, float s, int h, int at, bool seen)
{
    const float *slopes = (const float *)w.k->in[3]; /* [H] or NULL */
    const float softcap = (float)w.k->scalar.attend.softcap;
    s *= (float)w.k->scalar.attend.scale;
    if (softcap != 0)
        s = softcap * tanhf(s / softcap);
    if (slopes && h < w.heads)
        s += slopes[w.first_head + h] * (float)(at - w.pos);
    return seen ? s : -INFINITY;
}

/* Logits of positions from `at` on, in `table` [position][head], become weights; sums so far are made relative to them. */
template <int POSITIONS>
static __device__ inline void few_weigh(const few_attend &w, int at, int end, float *table,
                                        few_sums &a)
{
    const int i = lane_index();
    const bool seen = i < POSITIONS && at + i >= w.seen && at + i < end;
    bytes16 four = *(const bytes16 *)(table + i % POSITIONS * FEW_HEADS), weights = {};
    float keep[FEW_HEADS];
    bool moved = false;
    UNROLL
    for (int h = 0; h < FEW_HEADS; h++) {
        float s = few_logit(w, float_of(four.w[h]), h, at + i, seen), most = warp_max(s);
        most = most > a.max[h] ? most : a.max[h];
        float weight = seen ? expf(s - most) : 0;
        keep[h] = most == a.max[h] ? 1 : expf(a.max[h] - most);
        a.total[h] = a.total[h] * keep[h] + weight;
        a.max[h] = most;
        moved = moved || keep[h] != 1;
        weights.w[h] = bits_of(weight);
    }
    __syncwarp(); /* logits have been read */
    if (i < POSITIONS)
        *(bytes16 *)(table + i * FEW_HEADS) = weights;
    if (moved) { /* for all lanes alike */
        UNROLL
        for (int v = 0; v < FEW_HEADS * FEW_COLS; v++)
            a.sum[v] *= keep[v / FEW_COLS];
    }
    __syncwarp();
}

/* ---- a warp's walk ---- */

template <int LANES, bool BF16>
static __device__ inline void few_logits(const float *q, const bytes16 *key, float *table)
{
    enum { EACH = WARP / LANES, KEPT = FEW_LOADS * FEW_HEADS / LANES };
    float s[FEW_LOADS * FEW_HEADS];
    UNROLL
    for (int u = 0; u < FEW_LOADS; u++) {
        float x[FEW_COLS];
        UNROLL
        for (int i = 0; i < 4; i++) {
            x[2 * i] = low_half<BF16>(key[u].w[i]);
            x[2 * i + 1] = high_half<BF16>(key[u].w[i]);
        }
        UNROLL
        for (int h = 0; h < FEW_HEADS; h++) {
            float sum = 0;
            UNROLL
            for (int i = 0; i < FEW_COLS; i++)
                sum = mad(q[h * FEW_COLS + i], x[i], sum);
            s[u * FEW_HEADS + h] = sum;
        }
    }
    scatter<FEW_LOADS * FEW_HEADS, LANES / 2, 1>::add(s);
    UNROLL
    for (int i = 0; i < KEPT; i++) {
        const int v = lane_index() % LANES * KEPT + i;
        table[(v / FEW_HEADS * EACH + lane_index() / LANES) * FEW_HEADS + v % FEW_HEADS] = s[i];
    }
}

template <int LANES, bool BF16>
static __device__ inline void few_values(const bytes16 *value, const float *table, few_sums &a)
{
    enum { EACH = WARP / LANES };
    UNROLL
    for (int u = 0; u < FEW_LOADS; u++) {
        bytes16 p = *(const bytes16 *)(table + (u * EACH + lane_index() / LANES) * FEW_HEADS);
        UNROLL
        for (int i = 0; i < FEW_COLS; i++) {
            uint32_t word = value[u].w[i / 2];
            float x = i % 2 ? high_half<BF16>(word) : low_half<BF16>(word);
            UNROLL
            for (int h = 0; h < FEW_HEADS; h++)
                a.sum[h * FEW_COLS + i] = mad(float_of(p.w[h]), x, a.sum[h * FEW_COLS + i]);
        }
    }
}

/* Eight columns of each query head. */
template <int LANES> static __device__ inline void few_queries(const few_attend &w, float *q)
{
    const int width = LANES * FEW_COLS;
    UNROLL
    for (int h = 0; h < FEW_HEADS; h++) {
        const float *from = row_in(w.k, 0, w.row) + (w.first_head + (h < w.heads ? h : 0)) * width +
                            lane_index() % LANES * FEW_COLS;
        UNROLL
        for (int i = 0; i < FEW_COLS; i++)
            q[h * FEW_COLS + i] = from[i];
    }
}

/* Positions [begin, end) by a warp; `table` is its own. What it has is put at `to`, `step` floats from head to head: largest
 * logit, sum of weights, and from `values` on the sum of values. */
template <int LANES, bool BF16>
static __device__ ONE_COPY void few_walk_positions(const few_attend &w, int begin, int end,
                                                   float *table, float *to, int64_t step,
                                                   int values)
{
    enum { POSITIONS = FEW_LOADS * WARP / LANES, KEPT = FEW_HEADS * FEW_COLS / (WARP / LANES) };
    few_sums a;
    float q[FEW_HEADS * FEW_COLS];
    bytes16 key[FEW_LOADS], value[FEW_LOADS];
    UNROLL
    for (int h = 0; h < FEW_HEADS; h++) {
        a.max[h] = -INFINITY;
        a.total[h] = 0;
    }
    UNROLL
    for (int i = 0; i < FEW_HEADS * FEW_COLS; i++)
        a.sum[i] = 0;
    int at = (begin > w.seen ? begin : w.seen) / POSITIONS * POSITIONS, tok = 0;
    if (at < end) {
        const char *page = few_page(w, at, &tok);
        few_load<LANES>(w, page + w.key_at, at, end, tok, w.key_bytes, key);
        few_load<LANES>(w, page + w.value_at, at, end, tok, w.value_bytes, value);
    }
    few_queries<LANES>(w, q);
    for (; at < end; at += POSITIONS) {
        const int next = at + POSITIONS;
        const char *page = NULL;
        if (next < end)
            page = few_page(w, next, &tok);
        few_logits<LANES, BF16>(q, key, table);
        if (next < end)
            few_load<LANES>(w, page + w.key_at, next, end, tok, w.key_bytes, key);
        __syncwarp();
        few_weigh<POSITIONS>(w, at, end, table, a);
        few_values<LANES, BF16>(value, table, a);
        if (next < end)
            few_load<LANES>(w, page + w.value_at, next, end, tok, w.value_bytes, value);
        __syncwarp(); /* the table has been read */
    }
    scatter<FEW_HEADS * FEW_COLS, WARP / 2, (LANES < WARP ? LANES : 0)>::add(a.sum);
    UNROLL
    for (int h = 0; h < FEW_HEADS; h++) {
        float total = warp_sum(a.total[h]);
        if (lane_index() == 0 && h < w.heads) {
            to[h * step] = a.max[h];
            to[h * step + 1] = total;
        }
    }
    UNROLL
    for (int i = 0; i < KEPT; i++) {
        const int h = (lane_index() / LANES * KEPT + i) / FEW_COLS;
        if (h < w.heads)
            to[h * step + values + lane_index() % LANES * FEW_COLS + i % FEW_COLS] = a.sum[i];
    }
}

static __device__ void few_walk_any(const few_attend &w, int begin, int end, float *table,
                                    float *to, int64_t step, int values)
{
    const kcell *c = w.k->cell;
    const bool bf16 = c->tier[0].key == KFORM_BF16;
    switch (c->k * 2 + bf16) {
#define CASE(lanes)                                                                                \
    case lanes *FEW_COLS * 2:                                                                      \
        few_walk_positions<lanes, false>(w, begin, end, table, to, step, values);                  \
        break;                                                                                     \
    case lanes *FEW_COLS * 2 + 1:                                                                  \
        few_walk_positions<lanes, true>(w, begin, end, table, to, step, values);                   \
        break;
        CASE(8)
        CASE(16)
        CASE(32)
#undef CASE
    default:
        break;
    }
}

/* ---- units ---- */

/* Are the cell's keys and values rows of 16-bit numbers that can be loaded so? */
static __device__ bool few_attend_reads(const kcell *c)
{
    const kcell_tier *t = &c->tier[0];
    return !c->latent && c->n_tier == 1 && c->k == c->v &&
           (c->k == 64 || c->k == 128 || c->k == 256) && t->key == t->value &&
           (t->key == KFORM_F16 || t->key == KFORM_BF16) && c->page_tok % WARP == 0 &&
           at_16(t->base) && t->page_bytes % 16 == 0;
}

/* Unit i, counted without stretches. */
static __device__ few_attend few_unit(const kargs *k, const cuda_attend_size &s, int64_t i)
{
    const kcell *c = k->cell;
    const int64_t part = i % s.parts, left = s.group - part * s.heads;
    few_attend w;
    w.k = k;
    w.head = i / s.parts % c->heads;
    w.row = (int)(i / s.parts / c->heads);
    w.first_head = (int)(w.head * s.group + part * s.heads);
    w.heads = (int)least(left, s.heads);
    w.pos = kbatch_at(k->batch, KBATCH_POS)[w.row];
    w.seen = (int)first_seen(k, w.pos);
    w.pages = kcell_pages(c, 0, k->batch, w.row);
    w.key_bytes = (int)c->k * 2;
    w.value_bytes = (int)c->v * 2;
    w.key_at = w.head * c->page_tok * w.key_bytes;
    w.value_at = c->heads * c->page_tok * w.key_bytes + w.head * c->page_tok * w.value_bytes;
    return w;
}

/* Those in use are the first ones, and far from each other in the line of units. */
static __device__ inline int64_t few_stretch(int64_t i)
{
    static_assert(ATTEND_STRETCHES == 16, "four bits, backwards");
    return (i & 1) << 3 | (i & 2) << 1 | (i >> 1 & 2) | (i >> 3 & 1);
}

/* A stretch by a warp. */
static __device__ void few_states_put(const few_attend &w, int64_t stretch, float *table)
{
    const int64_t v = w.k->cell->v, len = cuda_attend_stretch(w.pos);
    const int64_t each = attend_state_floats(v), step = ATTEND_STRETCHES * each;
    float *to = row_out(w.k, 0, w.row) + (w.first_head * ATTEND_STRETCHES + stretch) * each;
    if (stretch < w.seen / len || stretch > w.pos / len) {
        for (int h = lane_index(); h < w.heads; h += WARP) {
            to[h * step] = -INFINITY;
            to[h * step + 1] = 0;
        }
        return;
    }
    few_walk_any(w, (int)(stretch * len), (int)least((stretch + 1) * len, w.pos + 1), table, to,
                 step, ATTEND_PAD);
}

/* All positions of a unit by a block: each warp has some stretches, which are merged in order. */
static __device__ void few_unit_run(const few_attend &w, float *tables, float *states)
{
    const int v = (int)w.k->cell->v, len = (int)cuda_attend_stretch(w.pos);
    const int first = w.seen / len, last = w.pos / len;
    const int64_t step = few_state_floats(v);
    for (int j = first + warp_index(); j <= last; j += warp_count())
        few_walk_any(w, j * len, (int)least((j + 1) * len, w.pos + 1),
                     tables + warp_index() * FEW_WEIGHTS, states + j * FEW_HEADS * step, step, 4);
    __syncthreads();
    for (int i = (int)threadIdx.x; i < w.heads * v; i += block_threads()) {
        const int h = i / v, col = i % v;
        float max, total, sum = 0;
        state_begin(w.k, w.first_head + h, &max, &total);
        for (int j = first; j <= last; j++) {
            const float *state = states + (j * FEW_HEADS + h) * step;
            merge_factors f = merge_of(max, total, state[0], state[1]);
            if (state[1] != 0)
                sum = merge_sum(f, sum, state[4 + col]);
            max = f.max;
            total = f.total;
        }
        row_out(w.k, 0, w.row)[(w.first_head + h) * v + col] = sum / total;
    }
    __syncthreads(); /* states have been read */
}

static __device__ void few_attend_other(const kargs *k, const kthread *t, int64_t begin,
                                        int64_t end)
{
    attend_work w = {};
    w.k = k;
    w.size = few_attend_size_of(k);
    work_divide(w, t->scratch);
    const bool states = k->choice.attend.part == ATTEND_STATES;
    for (int64_t i = begin; i < end; i++)
        unit_run(w, states ? i / ATTEND_STRETCHES : i,
                 states ? few_stretch(i % ATTEND_STRETCHES) : 0);
}

static __device__ ONE_COPY void k_attend_few_cuda(const kargs *k, const kthread *t, int64_t begin,
                                                  int64_t end)
{
    float *tables = (float *)t->scratch, *states = tables + FEW_ATTEND_WARPS * FEW_WEIGHTS;
    const cuda_attend_size s = few_attend_size_of(k);
    if (k->choice.attend.part == ATTEND_MERGE) {
        states_merge(k, t, begin, end);
    } else if (!few_attend_reads(k->cell)) {
        few_attend_other(k, t, begin, end);
    } else if (k->choice.attend.part == ATTEND_STATES) {
        for (int64_t i = begin + warp_index(); i < end; i += warp_count())
            few_states_put(few_unit(k, s, i / ATTEND_STRETCHES), few_stretch(i % ATTEND_STRETCHES),
                           tables + warp_index() * FEW_WEIGHTS);
    } else {
        for (int64_t i = begin; i < end; i++)
            few_unit_run(few_unit(k, s, i), tables, states);
    }
}

#endif
