/* linear_stream_cuda.cuh - one row of x times w transposed, with weights that come through the ring (ring_cuda.cuh).
 *
 * A chunk is what 32 lanes multiply at a time. Of 16-bit numbers a lane has eight columns of every 256 of two rows; of blocks it
 * has a run of columns, of one row or of several that lie side by side, and reads it from shared memory by itself.
 *
 * x is brought to shared memory first, once for all that a phase multiplies with it: as floats, four of every eight in each of
 * two halves, or in 8 bits, in blocks that lie in different banks. Rows that cannot be cut, and blocks without a ring,
 * take the plain way. */
#ifndef WEFT_KERNELS_CUDA_LINEAR_STREAM_CUDA_CUH
#define WEFT_KERNELS_CUDA_LINEAR_STREAM_CUDA_CUH

#include "kernels/cuda/blocks_cuda.cuh"
#include "kernels/cuda/gate_cuda.cuh"
#include "kernels/cuda/linear_cuda.cuh"

/* Four bytes from any even place on, of two words. */
static __device__ inline uint32_t word_at(const uint32_t *w, int byte)
{
    return byte % 4 ? w[byte / 4] >> 16 | w[byte / 4 + 1] << 16 : w[byte / 4];
}

/* ---- types: products of a lane's run of N rows with run i of x, which is read once for all of them ---- */

struct run_Q8_0 {
    enum { TYPE = DT_Q8_0, COLS = 128, BYTES = 136, ACT = ACT_Q8 };
    template <int N>
    static __device__ inline void dot(const shared_place (&w)[N], shared_place x, int i, float *sum)
    {
        const shared_place block = x + i / 2 * RING_X_BLOCK, codes = block + i % 2 * COLS;
        const bytes16 scales = shared_16(block + RING_X_COLS + i % 2 * 16);
        uint32_t v[N][BYTES / 4];
        float all[N] = {};
        UNROLL
        for (int e = 0; e < N * (BYTES / 8); e++) {
            const int n = e % N, at = e / N;
            bytes8 b = shared_8(w[n] + 8 * at);
            v[n][2 * at] = b.w[0];
            v[n][2 * at + 1] = b.w[1];
        }
        UNROLL
        for (int g = 0; g < 4; g++) {
            const bytes16 q[2] = {shared_16(codes + 32 * g), shared_16(codes + 32 * g + 16)};
            UNROLL
            for (int n = 0; n < N; n++) {
                int d = 0;
                UNROLL
                for (int e = 0; e < 8; e++)
                    d = dot4(word_at(v[n], 34 * g + 2 + 4 * e), q[e / 4].w[e % 4], d);
                const float by = from_f16((uint16_t)(v[n][34 * g / 4] >> 34 * g % 4 * 8));
                all[n] = mad(by * float_of(scales.w[g]), (float)d, all[n]);
            }
        }
        UNROLL
        for (int n = 0; n < N; n++)
            sum[n] += all[n];
    }
};

/* Eight blocks of 18 bytes. Sixteen times code - 8 is a byte, without a subtraction. */
struct run_Q4_0 {
    enum { TYPE = DT_Q4_0, COLS = 256, BYTES = 144, ACT = ACT_Q8 };
    template <int N>
    static __device__ inline void dot(const shared_place (&w)[N], shared_place x, int i, float *sum)
    {
        const uint32_t high = 0xf0f0f0f0u, sign = 0x80808080u;
        const shared_place block = x + i * RING_X_BLOCK;
        const bytes16 scales[2] = {shared_16(block + RING_X_COLS),
                                   shared_16(block + RING_X_COLS + 16)};
        uint32_t v[N][BYTES / 4];
        float all[N] = {};
        UNROLL
        for (int e = 0; e < N * (BYTES / 16); e++) {
            const int n = e % N, at = e / N;
            const bytes16 b = shared_16(w[n] + 16 * at);
            UNROLL
            for (int c = 0; c < 4; c++)
                v[n][4 * at + c] = b.w[c];
        }
        UNROLL
        for (int g = 0; g < 8; g++) {
            const bytes16 q0 = shared_16(block + 32 * g), q1 = shared_16(block + 32 * g + 16);
            UNROLL
            for (int n = 0; n < N; n++) {
                int d = 0;
                UNROLL
                for (int e = 0; e < 4; e++) {
                    const uint32_t c = word_at(v[n], 18 * g + 2 + 4 * e);
                    d = dot4((c << 4 & high) ^ sign, q0.w[e], d);
                    d = dot4((c & high) ^ sign, q1.w[e], d);
                }
                const float by = from_f16((uint16_t)(v[n][18 * g / 4] >> 18 * g % 4 * 8));
                all[n] = mad(by * float_of(scales[g / 4].w[g % 4]), (float)d, all[n]);
            }
        }
        UNROLL
        for (int n = 0; n < N; n++)
            sum[n] += all[n] * 0.0625f;
    }
};

