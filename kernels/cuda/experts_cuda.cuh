/* experts_cuda.cuh - each row through the matrices of its chosen experts, and the weighted sum of what they gave.
 *
 * Weights of an expert are read once for the rows that chose it: four at a time on few rows; on many, choices are
 * sorted by expert first. out overlaps no input. */
#ifndef WEFT_KERNELS_CUDA_EXPERTS_CUDA_CUH
#define WEFT_KERNELS_CUDA_EXPERTS_CUDA_CUH

#include "kernels/cuda/dot_cuda.cuh"

/* The matrix of expert e. */
static __device__ inline dot_weights expert_weights(const kargs *k, const kpart &part, int64_t e)
{
    const uint8_t *const *w = (const uint8_t *const *)k->in[1]; /* [E] addresses of [m, n] */
    return dot_weights{w[e],      k->pitch[1],  k->in[3] ? row_in(k, 3, e) : NULL,
                       part.col,  part.col_end, k->size.experts.in,
                       k->type[1]};
}

/* Choices of a row that have one x. */
static __device__ inline int64_t expert_share(const kargs *k)
{
    return k->size.experts.x_vectors > 1 ? 1 : k->size.experts.slots;
}

/* The first choice from `at` on, before `end`, of expert e; `end` where there is none. By each warp for itself. */
static __device__ inline int64_t choice_next(const int32_t *ids, int64_t at, int64_t end, int32_t e)
{
    for (; at < end; at += WARP) {
        int64_t mine = at + lane_index();
        uint32_t found = __ballot_sync(ALL_LANES, mine < end && ids[mine] == e);
        if (found)
            return at + __ffs((int)found) - 1;
    }
    return end;
}

static __device__ ONE_COPY void k_experts_cuda(const kargs *k, const kthread *, int64_t begin,
                                               int64_t end)
{
    const int32_t *ids = (const int32_t *)k->in[2]; /* [rows, K] */
    int64_t top = k->size.experts.slots, share = expert_share(k);
    kpart part = kpart_of(k, k->size.experts.out, begin, end);
    int64_t first = part.row * top, last = part.row_end * top;
    for (int64_t slot = first; slot < last; slot++) {
        int32_t e = ids[slot];
        if (choice_next(ids, first, slot, e) < slot)
            continue; /* that one took all who chose it */
        for (int64_t at = slot; at < last;) {
            few_rows r;
            for (r.n = 0; r.n < FEW_X && at < last; at = choice_next(ids, at + 1, last, e)) {
                r.x[r.n] = row_in(k, 0, at / share);
                r.out[r.n++] = row_out(k, 0, at);
            }
            few_dots_any(expert_weights(k, part, e), r);
        }
    }
}

/* Choices [first, first + n) in order of their experts; expert e has list[start[e]] to list[start[e + 1]]. What order those
 * of one expert have is of no importance. */
static __device__ void choices_sort(const int32_t *ids, int64_t first, int64_t n, int64_t experts,
                                    int32_t *list, int32_t *start, int32_t *next)
{
    block_sync();
    for (int64_t e = threadIdx.x; e < experts; e += block_threads())
        next[e] = 0;
    block_sync();
    for (int64_t i = threadIdx.x; i < n; i += block_threads())
        atomicAdd(&next[ids[first + i]], 1);
    block_sync();
    if (threadIdx.x == 0) {
        int32_t sum = 0;
        for (int64_t e = 0; e < experts; e++) {
            int32_t count = next[e];
            start[e] = next[e] = sum;
            sum += count;
        }
        start[experts] = sum;
    }
    block_sync();
    for (int64_t i = threadIdx.x; i < n; i += block_threads())
        list[atomicAdd(&next[ids[first + i]], 1)] = (int32_t)(first + i);
    block_sync();
}

static __device__ ONE_COPY void k_experts_many_cuda(const kargs *k, const kthread *t, int64_t begin,
                                                    int64_t end)
{
    const int32_t *ids = (const int32_t *)k->in[2]; /* [rows, K] */
    int64_t top = k->size.experts.slots, experts = k->size.experts.experts;
    kpart part = kpart_of(k, k->size.experts.out, begin, end);
    float *tiles = (float *)t->scratch;
    int32_t *list = (int32_t *)((char *)t->scratch + CUDA_TILES_BYTES); /* [CHOICES_MAX] */
    int32_t *start = list + CHOICES_MAX, *next = start + experts + 1;
    for (int64_t first = part.row * top; first < part.row_end * top; first += CHOICES_MAX) {
        int64_t n = least(part.row_end * top - first, CHOICES_MAX);
        choices_sort(ids, first, n, experts, list, start, next);
        for (int64_t e = 0; e < experts; e++) {
            many_rows r = {(const char *)k->in[0], (char *)k->out[0], k->pitch[0],
                           k->out_pitch[0],        list + start[e],   start[e + 1] - start[e],
                           expert_share(k)};
            if (r.n > 0)
                many_dots(expert_weights(k, part, e), r, tiles);
        }
    }
}

static __device__ ONE_COPY void k_combine_cuda(const kargs *k, const kthread *, int64_t begin,
                                               int64_t end)
{
    int64_t top = k->size.combine.slots;
    kpart p = kpart_of(k, k->size.combine.width, begin, end);
    int64_t width = p.col_end - p.col;
    for (int64_t i = threadIdx.x; i < (p.row_end - p.row) * width; i += block_threads()) {
        int64_t row = p.row + i / width, col = p.col + i % width;
        const float *w = row_in(k, 1, row); /* [K] */
        float sum = 0;
        for (int64_t j = 0; j < top; j++)
            sum = mad(w[j], row_in(k, 0, row * top + j)[col], sum);
        row_out(k, 0, row)[col] = sum;
    }
}

#endif
