/* blocks_cuda.cuh - one row of x in 8 bits times rows of blocks of 32 columns, which begin at any byte.
 *
 * Of a row a lane has every so many blocks. Such rows need not be whole runs (linear_stream_cuda.cuh), nor begin at multiples of 16
 * bytes: they follow on each other, and are copied with what is around them, a piece at a time (ring_size.h).
 *
 * x is planes in shared memory: 16 codes of every block, the other 16 of every block, scales. So lanes with blocks that follow on each
 * other read different banks. */
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

/* ---- types: adds the product of a block with 32 columns of x to a sum ---- */

/* A scale of 16 bits before `words` words of codes, at an even byte. */
template <int WORDS> struct even_block {
    uint32_t code[WORDS];
    float by;
    __device__ inline void load(shared_place w)
    {
        const shared_place at = w & ~(shared_place)3;
        const uint32_t bits = (uint32_t)(w & 2) * 8;
        uint32_t last = shared_4(at);
        by = from_f16((uint16_t)(last >> bits));
        UNROLL
        for (int i = 0; i < WORDS; i++) {
            const uint32_t next = shared_4(at + 4 * i + 4);
            code[i] = word_from(last, next, bits + 16);
            last = next;
        }
    }
};

struct block_Q8_0 {
    enum { TYPE = DT_Q8_0, BYTES = 34, PAIRS = 0 };
    static __device__ inline float add(shared_place w, const bytes16 &q0, const bytes16 &q1,
                                       float by, float sum)
    {
        even_block<8> b;
        int d = 0;
        b.load(w);
        UNROLL
        for (int e = 0; e < 4; e++) {
            d = dot4(b.code[e], q0.w[e], d);
            d = dot4(b.code[e + 4], q1.w[e], d);
        }
        return mad(b.by * by, (float)d, sum);
    }
};

struct block_Q4_0 {
    enum { TYPE = DT_Q4_0, BYTES = 18, PAIRS = 0 };
    static __device__ inline float add(shared_place w, const bytes16 &q0, const bytes16 &q1,
                                       float by, float sum)
    {
        const uint32_t high = 0xf0f0f0f0u, sign = 0x80808080u; /* 16 times code - 8 is a byte */
        even_block<4> b;
        int d = 0;
        b.load(w);
        UNROLL
        for (int e = 0; e < 4; e++) {
            d = dot4((b.code[e] << 4 & high) ^ sign, q0.w[e], d);
            d = dot4((b.code[e] & high) ^ sign, q1.w[e], d);
        }
        return mad(b.by * by * 0.0625f, (float)d, sum);
    }
};

/* An exponent and 32 codes, each a sign and one of eight magnitudes, which are picked as bytes: those of positive codes, and then of
 * negative ones. x has columns j and j + 16 side by side, as codes are. */
struct block_MXFP4 {
    enum { TYPE = DT_MXFP4, BYTES = 17, PAIRS = 1 };
    static __device__ inline float add(shared_place w, const bytes16 &q0, const bytes16 &q1,
                                       float by, float sum)
    {
        const uint32_t low = 0x03020100u, high = 0x0c080604u; /* twice the magnitudes */
        const shared_place at = w & ~(shared_place)3;
        const uint32_t bits = (uint32_t)(w & 3) * 8;
        uint32_t last = shared_4(at);
        const int e = (int)(last >> bits & 0xff);
        int more = 0, less = 0;
        UNROLL
        for (int i = 0; i < 4; i++) {
            const uint32_t next = shared_4(at + 4 * i + 4);
            const uint32_t c = word_from(last, next, bits + 8), not_c = c ^ 0x88888888u;
            const bytes16 &q = i < 2 ? q0 : q1;
            last = next;
            more = dot4(bytes_picked(low, high, c), q.w[2 * i % 4], more);
            less = dot4(bytes_picked(low, high, not_c), q.w[2 * i % 4], less);
            more = dot4(bytes_picked(low, high, c >> 16), q.w[2 * i % 4 + 1], more);
            less = dot4(bytes_picked(low, high, not_c >> 16), q.w[2 * i % 4 + 1], less);
        }
        /* Half of 2^(e - 127): the second is larger for e of 0 and 1, which are subnormal. */
        const int usual = (e - 1) * (1 << 23), least_of = (e + 1) * (1 << 21);
        const float d = float_of((uint32_t)(usual > least_of ? usual : least_of));
        return mad(d * by, (float)(more - less), sum);
    }
};

/* ---- rows ---- */

/* What a lane has of `n` blocks from w on, which is number `first` of the `all` of x. */
template <class B>
static __device__ inline float blocks_dot(shared_place w, shared_place x, int first, int n, int all,
                                          int lane, int lanes)
{
    const shared_place q = x + (unsigned)(first * 16), d = x + (unsigned)(all * 32 + first * 4);
    float sum = 0;
    UNROLLED(2)
    for (int i = lane; i < n; i += lanes)
        sum = B::add(w + (unsigned)(i * B::BYTES), shared_16(q + (unsigned)(i * 16)),
                     shared_16(q + (unsigned)((all + i) * 16)),
                     float_of(shared_4(d + (unsigned)(i * 4))), sum);
    return sum;
}

/* A row of n columns (ACT_Q8) into planes. */
template <bool PAIRS> static __device__ inline void x_to_planes(const char *row, int n, char *x)
{
    const float *d = act_d(row, n);
    const int all = n / 32;
    UNROLLED(1)
    for (int i = (int)threadIdx.x; i < all; i += block_threads()) {
        const bytes16 low = *(const bytes16 *)(row + i * 32);
        const bytes16 high = *(const bytes16 *)(row + i * 32 + 16);
        bytes16 to[2] = {low, high};
        UNROLL
        for (int e = 0; e < 4 && PAIRS; e++) {
            to[e / 2].w[e % 2 * 2] = __byte_perm(low.w[e], high.w[e], 0x5140);
            to[e / 2].w[e % 2 * 2 + 1] = __byte_perm(low.w[e], high.w[e], 0x7362);
        }
        *(bytes16 *)(x + i * 16) = to[0];
        *(bytes16 *)(x + (all + i) * 16) = to[1];
        ((float *)(x + all * 32))[i] = d[i];
    }
}

#endif
