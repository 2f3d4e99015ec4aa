/* blocks_cuda.cuh - one row of x in 8 bits times rows of blocks of 32 columns, which begin at any byte.
 *
 * Of a row a lane has every so many blocks. Such rows need not be whole runs (linear_stream_cuda.cuh), nor begin at multiples of 16
 * bytes: they follow on each other, and are copied with what is around them, a piece at a time (ring_size.h).
 *
 * x is blocks of 32 columns too, with their scales, so far apart that lanes with blocks that follow on each other read different
 * banks. */
#ifndef WEFT_KERNELS_CUDA_BLOCKS_CUDA_CUH
#define WEFT_KERNELS_CUDA_BLOCKS_CUDA_CUH

#include "kernels/cuda/ring_x_cuda.cuh"

static __device__ inline int dot4(uint32_t a, uint32_t b, int sum)
{
    return __dp4a((int)a, (int)b, sum);
}

/* Four of the eight bytes of two words: a half byte of `which` says the number of one, and with 8 added that its sign fills the
 * byte. */
static __device__ inline uint32_t bytes_picked(uint32_t low, uint32_t high, uint32_t which)
{
#ifdef __CUDACC__
    uint32_t x;
    asm("prmt.b32 %0, %1, %2, %3;" : "=r"(x) : "r"(low), "r"(high), "r"(which));
    return x;
#else
    uint32_t x = 0;
    for (int i = 0; i < 4; i++, which >>= 4) {
        const uint32_t one = (which & 4 ? high : low) >> (which & 3) * 8 & 0xff;
        x |= (which & 8 ? (one >> 7) * 0xff : one) << 8 * i;
    }
    return x;
#endif
}

/* Words from a byte on, `bits` bits into the first of them: 0 to 32. */
static __device__ inline uint32_t word_from(uint32_t low, uint32_t high, uint32_t bits)
{
#ifdef __CUDACC__
    return __funnelshift_rc(low, high, bits);
#else
    return (uint32_t)(((uint64_t)high << 32 | low) >> bits);
#endif
}

/* x, which compilers are not to know: they would have it where few instructions can read it, and copy it for each. `at` is of shared
 * memory, all of whose places are small. */
static __device__ inline uint32_t not_known(uint32_t x, shared_place at)
{
#ifdef __CUDACC__
    return x | at >> 24;
#else
    (void)at;
    return x;
#endif
}

/* ---- types: adds the product of a block with 32 columns of x to a sum ----
 *
 * A block as words, of which it begins `bits` bits into the first. TABLE: a word that it needs. */

struct block_Q8_0 {
    enum { TYPE = DT_Q8_0, BYTES = 34, PAIRS = 0, WORDS = 9, TABLE = 0 };
    static __device__ inline float add(const uint32_t *v, uint32_t bits, const bytes16 *q, float by,
                                       uint32_t, float sum)
    {
        int d = 0;
        UNROLL
        for (int e = 0; e < 8; e++)
            d = dot4(word_from(v[e], v[e + 1], bits + 16), q[e / 4].w[e % 4], d);
        return mad(from_f16((uint16_t)(v[0] >> bits)) * by, (float)d, sum);
    }
};

struct block_Q4_0 {
    enum { TYPE = DT_Q4_0, BYTES = 18, PAIRS = 0, WORDS = 5, TABLE = 0 };
    static __device__ inline float add(const uint32_t *v, uint32_t bits, const bytes16 *q, float by,
                                       uint32_t, float sum)
    {
        const uint32_t high = 0xf0f0f0f0u, sign = 0x80808080u; /* 16 times code - 8 is a byte */
        int d = 0;
        UNROLL
        for (int e = 0; e < 4; e++) {
            const uint32_t c = word_from(v[e], v[e + 1], bits + 16);
            d = dot4((c << 4 & high) ^ sign, q[0].w[e], d);
            d = dot4((c & high) ^ sign, q[1].w[e], d);
        }
        return mad(from_f16((uint16_t)(v[0] >> bits)) * by * 0.0625f, (float)d, sum);
    }
};

/* An exponent and 32 codes, each a sign and one of eight magnitudes, which are picked as bytes: those of positive codes, and then of
 * negative ones. x has columns j and j + 16 side by side, as codes are. */