/* Two numbers of 16 bits times the lower or upper two bytes of b. */
template <bool UPPER> static __device__ inline int dot2(uint32_t a, uint32_t b, int sum)
{
#ifdef __CUDACC__
    return UPPER ? __dp2a_hi((int)a, (int)b, sum) : __dp2a_lo((int)a, (int)b, sum);
#else
    b >>= UPPER ? 16 : 0;
    return sum + (int16_t)a * (int8_t)b + (int16_t)(a >> 16) * (int8_t)(b >> 8);
#endif
}

/* What the groups of 32 of a block of Q4_K or Q5_K have: scales and minima, a byte each. */
struct group_bytes {
    uint32_t scale[2], min[2];
};

static __device__ inline group_bytes group_bytes_of(const bytes16 &head)
{
    const uint32_t low = 0x0f0f0f0fu, six = 0x3f3f3f3fu, two = 0x30303030u;
    return group_bytes{{head.w[1] & six, (head.w[3] & low) | (head.w[1] >> 2 & two)},
                       {head.w[2] & six, (head.w[3] >> 4 & low) | (head.w[2] >> 2 & two)}};
}

/* Sums of x times minima. */
static __device__ inline int group_mins(const group_bytes &b, const bytes16 &sums)
{
    int mins = dot2<false>(sums.w[0], b.min[0], 0);
    mins = dot2<true>(sums.w[1], b.min[0], mins);
    mins = dot2<false>(sums.w[2], b.min[1], mins);
    return dot2<true>(sums.w[3], b.min[1], mins);
}

/* by_both: the block's scale, and that of its minima. */
static __device__ inline float group_result(uint32_t by_both, float by, int all, int mins)
{
    return by * (from_f16((uint16_t)by_both) * (float)all -
                 from_f16((uint16_t)(by_both >> 16)) * (float)mins);
}

struct run_Q5_K {
    enum { TYPE = DT_Q5_K, COLS = 256, BYTES = 176, ACT = ACT_Q8K };
    template <int N>
    static __device__ inline void dot(const shared_place (&w)[N], shared_place x, int i, float *sum)
    {
        const uint32_t low = 0x0f0f0f0fu, bit = 0x10101010u;
        const shared_place block = x + i * RING_X_BLOCK;
        const bytes16 sums = shared_16(block + RING_X_SUMS);
        const float by = float_of(shared_4(block + RING_X_SCALE));
        group_bytes b[N];
        bytes16 fifth[N][2];
        uint32_t by_both[N];
        int all[N] = {}, mins[N];
        UNROLL
        for (int n = 0; n < N; n++) {
            const bytes16 head = shared_16(w[n]);
            by_both[n] = head.w[0];
            fifth[n][0] = shared_16(w[n] + 16);
            fifth[n][1] = shared_16(w[n] + 32);
            b[n] = group_bytes_of(head);
            mins[n] = group_mins(b[n], sums);
        }
        UNROLL
        for (int g = 0; g < 4; g++) { /* low halves are a group, high halves the next */
            int d[N][2] = {};
            UNROLL
            for (int h = 0; h < 2; h++) {
                const bytes16 q0 = shared_16(block + 64 * g + 16 * h);
                const bytes16 q1 = shared_16(block + 64 * g + 32 + 16 * h);
                UNROLL
                for (int n = 0; n < N; n++) {
                    const bytes16 c = shared_16(w[n] + 48 + 32 * g + 16 * h);
                    UNROLL
                    for (int e = 0; e < 4; e++) {
                        const uint32_t f = fifth[n][h].w[e];
                        const uint32_t f0 = g < 2 ? f << (4 - 2 * g) : f >> (2 * g - 4);
                        const uint32_t f1 = g < 2 ? f << (3 - 2 * g) : f >> (2 * g - 3);
                        d[n][0] = dot4((c.w[e] & low) | (f0 & bit), q0.w[e], d[n][0]);
                        d[n][1] = dot4((c.w[e] >> 4 & low) | (f1 & bit), q1.w[e], d[n][1]);
                    }
                }
            }
            UNROLL
            for (int n = 0; n < N; n++) {
                const uint32_t scales = b[n].scale[g / 2] >> g % 2 * 16;
                all[n] += d[n][0] * (int)(scales & 0xff) + d[n][1] * (int)(scales >> 8 & 0xff);
            }
        }
        UNROLL
        for (int n = 0; n < N; n++)
            sum[n] += group_result(by_both[n], by, all[n], mins[n]);
    }
};

