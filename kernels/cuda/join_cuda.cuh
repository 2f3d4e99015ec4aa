/* join_cuda.cuh - what attention of several rows needs first, by the block that attends: queries turned, keys turned and appended, values
 * appended.
 *
 * One step in place of four in a phase before, for rows of sequences of their own (phase_join in runtime/exec/cuda_run.c). It is short:
 * a step that no block has run for a while waits for its code, and every block runs this one. */
#ifndef WEFT_KERNELS_CUDA_JOIN_CUDA_CUH
#define WEFT_KERNELS_CUDA_JOIN_CUDA_CUH

#include "kernels/cuda/cell_cuda.cuh"
#include "kernels/cuda/rope_cuda.cuh"

enum { JOIN_EACH = 3 }; /* pairs of numbers of a thread at a time */

/* A pair of a unit: of a query head (slots from 0 on), of the key, or of the value, whose pairs stand side by side. */
struct join_pair {
    float a, b, freq;
    int32_t pos;     /* by which it is turned */
    append_place to; /* of keys and values */
    int row, head, slot;
    pair_place at;
};

static __device__ inline join_pair join_load(const kargs *k, const rope_row &r, int group, int unit,
                                             int slot, int pair)
{
    const int heads = (int)k->cell->heads, row = (int)((uint32_t)unit / (uint32_t)heads);
    join_pair p = {};
    p.row = row;
    p.head = unit - row * heads;
    p.slot = slot;
    p.at = slot <= group ? pair_at(r, pair) : pair_place{2 * pair, 2 * pair + 1};
    const float *x = slot < group    ? row_in(k, 0, row) + (p.head * group + slot) * r.width
                     : slot == group ? row_in(k, 3, row) + p.head * r.width
                                     : row_in(k, 4, row) + p.head * r.width;
    p.a = load_now(x + p.at.one);
    p.b = load_now(x + p.at.two);
    p.freq = load_now(r.freqs + pair);
    p.pos = load_now((const int32_t *)k->in[1] + row);
    if (slot >= group)
        p.to = append_place_of(k, row);
    return p;
}

static __device__ inline void join_store(const kargs *k, const rope_row &r, int group,
                                         const join_pair &p)
{
    const kcell *c = k->cell;
    const kform form = c->tier[0].key;
    const turn t = turn_of(p.pos, p.freq, r.factor);
    const float one = p.a * t.cosine - p.b * t.sine, two = p.a * t.sine + p.b * t.cosine;
    if (p.slot < group) {
        float *to = row_out(k, 0, p.row) + (p.head * group + p.slot) * r.width;
        to[p.at.one] = one;
        to[p.at.two] = two;
        return;
    }
    const int tok = (int)((uint32_t)p.to.pos % (uint32_t)c->page_tok), all = (int)c->heads;
    const int line = ((p.slot == group ? 0 : all) + p.head) * (int)c->page_tok + tok;
    uint16_t *to =
        (uint16_t *)(c->tier[0].base + p.to.page * c->tier[0].page_bytes) + line * r.width;
    const bool key = p.slot == group;
    const float x = key ? one : p.a, y = key ? two : p.b;
    to[p.at.one] = form == KFORM_F16 ? to_f16(x) : to_bf16(x);
    to[p.at.two] = form == KFORM_F16 ? to_f16(y) : to_bf16(y);
}

/* Units [begin, end) of attention. k is rope's of the queries, and has more: rows of keys are in[3], of values in[4], and the cell, of 16-bit
 * numbers of one tier. The same bits as the steps by themselves. */
static __device__ inline void k_rope_cuda_join(const kargs *k, int64_t begin, int64_t end)
{
    const int pairs = (int)k->size.rope.pairs;
    const int group = (int)((uint32_t)k->size.rope.heads / (uint32_t)k->cell->heads);
    const int each = (group + 2) * pairs, step = block_threads();
    const int all = (int)(end - begin) * each;
    const rope_row r = {NULL,
                        NULL,
                        (const float *)k->in[2],
                        (float)k->scalar.rope.factor,
                        1,
                        (int)k->size.rope.width,
                        pairs,
                        k->choice.rope.order == ROPE_INTERLEAVED};
    UNROLLED(1)
    for (int first = (int)threadIdx.x; first < all; first += JOIN_EACH * step) {
        join_pair p[JOIN_EACH];
        UNROLL
        for (int e = 0; e < JOIN_EACH; e++) {
            const uint32_t i = (uint32_t)(first + e * step < all ? first + e * step : first);
            const uint32_t unit = i / (uint32_t)each, rest = i - unit * (uint32_t)each;
            const uint32_t slot = rest / (uint32_t)pairs;
            p[e] = join_load(k, r, group, (int)begin + (int)unit, (int)slot,
                             (int)(rest - slot * (uint32_t)pairs));
        }
        UNROLL
        for (int e = 0; e < JOIN_EACH; e++)
            if (first + e * step < all)
                join_store(k, r, group, p[e]);
    }
}

#endif
