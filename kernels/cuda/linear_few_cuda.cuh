/* linear_few_cuda.cuh - 2 to FEW_ROWS_MAX rows of x times w transposed: weights stream through shared memory once, and matrix
 * instructions multiply them with all rows.
 *
 * A tile is FEW_TILE rows of weights, a group some tiles. Warps share out the columns of a group, a chunk of them at a time. A
 * warp copies what it multiplies into memory of its own, ahead of use and as stored: chunks of x, and with each the chunks of
 * the group's tiles. It waits for nobody but itself until its columns are done; then sums of the warps meet in scratch, in
 * the order of the warps, while the chunks of the next group are on their way. x is so read once for each group, by one warp.
 *
 * Products of a tile take x from registers, in 8 bits: blocks of 32, 16 or 256 columns are whole numbers until a scale comes. What x
 * costs, from L2 and in instructions, is shared by the tiles of a group: so groups are as large as registers allow. With 32 rows
 * there are two passes over a group, each with half of the rows of x: what a function cannot have in registers, in the middle of
 * others that called it, comes from the card's memory each time. BF16 and F16 weights have a walk of their own (few_bf16_cuda.cuh).
 *
 * There is one copy of all this for a type and a number of instructions, whatever the sizes: linears of a layer are over in
 * microseconds, and code that is not at hand takes longer than their weights. What these cannot be given is few_plain's. */
#ifndef WEFT_KERNELS_CUDA_LINEAR_FEW_CUDA_CUH
#define WEFT_KERNELS_CUDA_LINEAR_FEW_CUDA_CUH

#include "kernels/cuda/few_bf16_cuda.cuh"
#include "kernels/cuda/few_types_cuda.cuh"
#include "kernels/cuda/linear_cuda.cuh"

/* ---- copies of a warp ---- */

/* Tiles of a group, and passes over them, with so many instructions. */
template <class R, int NT> struct few_group {
    enum {
        TILES = NT == FEW_N_MAX ? (int)R::TILES : 4,
        PASSES = NT == FEW_N_MAX ? (int)R::PASSES : 1,
        PART = NT / PASSES /* instructions of a pass */
    };
};

/* Chunks that a warp has room for, of x and of weights: as many of both, and what is left for weights. With several passes x of
 * each, and weights of all tiles, which have to be there at once.
 *
 * Each step ends a group of copies, the weights into the slot that it multiplied. Its next weights are there when all but the last
 * W - 1 groups are done. A chunk of x is copied X chunks ahead, in the group of the first step of a chunk where x is kept in
 * registers, and elsewhere in that of its last. */
template <class R, int NT> struct few_room {
    typedef few_group<R, NT> group;
    enum {
        PARTED = (int)group::PASSES != 1,
        X_BYTES = few_x_size<R, group::PART>::BYTES, /* of a pass */
        W_BYTES = FEW_TILE * R::PITCH,
        BOTH = FEW_RING_BYTES / (X_BYTES + W_BYTES),
        X = PARTED ? (int)group::PASSES : (int)BOTH,
        W = (FEW_RING_BYTES - X * X_BYTES) / W_BYTES,
        AT_ONCE = PARTED ? (int)group::TILES : 1
    };
    static_assert((int)X > 0 && (int)W > (int)AT_ONCE && (int)W >= (int)X,
                  "a chunk is copied while others are used");
    static_assert((int)W <= (int)FEW_AHEAD_MAX, "few_wait");
    /* Groups of copies after that of the x of the next chunk, when a chunk of so many tiles ends. */
    static __device__ inline int x_ahead(int tiles)
    {
        return R::KEEPS ? X * tiles - 1 : (X - 1) * tiles;
    }
};