struct run_Q4_K {
    enum { TYPE = DT_Q4_K, COLS = 256, BYTES = 144, ACT = ACT_Q8K };
    template <int N>
    static __device__ inline void dot(const shared_place (&w)[N], shared_place x, int i, float *sum)
    {
        const uint32_t low = 0x0f0f0f0fu;
        const shared_place block = x + i * RING_X_BLOCK;
        const bytes16 sums = shared_16(block + RING_X_SUMS);
        const float by = float_of(shared_4(block + RING_X_SCALE));
        uint32_t by_both[N], scale[N][2];
        int all[N] = {}, mins[N];
        UNROLL
        for (int n = 0; n < N; n++) {
            const bytes16 head = shared_16(w[n]);
            const group_bytes b = group_bytes_of(head);
            by_both[n] = head.w[0];
            scale[n][0] = b.scale[0];
            scale[n][1] = b.scale[1];
            mins[n] = group_mins(b, sums);
        }
        UNROLLED(2)
        for (int g = 0; g < 4; g++) { /* low halves are a group, high halves the next */
            int d[N][2] = {};
            UNROLL
            for (int h = 0; h < 2; h++) {
                const bytes16 q0 = shared_16(block + 64 * g + 16 * h);
                const bytes16 q1 = shared_16(block + 64 * g + 32 + 16 * h);
                UNROLL
                for (int n = 0; n < N; n++) {
                    const bytes16 c = shared_16(w[n] + 16 + 32 * g + 16 * h);
                    UNROLL
                    for (int e = 0; e < 4; e++) {
                        d[n][0] = dot4(c.w[e] & low, q0.w[e], d[n][0]);
                        d[n][1] = dot4(c.w[e] >> 4 & low, q1.w[e], d[n][1]);
                    }
                }
            }
            UNROLL
            for (int n = 0; n < N; n++) {
                const uint32_t scales = (g < 2 ? scale[n][0] : scale[n][1]) >> g % 2 * 16;
                all[n] += d[n][0] * (int)(scales & 0xff) + d[n][1] * (int)(scales >> 8 & 0xff);
            }
        }
        UNROLL
        for (int n = 0; n < N; n++)
            sum[n] += group_result(by_both[n], by, all[n], mins[n]);
    }
};

/* Half a block of 210 bytes, which two lanes share; it begins at an even byte. */
struct run_Q6_K {
    enum { TYPE = DT_Q6_K, COLS = 128, BYTES = 105, ACT = ACT_Q8K };
    /* Words from `at` on, of which `by` bits belong to what is before. */
    template <int N> static __device__ inline void words(shared_place at, int by, uint32_t *to)
    {
        uint32_t next = shared_4(at);
        UNROLL
        for (int i = 0; i < N; i++) {
            const uint32_t w = next;
            next = shared_4(at + 4 * i + 4);
            to[i] = (uint32_t)(((uint64_t)next << 32 | w) >> by);
        }
    }
    template <int N>
    static __device__ inline void dot(const shared_place (&w)[N], shared_place x, int i, float *sum)
    {
        const int half = i % 2;
        const shared_place codes = x + i / 2 * RING_X_BLOCK;
        const bytes16 sums = shared_16(codes + RING_X_HALVES + 16 * half);
        const float by = float_of(shared_4(codes + RING_X_SCALE));
        uint32_t low[N][16], high[N][8], scale[N][2], last[N];
        int all[N] = {};
        UNROLL
        for (int n = 0; n < N; n++) {
            const shared_place at = w[n] - half * BYTES, block = at & ~(shared_place)3;
            const int bits = block != at ? 16 : 0;
            words<16>(block + 64 * half, bits, low[n]);
            words<8>(block + 128 + 32 * half, bits, high[n]);
            words<2>(block + 192 + 8 * half, bits, scale[n]);
            last[n] = shared_4(block + 208) >> bits;
        }
        UNROLL
        for (int k = 0; k < 8; k++) { /* columns 16 k and on */
            const int g = k / 2, first = k % 2 * 4;
            const bytes16 q = shared_16(codes + half * COLS + 16 * k);
            UNROLL
            for (int n = 0; n < N; n++) {
                int d = 0;
                UNROLL
                for (int e = 0; e < 4; e++) {
                    const uint32_t l = low[n][g % 2 * 8 + first + e] >> g / 2 * 4;
                    const uint32_t f = high[n][first + e];
                    const uint32_t h = g < 2 ? f << (4 - 2 * g) : f >> (2 * g - 4);
                    d = dot4((l & 0x0f0f0f0fu) | (h & 0x30303030u), q.w[e], d);
                }
                all[n] += (int8_t)(scale[n][k / 4] >> 8 * (k % 4)) *
                          (d - 32 * (int16_t)(sums.w[k / 2] >> 16 * (k % 2)));
            }
        }
        UNROLL
        for (int n = 0; n < N; n++)
            sum[n] += by * (from_f16((uint16_t)last[n]) * (float)all[n]);
    }
};

