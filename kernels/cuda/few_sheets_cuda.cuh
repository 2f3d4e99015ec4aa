/* few_sheets_cuda.cuh - linears of 2 to FEW_N rows whose weights come ahead of them, across phases.
 *
 * What a block multiplies in a phase are its segments, as with the ring (ring_cuda.cuh), and two warps that compute nothing copy them
 * into slots ahead of use. There is one ring for all warps: a slot has a sheet, FEW_TILE rows of weights by FEW_WARPS chunks of columns,
 * of which each warp multiplies its own. So rows come as pieces of a thousand bytes or two, one for each lane that copies,
 * where chunks of a warp are pieces of 144; and a warp that multiplies has a barrier to wait for in place of a dozen instructions.
 *
 * Warps and columns, and the order of all sums, are those of few_stream: so are the bits of results. x is copied as there, by the warp
 * that multiplies with it.
 *
 * Slots lie in scratch. A step that needs this for itself has it: no sheet is copied across its phase before the block is done
 * with that (ring_list.alone). */
#ifndef WEFT_KERNELS_CUDA_FEW_SHEETS_CUDA_CUH
#define WEFT_KERNELS_CUDA_FEW_SHEETS_CUDA_CUH

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
    c.group_n = tiles < SHEET_GROUP ? tiles : (int)SHEET_GROUP;
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
    uint64_t *full = &r->full[0][c.slot];
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
            c.group_n = tiles - c.group < SHEET_GROUP ? tiles - c.group : (int)SHEET_GROUP;
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

template <class R> static __device__ FEW_COPY void few_sheets(const few_job j)
{
    typedef few_x_size<R, 1> size;
    enum { TILES = SHEET_GROUP, PITCH = sheet_pitch((dtype)R::TYPE) };
    static_assert((int)few_group<R, 1>::TILES == (int)TILES && (int)few_group<R, 1>::PASSES == 1,
                  "sums are those of few_stream");
    static_assert((int)size::BYTES <= (int)SHEET_X_BYTES && (int)R::COLS == (int)SHEET_COLS &&
                      (int)R::BYTES == sheet_chunk((dtype)R::TYPE),
                  "as the host has counted them");
    const int warp = few_warp();
    const int rounds = (j.n / SHEET_COLS + FEW_WARPS - 1) / FEW_WARPS;
    const shared_place sums = shared_at(j.scratch);
    const shared_place x_slots = sums + FEW_SUM_BYTES + (unsigned)(warp * SHEET_X * SHEET_X_BYTES);
    const uint32_t own = (uint32_t)(warp * R::BYTES), skew = own & 15;
    ring_block *r = block_ring();
    sheet_place w = sheet_place_of(r, warp, own - skew);
    few_walk s = few_walk_of<R>(j, TILES, 1);
    uint32_t x_get = 0;
    s.x_end = SHEET_X * size::BYTES;
    if (s.chunks > 0 && s.chunks <= SHEET_X) { /* x comes once, and stays */
        s.x_left = s.chunks;
        s.x_end = (unsigned)s.chunks * size::BYTES;
    }
    UNROLLED(1)
    for (int i = 0; i < SHEET_X; i++) {
        few_copy_x<R, 1>(j, s, x_slots);
        copies_group();
    }
    UNROLLED(1)
    for (int group = 0; group < s.tiles; group += TILES) {
        const int here = s.tiles - group < TILES ? s.tiles - group : (int)TILES;
        float sum[TILES][1][4] = {};
        UNROLLED(1)
        for (int c = 0; c < s.chunks; c++) {
            few_x<R, 1> x;
            copies_wait<SHEET_X - 1>();
            __syncwarp();
            x.load(x_slots + x_get);
            x_get = x_get + size::BYTES == s.x_end ? 0 : x_get + size::BYTES;
            if (R::KEEPS) {
                __syncwarp(); /* all have it */
                few_copy_x<R, 1>(j, s, x_slots);
                copies_group();
            }
            UNROLLED(1)
            for (int t = 0; t < here; t++) {
                barrier_wait(&r->full[0][w.p.slot], w.p.parity & 1);
                R::template products<1, PITCH>(w.at, x, skew, sum[0]);
                few_turn<TILES, 1, 0, 1>(sum);
                sheet_used(r, w);
            }
            UNROLLED(1)
            for (int t = here; t < TILES; t++)
                few_turn<TILES, 1, 0, 1>(sum);
            if (!R::KEEPS) {
                __syncwarp();
                few_copy_x<R, 1>(j, s, x_slots);
                copies_group();
            }
        }
        UNROLLED(1)
        for (int i = s.chunks * here; i < rounds * here; i++) { /* others have columns there */
            barrier_wait(&r->full[0][w.p.slot], w.p.parity & 1);
            sheet_used(r, w);
        }
        few_meet<1, TILES>(j, sums, group, here, sum);
    }
    copies_wait<0>();
    if (lane_index() == 0)
        r->place[warp] = w.p;
    __syncwarp();
}

#ifdef WEFT_SHAPES
/* With what phase.cu has listed for a step, where its weights come in sheets. Else false. */
template <class R> static __device__ inline bool linear_sheets(const kthread *t, const cuda_step *s)
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
    few_sheets<R>(j);
    return true;
}

#define LINEAR_SHEETS(type)                                                                        \
    static __device__ SHAPE_FN bool k_linear_##type##_few_cuda_sheets(const kthread *t,            \
                                                                      const cuda_step *s)          \
    {                                                                                              \
        return linear_sheets<few_##type>(t, s);                                                    \
    }
LINEAR_SHEETS(Q8_0)
LINEAR_SHEETS(Q4_0)
LINEAR_SHEETS(Q4_K)
LINEAR_SHEETS(Q5_K)
LINEAR_SHEETS(Q6_K)
#undef LINEAR_SHEETS
#endif

#endif
