/* experts_bf16_cuda.cuh - experts_few_cuda.cuh for BF16 and F16 weights: what a number of x becomes, and how products are added, is as
 * few_bf16_cuda.cuh has it.
 *
 * A slot is one or two runs of FEW_COLS columns, each of the bundle's rows of x and then of a tile of weights, with pieces where
 * linears have them. Of each result there is a sum for each part of x, with any number of rows: how rows are bundled depends on which
 * of them a block has, and bits must not. */
#ifndef WEFT_KERNELS_CUDA_EXPERTS_BF16_CUDA_CUH
#define WEFT_KERNELS_CUDA_EXPERTS_BF16_CUDA_CUH

#include "kernels/cuda/experts_few_cuda.cuh"
#include "kernels/cuda/few_bf16_cuda.cuh"

template <class F> struct expert_16 : F {
    enum { ANY = 0 };
};

template <class F, int NT> struct expert_slot<expert_16<F>, NT> {
    enum {
        FLOATS = (kact)F::ACT == ACT_F32,
        RUNS = (kact)F::ACT == ACT_BF3T ? 1 : 2, /* x of these has 6 bytes a number */
        COLS = RUNS * FEW_COLS,
        X_BYTES = NT * FEW_N * F::X_ROW,
        RUN = X_BYTES + FEW_TILE * FEW_W_ROW,
        BYTES = RUNS * RUN,
        OF = F::PARTS
    };

    /* Columns from col on of the bundle's rows; those that are not there are zeros. */
    static __device__ inline void copy_x(const expert_jobs &j, const expert_walk &s, int col,
                                         shared_place to)
    {
        enum { ROWS = FLOATS ? 4 : (int)FEW_N, PARTS = FLOATS ? 1 : (int)F::PARTS };
        const int p = lane_index() % few_x_lanes<F>();
        const int bytes = col + (FLOATS ? p * 4 : 0) < j.n ? 16 : 0; /* others are filled up */
        UNROLLED(1)
        for (int i = 0; i < s.count; i += ROWS) {
            const int row = i + few_x_row<F>();
            const uint32_t at = __shfl_sync(ALL_LANES, s.x_at, row);
            const uint32_t piece = FLOATS ? few_piece_floats(row, p) : few_piece_x<F>(row, p);
            const char *from = j.x + at + col * (F::X_ROW / FEW_COLS) + p * 16;
            UNROLL
            for (int part = 0; part < PARTS; part++)
                few_copy_part(to + (uint32_t)(row * F::X_ROW) + few_x_part<F>(piece, part),
                              from + part * FEW_W_ROW, row < s.count, bytes);
        }
    }

    /* The same columns of half a tile; rows that are not there are left as they are. */
    static __device__ inline void copy_half(const expert_jobs &j, const char *w, int rows, int col,
                                            shared_place to)
    {
        const int row = lane_index() / 4, p = lane_index() % 4;
        few_copy_part(to + (uint32_t)(row * FEW_W_ROW) + few_piece(row, p),
                      w + row * (int64_t)j.w_pitch + col * 2 + p * 16, row < rows,
                      col + p * EIGHT < j.n ? 16 : 0);
    }

    static __device__ inline void copy(const expert_jobs &j, const expert_walk &s,
                                       shared_place slot)
    {
        UNROLL
        for (int run = 0; run < RUNS; run++) {
            const int col = s.chunk * COLS + run * FEW_COLS;
            const shared_place to = slot + (uint32_t)(run * RUN);
            copy_x(j, s, col, to);
            copy_half(j, s.w, s.rows, col, to + X_BYTES);
            copy_half(j, s.w_b, s.rows_b, col, to + X_BYTES + HALF * FEW_W_ROW);
        }
    }

    template <int N>
    static __device__ inline void products(const expert_jobs &, shared_place slot, int, int,
                                           float (*sum)[NT][4])
    {
        const int w_row = lane_index() % FEW_TILE;
        const uint32_t w_line = (uint32_t)(w_row * FEW_W_ROW) + few_piece(w_row, lane_index() / 16);
        const uint32_t x_line = few_x_line<F, N>();
        float of[OF][N][4];
        UNROLL
        for (int i = 0; i < OF * N * 4; i++)
            of[i / (N * 4)][i / 4 % N][i % 4] = sum[i / (N * 4)][i / 4 % N][i % 4];
        UNROLL
        for (int run = 0; run < RUNS; run++) {
            const shared_place at = slot + (uint32_t)(run * RUN);
            few_x_parts<F, N> x;
            if constexpr (FLOATS)
                few_x_split<F>(x, at, x_line);
            UNROLL
            for (uint32_t step = 0; step < FEW_STEPS; step++) {
                uint32_t w[4];
                if (!FLOATS && (N > 1 || step == 0))
                    few_x_load<F, N>(x, at, x_line, step);
                few_frags(w, at + X_BYTES + (w_line ^ step << 5));
                few_tile_add<F, N, OF>(of, w, x, (int)step);
            }
        }
        UNROLL
        for (int i = 0; i < OF * N * 4; i++)
            sum[i / (N * 4)][i / 4 % N][i % 4] = of[i / (N * 4)][i / 4 % N][i % 4];
    }
};

#define EXPERTS_16(type)                                                                           \
    static __device__ ONE_COPY void k_experts_##type##_few_cuda(const kargs *k, const kthread *t,  \
                                                                int64_t begin, int64_t end)        \
    {                                                                                              \
        experts_few<expert_16<few_##type>>(k, t, begin, end);                                      \
    }
EXPERTS_16(BF16)
EXPERTS_16(BF16_floats)
EXPERTS_16(BF16_near)
EXPERTS_16(BF16_round)
EXPERTS_16(F16)
EXPERTS_16(F16_floats)
EXPERTS_16(F16_near)
EXPERTS_16(F16_round)
#undef EXPERTS_16

#endif