/* ---- rows ---- */

/* What is multiplied with one row of x: rows that follow on each other. */
struct stream_rows {
    float *out;
    const float *bias; /* or NULL */
    int rows, cols;
    cuda_cut cut;
    const char *w; /* the first of them in the card's memory */
};

static __device__ inline void row_put(const stream_rows &j, int row, float sum)
{
    if (row < j.rows)
        j.out[row] = j.bias ? sum + j.bias[row] : sum;
}

/* N sums over some lanes that follow on each other, a power of two of them: without a branch, side by side. */
template <int N> static __device__ inline void lanes_sum(float *x, int lanes)
{
    UNROLL
    for (int by = WARP / 2; by > 0; by /= 2) {
        UNROLL
        for (int i = 0; i < N; i++) {
            const float with = x[i] + __shfl_xor_sync(ALL_LANES, x[i], by);
            x[i] = by < lanes ? with : x[i];
        }
    }
}

/* What a lane has of chunk i of N groups of rows, the first from `row` on: a run. */
template <class R> struct part_of_runs {
    enum { TYPE = R::TYPE, SKEWS = 0, AHEAD = EXPERT_AHEAD, SUMS = 1, X_COMES = 0 };
    enum { GROUPS = CUDA_PAIRED((dtype)R::TYPE) ? 2 : 1 };
    template <int N, class J>
    static __device__ inline void dot(const J &, const shared_place (&chunk)[N], shared_place x,
                                      int, int i, int in_row, int lanes, float *sum)
    {
        shared_place w[N];
        UNROLL
        for (int n = 0; n < N; n++)
            w[n] = chunk[n] + lane_index() * R::BYTES;
        R::dot(w, x, i * lanes + in_row, sum);
    }
};

/* Every so many blocks of a row (blocks_cuda.cuh); of one group. */
template <class B> struct part_of_blocks {
    enum { TYPE = B::TYPE, SKEWS = 1, AHEAD = BLOCKS_AHEAD, GROUPS = 1, SUMS = 1, X_COMES = 0 };
    template <class J>
    static __device__ inline void dot(const J &j, const shared_place (&chunk)[1], shared_place x,
                                      int row, int i, int in_row, int lanes, float *sum)
    {
        const int bytes = (int)j.cut.bytes, n = bytes / B::BYTES;
        const unsigned skew =
            ((unsigned)(uintptr_t)j.w + (unsigned)((row * j.cut.chunks + i) * bytes)) & 15;
        const int row_in = lane_index() >> (__ffs(lanes) - 1); /* lanes: a power of two */
        *sum +=
            blocks_dot<B>(chunk[0] + skew + (unsigned)(row_in * bytes), x, i * n, n, in_row, lanes);
    }
};

/* What a warp multiplies with, the ring's sizes, and how rows are shared out among lanes. */
struct stream_lanes {
    shared_place x;
    int slots, slot_bytes;
    int row_bits, lanes, in_row, step;
};

/* N groups of rows from `row` on, chunk by chunk, side by side: x is read once for all, and sums do not wait for each other. */
template <class P, int N>
static __device__ inline void stream_groups(const stream_rows &j, ring_reader &p,
                                            const stream_lanes &l, int row)
{
    float sum[N] = {};
    UNROLLED(1)
    for (int i = 0; i < j.cut.chunks; i++) {
        ring_chunk chunk[N];
        shared_place at[N];
        float all = 0;
        UNROLL
        for (int n = 0; n < N; n++) {
            chunk[n] = ring_take(p, l.slots, l.slot_bytes);
            at[n] = chunk[n].at;
        }
        P::dot(j, at, l.x, row, i, l.in_row, l.lanes, sum);
        UNROLL
        for (int n = 0; n < N; n++)
            all += sum[n];
        ring_used(chunk, all);
    }
    lanes_sum<N>(sum, l.lanes);
    const int first = row + (lane_index() >> (5 - l.row_bits));
    if (l.in_row < N) /* a lane for each, but where rows have one alone */
        row_put(j, first + l.in_row * l.step, l.in_row ? sum[N - 1] : sum[0]);
    if (N > 1 && l.lanes == 1)
        row_put(j, first + l.step, sum[N - 1]);
}

