/* ring_cuda.cuh - weights on their way to the warps that multiply them.
 *
 * Reading weights is most of what decoding takes, and a card reads fast only while each multiprocessor has 100 KB under way, always.
 * So each warp has a ring of slots in shared memory, into which it copies chunks of its rows ahead of those that it multiplies,
 * also those of the next phase while it computes, or waits for, what these are multiplied with. Nobody else waits for
 * a warp's copies.
 *
 * What a block will multiply in a phase, in order, are its segments: some rows of a matrix. They are listed before the phase
 * before begins (phase.cu). Of a segment a warp has every so many groups of rows; a group is cut into chunks (ring_size.h).
 *
 * A slot has a barrier, which counts what is copied into it. Slots are filled and used in turn, so that one parity says
 * for which time round the warp waits. */
#ifndef WEFT_KERNELS_CUDA_RING_CUDA_CUH
#define WEFT_KERNELS_CUDA_RING_CUDA_CUH

#include "kernels/cuda/barrier_cuda.cuh"
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
    int32_t put, get;       /* slots: where it copies to, and multiplies from */
    uint32_t parity;        /* of the time that slot `get` is waited for */
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
    int32_t x_bytes;     /* its room */
    int32_t slots;       /* of a warp, */
    int32_t slot_bytes;  /* each */
    uint64_t full[RING_WARPS][RING_SLOTS];
    ring_warp warp[RING_WARPS];
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

/* ---- copying ---- */

/* The next segment that has rows for a warp, as far as they are listed. */
static __device__ inline bool ring_segment_next(const ring_block *r, ring_warp &w, int warp)
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
        const int first = warp * s.cut.rows, step = warp_count() * s.cut.rows;
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

/* The bytes of a chunk: of one piece, or of one for each row. */
static __device__ inline void ring_chunk_copy(ring_block *r, const ring_warp &w, int warp,
                                              shared_place slots)
{
    const int rows = w.rows < w.rows_left ? w.rows : w.rows_left;
    const bool whole = w.chunks == 1;
    const shared_place to = slots + w.put * r->slot_bytes;
    uint64_t *full = &r->full[warp][w.put];
    copy_expect(full, rows * w.bytes);
    UNROLLED(1)
    for (int row = 0; row < (whole ? 1 : rows); row++)
        copy_bytes(full, to + row * w.bytes, w.from + row * w.pitch,
                   whole ? rows * w.bytes : w.bytes);
    copy_end(full);
}

/* The next chunk into the next slot, if there is one. */
static __device__ inline bool ring_copy(ring_block *r, ring_warp &w, int warp, shared_place slots)
{
    if (w.left == 0 && !ring_segment_next(r, w, warp))
        return false;
    ring_chunk_copy(r, w, warp, slots);
    w.left--;
    w.from += w.bytes;
    if (++w.chunk == w.chunks) {
        w.chunk = 0;
        w.from += w.on;
        w.rows_left -= warp_count() * w.rows;
    }
    w.put = w.put + 1 < r->slots ? w.put + 1 : 0;
    w.pending++;
    return true;
}

static __device__ inline void ring_save(ring_block *r, const ring_warp &w, int warp)
{
    __syncwarp();
    if (lane_index() == 0)
        r->warp[warp] = w;
    __syncwarp();
}

/* All slots of warp `warp` that are free, by any warp. */
static __device__ APART void ring_fill(ring_block *r, int warp)
{
    if (!r->memory)
        return;
    ring_warp w = r->warp[warp];
    const shared_place slots = ring_slots(r, warp);
    UNROLLED(1)
    while (w.pending < r->slots && ring_copy(r, w, warp, slots))
        ;
    ring_save(r, w, warp);
}

/* ---- multiplying ---- */

/* The chunk that is next to be multiplied. */
static __device__ inline shared_place ring_chunk(ring_block *r, const ring_warp &w,
                                                 shared_place slots)
{
    barrier_wait(&r->full[warp_index()][w.get], w.parity);
    return slots + w.get * r->slot_bytes;
}

static __device__ inline void ring_step(const ring_block *r, ring_warp &w)
{
    w.get = w.get + 1 < r->slots ? w.get + 1 : 0;
    w.parity ^= w.get == 0;
}

/* It has been, and made `result`: only then its slot is free. */
static __device__ inline void ring_used(ring_block *r, ring_warp &w, shared_place slots,
                                        float result)
{
    used_before(result);
    __syncwarp();
    ring_step(r, w);
    w.pending--;
    ring_copy(r, w, warp_index(), slots);
}

/* The block's next segment, if that has these rows; else NULL. The same for all warps. */
static __device__ inline const ring_segment *ring_takes(const ring_block *r, const char *w,
                                                        int rows)
{
    if (!r->memory)
        return NULL;
    const int i = r->warp[warp_index()].taken;
    const ring_segment *s = &r->list[r->phase & 1][i];
    return i < r->n[r->phase & 1] && s->w == w && s->rows == rows ? s : NULL;
}

/* ---- phases ---- */

/* By all threads, before the first list. memory NULL: without a ring. */
static __device__ inline void ring_open(ring_block *r, char *memory, int64_t x_bytes, int slots,
                                        int slot_bytes)
{
    if (threadIdx.x == 0) {
        r->slots = slots;
        r->slot_bytes = slot_bytes;
        r->x = memory;
        r->x_bytes = (int32_t)x_bytes;
        r->memory = memory ? memory + x_bytes : NULL;
        r->x_of = NULL;
        r->n[0] = r->n[1] = 0;
        r->phase = 0;
        r->last = -1;
    }
    if (lane_index() == 0 && warp_index() < RING_WARPS) {
        ring_warp w = {};
        w.segment = -1;
        r->warp[warp_index()] = w;
        UNROLLED(1)
        for (int i = 0; i < slots; i++)
            barrier_make(&r->full[warp_index()][i], COPY_ARRIVALS);
    }
    barriers_made();
    __syncthreads();
}

/* All that is on its way has come: nothing is written into a block's memory when it is gone. */
static __device__ inline void ring_close(ring_block *r)
{
    if (!r->memory)
        return;
    ring_warp w = r->warp[warp_index()];
    for (; w.pending > 0; w.pending--) {
        ring_chunk(r, w, 0);
        ring_step(r, w);
    }
}

/* A phase begins, of which it is known what to copy before it is computed. By all threads, or by those of one warp. */
static __device__ inline void ring_phase(ring_block *r, int phase)
{
    const int i = (int)threadIdx.x % WARP;
    if (i == 0) {
        r->phase = phase;
        r->x_of = NULL;
    }
    if (i < RING_WARPS)
        r->warp[i].taken = 0;
}

#endif
