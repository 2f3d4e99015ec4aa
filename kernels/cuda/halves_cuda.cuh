/* halves_cuda.cuh - x and weights of linears as f16, for weft_bulk: x by the step that quantises it, BF16 weights by weft_unpack once
 * for all squares of a phase.
 *
 * Each row is multiplied by the power of two that brings its largest number to [2^14, 2^15). A BF16 weight is one f16 then. F16 weights
 * stay as they are stored. A number of x is
 *
 *   one f16, the nearest, 11 bits, where the plan has two bf16 (ACT_BF2T): one product for each number in place of two or three. What is
 *   lost of it is at most 2^-11 of it, where one bf16 loses eight times as much: 2^-8.
 *   two f16, the nearest and the one nearest to the rest, 22 bits, where the plan has three bf16 (ACT_BF3T): two products in place of
 *   three, or five with F16 weights. What is lost is at most 2^-23 of it.
 *
 * Or 2^-39 of the row's largest number, if that is more; of a weight only the latter is lost. Sums are multiplied by the inverses of the
 * powers. All that a row with a number that is not finite is multiplied with gives NaN, and all that an F16 weight that is not finite
 * takes part in is not finite.
 *
 * Rows of x have 64 firsts and 64 seconds in turn, or firsts alone, then the inverse; they lie where the plan has those of bf16, which
 * are longer. Weights have their inverses behind the matrix. */
#ifndef WEFT_KERNELS_CUDA_HALVES_CUDA_CUH
#define WEFT_KERNELS_CUDA_HALVES_CUDA_CUH

#include "kernels/cuda/mma_cuda.cuh"
#include "kernels/cuda/mma_size.h"
#include "kernels/cuda/weights_cuda.cuh"

/* ---- rows that they are made of: eight numbers as words, and as floats ----
 *
 * KEEP: so many eights stay in registers from looking for the largest number on. */

struct halves_BF16 {
    enum { WORDS = 4, KEEP = 7, PARTS = 1 };

    static __device__ inline void load(const char *row, uint32_t c, uint32_t *raw)
    {
        const bytes16 b = load_16(row + 2 * c);
        UNROLL
        for (int i = 0; i < WORDS; i++)
            raw[i] = b.w[i];
    }
    static __device__ inline float number(const uint32_t *raw, int e)
    {
        return float_of(e % 2 ? raw[e / 2] & 0xffff0000u : raw[e / 2] << 16);
    }
};

/* x, of which a number becomes PARTS. */
template <int PARTS_> struct halves_F32 {
    enum { WORDS = 8, KEEP = 3, PARTS = PARTS_ };

    static __device__ inline void load(const char *row, uint32_t c, uint32_t *raw)
    {
        const bytes16 low = *(const bytes16 *)(row + 4 * c);
        const bytes16 high = *(const bytes16 *)(row + 4 * c + 16);
        UNROLL
        for (int e = 0; e < EIGHT; e++)
            raw[e] = (e < 4 ? low : high).w[e % 4];
    }
    static __device__ inline float number(const uint32_t *raw, int e)
    {
        return float_of(raw[e]);
    }
};

/* ---- making them ---- */

/* What a row is multiplied by, and its inverse, by the bits of its largest magnitude. Neither is subnormal. */
struct halves_power {
    float up, down;
};

static __device__ inline halves_power power_for(uint32_t most)
{
    const uint32_t exponent = most >> 23;
    const uint32_t up = exponent < 15 ? 253 : 127 + 14 + 127 - exponent;
    const uint32_t down = exponent == 255 ? 0x7fc00000u : (254 - up) << 23; /* NaN */
    return halves_power{float_of(up << 23), float_of(down)};
}

template <class R> static __device__ inline uint32_t most_of(const uint32_t *raw, uint32_t most)
{
    UNROLL
    for (int e = 0; e < EIGHT; e++) {
        const uint32_t magnitude = bits_of(R::number(raw, e)) & 0x7fffffffu;
        most = magnitude > most ? magnitude : most;
    }
    return most;
}