/* The warp's rows of its block's next segment. */
template <class P> static __device__ inline void stream_parts(const stream_rows &j, ring_block *r)
{
    const int row_bits = __ffs(j.cut.rows) - 1, lanes = WARP >> row_bits; /* rows: a power of two */
    const stream_lanes l = {shared_at(r->x),
                            r->slots,
                            r->slot_bytes,
                            row_bits,
                            lanes,
                            lane_index() & (lanes - 1),
                            warp_count() << row_bits};
    const bool pairs = (int)P::GROUPS == 2 && ring_pairs(r->slots, j.cut);
    ring_reader p = r->reader[warp_index()];
    int row = warp_index() << row_bits;
    UNROLLED(1)
    for (; pairs && row + l.step < j.rows; row += 2 * l.step)
        stream_groups<P, P::GROUPS>(j, p, l, row);
    UNROLLED(1)
    for (; row < j.rows; row += l.step)
        stream_groups<P, 1>(j, p, l, row);
    ring_save(r, p);
}

template <bool F16> static __device__ inline float half_low(uint32_t w)
{
    return F16 ? from_f16((uint16_t)w) : float_of(w << 16);
}

template <bool F16> static __device__ inline float half_high(uint32_t w)
{
    return F16 ? from_f16((uint16_t)(w >> 16)) : float_of(w & 0xffff0000u);
}

/* To two sums, of even and of odd columns: each waits for itself alone. */
template <bool F16>
static __device__ inline void eight_halves(const bytes16 &w, const bytes16 &low,
                                           const bytes16 &high, float *sum)
{
    UNROLL
    for (int e = 0; e < 4; e++) {
        const bytes16 &x = e < 2 ? low : high;
        sum[0] = mad(half_low<F16>(w.w[e]), float_of(x.w[2 * e % 4]), sum[0]);
        sum[1] = mad(half_high<F16>(w.w[e]), float_of(x.w[2 * e % 4 + 1]), sum[1]);
    }
}

/* N times eight columns of two rows, `bytes` apart, 32 lanes on each time: all are loaded before the first is multiplied. */
template <bool F16, int N>
static __device__ inline void two_rows(shared_place w, int bytes, shared_place x, int high,
                                       float (*sum)[2])
{
    bytes16 x0[N], x1[N], w0[N], w1[N];
    UNROLL
    for (int e = 0; e < N; e++) {
        w0[e] = shared_16(w + e * WARP * 16);
        x0[e] = shared_16(x + e * WARP * 16);
        w1[e] = shared_16(w + bytes + e * WARP * 16);
        x1[e] = shared_16(x + high + e * WARP * 16);
    }
    UNROLL
    for (int e = 0; e < N; e++) {
        eight_halves<F16>(w0[e], x0[e], x1[e], sum[0]);
        eight_halves<F16>(w1[e], x0[e], x1[e], sum[1]);
    }
}

/* A chunk of two rows of 16-bit numbers, `bytes` of each, times x from there on. */
template <bool F16>
static __device__ inline void halves_add(shared_place at, int bytes, shared_place x, int high,
                                         float (*sum)[2])
{
    enum { AT_ONCE = 4 };
    int c = lane_index() * 16;
    UNROLLED(1)
    for (; c + (AT_ONCE - 1) * WARP * 16 < bytes; c += AT_ONCE * WARP * 16)
        two_rows<F16, AT_ONCE>(at + c, bytes, x + c, high, sum);
    UNROLLED(1)
    for (; c < bytes; c += WARP * 16)
        two_rows<F16, 1>(at + c, bytes, x + c, high, sum);
}

/* The sums of all lanes: one of the upper half has the second row's. */
static __device__ inline float halves_all(const float (*sum)[2])
{
    const float first = sum[0][0] + sum[0][1], second = sum[1][0] + sum[1][1];
    const bool upper = lane_index() >= WARP / 2;
    float all = upper ? second : first;
    all += __shfl_xor_sync(ALL_LANES, upper ? first : second, WARP / 2);
    lanes_sum<1>(&all, WARP / 2);
    return all;
}

