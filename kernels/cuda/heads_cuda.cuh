/* heads_cuda.cuh - what rows have before attention, of the heads that share one of a cell: queries turned, the key turned and
 * appended, the value appended. As rope_cuda.cuh and cell_cuda.cuh do it, to the bit, but as one step, with one round of loads.
 *
 * For images made for a plan, where runtime/exec/cuda_heads.c finds the four steps in a phase. All numbers of a head are turned, and
 * the cell's first tier is floats. */
#ifndef WEFT_KERNELS_CUDA_HEADS_CUDA_CUH
#define WEFT_KERNELS_CUDA_HEADS_CUDA_CUH

#include "kernels/cuda/cell_cuda.cuh"
#include "kernels/cuda/gate_cuda.cuh"
#include "kernels/cuda/rope_cuda.cuh"

/* Some heads of a row that a rope step has. */
static __device__ inline rope_row heads_to_turn(const kargs *k, int64_t row, int head, int heads)
{
    const int width = (int)k->size.rope.width;
    return rope_row_of(k, row_in(k, 0, row) + head * width, row_out(k, 0, row) + head * width,
                       heads);
}

static __device__ inline void number_append(const append_heads &a, int i, float x)
{
    float_store(a.form, a.to + a.page * a.page_bytes, i, x);
}

/* The turn of pair i, which is that of a thread's first one where its pairs are all the same of their heads. */
static __device__ inline turn turn_again(const rope_row &r, int i, int32_t pos, const turn &first)
{
    const uint32_t pairs = (uint32_t)r.pairs;
    return (uint32_t)block_threads() % pairs == 0
               ? first
               : turn_of(pos, r.freqs[(uint32_t)i % pairs], r.factor);
}

static __device__ inline void key_append(const append_heads &to, const pair_place &at,
                                         const turn &t, float a, float b)
{
    number_append(to, at.one, a * t.cosine - b * t.sine);
    number_append(to, at.two, a * t.sine + b * t.cosine);
}

/* A head of the cell, of a row: what is turned, and where it is appended. */
struct head_unit {
    rope_row q, key;
    append_heads keys, values;
    const int32_t *at_row; /* its position */
};

/* What a thread has first of it. */
struct head_first {
    pair_place at, of_key;
    int32_t pos;
    float freq, a, b, key_a, key_b, value;
};

/* Threads have pairs of queries, of which the first also have the key's, and from the last on values. */
static __device__ inline int value_first(void)
{
    return block_threads() - 1 - (int)threadIdx.x;
}

static __device__ inline head_first head_load(const head_unit &u)
{
    const rope_row &q = u.q, &key = u.key;
    const int thread = (int)threadIdx.x, last = value_first();
    head_first f;
    f.pos = load_now(u.at_row);
    f.freq = load_now(q.freqs + (uint32_t)thread % (uint32_t)q.pairs);
    f.at = pair_at(q, thread < q.heads * q.pairs ? thread : 0);
    f.of_key = pair_at(key, thread < key.pairs ? thread : 0);
    f.a = load_now(q.x + f.at.one);
    f.b = load_now(q.x + f.at.two);
    f.key_a = load_now(key.x + f.of_key.one);
    f.key_b = load_now(key.x + f.of_key.two);
    f.value = load_now(u.values.x + (last < u.values.width ? last : 0));
    return f;
}

static __device__ inline void head_store(const head_unit &u, const head_first &f)
{
    const rope_row &q = u.q, &key = u.key;
    const append_heads &keys = u.keys, &values = u.values;
    const int n = block_threads(), thread = (int)threadIdx.x, last = value_first();
    const int pairs = q.heads * q.pairs;
    const turn t = turn_of(f.pos, f.freq, q.factor);
    if (thread < pairs)
        pair_turn(q, f.at, t, f.a, f.b);
    if (thread < key.pairs)
        key_append(keys, f.of_key, t, f.key_a, f.key_b);
    if (last < values.width)
        number_append(values, last, f.value);
    UNROLLED(1)
    for (int i = thread + n; i < pairs; i += n) {
        const pair_place next = pair_at(q, i);
        pair_turn(q, next, turn_again(q, i, f.pos, t), q.x[next.one], q.x[next.two]);
    }
    UNROLLED(1)
    for (int i = thread + n; i < key.pairs; i += n) {
        const pair_place next = pair_at(key, i);
        key_append(keys, next, turn_again(key, i, f.pos, t), key.x[next.one], key.x[next.two]);
    }
    UNROLLED(1)
    for (int i = last + n; i < values.width; i += n)
        number_append(values, i, values.x[i]);
}

/* Units are heads of the cell, of each row. q and key: rope steps; keys and values: those that append, of which the first reads what
 * key would have made. What a block has first of UNITS of them is loaded before anything is computed: of one where a call has
 * one row. */
template <int UNITS>
static __device__ inline void k_heads_cuda(const kargs *q, const kargs *key, const kargs *keys,
                                           const kargs *values, int64_t begin, int64_t end)
{
    const uint32_t heads = (uint32_t)key->size.rope.heads;
    const int each = (int)((uint32_t)q->size.rope.heads / heads);
    UNROLLED(1)
    for (int first = (int)begin; first < (int)end; first += UNITS) {
        head_unit u[UNITS];
        head_first f[UNITS];
        UNROLL
        for (int e = 0; e < UNITS; e++) {
            const int unit = first + e < (int)end ? first + e : first;
            const int row = UNITS == 1 ? 0 : (int)((uint32_t)unit / heads);
            const int head = unit - row * (int)heads;
            u[e] = head_unit{heads_to_turn(q, row, head * each, each),
                             heads_to_turn(key, row, head, 1),
                             append_heads_of(keys, PAGE_KEYS, row, head, head + 1),
                             append_heads_of(values, PAGE_VALUES, row, head, head + 1),
                             (const int32_t *)q->in[1] + row};
            if (e == 0 && !gate_meet_late())
                return;
            f[e] = head_load(u[e]);
        }
        UNROLL
        for (int e = 0; e < UNITS; e++)
            if (e == 0 || first + e < (int)end)
                head_store(u[e], f[e]);
    }
}

#endif
