/* few_types_cuda.cuh - chunks of weights in shared memory times rows of x, by matrix instructions (linear_few_cuda.cuh), of each
 * stored type.
 *
 * Instructions take weights as their 16 rows and x as their 8 columns: a lane has words of weight rows lane / 4 and 8 more,
 * of x row lane / 4, and sums of those two weight rows by x rows lane % 4 * 2 and 1 more. Which columns are which of the
 * instruction's is no matter as long as both sides agree.
 *
 * A card issues what a warp has to do in order, and there are two warps to each of its schedulers: so all loads of a part come
 * before the products, and these before what is done with them. */
#ifndef WEFT_KERNELS_CUDA_FEW_TYPES_CUDA_CUH
#define WEFT_KERNELS_CUDA_FEW_TYPES_CUDA_CUH

#include "kernels/cuda/few_size.h"
#include "kernels/cuda/linear_mma_cuda.cuh"

/* x in scratch, columns [0, cols) of it from some column of the rows on. As bf16: three planes of rows. As 8 bits: rows, then
 * scales [block][row]; then of Q8K the sums of 32 columns, in two halves (few_sum_low): [256 columns][row][8 low, 8 high]. */
struct few_panel {
    char *x, *d, *sum;
    int row, rows;  /* the first of the call's, and how many there are; those behind are 0 */
    int cols, room; /* at hand, and as many as fit: whole chunks */
    int pitch, plane;
};

/* A sum of 32 codes as two bytes: low + 128 high. */
static __device__ inline int few_sum_low(int sum)
{
    return sum & 127;
}

static __device__ inline int few_sum_high(int sum)
{
    return sum >> 7;
}

/* ---- what a card has instructions for ---- */

#ifdef __CUDACC__
static __device__ inline uint16_t at2(uint32_t p)
{
    uint16_t x;
    asm volatile("ld.shared.u16 %0, [%1];" : "=h"(x) : "r"(p));
    return x;
}

/* 4 bytes from a multiple of 2. */
static __device__ inline uint32_t at4_by_2(uint32_t p)
{
    uint32_t even = p & ~3u;
    return __funnelshift_r(shared_4(even), shared_4(even + 4), 8 * (p & 3));
}

/* 16 by 8, 16 deep. */
static __device__ inline void few_mma_bf16(float *sum, uint32_t a0, uint32_t a1, uint32_t a2,
                                           uint32_t a3, uint32_t b0, uint32_t b1)
{
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

/* The same of bytes, 32 and 16 deep, added to one number. */
static __device__ inline void few_mma_32(int *to, uint32_t a0, uint32_t a1, uint32_t a2,
                                         uint32_t a3, uint32_t b0, uint32_t b1, int from)
{
    asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %10, %10, %10};"
        : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
        : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1), "r"(from));
}

static __device__ inline void few_mma_16(int *to, uint32_t a0, uint32_t a1, uint32_t b0)
{
    asm("mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32 "
        "{%0, %1, %2, %3}, {%4, %5}, {%6}, {%7, %7, %7, %7};"
        : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
        : "r"(a0), "r"(a1), "r"(b0), "r"(0));
}

/* Where a lane finds what is its own of a chunk. */
struct few_lane {
    uint32_t w0, w8;         /* weight rows lane / 4 and 8 more */
    uint32_t x;              /* row lane / 4 of x, at the chunk */
    uint32_t d;              /* scales of x rows lane % 4 * 2 and on */
    uint32_t sum;            /* sums of x row lane / 4 */
    uint32_t x_step, n_step; /* to the next eight rows of x; from scale to scale of a row */
    uint32_t j;              /* lane % 4 */
};

template <class R, int NT>
static __device__ inline few_lane few_lane_of(const char *slot, const few_panel &p, int col,
                                              int skew)
{
    const int row = lane_index() / 4;
    few_lane l;
    l.j = (uint32_t)(lane_index() % 4);
    l.w0 = shared_at(slot) + (uint32_t)(row * R::PITCH + skew);
    l.w8 = l.w0 + 8 * R::PITCH;
    l.x = shared_at(p.x) + (uint32_t)(row * p.pitch + col);
    l.x_step = (uint32_t)(8 * p.pitch);
    l.n_step = NT * FEW_N * 4;
    l.d = shared_at(p.d) + (uint32_t)(col / R::X_BLOCK) * l.n_step + l.j * 8;
    l.sum = shared_at(p.sum) + (uint32_t)((col / 256 * NT * FEW_N + row) * 16);
    return l;
}

/* Whole numbers below 2^22 as bits of a float near 1.5 * 2^23, whose units are 1. */
static const int FEW_MAGIC = 0x4b400000;