/* Two rows of 16-bit numbers at a time. */
template <bool F16> static __device__ inline void stream_halves(const stream_rows &j, ring_block *r)
{
    const int lane = lane_index(), bytes = (int)j.cut.bytes;
    const shared_place x = shared_at(r->x);
    const int high = j.cols / 8 * 16; /* from the first half of x to the second */
    const int slots = r->slots, slot_bytes = r->slot_bytes;
    ring_reader p = r->reader[warp_index()];
    UNROLLED(1)
    for (int row = warp_index() * 2; row < j.rows; row += warp_count() * 2) {
        float sum[2][2] = {};
        UNROLLED(1)
        for (int i = 0; i < j.cut.chunks; i++) {
            const ring_chunk chunk[1] = {ring_take(p, slots, slot_bytes)};
            halves_add<F16>(chunk[0].at, bytes, x + i * bytes, high, sum);
            ring_used(chunk, sum[0][0] + sum[0][1] + sum[1][0] + sum[1][1]);
        }
        const float all = halves_all(sum);
        if (lane % (WARP / 2) == 0)
            row_put(j, row + lane / (WARP / 2), all);
    }
    ring_save(r, p);
}

/* ---- x ---- */

/* A row of 8 bits (act.h) into blocks: codes, then of ACT_Q8K sums and a scale, of ACT_Q8 eight scales. */
static __device__ inline void x_to_blocks(const char *row, kact act, int n, char *x)
{
    const float *d = act_d(row, n);
    const int16_t *sum = act_sum(act, row, n);
    const int blocks = n / RING_X_COLS;
    UNROLLED(1)
    for (int i = (int)threadIdx.x; i < blocks * 16; i += block_threads())
        *(bytes16 *)(x + i / 16 * RING_X_BLOCK + i % 16 * 16) = *(const bytes16 *)(row + i * 16);
    UNROLLED(1)
    for (int i = (int)threadIdx.x; i < blocks * 8; i += block_threads()) {
        char *block = x + i / 8 * RING_X_BLOCK;
        if (act == ACT_Q8)
            ((float *)(block + RING_X_COLS))[i % 8] = d[i];
        if (act == ACT_Q8K) {
            ((int16_t *)(block + RING_X_SUMS))[i % 8] = (int16_t)(sum[2 * i] + sum[2 * i + 1]);
            ((uint32_t *)(block + RING_X_HALVES))[i % 8] = ((const uint32_t *)sum)[i];
        }
        if (act == ACT_Q8K && i % 8 == 0)
            *(float *)(block + RING_X_SCALE) = d[i / 8];
    }
}

/* n floats, whole eights: the first four of each, then the second four of each. */
static __device__ inline void x_to_halves(const char *row, int n, char *x)
{
    enum { AT_ONCE = 8 }; /* loads that do not wait for each other */
    const int quads = n / 4, thread = (int)threadIdx.x;
    /* Threads are a whole number of pairs: a thread has quads of one half alone. */
    shared_place to = shared_at(x) + (thread % 2 * (quads / 2) + thread / 2) * 16;
    UNROLLED(1)
    for (int first = thread; first < quads; first += AT_ONCE * block_threads()) {
        bytes16 v[AT_ONCE];
        UNROLL
        for (int e = 0; e < AT_ONCE; e++)
            if (first + e * block_threads() < quads)
                v[e] = *(const bytes16 *)(row + (first + e * block_threads()) * 16);
        UNROLL
        for (int e = 0; e < AT_ONCE; e++, to += block_threads() / 2 * 16)
            if (first + e * block_threads() < quads)
                shared_put(to, v[e]);
    }
}

/* ---- without a ring ---- */

/* What multiplies some rows of x by itself; apart, since it is rare where a ring is. */
struct plain_job {
    dot_weights j;
    const char *x; /* rows of it, x_pitch apart */
    int64_t x_pitch;
    char *out;
    int64_t out_pitch;
    int64_t rows;
};

/* Eight columns from c on of a row that is filled up to whole eights, each the sum of some bf16: from the least on, which is exact. */
static __device__ inline eight_floats x_eight_split(kact act, const char *x, uint32_t c)
{
    const uint16_t *parts = (const uint16_t *)x;
    eight_floats e = {};
    UNROLL
    for (int p = (int)act_parts(act) - 1; p >= 0; p--)
        UNROLL
    for (int i = 0; i < EIGHT; i++)
        e.w[i] += from_bf16(parts[act_split_at(act, (int64_t)c + i, p, 0)]);
    return e;
}