/* Columns c and on of a row. */
template <class R>
static __device__ inline void put_halves(char *row, uint32_t c, const uint32_t *raw, float up)
{
    float rest[EIGHT];
    UNROLL
    for (int e = 0; e < EIGHT; e++)
        rest[e] = R::number(raw, e) * up;
    UNROLL
    for (uint32_t p = 0; p < R::PARTS; p++) {
        bytes16 h;
        UNROLL
        for (int e = 0; e < EIGHT; e += 2) {
            h.w[e / 2] = f16_pair(rest[e], rest[e + 1]);
            rest[e] -= from_f16((uint16_t)h.w[e / 2]);
            rest[e + 1] -= from_f16((uint16_t)(h.w[e / 2] >> 16));
        }
        *(bytes16 *)(row + ((c / MMA_DEPTH * R::PARTS + p) * MMA_DEPTH + c % MMA_DEPTH) * 2) = h;
    }
}

struct halves_rows {
    const char *from;
    char *to;
    char *down; /* inverses */
    int64_t pitch, to_pitch, down_pitch;
    uint32_t n, rows;
    uint32_t part, parts; /* blocks that share them: which one this is, of how many */
};

/* Some warps have a row, as many as keep it in registers; what is beyond those is loaded twice. */
template <class R> static __device__ void rows_halve(const halves_rows &j)
{
    enum { OWN = R::KEEP * WARP * EIGHT }; /* columns of a warp */
    block_words *m = block_memory();
    uint32_t team = 1;
    while (team * 2 <= (uint32_t)warp_count() && team * OWN < j.n)
        team *= 2;
    const uint32_t each = (uint32_t)warp_count() / team, mine = (uint32_t)warp_index() / team;
    const uint32_t col = ((uint32_t)threadIdx.x - mine * team * WARP) * EIGHT;
    const uint32_t apart = team * WARP * EIGHT;
    int set = 0;
    for (uint32_t first = j.part * each; first < j.rows; first += j.parts * each, set ^= 1) {
        const uint32_t row = first + mine, n = mine < each && row < j.rows ? j.n : 0;
        const char *from = j.from + (int64_t)row * j.pitch;
        char *to = j.to + (int64_t)row * j.to_pitch;
        uint32_t raw[R::KEEP][R::WORDS] = {}, more[R::WORDS], most = 0;
        UNROLL
        for (uint32_t i = 0; i < R::KEEP; i++)
            if (col + i * apart < n)
                R::load(from, col + i * apart, raw[i]);
        UNROLL
        for (uint32_t i = 0; i < R::KEEP; i++)
            most = most_of<R>(raw[i], most);
        for (uint32_t c = col + R::KEEP * apart; c < n; c += apart) {
            R::load(from, c, more);
            most = most_of<R>(more, most);
        }
        for (int step = WARP / 2; step > 0; step /= 2) {
            const uint32_t other = __shfl_xor_sync(ALL_LANES, most, step);
            most = other > most ? other : most;
        }
        if (lane_index() == 0)
            m->sum[set][warp_index()] = (double)most;
        block_sync();
        for (uint32_t i = 0; i < team && mine < each; i++) {
            const uint32_t other = (uint32_t)m->sum[set][mine * team + i];
            most = other > most ? other : most;
        }
        const halves_power by = power_for(most);
        UNROLL
        for (uint32_t i = 0; i < R::KEEP; i++)
            if (col + i * apart < n)
                put_halves<R>(to, col + i * apart, raw[i], by.up);
        for (uint32_t c = col + R::KEEP * apart; c < n; c += apart) {
            R::load(from, c, more);
            put_halves<R>(to, c, more, by.up);
        }
        if (col == 0 && n > 0)
            *(float *)(j.down + (int64_t)row * j.down_pitch) = by.down;
    }
    block_sync(); /* words have been read */
}

/* The weights of a linear. */
static __device__ inline void weights_halve(const kargs &k, const void *w, char *to)
{
    const int64_t in = k.size.linear.in, out = k.size.linear.out;
    rows_halve<halves_BF16>(halves_rows{(const char *)w, to, to + cuda_halves_pad(out * in * 2),
                                        k.pitch[1], in * 2, sizeof(float), (uint32_t)in,
                                        (uint32_t)out, blockIdx.x, gridDim.x});
}

/* Rows [row, end) of x, by one block, as PARTS f16 each number. */
template <int PARTS>
static __device__ APART void x_halve(const kargs *k, int64_t row, int64_t end, uint32_t n)
{
    char *to = (char *)row_out(k, 0, row);
    rows_halve<halves_F32<PARTS>>(halves_rows{(const char *)row_in(k, 0, row), to,
                                              to + 2 * PARTS * n, k->pitch[0], k->out_pitch[0],
                                              k->out_pitch[0], n, (uint32_t)(end - row), 0, 1});
}

#endif
