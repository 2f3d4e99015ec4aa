/* squares_cuda.cuh - weft_squares: a phase whose steps are all linear by square (linear_mma_cuda.cuh has the squares, the stages
 * and what fills them).
 *
 * A third of a block's warps fills stages, the others multiply them: neither waits for more than the stage it needs. A stage has
 * two barriers in shared memory: `full` counts those who have filled it, `empty` the warps that have multiplied it. Blocks take
 * the units of all steps in turn; those who fill are ahead by a ring of stages, of the next unit too. */
#ifndef WEFT_KERNELS_CUDA_SQUARES_CUDA_CUH
#define WEFT_KERNELS_CUDA_SQUARES_CUDA_CUH

#include "kernels/cuda/halves_cuda.cuh"
#include "kernels/cuda/linear_mma_cuda.cuh"
#include "kernels/cuda/phase.h"
#include "kernels/cuda/roles_cuda.cuh"

/* ---- the ring ---- */

enum {
    FILLERS = CUDA_SQUARES_BLOCK / 3, /* threads, the first ones of a block */
    MULTIPLIERS = STRIPS,             /* warps */
};

struct stage_ring {
    char *stages;
    uint64_t *full, *empty; /* [MMA_STAGES] */
    int count;              /* of stages */
    int slot;               /* the stage at hand */
    uint32_t parity;        /* of how often the ring was gone round */
};

/* Cards of sm_90a have room for all stages: there it is a number that the compiler knows. */
static __device__ inline int ring_count(const stage_ring &r)
{
#if defined(__CUDACC__) && defined(__CUDA_ARCH_FEAT_SM90_ALL)
    return MMA_STAGES;
#else
    return r.count;
#endif
}

static __device__ inline void ring_next(stage_ring &r)
{
    r.slot = r.slot + 1 < ring_count(r) ? r.slot + 1 : 0;
    r.parity ^= r.slot == 0;
}

/* Of as many stages as `bytes` have room for; one thread makes its barriers. */
static __device__ inline stage_ring ring_of(char *dynamic, uint64_t *barriers, int64_t bytes)
{
    stage_ring r = {aligned(dynamic), barriers, barriers + MMA_STAGES, (int)cuda_mma_stages(bytes)};
    if (threadIdx.x == 0)
        for (int i = 0; i < ring_count(r); i++) {
            barrier_make(&r.full[i], 2 * FILLERS);
            barrier_make(&r.empty[i], MULTIPLIERS * WARP_ARRIVALS);
        }
    return r;
}

/* ---- units ---- */

/* A square of a step. */
struct square_unit {
    mma_job j;
    int32_t step;
    int type; /* of the weights */
    char *out;
    int64_t out_pitch;
    const float *bias;
    const char *x_down;  /* of halves: inverses, one behind each row of x */
    const float *w_down; /* [columns]; NULL: weights are as stored */
};

/* bf16 of each number of x, by the row of a step: as many as its ACT has (act.h). */
static __device__ inline int x_parts(int32_t row)
{
    const bool exact = row == ROW_k_linear_BF16_exact_cuda || row == ROW_k_linear_F16_exact_cuda;
    const bool near = row == ROW_k_linear_BF16_near_cuda || row == ROW_k_linear_F16_near_cuda;
    return exact ? 3 : near ? 2 : 1;
}

/* bf16 of each weight of a step: two of F16 weights, but where x is rounded to one. */
static __device__ inline int walks_of(const cuda_run &r, int32_t step)
{
    const cuda_shape &s = r.shape[r.step[step].shape];
    return s.k.type[1] == DT_F16 && x_parts(s.row) > 1 ? 2 : 1;
}

/* Bytes of a step's weights in cuda_run.unpacked, as f16 or bf16; 0: they are as stored (cuda_halved_bytes and cuda_unpacked_bytes have
 * the same of a plan). */