static __device__ inline float few_whole(int magic)
{
    return float_of((uint32_t)magic) - 12582912.0f;
}

/* Four blocks of 32 with scales that are floats on both sides: a[4][4], scales of the two weight rows. */
template <int NT>
static __device__ inline void few_blocks_32(const few_lane &l, int first, const uint32_t (*a)[4],
                                            const float (*dw)[2], float (*sum)[4])
{
    UNROLL
    for (int t = 0; t < NT; t++) {
        const uint32_t x = l.x + (uint32_t)t * l.x_step + (uint32_t)(first * 32) + l.j * 4;
        uint32_t b[4][2];
        bytes8 dx[4];
        int s[4][4];
        UNROLL
        for (int i = 0; i < 4; i++) {
            b[i][0] = shared_4(x + (uint32_t)(i * 32));
            b[i][1] = shared_4(x + (uint32_t)(i * 32 + 16));
            dx[i] = shared_8(l.d + (uint32_t)(first + i) * l.n_step + (uint32_t)(t * FEW_N * 4));
        }
        UNROLL
        for (int i = 0; i < 4; i++)
            few_mma_32(s[i], a[i][0], a[i][1], a[i][2], a[i][3], b[i][0], b[i][1], FEW_MAGIC);
        UNROLL
        for (int i = 0; i < 4; i++)
            UNROLL
        for (int e = 0; e < 4; e++)
            sum[t][e] = mad(few_whole(s[i][e]), dw[i][e / 2] * float_of(dx[i].w[e % 2]), sum[t][e]);
    }
}

/* Scales and minima of the eight groups of Q4_K and Q5_K, a byte each. */
struct few_scales {
    uint32_t scale[2], min[2];
    float d, m;
};

static __device__ inline few_scales few_scales_of(const bytes16 &h)
{
    few_scales s;
    s.scale[0] = h.w[1] & 0x3f3f3f3fu;
    s.min[0] = h.w[2] & 0x3f3f3f3fu;
    s.scale[1] = (h.w[3] & 0x0f0f0f0fu) | (h.w[1] >> 2 & 0x30303030u);
    s.min[1] = (h.w[3] >> 4 & 0x0f0f0f0fu) | (h.w[2] >> 2 & 0x30303030u);
    s.d = from_f16((uint16_t)h.w[0]);
    s.m = from_f16((uint16_t)(h.w[0] >> 16));
    return s;
}

/* A block of Q4_K or Q5_K: codes a[8][4] of its groups, 8 bytes of each lane side by side. All are whole numbers until the
 * block ends; the minima times the sums of x are products of matrices too. */
template <int NT>
static __device__ inline void few_block_k(const few_lane &l, const uint32_t (*a)[4],
                                          const few_scales &s0, const few_scales &s8,
                                          float (*sum)[4])
{
    int scale[8][2];
    UNROLL
    for (int g = 0; g < 8; g++) {
        scale[g][0] = (int)(s0.scale[g / 4] >> 8 * (g % 4) & 255);
        scale[g][1] = (int)(s8.scale[g / 4] >> 8 * (g % 4) & 255);
    }
    /* Lanes 0 and 1 of four have the minima of four groups each, the other two none. */
    const uint32_t min0 = l.j == 0 ? s0.min[0] : l.j == 1 ? s0.min[1] : 0;
    const uint32_t min8 = l.j == 0 ? s8.min[0] : l.j == 1 ? s8.min[1] : 0;
    UNROLL
    for (int t = 0; t < NT; t++) {
        const uint32_t x = l.x + (uint32_t)t * l.x_step + l.j * 8;
        const uint32_t x_sum = l.sum + (uint32_t)(t * FEW_N * 16) + l.j % 2 * 4;
        bytes8 b[8];
        int s[8][4], low[4], high[4], all[4] = {0, 0, 0, 0};
        UNROLL
        for (int g = 0; g < 8; g++)
            b[g] = shared_8(x + (uint32_t)(g * 32));
        const uint32_t x_low = shared_4(x_sum), x_high = shared_4(x_sum + 8);
        const bytes8 d = shared_8(l.d + (uint32_t)(t * FEW_N * 4));
        UNROLL
        for (int g = 0; g < 8; g++)
            few_mma_32(s[g], a[g][0], a[g][1], a[g][2], a[g][3], b[g].w[0], b[g].w[1], 0);
        few_mma_16(low, min0, min8, x_low);
        few_mma_16(high, min0, min8, x_high);
        UNROLL
        for (int g = 0; g < 8; g++)
            UNROLL
        for (int e = 0; e < 4; e++)
            all[e] += s[g][e] * scale[g][e / 2];
        UNROLL
        for (int e = 0; e < 4; e++) {
            const few_scales &w = e < 2 ? s0 : s8;
            const float less = w.m * (float)(low[e] + 128 * high[e]);
            sum[t][e] = mad(w.d * (float)all[e] - less, float_of(d.w[e % 2]), sum[t][e]);
        }
    }
}
#endif

