/* linear_few_cuda.cuh - 2 to FEW_ROWS_MAX rows of x times w transposed: weights stream through shared memory once, and matrix
 * instructions multiply them with all rows.
 *
 * A tile is FEW_TILE rows of weights. Warps share out its columns, a chunk of them at a time, and each has a ring of slots
 * of its own into which it copies chunks, as stored, ahead of those that it multiplies; the ring runs on over tiles. Sums of
 * the warps meet in scratch, in the order of the warps.
 *
 * x is brought to shared memory once for all tiles, where it does not fit in panels of columns; results of the panels
 * before are then in the result. As BF16 weights keep activations exact, each is three bf16 there (act.h, ACT_BF3); other
 * types have it in 8 bits, and blocks of 32, 16 or 256 columns are whole numbers until a scale comes. */
#ifndef WEFT_KERNELS_CUDA_LINEAR_FEW_CUDA_CUH
#define WEFT_KERNELS_CUDA_LINEAR_FEW_CUDA_CUH

#include "kernels/cuda/few_types_cuda.cuh"
#include "kernels/cuda/linear_cuda.cuh"

/* ---- x ---- */

/* Bytes of a panel of so many columns, for that many instructions. */
template <class R> static __device__ inline int few_panel_size(int cols, int instructions)
{
    const int rows = instructions * FEW_N;
    if (R::PARTS > 0)
        return R::PARTS * rows * (2 * cols + R::X_PAD);
    return rows *
           (cols + R::X_PAD + cols / R::X_BLOCK * 4 + ((kact)R::ACT == ACT_Q8K ? cols / 16 : 0));
}

/* Panels of equal width, as wide as fits: whole chunks for all warps, if there is more than one. */
template <class R>
static __device__ inline few_panel few_panel_of(char *at, int n, int row, int rows,
                                                int instructions)
{
    const int step = R::COLS * FEW_WARPS, all = (n + R::COLS - 1) / R::COLS * R::COLS;
    const int bytes = (int)few_panel_bytes(R::PARTS > 0);
    int most = step;
    while (few_panel_size<R>(most + step, instructions) <= bytes)
        most += step;
    few_panel p;
    const int panels = (all + most - 1) / most;
    p.room = panels == 1 ? all : ((all + panels - 1) / panels + step - 1) / step * step;
    p.cols = 0;
    p.row = row;
    p.rows = rows;
    p.pitch = (R::PARTS > 0 ? 2 : 1) * p.room + R::X_PAD;
    p.plane = instructions * FEW_N * p.pitch;
    p.x = at;
    p.d = at + p.plane;
    p.sum = p.d + p.room / R::X_BLOCK * instructions * FEW_N * 4;
    return p;
}

/* Two numbers to bf16. */
#ifdef __CUDACC__
static __device__ inline uint32_t few_pair(float low, float high)
{
    uint32_t both;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
    return both;
}
#else
static inline uint32_t few_pair(float low, float high)
{
    return to_bf16(low) | (uint32_t)to_bf16(high) << 16;
}
#endif

/* What is left of x without its bf16, 0 where that is no number. */
static __device__ inline float few_rest(float x, uint32_t high_half)
{
    x -= float_of(high_half & 0xffff0000u);
    return is_finite(x) ? x : 0;
}

/* Four numbers, each as the sum of three bf16, to as many planes. */
static __device__ inline void few_put_split(const bytes16 &four, char *to, int plane)
{
    float x[4];
    UNROLL
    for (int e = 0; e < 4; e++)
        x[e] = float_of(four.w[e]);
    UNROLL
    for (int i = 0; i < 3; i++) {
        bytes8 h = {{few_pair(x[0], x[1]), few_pair(x[2], x[3])}};
        *(bytes8 *)(to + i * plane) = h;
        UNROLL
        for (int e = 0; e < 4; e++)
            x[e] = few_rest(x[e], e % 2 ? h.w[e / 2] : h.w[e / 2] << 16);
    }
}