static __device__ inline int64_t unpacked_bytes(const cuda_run &r, int32_t step, bool halves)
{
    const kargs &k = r.shape[r.step[step].shape].k;
    if (halves)
        return k.type[1] == DT_BF16 ? cuda_halves_bytes(k.size.linear.out, k.size.linear.in) : 0;
    const bool as_stored = k.type[1] == DT_BF16 || k.size.linear.in % EIGHT != 0;
    return as_stored ? 0 : k.size.linear.out * k.size.linear.in * 2 * walks_of(r, step);
}

/* unpacked: where its weights are as bf16, or NULL. */
static __device__ square_unit square_of(const cuda_run &r, int32_t step, int64_t u,
                                        const char *unpacked)
{
    const cuda_step *s = &r.step[step];
    const cuda_shape *shape = &r.shape[s->shape];
    const int64_t rows = s->rows, out = shape->k.size.linear.out;
    const int64_t down = (rows + MMA_ROWS - 1) / MMA_ROWS;
    square_unit q;
    q.step = step;
    q.type = (int)shape->k.type[1];
    q.j.x = (const char *)s->in[0];
    q.j.w = (const uint8_t *)s->in[1];
    q.j.x_pitch = shape->k.pitch[0];
    q.j.w_pitch = shape->k.pitch[1];
    q.j.n = shape->k.size.linear.in;
    q.j.walks = walks_of(r, step);
    q.j.parts = x_parts(shape->row);
    if (unpacked && unpacked_bytes(r, step, false) > 0) {
        q.type = DT_BF16;
        q.j.w = (const uint8_t *)unpacked;
        q.j.w_pitch = q.j.n * 2 * q.j.walks; /* the first bf16 of a row, then the others */
    }
    q.j.copies = q.type == DT_BF16 && q.j.n % EIGHT == 0 && q.j.w_pitch % 16 == 0 && at_16(q.j.w);
    q.j.row = u % down * MMA_ROWS;
    q.j.row_end = least(q.j.row + MMA_ROWS, rows);
    q.j.col = u / down * MMA_COLS;
    q.j.col_end = least(q.j.col + MMA_COLS, out);
    q.out = (char *)s->out[0];
    q.out_pitch = shape->k.out_pitch[0];
    q.bias = (const float *)s->in[2];
    return q;
}

/* The same of one whose operands are f16. */
static __device__ inline square_unit square_of_halves(const cuda_run &r, int32_t step, int64_t u,
                                                      const char *unpacked)
{
    square_unit q = square_of(r, step, u, NULL);
    const kargs &k = r.shape[r.step[step].shape].k;
    q.type = DT_F16;
    q.j.parts = cuda_halves_parts(q.j.parts == 2 ? ACT_BF2T : ACT_BF3T);
    q.j.walks = 1;
    q.x_down = q.j.x + q.j.n * 2 * q.j.parts;
    q.w_down = NULL;
    if (k.type[1] == DT_BF16) {
        q.j.w = (const uint8_t *)unpacked;
        q.j.w_pitch = q.j.n * 2;
        q.w_down = (const float *)(unpacked + cuda_halves_pad(k.size.linear.out * q.j.n * 2));
    }
    return q;
}

/* Unit u of the phase; false: there are no so many. */
template <bool HALVES>
static __device__ bool square_find(const cuda_run &r, int64_t u, square_unit *out_q)
{
    const cuda_phase p = r.phase[r.first];
    const char *unpacked = r.unpacked;
    for (int32_t i = p.first; i < p.first + p.n_item; i++) {
        const cuda_item &it = r.item[i];
        if (u < it.units) {
            *out_q = HALVES ? square_of_halves(r, it.first, u, unpacked)
                            : square_of(r, it.first, u, unpacked);
            return true;
        }
        u -= it.units;
        unpacked += unpacked ? unpacked_bytes(r, it.first, HALVES) : 0;
    }
    return false;
}