/* Eight columns from c on of a row of n: of floats, of bf16, or of 8 bits. */
template <int ACT>
static __device__ inline eight_floats x_eight_of(const char *x, uint32_t c, uint32_t n)
{
    if (ACT == ACT_F32)
        return x_eight((const float *)x, c, n);
    if (act_is_split((kact)ACT))
        return x_eight_split((kact)ACT, x, c);
    const bytes8 q = *(const bytes8 *)(act_q(x) + c);
    const float d = act_d(x, n)[c / (uint32_t)act_block((kact)ACT)];
    eight_floats e;
    UNROLL
    for (int i = 0; i < EIGHT; i++)
        e.w[i] = d * (float)(int8_t)(q.w[i / 4] >> 8 * (i % 4));
    return e;
}

/* Rows of weights times a row of x, two at a time. */
template <class W, int ACT>
static __device__ inline void plain_row(const dot_weights &j, const char *x, float *out)
{
    const uint32_t n = (uint32_t)j.n;
    UNROLLED(1)
    for (int64_t r = j.row + 2 * warp_index(); r < j.row_end; r += 2 * warp_count()) {
        const uint8_t *w0 = j.w + r * j.pitch, *w1 = r + 1 < j.row_end ? w0 + j.pitch : w0;
        float sum[2] = {};
        UNROLLED(4)
        for (uint32_t c = (uint32_t)lane_index() * EIGHT; c < n; c += WARP * EIGHT) {
            const eight_floats a = eight_as<W>(j.type, w0, c, n), b = eight_as<W>(j.type, w1, c, n);
            const eight_floats v = x_eight_of<ACT>(x, c, n);
            UNROLL
            for (int i = 0; i < EIGHT; i++) {
                sum[0] = mad(a.w[i], v.w[i], sum[0]);
                sum[1] = mad(b.w[i], v.w[i], sum[1]);
            }
        }
        const float first = warp_sum(sum[0]), second = warp_sum(sum[1]);
        const int64_t row = r + lane_index();
        const float all = lane_index() ? second : first;
        if (lane_index() < 2 && row < j.row_end)
            out[row] = j.bias ? all + j.bias[row] : all;
    }
}

template <class W, int ACT> static __device__ APART void plain_rows(plain_job p)
{
    UNROLLED(1)
    for (int64_t row = 0; row < p.rows; row++)
        plain_row<W, ACT>(p.j, p.x + row * p.x_pitch, (float *)(p.out + row * p.out_pitch));
}

template <class W, int ACT>
static __device__ inline void plain_part(const kargs *k, const dot_weights &j, const kpart &part)
{
    plain_rows<W, ACT>(plain_job{j, (const char *)row_in(k, 0, part.row), k->pitch[0],
                                 (char *)row_out(k, 0, part.row), k->out_pitch[0],
                                 part.row_end - part.row});
}

/* ---- the kernels ---- */

/* How x lies for a linear: as its act says; or in small blocks, plain or with pairs of columns side by side. These have numbers of their
 * own for what they were made of: no row begins there. */
enum x_form { X_OF_ACT, X_SMALL, X_PAIRS };

/* x where warps read it, for all threads. */
template <int FORM> static __device__ inline void stream_x(const char *x, kact act, int n)
{
    ring_block *r = block_ring();
    if (r->x_of == x + FORM) /* the same for all threads: it is written where all have read it */
        return;
    if (FORM != X_OF_ACT)
        x_to_small<FORM == X_PAIRS>(x, n, r->x);
    else if (act == ACT_F32)
        x_to_halves(x, n, r->x);
    else
        x_to_blocks(x, act, n, r->x);
    block_sync();
    if (threadIdx.x == 0)
        r->x_of = x + FORM;
}

struct linear_of_BF16 {
    enum { ACT = ACT_F32, FORM = X_OF_ACT };
    static __device__ inline void run(const stream_rows &j, ring_block *r)
    {
        stream_halves<false>(j, r);
    }
};

struct linear_of_F16 {
    enum { ACT = ACT_F32, FORM = X_OF_ACT };
    static __device__ inline void run(const stream_rows &j, ring_block *r)
    {
        stream_halves<true>(j, r);
    }
};

template <class R> struct linear_of_runs {
    enum { ACT = R::ACT, FORM = X_OF_ACT };
    static __device__ inline void run(const stream_rows &j, ring_block *r)
    {
        stream_parts<part_of_runs<R>>(j, r);
    }
};

template <class B> struct linear_of_blocks {
    enum { ACT = ACT_Q8, FORM = B::PAIRS ? X_PAIRS : X_SMALL };
    static __device__ inline void run(const stream_rows &j, ring_block *r)
    {
        stream_parts<part_of_blocks<B>>(j, r);
    }
};