struct block_MXFP4 {
    enum { TYPE = DT_MXFP4, BYTES = 17, PAIRS = 1, WORDS = 5, TABLE = 0x03020100 };
    static __device__ inline float add(const uint32_t *v, uint32_t bits, const bytes16 *q, float by,
                                       uint32_t low, float sum)
    {
        const uint32_t high = 0x0c080604u; /* twice the magnitudes; `low` has the others */
        int more = 0, less = 0;
        UNROLL
        for (int i = 0; i < 4; i++) {
            const uint32_t c = word_from(v[i], v[i + 1], bits + 8), not_c = c ^ 0x88888888u;
            const uint32_t x0 = q[i / 2].w[2 * i % 4], x1 = q[i / 2].w[2 * i % 4 + 1];
            more = dot4(bytes_picked(low, high, c), x0, more);
            less = dot4(bytes_picked(low, high, not_c), x0, less);
            more = dot4(bytes_picked(low, high, c >> 16), x1, more);
            less = dot4(bytes_picked(low, high, not_c >> 16), x1, less);
        }
        /* Half of 2^(e - 127); the second is larger for e of 0 and 1, where that is subnormal. */
        const int e = (int)__byte_perm(v[0], 0, 0x4440 + bits / 8);
        const int usual = (e - 1) * (1 << 23), small = (e + 1) * (1 << 21);
        const float d = float_of((uint32_t)(usual > small ? usual : small));
        return mad(d * by, (float)(more - less), sum);
    }
};

/* ---- rows ---- */

/* A block and its columns of x. */
template <class B> struct block_and_x {
    uint32_t v[B::WORDS];
    bytes16 q[2];
    float by;
    __device__ inline void load(shared_place w, shared_place x)
    {
        UNROLL
        for (int i = 0; i < B::WORDS; i++)
            v[i] = shared_4(w + 4 * i);
        q[0] = shared_16(x);
        q[1] = shared_16(x + 16);
        by = float_of(shared_4(x + 32));
    }
};

/* What a lane has of `n` blocks from w on, which is number `first` of x: two at a time. Lanes are a multiple of four, so that all
 * that a lane has begin at the same byte of a word. */
template <class B>
static __device__ inline float blocks_dot(shared_place w, shared_place x, int first, int n,
                                          int lane, int lanes)
{
    const unsigned step = (unsigned)(lanes * B::BYTES), x_step = (unsigned)(lanes * RING_X_SMALL);
    const shared_place begin = w + (unsigned)(lane * B::BYTES);
    const uint32_t bits = (uint32_t)(begin & 3) * 8, table = not_known(B::TABLE, begin);
    shared_place at = begin & ~(shared_place)3, q = x + (unsigned)((first + lane) * RING_X_SMALL);
    float sum = 0;
    UNROLLED(1)
    for (int i = lane; i < n; i += 2 * lanes) {
        const bool two = i + lanes < n; /* else the first again */
        block_and_x<B> a, b;
        a.load(at, q);
        b.load(at + (two ? step : 0), q + (two ? x_step : 0));
        sum = B::add(a.v, bits, a.q, a.by, table, sum);
        const float both = B::add(b.v, bits, b.q, b.by, table, sum);
        sum = two ? both : sum;
        at += 2 * step;
        q += 2 * x_step;
    }
    return sum;
}

/* A row of n columns (ACT_Q8) as blocks with their scales. */
template <bool PAIRS> static __device__ inline void x_to_small(const char *row, int n, char *x)
{
    const float *d = act_d(row, n);
    UNROLLED(1)
    for (int i = (int)threadIdx.x; i < n / 32; i += block_threads()) {
        const bytes16 low = *(const bytes16 *)(row + i * 32);
        const bytes16 high = *(const bytes16 *)(row + i * 32 + 16);
        char *to = x + i * RING_X_SMALL;
        bytes16 q[2] = {low, high};
        UNROLL
        for (int e = 0; e < 4 && PAIRS; e++) {
            q[e / 2].w[e % 2 * 2] = __byte_perm(low.w[e], high.w[e], 0x5140);
            q[e / 2].w[e % 2 * 2 + 1] = __byte_perm(low.w[e], high.w[e], 0x7362);
        }
        *(bytes16 *)to = q[0];
        *(bytes16 *)(to + 16) = q[1];
        *(float *)(to + 32) = d[i];
    }
}

#endif