/* Of one walk along the columns. */
static __device__ inline int64_t stages_of(const mma_job &j)
{
    return (j.n + MMA_DEPTH - 1) / MMA_DEPTH * j.parts;
}

/* ---- filling ---- */

/* A line of weights on its way: loaded before it is needed, where the type has loads of its own. */
template <class W> struct coming_line {
    const uint8_t *row;
    int64_t c, n;

    __device__ void load(const uint8_t *row_, int64_t c_, int64_t n_)
    {
        row = row_;
        c = c_;
        n = n_;
    }
    __device__ void get(uint32_t *h) const
    {
        line_of<W>(row, c, n, h);
    }
};

#ifdef __CUDACC__
template <> struct coming_line<weight_Q4_K> {
    line_Q4_K raw;

    __device__ void load(const uint8_t *row, int64_t c, int64_t)
    {
        raw = load_Q4_K(row, c);
    }
    __device__ void get(uint32_t *h) const
    {
        line_of_Q4_K(raw, h);
    }
};
#endif

enum { OWN_LINES = MMA_COLS / FILLERS }; /* of a thread that fills, in a stage */

template <class W>
static __device__ inline void lines_load(const mma_job &j, int64_t at, coming_line<W> *lines)
{
    UNROLL
    for (int i = 0; i < OWN_LINES; i++) {
        const int64_t col = j.col + threadIdx.x + i * FILLERS;
        if (col < j.col_end)
            lines[i].load(j.w + col * j.w_pitch, at, j.n);
    }
}

template <class W>
static __device__ inline void lines_put(const mma_job &j, char *to, const coming_line<W> *lines)
{
    UNROLL
    for (int i = 0; i < OWN_LINES; i++) {
        const int line = (int)threadIdx.x + i * FILLERS;
        uint32_t h[MMA_DEPTH / 2] = {};
        if (j.col + line < j.col_end)
            lines[i].get(h);
        put_line(to, line, h);
    }
}

/* All stages of a walk. */
template <class W, bool LIST> static __device__ void unit_fill(const mma_job &j, stage_ring &r)
{
    const int stages = (int)stages_of(j);
    const mma_copiers c = {
        copier_of(j.x, j.x_pitch, j.row, j.row_end, j.parts, (int)threadIdx.x, FILLERS),
        copier_of(j.w, j.w_pitch, j.col, j.col_end, 1, (int)threadIdx.x, FILLERS)};
    coming_line<W> lines[OWN_LINES];
    if (!j.copies)
        lines_load<W>(j, 0, lines);
    for (int i = 0; i < stages; i++, ring_next(r)) {
        char *x = r.stages + r.slot * MMA_STAGE_BYTES, *w = x + MMA_ROWS * MMA_LINE;
        barrier_wait(&r.empty[r.slot], r.parity ^ 1);
        copy_stage<LIST>(j, c, x, w, i);
        barrier_arrive_copied(shared_at(&r.full[r.slot]));
        if (!j.copies) {
            lines_put<W>(j, w, lines);
            if (i + 1 < stages)
                lines_load<W>(j, (i + 1) / j.parts * MMA_DEPTH, lines);
            stage_done();
        }
        barrier_arrive(&r.full[r.slot]);
    }
}

/* Weights of types that are not listed here are bf16 by now: one type more would cost all others registers. */
static __device__ void squares_fill(const cuda_run &run, stage_ring r)
{
    square_unit q;
    int walk = 0;
    for (int u = (int)blockIdx.x; square_find<false>(run, u, &q);) {
        const bool last = walk + 1 == q.j.walks;
        q.j.w += walk * q.j.n * 2; /* of weights that have been made bf16 */
        switch (q.type) {
#define UNIT_FILL(type)                                                                            \
    case DT_##type:                                                                                \
        unit_fill<weight_##type, false>(q.j, r);                                                   \
        break;
            WEIGHT_TYPES_MMA(UNIT_FILL)
#undef UNIT_FILL
        }
        walk = last ? 0 : walk + 1;
        u += last ? (int)gridDim.x : 0;
    }
}

