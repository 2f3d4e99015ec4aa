/* linear_few_cuda.cuh - 2 to FEW_ROWS_MAX rows of x times w transposed: weights stream through shared memory once, and matrix
 * instructions multiply them with all rows.
 *
 * A tile is FEW_TILE rows of weights, a group some tiles. Warps share out the columns of a group, a chunk of them at a time. A
 * warp copies what it multiplies into memory of its own, ahead of use and as stored: chunks of x, and with each the chunks of
 * the group's tiles. It waits for nobody but itself until its columns are done; then sums of the warps meet in scratch, in
 * the order of the warps, while the chunks of the next group are on their way. x is so read once for each group, by one warp.
 *
 * Products of a tile take x from registers, where it is made what instructions want: as BF16 weights keep activations exact,
 * each is three bf16 (act.h, ACT_BF3); other types have it in 8 bits, and blocks of 32, 16 or 256 columns are whole numbers until
 * a scale comes. What x costs, from L2 and in instructions, is shared by the tiles of a group: so groups are as large as
 * registers allow.
 *
 * There is one copy of all this for a type and a number of instructions, whatever the sizes: linears of a layer are over in
 * microseconds, and code that is not at hand takes longer than their weights. What these cannot be given is few_plain's. */
#ifndef WEFT_KERNELS_CUDA_LINEAR_FEW_CUDA_CUH
#define WEFT_KERNELS_CUDA_LINEAR_FEW_CUDA_CUH

#include "kernels/cuda/few_types_cuda.cuh"
#include "kernels/cuda/linear_cuda.cuh"

/* In images for a plan too: not a copy for each call. */
#ifdef __CUDACC__
#define FEW_COPY __noinline__
#else
#define FEW_COPY
#endif

/* Some rows of x times some rows of weights; given in registers. */
struct few_job {
    const char *x, *w; /* the first rows */
    const float *bias; /* of these weights, or NULL */
    float *out;        /* of that row, for these weights */
    char *scratch;
    int x_pitch, w_pitch, out_pitch; /* bytes */
    int rows, w_rows;
    int n; /* columns */
};

/* ---- copies of a warp ---- */

/* Chunks that a warp has room for. */
struct few_room {
    int x, w;
};

/* Each step ends a group of copies, into the slot of the weights that it multiplied. Its next weights are there when all but the
 * last w - 1 groups of weights are done. A chunk of x is copied x chunks ahead: where it is kept in registers when the chunk
 * before is in them, as a group of its own, and elsewhere by the last step of a chunk, in the group of that step. So many
 * groups of weights may be under way when it is needed. */
template <class R> static __device__ inline int few_x_ahead(int x, int tiles)
{
    return R::KEEPS ? x * tiles : (x - 1) * tiles;
}

/* As many groups under way as can be, where x is waited for. `visits`: chunks of x of the whole walk, which may all fit. */
template <class R, int NT> static __device__ inline few_room few_room_of(int tiles, int visits)
{
    enum { X = few_x_size<R, NT>::BYTES, W = FEW_TILE * R::PITCH, X_MAX = 5 };
    static_assert(X + 2 * W <= FEW_RING_BYTES, "a chunk is copied while another one is used");
    few_room best = {1, 0};
    int most = -1;
    UNROLL
    for (int x = 1; x <= X_MAX; x++) {
        const int fit = (FEW_RING_BYTES - x * X) / W;
        const int w = fit < FEW_AHEAD_MAX ? fit : (int)FEW_AHEAD_MAX;
        const int ahead = x >= visits ? (int)FEW_AHEAD_MAX : few_x_ahead<R>(x, tiles);
        const int under_way = ahead < w - 1 ? ahead : w - 1;
        if (w >= 2 && under_way > most) {
            most = under_way;
            best = few_room{x, w};
        }
    }
    return best;
}

/* What a warp copies next. */
struct few_walk {
    int chunks, tiles; /* of the warp in a row; of all weights */
    int group_max;     /* tiles of a group */
    int chunk_0, step; /* its first chunk, and from one to the next */
    /* Weights: chunks left, the group's first tile and how many it has, which of them, and of which columns; then its place. */
    int left, group, group_n, tile, chunk, put;
    /* x: chunks left, of which columns, its place. */
    int x_left, x_chunk, x_put;
};

