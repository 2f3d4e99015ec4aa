/* experts_few_cuda.cuh - 2 to FEW_CALL_MAX rows through the matrices of their chosen experts, by matrix instructions.
 *
 * A block lists who chose what: a bundle is an expert and up to 8, or 16, of those who chose it. A job is a tile of FEW_TILE rows
 * of the block's part of that expert's matrix, times the rows of x of a bundle. Warps share out jobs, each with all columns of
 * its own: most experts are chosen by few rows, and tiles of different experts have nothing to meet for. A warp copies ahead into slots
 * of its own, chunk after chunk of job after job: weights as stored, and beside them the rows of x that the bundle gathers.
 * Weights are so read once for a bundle, by whoever has that tile, and experts that nobody chose are not looked at. A block that has
 * no more than half of a tile of each matrix fills the other half with the next bundle's: x is then of both.
 *
 * Chunks and what is done with them are those of linears (few_types_cuda.cuh). There rows are whole pieces of 16 bytes; experts are
 * narrow, and often their rows are not: Q6_K of 768 columns, MXFP4 of 2880. Such rows begin anywhere in their slot. */
#ifndef WEFT_KERNELS_CUDA_EXPERTS_FEW_CUDA_CUH
#define WEFT_KERNELS_CUDA_EXPERTS_FEW_CUDA_CUH

#include "kernels/cuda/experts_runs_cuda.cuh"
#include "kernels/cuda/linear_few_cuda.cuh"

/* ---- rows that begin anywhere ---- */

#ifdef __CUDACC__
/* Some bytes of 16, and zeros; or nothing. */
static __device__ inline void few_copy_part(shared_place to, const char *from, bool there,
                                            int bytes)
{
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %2, 0;\n"
                 "@p cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %3;\n}" ::"r"(to),
                 "l"(global_at(from)), "r"((int)there), "r"(bytes)
                 : "memory");
}

static __device__ inline uint32_t shared_1(shared_place p)
{
    uint32_t x;
    asm volatile("ld.shared.u8 %0, [%1];" : "=r"(x) : "r"(p));
    return x;
}
#else
static inline void few_copy_part(shared_place to, const char *from, bool there, int bytes)
{
    if (there)
        simt_copy((void *)to, from, (size_t)bytes, 16);
}

static inline uint32_t shared_1(shared_place p)
{
    return *(const uint8_t *)p;
}
#endif

/* A word from anywhere. */
static __device__ inline uint32_t few_word_any(shared_place at)
{
    const shared_place from = at & ~(shared_place)3;
    return __funnelshift_r(shared_4(from), shared_4(from + 4), (uint32_t)(at & 3) * 8);
}

