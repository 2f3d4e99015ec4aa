/* ring_cuda.cuh - weights on their way to the warps that multiply them.
 *
 * Reading weights is most of what decoding takes, and a card reads fast only while each multiprocessor has 100 KB under way, always.
 * So each warp has a ring of slots in shared memory, into which it copies chunks of its rows ahead of those that it multiplies,
 * also those of the next phase while it computes, or waits for, what these are multiplied with. Nobody else waits for
 * a warp's copies.
 *
 * What a block will multiply in a phase, in order, are its segments: some rows of a matrix. They are listed when the phase
 * before begins (phase.cu). Of a segment a warp has every so many groups of rows; a group is cut into chunks (ring_size.h).
 *
 * Copies are counted in groups: a wait leaves all but so many. A warp ends a group with every slot that comes free, copied into
 * or not, and RING_SLOTS of them when the ring is filled anew, so that the oldest chunk is there when all but RING_SLOTS - 1
 * are. */
#ifndef WEFT_KERNELS_CUDA_RING_CUDA_CUH
#define WEFT_KERNELS_CUDA_RING_CUDA_CUH

#include "kernels/cuda/block_cuda.cuh"
#include "kernels/cuda/copy_cuda.cuh"
#include "kernels/cuda/ring_size.h"

struct ring_segment {
    const char *w; /* its first row */
    int64_t pitch;
    int32_t rows;
    cuda_cut cut;
};

/* Where a warp is: what it copies next, and what it multiplies. */
struct ring_warp {
    const char *from; /* the next chunk */
    int64_t pitch;    /* of the segment that it copies, as are: */
    int64_t on;       /* from the last chunk of a group to the warp's next group */
    int32_t bytes, rows, chunks;
    int32_t left, chunk,
        rows_left; /* chunks of it; of the group that were copied; rows from the group on */
    int32_t phase, segment; /* which it is */
    int32_t put, get;       /* bytes from the warp's first slot */
    int32_t pending;        /* slots that are copied into */
    int32_t taken;          /* segments of the phase at hand that it has begun to multiply */
};

struct ring_block {
    ring_segment list[2][RING_SEGMENTS]; /* of phases, by their numbers' lowest bit */
    int32_t n[2];
    int32_t phase, last; /* the one at hand, and the last that is listed */
    char *memory;        /* the warps' slots; NULL: there is no ring */
    char *x;             /* in front of them: what the phase multiplies with, */
    const void *x_of;    /* and what that was made of */
    ring_warp warp[RING_WARPS];
};

static __device__ inline ring_block *block_ring(void)
{
    __shared__ ring_block ring;
    return &ring;
}

/* The warp's first slot. */
static __device__ inline shared_place ring_slots(const ring_block *r)
{
    return shared_at(r->memory) + warp_index() * (RING_SLOTS * RING_SLOT);
}

/* ---- copying ---- */

/* The next segment that has rows for this warp, as far as they are listed. */
static __device__ inline bool ring_segment_next(const ring_block *r, ring_warp &w)
{
    if (w.phase < r->phase) { /* it had nothing to copy for a while */
        w.phase = r->phase;
        w.segment = -1;
    }
    while (w.left == 0) {
        if (++w.segment >= r->n[w.phase & 1]) {
            if (w.phase >= r->last) {
                w.segment--; /* to be looked at again */
                return false;
            }
            w.phase++;
            w.segment = -1;
            continue;
        }
        const ring_segment &s = r->list[w.phase & 1][w.segment];
        const int first = warp_index() * s.cut.rows, step = warp_count() * s.cut.rows;
        w.pitch = s.pitch;
        w.bytes = (int32_t)s.cut.bytes;
        w.rows = s.cut.rows;
        w.chunks = s.cut.chunks;
        w.from = s.w + first * s.pitch;
        w.on = step * s.pitch - (int64_t)w.bytes * w.chunks;
        w.chunk = 0;
        w.rows_left = s.rows - first;
        w.left = w.rows_left > 0 ? (w.rows_left + step - 1) / step * w.chunks : 0;
    }
    return true;
}