/* What a warp copies next. */
struct few_walk {
    int chunks, tiles; /* of the warp in a row; of all weights */
    int chunk_0, step; /* its first chunk, and from one to the next */
    /* Weights: chunks left; the group's first tile and how many it has; which of them, where that is in the weights, and of which
     * columns; then its place. */
    int left, group, group_n, tile, chunk;
    uint32_t at, put;
    const char *from; /* the lane's first piece */
    /* x: parts of chunks left, of which columns, from which row on, its place, and where places end. */
    int x_left, x_chunk, x_row;
    uint32_t x_put, x_end;
};

/* Lanes copy pieces of some rows that lie one after the other, so that what is between two pieces comes once: ROWS at a time, PIECES of
 * each; a seventeenth piece comes with those of all rows. */
template <class R> struct few_lanes {
    enum {
        PIECES = R::PIECES > 16 ? 16 : (int)R::PIECES,
        ROWS = WARP / PIECES,
        REST = R::PIECES - PIECES,
        TIMES = (FEW_TILE + ROWS - 1) / ROWS
    };
    static_assert(REST <= 1, "one piece is left");
};

template <class R>
static __device__ inline few_walk few_walk_of(const few_job &j, int group_max, int passes)
{
    typedef few_lanes<R> lanes;
    const int warps = warp_count() < FEW_WARPS ? warp_count() : (int)FEW_WARPS;
    const int warp = few_warp();
    const int all = j.n / R::COLS - warp;
    few_walk s = {};
    s.tiles = (j.w_rows + FEW_TILE - 1) / FEW_TILE;
    s.chunks = warp < warps && all > 0 ? (all + warps - 1) / warps : 0;
    s.group_n = s.tiles < group_max ? s.tiles : group_max;
    s.chunk = s.x_chunk = s.chunk_0 = warp;
    s.step = warps;
    s.left = s.chunks * s.tiles;
    s.x_left = s.chunks * ((s.tiles + group_max - 1) / group_max) * passes;
    s.from = j.w + (int64_t)(lane_index() / lanes::PIECES) * j.w_pitch +
             lane_index() % lanes::PIECES * 16;
    return s;
}

/* The next chunk of columns; after the last one the first. */
static __device__ inline int few_chunk_after(const few_walk &s, int chunk)
{
    chunk += s.step;
    return chunk < s.chunk_0 + s.chunks * s.step ? chunk : s.chunk_0;
}

/* The slot after one, of BYTES each, END together. */
template <uint32_t END, uint32_t BYTES> static __device__ inline uint32_t few_after(uint32_t at)
{
    return at + BYTES == END ? 0 : at + BYTES;
}

/* The next chunk of weights, if there is one; either way a group of copies ends. Rows that are not there are left as they are: what
 * they are multiplied to is nobody's. */
template <class R, int W>
static __device__ inline void few_copy_w(const few_job &j, few_walk &s, int group_max,
                                         shared_place slots)
{
    typedef few_lanes<R> lanes;
    enum { WHOLE = R::BYTES % 16 == 0 }; /* chunks are, of any row */
    const int row = lane_index() / lanes::PIECES, p = lane_index() % lanes::PIECES;
    const int begin = s.chunk * R::BYTES & ~15;
    const int rows = s.left > 0 ? j.w_rows - (s.group + s.tile) * FEW_TILE : 0;
    /* The last chunk of a row may begin later than at a multiple of 16, and has fewer pieces then. */
    const bool cols = WHOLE || (int)((unsigned)j.n / R::COLS * R::BYTES) - begin - p * 16 > 0;
    const int here = row < lanes::ROWS && cols ? rows - row : 0;
    const char *from = s.from + (s.at + (unsigned)begin);
    const shared_place to = slots + s.put + (unsigned)(row * R::PITCH + p * 16);
    UNROLL
    for (int i = 0; i < lanes::TIMES; i++) {
        few_copy_if(to + (unsigned)(i * lanes::ROWS * R::PITCH), from,
                    i * lanes::ROWS < here &&
                        ((i + 1) * lanes::ROWS <= FEW_TILE || i * lanes::ROWS + row < FEW_TILE));
        from += lanes::ROWS * j.w_pitch;
    }
    if (lanes::REST) {
        const int rest = lane_index() % FEW_TILE;
        few_copy_if(slots + s.put + (unsigned)(rest * R::PITCH + lanes::PIECES * 16),
                    j.w + (int64_t)rest * j.w_pitch + (s.at + (unsigned)begin) + lanes::PIECES * 16,
                    lane_index() < FEW_TILE && rest < rows);
    }
    if (s.left > 0) {
        s.left--;
        s.put = few_after<W * FEW_TILE * R::PITCH, FEW_TILE * R::PITCH>(s.put);
        s.tile++;
        s.at += (unsigned)(FEW_TILE * j.w_pitch);
        if (s.tile == s.group_n) {
            s.at -= (unsigned)(s.tile * FEW_TILE * j.w_pitch);
            s.tile = 0;
            s.chunk = few_chunk_after(s, s.chunk);
            if (s.chunk == s.chunk_0) {
                s.at += (unsigned)(s.group_n * FEW_TILE * j.w_pitch);
                s.group += s.group_n;
                s.group_n = s.tiles - s.group < group_max ? s.tiles - s.group : group_max;
            }
        }
    }
    copies_group();
}