/* few_products_32 of rows that begin at w0 and w8. R::scale: of a block, R::codes: as there. */
template <class R, int NT>
static __device__ inline void few_products_any(shared_place w0, shared_place w8,
                                               const few_x_blocks<R, NT> &x, float (*sum)[4])
{
    enum { SIZE = R::BYTES / 8 };
    const uint32_t j = (uint32_t)lane_index() % 4;
    UNROLLED(1)
    for (uint32_t first = 0; first < 8; first += 4) {
        uint32_t a[4][4];
        float dw[4][2];
        UNROLL
        for (int i = 0; i < 8; i++) {
            const int b = i / 2, r = i % 2;
            const shared_place block = (r ? w8 : w0) + (first + (uint32_t)b) * SIZE;
            uint32_t c[2];
            R::codes(block + R::CODES + j * 4, c);
            a[b][r] = c[0];
            a[b][r + 2] = c[1];
            dw[b][r] = R::scale(block);
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

/* ---- types, as few_types_cuda.cuh has them; and:
 *
 *     ANY                rows begin anywhere: products_at takes the places of two rows. Of blocks of 32 the last chunk may be a part
 *     CODES              bytes of a block before its codes */

template <class R> struct expert_even : R {
    enum { ANY = 0 };
};

struct expert_Q6_K : few_Q6_K {
    enum { ANY = 1, PIECES = 14 };
    template <int NT>
    static __device__ inline void products_at(shared_place w0, shared_place w8, const x<NT> &x,
                                              float (*sum)[4])
    {
        products_of<NT, false>(w0, w8, x, sum);
    }
};

template <class W, int TYPE_, int BYTES_, int PITCH_, int PIECES_>
struct expert_blocks : few_blocks<W, TYPE_, BYTES_, PITCH_, PIECES_, ACT_Q8> {
    enum { ANY = 1, CODES = 2 };
    static __device__ inline float scale(shared_place block)
    {
        return from_f16(shared_2(block));
    }
};

struct expert_Q8_0 : expert_blocks<weight_Q8_0, DT_Q8_0, 272, 304, 18> {
    static __device__ inline void codes(shared_place at, uint32_t *c)
    {
        c[0] = few_word_any(at);
        c[1] = few_word_any(at + 16);
    }
    template <int NT> using x = few_x_blocks<expert_Q8_0, NT>;
    template <int NT>
    static __device__ inline void products_at(shared_place w0, shared_place w8, const x<NT> &x,
                                              float (*sum)[4])
    {
        few_products_any<expert_Q8_0, NT>(w0, w8, x, sum);
    }
};

struct expert_Q4_0 : expert_blocks<weight_Q4_0, DT_Q4_0, 144, 176, 10> {
    static __device__ inline float scale(shared_place block)
    {
        return from_f16(shared_2(block)) * few_Q4_0::unit();
    }
    static __device__ inline void codes(shared_place at, uint32_t *c)
    {
        const uint32_t both = few_word_any(at);
        c[0] = (both << 4 & 0xf0f0f0f0u) ^ 0x80808080u;
        c[1] = (both & 0xf0f0f0f0u) ^ 0x80808080u;
    }
    template <int NT> using x = few_x_blocks<expert_Q4_0, NT>;
    template <int NT>
    static __device__ inline void products_at(shared_place w0, shared_place w8, const x<NT> &x,
                                              float (*sum)[4])
    {
        few_products_any<expert_Q4_0, NT>(w0, w8, x, sum);
    }
};

/* Codes stand for 0, 1/2, 1, 3/2, 2, 3, 4, 6, and these with a sign: twice that is a byte. */
struct expert_MXFP4 : expert_blocks<weight_MXFP4, DT_MXFP4, 136, 176, 10> {
    enum { CODES = 1 };
    static __device__ inline float scale(shared_place block)
    {
        const uint32_t e = shared_1(block);
        return float_of(e < 2 ? 0x00200000u << e : (e - 1) << 23); /* half of 2^(e - 127) */
    }
    /* Four codes, the low halves of bytes. */
    static __device__ inline uint32_t four(uint32_t low)
    {
        const uint32_t pairs = low | low >> 4; /* in the first byte, and in the third */
        const uint32_t pick = __byte_perm(pairs, 0, 0x4420) & 0x7777u;
        const uint32_t signs = (low >> 3 & 0x01010101u) * 255u;
        return (__byte_perm(0x03020100u, 0x0c080604u, pick) & ~signs) |
               (__byte_perm(0xfdfeff00u, 0xf4f8fafcu, pick) & signs);
    }
    static __device__ inline void codes(shared_place at, uint32_t *c)
    {
        const uint32_t both = few_word_any(at);
        c[0] = four(both & 0x0f0f0f0fu);
        c[1] = four(both >> 4 & 0x0f0f0f0fu);
    }
    template <int NT> using x = few_x_blocks<expert_MXFP4, NT>;
    template <int NT>
    static __device__ inline void products_at(shared_place w0, shared_place w8, const x<NT> &x,
                                              float (*sum)[4])
    {
        few_products_any<expert_MXFP4, NT>(w0, w8, x, sum);
    }
};

/* ---- who chose what ---- */

/* Lists in scratch, behind the slots of warps. */
struct expert_list {
    uint32_t *bundle; /* [bundles] */
    int32_t *next;    /* [experts]: where the next who chose it goes; in the end where they end */
    uint16_t *choice; /* [choices], in order of their experts */
};

static __device__ inline expert_list expert_list_at(char *scratch, int experts, int bundles)
{
    uint32_t *at = (uint32_t *)(scratch + EXPERTS_FEW_SLOTS) + EXPERTS_FEW_WORDS;
    return expert_list{at, (int32_t *)at + bundles, (uint16_t *)(at + bundles + experts)};
}

/* An expert, how many of those who chose it, and the place of the first in the list: 14, 5 and 13 bits. */
enum { BUNDLE_EXPERTS_MAX = 1 << 14, BUNDLE_CHOICES_MAX = 1 << 13 };

static __device__ inline uint32_t bundle_of(int e, int count, int first)
{
    return (uint32_t)e | (uint32_t)count << 14 | (uint32_t)first << 19;
}

static __device__ inline int bundle_expert(uint32_t b)
{
    return (int)(b & (BUNDLE_EXPERTS_MAX - 1));
}

static __device__ inline int bundle_count(uint32_t b)
{
    return (int)(b >> 14 & 31);
}

static __device__ inline int bundle_first(uint32_t b)
{
    return (int)(b >> 19);
}

/* What a block knows of them: how many there are, 0 where a matrix does not begin at a multiple of 16 bytes, and whether one has more
 * than `small` choices. */
struct expert_bundles {
    int n;
    bool large;
};

/* Experts in their order, by one warp: where their choices begin, and bundles of `each` of these. */
static __device__ inline expert_bundles bundles_make(const expert_list &l, int experts, int each,
                                                     int small)
{
    int all = 0; /* choices, and bundles in the upper half */
    bool large = false;
    UNROLLED(1)
    for (int first = 0; first < experts; first += WARP) {
        const int e = first + lane_index(), count = e < experts ? l.next[e] : 0;
        const int own = count | (count + each - 1) / each << 16;
        int sum = own;
        large = large || count > small;
        UNROLL
        for (int by = 1; by < WARP; by *= 2) {
            const int other = __shfl_up_sync(ALL_LANES, sum, by);
            sum += lane_index() >= by ? other : 0;
        }
        const int before = all + sum - own, at = before & 0xffff;
        if (e < experts)
            l.next[e] = at;
        UNROLLED(1)
        for (int i = 0; i < own >> 16; i++)
            l.bundle[(before >> 16) + i] =
                bundle_of(e, (int)least(count - i * each, each), at + i * each);
        all += __shfl_sync(ALL_LANES, sum, WARP - 1);
    }
    return expert_bundles{all >> 16, __any_sync(ALL_LANES, large) != 0};
}

/* What a list is made of: n choices among matrices of a table, and how many may be in a bundle, or in a small one. */
struct expert_ids {
    const uint8_t *const *table;
    const int32_t *ids;
    int n, experts, each, small;
};

/* By all threads. In what order a list has those who chose one expert is of no importance. */
static __device__ APART expert_bundles expert_list_make(char *scratch, const expert_list l,
                                                        const expert_ids s)
{
    int32_t *word =
        (int32_t *)(scratch + EXPERTS_FEW_SLOTS); /* how many; is one elsewhere, or large? */
    for (int e = (int)threadIdx.x; e < s.experts; e += block_threads())
        l.next[e] = 0;
    if (threadIdx.x == 0)
        word[1] = 0;
    block_sync();
    UNROLLED(1)
    for (int i = (int)threadIdx.x; i < s.n; i += block_threads()) {
        const int e = s.ids[i];
        atomicAdd(&l.next[e], 1);
        if (!at_16(s.table[e]))
            word[1] = 1;
    }
    block_sync();
    if (warp_index() == 0) {
        const expert_bundles all = bundles_make(l, s.experts, s.each, s.small);
        if (lane_index() == 0) {
            word[0] = all.n;
            word[2] = all.large;
        }
    }
    block_sync();
    UNROLLED(1)
    for (int i = (int)threadIdx.x; i < s.n; i += block_threads())
        l.choice[atomicAdd(&l.next[s.ids[i]], 1)] = (uint16_t)i;
    block_sync();
    return expert_bundles{word[1] ? 0 : word[0], word[2] != 0};
}

/* ---- jobs ---- */

/* What all warps know. */
struct expert_jobs {
    const char *x; /* of the first choice, as all that follows */
    char *out;     /* and of the first column */
    const uint8_t *const *table;
    const char *bias; /* of the first column, or NULL */
    char *scratch;
    shared_place bundle, choice;
    int x_pitch, w_pitch, out_pitch, bias_pitch; /* bytes */
    int col, w_rows;                             /* of each matrix */
    int n, share;                                /* columns; choices that have one row of x */
    int bundles, tiles, jobs;
    bool pairs; /* a job has two bundles */
};

/* Bundles of a job: the second is 0, of which nothing is, where there is none. */
struct expert_pair {
    uint32_t a, b;
};

static __device__ inline expert_pair pair_at(const expert_jobs &j, int job)
{
    const int at = j.pairs ? 2 * job : job / j.tiles;
    expert_pair p = {shared_4(j.bundle + (unsigned)at * 4), 0};
    if (j.pairs && at + 1 < j.bundles)
        p.b = shared_4(j.bundle + (unsigned)(at + 1) * 4);
    return p;
}

static __device__ inline int choice_at(const expert_jobs &j, int i)
{
    return shared_2(j.choice + (unsigned)i * 2);
}

/* The first row of a job's tile, of those that the block has. */
static __device__ inline int tile_at(const expert_jobs &j, int job)
{
    return j.pairs ? 0 : job % j.tiles * FEW_TILE;
}

enum { HALF = FEW_TILE / 2 };

/* Lanes copy pieces of some rows that lie one after the other, half a tile in TIMES; a seventeenth piece comes with those of all rows. */
template <class R> struct expert_lanes {
    enum {
        REST = R::PIECES == 17,
        PIECES = R::PIECES - REST,
        ROWS = WARP / PIECES,
        TIMES = (HALF + ROWS - 1) / ROWS
    };
    static __device__ inline int row(void)
    {
        return lane_index() / PIECES;
    }
    static __device__ inline int piece(void)
    {
        return lane_index() % PIECES * 16;
    }
};

/* What a warp copies next. */
struct expert_walk {
    int job, chunk, count; /* of rows of x */
    int rows, rows_b;      /* of the tile's first half, and of the other */
    const char *w, *w_b;   /* the first row of each */
    uint32_t x_at;         /* the lane's row of x */
    uint32_t put;          /* its slot */
    /* The job after that: who asks for the address of a matrix only when it is needed waits for it. */
    expert_pair next;
    const char *matrix, *matrix_b;
};

static __device__ inline void walk_ask(const expert_jobs &j, expert_walk &s, int job)
{
    if (job >= j.jobs)
        return;
    s.next = pair_at(j, job);
    s.matrix = s.matrix_b = (const char *)j.table[bundle_expert(s.next.a)];
    if (s.next.b)
        s.matrix_b = (const char *)j.table[bundle_expert(s.next.b)];
}

/* The job that was asked for begins. Who is in a second bundle follows in the list. */
static __device__ inline void walk_begin(const expert_jobs &j, expert_walk &s, int step)
{
    if (s.job >= j.jobs)
        return;
    const int first = tile_at(j, s.job);
    s.count = bundle_count(s.next.a) + bundle_count(s.next.b);
    s.rows = j.w_rows - first;
    s.rows_b = !j.pairs ? s.rows - HALF : s.next.b ? j.w_rows : 0;
    s.w = s.matrix + (int64_t)(j.col + first) * j.w_pitch;
    s.w_b = s.matrix_b + (int64_t)(j.col + first + (j.pairs ? 0 : HALF)) * j.w_pitch;
    const int choice =
        choice_at(j, bundle_first(s.next.a) + (lane_index() < s.count ? lane_index() : 0));
    s.x_at = (uint32_t)choice / (uint32_t)j.share * (uint32_t)j.x_pitch;
    walk_ask(j, s, s.job + step);
}

/* A chunk of weights, of half a tile: rows that are not there are left as they are. */
template <class R>
static __device__ inline void expert_copy_half(const expert_jobs &j, int chunk, const char *w,
                                               int rows, shared_place slot)
{
    typedef expert_lanes<R> lanes;
    const int row = lanes::row(), piece = lanes::piece(), begin = chunk * R::BYTES;
    const int here = row < lanes::ROWS ? (rows < HALF ? rows : (int)HALF) - row : 0;
    const int left = j.n / 32 * R::BYTES / 8 - begin - piece; /* a chunk is of 256 columns */
    const char *from = w + begin + row * j.w_pitch;
    const shared_place to = slot + (unsigned)(row * R::PITCH + piece);
    UNROLL
    for (int i = 0; i < lanes::TIMES; i++, from += lanes::ROWS * j.w_pitch) {
        const shared_place place = to + (unsigned)(i * lanes::ROWS * R::PITCH);
        if constexpr (R::ANY) {
            const int skew = (int)((uintptr_t)from & 15), bytes = left + skew;
            few_copy_part(place, from + (piece - skew), i * lanes::ROWS < here,
                          bytes < 0    ? 0
                          : bytes < 16 ? bytes
                                       : 16);
        } else {
            few_copy_if(place, from + piece, i * lanes::ROWS < here);
        }
    }
    if (lanes::REST)
        few_copy_if(slot + (unsigned)(lane_index() * R::PITCH + lanes::PIECES * 16),
                    w + begin + lane_index() * j.w_pitch + lanes::PIECES * 16,
                    lane_index() < HALF && lane_index() < rows);
}

/* The same columns of the rows of x of a bundle; as few_x_size has them, of 8 rows or of 16. Columns that are not there are 0. */
template <class R>
static __device__ inline void expert_copy_x(const expert_jobs &j, const expert_walk &s,
                                            shared_place to)
{
    enum { PITCH = few_x_size<R, 1>::PITCH };
    const int rows = s.count > FEW_N ? 2 * FEW_N : (int)FEW_N;
    const int piece = lane_index() % 16 * 16, begin = s.chunk * R::COLS + piece;
    const int bytes = R::X_BLOCK == 256 || begin < j.n ? 16 : 0;
    UNROLLED(2)
    for (int i = 0; i < s.count; i += 2) {
        const int row = i + lane_index() / 16;
        const uint32_t at = __shfl_sync(ALL_LANES, s.x_at, row);
        few_copy_part(to + (unsigned)(row * PITCH + piece), j.x + at + begin, row < s.count, bytes);
    }
    const int d = (int)((unsigned)(j.n + ACT_ALIGN - 1) & ~(ACT_ALIGN - 1u));
    if (R::X_SIDE != 0) {
        const int sums = (j.n / 256 * 4 + ACT_ALIGN - 1) & ~(ACT_ALIGN - 1);
        const int at = s.chunk * 32 + lane_index() % 2 * 16, row = lane_index() / 2;
        const int left = R::X_BLOCK == 256 ? 16 : j.n / 32 * 4 - at;
        const uint32_t x = __shfl_sync(ALL_LANES, s.x_at, row);
        few_copy_part(to + (unsigned)(rows * PITCH + lane_index() * 16),
                      j.x + x + (R::X_BLOCK == 256 ? d + sums : d) + at, row < s.count,
                      left < 0    ? 0
                      : left < 16 ? left
                                  : 16);
    }
    if (R::X_BLOCK == 256 && lane_index() < s.count)
        few_copy_4(to + (unsigned)(rows * (PITCH + R::X_SIDE) + lane_index() * 4),
                   j.x + s.x_at + d + s.chunk * 4, true);
}

/* ---- slots: a chunk of weights and of x, of NT eights of rows ----
 *
 *     COLS, BYTES                of a slot
 *     OF                         sums of each result that do not wait for each other
 *     copy(j, s, slot)           the chunk of a walk, on its way to its slot
 *     products(..)               those of N eights of rows, added to sums */

template <class R, int NT> struct expert_slot {
    enum {
        W_BYTES = FEW_TILE * R::PITCH,
        COLS = R::COLS,
        BYTES = W_BYTES + few_x_size<R, NT>::BYTES,
        OF = 1
    };
    static __device__ inline void copy(const expert_jobs &j, const expert_walk &s,
                                       shared_place slot)
    {
        expert_copy_x<R>(j, s, slot + W_BYTES);
        expert_copy_half<R>(j, s.chunk, s.w, s.rows, slot);
        expert_copy_half<R>(j, s.chunk, s.w_b, s.rows_b, slot + HALF * R::PITCH);
    }
    /* first: row of the tile */
    template <int N>
    static __device__ inline void products(const expert_jobs &j, shared_place slot, int first,
                                           int chunk, float (*sum)[NT][4])
    {
        few_x<R, N> x;
        x.load(slot + W_BYTES);
        if constexpr (R::ANY) {
            const int row = lane_index() / 4;
            const unsigned at = (unsigned)((first + row) * j.w_pitch + chunk * R::BYTES);
            const unsigned at_b = at + (j.pairs ? 0 : (unsigned)(HALF * j.w_pitch));
            R::template products_at<N>(slot + (unsigned)(row * R::PITCH) + (at & 15),
                                       slot + (unsigned)((row + HALF) * R::PITCH) + (at_b & 15), x,
                                       sum[0]);
        } else {
            few_products<R, N, R::PITCH>(slot, x, 0, sum[0]);
        }
    }
};

/* A warp's slots: as many as there is room for. */
template <class R, int NT> struct expert_room {
    typedef expert_slot<R, NT> slot;
    enum {
        BYTES = slot::BYTES,
        FIT = EXPERTS_FEW_RING / BYTES,
        SLOTS = (int)FIT < (int)FEW_AHEAD_MAX ? (int)FIT : (int)FEW_AHEAD_MAX
    };
    static_assert((int)SLOTS > 1 && BYTES % 16 == 0, "a chunk is copied while others are used");
};

/* The next chunk, if there is one; either way a group of copies ends. */
template <class R, int NT>
static __device__ inline void expert_copy(const expert_jobs &j, expert_walk &s, int chunks,
                                          int step, shared_place slots)
{
    typedef expert_room<R, NT> room;
    if (s.job < j.jobs) {
        room::slot::copy(j, s, slots + s.put);
        s.put = few_after<room::SLOTS * room::BYTES, room::BYTES>(s.put);
        if (++s.chunk == chunks) {
            s.chunk = 0;
            s.job += step;
            walk_begin(j, s, step);
        }
    }
    copies_group();
}

/* Results of half a tile, from row `row` on: of rows of x [begin, end) of a job's. */
template <int NT>
static __device__ inline void expert_put(const expert_jobs &j, const expert_pair &p, uint32_t of,
                                         int row, int begin, int end, const float (*sum)[4],
                                         int half)
{
    const float *bias =
        j.bias ? (const float *)(j.bias + (int64_t)bundle_expert(of) * j.bias_pitch) + row : NULL;
    const float more = bias && row < j.w_rows ? *bias : 0;
    UNROLL
    for (int i = 0; i < NT * 2; i++) {
        const int x = i / 2 * FEW_N + lane_index() % 4 * 2 + i % 2;
        const float all = sum[i / 2][half * 2 + i % 2];
        if (x < begin || x >= end || row >= j.w_rows)
            continue;
        ((float *)(j.out + (int64_t)choice_at(j, bundle_first(p.a) + x) * j.out_pitch))[row] =
            bias ? all + more : all;
    }
}

/* What the warp has of all. NT: eights of rows that bundles may have. */
template <class R, int NT> static __device__ FEW_COPY void expert_stream(const expert_jobs j)
{
    typedef expert_room<R, NT> room;
    typedef typename room::slot slot;
    const int step = warp_count() < FEW_WARPS ? warp_count() : (int)FEW_WARPS;
    const int chunks = (j.n + slot::COLS - 1) / slot::COLS, warp = few_warp();
    const shared_place slots =
        shared_at(j.scratch) + (unsigned)(warp % FEW_WARPS) * (unsigned)EXPERTS_FEW_RING;
    expert_walk s = {};
    s.job = warp < step ? warp : j.jobs;
    walk_ask(j, s, s.job);
    walk_begin(j, s, step);
    expert_pair p = s.next;
    float sum[slot::OF][NT][4] = {};
    uint32_t get = 0;
    int ahead = 1 - room::SLOTS, c = 0; /* the chunk, after as many as are copied ahead */
    UNROLLED(1)
    for (int job = s.job; job < j.jobs;) {
        expert_copy<R, NT>(j, s, chunks, step, slots);
        if (ahead++ < 0)
            continue;
        if (c == 0)
            p = pair_at(j, job);
        const int a = bundle_count(p.a), count = a + bundle_count(p.b), first = tile_at(j, job);
        copies_wait<room::SLOTS - 1>();
        __syncwarp(); /* all have theirs */
        if (NT == 1 || count <= FEW_N)
            slot::template products<1>(j, slots + get, j.col + first, c, sum);
        else
            slot::template products<NT>(j, slots + get, j.col + first, c, sum);
        __syncwarp(); /* and have used it */
        get = few_after<room::SLOTS * room::BYTES, room::BYTES>(get);
        if (++c < chunks)
            continue;
        const int row = first + lane_index() / 4;
        UNROLL
        for (int i = NT * 4; i < slot::OF * NT * 4; i++)
            sum[0][i / 4 % NT][i % 4] += sum[i / (NT * 4)][i / 4 % NT][i % 4];
        expert_put<NT>(j, p, p.a, row, 0, a, sum[0], 0);
        if (j.pairs)
            expert_put<NT>(j, p, p.b, row, a, count, sum[0], 1);
        else
            expert_put<NT>(j, p, p.a, row + HALF, 0, a, sum[0], 1);
        UNROLL
        for (int i = 0; i < slot::OF * NT * 4; i++)
            sum[i / (NT * 4)][i / 4 % NT][i % 4] = 0;
        c = 0;
        job += step;
    }
    copies_wait<0>();
}

/* ---- the kernels ---- */

template <class R> static __device__ inline bool expert_streams(const kargs *k, const kthread *t)
{
    const int64_t n = k->size.experts.in;
    return is_shared(t->scratch) && copies_from(k->in[0]) && at_16(k->in[0]) &&
           k->pitch[0] % 16 == 0 && (R::ANY || (k->pitch[1] % 16 == 0 && n % R::COLS == 0)) &&
           k->size.experts.experts <= BUNDLE_EXPERTS_MAX &&
           k->size.experts.rows * k->size.experts.slots <= BUNDLE_CHOICES_MAX;
}

template <class R>
static __device__ inline void experts_few(const kargs *k, const kthread *t, int64_t begin,
                                          int64_t end)
{
    const kpart part = kpart_of(k, k->size.experts.out, begin, end);
    const int64_t slots = k->size.experts.slots, first = part.row * slots;
    const int experts = (int)k->size.experts.experts, n = (int)((part.row_end - part.row) * slots);
    const int each = (int)least(cuda_experts_few_each(k->size.experts.rows), R::ROWS_MAX);
    const bool pairs = part.col_end - part.col <= HALF;
    const expert_list l =
        expert_list_at((char *)t->scratch, experts, (int)cuda_experts_few_bundles(k));
    const expert_ids s = {
        (const uint8_t *const *)k->in[1], (const int32_t *)k->in[2] + first, n, experts,
        pairs ? each / 2 : each,          pairs ? FEW_N / 2 : (int)FEW_N};
    expert_bundles made = {};
    if (expert_streams<R>(k, t))
        made = expert_list_make((char *)t->scratch, l, s);
    if (made.n == 0) {
        experts_plain<R::ACT>(k, part);
        return;
    }
    expert_jobs j;
    j.share = (int)expert_share(k);
    j.x = (const char *)row_in(k, 0, first / j.share);
    j.out = (char *)(row_out(k, 0, first) + part.col);
    j.table = s.table;
    j.bias = k->in[3] ? (const char *)((const float *)k->in[3] + part.col) : NULL;
    j.scratch = (char *)t->scratch;
    j.bundle = shared_at(l.bundle);
    j.choice = shared_at(l.choice);
    j.x_pitch = (int)k->pitch[0];
    j.w_pitch = (int)k->pitch[1];
    j.out_pitch = (int)k->out_pitch[0];
    j.bias_pitch = (int)k->pitch[3];
    j.col = (int)part.col;
    j.w_rows = (int)(part.col_end - part.col);
    j.n = (int)k->size.experts.in;
    j.tiles = (j.w_rows + FEW_TILE - 1) / FEW_TILE;
    j.bundles = made.n;
    j.pairs = pairs;
    j.jobs = pairs ? (made.n + 1) / 2 : j.tiles * made.n;
    if constexpr ((int)R::ROWS_MAX > FEW_N)
        if (made.large) {
            expert_stream<R, 2>(j);
            return;
        }
    expert_stream<R, 1>(j);
}

#define EXPERTS_FEW(type, R)                                                                       \
    static __device__ ONE_COPY void k_experts_##type##_few_cuda(const kargs *k, const kthread *t,  \
                                                                int64_t begin, int64_t end)        \
    {                                                                                              \
        experts_few<R>(k, t, begin, end);                                                          \
    }
EXPERTS_FEW(Q4_K, expert_even<few_Q4_K>)
EXPERTS_FEW(Q5_K, expert_even<few_Q5_K>)
EXPERTS_FEW(Q6_K, expert_Q6_K)
EXPERTS_FEW(MXFP4, expert_MXFP4)
#undef EXPERTS_FEW

/* Rows of whole chunks, and others. */
#define EXPERTS_FEW(type)                                                                          \
    static __device__ ONE_COPY void k_experts_##type##_few_cuda(const kargs *k, const kthread *t,  \
                                                                int64_t begin, int64_t end)        \
    {                                                                                              \
        if (k->pitch[1] % 16 == 0 && k->size.experts.in % few_##type::COLS == 0)                   \
            experts_few<expert_even<few_##type>>(k, t, begin, end);                                \
        else                                                                                       \
            experts_few<expert_##type>(k, t, begin, end);                                          \
    }
EXPERTS_FEW(Q8_0)
EXPERTS_FEW(Q4_0)
#undef EXPERTS_FEW

#endif
