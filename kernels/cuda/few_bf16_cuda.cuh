/* few_bf16_cuda.cuh - 2 to FEW_ROWS_MAX rows of x times w transposed, for BF16 and F16 weights, by matrix instructions.
 *
 * Warps share out the columns, and a block's rows of weights are walked along in groups, as in linear_few_cuda.cuh. A stage of a
 * warp is one or two runs of FEW_COLS columns: of all rows of x, and of the rows of weights of a group. It copies stages into memory
 * of its own, ahead of use, and waits for nobody but itself until its columns are done. Nothing but sums stays in registers from one
 * stage to the next.
 *
 * From nine rows on a number of x is two bf16, which lose at most 2^-17 of it. They are split once, by a step of its own (ACT_BF2T):
 * splitting in every block for itself took two thirds of all instructions. Up to eight rows that is little, and the step would have two
 * more phases in a layer: lanes split what they load, into three bf16, which lose nothing. With --exact a number is three from nine rows
 * on too (ACT_BF3T).
 *
 * F16 weights are stored in as many bytes, and lanes make two bf16 of each when they have loaded it: the nearest one, of eight bits, and
 * the rest, of three. Of the products of parts the least is left out: with three parts of x it is below a quarter of f32's last bit; with
 * two it is at most 2^-16, and 2^-19 as a rule, as what two parts lose of x.
 *
 * With --round-bf16 a number of x is one bf16 (ACT_BF1), and so is an F16 weight, from nine rows on: half the products, and half of what
 * each block reads of x.
 *
 * In a slot piece p of 16 bytes of a row is at p ^ row / 2 % 4, so that the eight rows that an instruction loads at once lie in
 * different banks: rows are 64 bytes apart, or three times that. Rows of two parts are 128 bytes apart, and p, of both, is at
 * p ^ row % 8; rows of floats too, and p is at p ^ row % 4 * 2. */
#ifndef WEFT_KERNELS_CUDA_FEW_BF16_CUDA_CUH
#define WEFT_KERNELS_CUDA_FEW_BF16_CUDA_CUH

#include "kernels/cuda/few_job_cuda.cuh"

enum {
    FEW_COLS = 32,             /* of a run, of which a stage has one or two */
    FEW_W_ROW = FEW_COLS * 2,  /* bytes of a row of weights in a slot */
    FEW_GROUP = 4,             /* tiles of a group, at most */
    FEW_STEPS = FEW_COLS / 16, /* instructions deep */
    FEW_STAGES_MAX = 6
};

/* The types, for what is the same of all (linear_few_cuda.cuh): with x split; as floats, of at most FEW_N rows, which lanes split; and
 * rounded. PARTS: bf16 that stand for a number of x; X_ROW: bytes of a row of x in a slot. */
template <class W, int TYPE_, int ACT_, int ROWS_MAX_> struct few_16 {
    typedef W weight;
    enum { TYPE = TYPE_, ACT = ACT_, COLS = EIGHT, ROWS_MAX = ROWS_MAX_ };
    enum { PARTS = ACT_ == ACT_BF1 ? 1 : ACT_ == ACT_BF2T ? 2 : 3 };
    enum { X_ROW = ACT_ == ACT_F32 ? FEW_COLS * 4 : FEW_COLS * 2 * PARTS };
};
typedef few_16<weight_BF16, DT_BF16, ACT_BF3T, FEW_ROWS_MAX> few_BF16;
typedef few_16<weight_BF16, DT_BF16, ACT_F32, FEW_N> few_BF16_floats;
typedef few_16<weight_BF16, DT_BF16, ACT_BF2T, FEW_ROWS_MAX> few_BF16_near;
typedef few_16<weight_BF16, DT_BF16, ACT_BF1, FEW_ROWS_MAX> few_BF16_round;
typedef few_16<weight_F16, DT_F16, ACT_BF3T, FEW_ROWS_MAX> few_F16;
typedef few_16<weight_F16, DT_F16, ACT_F32, FEW_N> few_F16_floats;
typedef few_16<weight_F16, DT_F16, ACT_BF2T, FEW_ROWS_MAX> few_F16_near;
typedef few_16<weight_F16, DT_F16, ACT_BF1, FEW_ROWS_MAX> few_F16_round;

