/* heads_cuda.cuh - what a row has before attention, of the heads that share one of a cell: queries turned, the key turned and
 * appended, the value appended. As rope_cuda.cuh and cell_cuda.cuh do it, to the bit, but as one step, with one round of loads.
 *
 * For images made for a plan, of one row, where runtime/exec/cuda_heads.c finds the four steps in a phase. All numbers of a head are
 * turned, and the cell's first tier is floats. */
#ifndef WEFT_KERNELS_CUDA_HEADS_CUDA_CUH
#define WEFT_KERNELS_CUDA_HEADS_CUDA_CUH

#include "kernels/cuda/cell_cuda.cuh"
#include "kernels/cuda/rope_cuda.cuh"

/* Some heads of the row that a rope step has. */
static __device__ inline rope_row heads_to_turn(const kargs *k, int head, int heads)
{
    const int width = (int)k->size.rope.width;
    return rope_row{row_in(k, 0, 0) + head * width,
                    row_out(k, 0, 0) + head * width,
                    (const float *)k->in[2],
                    (float)k->scalar.rope.factor,
                    heads,
                    width,
                    (int)k->size.rope.pairs,
                    k->choice.rope.order == ROPE_INTERLEAVED};
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

/* One head of the cell. Threads have pairs of queries, of which the first also have the key's, and from the last on values. What
 * each has first is loaded before anything is computed. */
static __device__ inline void head_prepare(const rope_row &q, const rope_row &key,
                                           const append_heads &keys, const append_heads &values,
                                           const int32_t *at_row)
{
    const int n = block_threads(), thread = (int)threadIdx.x, last = n - 1 - thread;
    const int pairs = q.heads * q.pairs;
    const int32_t pos = load_now(at_row);
    const float freq = load_now(q.freqs + (uint32_t)thread % (uint32_t)q.pairs);
    const pair_place at = pair_at(q, thread < pairs ? thread : 0);
    const pair_place of_key = pair_at(key, thread < key.pairs ? thread : 0);
    const float a = load_now(q.x + at.one), b = load_now(q.x + at.two);
    const float key_a = load_now(key.x + of_key.one), key_b = load_now(key.x + of_key.two);
    const float value = load_now(values.x + (last < values.width ? last : 0));
    const turn t = turn_of(pos, freq, q.factor);
    if (thread < pairs)
        pair_turn(q, at, t, a, b);
    if (thread < key.pairs)
        key_append(keys, of_key, t, key_a, key_b);
    if (last < values.width)
        number_append(values, last, value);
    UNROLLED(1)
    for (int i = thread + n; i < pairs; i += n) {
        const pair_place next = pair_at(q, i);
        pair_turn(q, next, turn_again(q, i, pos, t), q.x[next.one], q.x[next.two]);
    }
    UNROLLED(1)
    for (int i = thread + n; i < key.pairs; i += n) {
        const pair_place next = pair_at(key, i);
        key_append(keys, next, turn_again(key, i, pos, t), key.x[next.one], key.x[next.two]);
    }
    UNROLLED(1)
    for (int i = last + n; i < values.width; i += n)
        number_append(values, i, values.x[i]);
}

/* Units are heads of the cell. q and key: rope steps; keys and values: those that append, of which the first reads what key
 * would have made. */
static __device__ inline void k_heads_cuda(const kargs *q, const kargs *key, const kargs *keys,
                                           const kargs *values, int64_t begin, int64_t end)
{
    const int each = (int)((uint32_t)q->size.rope.heads / (uint32_t)key->size.rope.heads);
    UNROLLED(1)
    for (int head = (int)begin; head < (int)end; head++)
        head_prepare(heads_to_turn(q, head * each, each), heads_to_turn(key, head, 1),
                     append_heads_of(keys, PAGE_KEYS, 0, head, head + 1),
                     append_heads_of(values, PAGE_VALUES, 0, head, head + 1),
                     (const int32_t *)q->in[1]);
}

#endif