/* Columns [c, c + 4) of a row of x; 0 where there are none. */
static __device__ inline bytes16 few_four(const kargs *k, const few_panel &p, int row, int c, int n)
{
    bytes16 four = {};
    if (row >= p.rows || c >= n)
        return four;
    const float *x = row_in(k, 0, p.row + row) + c;
    if (c + 4 <= n && at_16(x))
        return *(const bytes16 *)x;
    for (int e = 0; e < 4 && c + e < n; e++)
        four.w[e] = bits_of(x[e]);
    return four;
}

/* Several loads are under way before the first is used. */
static __device__ inline void few_read_floats(const kargs *k, const few_panel &p, int rows_all,
                                              int first, int n)
{
    enum { BATCH = 8 };
    const int quads = p.cols / 4, all = rows_all * quads, step = block_threads();
    for (int i = (int)threadIdx.x; i < all; i += BATCH * step) {
        bytes16 four[BATCH];
        UNROLL
        for (int b = 0; b < BATCH; b++) {
            const int at = i + b * step;
            four[b] = few_four(k, p, at < all ? at / quads : p.rows, first + at % quads * 4, n);
        }
        UNROLL
        for (int b = 0; b < BATCH; b++) {
            const int at = i + b * step;
            if (at < all)
                few_put_split(four[b], p.x + at / quads * p.pitch + at % quads * 8, p.plane);
        }
    }
}

/* Rows of 8 bits; n is a multiple of chunks. Codes are copied as a group; scales and sums are here. */
template <class R>
static __device__ inline void few_copy_codes(const kargs *k, const few_panel &p, int rows_all,
                                             int first)
{
    const int pieces = p.cols / 16;
    for (int i = (int)threadIdx.x; i < rows_all * pieces; i += block_threads()) {
        const int row = i / pieces, c = i % pieces * 16;
        const bool there = row < p.rows;
        copy_piece(p.x + row * p.pitch + c,
                   (const char *)row_in(k, 0, there ? p.row + row : p.row) + first + c, there);
    }
}

template <class R>
static __device__ inline void few_read_scales(const kargs *k, const few_panel &p, int rows_all,
                                              int first, int n)
{
    enum { EVERY = R::X_BLOCK / 32 };
    const kact act = (kact)R::ACT;
    const int runs = p.cols / 32;
    for (int i = (int)threadIdx.x; i < rows_all * runs; i += block_threads()) {
        const int row = i / runs, b = i % runs;
        const void *from = row_in(k, 0, row < p.rows ? p.row + row : p.row);
        const float d = act_d_of(act, from, n)[(first / 32 + b) / EVERY];
        if (EVERY > 1) {
            const int16_t *sum = act_sum(act, from, n) + first / 16 + 2 * b;
            const int all = row < p.rows ? sum[0] + sum[1] : 0;
            char *to = p.sum + (b / 8 * rows_all + row) * 16 + b % 8;
            to[0] = (char)few_sum_low(all);
            to[8] = (char)few_sum_high(all);
        }
        if (b % EVERY == 0)
            ((float *)p.d)[b / EVERY * rows_all + row] = row < p.rows ? d : 0;
    }
}

/* Columns [first, first + room) of x, as many as there are: begun, and then there for all threads. LATER: groups of copies that
 * began since. */
template <class R>
static __device__ inline void few_read_begin(const kargs *k, few_panel &p, int rows_all, int first,
                                             int n)
{
    const int left = (n - first + R::COLS - 1) / R::COLS * R::COLS;
    p.cols = left < p.room ? left : p.room;
    if (R::PARTS > 0)
        return;
    few_copy_codes<R>(k, p, rows_all, first);
    copies_group();
}

template <class R, int LATER>
static __device__ inline void few_read_end(const kargs *k, const few_panel &p, int rows_all,
                                           int first, int n)
{
    if (R::PARTS > 0) {
        few_read_floats(k, p, rows_all, first, n);
    } else {
        few_read_scales<R>(k, p, rows_all, first, n);
        copies_wait<LATER>();
    }
    __syncthreads();
}

#ifndef __CUDACC__
static inline float few_x(const few_panel &p, int parts, int block, int rows_all, int n, int c)
{
    float x = 0;
    if (parts == 0)
        return ((const float *)p.d)[c / block * rows_all + n] * (float)(int8_t)p.x[n * p.pitch + c];
    for (int i = parts; i-- > 0;)
        x += from_bf16(*(const uint16_t *)(p.x + i * p.plane + n * p.pitch + c * 2));
    return x;
}
#endif