/* What a warp copies next, and how many columns it has. */
struct few_stages {
    int tiles, group_max; /* of all weights; of a group */
    int warp, cols;       /* which warp it is; its runs of columns in a row of weights */
    int runs, part;       /* of FEW_COLS columns in a stage, and the bytes of each */
    int stages, bytes;    /* slots, and the bytes of each */
    int group, col;       /* the next: first tile of its group, and which run of the warp */
    int left, put;        /* so many more, and its slot */
    const char *x, *w;    /* the lane's piece of its first row, in the first column; of the group */
};

/* Lanes that have a piece each of a part of a row of x, and the row of a lane. */
template <class R> static __device__ inline int few_x_lanes(void)
{
    return (kact)R::ACT == ACT_F32 ? R::X_ROW / 16 : FEW_W_ROW / 16;
}

template <class R> static __device__ inline int few_x_row(void)
{
    return lane_index() / few_x_lanes<R>();
}

/* The first column of run i: two of them together have whole lines of the card's memory. */
static __device__ inline int few_stage_col(int warp, int i)
{
    const int warps = warp_count() < FEW_WARPS ? warp_count() : (int)FEW_WARPS;
    return ((i / 2 * warps + warp) * 2 + i % 2) * FEW_COLS;
}

/* Where a group is small, to wait for a stage, copy the next and count takes longer than to multiply it: it has two runs of
 * columns then. */
template <int NT> static __device__ inline int few_runs(int group)
{
    return NT == 1 && group <= 2 ? 2 : 1;
}

template <class R, int NT> static __device__ inline few_stages few_stages_of(const few_job &j)
{
    few_stages s = {};
    const int warps = warp_count() < FEW_WARPS ? warp_count() : (int)FEW_WARPS;
    const int pair = 2 * FEW_COLS, pairs = j.n / pair / warps; /* those that every warp has */
    s.warp = few_warp();
    const int rest = j.n - (pairs * warps + s.warp) * pair;
    s.tiles = (j.w_rows + FEW_TILE - 1) / FEW_TILE;
    s.group_max = s.tiles < FEW_GROUP ? s.tiles : (int)FEW_GROUP;
    if (s.warp < warps)
        s.cols = pairs * 2 + (rest > FEW_COLS ? 2 : rest > 0 ? 1 : 0);
    s.runs = few_runs<NT>(s.group_max);
    s.part = NT * FEW_N * R::X_ROW + s.group_max * FEW_TILE * FEW_W_ROW;
    s.bytes = s.runs * s.part;
    s.stages = FEW_RING_BYTES / s.bytes;
    s.stages = s.stages < FEW_STAGES_MAX ? s.stages : (int)FEW_STAGES_MAX;
    s.left = (s.cols + s.runs - 1) / s.runs * ((s.tiles + FEW_GROUP - 1) / FEW_GROUP);
    s.x = j.x + few_x_row<R>() * (int64_t)j.x_pitch + lane_index() % few_x_lanes<R>() * 16;
    s.w = j.w + (int64_t)(lane_index() / 4) * j.w_pitch + lane_index() % 4 * 16;
    return s;
}
static_assert(2 * (FEW_ROWS_MAX * few_BF16::X_ROW + FEW_GROUP * FEW_TILE * FEW_W_ROW) <=
                  FEW_RING_BYTES,
              "a stage is copied while another one is used");

/* Where a piece of a row is in it. */
static __device__ inline uint32_t few_piece(int row, int piece)
{
    return (uint32_t)((piece ^ (row >> 1 & 3)) << 4);
}

/* The same of a part of a row of x, by which the other parts' pieces are found (few_x_part). */
template <class R> static __device__ inline uint32_t few_piece_x(int row, int piece)
{
    return R::PARTS == 2 ? (uint32_t)((piece ^ (row & 7)) << 4) : few_piece(row, piece);
}

/* Where a piece of the first part is another part has its own. */
template <class R> static __device__ inline uint32_t few_x_part(uint32_t at, int part)
{
    return R::PARTS == 2 ? at ^ (uint32_t)(part * FEW_W_ROW) : at + (uint32_t)(part * FEW_W_ROW);
}

static __device__ inline uint32_t few_piece_floats(int row, int piece)
{
    return (uint32_t)((piece ^ (row & 3) << 1) << 4);
}

