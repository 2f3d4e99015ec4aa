/* experts_runs_cuda.cuh - one row through the matrices of its chosen experts, of weights in blocks and x in 8 bits.
 *
 * Which matrices these are is known when the step begins, too late for the ring (ring_cuda.cuh). So each warp copies ahead for
 * itself: chunks as the ring has them, some of them in scratch of its own, of all that it has of all chosen experts, one
 * after the other. What it does with a chunk is what it would do with one of the ring (linear_stream_cuda.cuh). */
#ifndef WEFT_KERNELS_CUDA_EXPERTS_RUNS_CUDA_CUH
#define WEFT_KERNELS_CUDA_EXPERTS_RUNS_CUDA_CUH

#include "kernels/cuda/experts_cuda.cuh"
#include "kernels/cuda/linear_stream_cuda.cuh"

/* What all warps know. */
struct expert_rows {
    const int32_t *ids;          /* [slots] */
    const uint8_t *const *table; /* [experts] */
    int64_t pitch;
    int row, row_end; /* of each matrix */
    cuda_cut cut;
    int cols;
    const char *w;    /* NULL: matrices begin at multiples of 16, and rows are counted from there */
    int groups, jobs; /* of rows of a matrix, and of all */
};

/* The next chunk of a warp: of which group of rows, counted over all chosen experts, and which of its chunks. STEPS: which expert's, and
 * which of its groups that is, is counted too; else it is divided each time. */
struct expert_chunk {
    int job, chunk;
    int choice, group;
};

template <bool STEPS>
static __device__ inline void chunk_group_on(const expert_rows &j, expert_chunk &c, int by)
{
    c.job += by;
    c.group += by;
    while (STEPS && c.group >= j.groups) {
        c.group -= j.groups;
        c.choice++;
    }
}

template <bool STEPS>
static __device__ inline void chunk_after(const expert_rows &j, expert_chunk &c)
{
    if (++c.chunk == j.cut.chunks) {
        c.chunk = 0;
        chunk_group_on<STEPS>(j, c, warp_count());
    }
}

template <bool STEPS>
static __device__ inline int chunk_choice(const expert_rows &j, const expert_chunk &c)
{
    return STEPS ? c.choice : c.job / j.groups;
}

/* The first row of a group. */
template <bool STEPS>
static __device__ inline int chunk_row(const expert_rows &j, const expert_chunk &c)
{
    return j.row + (STEPS ? c.group : c.job % j.groups) * j.cut.rows;
}

/* On its way to a slot, if there is one; either way a group of copies ends. */
template <bool SKEWS>
static __device__ inline void chunk_copy(const expert_rows &j, const expert_chunk &c,
                                         shared_place slot)
{
    if (c.job < j.jobs) {
        const int first = chunk_row<SKEWS>(j, c);
        const int rows = (int)least(j.row_end - first, j.cut.rows), bytes = (int)j.cut.bytes;
        const char *from = (const char *)j.table[j.ids[chunk_choice<SKEWS>(j, c)]] +
                           first * j.pitch + c.chunk * bytes;
        /* Rows follow on each other; such as begin anywhere always do, and come with what is around them. */
        const bool whole = SKEWS || (j.cut.chunks == 1 && j.pitch == bytes);
        const int skew = SKEWS ? (int)((uintptr_t)from & 15) : 0;
        UNROLLED(1)
        for (int row = 0; row < (whole ? 1 : rows); row++) {
            UNROLLED(4)
            for (int i = lane_index() * 16; i < (whole ? rows : 1) * bytes + skew; i += WARP * 16)
                copy_16(slot + (unsigned)(row * bytes + i), from - skew + row * j.pitch + i);
        }
    }
    copies_group();
}

/* What the warp has of all. */
template <class P>
static __device__ inline void expert_parts(const kargs *k, const expert_rows &j, shared_place x,
                                           int x_bytes, shared_place slots)
{
    const int row_bits = __ffs(j.cut.rows) - 1, lanes = WARP >> row_bits; /* rows: a power of two */
    const int in_row = lane_index() & (lanes - 1),
              slot_bytes = (int)cuda_chunk_bytes((dtype)P::TYPE, j.cut);
    expert_chunk at = {}, next;
    int slot = 0;
    float sum = 0;
    chunk_group_on<P::SKEWS>(j, at, warp_index());
    next = at;
    UNROLL
    for (int i = 0; i < P::AHEAD; i++) {
        chunk_copy<P::SKEWS>(j, next, slots + (unsigned)(i * slot_bytes));
        chunk_after<P::SKEWS>(j, next);
    }
    UNROLLED(1)
    while (at.job < j.jobs) {
        const int choice = chunk_choice<P::SKEWS>(j, at);
        const shared_place from[1] = {slots + (unsigned)(slot * slot_bytes)};
        copies_wait<P::AHEAD - 1>();
        __syncwarp(); /* all have theirs */
        P::dot(j, from, x + (unsigned)(choice * x_bytes), chunk_row<P::SKEWS>(j, at), at.chunk,
               in_row, lanes, &sum);
        used_before(sum);
        __syncwarp(); /* and have used it */
        chunk_copy<P::SKEWS>(j, next, from[0]);
        chunk_after<P::SKEWS>(j, next);
        slot = slot + 1 < P::AHEAD ? slot + 1 : 0;
        if (at.chunk + 1 == j.cut.chunks) {
            const int row = chunk_row<P::SKEWS>(j, at) + (lane_index() >> (5 - row_bits));
            const int e = j.ids[choice];
            lanes_sum<1>(&sum, lanes);
            if (in_row == 0 && row < j.row_end)
                row_out(k, 0, choice)[row] = k->in[3] ? sum + row_in(k, 3, e)[row] : sum;
            sum = 0;
        }
        chunk_after<P::SKEWS>(j, at);
    }
    copies_wait<0>();
}

