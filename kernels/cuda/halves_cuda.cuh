/* halves_cuda.cuh - x and weights of exact linears as f16, for weft_bulk: made by weft_unpack once for all squares of a phase.
 *
 * Each row, of x and of weights, is multiplied by the power of two that brings its largest number to [2^14, 2^15). A BF16 or F16
 * weight is one f16 then, and a number of x is two: the nearest, and the one nearest to the rest, 22 bits. So there are two
 * products for each number, where BF16 weights take three with bf16 and F16 weights five. Sums are multiplied by the inverse of both
 * powers. What is lost of a number is below 2^-23 of it or below 2^-40 of its row's largest, whichever is more; of a weight only the
 * latter. All that a row with a number that is not finite is multiplied with gives NaN.
 *
 * Rows of x have 64 firsts and 64 seconds in turn, then the inverse. Weights have theirs behind the matrix. */
#ifndef WEFT_KERNELS_CUDA_HALVES_CUDA_CUH
#define WEFT_KERNELS_CUDA_HALVES_CUDA_CUH

#include "kernels/cuda/linear_mma_cuda.cuh"
#include "kernels/cuda/phase.h"

/* ---- where they are ---- */

struct halves_place {
    char *x, *w;
    char *end; /* where the next step's begin */
};

/* Of a step, after those of the one before it in its phase (cuda_halves_sum has the bytes of both); x that both multiply is there
 * once. */
static __device__ inline halves_place halves_after(const cuda_run &r, int32_t step, bool first,
                                                   const halves_place &before)
{
    const cuda_step &s = r.step[step];
    const kargs &k = r.shape[s.shape].k;
    const bool same = !first && r.step[step - 1].in[0] == s.in[0];
    halves_place p;
    p.x = same ? before.x : before.end;
    p.w = before.end + (same ? 0 : cuda_halves_x_bytes(s.rows, k.size.linear.in));
    p.end = p.w + cuda_halves_w_bytes(k.size.linear.out, k.size.linear.in);
    return p;
}

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

struct halves_F16 {
    enum { WORDS = 4, KEEP = 7, PARTS = 1 };

    static __device__ inline void load(const char *row, uint32_t c, uint32_t *raw)
    {
        halves_BF16::load(row, c, raw);
    }
    static __device__ inline float number(const uint32_t *raw, int e)
    {
        return from_f16((uint16_t)(raw[e / 2] >> 16 * (e % 2)));
    }
};

/* x as ACT_BF3T has it, whose parts add up without an error. */
struct halves_x {
    enum { WORDS = 8, KEEP = 3, PARTS = 2 };

    static __device__ inline void load(const char *row, uint32_t c, uint32_t *raw)
    {
        const bytes16 *at = (const bytes16 *)(row + (c / 32 * 96 + c % 32) * 2);
        const bytes16 one = at[0], two = at[4], three = at[8];
        UNROLL
        for (int e = 0; e < EIGHT; e++)
            raw[e] = bits_of(halves_BF16::number(one.w, e) + halves_BF16::number(two.w, e) +
                             halves_BF16::number(three.w, e));
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
    for (uint32_t first = blockIdx.x * each; first < j.rows; first += gridDim.x * each, set ^= 1) {
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

/* Of a step; x: it has one that the step before it has not. */
static __device__ inline void step_halve(const cuda_run &r, int32_t step, const halves_place &p,
                                         bool x)
{
    const cuda_step &s = r.step[step];
    const kargs &k = r.shape[s.shape].k;
    const int64_t in = k.size.linear.in, out = k.size.linear.out, pitch = cuda_halves_pitch(in);
    const halves_rows w = {(const char *)s.in[1],
                           p.w,
                           p.w + cuda_halves_pad(out * in * 2),
                           k.pitch[1],
                           in * 2,
                           sizeof(float),
                           (uint32_t)in,
                           (uint32_t)out};
    if (k.type[1] == DT_BF16)
        rows_halve<halves_BF16>(w);
    else
        rows_halve<halves_F16>(w);
    if (x)
        rows_halve<halves_x>(halves_rows{(const char *)s.in[0], p.x, p.x + in * 4, k.pitch[0],
                                         pitch, pitch, (uint32_t)in, (uint32_t)s.rows});
}

#endif