/* x of a run that begins with column `col`. Rows that are not there are zeros. */
template <class R, int NT>
static __device__ inline void few_stage_x(const few_job &j, const few_stages &s, int col,
                                          shared_place slot)
{
    /* Rows of floats go four at a time, others eight, part by part; where their pieces are is the same so many rows later. */
    enum {
        FLOATS = (kact)R::ACT == ACT_F32,
        ROWS = FLOATS ? 4 : (int)FEW_N,
        PARTS = FLOATS ? 1 : (int)R::PARTS
    };
    const int row = few_x_row<R>(), p = lane_index() % few_x_lanes<R>();
    const bool cols = !FLOATS || col + p * 4 < j.n; /* others are filled up */
    const uint32_t to = FLOATS ? few_piece_floats(row, p) : few_piece_x<R>(row, p);
    UNROLL
    for (int i = 0; i < NT * FEW_N / ROWS; i++)
        UNROLL
    for (int part = 0; part < PARTS; part++)
        few_copy(slot + ((uint32_t)((i * ROWS + row) * R::X_ROW) + few_x_part<R>(to, part)),
                 s.x + (col * (R::X_ROW / FEW_COLS) + i * ROWS * j.x_pitch + part * FEW_W_ROW),
                 cols && i * ROWS + row < j.rows);
}

/* Run i of the warp. Rows and columns that are not there are zeros. */
template <class R, int NT>
static __device__ inline void few_run_copy(const few_job &j, const few_stages &s, int i,
                                           shared_place slot)
{
    const int row = lane_index() / 4, p = lane_index() % 4;
    const int col = few_stage_col(s.warp, i);
    const shared_place to = slot + (uint32_t)(NT * FEW_N * R::X_ROW) + few_piece(row, p);
    const int rows = col + p * 8 < j.n ? j.w_rows - s.group * FEW_TILE : 0;
    few_stage_x<R, NT>(j, s, col, slot);
    UNROLL
    for (int e = 0; e < 2 * FEW_GROUP; e++)
        if (e * FEW_N < s.group_max * FEW_TILE)
            few_copy_line(to + (uint32_t)((e * FEW_N + row) * FEW_W_ROW),
                          s.w + (col * 2 + e * FEW_N * j.w_pitch), e * FEW_N + row < rows);
}

/* The next stage, if there is one; either way a group of copies ends. */
template <class R, int NT>
static __device__ inline void few_stage_copy(const few_job &j, few_stages &s, shared_place slots)
{
    if (s.left > 0) {
        const shared_place slot = slots + (uint32_t)(s.put * s.bytes);
        few_run_copy<R, NT>(j, s, s.col, slot);
        if (s.runs > 1 && s.col + 1 < s.cols)
            few_run_copy<R, NT>(j, s, s.col + 1, slot + (uint32_t)s.part);
        s.left--;
        s.put = s.put + 1 == s.stages ? 0 : s.put + 1;
        s.col += s.runs;
        if (s.col >= s.cols) {
            s.col = 0;
            s.group += FEW_GROUP;
            s.w += FEW_GROUP * FEW_TILE * (int64_t)j.w_pitch;
        }
    }
    copies_group();
}

/* ---- products ---- */

/* What a lane has of x for one step: parts of NT times eight rows. Four matrices are loaded at once, those of two times eight
 * rows; of eight rows alone those of both steps. */
template <class R, int NT> struct few_x_parts {
    uint32_t b[R::PARTS][NT > 1 ? NT : FEW_STEPS][2];
};

/* Lanes point to rows of matrices: in the order first half, other half of the columns of a step. Of floats a lane loads what it has
 * itself: row lane / 4, columns lane % 4 * 2 and 1 more of each 8. */
template <class R, int NT> static __device__ inline uint32_t few_x_line(void)
{
    if ((kact)R::ACT == ACT_F32) {
        const int row = lane_index() / 4;
        return (uint32_t)(row * R::X_ROW + lane_index() % 2 * 8) +
               few_piece_floats(row, lane_index() / 2 % 2);
    }
    const int matrix = lane_index() / 8;
    const int row = lane_index() % 8 + (NT > 1 ? matrix / 2 * FEW_N : 0);
    const int piece = NT > 1 ? matrix % 2 : matrix;
    return (uint32_t)(row * R::X_ROW) + few_piece_x<R>(row, piece);
}

/* Two numbers, each as the sum of three bf16. What is left of one without the first is 0 where that is no number; without the
 * second it always is one. */
static __device__ inline void few_split(float low, float high, uint32_t *part)
{
    part[0] = bf16_pair(low, high);
    low -= float_of(part[0] << 16);
    high -= float_of(part[0] & 0xffff0000u);
    low = fabsf(low) < INFINITY ? low : 0;
    high = fabsf(high) < INFINITY ? high : 0;
    part[1] = bf16_pair(low, high);
    part[2] = bf16_pair(low - float_of(part[1] << 16), high - float_of(part[1] & 0xffff0000u));
}

