/* experts_runs_cuda.cuh - one row through the matrices of its chosen experts: weights in blocks with x in 8 bits, and BF16 and F16
 * weights with x as floats.
 *
 * Which matrices these are is known when the step begins, too late for the ring (ring_cuda.cuh). So each warp copies ahead for
 * itself: chunks as the ring has them, some of them in scratch of its own, of all that it has of all chosen experts, one
 * after the other. What it does with a chunk is what it would do with one of the ring (linear_stream_cuda.cuh).
 *
 * x of all choices in 8 bits fits into scratch. Floats may not (Mixtral's are 56 KB for each choice), or would leave the ring no
 * room: they come in passes, of some choices or of some chunks of one, whose sums are then added to those of the pass before. */
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
    int choice;       /* the first */
    int begin;        /* where chunks of a row begin in it, in bytes */
    bool ends;        /* and do they end with it? */
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
        const char *from = (const char *)j.table[j.ids[j.choice + chunk_choice<SKEWS>(j, c)]] +
                           first * j.pitch + j.begin + c.chunk * bytes;
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

/* What the chunks of a row give, added to what those before gave. */
static __device__ inline void expert_row_put(const kargs *k, const expert_rows &j, int choice,
                                             int row, float sum)
{
    float *to = row_out(k, 0, choice) + row;
    sum = j.begin > 0 ? *to + sum : sum;
    *to = k->in[3] && j.ends ? sum + row_in(k, 3, j.ids[choice])[row] : sum;
}

/* Two rows of 16-bit numbers: a lane has eight columns of every 256 of both. */
template <bool F16> struct part_of_halves {
    enum { TYPE = F16 ? DT_F16 : DT_BF16, SKEWS = 0, AHEAD = EXPERT_AHEAD, SUMS = 4, X_COMES = 1 };
    static __device__ inline void dot(const expert_rows &j, const shared_place (&chunk)[1],
                                      shared_place x, int, int i, int, int, float *sum)
    {
        const int bytes = (int)j.cut.bytes;
        halves_add<F16>(chunk[0], bytes, x + i * bytes, j.cols / 8 * 16, (float(*)[2])sum);
    }
};

