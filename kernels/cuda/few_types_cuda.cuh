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

#include "kernels/cuda/copy_cuda.cuh"
#include "kernels/cuda/few_size.h"
#include "kernels/cuda/linear_mma_cuda.cuh"

/* ---- copies ---- */

#ifdef __CUDACC__
/* 16 bytes, or 4, or as many zeros. */
static __device__ inline void few_copy(shared_place to, const char *from, bool there)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(global_at(from)),
                 "r"(there ? 16 : 0)
                 : "memory");
}

static __device__ inline void few_copy_4(shared_place to, const char *from, bool there)
{
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to), "l"(global_at(from)),
                 "r"(there ? 4 : 0)
                 : "memory");
}

static __device__ inline bool few_copies_from(const void *p)
{
    return __isGlobal(p);
}
#else
static inline void few_copy(shared_place to, const char *from, bool there)
{
    copy_piece((char *)to, from, there);
}

static inline void few_copy_4(shared_place to, const char *from, bool there)
{
    memset((void *)to, 0, 4);
    if (there)
        memcpy((void *)to, from, 4);
}

static inline bool few_copies_from(const void *)
{
    return true;
}
#endif

/* ---- a chunk of x in shared memory ---- */

enum { FEW_X_BYTES = 256 }; /* of a row: 64 floats, or 256 columns in 8 bits */

/* Rows, some bytes apart so that lanes read different banks; of 8 bits then 32 bytes of each row, which are scales of 32 columns or
 * sums of 16; and then, where scales are of 256 columns, those. */
template <class R, int NT> struct few_x_size {
    enum {
        ROWS = NT * FEW_N,
        PITCH = FEW_X_BYTES + R::X_PAD,
        SIDE = ROWS * PITCH,
        D = SIDE + (R::PARTS > 0 ? 0 : ROWS * 32),
        BYTES = D + (R::X_BLOCK == 256 ? ROWS * 4 : 0)
    };
};

/* ---- matrix instructions for bytes ---- */

/* 16 by 8, 32 and 16 deep, added to one number; of bf16, added to sums or to nothing. few_frags: what of 16 rows a lane has to give
 * the latter, from the lines that lanes point to. */
#ifdef __CUDACC__
static __device__ inline void few_frags(uint32_t *a, shared_place line)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(a[0]), "=r"(a[1]), "=r"(a[2]), "=r"(a[3])
                 : "r"(line));
}

