/* norm_ref.c - rms_norm and layer_norm over the last axis.
 *
 * Vector v of a row takes row v % weight_rows of the weight: with one weight row all vectors share it,
 * with as many as there are heads each head has its own. Everything up to the store is in double:
 * the mean (of squares), eps inside the root, the weight, the bias. out may be x. */
#include "kernels/kernel_decls.h"

#include <math.h>
#include "kernels/ref/weight_read.h"

/* out[i] = (x[i] - mean) * inverse * w[i] + bias[i], for vector v of a row.
 * bias: [w_rows, width] or NULL. */
static void norm_apply(const kargs *k, const kthread *t, int64_t v, const float *x, double mean,
                       double inverse, const void *bias, float *out)
{
    int64_t width = k->size.norm.width, w_rows = k->size.norm.weight_rows;
    float *w = t->scratch; /* [width] */
    if (k->in[1])
        dequant_row(k->type[1], weight_row(k->in[1], k->pitch[1], v % w_rows), w, width);
    if (bias)
        bias = weight_row(bias, k->pitch[2], v % w_rows);
    for (int64_t i = 0; i < width; i++) {
        double y = (x[i] - mean) * inverse;
        if (k->in[1])
            y *= w[i];
        if (bias)
            y += weight_at(k->type[2], bias, i);
        out[i] = (float)y;
    }
}

void k_rms_norm_ref(const kargs *k, const kthread *t, int64_t begin, int64_t end)
{
    const float *x = k->in[0]; /* [rows, vectors, width] */
    float *out = k->out[0];    /* like x */
    int64_t vectors = k->size.norm.vectors, width = k->size.norm.width;
    double eps = k->scalar.norm.eps;
    for (int64_t v = begin * vectors; v < end * vectors; v++) {
        const float *xv = x + v * width;
        double mean_square = dot(xv, xv, width) / (double)width;
        double inverse = 1 / sqrt(mean_square + eps);
        norm_apply(k, t, v % vectors, xv, 0, inverse, NULL, out + v * width);
    }
}

void k_layer_norm_ref(const kargs *k, const kthread *t, int64_t begin, int64_t end)
{
    const float *x = k->in[0]; /* [rows, vectors, width] */
    float *out = k->out[0];    /* like x */
    int64_t vectors = k->size.norm.vectors, width = k->size.norm.width;
    double eps = k->scalar.norm.eps;
    for (int64_t v = begin * vectors; v < end * vectors; v++) {
        const float *xv = x + v * width;
        double mean = 0, variance = 0;
        for (int64_t i = 0; i < width; i++)
            mean += xv[i];
        mean /= (double)width;
        for (int64_t i = 0; i < width; i++)
            variance += (xv[i] - mean) * (xv[i] - mean);
        variance /= (double)width;
        double inverse = 1 / sqrt(variance + eps);
        norm_apply(k, t, v % vectors, xv, mean, inverse, k->in[2], out + v * width);
    }
}
