/* linear_c.c - x times w transposed, plus a bias, for weights of every type.
 *
 * Activations are taken DOT_ROWS_MAX rows at a time: the block of them and a tile of weights then
 * fit a second-level cache. out overlaps no input. */
#include "kernels/kernel_decls.h"

#include "kernels/c/dot_impl.h"

void dot_linear(const kargs *k, const kthread *t, int64_t begin, int64_t end, const dot_core *core)
{
    kpart part = kpart_of(k, k->size.linear.out, begin, end);
    dot_work j = dot_work_of(k, t, core, k->size.linear.in);
    j.w = k->in[1];    /* [m, n] */
    j.bias = k->in[2]; /* [m] or NULL */
    j.row = part.col;
    j.row_end = part.col_end;
    for (int64_t row = part.row; row < part.row_end; row += j.n_x) {
        j.n_x = part.row_end - row < DOT_ROWS_MAX ? part.row_end - row : DOT_ROWS_MAX;
        for (int64_t i = 0; i < j.n_x; i++) {
            j.x[i] = (const char *)k->in[0] + (row + i) * k->pitch[0];
            j.out[i] = (float *)((char *)k->out[0] + (row + i) * k->out_pitch[0]);
        }
        dot_block(&j);
    }
}

void k_linear_c(const kargs *k, const kthread *t, int64_t begin, int64_t end)
{
    dot_linear(k, t, begin, end, NULL);
}

#define LINEAR(type)                                                                               \
    void k_linear_##type##_c(const kargs *k, const kthread *t, int64_t begin, int64_t end)         \
    {                                                                                              \
        dot_linear(k, t, begin, end, &dot_core_##type);                                            \
    }
LINEAR(F32)
LINEAR(F16)
LINEAR(BF16)
LINEAR(Q8_0)
LINEAR(Q4_0)
LINEAR(Q4_1)
LINEAR(Q5_0)
LINEAR(Q5_1)
LINEAR(IQ4_NL)
LINEAR(MXFP4)
LINEAR(Q2_K)
LINEAR(Q3_K)
LINEAR(Q4_K)
LINEAR(Q5_K)
LINEAR(Q6_K)
LINEAR(IQ4_XS)