/* ---- types ----
 *
 *     COLS, BYTES        columns of a chunk, and its bytes of a row
 *     PITCH, PIECES      bytes from row to row in a slot, and pieces of 16 that are copied: more than BYTES where a chunk begins
 *                        at no multiple of 16
 *     SLOTS              of a ring
 *     PARTS, ACT         of x; X_BLOCK: columns of a scale; X_PAD: bytes between rows, so that lanes read different banks
 *     place              of a piece of a row in a slot
 *     products           adds those of a chunk to the sums of a lane */

struct few_BF16 {
    enum { COLS = 64, BYTES = 128, PITCH = 128, PIECES = 8, SLOTS = 4 };
    enum { PARTS = 3, ACT = ACT_F32, X_BLOCK = 32, X_PAD = 64 };
    /* Piece p of a row is at p, of odd rows at p ^ 4: eight lanes read two rows at once. */
    static __device__ inline int place(int row, int piece)
    {
        return row * PITCH + ((piece ^ ((row & 1) << 2)) << 4);
    }
#ifdef __CUDACC__
    template <int NT>
    static __device__ inline void products(const char *slot, const few_panel &p, int col, int,
                                           float (*sum)[4])
    {
        const int row = lane_index() / 4, j = lane_index() % 4;
        const uint32_t x = shared_at(p.x) + (uint32_t)(row * p.pitch + (col + 8 * j) * 2);
        bytes16 w0[2], w8[2];
        UNROLL
        for (int h = 0; h < 2; h++) {
            w0[h] = shared_16(shared_at(slot) + (uint32_t)place(row, 4 * h + j));
            w8[h] = shared_16(shared_at(slot) + (uint32_t)place(row, 4 * h + j) + 8 * PITCH);
        }
        UNROLL
        for (int t = 0; t < NT; t++) {
            bytes16 b[2][PARTS];
            UNROLL
            for (int i = 0; i < 2 * PARTS; i++)
                b[i / PARTS][i % PARTS] = shared_16(
                    x + (uint32_t)(i % PARTS * p.plane + t * 8 * p.pitch + i / PARTS * 64));
            float part[PARTS][4] = {}; /* sums that do not wait for each other */
            UNROLL
            for (int i = 0; i < 2 * PARTS; i++) {
                const bytes16 &c = b[i / PARTS][i % PARTS], &l = w0[i / PARTS], &h = w8[i / PARTS];
                few_mma_bf16(part[i % PARTS], l.w[0], h.w[0], l.w[1], h.w[1], c.w[0], c.w[1]);
                few_mma_bf16(part[i % PARTS], l.w[2], h.w[2], l.w[3], h.w[3], c.w[2], c.w[3]);
            }
            UNROLL
            for (int e = 0; e < 4; e++)
                sum[t][e] += part[0][e] + (part[1][e] + part[2][e]);
        }
    }
#else
    static inline void eight(const char *slot, int row, int c, int, float *w)
    {
        weight_BF16::eight((const uint8_t *)slot + place(row, c / EIGHT), 0, EIGHT, w);
    }
#endif
};

/* What types of blocks have in common. */
template <class W, int BYTES_, int PITCH_, int PIECES_, int ACT_> struct few_blocks {
    enum { COLS = 256, BYTES = BYTES_, PITCH = PITCH_, PIECES = PIECES_ };
    enum { SLOTS = 11 * 1024 / (FEW_TILE * PITCH_) };
    enum { PARTS = 0, ACT = ACT_, X_BLOCK = ACT_ == ACT_Q8K ? 256 : 32, X_PAD = 16 };
    static __device__ inline int place(int row, int piece)
    {
        return row * PITCH + piece * 16;
    }
#ifndef __CUDACC__
    static inline void eight(const char *slot, int row, int c, int skew, float *w)
    {
        W::eight((const uint8_t *)slot + row * PITCH + skew, (uint32_t)c, COLS, w);
    }
#endif
};