/* Of a lane's sums those of its row, over some lanes. */
template <class P> static __device__ inline float expert_sum(float *sum, int lanes)
{
    if ((int)P::SUMS > 1)
        return halves_all((const float(*)[2])sum);
    lanes_sum<1>(sum, lanes);
    return sum[0];
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
    float sum[P::SUMS] = {};
    chunk_group_on<P::SKEWS>(j, at, warp_index());
    next = at;
    UNROLL
    for (int i = 0; i < P::AHEAD; i++) {
        chunk_copy<P::SKEWS>(j, next, slots + (unsigned)(i * slot_bytes));
        chunk_after<P::SKEWS>(j, next);
    }
    if (P::X_COMES) { /* all have asked for theirs before */
        copies_wait<P::AHEAD>();
        block_sync();
    }
    UNROLLED(1)
    while (at.job < j.jobs) {
        const int choice = chunk_choice<P::SKEWS>(j, at);
        const shared_place from[1] = {slots + (unsigned)(slot * slot_bytes)};
        copies_wait<P::AHEAD - 1>();
        __syncwarp(); /* all have theirs */
        P::dot(j, from, x + (unsigned)(choice * x_bytes), chunk_row<P::SKEWS>(j, at), at.chunk,
               in_row, lanes, sum);
        UNROLL
        for (int i = 0; i < P::SUMS; i++)
            used_before(sum[i]);
        __syncwarp(); /* and have used it */
        chunk_copy<P::SKEWS>(j, next, from[0]);
        chunk_after<P::SKEWS>(j, next);
        slot = slot + 1 < P::AHEAD ? slot + 1 : 0;
        if (at.chunk + 1 == j.cut.chunks) {
            const int row = chunk_row<P::SKEWS>(j, at) + (lane_index() >> (5 - row_bits));
            const float all = expert_sum<P>(sum, lanes);
            if (in_row == 0 && row < j.row_end)
                expert_row_put(k, j, j.choice + choice, row, all);
            UNROLL
            for (int i = 0; i < P::SUMS; i++)
                sum[i] = 0;
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

static __device__ inline expert_rows expert_rows_of(const kargs *k, const kpart &part, dtype type)
{
    const int64_t n = k->size.experts.in;
    expert_rows j = {};
    j.ids = (const int32_t *)k->in[2];
    j.table = (const uint8_t *const *)k->in[1];
    j.pitch = k->pitch[1];
    j.row = (int)part.col;
    j.row_end = (int)part.col_end;
    j.cut = cuda_cut_of(type, n, j.pitch, k->size.experts.out);
    j.cols = (int)n;
    j.ends = true;
    return j;
}

/* Has the block room for chunks, and can matrices be cut into such that are whole pieces of 16 bytes? All threads ask alike. */
static __device__ inline bool expert_copies(const kargs *k, const kthread *t, const expert_rows &j)
{
    bool all = k->size.experts.rows == 1 && warp_count() <= RING_WARPS && is_shared(t->scratch) &&
               j.cut.rows > 0;
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
    expert_rows j = expert_rows_of(k, part, (dtype)R::TYPE);
    if (cuda_cut_is_blocks((dtype)R::TYPE, j.cut) != R::BLOCKS || !expert_copies(k, t, j)) {
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

/* n floats on their way to where x_to_halves has them; from memory that copies cannot come from they are there at once. */
static __device__ inline void experts_x(const char *row, int n, shared_place x)
{
    const int quads = n / 4;
    const bool far = copies_from(row);
    UNROLLED(1)
    for (int i = (int)threadIdx.x; i < quads; i += block_threads()) {
        const shared_place to = x + (unsigned)((i % 2 * (quads / 2) + i / 2) * 16);
        if (far)
            copy_16(to, row + i * 16);
        else
            shared_put(to, *(const bytes16 *)(row + i * 16));
    }
}

template <bool F16>
static __device__ inline void experts_one_halves(const kargs *k, const kthread *t, int64_t begin,
                                                 int64_t end)
{
    typedef part_of_halves<F16> P;
    const kpart part = kpart_of(k, k->size.experts.out, begin, end);
    const int n = (int)k->size.experts.in, slots = (int)k->size.experts.slots;
    const int vectors = (int)k->size.experts.x_vectors, share = vectors > 1 ? 1 : slots;
    char *x = (char *)t->scratch, *chunks = x + cuda_expert_x_bytes((dtype)P::TYPE, n, vectors);
    const int each = (int)cuda_expert_chunks((dtype)P::TYPE, n, k->size.experts.out);
    const expert_rows all = expert_rows_of(k, part, (dtype)P::TYPE);
    if (!expert_copies(k, t, all) || !at_16(k->in[0]) || k->pitch[0] % 16 != 0) {
        experts_plain<ACT_F32>(k, part);
        return;
    }
    const int x_bytes = n * 4, most = x_bytes < EXPERT_X ? EXPERT_X / x_bytes : 1; /* vectors */
    const int choices = least(most, vectors) * share, room = EXPERT_X / (2 * all.cut.bytes);
    UNROLLED(1)
    for (int choice = 0; choice < slots; choice += choices) {
        UNROLLED(1)
        for (int chunk = 0; chunk < all.cut.chunks; chunk += room) {
            expert_rows j = all;
            const int here = (int)least(slots - choice, choices);
            j.choice = choice;
            j.begin = chunk * all.cut.bytes;
            j.cut.chunks = (uint16_t)least(all.cut.chunks - chunk, room);
            j.ends = chunk + j.cut.chunks == all.cut.chunks;
            j.cols = j.cut.chunks * all.cut.bytes / 2;
            j.groups = (j.row_end - j.row + j.cut.rows - 1) / j.cut.rows;
            j.jobs = j.groups * here;
            block_sync(); /* x of the pass before has been used */
            UNROLLED(1)
            for (int i = 0; i < here / share; i++)
                experts_x((const char *)row_in(k, 0, choice / share + i) + j.begin * 2, j.cols,
                          shared_at(x) + (unsigned)(i * x_bytes));
            copies_group();
            expert_parts<P>(k, j, shared_at(x), share > 1 ? 0 : x_bytes,
                            shared_at(chunks) + (unsigned)(warp_index() * each));
        }
    }
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

#define EXPERTS_ONE(type)                                                                          \
    static __device__ ONE_COPY void k_experts_##type##_one_cuda(const kargs *k, const kthread *t,  \
                                                                int64_t begin, int64_t end)        \
    {                                                                                              \
        experts_one_halves<DT_##type == DT_F16>(k, t, begin, end);                                 \
    }
EXPERTS_ONE(BF16)
EXPERTS_ONE(F16)
#undef EXPERTS_ONE

#endif