/* The bytes of a chunk. Most are of one piece, or two rows of 2 KB. */
static __device__ inline void ring_chunk_copy(const ring_warp &w, shared_place slots)
{
    enum { LINE = WARP * 16, LINES = RING_SLOT / LINE, TWO_ROWS = 2048 };
    const int lane = lane_index() * 16, rows = w.rows < w.rows_left ? w.rows : w.rows_left;
    const shared_place to = slots + w.put + lane;
    const char *from = w.from + lane;
    if (w.chunks == 1 || w.rows == 1) {
        const int left = rows * w.bytes - lane;
        UNROLL
        for (int i = 0; i < LINES; i++)
            if (i * LINE < left)
                copy_16(to + i * LINE, from + i * LINE);
    } else if (w.bytes == TWO_ROWS && rows == 2) {
        UNROLL
        for (int i = 0; i < TWO_ROWS / LINE; i++) {
            copy_16(to + i * LINE, from + i * LINE);
            copy_16(to + TWO_ROWS + i * LINE, from + w.pitch + i * LINE);
        }
    } else {
        for (int row = 0; row < rows; row++)
            for (int i = lane; i < w.bytes; i += LINE)
                copy_16(to - lane + row * w.bytes + i, from - lane + row * w.pitch + i);
    }
}

static __device__ inline int ring_after(int slot)
{
    return slot == (RING_SLOTS - 1) * RING_SLOT ? 0 : slot + RING_SLOT;
}

/* The next chunk into the next slot, if there is one; either way a group of copies ends. */
static __device__ inline void ring_copy(const ring_block *r, ring_warp &w, shared_place slots)
{
    if (w.left > 0 || ring_segment_next(r, w)) {
        ring_chunk_copy(w, slots);
        w.left--;
        w.from += w.bytes;
        if (++w.chunk == w.chunks) {
            w.chunk = 0;
            w.from += w.on;
            w.rows_left -= warp_count() * w.rows;
        }
        w.put = ring_after(w.put);
        w.pending++;
    }
    copies_group();
}

static __device__ inline void ring_save(ring_block *r, const ring_warp &w)
{
    __syncwarp();
    if (lane_index() == 0)
        r->warp[warp_index()] = w;
    __syncwarp();
}

/* All slots that are free, by each warp. */
static __device__ inline void ring_fill(ring_block *r)
{
    if (!r->memory)
        return;
    ring_warp w = r->warp[warp_index()];
    const int full = w.pending;
    if (full < RING_SLOTS) {
        const shared_place slots = ring_slots(r);
        UNROLLED(1)
        for (int i = 0; i < RING_SLOTS - full; i++)
            ring_copy(r, w, slots);
        for (int i = 0; i < full; i++)
            copies_group();
        ring_save(r, w);
    }
}

/* ---- multiplying ---- */

/* The chunk that is next to be multiplied. */
static __device__ inline shared_place ring_chunk(const ring_warp &w, shared_place slots)
{
    copies_wait<RING_SLOTS - 1>();
    __syncwarp();
    return slots + w.get;
}

/* It has been; its slot is free. */
static __device__ inline void ring_used(const ring_block *r, ring_warp &w, shared_place slots)
{
    __syncwarp();
    w.get = ring_after(w.get);
    w.pending--;
    ring_copy(r, w, slots);
}

/* Are these rows what the block's next segment has? The same for all warps. */
static __device__ inline bool ring_takes(const ring_block *r, const char *w, int rows)
{
    if (!r->memory)
        return false;
    const int i = r->warp[warp_index()].taken;
    const ring_segment *s = &r->list[r->phase & 1][i];
    return i < r->n[r->phase & 1] && s->w == w && s->rows == rows;
}

/* ---- phases ---- */

/* By all threads, before the first list. memory NULL: without a ring. */
static __device__ inline void ring_open(ring_block *r, char *memory, int64_t x_bytes, int phase)
{
    if (threadIdx.x == 0) {
        r->x = memory;
        r->memory = memory ? memory + x_bytes : NULL;
        r->x_of = NULL;
        r->n[0] = r->n[1] = 0;
        r->phase = phase;
        r->last = phase - 1;
    }
    if (lane_index() == 0 && warp_index() < RING_WARPS) {
        ring_warp w = {};
        w.phase = phase;
        w.segment = -1;
        r->warp[warp_index()] = w;
    }
    __syncthreads();
}

/* A phase begins. */
static __device__ inline void ring_phase(ring_block *r, int phase)
{
    if (threadIdx.x == 0) {
        r->phase = phase;
        r->x_of = NULL;
    }
    if (lane_index() == 0 && warp_index() < RING_WARPS)
        r->warp[warp_index()].taken = 0;
}

#endif
