/* lists_cuda.cuh - tables of phases in shared memory, and what a block has of each: its steps with their units and operands, and the
 * weights that its ring brings. */
#ifndef WEFT_KERNELS_CUDA_LISTS_CUDA_CUH
#define WEFT_KERNELS_CUDA_LISTS_CUDA_CUH

#include "kernels/cuda/ring_cuda.cuh"

enum { TILE_ELEM_BYTES = 4 };

/* What was copied of the batch, and is to be read there. */
struct batch_copy {
    uintptr_t from;
    uint64_t bytes;
};

/* A block of a launch. */
struct member {
    const cuda_run *r;
    kthread t;
    uint64_t inverse; /* of the number of blocks, for share_of */
    char *block;      /* its memory */
    uint64_t *ns;
    kargs *own; /* of the step at hand, for all threads of the block */
    batch_copy batch;
};

/* ---- tables ---- */

static __device__ bool is_packed(const cuda_phase &p)
{
    return p.n_item <= PACK_ITEMS && p.n_step <= PACK_STEPS;
}

static __device__ inline void words_copy(void *to, const void *from, int bytes)
{
    for (int i = (int)threadIdx.x; i < bytes / 8; i += block_threads())
        ((uint64_t *)to)[i] = ((const uint64_t *)from)[i];
}

/* Of the launch's packs number n is copied by a warp, and there when waited for. They take turns. */
struct pack_ring {
    cuda_pack *at;  /* [PACKS] */
    uint64_t *full; /* barriers: it has come, */
    uint64_t *used; /* and nobody needs it any more */
};
static_assert(sizeof(cuda_pack) % 16 == 0, "pieces of 16 bytes");

static __device__ inline void pack_copy(const cuda_run &r, const pack_ring &p, int32_t n)
{
    const shared_place full = shared_at(&p.full[n % PACKS]);
    copies_after_stores(); /* operands were found in it */
    const copiers by = {lane_index(), WARP};
    copy_expect(full, (int)sizeof(cuda_pack), by);
    copy_bytes(full, shared_at(&p.at[n % PACKS]), (const char *)&r.pack[r.first + n],
               (int)sizeof(cuda_pack), by);
    copy_end(full);
}

/* Which time it is that phase n has its place among packs. */
static __device__ inline uint32_t pack_parity(int32_t n)
{
    return (uint32_t)(n / PACKS) & 1;
}

static __device__ inline cuda_pack *pack_wait(const pack_ring &p, int32_t n)
{
    barrier_wait(&p.full[n % PACKS], pack_parity(n));
    return &p.at[n % PACKS];
}

/* ---- what a block has of a phase ---- */

/* A block's share of a line. */
struct line_share {
    int64_t first, last;
};

/* A division takes as long as many products: that by the number of blocks is a product with its inverse, right for numbers
 * below SHARES_MOST where there are at most SHARE_BLOCKS. */
enum { SHARE_BITS = 36, SHARE_BLOCKS = 4096 };
static const uint32_t SHARES_MOST = 1u << 24;
static_assert((uint64_t)SHARES_MOST * SHARE_BLOCKS <= 1ull << SHARE_BITS,
              "no result is one too many");

static __device__ inline uint64_t share_inverse(uint64_t blocks)
{
    return ((1ull << SHARE_BITS) + blocks - 1) / blocks;
}

static __device__ inline line_share share_of_many(int64_t index, int64_t count, int64_t units)
{
    return line_share{index * units / count, (index + 1) * units / count};
}

static __device__ inline line_share share_of(const member &m, int64_t units)
{
    const uint64_t at = (uint64_t)m.t.index * (uint64_t)units, end = at + (uint64_t)units;
    if (end >= SHARES_MOST || m.t.count > SHARE_BLOCKS)
        return share_of_many(m.t.index, m.t.count, units);
    return line_share{(int64_t)(at * m.inverse >> SHARE_BITS),
                      (int64_t)(end * m.inverse >> SHARE_BITS)};
}

