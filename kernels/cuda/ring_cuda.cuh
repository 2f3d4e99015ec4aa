/* ring_cuda.cuh - weights on their way to the warps that multiply them.
 *
 * Reading weights is most of what decoding takes, and a card reads fast only while each multiprocessor has 100 KB under way, always.
 * So each warp has a ring of slots in shared memory, and two more warps, which compute nothing, copy chunks of their rows into
 * these ahead of those that are multiplied, also those of the next phases while the block computes, or waits for, what they
 * are multiplied with.
 *
 * What a block will multiply in a phase, in order, are its segments: some rows of a matrix. One of the warps that copy lists
 * them (phase.cu). Of a segment a warp has every so many groups of rows; a group is cut into chunks (ring_size.h).
 *
 * A slot has two barriers: one counts what is copied into it, the other says that it has been used. Slots are filled and used in
 * turn, so that one parity says which time round is waited for. */
#ifndef WEFT_KERNELS_CUDA_RING_CUDA_CUH
#define WEFT_KERNELS_CUDA_RING_CUDA_CUH

#include "kernels/cuda/barrier_cuda.cuh"
#include "kernels/cuda/ring_size.h"

struct ring_segment {
    const char *w; /* its first row */
    int64_t pitch;
    int32_t rows;
    cuda_cut cut;
    int32_t row; /* which that is of the matrix */
};

/* Those of a phase. */
struct ring_list {
    ring_segment of[RING_SEGMENTS];
    int32_t n;
    int32_t alone; /* not 0: see few_sheets_cuda.cuh */
};

/* Where a warp takes its next chunk from, with addresses that the compiler would compute each time if it could. */
struct ring_reader {
    shared_place at, full; /* a slot, and its barrier */
    uint32_t parity;       /* of the time that it is waited for */
    int32_t left;          /* slots from it on */
};

/* The same of sheets (few_sheets_cuda.cuh). */
struct ring_place {
    int32_t slot;
    uint32_t parity; /* of the time that it is waited for */
};

struct ring_block {
    ring_list list[PACKS]; /* of phases, in turn */
    int32_t phase;         /* the one at hand; */
    int32_t open;          /* the last one whose gate the block has passed */
    int32_t stop;          /* not 0: nothing more is to be copied */
    char *memory;          /* the warps' slots; NULL: there is no ring */
    char *x;               /* in front of them: what the phase multiplies with, */
    const void *x_of;      /* and what that was made of */
    int32_t x_bytes;       /* its room */
    int32_t slots;         /* of a warp, */
    int32_t slot_bytes;    /* each */
    uint64_t full[RING_WARPS][RING_SLOTS], used[RING_WARPS][RING_SLOTS];
    union {
        ring_reader reader[RING_WARPS];
        ring_place place[RING_WARPS]; /* where sheets are */
    };
};

static __device__ inline ring_block *block_ring(void)
{
    __shared__ ring_block ring;
    return &ring;
}

/* A warp's first slot. */
static __device__ inline shared_place ring_slots(const ring_block *r, int warp)
{
    return shared_at(r->memory) + warp * r->slots * r->slot_bytes;
}

/* Are groups of rows paired? Not where a warp would wait for both with nothing more under way. */
static __device__ inline bool ring_pairs(int slots, const cuda_cut &cut)
{
    return cut.paired && slots >= RING_PAIR_SLOTS;
}

/* ---- copying: by some warps, some lanes of them for each warp that multiplies ---- */

enum { RING_LANES = WARP * RING_COPIERS / RING_WARPS };

/* What a lane copies next. All that it needs for a chunk is here, in registers: while it looks for something, a slot stands empty. */
struct ring_copier {
    int warp; /* for whom */
    copiers lanes;
    int32_t slots, slot_bytes; /* of the warp */
    shared_place open;         /* of the ring */
    shared_place at, full;     /* the slot that is filled next, and its barrier; */
    int32_t slot, times;       /* which that is; how often all slots were filled */
    const char *from;          /* the next chunk */
    int64_t pitch;             /* of the segment, as are: */
    int64_t apart;             /* from one of the warp's groups to its next */
    int32_t bytes, rows, chunks;
    bool whole; /* rows follow on each other */
    int32_t left, chunk,
        rows_left;       /* chunks of it; of the group that were copied; rows from the group on */
    bool pairs;          /* groups are paired; */
    bool paired, second; /* this one is with the next, of which the next chunk is */
    int32_t segment;     /* the next one of the phase */
};