static __device__ inline void few_mma_bf16(float *to, const uint32_t *a, const uint32_t *b)
{
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(to[0]), "+f"(to[1]), "+f"(to[2]), "+f"(to[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

static __device__ inline void few_mma_bf16_new(float *to, const uint32_t *a, const uint32_t *b)
{
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %10, %10, %10};"
        : "=f"(to[0]), "=f"(to[1]), "=f"(to[2]), "=f"(to[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "f"(0.0f));
}

static __device__ inline void few_mma_32(int *to, const uint32_t *a, const uint32_t *b, int from)
{
    asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %10, %10, %10};"
        : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "r"(from));
}

/* Weights without a sign. */
static __device__ inline void few_mma_32u(int *to, const uint32_t *a, const uint32_t *b)
{
    asm("mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %10, %10, %10};"
        : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "r"(0));
}

static __device__ inline void few_mma_16(int *to, uint32_t a0, uint32_t a1, uint32_t b)
{
    asm("mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32 "
        "{%0, %1, %2, %3}, {%4, %5}, {%6}, {%7, %7, %7, %7};"
        : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
        : "r"(a0), "r"(a1), "r"(b), "r"(0));
}

static __device__ inline void few_put(shared_place p, float x)
{
    asm volatile("st.shared.f32 [%0], %1;" ::"r"(p), "f"(x) : "memory");
}

static __device__ inline uint16_t shared_2(shared_place p)
{
    uint16_t x;
    asm volatile("ld.shared.u16 %0, [%1];" : "=h"(x) : "r"(p));
    return x;
}
#else
static inline void few_mma_32(int *to, const uint32_t *a, const uint32_t *b, int from)
{
    to[0] = to[1] = to[2] = to[3] = from;
    simt_mma_s8(to, a, b, 32);
}

static inline void few_mma_32u(int *to, const uint32_t *a, const uint32_t *b)
{
    uint32_t half[4], rest[4]; /* a is 2 half + rest, which have a sign */
    int one[4] = {0, 0, 0, 0};
    for (int i = 0; i < 4; i++) {
        half[i] = a[i] >> 1 & 0x7f7f7f7fu;
        rest[i] = a[i] & 0x01010101u;
        to[i] = 0;
    }
    simt_mma_s8(to, half, b, 32);
    simt_mma_s8(one, rest, b, 32);
    for (int i = 0; i < 4; i++)
        to[i] = 2 * to[i] + one[i];
}

static inline void few_mma_16(int *to, uint32_t a0, uint32_t a1, uint32_t b)
{
    const uint32_t a[2] = {a0, a1};
    to[0] = to[1] = to[2] = to[3] = 0;
    simt_mma_s8(to, a, &b, 16);
}

static inline void few_put(shared_place p, float x)
{
    *(float *)p = x;
}

static inline uint16_t shared_2(shared_place p)
{
    return *(const uint16_t *)p;
}

static inline void few_frags(uint32_t *a, shared_place line)
{
    simt_ldmatrix(a, (const char *)line, false);
}

static inline void few_mma_bf16(float *to, const uint32_t *a, const uint32_t *b)
{
    simt_mma(to, a, b, from_bf16);
}

static inline void few_mma_bf16_new(float *to, const uint32_t *a, const uint32_t *b)
{
    to[0] = to[1] = to[2] = to[3] = 0;
    simt_mma(to, a, b, from_bf16);
}
#endif

/* Whole numbers below 2^22 as bits of a float near 1.5 * 2^23, whose units are 1. */
static const int FEW_MAGIC = 0x4b400000;

static __device__ inline float few_whole(int magic)
{
    return float_of((uint32_t)magic) - 12582912.0f;
}

/* Two numbers, each as the sum of three bf16. What is left of one without the first is 0 where that is no number; without the
 * second it always is one. */
static __device__ inline void few_split(float low, float high, uint32_t *part)
{
    part[0] = bf16_pair(low, high);
    low -= float_of(part[0] << 16);
    high -= float_of(part[0] & 0xffff0000u);
    low = fabsf(low) < INFINITY ? low : 0;
    high = fabsf(high) < INFINITY ? high : 0;
    part[1] = bf16_pair(low, high);
    part[2] = bf16_pair(low - float_of(part[1] << 16), high - float_of(part[1] & 0xffff0000u));
}

/* ---- x in registers: row lane / 4 of each eight, and scales of rows lane % 4 * 2 and 1 more ---- */

/* 64 floats of a row, as three bf16 each: a lane has columns lane % 4 * 2 and 1 more of each 8. */
template <class R, int NT> struct few_x_floats {
    uint32_t b[NT][4][R::PARTS][2];
    __device__ inline void load(shared_place at)
    {
        const uint32_t row = (uint32_t)lane_index() / 4, turn = row % 4 * 32;
        at += row * few_x_size<R, NT>::PITCH + (uint32_t)lane_index() % 4 * 8;
        UNROLL
        for (int i = 0; i < NT * 8; i++) { /* R::x_turn has them so */
            const bytes8 x = shared_8(at + (uint32_t)(i / 8 * FEW_N * few_x_size<R, NT>::PITCH) +
                                      ((uint32_t)(i % 8 * 32) ^ turn));
            uint32_t part[3];
            few_split(float_of(x.w[0]), float_of(x.w[1]), part);
            UNROLL
            for (int p = 0; p < 3; p++)
                b[i / 8][i % 8 / 2][p][i % 2] = part[p];
        }
    }
};

/* Blocks of 256 in 8 bits, as Q4_K and Q5_K want them: 8 bytes of each 32 columns, and the sums of 32 columns in two halves. */
template <class R, int NT> struct few_x_groups {
    bytes8 b[NT][8], d[NT];
    uint32_t low[NT],
        high[NT]; /* a sum is low + 128 high; four sums, of the first columns where lane is even */
    __device__ inline void load(shared_place at)
    {
        typedef few_x_size<R, NT> size;
        const uint32_t row = (uint32_t)lane_index() / 4, j = (uint32_t)lane_index() % 4;
        UNROLL
        for (int t = 0; t < NT; t++) {
            const uint32_t r = row + (uint32_t)(t * FEW_N);
            UNROLL
            for (int g = 0; g < 8; g++)
                b[t][g] = shared_8(at + r * size::PITCH + (uint32_t)(g * 32) + j * 8);
            d[t] = shared_8(at + size::D + (uint32_t)(t * FEW_N * 4) + j * 8);
            const bytes16 sums = shared_16(at + size::SIDE + r * 32 + j % 2 * 16);
            uint32_t s[4];
            UNROLL
            for (int i = 0; i < 4; i++)
                s[i] = (uint32_t)((int)(int16_t)sums.w[i] + ((int)sums.w[i] >> 16)) << 1;
            const uint32_t first = __byte_perm(s[0], s[1], 0x5140);
            const uint32_t other = __byte_perm(s[2], s[3], 0x5140);
            low[t] = __byte_perm(first, other, 0x5410) >> 1 & 0x7f7f7f7fu;
            high[t] = __byte_perm(first, other, 0x7632);
        }
    }
};

/* The same as Q6_K wants them, 4 bytes of each 16 columns. */
template <class R, int NT> struct few_x_sixteens {
    uint32_t b[NT][16];
    bytes8 d[NT];
    __device__ inline void load(shared_place at)
    {
        typedef few_x_size<R, NT> size;
        const int row = lane_index() / 4, j = lane_index() % 4;
        UNROLL
        for (int t = 0; t < NT; t++) {
            UNROLL
            for (int g = 0; g < 16; g++)
                b[t][g] =
                    shared_4(at + (uint32_t)((row + t * FEW_N) * size::PITCH + j * 4 + g * 16));
            d[t] = shared_8(at + (uint32_t)(size::D + t * FEW_N * 4 + j * 8));
        }
    }
};

/* Blocks of 32: there are too many scales to keep. */
template <class R, int NT> struct few_x_blocks {
    shared_place x, d;
    __device__ inline void load(shared_place at)
    {
        typedef few_x_size<R, NT> size;
        x = at + (uint32_t)(lane_index() / 4 * size::PITCH + lane_index() % 4 * 4);
        d = at + (uint32_t)(size::SIDE + lane_index() % 4 * 64);
    }
};

/* ---- products of blocks ---- */

/* A word from a block of 32 whose number is odd, at a multiple of 4; else it is 2 bytes off. */
static __device__ inline uint32_t few_word(shared_place at, int block)
{
    return block % 2 ? shared_4(at) : __byte_perm(shared_4(at - 2), shared_4(at + 2), 0x5432);
}

/* Eight blocks of 32 with scales that are floats on both sides, four at a time. R::codes: 4 codes of the first 16 columns, and of
 * the others; R::UNIT times a code is what it stands for. */
template <class R, int NT>
static __device__ inline void few_products_32(shared_place slot, const few_x_blocks<R, NT> &x,
                                              float (*sum)[4])
{
    enum { SIZE = R::BYTES / 8 };
    const uint32_t j = (uint32_t)lane_index() % 4;
    shared_place w = slot + (uint32_t)(lane_index() / 4 * R::PITCH);
    UNROLLED(1)
    for (uint32_t first = 0; first < 8; first += 4, w += 4 * SIZE) {
        uint32_t a[4][4];
        float dw[4][2];
        UNROLL
        for (int i = 0; i < 8; i++) {
            const int b = i / 2, r = i % 2;
            const shared_place block = w + (uint32_t)(b * SIZE + r * 8 * R::PITCH);
            uint32_t c[2];
            R::codes(block + 2 + j * 4, b, c);
            a[b][r] = c[0];
            a[b][r + 2] = c[1];
            dw[b][r] = from_f16(shared_2(block)) * R::unit();
        }
        UNROLL
        for (int t = 0; t < NT; t++) {
            const shared_place at =
                x.x + (uint32_t)(t * FEW_N * few_x_size<R, NT>::PITCH) + first * 32;
            const shared_place d = x.d + (uint32_t)(t * FEW_N * 32) + first * 4;
            uint32_t b[4][2];
            int s[4][4];
            UNROLL
            for (int i = 0; i < 8; i++)
                b[i / 2][i % 2] = shared_4(at + (uint32_t)(i * 16));
            const bytes16 dx[2] = {shared_16(d), shared_16(d + 32)};
            UNROLL
            for (int i = 0; i < 4; i++)
                few_mma_32(s[i], a[i], b[i], FEW_MAGIC);
            UNROLL
            for (int i = 0; i < 4; i++)
                UNROLL
            for (int e = 0; e < 4; e++)
                sum[t][e] =
                    mad(few_whole(s[i][e]), dw[i][e / 2] * float_of(dx[e % 2].w[i]), sum[t][e]);
        }
    }
}

/* Scales and minima of the eight groups of Q4_K and Q5_K, a byte each. */
struct few_scales {
    uint32_t scale[2], min[2];
    float d, m;
};

template <class R> static __device__ inline few_scales few_scales_of(const bytes16 &h)
{
    few_scales s;
    s.scale[0] = h.w[1] & 0x3f3f3f3fu;
    s.min[0] = h.w[2] & 0x3f3f3f3fu;
    s.scale[1] = (h.w[3] & 0x0f0f0f0fu) | (h.w[1] >> 2 & 0x30303030u);
    s.min[1] = (h.w[3] >> 4 & 0x0f0f0f0fu) | (h.w[2] >> 2 & 0x30303030u);
    s.d = from_f16((uint16_t)h.w[0]) * (1.0f / R::ODD);
    s.m = from_f16((uint16_t)(h.w[0] >> 16));
    return s;
}

/* A block of Q4_K or Q5_K: codes a[8][4] of its groups, 8 bytes of each lane side by side, those of odd groups times R::ODD. All
 * are whole numbers until the block ends; the minima times the sums of x are products of matrices too. */
template <class R, int NT>
static __device__ inline void few_products_k(const few_x_groups<R, NT> &x, const uint32_t (*a)[4],
                                             const few_scales &s0, const few_scales &s8,
                                             float (*sum)[4])
{
    const int j = lane_index() % 4;
    /* Lanes 0 and 1 of four have the minima of four groups each, the other two none. */
    const uint32_t min0 = j == 0 ? s0.min[0] : j == 1 ? s0.min[1] : 0;
    const uint32_t min8 = j == 0 ? s8.min[0] : j == 1 ? s8.min[1] : 0;
    UNROLL
    for (int t = 0; t < NT; t++) {
        int s[8][4], low[4], high[4], all[2][4] = {};
        UNROLL
        for (int g = 0; g < 8; g++)
            few_mma_32u(s[g], a[g], x.b[t][g].w);
        few_mma_16(low, min0, min8, x.low[t]);
        few_mma_16(high, min0, min8, x.high[t]);
        UNROLL
        for (int g = 0; g < 8; g++)
            UNROLL
        for (int e = 0; e < 4; e++) {
            const few_scales &w = e < 2 ? s0 : s8;
            all[g % 2][e] += s[g][e] * (int)__byte_perm(w.scale[g / 4], 0, 0x4440 + g % 4);
        }
        UNROLL
        for (int e = 0; e < 4; e++) {
            const few_scales &w = e < 2 ? s0 : s8;
            const float less = w.m * (float)(low[e] + 128 * high[e]);
            const float more = w.d * (float)(R::ODD * all[0][e] + all[1][e]);
            sum[t][e] = mad(more - less, float_of(x.d[t].w[e % 2]), sum[t][e]);
        }
    }
}

/* ---- types ----
 *
 *     TYPE, weight       and how eight numbers of a row are read
 *     COLS, BYTES        columns of a chunk, and its bytes of a row
 *     PITCH, PIECES      bytes from row to row in a slot, and pieces of 16 that are copied: more than BYTES where a chunk begins
 *                        at no multiple of 16 (skew)
 *     PARTS, ACT         of x; X_BLOCK: columns of a scale; X_PAD: bytes between rows, so that lanes read different banks
 *     KEEPS              x is all in registers while products are made; else in its slot
 *     TILES              of a group with the most instructions
 *     EACH               products are few instructions: a copy for each tile costs less than moving sums around
 *     place, x_turn      of a piece of a row in a slot; in one of x, piece p of a row is at p ^ x_turn(row)
 *     x, products        a chunk of x in registers; adds products of a chunk to the sums of a lane */

struct few_BF16 {
    typedef weight_BF16 weight;
    enum { TYPE = DT_BF16, COLS = 64, BYTES = 128, PITCH = 128, PIECES = 8 };
    enum { PARTS = 3, ACT = ACT_F32, X_BLOCK = 1, X_PAD = 0, KEEPS = 1, TILES = 4, EACH = 1 };
    /* Eight rows are read at once, a piece of each. */
    static __device__ inline int place(int row, int piece)
    {
        return row * PITCH + ((piece ^ (row & 7)) << 4);
    }
    /* Four rows are, two pieces of each. */
    static __device__ inline int x_turn(int row)
    {
        return (row & 3) << 1;
    }
    template <int NT> using x = few_x_floats<few_BF16, NT>;
    template <int NT>
    static __device__ inline void products(shared_place slot, const x<NT> &x, uint32_t,
                                           float (*sum)[4])
    {
        /* Sums that do not wait for each other: with few rows those of the parts. */
        enum { SUMS = NT > 2 ? 1 : (int)PARTS };
        const uint32_t line = (uint32_t)place(lane_index() % 16, lane_index() / 16);
        uint32_t w[4][4];
        float part[NT][SUMS][4];
        UNROLL
        for (uint32_t k = 0; k < 4; k++)
            few_frags(w[k], slot + (line ^ k << 5));
        UNROLL
        for (int i = 0; i < 4 * PARTS; i++) {
            UNROLL
            for (int t = 0; t < NT; t++) {
                if (i < SUMS)
                    few_mma_bf16_new(part[t][i], w[i / PARTS], x.b[t][i / PARTS][i % PARTS]);
                else
                    few_mma_bf16(part[t][i % SUMS], w[i / PARTS], x.b[t][i / PARTS][i % PARTS]);
            }
        }
        UNROLL
        for (int t = 0; t < NT; t++)
            UNROLL
        for (int e = 0; e < 4; e++)
            sum[t][e] += SUMS == 1 ? part[t][0][e]
                                   : part[t][0][e] + (part[t][1 % SUMS][e] + part[t][2 % SUMS][e]);
    }
};

/* What types of blocks have in common. */
template <class W, int TYPE_, int BYTES_, int PITCH_, int PIECES_, int ACT_> struct few_blocks {
    typedef W weight;
    enum { TYPE = TYPE_, COLS = 256, BYTES = BYTES_, PITCH = PITCH_, PIECES = PIECES_ };
    enum { PARTS = 0, ACT = ACT_, X_BLOCK = ACT_ == ACT_Q8K ? 256 : 32, X_PAD = 16 };
    enum { KEEPS = 0, TILES = 2, EACH = 0 };
    static __device__ inline int place(int row, int piece)
    {
        return row * PITCH + piece * 16;
    }
    static __device__ inline int x_turn(int)
    {
        return 0;
    }
};

struct few_Q8_0 : few_blocks<weight_Q8_0, DT_Q8_0, 272, 272, 17, ACT_Q8> {
    enum { TILES = 4 };
    static __device__ inline float unit(void)
    {
        return 1;
    }
    static __device__ inline void codes(shared_place at, int block, uint32_t *c)
    {
        c[0] = few_word(at, block);
        c[1] = few_word(at + 16, block);
    }
    template <int NT> using x = few_x_blocks<few_Q8_0, NT>;
    template <int NT>
    static __device__ inline void products(shared_place slot, const x<NT> &x, uint32_t,
                                           float (*sum)[4])
    {
        few_products_32<few_Q8_0, NT>(slot, x, sum);
    }
};

/* Sixteen times code - 8 is a byte, without a subtraction. */
struct few_Q4_0 : few_blocks<weight_Q4_0, DT_Q4_0, 144, 144, 9, ACT_Q8> {
    static __device__ inline float unit(void)
    {
        return 0.0625f;
    }
    static __device__ inline void codes(shared_place at, int block, uint32_t *c)
    {
        const uint32_t both = few_word(at, block);
        c[0] = (both << 4 & 0xf0f0f0f0u) ^ 0x80808080u;
        c[1] = (both & 0xf0f0f0f0u) ^ 0x80808080u;
    }
    template <int NT> using x = few_x_blocks<few_Q4_0, NT>;
    template <int NT>
    static __device__ inline void products(shared_place slot, const x<NT> &x, uint32_t,
                                           float (*sum)[4])
    {
        few_products_32<few_Q4_0, NT>(slot, x, sum);
    }
};

/* Rows of a slot are 8 words apart, by 32: eight bytes of each lane are in different banks. */
struct few_Q4_K : few_blocks<weight_Q4_K, DT_Q4_K, 144, 160, 9, ACT_Q8K> {
    enum { X_PAD = 32, KEEPS = 1, ODD = 16, TILES = 3 };
    template <int NT> using x = few_x_groups<few_Q4_K, NT>;
    template <int NT>
    static __device__ inline void products(shared_place slot, const x<NT> &x, uint32_t,
                                           float (*sum)[4])
    {
        const shared_place w = slot + (uint32_t)(lane_index() / 4 * PITCH), w8 = w + 8 * PITCH;
        const uint32_t j = (uint32_t)lane_index() % 4 * 8;
        const bytes16 h0 = shared_16(w), h8 = shared_16(w8);
        uint32_t a[8][4];
        UNROLL
        for (int q = 0; q < 4; q++) { /* low halves are a group, high halves the next */
            const uint32_t at = (uint32_t)(16 + q * 32) + j;
            const bytes8 c0 = shared_8(w + at), c8 = shared_8(w8 + at);
            const uint32_t c[4] = {c0.w[0], c8.w[0], c0.w[1], c8.w[1]};
            UNROLL
            for (int i = 0; i < 4; i++) {
                a[2 * q][i] = c[i] & 0x0f0f0f0fu;
                a[2 * q + 1][i] = c[i] & 0xf0f0f0f0u;
            }
        }
        few_products_k<few_Q4_K, NT>(x, a, few_scales_of<few_Q4_K>(h0), few_scales_of<few_Q4_K>(h8),
                                     sum);
    }
};

struct few_Q5_K : few_blocks<weight_Q5_K, DT_Q5_K, 176, 224, 11, ACT_Q8K> {
    enum { X_PAD = 32, KEEPS = 1, ODD = 1 };
    template <int NT> using x = few_x_groups<few_Q5_K, NT>;
    template <int NT>
    static __device__ inline void products(shared_place slot, const x<NT> &x, uint32_t,
                                           float (*sum)[4])
    {
        const shared_place w = slot + (uint32_t)(lane_index() / 4 * PITCH), w8 = w + 8 * PITCH;
        const uint32_t j = (uint32_t)lane_index() % 4 * 8;
        const bytes16 h0 = shared_16(w), h8 = shared_16(w8);
        const bytes8 f0 = shared_8(w + 16 + j), f8 = shared_8(w8 + 16 + j);
        const uint32_t fifth[4] = {f0.w[0], f8.w[0], f0.w[1], f8.w[1]};
        uint32_t a[8][4];
        UNROLL
        for (int q = 0; q < 4; q++) {
            const uint32_t at = (uint32_t)(48 + q * 32) + j;
            const bytes8 c0 = shared_8(w + at), c8 = shared_8(w8 + at);
            const uint32_t c[4] = {c0.w[0], c8.w[0], c0.w[1], c8.w[1]};
            UNROLL
            for (int i = 0; i < 4; i++) {
                a[2 * q][i] = (c[i] & 0x0f0f0f0fu) | (fifth[i] >> 2 * q << 4 & 0x10101010u);
                a[2 * q + 1][i] =
                    (c[i] >> 4 & 0x0f0f0f0fu) | (fifth[i] >> (2 * q + 1) << 4 & 0x10101010u);
            }
        }
        few_products_k<few_Q5_K, NT>(x, a, few_scales_of<few_Q5_K>(h0), few_scales_of<few_Q5_K>(h8),
                                     sum);
    }
};

/* Blocks of 210 bytes, which are copied with what is around them. Scales are of 16 columns; four times code - 32 is a byte. */
struct few_Q6_K : few_blocks<weight_Q6_K, DT_Q6_K, 210, 240, 15, ACT_Q8K> {
    enum { KEEPS = 1, TILES = 4 };
    template <int NT> using x = few_x_sixteens<few_Q6_K, NT>;
    /* A row's block from a multiple of 4 on: it begins so many bits later. */
    struct row {
        shared_place at;
        uint32_t bits;
    };
    static __device__ inline row row_of(shared_place w)
    {
        return row{w & ~(shared_place)3, (uint32_t)(w & 3) * 8};
    }
    static __device__ inline uint32_t word(const row &r, int at)
    {
        return __funnelshift_r(shared_4(r.at + (uint32_t)at), shared_4(r.at + (uint32_t)at + 4),
                               r.bits);
    }
    /* Of the first (i 0) or the other 16 columns of the four groups of a half of the block, four codes each. `low` and `high`: their
     * parts, for this lane. */
    static __device__ inline void codes(const row &low, const row &high, int i, uint32_t *c)
    {
        const uint32_t l0 = word(low, i * 16), l1 = word(low, i * 16 + 32);
        const uint32_t h = word(high, i * 16);
        c[0] = ((l0 << 2 & 0x3c3c3c3cu) | (h << 6 & 0xc0c0c0c0u)) ^ 0x80808080u;
        c[1] = ((l1 << 2 & 0x3c3c3c3cu) | (h << 4 & 0xc0c0c0c0u)) ^ 0x80808080u;
        c[2] = ((l0 >> 2 & 0x3c3c3c3cu) | (h << 2 & 0xc0c0c0c0u)) ^ 0x80808080u;
        c[3] = ((l1 >> 2 & 0x3c3c3c3cu) | (h & 0xc0c0c0c0u)) ^ 0x80808080u;
    }
    template <int NT>
    static __device__ inline void products(shared_place slot, const x<NT> &x, uint32_t skew,
                                           float (*sum)[4])
    {
        const shared_place w = slot + (uint32_t)(lane_index() / 4 * PITCH) + skew;
        const row begin = row_of(w);
        const uint32_t j = (uint32_t)lane_index() % 4 * 4;
        int all[NT][4] = {};
        UNROLL
        for (uint32_t half = 0; half < 2; half++) {
            uint32_t c[2][2][4], scale[2][2];
            UNROLL
            for (int r = 0; r < 2; r++) {
                const shared_place at = begin.at + (uint32_t)(r * 8 * PITCH);
                const row low = {at + half * 64 + j, begin.bits};
                const row high = {at + 128 + half * 32 + j, begin.bits};
                const row scales = {at + 192 + half * 8, begin.bits};
                codes(low, high, 0, c[r][0]);
                codes(low, high, 1, c[r][1]);
                scale[r][0] = word(scales, 0);
                scale[r][1] = word(scales, 4);
            }
            UNROLL
            for (int t = 0; t < NT; t++) {
                int s[8][4];
                UNROLL
                for (int g = 0; g < 8; g++)
                    few_mma_16(s[g], c[0][g % 2][g / 2], c[1][g % 2][g / 2], x.b[t][half * 8 + g]);
                UNROLL
                for (int g = 0; g < 8; g++)
                    UNROLL
                for (int e = 0; e < 4; e++)
                    all[t][e] += s[g][e] * (int8_t)(scale[e / 2][g / 4] >> 8 * (g % 4));
            }
        }
        const float d0 = from_f16(shared_2(w + 208)) * 0.25f;
        const float d8 = from_f16(shared_2(w + 208 + 8 * PITCH)) * 0.25f;
        UNROLL
        for (int t = 0; t < NT; t++)
            UNROLL
        for (int e = 0; e < 4; e++)
            sum[t][e] =
                mad((e < 2 ? d0 : d8) * (float)all[t][e], float_of(x.d[t].w[e % 2]), sum[t][e]);
    }
};

/* A chunk of x as products take it. */
template <class R, int NT> using few_x = typename R::template x<NT>;

#endif