/* The units of an item that a block has. */
static __device__ inline line_share share_in(const line_share &s, const cuda_item &it)
{
    int64_t begin = s.first > it.at ? s.first - it.at : 0;
    return line_share{begin, least(s.last - it.at, it.units)};
}

static __device__ inline line_share units_followed(const cuda_item &it, const line_share &own)
{
    const uint32_t first = (uint32_t)own.first / (uint32_t)it.each;
    const uint32_t last = ((uint32_t)own.last + (uint32_t)it.each - 1) / (uint32_t)it.each;
    return own.first < own.last ? line_share{first * it.at, last * it.at} : line_share{0, 0};
}

/* The same of any item. */
static __device__ inline line_share units_of(const cuda_item &it, const line_share &own)
{
    if (it.every == ITEM_FOLLOWS)
        return units_followed(it, own);
    return it.every ? line_share{0, it.units} : share_in(own, it);
}

static __device__ inline bool is_at_once(const cuda_item &it, const line_share &u)
{
    return it.every || it.grain == 0 || u.last - u.first <= it.grain;
}

/* What a step will multiply; rows 0 if its weights do not come through the ring. */
static __device__ inline ring_segment segment_of(const cuda_step &s, const cuda_item &it,
                                                 const line_share &u)
{
    const int64_t each = s.tile_cols ? s.tile_cols : s.linear_out;
    const int64_t row = u.first * each, end = least(u.last * each, s.linear_out);
    if (s.cut.rows == 0 || it.every || end <= row)
        return ring_segment{};
    return ring_segment{(const char *)s.in[1] + row * s.pitch, s.pitch, (int32_t)(end - row), s.cut,
                        (int32_t)row};
}

/* Addresses in place of offsets into the block's memory, and of where the batch is: of a value of the block, and of a tile where its first column would be if
 * those from unit `begin` on are the first in memory. */
static __device__ inline void operand_find(const member &m, const cuda_step &s, int bit,
                                           uintptr_t *at, int64_t begin)
{
    if (*at - m.batch.from < m.batch.bytes)
        *at += (uintptr_t)m.r->batch - m.batch.from;
    if (s.tile >> bit & 1)
        *at -= (uintptr_t)(begin * s.tile_cols * TILE_ELEM_BYTES);
    if ((s.local | s.tile) >> bit & 1)
        *at += (uintptr_t)m.block;
}

static __device__ inline uintptr_t *operand_at(cuda_step &s, int i)
{
    return i < K_IN_MAX ? (uintptr_t *)&s.in[i] : (uintptr_t *)&s.out[i - K_IN_MAX];
}

enum { OPERANDS = K_IN_MAX + K_OUT_MAX };

static __device__ inline void operands_find(const member &m, cuda_step &s, int64_t begin)
{
    UNROLLED(1)
    for (int i = 0; i < OPERANDS; i++)
        operand_find(m, s, i, operand_at(s, i), begin);
    if (s.cell)
        s.base = s.cell->tier[0].base;
}

/* The same of n steps by a warp, a lane for each operand: who comes to a gate last has others wait for this. `begin`: of the lane's
 * step. */
static __device__ inline void operands_list(const member &m, cuda_pack *pack, int n, int32_t begin)
{
    const int lane = lane_index();
    UNROLLED(1)
    for (int first = 0; first < n * OPERANDS; first += WARP) {
        const int step = (first + lane) / OPERANDS, i = first + lane - step * OPERANDS;
        const int32_t from = __shfl_sync(ALL_LANES, begin, step % WARP);
        if (step < n)
            operand_find(m, pack->step[step], i, operand_at(pack->step[step], i), from);
    }
}

/* Which segment of the ring's a step has, or -1. An image made for a plan finds the segment's part of results, of a bias and of
 * rows in the step then, where it would find all of them. */