template <class R> static __device__ inline few_walk few_walk_of(const few_job &j, int group_max)
{
    const int warps = warp_count() < FEW_WARPS ? warp_count() : (int)FEW_WARPS;
    const int all = (j.n + R::COLS - 1) / R::COLS - warp_index();
    few_walk s = {};
    s.tiles = (j.w_rows + FEW_TILE - 1) / FEW_TILE;
    s.chunks = warp_index() < warps && all > 0 ? (all + warps - 1) / warps : 0;
    s.group_max = s.group_n = s.tiles < group_max ? s.tiles : group_max;
    s.chunk = s.x_chunk = s.chunk_0 = warp_index();
    s.step = warps;
    s.left = s.chunks * s.tiles;
    s.x_left = s.chunks * ((s.tiles + group_max - 1) / group_max);
    return s;
}

/* The next chunk of columns; after the last one the first. */
static __device__ inline int few_chunk_after(const few_walk &s, int chunk)
{
    chunk += s.step;
    return chunk < s.chunk_0 + s.chunks * s.step ? chunk : s.chunk_0;
}

/* The next chunk of weights, if there is one; either way a group of copies ends. A lane has pieces of two rows, lanes of four one
 * after the other; rows that are not there are zeros. */
template <class R>
static __device__ inline void few_copy_w(const few_job &j, few_walk &s, shared_place slots, int n)
{
    enum { WHOLE = R::PARTS == 0 && R::BYTES % 16 == 0 }; /* chunks are, of any row */
    if (s.left > 0) {
        const int row = lane_index() / 4, p = lane_index() % 4;
        const int at = (s.group + s.tile) * FEW_TILE, rows = j.w_rows - at;
        const int begin = s.chunk * R::BYTES & ~15;
        const int row_bytes = R::PARTS > 0 ? j.n * 2 : (int)((unsigned)j.n / R::COLS * R::BYTES);
        const int bytes = row_bytes - begin - p * 16;
        const char *up = j.w + (int64_t)(at + row) * j.w_pitch + (begin + p * 16);
        const char *low = up + 8 * j.w_pitch;
        const shared_place to = slots + (unsigned)(s.put * FEW_TILE * R::PITCH);
        UNROLL
        for (int piece = 0; piece < R::PIECES; piece += 4) {
            const bool there = WHOLE || piece * 16 < bytes;
            if (piece + 4 <= R::PIECES || piece + p < R::PIECES) {
                few_copy(to + (unsigned)R::place(row, piece + p), up + piece * 16,
                         there && row < rows);
                few_copy(to + (unsigned)R::place(row + 8, piece + p), low + piece * 16,
                         there && row + 8 < rows);
            }
        }
        s.left--;
        s.put = s.put + 1 == n ? 0 : s.put + 1;
        if (++s.tile == s.group_n) {
            s.tile = 0;
            s.chunk = few_chunk_after(s, s.chunk);
            if (s.chunk == s.chunk_0) {
                s.group += s.group_n;
                s.group_n = s.tiles - s.group < s.group_max ? s.tiles - s.group : s.group_max;
            }
        }
    }
    copies_group();
}

