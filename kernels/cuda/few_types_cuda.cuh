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

#include "kernels/cuda/few_job_cuda.cuh"

/* ---- a chunk of x in shared memory ---- */

/* Rows of R::COLS columns in 8 bits, some bytes apart so that lanes read different banks; then X_SIDE bytes of each row, which are
 * scales of 32 columns or sums of 16; and then, where scales are of 256 columns, those. */
template <class R, int NT> struct few_x_size {
    enum {
        ROWS = NT * FEW_N,
        PITCH = R::COLS + R::X_PAD,
        SIDE = ROWS * PITCH,
        D = SIDE + ROWS * R::X_SIDE,
        BYTES = D + (R::X_BLOCK == 256 ? ROWS * 4 : 0)
    };
};

/* Whole numbers below 2^22 as bits of a float near 1.5 * 2^23, whose units are 1. */
static const int FEW_MAGIC = 0x4b400000;

static __device__ inline float few_whole(int magic)
{
    return float_of((uint32_t)magic) - 12582912.0f;
}

/* ---- x in registers: row lane / 4 of each eight, and scales of rows lane % 4 * 2 and 1 more ---- */

/* Blocks of 256 in 8 bits, as Q4_K and Q5_K want them: 8 bytes of each 32 columns, and the sums of 32 columns in two halves. */
template <class R, int NT> struct few_x_groups {
    bytes8 b[NT][8], d[NT];
    uint32_t low[NT],
        high[NT]; /* a sum is low + 128 high; four sums, of the first columns where lane is even */
    /* Of N instructions from FIRST on, whose rows begin there. */
    template <int FIRST = 0, int N = NT> __device__ inline void load(shared_place at)
    {
        typedef few_x_size<R, N> size;
        const uint32_t row = (uint32_t)lane_index() / 4, j = (uint32_t)lane_index() % 4;
        UNROLL
        for (int t = FIRST; t < FIRST + N; t++) {
            const uint32_t r = row + (uint32_t)((t - FIRST) * FEW_N);
            const shared_place q = at + r * size::PITCH + j * 8;
            UNROLL
            for (int g = 0; g < 8; g++)
                b[t][g] = shared_8(q + (uint32_t)(g * 32));
            d[t] = shared_8(at + size::D + (uint32_t)((t - FIRST) * FEW_N * 4) + j * 8);
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
    template <int FIRST = 0, int N = NT> __device__ inline void load(shared_place at)
    {
        typedef few_x_size<R, N> size;
        const int row = lane_index() / 4, j = lane_index() % 4;
        UNROLL
        for (int t = FIRST; t < FIRST + N; t++) {
            const int r = row + (t - FIRST) * FEW_N;
            UNROLL
            for (int g = 0; g < 16; g++)
                b[t][g] = shared_4(at + (uint32_t)(r * size::PITCH + j * 4 + g * 16));
            d[t] = shared_8(at + (uint32_t)(size::D + (t - FIRST) * FEW_N * 4 + j * 8));
        }
    }
};

/* Blocks of 32: there are too many scales to keep. */
template <class R, int NT> struct few_x_blocks {
    shared_place x, d;
    template <int FIRST = 0, int N = NT> __device__ inline void load(shared_place at)
    {
        static_assert(N == NT, "a chunk has all rows");
        typedef few_x_size<R, NT> size;
        x = at + (uint32_t)(lane_index() / 4 * size::PITCH + lane_index() % 4 * 4);
        d = at + (uint32_t)(size::SIDE + lane_index() % 4 * 2 * R::X_SIDE);
    }
};

/* ---- products of blocks ---- */

/* A word from a block of 32 whose number is odd, at a multiple of 4; else it is 2 bytes off. */
static __device__ inline uint32_t few_word(shared_place at, int block)
{
    return block % 2 ? shared_4(at) : __byte_perm(shared_4(at - 2), shared_4(at + 2), 0x5432);
}

/* Blocks of 32 with scales that are floats on both sides, four at a time. R::codes: 4 codes of the first 16 columns, and of
 * the others; R::UNIT times a code is what it stands for. */
template <class R, int NT, int PITCH>
static __device__ inline void few_products_32(shared_place slot, const few_x_blocks<R, NT> &x,
                                              float (*sum)[4])
{
    enum { BLOCKS = R::COLS / 32, SIZE = R::BYTES / BLOCKS };
    const uint32_t j = (uint32_t)lane_index() % 4;
    shared_place w = slot + (uint32_t)(lane_index() / 4 * PITCH);
    UNROLLED(NT == 1 ? 2 : 1)
    for (uint32_t first = 0; first < BLOCKS; first += 4, w += 4 * SIZE) {
        uint32_t a[4][4];
        float dw[4][2];
        UNROLL
        for (int i = 0; i < 8; i++) {
            const int b = i / 2, r = i % 2;
            const shared_place block = w + (uint32_t)(b * SIZE + r * 8 * PITCH);
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
            const shared_place d = x.d + (uint32_t)(t * FEW_N * R::X_SIDE) + first * 4;
            uint32_t b[4][2];
            int s[4][4];
            UNROLL
            for (int i = 0; i < 8; i++)
                b[i / 2][i % 2] = shared_4(at + (uint32_t)(i * 16));
            const bytes16 dx[2] = {shared_16(d), shared_16(d + R::X_SIDE)};
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

/* Values by scales of x, to sums. */
template <int NT>
static __device__ inline void few_add(float (*sum)[4], const float (*value)[4], const bytes8 *d)
{
    UNROLL
    for (int t = 0; t < NT; t++)
        UNROLL
    for (int e = 0; e < 4; e++)
        sum[t][e] = mad(value[t][e], float_of(d[t].w[e % 2]), sum[t][e]);
}

/* What lanes of four have of four groups each: the first two of them. Without branches. */
static __device__ inline uint32_t few_minima(const uint32_t *min)
{
    const uint32_t j = (uint32_t)lane_index() % 4;
    return (min[0] & (0u - (uint32_t)(j == 0))) | (min[1] & (0u - (uint32_t)(j == 1)));
}

/* A block of Q4_K or Q5_K: what scales of x are multiplied with, and all is whole numbers until then; the minima times the sums of x are
 * products of matrices too. R::codes: those of half of the groups, of odd ones times R::ODD. With up to 8 rows all groups are in registers
 * at once, else half of them: no product waits for another then. */
template <class R, int NT>
static __device__ inline void few_values_k(const few_x_groups<R, NT> &x, shared_place w,
                                           shared_place w8, float (*value)[4])
{
    enum { HALF = 4, GROUPS = NT == 1 ? 2 * HALF : (int)HALF };
    const few_scales s0 = few_scales_of<R>(shared_16(w)), s8 = few_scales_of<R>(shared_16(w8));
    int all[NT][4] = {},
        other[NT][4] = {}; /* sums that do not wait for each other, where there are registers */
    UNROLL
    for (int first = 0; first < 2 * HALF; first += GROUPS) {
        uint32_t a[GROUPS][4];
        int scale[2][GROUPS];
        UNROLL
        for (int g = 0; g < GROUPS; g += HALF)
            R::codes(w, w8, (first + g) / HALF, a + g);
        UNROLL
        for (int g = 0; g < GROUPS; g++) { /* all codes are times R::ODD then */
            const int odd = g % 2 ? 1 : (int)R::ODD, half = (first + g) / HALF;
            scale[0][g] = (int)__byte_perm(s0.scale[half], 0, 0x4440 + g % HALF) * odd;
            scale[1][g] = (int)__byte_perm(s8.scale[half], 0, 0x4440 + g % HALF) * odd;
        }
        UNROLL
        for (int t = 0; t < NT; t++) {
            int s[GROUPS][4];
            UNROLL
            for (int g = 0; g < GROUPS; g++)
                few_mma_32u(s[g], a[g], x.b[t][first + g].w);
            UNROLL
            for (int g = 0; g < GROUPS; g++)
                UNROLL
            for (int e = 0; e < 4; e++)
                (NT == 1 && g % 2 ? other : all)[t][e] += s[g][e] * scale[e / 2][g];
        }
    }
    const uint32_t min0 = few_minima(s0.min), min8 = few_minima(s8.min);
    UNROLL
    for (int t = 0; t < NT; t++) {
        int low[4], high[4];
        few_mma_16(low, min0, min8, x.low[t], FEW_MAGIC);
        few_mma_16(high, min0, min8, x.high[t]);
        UNROLL
        for (int e = 0; e < 4; e++) {
            const few_scales &of = e < 2 ? s0 : s8;
            const float less = of.m * few_whole(low[e] + 128 * high[e]);
            value[t][e] = mad(of.d, (float)(all[t][e] + other[t][e]), -less);
        }
    }
}

/* ---- types ----
 *
 *     TYPE, weight       and how eight numbers of a row are read
 *     COLS, BYTES        columns of a chunk, and its bytes of a row
 *     PITCH, PIECES      bytes from row to row in a slot, and pieces of 16 that are copied: more than BYTES where a chunk begins
 *                        at no multiple of 16 (skew)
 *     ACT                of x; X_BLOCK: columns of a scale; X_PAD: bytes between rows, so that lanes read different banks; X_SIDE:
 *                        what there is beside a row
 *     KEEPS              x is all in registers while products are made; else in its slot
 *     TILES              of a group with the most instructions
 *     PASSES             with these a group is multiplied in so many passes, each with a part of the rows of x: all of it and all sums are
 *                        more registers than there are
 *     x                  a chunk of it, as products take it
 *     values             of a chunk, to be multiplied by the scales of x, where these are of all its columns;
 *     products           of others, added to the sums of a lane. Rows of weights are PITCH bytes apart, or P */

/* What types of blocks have in common. */
template <class W, int TYPE_, int BYTES_, int PITCH_, int PIECES_, int ACT_, int COLS_ = 256>
struct few_blocks {
    typedef W weight;
    enum { TYPE = TYPE_, COLS = COLS_, BYTES = BYTES_, PITCH = PITCH_, PIECES = PIECES_ };
    enum { ACT = ACT_, X_BLOCK = ACT_ == ACT_Q8K ? 256 : 32, X_PAD = 16, X_SIDE = COLS / 8 };
    enum { KEEPS = 0, TILES = 2, PASSES = 1, ROWS_MAX = FEW_ROWS_MAX };
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
    template <int NT, int P = PITCH>
    static __device__ inline void products(shared_place slot, const x<NT> &x, uint32_t,
                                           float (*sum)[4])
    {
        few_products_32<few_Q8_0, NT, P>(slot, x, sum);
    }
};

/* The same by half as many columns at a time: of all rows of x two chunks have room then, and one comes while the other is used. */
struct few_Q8_0_short : few_blocks<weight_Q8_0, DT_Q8_0, 136, 144, 9, ACT_Q8, 128> {
    enum { TILES = 4 };
    static __device__ inline float unit(void)
    {
        return few_Q8_0::unit();
    }
    static __device__ inline void codes(shared_place at, int block, uint32_t *c)
    {
        few_Q8_0::codes(at, block, c);
    }
    template <int NT> using x = few_x_blocks<few_Q8_0_short, NT>;
    template <int NT, int P = PITCH>
    static __device__ inline void products(shared_place slot, const x<NT> &x, uint32_t skew,
                                           float (*sum)[4])
    {
        few_products_32<few_Q8_0_short, NT, P>(slot + skew, x, sum);
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
    template <int NT, int P = PITCH>
    static __device__ inline void products(shared_place slot, const x<NT> &x, uint32_t,
                                           float (*sum)[4])
    {
        few_products_32<few_Q4_0, NT, P>(slot, x, sum);
    }
};

/* Rows of a slot are 8 words apart, by 32: eight bytes of each lane are in different banks. */
struct few_Q4_K : few_blocks<weight_Q4_K, DT_Q4_K, 144, 160, 9, ACT_Q8K> {
    enum { X_PAD = 32, KEEPS = 1, ODD = 16, TILES = 3, PASSES = 2 };
    template <int NT> using x = few_x_groups<few_Q4_K, NT>;
    /* Of half of the groups, of both rows: low halves of bytes are a group, high halves the next. */
    static __device__ inline void codes(shared_place w, shared_place w8, int half, uint32_t (*a)[4])
    {
        const uint32_t at = (uint32_t)(16 + half * 64 + lane_index() % 4 * 8);
        UNROLL
        for (uint32_t q = 0; q < 2; q++) {
            const bytes8 c0 = shared_8(w + at + q * 32), c8 = shared_8(w8 + at + q * 32);
            const uint32_t c[4] = {c0.w[0], c8.w[0], c0.w[1], c8.w[1]};
            UNROLL
            for (int i = 0; i < 4; i++) {
                a[2 * q][i] = c[i] & 0x0f0f0f0fu;
                a[2 * q + 1][i] = c[i] & 0xf0f0f0f0u;
            }
        }
    }
    template <int NT, int P>
    static __device__ inline void values(shared_place slot, const x<NT> &x, uint32_t,
                                         float (*value)[4])
    {
        const shared_place w = slot + (uint32_t)(lane_index() / 4 * P);
        few_values_k<few_Q4_K, NT>(x, w, w + 8 * P, value);
    }
};

struct few_Q5_K : few_blocks<weight_Q5_K, DT_Q5_K, 176, 224, 11, ACT_Q8K> {
    enum { X_PAD = 32, KEEPS = 1, ODD = 1, PASSES = 2 };
    template <int NT> using x = few_x_groups<few_Q5_K, NT>;
    static __device__ inline void codes(shared_place w, shared_place w8, int half, uint32_t (*a)[4])
    {
        const uint32_t j = (uint32_t)lane_index() % 4 * 8, at = (uint32_t)(48 + half * 64) + j;
        const bytes8 f0 = shared_8(w + 16 + j), f8 = shared_8(w8 + 16 + j);
        const uint32_t fifth[4] = {f0.w[0], f8.w[0], f0.w[1], f8.w[1]};
        UNROLL
        for (uint32_t q = 0; q < 2; q++) {
            const bytes8 c0 = shared_8(w + at + q * 32), c8 = shared_8(w8 + at + q * 32);
            const uint32_t c[4] = {c0.w[0], c8.w[0], c0.w[1], c8.w[1]};
            UNROLL
            for (int i = 0; i < 4; i++) {
                const uint32_t f = fifth[i] >> (half * 4 + (int)q * 2);
                a[2 * q][i] = (c[i] & 0x0f0f0f0fu) | (f << 4 & 0x10101010u);
                a[2 * q + 1][i] = (c[i] >> 4 & 0x0f0f0f0fu) | (f << 3 & 0x10101010u);
            }
        }
    }
    template <int NT, int P>
    static __device__ inline void values(shared_place slot, const x<NT> &x, uint32_t,
                                         float (*value)[4])
    {
        const shared_place w = slot + (uint32_t)(lane_index() / 4 * P);
        few_values_k<few_Q5_K, NT>(x, w, w + 8 * P, value);
    }
};

/* Blocks of 210 bytes, which are copied with what is around them. Scales are of 16 columns; four times code - 32 is a byte. */
struct few_Q6_K : few_blocks<weight_Q6_K, DT_Q6_K, 210, 240, 15, ACT_Q8K> {
    enum { X_SIDE = 0, KEEPS = 1, TILES = 2, PASSES = 2 };
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
    /* ALIKE: both rows begin as many bytes after a multiple of 4. */
    template <int NT, bool ALIKE, int P = PITCH>
    static __device__ inline void values_of(shared_place w, shared_place w8, const x<NT> &x,
                                            float (*value)[4])
    {
        const row begin = row_of(w), other = ALIKE ? begin : row_of(w8);
        const uint32_t j = (uint32_t)lane_index() % 4 * 4;
        int all[NT][4] = {}, rest[NT][4] = {}; /* sums that do not wait for each other, as above */
        UNROLL
        for (uint32_t half = 0; half < 2; half++) {
            uint32_t c[2][2][4], scale[2][2];
            UNROLL
            for (int r = 0; r < 2; r++) {
                const shared_place at =
                    ALIKE || r == 0 ? begin.at + (uint32_t)(r * 8 * P) : other.at;
                const uint32_t bits = r == 0 ? begin.bits : other.bits;
                const row low = {at + half * 64 + j, bits};
                const row high = {at + 128 + half * 32 + j, bits};
                const row scales = {at + 192 + half * 8, bits};
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
                    (NT == 1 && g % 2 ? rest : all)[t][e] +=
                        s[g][e] * (int8_t)(scale[e / 2][g / 4] >> 8 * (g % 4));
            }
        }
        const float d0 = from_f16(shared_2(w + 208)) * 0.25f;
        const float d8 = from_f16(shared_2(ALIKE ? w + 208 + 8 * P : w8 + 208)) * 0.25f;
        UNROLL
        for (int t = 0; t < NT; t++)
            UNROLL
        for (int e = 0; e < 4; e++)
            value[t][e] = (e < 2 ? d0 : d8) * (float)(all[t][e] + rest[t][e]);
    }
    template <int NT, bool ALIKE, int P = PITCH>
    static __device__ inline void products_of(shared_place w, shared_place w8, const x<NT> &x,
                                              float (*sum)[4])
    {
        float value[NT][4];
        values_of<NT, ALIKE, P>(w, w8, x, value);
        few_add<NT>(sum, value, x.d);
    }
    template <int NT, int P>
    static __device__ inline void values(shared_place slot, const x<NT> &x, uint32_t skew,
                                         float (*value)[4])
    {
        const shared_place w = slot + (uint32_t)(lane_index() / 4 * P) + skew;
        values_of<NT, true, P>(w, w + 8 * P, x, value);
    }
};

/* A chunk of x as products take it. */
template <class R, int NT> using few_x = typename R::template x<NT>;

/* Products of a chunk to sums; rows of weights are P bytes apart. */
template <class R, int NT, int P>
static __device__ inline void few_products(shared_place slot, const few_x<R, NT> &x, uint32_t skew,
                                           float (*sum)[4])
{
    if constexpr (R::KEEPS) {
        float value[NT][4];
        R::template values<NT, P>(slot, x, skew, value);
        few_add<NT>(sum, value, x.d);
    } else {
        R::template products<NT, P>(slot, x, skew, sum);
    }
}

#endif