/* A chunk of x, or a part of its rows, has been asked for. */
template <class R, int NT> static __device__ inline void few_x_next(few_walk &s)
{
    enum { ROWS = few_group<R, NT>::PART * FEW_N, BYTES = few_x_size<R, ROWS / FEW_N>::BYTES };
    s.x_left--;
    s.x_put = s.x_put + BYTES == s.x_end ? 0 : s.x_put + BYTES;
    if (ROWS < NT * FEW_N && s.x_row + ROWS < NT * FEW_N) {
        s.x_row += ROWS;
        return;
    }
    s.x_row = 0;
    s.x_chunk = few_chunk_after(s, s.x_chunk);
}

/* The next chunk of x, if there is one, or of a pass a part of its rows: R::COLS bytes of each, zeros where there are none, and what
 * types have beside them. */
template <class R, int NT>
static __device__ inline void few_copy_x(const few_job &j, few_walk &s, shared_place slots)
{
    enum { ROWS = few_group<R, NT>::PART * FEW_N, PARTED = ROWS < NT * FEW_N };
    typedef few_x_size<R, ROWS / FEW_N> size;
    if (s.x_left <= 0)
        return;
    const int first = PARTED ? s.x_row : 0, rows = j.rows - first;
    enum { PIECES = R::COLS / 16, AT_ONCE = WARP / PIECES };
    const int row = lane_index() / PIECES, piece = lane_index() % PIECES;
    const int begin = s.x_chunk * R::COLS + piece * 16;
    const shared_place to = slots + s.x_put;
    const char *x = j.x + (int64_t)first * j.x_pitch;
    const char *from = x + (int64_t)row * j.x_pitch + begin;
    UNROLLED(4)
    for (int r = row; r < ROWS; r += AT_ONCE, from += AT_ONCE * (int64_t)j.x_pitch)
        few_copy(to + (unsigned)(r * size::PITCH + piece * 16), from, r < rows);
    /* X_SIDE bytes of each row: scales of 32 columns, or sums of 16; then scales of 256. */
    const int d = (int)((unsigned)(j.n + ACT_ALIGN - 1) & ~(ACT_ALIGN - 1u));
    const int sums = (j.n / 256 * 4 + ACT_ALIGN - 1) & ~(ACT_ALIGN - 1);
    const int side = (R::X_BLOCK == 256 ? d + sums : d) + s.x_chunk * R::X_SIDE;
    enum { SIDES = R::X_SIDE > 16 ? 2 : 1 }; /* pieces */
    UNROLLED(1)
    for (int i = lane_index(); i < ROWS * R::X_SIDE / 16; i += WARP)
        few_copy(to + (unsigned)(size::SIDE + i * 16),
                 x + (int64_t)(i / SIDES) * j.x_pitch + side + i % SIDES * 16, i / SIDES < rows);
    if (R::X_BLOCK == 256 && lane_index() < ROWS)
        few_copy_4(to + (unsigned)(size::D + lane_index() * 4),
                   x + (int64_t)lane_index() * j.x_pitch + d + s.x_chunk * 4, lane_index() < rows);
    few_x_next<R, NT>(s);
}

