/* experts_ref.c - each row through the matrices of its chosen experts, and their weighted sum.
 *
 * The ids come from route, which gives only numbers of experts there are; any other is a bug of the
 * caller and ends the process. out overlaps no input. */
#include "kernels/kernel_decls.h"

#include "kernels/ref/weight_read.h"

void k_experts_ref(const kargs *k, const kthread *t, int64_t begin, int64_t end)
{
    const float *x = k->in[0];       /* [rows, n], or [rows, K, n] */
    const void *const *w = k->in[1]; /* [E] addresses of [m, n] */
    const int32_t *ids = k->in[2];   /* [rows, K] */
    const void *bias = k->in[3];     /* [E, m] or NULL */
    float *out = k->out[0];          /* [rows, K, m] */
    float *w_row = t->scratch;       /* [n] */
    int64_t top = k->size.experts.slots, m = k->size.experts.out, n = k->size.experts.in,
            n_expert = k->size.experts.experts;
    bool x_each = k->size.experts.x_vectors > 1; /* every choice has an x of its own */
    for (int64_t slot = begin * top; slot < end * top; slot++) {
        int64_t e = ids[slot];
        WEFT_ASSERT(e >= 0 && e < n_expert);
        const float *x_row = x + (x_each ? slot : slot / top) * n;
        for (int64_t i = 0; i < m; i++) {
            dequant_row(k->type[1], weight_row(w[e], k->pitch[1], i), w_row, n);
            double sum = dot(x_row, w_row, n);
            if (bias)
                sum += weight_at(k->type[3], weight_row(bias, k->pitch[3], e), i);
            out[slot * m + i] = (float)sum;
        }
    }
}

void k_combine_ref(const kargs *k, const kthread *t, int64_t begin, int64_t end)
{
    const float *y = k->in[0]; /* [rows, K, d] */
    const float *w = k->in[1]; /* [rows, K] */
    float *out = k->out[0];    /* [rows, d] */
    int64_t top = k->size.combine.slots, d = k->size.combine.width;
    (void)t;
    for (int64_t row = begin; row < end; row++)
        for (int64_t i = 0; i < d; i++) {
            double sum = 0;
            for (int64_t j = 0; j < top; j++)
                sum += (double)w[row * top + j] * y[(row * top + j) * d + i];
            out[row * d + i] = (float)sum;
        }
}