/* Rows of the ring's next segment times x. */
template <class L> static __device__ inline void stream_segment(const stream_rows &j, const void *x)
{
    stream_x<L::FORM>((const char *)x, (kact)L::ACT, j.cols);
    L::run(j, block_ring());
}

/* By L, or if rows are cut by blocks by LB; W: weights as they are read without a ring. */
template <class L, class LB, class W>
static __device__ inline void linear_stream(const kargs *k, int64_t begin, int64_t end)
{
    const kpart part = kpart_of(k, k->size.linear.out, begin, end);
    const dot_weights j = linear_weights(k, part);
#ifdef WEFT_SHAPES
    const ring_segment *g = NULL; /* linear_listed has seen it */
#else
    const ring_segment *g =
        ring_find(block_ring(), (const char *)j.w + j.row * j.pitch, (int)(j.row_end - j.row));
#endif
    if (!g || k->size.linear.rows != 1) {
        plain_part<W, L::ACT>(k, j, part);
        return;
    }
    const stream_rows of = {row_out(k, 0, 0) + g->row,
                            j.bias ? j.bias + g->row : NULL,
                            g->rows,
                            (int)j.n,
                            g->cut,
                            g->w};
    if ((int)L::FORM != (int)LB::FORM && g->cut.bytes % 16 != 0) /* cuda_cut_is_blocks */
        stream_segment<LB>(of, row_in(k, 0, 0));
    else
        stream_segment<L>(of, row_in(k, 0, 0));
}

/* Each type, how its rows are multiplied, and how if they are cut by blocks. */
#define LINEAR_STREAMS(X)                                                                          \
    X(BF16, linear_of_BF16, linear_of_BF16)                                                        \
    X(F16, linear_of_F16, linear_of_F16)                                                           \
    X(Q8_0, linear_of_runs<run_Q8_0>, linear_of_blocks<block_Q8_0>)                                \
    X(Q4_0, linear_of_runs<run_Q4_0>, linear_of_blocks<block_Q4_0>)                                \
    X(MXFP4, linear_of_blocks<block_MXFP4>, linear_of_blocks<block_MXFP4>)                         \
    X(Q4_K, linear_of_runs<run_Q4_K>, linear_of_runs<run_Q4_K>)                                    \
    X(Q5_K, linear_of_runs<run_Q5_K>, linear_of_runs<run_Q5_K>)                                    \
    X(Q6_K, linear_of_runs<run_Q6_K>, linear_of_runs<run_Q6_K>)

#define LINEAR_STREAM(type, of, of_blocks)                                                         \
    static __device__ ONE_COPY void k_linear_##type##_stream_cuda(const kargs *k, const kthread *, \
                                                                  int64_t begin, int64_t end)      \
    {                                                                                              \
        linear_stream<of, of_blocks, weight_##type>(k, begin, end);                                \
    }
LINEAR_STREAMS(LINEAR_STREAM)
#undef LINEAR_STREAM

#ifdef WEFT_SHAPES
/* Where a segment of the phase at hand begins. */
static __device__ inline const char *segment_first(int segment)
{
    const ring_block *r = block_ring();
    return r->list[r->phase % PACKS].of[segment].w;
}

/* With what phase.cu has listed for a step, where the ring brings its weights: the short way there, which meets the gate late. Else
 * false. */
template <class L> static __device__ inline bool linear_listed(const cuda_step *s)
{
    if (s->segment < 0)
        return false;
    stream_rows j = {
        (float *)s->out[0], (const float *)s->in[2], s->linear_out, s->linear_in, s->cut, NULL};
    const void *x = s->in[0];
    if (!gate_meet_late())
        return true;
    j.w = segment_first(s->segment);
    stream_segment<L>(j, x);
    return true;
}

#define LINEAR_LISTED(type, of, of_blocks)                                                         \
    static __device__ SHAPE_FN bool k_linear_##type##_stream_cuda_listed(const cuda_step *s)       \
    {                                                                                              \
        return linear_listed<of>(s);                                                               \
    }                                                                                              \
    static __device__ SHAPE_FN bool k_linear_##type##_stream_cuda_blocks_listed(                   \
        const cuda_step *s)                                                                        \
    {                                                                                              \
        return linear_listed<of_blocks>(s);                                                        \
    }
LINEAR_STREAMS(LINEAR_LISTED)
#undef LINEAR_LISTED
#endif
#undef LINEAR_STREAMS

#endif