/* Adds the products of a chunk to a lane's sums. */
template <class R, int NT>
static __device__ inline void few_products(const char *slot, const few_panel &p, int col, int skew,
                                           float (*sum)[4])
{
#ifdef __CUDACC__
    R::template products<NT>(slot, p, col, skew, sum);
#else
    for (int half = 0; half < 2; half++)
        for (int c = 0; c < R::COLS; c += EIGHT) {
            float w[EIGHT];
            R::eight(slot, lane_index() / 4 + half * 8, c, skew, w);
            for (int i = 0; i < 2 * NT; i++) {
                int n = i / 2 * FEW_N + lane_index() % 4 * 2 + i % 2;
                for (int e = 0; n < p.rows && e < EIGHT; e++)
                    sum[i / 2][half * 2 + i % 2] +=
                        w[e] * few_x(p, R::PARTS, R::X_BLOCK, NT * FEW_N, n, col + c + e);
            }
        }
#endif
}

/* ---- the walk of a warp: panels, their tiles, of each every so many chunks ---- */

struct few_walk {
    const char *from; /* a lane's first piece of the next chunk, in the first of its two rows */
    int64_t down;     /* bytes to the other one */
    int byte;         /* of the row, where that chunk begins */
    int left;         /* chunks of the warp in the tile at hand; 0: there are no more at all */
    int first, tile;  /* the panel and the tile at hand */
    const uint8_t *w; /* row 0 of the tiles */
    int64_t pitch;
    int row_bytes;
    int rows, tiles; /* of weights */
    int n, room;     /* columns of a row, of a panel */
    int warp, warps;
};

/* Chunks of the panel from column `first` on. */
template <class R> static __device__ inline int few_chunks(int n, int room, int first)
{
    const int cols = n - first < room ? n - first : room;
    return (cols + R::COLS - 1) / R::COLS;
}

/* Where a chunk begins in a row, in bytes. */
template <class R> static __device__ inline int few_byte_of(int col)
{
    return col / R::COLS * R::BYTES;
}

/* The tile at hand, or the next one in which the warp has chunks. A lane whose rows are not there reads the last one that is:
 * nobody looks at its sums. */
template <class R> static __device__ inline void few_walk_tile(few_walk &s)
{
    const int row = lane_index() / 4;
    for (s.left = 0; s.first < s.n; s.tile++) {
        if (s.tile == s.tiles) {
            s.tile = -1;
            s.first += s.room;
            continue;
        }
        const int more = few_chunks<R>(s.n, s.room, s.first) - s.warp;
        if (more <= 0)
            continue;
        const int last = s.rows - s.tile * FEW_TILE - 1;
        const int up = row < last ? row : last, low = row + 8 < last ? row + 8 : last;
        s.left = (more + s.warps - 1) / s.warps;
        s.byte = few_byte_of<R>(s.first + s.warp * R::COLS);
        s.from =
            (const char *)s.w + (int64_t)(s.tile * FEW_TILE + up) * s.pitch + lane_index() % 4 * 16;
        s.down = (low - up) * s.pitch;
        return;
    }
}

/* Copies the next chunk, if there is one; either way a group of copies ends. A lane has pieces of the two rows that it
 * multiplies, lanes of four one after the other. */
template <class R> static __device__ inline void few_walk_copy(few_walk &s, char *slot)
{
    enum { WHOLE = R::PARTS == 0 && R::BYTES % 16 == 0 }; /* chunks are, of any row */
    if (s.left > 0) {
        const int row = lane_index() / 4, j = lane_index() % 4;
        const int begin = s.byte / 16 * 16, bytes = s.row_bytes - begin - j * 16;
        const char *up = s.from + begin, *low = up + s.down;
        UNROLL
        for (int piece = 0; piece < R::PIECES; piece += 4) {
            const bool there = WHOLE || piece * 16 < bytes;
            if (piece + 4 <= R::PIECES || piece + j < R::PIECES) {
                copy_piece(slot + R::place(row, piece + j), up + piece * 16, there);
                copy_piece(slot + R::place(row + 8, piece + j), low + piece * 16, there);
            }
        }
        s.byte += s.warps * R::BYTES;
        if (--s.left == 0) {
            s.tile++;
            few_walk_tile<R>(s);
        }
    }
    copies_group();
}