/* The next chunk of x, if there is one: rows of FEW_X_BYTES, zeros where there are none, and what types have beside them. */
template <class R, int NT>
static __device__ inline void few_copy_x(const few_job &j, few_walk &s, shared_place slots, int n)
{
    typedef few_x_size<R, NT> size;
    if (s.x_left <= 0)
        return;
    const int row = lane_index() / 16, piece = lane_index() % 16;
    const int begin = s.x_chunk * FEW_X_BYTES + piece * 16;
    const shared_place to = slots + (unsigned)(s.x_put * size::BYTES);
    const bool cols = R::PARTS == 0 || begin < j.n * 4;
    const char *from = j.x + (int64_t)row * j.x_pitch + begin;
    UNROLLED(4)
    for (int r = row; r < NT * FEW_N; r += 2, from += 2 * (int64_t)j.x_pitch)
        few_copy(to + (unsigned)(r * size::PITCH + ((piece ^ R::x_turn(r)) << 4)), from,
                 cols && r < j.rows);
    if (R::PARTS == 0) {
        /* 32 bytes of each row: scales of 32 columns, or sums of 16; then scales of 256. */
        const int d = (int)((unsigned)(j.n + ACT_ALIGN - 1) & ~(ACT_ALIGN - 1u));
        const int sums = (j.n / 256 * 4 + ACT_ALIGN - 1) & ~(ACT_ALIGN - 1);
        const int side = (R::X_BLOCK == 256 ? d + sums : d) + s.x_chunk * 32;
        UNROLLED(1)
        for (int i = lane_index(); i < NT * FEW_N * 2; i += WARP)
            few_copy(to + (unsigned)(size::SIDE + i * 16),
                     j.x + (int64_t)(i / 2) * j.x_pitch + side + i % 2 * 16, i / 2 < j.rows);
        if (R::X_BLOCK == 256 && lane_index() < NT * FEW_N)
            few_copy_4(to + (unsigned)(size::D + lane_index() * 4),
                       j.x + (int64_t)lane_index() * j.x_pitch + d + s.x_chunk * 4,
                       lane_index() < j.rows);
    }
    s.x_left--;
    s.x_put = s.x_put + 1 == n ? 0 : s.x_put + 1;
    s.x_chunk = few_chunk_after(s, s.x_chunk);
}

/* Until all groups of copies but the last `left` are done, or more are. */
static __device__ inline void few_wait(int left)
{
    if (left >= 7)
        copies_wait<7>();
    else if (left == 6)
        copies_wait<6>();
    else if (left == 5)
        copies_wait<5>();
    else if (left == 4)
        copies_wait<4>();
    else if (left == 3)
        copies_wait<3>();
    else if (left == 2)
        copies_wait<2>();
    else if (left == 1)
        copies_wait<1>();
    else
        copies_wait<0>();
}

/* ---- sums ---- */

/* A lane's sums of a tile for all: [tile][warp][x row][weight row]. */
template <int NT>
static __device__ inline void few_sums_put(shared_place sums, int tile, const float (*sum)[4])
{
    const int at = (tile * FEW_WARPS + warp_index()) * NT * FEW_N + lane_index() % 4 * 2;
    const shared_place to = sums + (unsigned)(at * FEW_SUM_PITCH + lane_index() / 4) * 4;
    UNROLL
    for (int t = 0; t < NT; t++)
        UNROLL
    for (int e = 0; e < 4; e++)
        few_put(to + (unsigned)((t * FEW_N + e % 2) * FEW_SUM_PITCH + e / 2 * 8) * 4, sum[t][e]);
}

/* Results of n tiles from the sums of all warps. */
template <int NT>
static __device__ inline void few_sums_out(const few_job &j, shared_place sums, int first, int n)
{
    enum { ROWS = NT * FEW_N };
    const int warps = warp_count() < FEW_WARPS ? warp_count() : (int)FEW_WARPS;
    UNROLLED(1)
    for (int i = (int)threadIdx.x; i < n * ROWS * FEW_TILE; i += block_threads()) {
        const int row = i % FEW_TILE, x = i / FEW_TILE % ROWS, tile = i / (FEW_TILE * ROWS);
        const int at = (first + tile) * FEW_TILE + row;
        if (at >= j.w_rows || x >= j.rows)
            continue;
        const shared_place from =
            sums + (unsigned)((tile * FEW_WARPS * ROWS + x) * FEW_SUM_PITCH + row) * 4;
        float all = 0;
        UNROLLED(8)
        for (int w = 0; w < warps; w++)
            all += float_of(shared_4(from + (unsigned)(w * ROWS * FEW_SUM_PITCH) * 4));
        *(float *)((char *)(j.out + at) + (int64_t)x * j.out_pitch) =
            j.bias ? all + j.bias[at] : all;
    }
}

/* ---- tiles ---- */