static __device__ inline void step_segment(cuda_step &s, const ring_segment &to, int segment)
{
    s.segment = segment;
#ifdef WEFT_SHAPES
    if (segment < 0)
        return;
    s.out[0] = (float *)s.out[0] + to.row;
    s.in[2] = s.in[2] ? (const float *)s.in[2] + to.row : NULL;
    s.linear_out = to.rows;
#else
    (void)to;
#endif
}

/* Where a step is, as a work says it. */
static __device__ inline int32_t work_place(const cuda_pack *packs, const cuda_step *s)
{
    return (int32_t)((const char *)s - (const char *)packs) / WORK_UNIT;
}

static __device__ inline const cuda_step *work_step(const cuda_pack *packs, const cuda_work &w)
{
    return (const cuda_step *)((const char *)packs + (w.what & ((1 << WORK_BITS) - 1)) * WORK_UNIT);
}
static_assert(PACKS * sizeof(cuda_pack) / WORK_UNIT <= 1u << WORK_BITS &&
                  sizeof(cuda_pack) % WORK_UNIT == 0 && sizeof(cuda_step) % WORK_UNIT == 0,
              "a number for each step");

/* Both lists of a phase, by a warp: a lane for each step, the first of which is at `place`. Where units are too many for one go, or steps for a pack, there is
 * neither. `all`: who brings some segments of a phase has to bring all. */
static __device__ APART void phase_list(const member &m, cuda_pack *pack, int32_t place, bool all,
                                        cuda_works *l, ring_list *r)
{
    const int lane = lane_index();
    const uint32_t before = (1u << lane) - 1;
    const line_share own = share_of(m, pack->at.units);
    line_share u = {0, 0};
    ring_segment to = {};
    bool fits = is_packed(pack->at);
    const int n = fits ? pack->at.n_step : 0;
    char *base = NULL;
    IN_SHARED(pack);
    if (lane < n) {
        cuda_step &s = pack->step[lane];
        if (s.cell)
            base = s.cell->tier[0].base; /* which takes a while */
        const cuda_item &it = pack->item[s.item - pack->at.first];
        u = units_of(it, own);
        fits = is_at_once(it, u) && u.last <= INT32_MAX;
        to = segment_of(s, it, u);
        if (s.shape == STEP_NONE)
            u.last = u.first;
    }
    __syncwarp();
    operands_list(m, pack, n, (int32_t)u.first);
    __syncwarp();
    fits = __all_sync(ALL_LANES, fits);
    const uint32_t works = __ballot_sync(ALL_LANES, fits && u.first < u.last);
    uint32_t rings = __ballot_sync(ALL_LANES, fits && to.rows > 0 && m.r->ring != 0);
    const bool alone = all && (!fits || pack->alone || __popc((int)rings) > RING_SEGMENTS ||
                               warp_count() != RING_WARPS);
    rings = alone ? 0 : rings;
    const int segment = __popc(rings & before);
    if (works >> lane & 1)
        l->of[__popc(works & before)] =
            cuda_work{pack->step[lane].shape << WORK_BITS |
                          (place + lane * (int32_t)(sizeof(cuda_step) / WORK_UNIT)),
                      (int32_t)u.first, (int32_t)u.last};
    const bool brings = (rings >> lane & 1) && segment < RING_SEGMENTS;
    if (brings)
        r->of[segment] = to;
    if (lane < PACK_STEPS)
        step_segment(pack->step[lane], to, brings ? segment : -1);
    if (base)
        pack->step[lane].base = base;
    if (lane == 0) {
        l->of[__popc(works)] = cuda_work{fits ? WORKS_END : WORKS_MANY, 0, 0};
        r->n = (int32_t)least(__popc((int)rings), RING_SEGMENTS);
        r->alone = alone;
    }
    __syncwarp();
}
static_assert((int)PACK_STEPS < (int)WARP, "a lane for each step");

#endif