/* ---- tiles ---- */

/* The first tile's sums to the end, so that those of the next are the first: sums are in registers, which have no index. Of the
 * sums of a tile N instructions from FIRST on. */
template <int TILES, int NT, int FIRST, int N>
static __device__ inline void few_turn(float (*sum)[NT][4])
{
    UNROLL
    for (int i = FIRST * 4; i < (FIRST + N) * 4; i++) {
        const float first = sum[0][i / 4][i % 4];
        UNROLL
        for (int t = 1; t < TILES; t++)
            sum[t - 1][i / 4][i % 4] = sum[t][i / 4][i % 4];
        sum[TILES - 1][i / 4][i % 4] = first;
    }
}

/* Are sums turned, tile by tile? Where there are many, or one value for each, a jump to those of a tile takes fewer instructions. */
template <class R, int NT> static __device__ constexpr bool few_turns(void)
{
    return !R::KEEPS && NT < FEW_N_MAX;
}

/* A tile's products to the sums of tile t, N instructions from FIRST on. */
template <class R, int TILES, int NT, int FIRST, int N, int P>
static __device__ inline void few_multiply(shared_place slot, const few_x<R, N> &x, uint32_t skew,
                                           int t, float (*sum)[NT][4])
{
    if constexpr (few_turns<R, NT>()) {
        R::template products<N, P>(slot, x, skew, sum[0] + FIRST);
        few_turn<TILES, NT, FIRST, N>(sum);
    } else if constexpr (R::KEEPS) {
        float value[N][4];
        R::template values<N, P>(slot, x, skew, value);
        UNROLL
        for (int i = 0; i < TILES; i++)
            if (t == i)
                few_add<N>(sum[i] + FIRST, value, x.d);
    } else {
        float part[N][4] = {};
        R::template products<N, P>(slot, x, skew, part);
        UNROLL
        for (int i = 0; i < TILES; i++)
            if (t == i) {
                UNROLL
                for (int e = 0; e < 4 * N; e++)
                    sum[i][FIRST + e / 4][e % 4] += part[e / 4][e % 4];
            }
    }
}

/* After so many of its tiles sums are where those of a whole group would be. */
template <class R, int TILES, int NT, int FIRST, int N>
static __device__ inline void few_tiles_end(int here, float (*sum)[NT][4])
{
    if constexpr (few_turns<R, NT>()) {
        UNROLLED(1)
        for (int t = here; t < TILES; t++)
            few_turn<TILES, NT, FIRST, N>(sum);
    }
}

/* A warp's places among its slots. */
struct few_slots {
    shared_place x, w;
    uint32_t get, x_get;
};