/* The first tile's sums to the end, so that those of the next are the first: sums are in registers, which have no index. */
template <int TILES, int NT> static __device__ inline void few_turn(float (*sum)[NT][4])
{
    UNROLL
    for (int i = 0; i < NT * 4; i++) {
        const float first = sum[0][i / 4][i % 4];
        UNROLL
        for (int t = 1; t < TILES; t++)
            sum[t - 1][i / 4][i % 4] = sum[t][i / 4][i % 4];
        sum[TILES - 1][i / 4][i % 4] = first;
    }
}

/* Products of a chunk, for tile t of a group; its sums are the first ones if there is not a copy for each. */
template <class R, int NT, int TILES>
static __device__ inline void few_multiply(shared_place slot, const few_x<R, NT> &x, uint32_t skew,
                                           int t, float (*sum)[NT][4])
{
    UNROLL
    for (int i = 0; i < (R::EACH ? TILES : 1); i++)
        if (!R::EACH || t == i)
            R::template products<NT>(slot, x, skew, sum[i]);
    if (!R::EACH)
        few_turn<TILES, NT>(sum);
}

template <class R, int NT> static __device__ FEW_COPY void few_stream(const few_job j)
{
    enum {
        TILES = NT == FEW_N_MAX ? (int)R::TILES : 4, /* of a group */
        MEET = FEW_N_MAX / NT,                       /* tiles whose sums there is room for */
        X = few_x_size<R, NT>::BYTES,
        W = FEW_TILE * R::PITCH
    };
    few_walk s = few_walk_of<R>(j, TILES);
    const few_room room = few_room_of<R, NT>(s.group_max, s.x_left);
    const bool all_x = s.x_left <= room.x;
    const shared_place sums = shared_at(j.scratch);
    const shared_place x_slots =
        sums + FEW_SUM_BYTES + (unsigned)(warp_index() % FEW_WARPS) * FEW_RING_BYTES;
    const shared_place w_slots = x_slots + (unsigned)(room.x * X);
    int get = 0, x_get = 0;
    UNROLLED(1)
    for (int i = 0; i < room.x; i++)
        few_copy_x<R, NT>(j, s, x_slots, room.x);
    UNROLLED(1)
    for (int i = 0, t = 0; i < room.w; i++, t = t + 1 == s.group_max ? 0 : t + 1) {
        if (R::KEEPS && t == 0)
            copies_group(); /* as if it were a chunk's first step: of so many groups there is one more */
        few_copy_w<R>(j, s, w_slots, room.w);
    }
    const int w_ahead = room.w - 1 + (R::KEEPS ? (room.w - 1) / s.group_max : 0);
    few_wait(w_ahead);
    __syncwarp();
    UNROLLED(1)
    for (int group = 0; group < s.tiles; group += TILES) {
        const int here = s.tiles - group < TILES ? s.tiles - group : (int)TILES;
        const int x_ahead = few_x_ahead<R>(room.x, here) + (R::KEEPS ? room.x - 1 : 0);
        const int last = all_x || w_ahead < x_ahead ? w_ahead : x_ahead;
        float sum[TILES][NT][4] = {};
        UNROLLED(1)
        for (int c = 0; c < s.chunks; c++) {
            const uint32_t skew = (uint32_t)((s.chunk_0 + c * s.step) * R::BYTES & 15);
            few_x<R, NT> x;
            x.load(x_slots + (unsigned)(x_get * X));
            x_get = x_get + 1 == room.x ? 0 : x_get + 1;
            if (R::KEEPS) {
                __syncwarp(); /* all have it */
                few_copy_x<R, NT>(j, s, x_slots, room.x);
                copies_group();
            }
            UNROLLED(1)
            for (int t = 0; t < here; t++) {
                few_multiply<R, NT, TILES>(w_slots + (unsigned)(get * W), x, skew, t, sum);
                get = get + 1 == room.w ? 0 : get + 1;
                __syncwarp();
                if (!R::KEEPS && t + 1 == here)
                    few_copy_x<R, NT>(j, s, x_slots, room.x);
                few_copy_w<R>(j, s, w_slots, room.w);
                few_wait(t + 1 == here ? last : w_ahead);
                __syncwarp();
            }
            UNROLLED(1)
            for (int t = R::EACH ? (int)TILES : here; t < TILES; t++)
                few_turn<TILES, NT>(sum);
        }
        UNROLLED(1)
        for (int t = 0; t < here; t++) {
            UNROLL
            for (int i = 0; i < TILES; i++)
                if (t == i && warp_index() < FEW_WARPS)
                    few_sums_put<NT>(sums, t % MEET, sum[i]);
            if (t % MEET + 1 < MEET && t + 1 < here)
                continue;
            block_sync();
            few_sums_out<NT>(j, sums, group + t / MEET * MEET, t % MEET + 1);
            block_sync(); /* sums have been read */
        }
    }
    copies_wait<0>();
}

