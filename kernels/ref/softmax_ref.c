/* softmax_ref.c - softmax over the last axis: exp(x - max) over its sum. out may be x. */
#include "kernels/kernel_decls.h"

#include "kernels/ref/scalar_math.h"

void k_softmax_ref(const kargs *k, const kthread *t, int64_t begin, int64_t end)
{
    const float *x = k->in[0]; /* [rows, vectors, width] */
    float *out = k->out[0];    /* like x */
    int64_t vectors = k->size.softmax.vectors, width = k->size.softmax.width;
    (void)t;
    for (int64_t v = begin * vectors; v < end * vectors; v++) {
        const float *xv = x + v * width;
        double max = -INFINITY, sum = 0;
        for (int64_t i = 0; i < width; i++)
            max = larger(max, xv[i]);
        for (int64_t i = 0; i < width; i++)
            sum += exp(xv[i] - max);
        for (int64_t i = 0; i < width; i++)
            out[v * width + i] = (float)(exp(xv[i] - max) / sum);
    }
}
