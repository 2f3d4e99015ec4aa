/* few_sheets_cuda.cuh - linears of 2 to FEW_ROWS_MAX rows whose weights come ahead of them, across phases.
 *
 * What a block multiplies in a phase are its segments, as with the ring (ring_cuda.cuh), and two warps that compute nothing copy them
 * into slots ahead of use. There is one ring for all warps: a slot has a sheet, FEW_TILE rows of weights by FEW_WARPS chunks of columns,
 * of which each warp multiplies its own. So rows come as pieces of a thousand bytes or two, one for each lane that copies,
 * where chunks of a warp are pieces of 144; and a warp that multiplies has a barrier to wait for in place of a dozen instructions.
 *
 * Warps and columns, and the order of all sums, are those of few_stream: so are the bits of results. x is copied as there, by the warp
 * that multiplies with it, and with more than 16 rows half by half, until all of it is in registers.
 *
 * Slots lie in scratch. A step that needs this for itself has it: no sheet is copied across its phase before the block is done
 * with that (ring_list.alone). */
#ifndef WEFT_KERNELS_CUDA_FEW_SHEETS_CUDA_CUH
#define WEFT_KERNELS_CUDA_FEW_SHEETS_CUDA_CUH

#include "kernels/cuda/gate_cuda.cuh"
#include "kernels/cuda/linear_few_cuda.cuh"
#include "kernels/cuda/ring_cuda.cuh"

/* Of barriers those of the first warp are the block's. By one thread, before all others come. */
static __device__ inline void sheets_open(ring_block *r, char *memory, int slots, int slot_bytes)
{
    ring_open(r, memory, 0, 0, slot_bytes);
    r->slots = slots;
    UNROLLED(1)
    for (int warp = 0; warp < RING_WARPS; warp++)
        r->place[warp] = ring_place{0, 0};
    UNROLLED(1)
    for (int i = 0; i < slots; i++) {
        barrier_make(&r->full[0][i], copy_arrivals(WARP));
        barrier_make(&r->used[0][i], FEW_WARPS * WARP_ARRIVALS);
    }
}

/* ---- copying ---- */

/* What a warp copies next: of all sheets every RING_COPIERS-th. */
struct sheet_copier {
    ring_segment of;
    int32_t left, group, group_n, tile,
        chunk;           /* of the segment: sheets; its group and tile; columns */
    int32_t slot, times; /* where to; how often all slots were filled */
    int32_t at, last; /* so many were come past, and the last of its own was this one; -1: none */
    int32_t turn;     /* sheets until the next of its own */
};

static __device__ inline void sheet_segment(sheet_copier &c, const ring_segment &s)
{
    const int tiles = (s.rows + FEW_TILE - 1) / FEW_TILE;
    c.of = s;
    c.left = tiles * ((s.cut.chunks + FEW_WARPS - 1) / FEW_WARPS);
    c.group = c.tile = c.chunk = 0;
    c.group_n = tiles < s.cut.paired ? tiles : (int)s.cut.paired;
}

static __device__ inline void sheet_put(ring_block *r, const sheet_copier &c)
{
    const int lane = lane_index(), first = (c.group + c.tile) * FEW_TILE;
    const int rows = c.of.rows - first < FEW_TILE ? c.of.rows - first : (int)FEW_TILE;
    const int chunks =
        c.of.cut.chunks - c.chunk < FEW_WARPS ? c.of.cut.chunks - c.chunk : (int)FEW_WARPS;
    const int bytes = chunks * (int)c.of.cut.bytes, pitch = c.of.cut.rows * 16;
    const shared_place to =
        shared_at(r->memory) + (unsigned)(c.slot * r->slot_bytes + lane * pitch);
    const char *from = c.of.w + (first + lane) * c.of.pitch + c.chunk * (int64_t)c.of.cut.bytes;
    const shared_place full = shared_at(&r->full[0][c.slot]);
    copy_expect(full, rows * bytes, copiers{lane, WARP});
    __syncwarp();
    if (lane < rows)
        copy_once(full, to, from, bytes, copiers{0, 1});
    copy_end(full);
}

static __device__ inline void sheet_next(const ring_block *r, sheet_copier &c)
{
    c.left--;
    c.at++;
    if (++c.tile == c.group_n) {
        c.tile = 0;
        c.chunk += FEW_WARPS;
        if (c.chunk >= c.of.cut.chunks) {
            const int tiles = (c.of.rows + FEW_TILE - 1) / FEW_TILE;
            c.chunk = 0;
            c.group += c.group_n;
            c.group_n = tiles - c.group < c.of.cut.paired ? tiles - c.group : (int)c.of.cut.paired;
        }
    }
    if (++c.slot == r->slots) {
        c.slot = 0;
        c.times++;
    }
    c.turn = c.turn ? c.turn - 1 : RING_COPIERS - 1;
}

