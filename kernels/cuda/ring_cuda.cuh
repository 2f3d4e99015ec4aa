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
 * or not, and `slots` of them when the ring is filled anew, so that the oldest chunk is there when all but slots - 1 are. */
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
    const char *w;
    int32_t left, chunk,
        rows_left; /* chunks of the segment; of the group that were copied; rows from the group on */
    int32_t phase, segment;    /* that it copies */
    int32_t put, get, pending; /* slots; how many are copied into */
    int32_t taken;             /* segments of the phase at hand that it has begun to multiply */
};

struct ring_block {
    ring_segment list[2][RING_SEGMENTS]; /* of phases, by their numbers' lowest bit */
    int32_t n[2];
    int32_t phase, last; /* the one at hand, and the last that is listed */
    int32_t slots;       /* 0: there is no ring */
    char *memory;        /* the warps' slots */
    char *x;             /* in front of them: what the phase multiplies with, */
    const void *x_of;    /* and what that was made of */
    ring_warp warp[RING_WARPS];
};

static __device__ inline ring_block *block_ring(void)
{
    __shared__ ring_block ring;
    return &ring;
}

static __device__ inline char *ring_slot(const ring_block *r, int slot)
{
    return r->memory + (warp_index() * r->slots + slot) * RING_SLOT;
}

static __device__ inline bool ring_has_warp(const ring_block *r)
{
    return r->slots > 0 && warp_index() < RING_WARPS;
}

/* ---- copying ---- */

/* The next segment that has rows for this warp, as far as they are listed. */
static __device__ inline bool ring_segment_next(const ring_block *r, ring_warp &w)
{
    if (w.left == 0 && w.phase < r->phase) { /* it had nothing to copy for a while */
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
        w.w = s.w + first * s.pitch;
        w.chunk = 0;
        w.rows_left = s.rows - first;
        w.left = w.rows_left > 0 ? (w.rows_left + step - 1) / step * s.cut.chunks : 0;
    }
    return true;
}

/* The next chunk into the next slot, if there is one; either way a group of copies ends. */
static __device__ inline void ring_copy(const ring_block *r, ring_warp &w)
{
    if (ring_segment_next(r, w)) {
        const ring_segment &s = r->list[w.phase & 1][w.segment];
        const int bytes = (int)s.cut.bytes,
                  rows = s.cut.rows < w.rows_left ? s.cut.rows : w.rows_left;
        const int64_t on = s.pitch - bytes; /* from the end of a row's part to the next one */
        const char *from = w.w + lane_index() * 16;
        char *to = ring_slot(r, w.put) + lane_index() * 16;
        int at = lane_index() * 16;
        UNROLLED(4)
        for (int i = lane_index() * 16; i < rows * bytes; i += WARP * 16) {
            for (; at >= bytes; at -= bytes)
                from += on;
            copy_piece(to, from, true);
            at += WARP * 16;
            from += WARP * 16;
            to += WARP * 16;
        }
        w.left--;
        w.w += bytes;
        if (++w.chunk == s.cut.chunks) {
            w.chunk = 0;
            w.w += (int64_t)(warp_count() * s.cut.rows) * s.pitch - (int64_t)bytes * s.cut.chunks;
            w.rows_left -= warp_count() * s.cut.rows;
        }
        w.put = w.put + 1 == r->slots ? 0 : w.put + 1;
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
    if (!ring_has_warp(r))
        return;
    ring_warp w = r->warp[warp_index()];
    if (w.pending < r->slots) {
        const int before = w.pending;
        for (int i = 0; i < r->slots; i++)
            if (i < r->slots - before)
                ring_copy(r, w);
            else
                copies_group();
        ring_save(r, w);
    }
}

/* ---- multiplying ---- */

static __device__ inline void ring_wait_for(int slots)
{
    switch (slots) {
    case 2:
        copies_wait<1>();
        break;
    case 3:
        copies_wait<2>();
        break;
    case 4:
        copies_wait<3>();
        break;
    case 5:
        copies_wait<4>();
        break;
    default:
        copies_wait<5>();
    }
    __syncwarp();
}
static_assert(RING_SLOTS_MAX == 6 && RING_SLOTS_LEAST == 2, "ring_wait_for");

/* The chunk that is next to be multiplied. */
static __device__ inline char *ring_chunk(const ring_block *r, const ring_warp &w)
{
    ring_wait_for(r->slots);
    return ring_slot(r, w.get);
}

/* It has been; its slot is free. */
static __device__ inline void ring_used(const ring_block *r, ring_warp &w)
{
    __syncwarp();
    w.get = w.get + 1 == r->slots ? 0 : w.get + 1;
    w.pending--;
    ring_copy(r, w);
}

/* Are these rows what the block's next segment has? The same for all warps. */
static __device__ inline bool ring_takes(const ring_block *r, const char *w, int rows)
{
    if (r->slots == 0)
        return false;
    const int i = r->warp[warp_index()].taken;
    const ring_segment *s = &r->list[r->phase & 1][i];
    return i < r->n[r->phase & 1] && s->w == w && s->rows == rows;
}

/* ---- phases ---- */

/* By all threads, before the first list. */
static __device__ inline void ring_open(ring_block *r, char *memory, int slots, int64_t x_bytes,
                                        int phase)
{
    if (threadIdx.x == 0) {
        r->slots = slots;
        r->x = memory;
        r->memory = memory + x_bytes;
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
