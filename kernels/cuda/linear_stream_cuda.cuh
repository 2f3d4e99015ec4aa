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

#include "kernels/cuda/linear_cuda.cuh"
#include "kernels/cuda/ring_cuda.cuh"

static __device__ inline int dot4(uint32_t a, uint32_t b, int sum)
{
    return __dp4a((int)a, (int)b, sum);
}

/* Four bytes from any even place on, of two words. */
static __device__ inline uint32_t word_at(const uint32_t *w, int byte)
{
    return byte % 4 ? w[byte / 4] >> 16 | w[byte / 4 + 1] << 16 : w[byte / 4];
}

/* ---- types: the product of a lane's run with run i of x ---- */

struct run_Q8_0 {
    enum { TYPE = DT_Q8_0, COLS = 128, BYTES = 136, ACT = ACT_Q8 };
    static __device__ inline float dot(shared_place w, shared_place x, int i)
    {
        const shared_place block = x + i / 2 * RING_X_BLOCK, codes = block + i % 2 * COLS;
        const bytes16 scales = shared_16(block + RING_X_COLS + i % 2 * 16);
        uint32_t v[BYTES / 4];
        float sum = 0;
        UNROLL
        for (int e = 0; e < BYTES / 8; e++) {
            bytes8 b = shared_8(w + 8 * e);
            v[2 * e] = b.w[0];
            v[2 * e + 1] = b.w[1];
        }
        UNROLL
        for (int g = 0; g < 4; g++) {
            int d = 0;
            UNROLL
            for (int h = 0; h < 2; h++) {
                bytes16 q = shared_16(codes + 32 * g + 16 * h);
                UNROLL
                for (int e = 0; e < 4; e++)
                    d = dot4(word_at(v, 34 * g + 2 + 16 * h + 4 * e), q.w[e], d);
            }
            float by = from_f16((uint16_t)(v[34 * g / 4] >> 34 * g % 4 * 8));
            sum = mad(by * float_of(scales.w[g]), (float)d, sum);
        }
        return sum;
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

struct run_Q4_K {
    enum { TYPE = DT_Q4_K, COLS = 256, BYTES = 144, ACT = ACT_Q8K };
    static __device__ inline float dot(shared_place w, shared_place x, int i)
    {
        const uint32_t low = 0x0f0f0f0fu, six = 0x3f3f3f3fu, two = 0x30303030u;
        const shared_place block = x + i * RING_X_BLOCK;
        const bytes16 head = shared_16(w), sums = shared_16(block + RING_X_SUMS);
        const float by = float_of(shared_4(block + RING_X_SCALE));
        /* Scales and minima of the groups of 32, a byte each. */
        const uint32_t scale[2] = {head.w[1] & six, (head.w[3] & low) | (head.w[1] >> 2 & two)};
        const uint32_t min[2] = {head.w[2] & six, (head.w[3] >> 4 & low) | (head.w[2] >> 2 & two)};
        int all = 0, mins = dot2<false>(sums.w[0], min[0], 0);
        mins = dot2<true>(sums.w[1], min[0], mins);
        mins = dot2<false>(sums.w[2], min[1], mins);
        mins = dot2<true>(sums.w[3], min[1], mins);
        UNROLLED(2)
        for (int g = 0; g < 4; g++) {
            const uint32_t scales = (g < 2 ? scale[0] : scale[1]) >> g % 2 * 16;
            int d0 = 0, d1 = 0;
            UNROLL
            for (int h = 0; h < 2; h++) {
                const bytes16 c = shared_16(w + 16 + 32 * g + 16 * h);
                const bytes16 q0 = shared_16(block + 64 * g + 16 * h);
                const bytes16 q1 = shared_16(block + 64 * g + 32 + 16 * h);
                UNROLL
                for (int e = 0; e < 4; e++) {
                    d0 = dot4(c.w[e] & low, q0.w[e], d0);
                    d1 = dot4(c.w[e] >> 4 & low, q1.w[e], d1);
                }
            }
            all += d0 * (int)(scales & 0xff) + d1 * (int)(scales >> 8 & 0xff);
        }
        return by * (from_f16((uint16_t)head.w[0]) * (float)all -
                     from_f16((uint16_t)(head.w[0] >> 16)) * (float)mins);
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
    static __device__ inline float dot(shared_place w, shared_place x, int i)
    {
        const int half = i % 2;
        const shared_place at = w - half * BYTES, block = at & ~(shared_place)3;
        const shared_place codes = x + i / 2 * RING_X_BLOCK;
        const int by = block != at ? 16 : 0;
        const bytes16 sums = shared_16(codes + RING_X_HALVES + 16 * half);
        uint32_t low[16], high[8], scale[2];
        words<16>(block + 64 * half, by, low);
        words<8>(block + 128 + 32 * half, by, high);
        words<2>(block + 192 + 8 * half, by, scale);
        int all = 0;
        UNROLL
        for (int k = 0; k < 8; k++) { /* columns 16 k and on */
            const int g = k / 2, first = k % 2 * 4;
            const bytes16 q = shared_16(codes + half * COLS + 16 * k);
            int d = 0;
            UNROLL
            for (int e = 0; e < 4; e++) {
                const uint32_t l = low[g % 2 * 8 + first + e] >> g / 2 * 4;
                const uint32_t h =
                    g < 2 ? high[first + e] << (4 - 2 * g) : high[first + e] >> (2 * g - 4);
                d = dot4((l & 0x0f0f0f0fu) | (h & 0x30303030u), q.w[e], d);
            }
            all += (int8_t)(scale[k / 4] >> 8 * (k % 4)) *
                   (d - 32 * (int16_t)(sums.w[k / 2] >> 16 * (k % 2)));
        }
        const uint16_t d = (uint16_t)(shared_4(block + 208) >> by);
        return float_of(shared_4(codes + RING_X_SCALE)) * (from_f16(d) * (float)all);
    }
};

/* ---- rows ---- */

static __device__ inline void row_put(const dot_weights &j, float *out, int64_t row, float sum)
{
    if (row < j.row_end)
        out[row] = j.bias ? sum + j.bias[row] : sum;
}

/* The warp's rows of its block's next segment. */
template <class R>
static __device__ inline void stream_runs(const dot_weights &j, const cuda_cut &cut, ring_block *r,
                                          float *out)
{
    const int row_bits = __ffs(cut.rows) - 1, lanes = WARP >> row_bits; /* rows: a power of two */
    const int in_row = lane_index() & (lanes - 1), step = warp_count() << row_bits;
    const shared_place x = shared_at(r->x), slots = ring_slots(r, warp_index());
    ring_warp w = r->warp[warp_index()];
    w.taken++;
    UNROLLED(1)
    for (int row = (int)j.row + warp_index() * cut.rows; row < (int)j.row_end; row += step) {
        float sum = 0;
        UNROLLED(1)
        for (int i = 0; i < cut.chunks; i++) {
            const shared_place at = ring_chunk(r, w, slots);
            sum += R::dot(at + lane_index() * R::BYTES, x, i * lanes + in_row);
            ring_used(r, w, slots, sum);
        }
        UNROLLED(1)
        for (int by = lanes / 2; by > 0; by /= 2)
            sum += __shfl_xor_sync(ALL_LANES, sum, by);
        if (in_row == 0)
            row_put(j, out, row + (lane_index() >> (5 - row_bits)), sum);
    }
    ring_save(r, w, warp_index());
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

/* Two rows of 16-bit numbers. */
template <bool F16>
static __device__ inline void stream_halves(const dot_weights &j, const cuda_cut &cut,
                                            ring_block *r, float *out)
{
    const int lane = lane_index(), bytes = (int)cut.bytes;
    const shared_place x = shared_at(r->x), slots = ring_slots(r, warp_index());
    const int high = (int)(j.n / 8) * 16; /* from the first half of x to the second */
    ring_warp w = r->warp[warp_index()];
    w.taken++;
    UNROLLED(1)
    for (int row = (int)j.row + warp_index() * 2; row < (int)j.row_end; row += warp_count() * 2) {
        float sum[2][2] = {};
        UNROLLED(1)
        for (int i = 0; i < cut.chunks; i++) {
            const shared_place at = ring_chunk(r, w, slots), xs = x + i * bytes;
            UNROLLED(4)
            for (int c = lane * 16; c < bytes; c += WARP * 16) {
                const bytes16 x0 = shared_16(xs + c), x1 = shared_16(xs + high + c);
                eight_halves<F16>(shared_16(at + c), x0, x1, sum[0]);
                eight_halves<F16>(shared_16(at + bytes + c), x0, x1, sum[1]);
            }
            ring_used(r, w, slots, sum[0][0] + sum[0][1] + sum[1][0] + sum[1][1]);
        }
        UNROLL
        for (int i = 0; i < 2; i++) {
            float all = warp_sum(sum[i][0] + sum[i][1]);
            if (lane == 0)
                row_put(j, out, row + i, all);
        }
    }
    ring_save(r, w, warp_index());
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
    const int quads = n / 4;
    UNROLLED(4)
    for (int i = (int)threadIdx.x; i < quads; i += block_threads())
        *(bytes16 *)(x + (i % 2 * (quads / 2) + i / 2) * 16) = *(const bytes16 *)(row + i * 16);
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
    kact act;
};

/* Rows of weights of any kind times a row that is rounded to 8 bits, element by element. */
static __device__ void plain_blocks(const plain_job &p, int64_t x_row)
{
    const dot_weights &j = p.j;
    const char *row = p.x + x_row * p.x_pitch;
    const float *d = act_d(row, j.n);
    const int8_t *q = act_q(row);
    const int64_t b = act_block(p.act);
    for (int64_t r = j.row + warp_index(); r < j.row_end; r += warp_count()) {
        float sum = 0;
        for (int64_t c = lane_index() * EIGHT; c < j.n; c += WARP * EIGHT) {
            eight_floats w =
                eight_as<weight_any>(j.type, j.w + r * j.pitch, (uint32_t)c, (uint32_t)j.n);
            for (int i = 0; i < EIGHT; i++)
                sum = mad(w.w[i], d[(c + i) / b] * (float)q[c + i], sum);
        }
        sum = warp_sum(sum);
        if (lane_index() == 0)
            row_put(j, (float *)(p.out + x_row * p.out_pitch), r, sum);
    }
}

static __device__ APART void plain_rows(plain_job p)
{
    for (int64_t row = 0; row < p.rows && p.act != ACT_F32; row++)
        plain_blocks(p, row);
    for (int64_t row = 0; row < p.rows && p.act == ACT_F32; row += FEW_X) {
        few_rows r;
        r.n = (int)least(p.rows - row, FEW_X);
        for (int i = 0; i < r.n; i++) {
            r.x[i] = (const float *)(p.x + (row + i) * p.x_pitch);
            r.out[i] = (float *)(p.out + (row + i) * p.out_pitch);
        }
        few_dots_any(p.j, r);
    }
}

static __device__ inline void plain_part(const kargs *k, const dot_weights &j, kact act,
                                         const kpart &part)
{
    plain_rows(plain_job{j, (const char *)row_in(k, 0, part.row), k->pitch[0],
                         (char *)row_out(k, 0, part.row), k->out_pitch[0], part.row_end - part.row,
                         act});
}

/* ---- the kernels ---- */

/* What the ring brings, if it is these rows; then x is there too, for all threads. Else NULL. */
static __device__ inline const ring_segment *stream_begin(const kargs *k, const dot_weights &j,
                                                          kact act)
{
    ring_block *r = block_ring();
    const char *w = (const char *)j.w + j.row * j.pitch, *x = (const char *)row_in(k, 0, 0);
    const ring_segment *s = ring_takes(r, w, (int)(j.row_end - j.row));
    if (k->size.linear.rows != 1 || !s)
        return NULL;
    if (r->x_of != x) { /* the same for all threads: it is written where all have read it */
        if (act == ACT_F32)
            x_to_halves(x, (int)j.n, r->x);
        else
            x_to_blocks(x, act, (int)j.n, r->x);
        __syncthreads();
        if (threadIdx.x == 0)
            r->x_of = x;
    }
    return s;
}

template <class R>
static __device__ inline void linear_runs(const kargs *k, int64_t begin, int64_t end)
{
    const kpart part = kpart_of(k, k->size.linear.out, begin, end);
    const dot_weights j = linear_weights(k, part);
    const ring_segment *s = stream_begin(k, j, (kact)R::ACT);
    if (s)
        stream_runs<R>(j, s->cut, block_ring(), row_out(k, 0, 0));
    else
        plain_part(k, j, (kact)R::ACT, part);
}

template <bool F16>
static __device__ inline void linear_halves(const kargs *k, int64_t begin, int64_t end)
{
    const kpart part = kpart_of(k, k->size.linear.out, begin, end);
    const dot_weights j = linear_weights(k, part);
    const ring_segment *s = stream_begin(k, j, ACT_F32);
    if (s)
        stream_halves<F16>(j, s->cut, block_ring(), row_out(k, 0, 0));
    else
        plain_part(k, j, ACT_F32, part);
}

#define LINEAR_STREAM(type, call)                                                                  \
    static __device__ ONE_COPY void k_linear_##type##_stream_cuda(const kargs *k, const kthread *, \
                                                                  int64_t begin, int64_t end)      \
    {                                                                                              \
        call(k, begin, end);                                                                       \
    }
LINEAR_STREAM(BF16, linear_halves<false>)
LINEAR_STREAM(F16, linear_halves<true>)
LINEAR_STREAM(Q8_0, linear_runs<run_Q8_0>)
LINEAR_STREAM(Q4_K, linear_runs<run_Q4_K>)
LINEAR_STREAM(Q6_K, linear_runs<run_Q6_K>)
#undef LINEAR_STREAM

#endif