/* ---- tiles ---- */

struct few_job {
    const kargs *k;
    dot_weights w;
    char *ring, *panel; /* of the warp; of the block */
    float *sums;
    int row, rows; /* of x */
};

/* A lane's sums of a tile for all: [tile][warp][x row][weight row]. */
template <int NT>
static __device__ inline void few_sums_put(const few_job &j, int tile, int warp,
                                           const float (*sum)[4])
{
    float *to = j.sums + (tile * FEW_WARPS + warp) * NT * FEW_N * FEW_SUM_PITCH;
    const int row = lane_index() / 4, n = lane_index() % 4 * 2;
    UNROLL
    for (int t = 0; t < NT; t++)
        UNROLL
    for (int e = 0; e < 4; e++)
        to[(t * FEW_N + n + e % 2) * FEW_SUM_PITCH + row + e / 2 * 8] = sum[t][e];
}

/* Results of some tiles from the sums of all warps, and of the panels before. */
template <int NT>
static __device__ inline void few_sums_out(const few_job &j, int warps, int first, int tiles,
                                           bool more, bool last)
{
    for (int i = (int)threadIdx.x; i < tiles * j.rows * FEW_TILE; i += block_threads()) {
        const int tile = i / FEW_TILE % tiles, n = i / FEW_TILE / tiles, row = i % FEW_TILE;
        const int64_t at = j.w.row + (first + tile) * FEW_TILE + row;
        if (at >= j.w.row_end)
            continue;
        const float *from = j.sums + (tile * FEW_WARPS * NT * FEW_N + n) * FEW_SUM_PITCH + row;
        float *to = row_out(j.k, 0, j.row + n) + at;
        float all = 0;
        UNROLLED(8)
        for (int w = 0; w < warps; w++)
            all += from[w * NT * FEW_N * FEW_SUM_PITCH];
        all = more ? *to + all : all;
        *to = last && j.w.bias ? all + j.w.bias[at] : all;
    }
}

template <class R, int NT> static __device__ ONE_COPY void few_tiles(const few_job &j)
{
    enum {
        SLOTS = R::SLOTS,
        SLOT = FEW_TILE * R::PITCH,
        ROWS = NT * FEW_N,
        TILES = FEW_N_MAX / NT /* whose sums there is room for */
    };
    static_assert(SLOTS >= 2, "a slot is filled while another one is used");
    const int n = (int)j.w.n, warp = warp_index();
    const int warps = warp_count() < FEW_WARPS ? warp_count() : (int)FEW_WARPS;
    few_panel p = few_panel_of<R>(j.panel, n, j.row, j.rows, NT);
    few_walk s;
    s.w = j.w.w + j.w.row * j.w.pitch;
    s.pitch = j.w.pitch;
    s.row_bytes = few_byte_of<R>(n / R::COLS * R::COLS) + n % R::COLS * R::BYTES / R::COLS;
    s.rows = (int)(j.w.row_end - j.w.row);
    s.tiles = (s.rows + FEW_TILE - 1) / FEW_TILE;
    s.n = n;
    s.room = p.room;
    s.warp = warp;
    s.warps = warps;
    s.first = warp < warps ? 0 : n;
    s.tile = 0;
    few_walk_tile<R>(s);
    few_read_begin<R>(j.k, p, ROWS, 0, n);
    for (int i = 0; i < SLOTS; i++)
        few_walk_copy<R>(s, j.ring + i * SLOT);
    few_read_end<R, SLOTS>(j.k, p, ROWS, 0, n);
    int slot = 0;
    for (int first = 0; first < n; first += p.room) {
        if (first > 0) { /* what was there has been used: the last tile's sums have met */
            few_read_begin<R>(j.k, p, ROWS, first, n);
            few_read_end<R, 0>(j.k, p, ROWS, first, n);
        }
        const int chunks = warp < warps ? few_chunks<R>(n, p.room, first) : 0;
        for (int tile = 0; tile < s.tiles; tile++) {
            float sum[NT][4] = {};
            for (int c = warp; c < chunks; c += warps) {
                char *at = j.ring + slot * SLOT;
                copies_wait<SLOTS - 1>();
                __syncwarp();
                few_products<R, NT>(at, p, c * R::COLS, few_byte_of<R>(first + c * R::COLS) % 16,
                                    sum);
                __syncwarp();
                few_walk_copy<R>(s, at);
                slot = slot + 1 == SLOTS ? 0 : slot + 1;
            }
            if (warp < warps)
                few_sums_put<NT>(j, tile % TILES, warp, sum);
            const int ready = tile % TILES + 1;
            if (ready < TILES && tile + 1 < s.tiles)
                continue;
            __syncthreads();
            few_sums_out<NT>(j, warps, tile + 1 - ready, ready, first > 0, first + p.room >= n);
            __syncthreads(); /* sums have been read */
        }
    }
    copies_wait<0>();
}