static __device__ inline ring_copier ring_copier_of(const ring_block *r, int thread)
{
    ring_copier c = {};
    c.warp = thread / RING_LANES;
    c.lanes = copiers{thread % RING_LANES, RING_LANES};
    c.slots = r->slots;
    c.slot_bytes = r->slot_bytes;
    c.open = shared_at(&r->open);
    c.at = ring_slots(r, c.warp);
    c.full = shared_at(r->full[c.warp]);
    return c;
}

/* Is there another group for the one at hand? */
static __device__ inline bool ring_paired(const ring_copier &c)
{
    return c.pairs && c.rows_left > warp_count() * c.rows;
}

static __device__ inline void ring_segment_begin(ring_copier &c, const ring_segment &s)
{
    const int first = c.warp * s.cut.rows, step = warp_count() * s.cut.rows;
    c.pitch = s.pitch;
    c.bytes = (int32_t)s.cut.bytes;
    c.rows = s.cut.rows;
    c.chunks = s.cut.chunks;
    c.whole = s.cut.chunks == 1 && s.pitch == s.cut.bytes;
    c.from = s.w + first * s.pitch;
    c.apart = step * s.pitch;
    c.chunk = 0;
    c.rows_left = s.rows - first;
    c.left = c.rows_left > 0 ? (c.rows_left + step - 1) / step * c.chunks : 0;
    c.pairs = ring_pairs(c.slots, s.cut);
    c.paired = ring_paired(c);
    c.second = false;
}

/* The bytes of a chunk: of one piece, or of one for each row. SKEWS: some are one that begins anywhere, and come with what is around
 * it. */
template <bool SKEWS> static __device__ inline void ring_chunk_copy(const ring_copier &c)
{
    const int left = c.rows_left - (c.second ? warp_count() * c.rows : 0);
    const int rows = c.rows < left ? c.rows : left;
    const int skew = SKEWS ? (int)((uintptr_t)c.from & 15) : 0;
    const int all = SKEWS ? (skew + rows * c.bytes + 15) & ~15 : rows * c.bytes;
    const int bytes = c.whole || (SKEWS && rows == 1) ? all : c.bytes;
    const char *from = c.from - skew;
    shared_place to = c.at;
    copy_expect(c.full, all, c.lanes);
    UNROLLED(1)
    for (int row = c.whole ? 1 : rows; row > 0; row--) {
        copy_once(c.full, to, from, bytes, c.lanes);
        from += c.pitch;
        to += c.bytes;
    }
    copy_end(c.full);
}

static __device__ inline void ring_chunk_next(ring_copier &c)
{
    c.left--;
    c.second = c.paired && !c.second;
    c.from += c.second ? c.apart : c.bytes - (c.paired ? c.apart : 0);
    if (!c.second && ++c.chunk == c.chunks) {
        const int groups = c.paired ? 2 : 1;
        c.chunk = 0;
        c.from += groups * c.apart - (int64_t)c.bytes * c.chunks;
        c.rows_left -= groups * warp_count() * c.rows;
        c.paired = ring_paired(c);
    }
    c.at += (shared_place)c.slot_bytes;
    c.full += sizeof(uint64_t);
    if (++c.slot == c.slots) {
        c.at -= (shared_place)(c.slots * c.slot_bytes);
        c.full -= sizeof(uint64_t) * (shared_place)c.slots;
        c.slot = 0;
        c.times++;
    }
}

/* Of a phase that is not open yet a warp has only one chunk under way: who waits at a gate waits for memory, and so behind what others
 * have asked for. Is there one? */
static __device__ inline bool ring_is_early(const ring_copier &c, int phase)
{
    const bool first = c.slot == 0;
    const int times = c.times - first;
    const shared_place before =
        c.full + sizeof(uint64_t) * (shared_place)(first ? c.slots - 1 : -1);
    const int32_t open = CHECKS ? word_now(&block_ring()->open) : (int32_t)shared_4(c.open);
    return open < phase && times >= 0 && !barrier_passed(before, (uint32_t)times & 1);
}

enum ring_copied { RING_NONE, RING_FULL, RING_COPIED };