/* The next sheet of the segment, unless it is another warp's. False: its slot is not free. By a whole warp. */
static __device__ inline bool sheet_copy(ring_block *r, sheet_copier &c)
{
    if (c.turn == 0) {
        if (!__all_sync(ALL_LANES,
                        barrier_passed(&r->used[0][c.slot], (uint32_t)(c.times + 1) & 1)))
            return false;
        sheet_put(r, c);
        c.last = c.at;
    }
    sheet_next(r, c);
    return true;
}

/* All that the warp copied has come: what was not used before the block stopped, and nothing that another sheet has followed. */
static __device__ inline void sheets_close(ring_block *r, const sheet_copier &c)
{
    const volatile ring_place *p = &r->place[0];
    const int used = (int)p->parity * r->slots + p->slot, ring = c.at - r->slots;
    for (int i = c.last; i >= 0 && i >= used && i >= ring; i -= RING_COPIERS)
        barrier_wait(&r->full[0][i % r->slots], (uint32_t)(i / r->slots) & 1);
}

/* ---- multiplying ---- */

/* The sheet that a warp multiplies next. */
struct sheet_place {
    ring_place p;    /* its parity is the last bit: how often all slots were used */
    shared_place at; /* the warp's chunk of it */
    uint32_t bytes, all;
    int slots;
};

static __device__ inline sheet_place sheet_place_of(const ring_block *r, int warp, uint32_t own)
{
    sheet_place s;
    s.p = r->place[warp];
    s.bytes = (uint32_t)r->slot_bytes;
    s.slots = r->slots;
    s.all = s.bytes * (uint32_t)s.slots;
    s.at = shared_at(r->memory) + (uint32_t)s.p.slot * s.bytes + own;
    return s;
}

/* This warp is done with it: when all are its slot is free. */
static __device__ inline void sheet_used(ring_block *r, sheet_place &s)
{
    __syncwarp();
    barrier_arrive_warp(&r->used[0][s.p.slot]);
    s.at += s.bytes;
    if (++s.p.slot == s.slots) {
        s.p = ring_place{0, s.p.parity + 1};
        s.at -= s.all;
    }
}

/* The next half of the rows of a chunk of x, of types whose scales are of 256 columns. As few_copy_x, but without loops: less than half
 * of the instructions. With up to 8 rows, and in the walk of Q8_0 with 32, that was slower. */
template <class R, int NT>
static __device__ inline void sheet_copy_part(const few_job &j, few_walk &s, shared_place slots)
{
    enum { ROWS = few_group<R, NT>::PART * FEW_N, PIECES = R::COLS / 16, AT_ONCE = WARP / PIECES };
    typedef few_x_size<R, ROWS / FEW_N> size;
    static_assert((int)ROWS == WARP / 2 && R::X_BLOCK == 256, "a lane has one piece of the sums");
    if (s.x_left <= 0)
        return;
    const int lane = lane_index(), row = lane / PIECES, piece = lane % PIECES;
    const int rows = j.rows - s.x_row; /* that are there */
    const shared_place to = slots + s.x_put;
    const char *x = j.x + (int64_t)s.x_row * j.x_pitch;
    const char *from = x + row * j.x_pitch + (s.x_chunk * R::COLS + piece * 16);
    UNROLL
    for (int r = 0; r < ROWS; r += AT_ONCE, from += AT_ONCE * j.x_pitch)
        few_copy(to + (unsigned)((row + r) * size::PITCH + piece * 16), from, r < rows - row);
    const int d = (int)((unsigned)(j.n + ACT_ALIGN - 1) & ~(ACT_ALIGN - 1u));
    const int sums = (j.n / 256 * 4 + ACT_ALIGN - 1) & ~(ACT_ALIGN - 1);
    if (R::X_SIDE > 0) /* two pieces of a row */
        few_copy(to + (unsigned)(size::SIDE + lane * 16),
                 x + lane / 2 * j.x_pitch + (d + sums + s.x_chunk * R::X_SIDE + lane % 2 * 16),
                 lane / 2 < rows);
    if (lane < ROWS)
        few_copy_4(to + (unsigned)(size::D + lane * 4), x + lane * j.x_pitch + (d + s.x_chunk * 4),
                   lane < rows);
    few_x_next<R, NT>(s);
}

/* The next of x, and the end of a group of copies. */
template <class R, int NT>
static __device__ inline void sheet_copy_x(const few_job &j, few_walk &s, shared_place slots)
{
    if constexpr (few_group<R, NT>::PASSES > 1)
        sheet_copy_part<R, NT>(j, s, slots);
    else
        few_copy_x<R, NT>(j, s, slots);
    copies_group();
}

/* x of a chunk, part by part, each in registers before the next is asked for in its place. */
template <class R, int NT, int PART>
static __device__ inline void sheet_x(const few_job &j, few_walk &s, shared_place slots,
                                      uint32_t &get, few_x<R, NT> &x)
{
    enum { N = few_group<R, NT>::PART, BYTES = few_x_size<R, N>::BYTES };
    copies_wait<SHEET_X - 1>();
    __syncwarp();
    x.template load<PART * N, N>(slots + get);
    get = get + BYTES == s.x_end ? 0 : get + BYTES;
    if (!R::KEEPS)
        return;
    __syncwarp(); /* all have it */
    sheet_copy_x<R, NT>(j, s, slots);
}

