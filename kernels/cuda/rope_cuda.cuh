/* rope_cuda.cuh - rotate pairs by position times frequency.
 *
 * Where the pairs of a head divide the threads of a block, a thread has the same pair of every head, and its cosine and sine in
 * registers, and rows of few heads are done side by side; else those of a row are in scratch [2, pairs]. Elements beyond the pairs
 * pass through. out may be x. */
#ifndef WEFT_KERNELS_CUDA_ROPE_CUDA_CUH
#define WEFT_KERNELS_CUDA_ROPE_CUDA_CUH

#include <math.h>
#include "kernels/cuda/block_cuda.cuh"

/* Of an r within pi/4: off by at most 0.88 units of the last place, and 0.72. */
static __device__ inline float cosine_of(float r)
{
    const float z = r * r;
    float y = mad(z, 2.44677067e-5f, -1.38877297e-3f);
    y = mad(y, z, 4.16666567e-2f);
    y = mad(y, z, -0.5f);
    return mad(y, z, 1.0f);
}

static __device__ inline float sine_of(float r)
{
    const float z = r * r;
    float y = mad(z, -1.95152959e-4f, 8.33216087e-3f);
    y = mad(y, z, -1.66666546e-1f);
    return mad(y * z, r, r);
}

/* A pair's turn. The angle, in double, less whole quarters is a float within pi/4. Quarters, fewer than 2^51, are whole in the sum
 * with `magic`, rounded to nearest; its last bits are theirs. */
struct turn {
    float cosine, sine;
};

static __device__ inline turn turn_of(int32_t pos, float freq, float factor)
{
    const double half_pi_high = 0x1.921fb544p0, half_pi_low = 0x1.0b4611a626331p-34;
    const double angle = (double)pos * (double)freq;
    const double magic = 0x1.8p52, sum = angle * 0x1.45f306dc9c883p-1 /* 2 / pi */ + magic;
    const double whole = sum - magic;
    const float r = (float)(angle - whole * half_pi_high - whole * half_pi_low);
    const float c = cosine_of(r), s = sine_of(r);
    const int quarter = (int)(__double_as_longlong(sum) & 3);
    const float turned_c = quarter & 1 ? s : c, turned_s = quarter & 1 ? c : s;
    return turn{(quarter == 1 || quarter == 2 ? -turned_c : turned_c) * factor,
                (quarter >= 2 ? -turned_s : turned_s) * factor};
}

/* Heads of a row, the first of them at x. */
struct rope_row {
    const float *x;
    float *out;
    const float *freqs; /* [pairs] */
    float factor;
    int heads, width, pairs;
    bool interleaved;
};

static __device__ inline rope_row rope_row_of(const kargs *k, const float *x, float *out, int heads)
{
    return rope_row{x,
                    out,
                    (const float *)k->in[2],
                    (float)k->scalar.rope.factor,
                    heads,
                    (int)k->size.rope.width,
                    (int)k->size.rope.pairs,
                    k->choice.rope.order == ROPE_INTERLEAVED};
}

/* Where the first and the second number are of pair i of all heads. */
struct pair_place {
    int one, two;
};

static __device__ inline pair_place pair_at(const rope_row &r, int i)
{
    const int head = (int)((uint32_t)i / (uint32_t)r.pairs), pair = i - head * r.pairs;
    const int one = head * r.width + (r.interleaved ? 2 * pair : pair);
    return pair_place{one, r.interleaved ? one + 1 : one + r.pairs};
}

static __device__ inline void pair_turn(const rope_row &r, const pair_place &at, const turn &t,
                                        float a, float b)
{
    r.out[at.one] = a * t.cosine - b * t.sine;
    r.out[at.two] = a * t.sine + b * t.cosine;
}

/* Position and frequency come from far: they are loaded first, and the numbers of a pair before its turn is known. */
static __device__ inline void rope_own_pairs(const rope_row &r, const int32_t *at_row,
                                             const row_share &by)
{
    const int all = r.heads * r.pairs;
    int i = by.thread;
    const int32_t pos = load_now(at_row);
    const float freq = load_now(r.freqs + (uint32_t)i % (uint32_t)r.pairs);
    if (i >= all)
        return;
    pair_place at = pair_at(r, i);
    float a = r.x[at.one], b = r.x[at.two];
    const turn t = turn_of(pos, freq, r.factor);
    UNROLLED(1)
    for (;;) {
        pair_turn(r, at, t, a, b);
        i += by.threads;
        if (i >= all)
            return;
        at = pair_at(r, i);
        a = r.x[at.one];
        b = r.x[at.two];
    }
}