/* Codes of blocks with an even number begin at 2 bytes from a multiple of 4, others at one. */
struct few_Q8_0 : few_blocks<weight_Q8_0, 272, 272, 17, ACT_Q8> {
#ifdef __CUDACC__
    template <int NT>
    static __device__ inline void products(const char *slot, const few_panel &p, int col, int,
                                           float (*sum)[4])
    {
        const few_lane l = few_lane_of<few_Q8_0, NT>(slot, p, col, 0);
        UNROLL
        for (int first = 0; first < 8; first += 4) {
            uint32_t a[4][4];
            float d[4][2];
            UNROLL
            for (int b = 0; b < 4; b++)
                UNROLL
            for (int i = 0; i < 4; i++) {
                const uint32_t block = (i % 2 ? l.w8 : l.w0) + (uint32_t)((first + b) * 34);
                const uint32_t at = block + 2 + (uint32_t)(i / 2 * 16) + l.j * 4;
                a[b][i] =
                    b % 2 ? shared_4(at) : __byte_perm(shared_4(at - 2), shared_4(at + 2), 0x5432);
                if (i < 2)
                    d[b][i] = from_f16(at2(block));
            }
            few_blocks_32<NT>(l, first, a, d, sum);
        }
    }
#endif
};

/* Sixteen times code - 8 is a byte, without a subtraction. */
struct few_Q4_0 : few_blocks<weight_Q4_0, 144, 144, 9, ACT_Q8> {
#ifdef __CUDACC__
    template <int NT>
    static __device__ inline void products(const char *slot, const few_panel &p, int col, int,
                                           float (*sum)[4])
    {
        const few_lane l = few_lane_of<few_Q4_0, NT>(slot, p, col, 0);
        UNROLL
        for (int first = 0; first < 8; first += 4) {
            uint32_t a[4][4];
            float d[4][2];
            UNROLL
            for (int b = 0; b < 4; b++)
                UNROLL
            for (int i = 0; i < 2; i++) {
                const uint32_t block = (i ? l.w8 : l.w0) + (uint32_t)((first + b) * 18);
                const uint32_t at = block + 2 + l.j * 4;
                uint32_t c =
                    b % 2 ? shared_4(at) : __byte_perm(shared_4(at - 2), shared_4(at + 2), 0x5432);
                a[b][i] = (c << 4 & 0xf0f0f0f0u) ^ 0x80808080u;
                a[b][i + 2] = (c & 0xf0f0f0f0u) ^ 0x80808080u;
                d[b][i] = from_f16(at2(block)) * 0.0625f;
            }
            few_blocks_32<NT>(l, first, a, d, sum);
        }
    }
#endif
};

/* Rows of a slot are 8 words apart, by 32: eight bytes of each lane are in different banks. */
struct few_Q4_K : few_blocks<weight_Q4_K, 144, 160, 9, ACT_Q8K> {
    enum { X_PAD = 32 };
#ifdef __CUDACC__
    template <int NT>
    static __device__ inline void products(const char *slot, const few_panel &p, int col, int,
                                           float (*sum)[4])
    {
        const few_lane l = few_lane_of<few_Q4_K, NT>(slot, p, col, 0);
        const bytes16 h0 = shared_16(l.w0), h8 = shared_16(l.w8);
        uint32_t a[8][4];
        UNROLL
        for (int q = 0; q < 4; q++) { /* low halves are a group, high halves the next */
            const uint32_t at = (uint32_t)(16 + q * 32) + l.j * 8;
            const bytes8 c0 = shared_8(l.w0 + at), c8 = shared_8(l.w8 + at);
            const uint32_t c[4] = {c0.w[0], c8.w[0], c0.w[1], c8.w[1]};
            UNROLL
            for (int i = 0; i < 4; i++) {
                a[2 * q][i] = c[i] & 0x0f0f0f0fu;
                a[2 * q + 1][i] = c[i] >> 4 & 0x0f0f0f0fu;
            }
        }
        few_block_k<NT>(l, a, few_scales_of(h0), few_scales_of(h8), sum);
    }
#endif
};

