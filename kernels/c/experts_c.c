/* experts_c.c - each row through the matrices of its chosen experts.
 *
 * The rows that chose an expert are collected first, so that a tile of its weights is read once for all
 * of them. out overlaps no input. */
#include "kernels/kernel_decls.h"

#include "kernels/c/chosen.h"
#include "kernels/c/dot_impl.h"

void dot_experts(const kargs *k, const kthread *t, int64_t begin, int64_t end, const dot_core *core)
{
    const char *const *w = k->in[1]; /* [E] addresses of [m, n] */
    kpart part = kpart_of(k, k->size.experts.out, begin, end);
    dot_work j = dot_work_of(k, t, core, k->size.experts.in);
    j.row = part.col;
    j.row_end = part.col_end;
    for (int64_t e = 0; e < k->size.experts.experts; e++) {
        chosen_slots slots = chosen_of(k, &part);
        j.w = w[e];
        j.bias = chosen_bias(k, e);
        while ((j.n_x = chosen_next(k, &slots, e, DOT_ROWS_MAX, j.x, j.out)) > 0)
            dot_block(&j);
    }
}

void k_experts_c(const kargs *k, const kthread *t, int64_t begin, int64_t end)
{
    dot_experts(k, t, begin, end, NULL);
}

#define EXPERTS(type)                                                                              \
    void k_experts_##type##_c(const kargs *k, const kthread *t, int64_t begin, int64_t end)        \
    {                                                                                              \
        dot_experts(k, t, begin, end, &dot_core_##type);                                           \
    }
EXPERTS(Q8_0)
EXPERTS(Q4_0)
EXPERTS(Q4_1)
EXPERTS(Q5_0)
EXPERTS(Q5_1)
EXPERTS(IQ4_NL)
EXPERTS(MXFP4)
EXPERTS(Q2_K)
EXPERTS(Q3_K)
EXPERTS(Q4_K)
EXPERTS(Q5_K)
EXPERTS(Q6_K)
EXPERTS(IQ4_XS)