template <class R, int NT> static __device__ FEW_COPY void few_sheets(const few_job j)
{
    enum { PARTS = few_group<R, NT>::PASSES, X_BYTES = few_x_size<R, NT / PARTS>::BYTES };
    enum { PITCH = sheet_pitch((dtype)R::TYPE) };
    enum { TILES = sheet_group((dtype)R::TYPE, NT * FEW_N), X_ROOM = sheet_x_bytes(NT * FEW_N) };
    static_assert(PARTS == 1 || (R::KEEPS && PARTS == 2), "x is in registers, or in one place");
    static_assert((int)X_BYTES <= (int)X_ROOM && (int)R::COLS == (int)SHEET_COLS &&
                      (int)R::BYTES == sheet_chunk((dtype)R::TYPE),
                  "as the host has counted them");
    const int warp = few_warp();
    const int rounds = (j.n / SHEET_COLS + FEW_WARPS - 1) / FEW_WARPS;
    const shared_place sums = shared_at(j.scratch);
    const shared_place x_slots = sums + FEW_SUM_BYTES + (unsigned)(warp * SHEET_X * X_ROOM);
    const uint32_t own = (uint32_t)(warp * R::BYTES), skew = own & 15;
    ring_block *r = block_ring();
    sheet_place w = sheet_place_of(r, warp, own - skew);
    few_walk s = few_walk_of<R>(j, TILES, PARTS);
    uint32_t x_get = 0;
    s.x_end = SHEET_X * X_BYTES;
    if (s.chunks > 0 && s.chunks * PARTS <= SHEET_X) { /* x comes once, and stays */
        s.x_left = s.chunks * PARTS;
        s.x_end = (unsigned)s.x_left * X_BYTES;
    }
    if (!gate_meet_late())
        return;
    UNROLLED(1)
    for (int i = 0; i < SHEET_X; i++)
        sheet_copy_x<R, NT>(j, s, x_slots);
    UNROLLED(1)
    for (int group = 0; group < s.tiles; group += TILES) {
        const int here = s.tiles - group < TILES ? s.tiles - group : (int)TILES;
        float sum[TILES][NT][4] = {};
        UNROLLED(1)
        for (int c = 0; c < s.chunks; c++) {
            few_x<R, NT> x;
            sheet_x<R, NT, 0>(j, s, x_slots, x_get, x);
            if constexpr (PARTS > 1)
                sheet_x<R, NT, 1>(j, s, x_slots, x_get, x);
            UNROLLED(1)
            for (int t = 0; t < here; t++) {
                barrier_wait(&r->full[0][w.p.slot], w.p.parity & 1);
                few_multiply<R, TILES, NT, 0, NT, PITCH>(w.at, x, skew, t, sum);
                sheet_used(r, w);
            }
            few_tiles_end<R, TILES, NT, 0, NT>(here, sum);
            if (!R::KEEPS) {
                __syncwarp();
                sheet_copy_x<R, NT>(j, s, x_slots);
            }
        }
        UNROLLED(1)
        for (int i = s.chunks * here; i < rounds * here; i++) { /* others have columns there */
            barrier_wait(&r->full[0][w.p.slot], w.p.parity & 1);
            sheet_used(r, w);
        }
        few_meet<NT, TILES>(j, sums, group, here, sum);
    }
    copies_wait<0>();
    if (lane_index() == 0)
        r->place[warp] = w.p;
    __syncwarp();
}

#ifdef WEFT_SHAPES
/* With what phase.cu has listed for a step, where its weights come in sheets; it meets its gate before it asks for x. Else false. */
template <class R, int NT>
static __device__ inline bool linear_sheets(const kthread *t, const cuda_step *s)
{
    if (s->segment < 0)
        return false;
    few_job j = {};
    j.x = (const char *)s->in[0];
    j.bias = (const float *)s->in[2];
    j.out = (float *)s->out[0];
    j.scratch = (char *)t->scratch;
    j.x_pitch = (int)s->x_pitch;
    j.w_pitch = (int)s->pitch;
    j.out_pitch = (int)s->out_pitch;
    j.rows = s->rows;
    j.w_rows = s->linear_out;
    j.n = s->linear_in;
    few_sheets<R, NT>(j);
    return true;
}

#define LINEAR_SHEETS(type)                                                                        \
    template <int NT>                                                                              \
    static __device__ SHAPE_FN bool k_linear_##type##_few_cuda_sheets(const kthread *t,            \
                                                                      const cuda_step *s)          \
    {                                                                                              \
        return linear_sheets<few_##type, NT>(t, s);                                                \
    }
LINEAR_SHEETS(Q8_0)
LINEAR_SHEETS(Q4_0)
LINEAR_SHEETS(Q4_K)
LINEAR_SHEETS(Q5_K)
LINEAR_SHEETS(Q6_K)
#undef LINEAR_SHEETS
#endif

#endif