/* ---- multiplying ---- */

/* rows, cols: that there are of the square. */
static __device__ inline void unit_multiply(int stages, stage_ring &r, int strip, int rows,
                                            int cols, float (*sum)[4])
{
    int before = -1;
    for (int i = 0; i < stages; i++, ring_next(r)) {
        char *x = r.stages + r.slot * MMA_STAGE_BYTES;
        barrier_wait(&r.full[r.slot], r.parity);
        stage_done();
        add_products(sum, x, x + MMA_ROWS * MMA_LINE, strip, rows, cols);
        products_wait<1>();
        const int done = PRODUCTS_LATE ? before : r.slot;
        if (done >= 0)
            warp_done(&r.empty[done]);
        before = r.slot;
    }
    products_wait<0>();
    sums_done(sum);
    if (PRODUCTS_LATE)
        warp_done(&r.empty[before]);
}

static __device__ inline void add_bias(const square_unit &q, float (*sum)[4])
{
    const int64_t col = q.j.col + lane_index() % 4 * 2;
    UNROLL
    for (int i = 0; i < FRAGS; i++) {
        const int64_t c = col + i * FRAG_COLS;
        const float one = c < q.j.col_end ? q.bias[c] : 0;
        const float two = c + 1 < q.j.col_end ? q.bias[c + 1] : 0;
        sum[i][0] += one;
        sum[i][1] += two;
        sum[i][2] += one;
        sum[i][3] += two;
    }
}

static __device__ inline void unit_put(const square_unit &q, int strip, float (*sum)[4])
{
    const int lane = lane_index();
    const int rows = (int)(q.j.row_end - q.j.row) - strip * STRIP_ROWS - lane / 4;
    const int cols = (int)(q.j.col_end - q.j.col) - lane % 4 * 2;
    float *to = (float *)(q.out + (q.j.row + strip * STRIP_ROWS + lane / 4) * q.out_pitch) +
                q.j.col + lane % 4 * 2;
    float *to_8 = (float *)((char *)to + 8 * q.out_pitch);
    const bool pairs = q.out_pitch % 8 == 0 && (uintptr_t)q.out % 8 == 0;
    UNROLL
    for (int i = 0; i < FRAGS; i++) {
        const int c = i * FRAG_COLS;
        UNROLL
        for (int e = 0; e < 2; e++) {
            float *at = (e ? to_8 : to) + c;
            if (e * 8 >= rows || c >= cols)
                continue;
            if (pairs && c + 1 < cols) {
                *(bytes8 *)at = bytes8{{bits_of(sum[i][e * 2]), bits_of(sum[i][e * 2 + 1])}};
                continue;
            }
            at[0] = sum[i][e * 2];
            if (c + 1 < cols)
                at[1] = sum[i][e * 2 + 1];
        }
    }
}

static __device__ void squares_multiply(const cuda_run &run, stage_ring r, int strip)
{
    uint64_t *ns = strip == 0 && lane_index() == 0 ? times_of(run, 1) : NULL;
    square_unit q;
    for (int u = (int)blockIdx.x; square_find<false>(run, u, &q); u += (int)gridDim.x) {
        const uint64_t start = ns ? clock_now() : 0;
        float sum[FRAGS][4] = {};
        unit_multiply((int)stages_of(q.j) * q.j.walks, r, strip, (int)(q.j.row_end - q.j.row),
                      (int)(q.j.col_end - q.j.col), sum);
        square_find<false>(run, u, &q); /* once more: registers are for the sums */
        if (q.bias)
            add_bias(q, sum);
        unit_put(q, strip, sum);
        if (ns)
            ns[q.step] += clock_now() - start;
    }
}

/* ---- weights as bf16, or as f16 ---- */