/* Whatever cannot be streamed: as floats, row by row. */
template <class R> static __device__ FEW_COPY void few_plain(const few_job j)
{
    const kact act = (kact)R::ACT;
    enum { ROWS = (kact)R::ACT == ACT_F32 ? (int)FEW_X : 1 };
    const dot_weights w = {(const uint8_t *)j.w, j.w_pitch, j.bias, 0, j.w_rows, j.n,
                           (dtype)R::TYPE};
    float *x = (float *)j.scratch;
    for (int row = 0; row < j.rows; row += ROWS) {
        few_rows r;
        r.n = j.rows - row < ROWS ? j.rows - row : (int)ROWS;
        for (int i = 0; i < FEW_X; i++) {
            const int at = row + (i < r.n ? i : 0);
            r.x[i] = (const float *)(j.x + (int64_t)at * j.x_pitch);
            r.out[i] = (float *)((char *)j.out + (int64_t)at * j.out_pitch);
        }
        if (ROWS == 1) {
            const void *from = r.x[0];
            const int64_t b = act_block(act);
            block_sync(); /* the row before has been used */
            for (int64_t i = threadIdx.x; i < j.n; i += block_threads())
                x[i] = act_d_of(act, from, j.n)[i / b] * (float)act_q(from)[i];
            block_sync();
            r.x[0] = x;
        }
        few_dots<typename R::weight, ROWS, ROWS == 1>(w, r);
    }
}

/* ---- the kernels ---- */

/* Are rows whole pieces of 16 bytes, in order? */
template <class R> static __device__ inline bool few_streams(const few_job &j)
{
    return is_shared(j.scratch) && few_copies_from(j.x) && at_16(j.x) && j.x_pitch % 16 == 0 &&
           at_16(j.w) && j.w_pitch % 16 == 0 &&
           j.n % (R::PARTS > 0 ? (int)EIGHT : (int)R::COLS) == 0;
}

template <class R>
static __device__ inline void linear_few(const kargs *k, const kthread *t, int64_t begin,
                                         int64_t end)
{
    const kpart part = kpart_of(k, k->size.linear.out, begin, end);
    const int instructions = (int)few_instructions(k->size.linear.rows);
    few_job j;
    j.w = (const char *)k->in[1] + part.col * k->pitch[1];
    j.bias = k->in[2] ? (const float *)k->in[2] + part.col : NULL;
    j.scratch = (char *)t->scratch;
    j.x_pitch = (int)k->pitch[0];
    j.w_pitch = (int)k->pitch[1];
    j.out_pitch = (int)k->out_pitch[0];
    j.w_rows = (int)(part.col_end - part.col);
    j.n = (int)k->size.linear.in;
    UNROLLED(1)
    for (int row = (int)part.row; row < (int)part.row_end; row += FEW_ROWS_MAX) {
        j.x = (const char *)row_in(k, 0, row);
        j.out = row_out(k, 0, row) + part.col;
        j.rows = (int)least(part.row_end - row, FEW_ROWS_MAX);
        if (!few_streams<R>(j))
            few_plain<R>(j);
        else if (instructions == 1)
            few_stream<R, 1>(j);
        else if (instructions == 2)
            few_stream<R, 2>(j);
        else
            few_stream<R, FEW_N_MAX>(j);
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