/* The next chunk of a phase, if there is one and its slot is free. */
template <bool SKEWS>
static __device__ inline ring_copied ring_copy(ring_copier &c, const ring_list &l, int phase)
{
    while (c.left == 0) {
        if (c.segment == l.n || c.warp >= warp_count())
            return RING_NONE;
        ring_segment_begin(c, l.of[c.segment++]);
    }
    const shared_place used = c.full + (shared_place)sizeof(ring_block::full);
    if (!barrier_passed(used, (uint32_t)(c.times + 1) & 1) || ring_is_early(c, phase))
        return RING_FULL;
    ring_chunk_copy<SKEWS>(c);
    ring_chunk_next(c);
    return RING_COPIED;
}

/* All that is on its way has come: nothing is written into a block's memory when it is gone. */
static __device__ inline void ring_close(ring_block *r, const ring_copier &c)
{
    for (int i = 0; i < c.slots && c.warp < warp_count(); i++) {
        const int times = c.times + (i < c.slot);
        if (times > 0)
            barrier_wait(&r->full[c.warp][i], (uint32_t)(times - 1) & 1);
    }
}

/* ---- multiplying ---- */

/* The segment of the phase at hand that has these rows, or NULL. By whole warps; the same for all. */
static __device__ inline const ring_segment *ring_find(const ring_block *r, const char *w, int rows)
{
    const ring_list &l = r->list[r->phase % PACKS];
    const int i = lane_index() % RING_SEGMENTS;
    const bool is = r->memory && i < l.n && l.of[i].w == w && l.of[i].rows == rows;
    const uint32_t which = __ballot_sync(ALL_LANES, is);
    return which ? &l.of[__ffs((int)which) - 1] : NULL;
}

/* A chunk that has come. */
struct ring_chunk {
    shared_place at, full;
};

/* The next one. slots, bytes: of the ring. */
static __device__ inline ring_chunk ring_take(ring_reader &p, int slots, int bytes)
{
    const ring_chunk chunk = {p.at, p.full};
    const bool last = p.left == 1;
    barrier_wait(p.full, p.parity);
    p.at += (shared_place)bytes - (last ? (shared_place)(slots * bytes) : 0);
    p.full += sizeof(uint64_t) * (shared_place)(last ? 1 - slots : 1);
    p.parity ^= last;
    p.left = last ? slots : p.left - 1;
    return chunk;
}

/* N of them have been multiplied, and made `result`: only then their slots are free. */
template <int N> static __device__ inline void ring_used(const ring_chunk (&chunk)[N], float result)
{
    used_before(result);
    __syncwarp();
    UNROLL
    for (int i = 0; i < N; i++) /* from a slot's one barrier to the other */
        barrier_arrive_warp(chunk[i].full + (uint32_t)sizeof(ring_block::full));
}

/* Where the warp goes on with the next segment. */
static __device__ inline void ring_save(ring_block *r, const ring_reader &p)
{
    __syncwarp();
    if (lane_index() == 0)
        r->reader[warp_index()] = p;
}

/* ---- phases ---- */

/* By one thread, before all others come. memory NULL: without a ring. */
static __device__ inline void ring_open(ring_block *r, char *memory, int64_t x_bytes, int slots,
                                        int slot_bytes)
{
    r->slots = slots;
    r->slot_bytes = slot_bytes;
    r->x = memory;
    r->x_bytes = (int32_t)x_bytes;
    r->memory = memory ? memory + x_bytes : NULL;
    r->x_of = NULL;
    r->phase = r->open = r->stop = 0;
    UNROLLED(1)
    for (int i = 0; i < PACKS; i++)
        r->list[i].n = 0;
    UNROLLED(1)
    for (int warp = 0; warp < RING_WARPS; warp++) {
        r->reader[warp] = ring_reader{shared_at(r->memory) + (uint32_t)(warp * slots * slot_bytes),
                                      shared_at(r->full[warp]), 0, slots};
        UNROLLED(1)
        for (int i = 0; i < slots; i++) {
            barrier_make(&r->full[warp][i], copy_arrivals(RING_LANES));
            barrier_make(&r->used[warp][i], WARP_ARRIVALS);
        }
    }
}

/* A phase begins; by one thread. */
static __device__ inline void ring_phase(ring_block *r, int phase)
{
    word_put(&r->phase, phase);
    r->x_of = NULL;
}

#endif