/* All steps of eight rows of floats. */
template <class R>
static __device__ inline void few_x_split(few_x_parts<R, 1> &x, shared_place slot, uint32_t line)
{
    bytes8 from[2 * FEW_STEPS];
    UNROLL
    for (uint32_t i = 0; i < 2 * FEW_STEPS; i++)
        from[i] = shared_8(slot + (line ^ i << 5));
    UNROLL
    for (int i = 0; i < 2 * FEW_STEPS; i++) {
        uint32_t part[R::PARTS];
        few_split(float_of(from[i].w[0]), float_of(from[i].w[1]), part);
        UNROLL
        for (int p = 0; p < R::PARTS; p++)
            x.b[p][i / 2][i % 2] = part[p];
    }
}

template <class R, int NT>
static __device__ inline void few_x_load(few_x_parts<R, NT> &x, shared_place slot, uint32_t line,
                                         uint32_t step)
{
    UNROLL
    for (int part = 0; part < R::PARTS; part++)
        UNROLL
    for (int i = 0; i < (NT + 1) / 2; i++)
        few_frags(x.b[part][2 * i], slot + few_x_part<R>(line ^ step << 5, part) +
                                        (uint32_t)(i * 2 * FEW_N * R::X_ROW));
}

/* Sums that do not wait for each other: with eight rows those of the parts. */
template <class R, int NT> struct few_group_sums {
    enum { OF = NT > 1 ? 1 : (int)R::PARTS };
    float of[FEW_GROUP][OF][NT][4];
};

/* Words of two f16 each as words of bf16: of each number the nearest, and what is left, which is exact too. */
static __device__ inline void few_f16_parts(const uint32_t *w, uint32_t *first, uint32_t *rest)
{
    UNROLL
    for (int i = 0; i < 4; i++) {
        const float low = from_f16((uint16_t)w[i]), high = from_f16((uint16_t)(w[i] >> 16));
        first[i] = bf16_pair(low, high);
        const float low_rest = low - float_of(first[i] << 16);
        const float high_rest = high - float_of(first[i] & 0xffff0000u);
        rest[i] = __byte_perm(bits_of(low_rest), bits_of(high_rest), 0x7632);
    }
}

/* The same as one bf16 for each number. */
static __device__ inline void few_f16_round(const uint32_t *w, uint32_t *to)
{
    UNROLL
    for (int i = 0; i < 4; i++)
        to[i] = bf16_pair(from_f16((uint16_t)w[i]), from_f16((uint16_t)(w[i] >> 16)));
}

/* What 16 by 16 weights add to the sums of NT times eight rows, of which there are OF of each that do not wait for each other; step:
 * which of x, where it has those of both. */
template <class R, int NT, int OF = few_group_sums<R, NT>::OF>
static __device__ inline void few_tile_add(float (*sum)[NT][4], const uint32_t *w,
                                           const few_x_parts<R, NT> &x, int step)
{
    enum { PARTS = R::PARTS };
    uint32_t first[4], rest[4];
    if constexpr ((dtype)R::TYPE == DT_F16 && PARTS == 1)
        few_f16_round(w, first);
    else if constexpr ((dtype)R::TYPE == DT_F16)
        few_f16_parts(w, first, rest);
    UNROLL
    for (int part = 0; part < PARTS; part++)
        UNROLL
    for (int n = 0; n < NT; n++)
        few_mma_bf16(sum[part % OF][n], (dtype)R::TYPE == DT_F16 ? first : w,
                     x.b[part][NT > 1 ? n : step]);
    if constexpr ((dtype)R::TYPE == DT_F16 && PARTS > 1)
        UNROLL
    for (int part = 0; part < PARTS - 1; part++)
        UNROLL
    for (int n = 0; n < NT; n++)
        few_mma_bf16(sum[(part + 1) % OF][n], rest, x.b[part][NT > 1 ? n : step]);
}