/* ---- the kernels ---- */

/* Whatever cannot be streamed: as floats, row by row. */
template <class R> static __device__ ONE_COPY void few_plain(const few_job &j, float *x)
{
    const kact act = (kact)R::ACT;
    const int64_t b = act_block(act);
    const int64_t end = j.row + j.rows;
    if (act == ACT_F32)
        few_rows_run(j.k, j.w, j.row, end, 1, 0);
    for (int64_t row = act == ACT_F32 ? end : j.row; row < end; row++) {
        const void *from = row_in(j.k, 0, row);
        __syncthreads(); /* the row before has been used */
        for (int64_t i = threadIdx.x; i < j.w.n; i += block_threads())
            x[i] = act_d_of(act, from, j.w.n)[i / b] * (float)act_q(from)[i];
        __syncthreads();
        few_rows r;
        r.n = 1;
        r.x[0] = x;
        r.out[0] = row_out(j.k, 0, row);
        few_dots_any(j.w, r);
    }
}

/* Are rows of weights whole pieces of 16 bytes, in order? */
template <class R> static __device__ inline bool few_streams(const dot_weights &j, const kthread *t)
{
    return is_shared(t->scratch) && at_16(j.w) && j.pitch % 16 == 0 && j.n < 1 << 24 &&
           j.pitch < 1 << 26 && j.n % (R::PARTS > 0 ? (int)EIGHT : (int)R::COLS) == 0;
}

template <class R>
static __device__ inline void linear_few(const kargs *k, const kthread *t, int64_t begin,
                                         int64_t end)
{
    const kpart part = kpart_of(k, k->size.linear.out, begin, end);
    const int instructions = (int)few_instructions(k->size.linear.rows);
    char *scratch = (char *)t->scratch;
    few_job j = {k, linear_weights(k, part), NULL, scratch, NULL, 0, 0};
    j.sums = (float *)(scratch + few_panel_bytes(R::PARTS > 0));
    j.ring =
        (char *)j.sums + FEW_SUM_BYTES + warp_index() % FEW_WARPS * few_ring_bytes(R::PARTS > 0);
    for (int64_t row = part.row; row < part.row_end; row += FEW_ROWS_MAX) {
        j.row = (int)row;
        j.rows = (int)least(part.row_end - row, FEW_ROWS_MAX);
        if (!few_streams<R>(j.w, t))
            few_plain<R>(j, (float *)scratch);
        else if (instructions == 1)
            few_tiles<R, 1>(j);
        else if (instructions == 2)
            few_tiles<R, 2>(j);
        else
            few_tiles<R, FEW_N_MAX>(j);
    }
}

#define LINEAR_FEW(type)                                                                           \
    static __device__ void k_linear_##type##_few_cuda(const kargs *k, const kthread *t,            \
                                                      int64_t begin, int64_t end)                  \
    {                                                                                              \
        linear_few<few_##type>(k, t, begin, end);                                                  \
    }
LINEAR_FEW(BF16)
LINEAR_FEW(Q8_0)
LINEAR_FEW(Q4_0)
LINEAR_FEW(Q4_K)
LINEAR_FEW(Q5_K)
LINEAR_FEW(Q6_K)
#undef LINEAR_FEW

#endif