struct few_Q5_K : few_blocks<weight_Q5_K, 176, 224, 11, ACT_Q8K> {
    enum { X_PAD = 32 };
#ifdef __CUDACC__
    template <int NT>
    static __device__ inline void products(const char *slot, const few_panel &p, int col, int,
                                           float (*sum)[4])
    {
        const few_lane l = few_lane_of<few_Q5_K, NT>(slot, p, col, 0);
        const bytes16 h0 = shared_16(l.w0), h8 = shared_16(l.w8);
        const bytes8 f0 = shared_8(l.w0 + 16 + l.j * 8), f8 = shared_8(l.w8 + 16 + l.j * 8);
        const uint32_t fifth[4] = {f0.w[0], f8.w[0], f0.w[1], f8.w[1]};
        uint32_t a[8][4];
        UNROLL
        for (int q = 0; q < 4; q++) {
            const uint32_t at = (uint32_t)(48 + q * 32) + l.j * 8;
            const bytes8 c0 = shared_8(l.w0 + at), c8 = shared_8(l.w8 + at);
            const uint32_t c[4] = {c0.w[0], c8.w[0], c0.w[1], c8.w[1]};
            UNROLL
            for (int i = 0; i < 4; i++) {
                a[2 * q][i] = (c[i] & 0x0f0f0f0fu) | (fifth[i] >> 2 * q << 4 & 0x10101010u);
                a[2 * q + 1][i] =
                    (c[i] >> 4 & 0x0f0f0f0fu) | (fifth[i] >> (2 * q + 1) << 4 & 0x10101010u);
            }
        }
        few_block_k<NT>(l, a, few_scales_of(h0), few_scales_of(h8), sum);
    }
#endif
};

/* Blocks of 210 bytes, which are copied with what is around them. Scales are of 16 columns; four times code - 32 is a byte. */
struct few_Q6_K : few_blocks<weight_Q6_K, 210, 240, 15, ACT_Q8K> {
#ifdef __CUDACC__
    /* The first (i 0) or the other 16 columns of the four groups of a half of a row's block. */
    static __device__ inline void codes(uint32_t w, uint32_t j, int half, int i, uint32_t *c)
    {
        const uint32_t at = w + (uint32_t)(i * 16) + j * 4;
        const uint32_t l0 = at4_by_2(at + (uint32_t)(half * 64));
        const uint32_t l1 = at4_by_2(at + (uint32_t)(half * 64 + 32));
        const uint32_t h = at4_by_2(at + (uint32_t)(128 + half * 32));
        c[0] = ((l0 << 2 & 0x3c3c3c3cu) | (h << 6 & 0xc0c0c0c0u)) ^ 0x80808080u;
        c[1] = ((l1 << 2 & 0x3c3c3c3cu) | (h << 4 & 0xc0c0c0c0u)) ^ 0x80808080u;
        c[2] = ((l0 >> 2 & 0x3c3c3c3cu) | (h << 2 & 0xc0c0c0c0u)) ^ 0x80808080u;
        c[3] = ((l1 >> 2 & 0x3c3c3c3cu) | (h & 0xc0c0c0c0u)) ^ 0x80808080u;
    }
    template <int NT>
    static __device__ inline void products(const char *slot, const few_panel &p, int col, int skew,
                                           float (*sum)[4])
    {
        const few_lane l = few_lane_of<few_Q6_K, NT>(slot, p, col, skew);
        int all[NT][4] = {};
        UNROLL
        for (int half = 0; half < 2; half++) {
            uint32_t c[2][2][4], scale[2][2];
            UNROLL
            for (int r = 0; r < 2; r++) {
                const uint32_t w = r ? l.w8 : l.w0;
                codes(w, l.j, half, 0, c[r][0]);
                codes(w, l.j, half, 1, c[r][1]);
                scale[r][0] = at4_by_2(w + (uint32_t)(192 + half * 8));
                scale[r][1] = at4_by_2(w + (uint32_t)(196 + half * 8));
            }
            UNROLL
            for (int t = 0; t < NT; t++) {
                const uint32_t x = l.x + (uint32_t)t * l.x_step + (uint32_t)(half * 128) + l.j * 4;
                uint32_t b[8];
                int s[8][4];
                UNROLL
                for (int g = 0; g < 8; g++)
                    b[g] = shared_4(x + (uint32_t)(g * 16));
                UNROLL
                for (int g = 0; g < 8; g++)
                    few_mma_16(s[g], c[0][g % 2][g / 2], c[1][g % 2][g / 2], b[g]);
                UNROLL
                for (int g = 0; g < 8; g++)
                    UNROLL
                for (int e = 0; e < 4; e++)
                    all[t][e] += s[g][e] * (int8_t)(scale[e / 2][g / 4] >> 8 * (g % 4));
            }
        }
        const float d0 = from_f16(at2(l.w0 + 208)) * 0.25f, d8 = from_f16(at2(l.w8 + 208)) * 0.25f;
        UNROLL
        for (int t = 0; t < NT; t++) {
            bytes8 d = shared_8(l.d + (uint32_t)(t * FEW_N * 4));
            UNROLL
            for (int e = 0; e < 4; e++)
                sum[t][e] =
                    mad((e < 2 ? d0 : d8) * (float)all[t][e], float_of(d.w[e % 2]), sum[t][e]);
        }
    }
#endif
};

#endif