/* A run of columns of a group. */
template <class R, int NT>
static __device__ inline void few_run_multiply(shared_place slot, uint32_t x_line, uint32_t w_line,
                                               int here, few_group_sums<R, NT> &sum)
{
    few_x_parts<R, NT> x;
    const shared_place weights = slot + (uint32_t)(NT * FEW_N * R::X_ROW);
    if constexpr ((kact)R::ACT == ACT_F32)
        few_x_split<R>(x, slot, x_line);
    UNROLL
    for (uint32_t step = 0; step < FEW_STEPS; step++) {
        if ((kact)R::ACT != ACT_F32 && (NT > 1 || step == 0))
            few_x_load<R, NT>(x, slot, x_line, step);
        UNROLL
        for (int t = 0; t < FEW_GROUP; t++) {
            if (t >= here)
                continue;
            uint32_t w[4];
            few_frags(w, weights + (w_line ^ step << 5) + (uint32_t)(t * FEW_TILE * FEW_W_ROW));
            few_tile_add<R, NT>(sum.of[t], w, x, (int)step);
        }
    }
}

/* Two runs of one or two tiles with eight rows: what is loaded of a tile comes before its products. */
template <class R>
static __device__ inline void few_runs_multiply(shared_place slot, uint32_t part, uint32_t x_line,
                                                uint32_t w_line, int here,
                                                few_group_sums<R, 1> &sum)
{
    few_x_parts<R, 1> x[2];
    UNROLL
    for (uint32_t i = 0; i < 2; i++) {
        if constexpr ((kact)R::ACT == ACT_F32)
            few_x_split<R>(x[i], slot + i * part, x_line);
        else
            few_x_load<R, 1>(x[i], slot + i * part, x_line, 0);
    }
    UNROLL
    for (int t = 0; t < 2; t++) {
        if (t >= here)
            continue;
        const shared_place at = slot + (uint32_t)(FEW_N * R::X_ROW + t * FEW_TILE * FEW_W_ROW);
        uint32_t w[2 * FEW_STEPS][4];
        UNROLL
        for (uint32_t i = 0; i < 2 * FEW_STEPS; i++)
            few_frags(w[i], at + i / FEW_STEPS * part + (w_line ^ i % FEW_STEPS << 5));
        UNROLL
        for (int i = 0; i < 2 * FEW_STEPS; i++)
            few_tile_add<R, 1>(sum.of[t], w[i], x[i / FEW_STEPS], i % FEW_STEPS);
    }
}

template <class R, int NT> static __device__ FEW_COPY void few_stream_bf16(const few_job j)
{
    enum { MEET = FEW_N_MAX / NT }; /* tiles whose sums there is room for */
    few_stages s = few_stages_of<R, NT>(j);
    const shared_place sums = shared_at(j.scratch);
    const shared_place slots =
        sums + FEW_SUM_BYTES + (unsigned)(s.warp % FEW_WARPS) * FEW_RING_BYTES;
    const uint32_t x_line = few_x_line<R, NT>();
    const int w_row = lane_index() % FEW_TILE;
    const uint32_t w_line = (uint32_t)(w_row * FEW_W_ROW) + few_piece(w_row, lane_index() / 16);
    int get = 0;
    UNROLLED(1)
    for (int i = 0; i < s.stages; i++)
        few_stage_copy<R, NT>(j, s, slots);
    few_wait(s.stages - 1);
    __syncwarp();
    UNROLLED(1)
    for (int group = 0; group < s.tiles; group += FEW_GROUP) {
        const int here = s.tiles - group < FEW_GROUP ? s.tiles - group : (int)FEW_GROUP;
        few_group_sums<R, NT> sum = {};
        UNROLLED(1)
        for (int i = 0; i < s.cols; i += s.runs) {
            const shared_place slot = slots + (unsigned)(get * s.bytes);
            if constexpr (NT > 1)
                few_run_multiply<R, NT>(slot, x_line, w_line, here, sum);
            else if (s.runs > 1 && i + 1 < s.cols)
                few_runs_multiply<R>(slot, (uint32_t)s.part, x_line, w_line, here, sum);
            else
                few_run_multiply<R, NT>(slot, x_line, w_line, here, sum);
            get = get + 1 == s.stages ? 0 : get + 1;
            __syncwarp(); /* all have it */
            few_stage_copy<R, NT>(j, s, slots);
            few_wait(s.stages - 1);
            __syncwarp();
        }
        float all[FEW_GROUP][NT][4];
        UNROLL
        for (int i = 0; i < FEW_GROUP * NT * 4; i++) {
            const int t = i / (NT * 4), n = i / 4 % NT, e = i % 4;
            all[t][n][e] = sum.of[t][0][n][e];
            UNROLL
            for (int part = 1; part < few_group_sums<R, NT>::OF; part++)
                all[t][n][e] += sum.of[t][part][n][e];
        }
        few_meet<NT, FEW_GROUP>(j, sums, group, here, all);
    }
    copies_wait<0>();
}

#endif
