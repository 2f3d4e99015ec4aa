/* linear_ref.c - x times w transposed, plus a bias: one matrix for all (linear), or one for each
 * head (head_linear).
 *
 * A weight row is dequantised into the thread's scratch and used for every row of x in the range,
 * so the loop over weight rows is the outer one. out overlaps no input. */
#include "kernels/kernel_decls.h"

#include "kernels/ref/weight_read.h"

void k_linear_ref(const kargs *k, const kthread *t, int64_t begin, int64_t end)
{
    const float *x = k->in[0];   /* [rows, n] */
    const void *w = k->in[1];    /* [m, n] */
    const void *bias = k->in[2]; /* [m] or NULL */
    float *out = k->out[0];      /* [rows, m] */
    float *w_row = t->scratch;   /* [n] */
    int64_t m = k->size.linear.out, n = k->size.linear.in;
    for (int64_t i = 0; i < m; i++) {
        dequant_row(k->type[1], weight_row(w, k->pitch[1], i), w_row, n);
        double b = bias ? (double)weight_at(k->type[2], bias, i) : 0;
        for (int64_t row = begin; row < end; row++)
            out[row * m + i] = (float)(dot(x + row * n, w_row, n) + b);
    }
}

void k_head_linear_ref(const kargs *k, const kthread *t, int64_t begin, int64_t end)
{
    const float *x = k->in[0];       /* [rows, heads, n] */
    const void *const *w = k->in[1]; /* [heads] addresses of [m, n] */
    const void *bias = k->in[2];     /* [heads, m] or NULL */
    float *out = k->out[0];          /* [rows, heads, m] */
    float *w_row = t->scratch;       /* [n] */
    int64_t heads = k->size.head_linear.heads, m = k->size.head_linear.out,
            n = k->size.head_linear.in;
    for (int64_t unit = begin; unit < end; unit++) {
        int64_t head = unit % heads;
        for (int64_t i = 0; i < m; i++) {
            dequant_row(k->type[1], weight_row(w[head], k->pitch[1], i), w_row, n);
            double sum = dot(x + unit * n, w_row, n);
            if (bias)
                sum += weight_at(k->type[2], weight_row(bias, k->pitch[2], head), i);
            out[unit * m + i] = (float)sum;
        }
    }
}
