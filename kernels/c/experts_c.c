/* experts_c.c - each row through the matrices of its chosen experts.
 *
 * The rows that chose an expert are collected first, so that a tile of its weights is read once for all
 * of them. out overlaps no input. */
#include "kernels/kernel_decls.h"

#include "kernels/c/dot_c.h"

void dot_experts(const kargs *k, const kthread *t, int64_t begin, int64_t end, const dot_core *core)
{
    const char *const *w = k->in[1]; /* [E] addresses of [m, n] */
    const int32_t *ids = k->in[2];   /* [rows, K] */
    int64_t top = k->n[1], n_expert = k->n[5];
    bool x_each = k->n[4] != 0; /* every choice has an x of its own */
    kpart part = kpart_of(k, k->n[2], begin, end);
    dot_work j = dot_work_of(k, t, core, k->n[3]);
    j.row = part.col;
    j.row_end = part.col_end;
    for (int64_t e = 0; e < n_expert; e++) {
        j.w = w[e];
        j.bias = k->in[3] ? (const float *)((const char *)k->in[3] + e * k->pitch[3]) : NULL;
        j.n_x = 0;
        for (int64_t slot = part.row * top; slot < part.row_end * top; slot++) {
            if (ids[slot] != e)
                continue;
            int64_t x = x_each ? slot : slot / top;
            j.x[j.n_x] = (const char *)k->in[0] + x * k->pitch[0];
            j.out[j.n_x++] = (float *)((char *)k->out[0] + slot * k->out_pitch[0]);
            if (j.n_x == DOT_ROWS_MAX) {
                dot_block(&j);
                j.n_x = 0;
            }
        }
        if (j.n_x > 0)
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
        dot_experts(k, t, begin, end, dot_core_of(DT_##type));                                     \
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