static __device__ inline bytes16 eight_bf16(const float *v)
{
    return bytes16{{bf16_pair(v[0], v[1]), bf16_pair(v[2], v[3]), bf16_pair(v[4], v[5]),
                    bf16_pair(v[6], v[7])}};
}

/* PARTS: bf16 of each, all first ones of a row before the others. */
template <class W, int PARTS>
static __device__ void matrix_unpack(const uint8_t *w, dtype type, int64_t pitch, uint32_t n,
                                     uint32_t rows, char *to)
{
    const uint32_t eights = n / EIGHT, all = eights * rows;
    for (uint32_t i = blockIdx.x * block_threads() + threadIdx.x; i < all;
         i += gridDim.x * block_threads()) {
        const uint32_t row = i / eights, c = (i - row * eights) * EIGHT;
        eight_floats v = eight_as<W>(type, w + row * pitch, c, n);
        char *at = to + ((int64_t)i + (PARTS - 1) * (int64_t)row * eights) * 16;
        *(bytes16 *)at = eight_bf16(v.w);
        if (PARTS > 1) {
            UNROLL
            for (int e = 0; e < EIGHT; e++)
                v.w[e] = bf16_rest(v.w[e]);
            *(bytes16 *)(at + (int64_t)eights * 16) = eight_bf16(v.w);
        }
    }
}

static __device__ inline void weights_unpack(const cuda_run &r, int32_t step, char *to)
{
    const kargs &k = r.shape[r.step[step].shape].k;
    const uint8_t *w = (const uint8_t *)r.step[step].in[1];
    const uint32_t n = (uint32_t)k.size.linear.in, rows = (uint32_t)k.size.linear.out;
    switch ((int)k.type[1]) {
#define MATRIX_UNPACK(type)                                                                        \
    case DT_##type:                                                                                \
        matrix_unpack<weight_##type, 1>(w, DT_##type, k.pitch[1], n, rows, to);                    \
        break;
        WEIGHT_BLOCKS_OFTEN(MATRIX_UNPACK)
#undef MATRIX_UNPACK
    case DT_F16:
        if (walks_of(r, step) > 1)
            matrix_unpack<weight_F16, 2>(w, DT_F16, k.pitch[1], n, rows, to);
        else
            matrix_unpack<weight_F16, 1>(w, DT_F16, k.pitch[1], n, rows, to);
        break;
    default:
        matrix_unpack<weight_any, 1>(w, k.type[1], k.pitch[1], n, rows, to);
    }
}

/* Those of a phase: bf16, or f16. */
template <bool HALVES> static __device__ void unpack_run(const cuda_run &r)
{
    const cuda_phase p = r.phase[r.first];
    uint64_t *ns = threadIdx.x == 0 ? times_of(r, CUDA_UNPACK_BLOCKS) : NULL;
    char *to = r.unpacked;
    for (int32_t i = p.first; i < p.first + p.n_item; i++) {
        const int32_t step = r.item[i].first;
        const uint64_t start = ns ? clock_now() : 0;
        const int64_t bytes = unpacked_bytes(r, step, HALVES);
        if (bytes > 0 && HALVES)
            weights_halve(r.shape[r.step[step].shape].k, r.step[step].in[1], to);
        else if (bytes > 0)
            weights_unpack(r, step, to);
        to += bytes;
        if (ns)
            ns[step] += clock_now() - start;
    }
}

/* ---- a block ---- */

static __device__ void squares_run(const cuda_run &run, char *dynamic)
{
    __shared__ uint64_t barriers[2 * MMA_STAGES];
    const stage_ring r = ring_of(dynamic, barriers, (int64_t)run.block_bytes);
    block_sync();
    REGISTERS_FIT(104, 200);
    if (threadIdx.x < FILLERS) {
        REGISTERS_GIVE(104);
        squares_fill(run, r);
    } else {
        REGISTERS_TAKE(200);
        squares_multiply(run, r, warp_index() - FILLERS / WARP);
    }
}

#endif