/* Rows side by side, of each of which a thread has one pair: what some rows need is loaded before the first is turned. */
enum { ROPE_ROWS = 4 };

static __device__ inline void rope_some_rows(const kargs *k, const kpart &p, const rope_row &r,
                                             const int32_t *pos, const row_share &by)
{
    const pair_place at = pair_at(r, by.thread);
    const float freq = load_now(r.freqs + (uint32_t)by.thread % (uint32_t)r.pairs);
    UNROLLED(1)
    for (int64_t row = p.row + by.first; row < p.row_end; row += ROPE_ROWS * by.step) {
        int32_t where[ROPE_ROWS];
        float a[ROPE_ROWS], b[ROPE_ROWS];
        UNROLL
        for (int e = 0; e < ROPE_ROWS; e++) {
            const int64_t of = row + e * by.step < p.row_end ? row + e * by.step : row;
            where[e] = load_now(pos + of);
            a[e] = load_now(row_in(k, 0, of) + p.col + at.one);
            b[e] = load_now(row_in(k, 0, of) + p.col + at.two);
        }
        UNROLL
        for (int e = 0; e < ROPE_ROWS; e++) {
            rope_row to = r;
            to.out = row_out(k, 0, row + e * by.step) + p.col;
            if (row + e * by.step < p.row_end)
                pair_turn(to, at, turn_of(where[e], freq, r.factor), a[e], b[e]);
        }
    }
}

static __device__ APART void rope_any_pairs(rope_row r, const int32_t *pos, turn *turns)
{
    block_sync(); /* those of the row before have been read */
    for (int i = (int)threadIdx.x; i < r.pairs; i += block_threads())
        turns[i] = turn_of(*pos, r.freqs[i], r.factor);
    block_sync();
    for (int i = (int)threadIdx.x; i < r.heads * r.pairs; i += block_threads()) {
        const pair_place at = pair_at(r, i);
        pair_turn(r, at, turns[(uint32_t)i % (uint32_t)r.pairs], r.x[at.one], r.x[at.two]);
    }
}

static __device__ APART void rope_rest(rope_row r)
{
    const int rest = r.width - 2 * r.pairs;
    for (int i = (int)threadIdx.x; i < r.heads * rest; i += block_threads()) {
        const int at = i / rest * r.width + 2 * r.pairs + i % rest;
        r.out[at] = r.x[at];
    }
}

static __device__ ONE_COPY void k_rope_cuda(const kargs *k, const kthread *t, int64_t begin,
                                            int64_t end)
{
    const int32_t *pos = (const int32_t *)k->in[1]; /* [rows] */
    const int width = (int)k->size.rope.width, pairs = (int)k->size.rope.pairs;
    const kpart p = part_of(k, k->size.rope.heads * width, begin, end);
    const int heads = (int)((uint32_t)(p.col_end - p.col) / (uint32_t)width);
    const bool own = pairs > 0 && block_threads() % pairs == 0;
    const row_share by = rows_shared(k, own && 2 * pairs == width ? heads * pairs : 0);
    if (k->n[0] > 1 && by.threads == heads * pairs && 2 * pairs == width) {
        rope_some_rows(k, p, rope_row_of(k, NULL, NULL, heads), pos, by);
        return;
    }
    for (int64_t row = p.row + by.first; row < p.row_end && p.col < p.col_end; row += by.step) {
        const rope_row r =
            rope_row_of(k, row_in(k, 0, row) + p.col, row_out(k, 0, row) + p.col, heads);
        if (own)
            rope_own_pairs(r, pos + row, by);
        else
            rope_any_pairs(r, pos + row, (turn *)t->scratch);
        if (2 * pairs < width && r.x != r.out)
            rope_rest(r);
    }
}

#endif