/* Pass number PASS over a chunk of the `here` tiles of a group. The last one frees the slots of weights. */
template <class R, int NT, int PASS>
static __device__ inline void few_pass(const few_job &j, few_walk &s, few_slots &at, int here,
                                       uint32_t skew, float (*sum)[NT][4])
{
    typedef few_room<R, NT> room;
    typedef few_group<R, NT> group;
    enum { TILES = group::TILES, N = group::PART, ENDS = PASS + 1 == group::PASSES };
    const int x_ahead = room::x_ahead(here); /* of groups of copies that may be under way */
    few_x<R, N> x;
    if (PASS > 0) {
        few_wait(here);
        __syncwarp();
    }
    x.load(at.x + at.x_get);
    at.x_get = at.x_get + room::X_BYTES == s.x_end ? 0 : at.x_get + room::X_BYTES;
    if (R::KEEPS) {
        __syncwarp(); /* all have it */
        few_copy_x<R, NT>(j, s, at.x);
        if (!ENDS)
            copies_group();
    }
    uint32_t get = at.get;
    UNROLLED(1)
    for (int t = 0; t < here; t++) {
        few_multiply<R, TILES, NT, PASS * N, N, R::PITCH>(at.w + get, x, skew, t, sum);
        get = few_after<room::W * room::W_BYTES, room::W_BYTES>(get);
        if (!ENDS)
            continue;
        __syncwarp();
        if (!R::KEEPS && t + 1 == here)
            few_copy_x<R, NT>(j, s, at.x);
        few_copy_w<R, room::W>(j, s, TILES, at.w);
        if (PASS > 0)
            continue;
        if (t + 1 < here || x_ahead >= room::W - 1)
            copies_wait<room::W - 1>();
        else
            few_wait(x_ahead);
        __syncwarp();
    }
    if (ENDS)
        at.get = get;
    few_tiles_end<R, TILES, NT, PASS * N, N>(here, sum);
}

template <class R, int NT> static __device__ FEW_COPY void few_stream(const few_job j)
{
    typedef few_room<R, NT> room;
    enum { TILES = few_group<R, NT>::TILES, PASSES = few_group<R, NT>::PASSES };
    few_walk s = few_walk_of<R>(j, TILES, PASSES);
    s.x_end = room::X * room::X_BYTES;
    if (PASSES == 1 && s.chunks > 0 && s.chunks <= room::X) { /* x comes once, and stays */
        s.x_left = s.chunks;
        s.x_end = (unsigned)s.chunks * room::X_BYTES;
    }
    const shared_place sums = shared_at(j.scratch);
    few_slots at = {};
    at.x = sums + FEW_SUM_BYTES + (unsigned)(few_warp() % FEW_WARPS) * FEW_RING_BYTES;
    at.w = at.x + (unsigned)(room::X * room::X_BYTES);
    if (PASSES > 1)
        few_copy_x<R, NT>(j, s, at.x);
    UNROLLED(1)
    for (int i = 0; i < room::W; i++) {
        if (PASSES > 1 ? i == 0 : i < room::X)
            few_copy_x<R, NT>(j, s, at.x);
        few_copy_w<R, room::W>(j, s, TILES, at.w);
    }
    copies_wait<room::W - room::AT_ONCE>();
    __syncwarp();
    UNROLLED(1)
    for (int group = 0; group < s.tiles; group += TILES) {
        const int here = s.tiles - group < TILES ? s.tiles - group : (int)TILES;
        float sum[TILES][NT][4] = {};
        UNROLLED(1)
        for (int c = 0; c < s.chunks; c++) {
            const uint32_t skew = (uint32_t)((s.chunk_0 + c * s.step) * R::BYTES & 15);
            few_pass<R, NT, 0>(j, s, at, here, skew, sum);
            if constexpr (PASSES > 1) {
                few_pass<R, NT, 1>(j, s, at, here, skew, sum);
                /* Weights of the next chunk, all tiles, and x of its first pass; that of the other has come one step later. */
                few_wait(room::W - here < here ? room::W - here : here);
                __syncwarp();
            }
        }
        few_meet<NT, TILES>(j, sums, group, here, sum);
    }
    copies_wait<0>();
}

template <class R> static __device__ constexpr bool few_is_half(void)
{
    return (dtype)R::TYPE == DT_BF16 || (dtype)R::TYPE == DT_F16;
}

/* A number of a row of x. */
template <class R> static __device__ inline float few_x_at(const char *row, int64_t n, int64_t i)
{
    const kact act = (kact)R::ACT;
    if (act == ACT_F32)
        return ((const float *)row)[i];
    if (!act_is_split(act))
        return act_d_of(act, row, n)[i / act_block(act)] * (float)act_q(row)[i];
    float x = 0; /* of the smallest part on: exact */
    for (int64_t p = act_parts(act) - 1; p >= 0; p--)
        x += from_bf16(((const uint16_t *)row)[act_split_at(act, i, p, 0)]);
    return x;
}