/* What cannot be copied so: number by number. k is not given on: what has an address is in local memory. */
template <int ACT> static __device__ inline void experts_plain(const kargs *k, const kpart &part)
{
    const int32_t *ids = (const int32_t *)k->in[2];
    const int64_t share = expert_share(k);
    UNROLLED(1)
    for (int64_t i = part.row * k->size.experts.slots; i < part.row_end * k->size.experts.slots;
         i++)
        plain_rows<weight_any, ACT>(plain_job{expert_weights(k, part, ids[i]),
                                              (const char *)row_in(k, 0, i / share), 0,
                                              (char *)row_out(k, 0, i), 0, 1});
}

/* Can matrices be cut into chunks that are whole pieces of 16 bytes? All threads ask alike. */
static __device__ inline bool expert_copies(const kargs *k, const expert_rows &j)
{
    bool all = j.cut.rows > 0;
    for (int i = 0; i < (int)k->size.experts.slots && all; i++)
        all = at_16(j.table[j.ids[i]]);
    return all;
}

/* x in blocks, and runs of it. */
template <class R> struct experts_of_runs {
    typedef part_of_runs<R> part;
    enum { TYPE = R::TYPE, ACT = R::ACT, BLOCKS = 0 };
    static __device__ inline void x(const char *row, int n, char *to)
    {
        x_to_blocks(row, (kact)ACT, n, to);
    }
};

/* x in small blocks, and blocks of rows that begin anywhere. */
template <class B> struct experts_of_blocks {
    typedef part_of_blocks<B> part;
    enum { TYPE = B::TYPE, ACT = ACT_Q8, BLOCKS = 1 };
    static __device__ inline void x(const char *row, int n, char *to)
    {
        x_to_small<B::PAIRS>(row, n, to);
    }
};

template <class R>
static __device__ inline void experts_one(const kargs *k, const kthread *t, int64_t begin,
                                          int64_t end)
{
    const kpart part = kpart_of(k, k->size.experts.out, begin, end);
    const int n = (int)k->size.experts.in, slots = (int)k->size.experts.slots;
    const int x_bytes = (int)cuda_ring_x_bytes((dtype)R::TYPE, n);
    char *x = (char *)t->scratch,
         *chunks = x + (k->size.experts.x_vectors * x_bytes + 15) / 16 * 16;
    expert_rows j = {(const int32_t *)k->in[2],
                     (const uint8_t *const *)k->in[1],
                     k->pitch[1],
                     (int)part.col,
                     (int)part.col_end,
                     cuda_cut_of((dtype)R::TYPE, n, k->pitch[1], k->size.experts.out),
                     n,
                     NULL};
    if (k->size.experts.rows != 1 || warp_count() > RING_WARPS || !is_shared(t->scratch) ||
        cuda_cut_is_blocks((dtype)R::TYPE, j.cut) != R::BLOCKS || !expert_copies(k, j)) {
        experts_plain<R::ACT>(k, part);
        return;
    }
    j.groups = (j.row_end - j.row + j.cut.rows - 1) / j.cut.rows;
    j.jobs = j.groups * slots;
    UNROLLED(1)
    for (int i = 0; i < (int)k->size.experts.x_vectors; i++)
        R::x((const char *)row_in(k, 0, i), n, x + i * x_bytes);
    block_sync();
    const int each = (int)cuda_expert_chunks((dtype)R::TYPE, n, k->size.experts.out);
    expert_parts<typename R::part>(k, j, shared_at(x), k->size.experts.x_vectors > 1 ? x_bytes : 0,
                                   shared_at(chunks) + (unsigned)(warp_index() * each));
}

#define EXPERTS_ONE(type, of)                                                                      \
    static __device__ ONE_COPY void k_experts_##type##_one_cuda(const kargs *k, const kthread *t,  \
                                                                int64_t begin, int64_t end)        \
    {                                                                                              \
        experts_one<of>(k, t, begin, end);                                                         \
    }
EXPERTS_ONE(Q8_0, experts_of_runs<run_Q8_0>)
EXPERTS_ONE(Q4_0, experts_of_runs<run_Q4_0>)
EXPERTS_ONE(MXFP4, experts_of_blocks<block_MXFP4>)
EXPERTS_ONE(Q4_K, experts_of_runs<run_Q4_K>)
EXPERTS_ONE(Q5_K, experts_of_runs<run_Q5_K>)
EXPERTS_ONE(Q6_K, experts_of_runs<run_Q6_K>)
#undef EXPERTS_ONE

#endif