/* Whatever cannot be streamed: as floats, row by row. */
template <class R> static __device__ FEW_COPY void few_plain(const few_job j)
{
    const dot_weights w = {(const uint8_t *)j.w, j.w_pitch, j.bias, 0, j.w_rows, j.n,
                           (dtype)R::TYPE};
    float *x = (float *)j.scratch;
    for (int row = 0; row < j.rows; row++) {
        const char *from = j.x + (int64_t)row * j.x_pitch;
        few_rows r = {};
        r.n = 1;
        r.x[0] = x;
        r.out[0] = (float *)((char *)j.out + (int64_t)row * j.out_pitch);
        block_sync(); /* the row before has been used */
        for (int64_t i = threadIdx.x; i < j.n; i += block_threads())
            x[i] = few_x_at<R>(from, j.n, i);
        block_sync();
        few_dots<typename R::weight, 1, !few_is_half<R>()>(w, r); /* whose rows may end anywhere */
    }
}

/* ---- the kernels ---- */

/* Are rows whole pieces of 16 bytes, in order? */
template <class R> static __device__ inline bool few_streams(const few_job &j)
{
    return is_shared(j.scratch) && copies_from(j.x) && at_16(j.x) && j.x_pitch % 16 == 0 &&
           at_16(j.w) && j.w_pitch % 16 == 0 && j.n % R::COLS == 0;
}

/* What a type is streamed as, with so many instructions. */
template <class R, int NT> struct few_as {
    typedef R type;
};
template <> struct few_as<few_Q8_0, FEW_N_MAX> {
    typedef few_Q8_0_short type;
};

/* Types of 16 bits have a walk of their own, and of floats one for eight rows alone. */
template <class R, int NT> static __device__ inline void few_run(const few_job &j)
{
    if constexpr (!few_is_half<R>())
        few_stream<typename few_as<R, NT>::type, NT>(j);
    else if constexpr (NT * FEW_N <= R::ROWS_MAX)
        few_stream_bf16<R, NT>(j);
}

template <class R>
static __device__ inline void linear_few(const kargs *k, const kthread *t, int64_t begin,
                                         int64_t end)
{
    const kpart part = kpart_of(k, k->size.linear.out, begin, end);
    const int instructions = (int)few_instructions(least(k->size.linear.rows, R::ROWS_MAX));
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
    for (int row = (int)part.row; row < (int)part.row_end; row += R::ROWS_MAX) {
        j.x = (const char *)row_in(k, 0, row);
        j.out = row_out(k, 0, row) + part.col;
        j.rows = (int)least(part.row_end - row, R::ROWS_MAX);
        if (!few_streams<R>(j))
            few_plain<R>(j);
        else if (instructions == 1)
            few_run<R, 1>(j);
        else if (instructions == 2)
            few_run<R, 2>(j);
        else
            few_run<R, FEW_N_MAX>(j);
    }
}

#define LINEAR_FEW(type)                                                                           \
    static __device__ void k_linear_##type##_few_cuda(const kargs *k, const kthread *t,            \
                                                      int64_t begin, int64_t end)                  \
    {                                                                                              \
        linear_few<few_##type>(k, t, begin, end);                                                  \
    }
LINEAR_FEW(BF16)
LINEAR_FEW(BF16_floats)
LINEAR_FEW(BF16_near)
LINEAR_FEW(BF16_round)
LINEAR_FEW(F16)
LINEAR_FEW(F16_floats)
LINEAR_FEW(F16_near)
LINEAR_FEW(F16_round)
LINEAR_FEW(Q8_0)
LINEAR_FEW(Q4_0)
LINEAR_FEW(Q4_K)
LINEAR_FEW(Q5_K)
LINEAR_FEW(Q6_K)
#undef LINEAR_FEW

#endif
