/* norm_c.c - rms_norm and layer_norm: sums in double in fixed lanes, then one multiplication and what
 * the weight and bias ask for, in float. out may be x. */
#include "kernels/kernel_decls.h"

#include <math.h>
#include "kernels/c/vec.h"

static double sum(const float *x, int64_t n)
{
    double lane[VEC_LANES_WIDE] = {0};
    int64_t i = 0;
    for (; i + VEC_LANES_WIDE <= n; i += VEC_LANES_WIDE)
        for (int l = 0; l < VEC_LANES_WIDE; l++)
            lane[l] += (double)x[i + l];
    double total = lanes_sum_wide(lane);
    for (; i < n; i++)
        total += (double)x[i];
    return total;
}

static double sum_squares(const float *x, double mean, int64_t n)
{
    double lane[VEC_LANES_WIDE] = {0};
    int64_t i = 0;
    for (; i + VEC_LANES_WIDE <= n; i += VEC_LANES_WIDE)
        for (int l = 0; l < VEC_LANES_WIDE; l++)
            lane[l] += ((double)x[i + l] - mean) * ((double)x[i + l] - mean);
    double total = lanes_sum_wide(lane);
    for (; i < n; i++)
        total += ((double)x[i] - mean) * ((double)x[i] - mean);
    return total;
}

/* out = (x - mean) * inverse * w + bias; w, bias: [n] or NULL. The mean comes in two floats, since
 * what is left where it is large may be small. */
static void norm_apply(const float *x, double mean, float inverse, const float *w,
                       const float *bias, int64_t n, float *out)
{
    float high = (float)mean, low = (float)(mean - (double)high);
    if (!w && !bias) {
        VEC_LOOP
        for (int64_t i = 0; i < n; i++)
            out[i] = (x[i] - high - low) * inverse;
    } else if (!bias) {
        VEC_LOOP
        for (int64_t i = 0; i < n; i++)
            out[i] = (x[i] - high - low) * inverse * w[i];
    } else if (!w) {
        VEC_LOOP
        for (int64_t i = 0; i < n; i++)
            out[i] = (x[i] - high - low) * inverse + bias[i];
    } else {
        VEC_LOOP
        for (int64_t i = 0; i < n; i++)
            out[i] = (x[i] - high - low) * inverse * w[i] + bias[i];
    }
}

/* The vectors of a part; centred: less their mean first, as layer_norm does. */
static void norm_part(const kargs *k, int64_t begin, int64_t end, bool centred)
{
    int64_t vectors = k->size.norm.vectors, width = k->size.norm.width,
            w_rows = k->size.norm.weight_rows;
    kpart p = kpart_of(k, vectors * width, begin, end);
    for (int64_t row = p.row; row < p.row_end; row++)
        for (int64_t col = p.col; col < p.col_end; col += width) {
            int64_t w_row = w_rows > 1 ? col / width % w_rows : 0;
            const float *x = row_in(k, 0, row) + col;
            double mean = centred ? sum(x, width) / (double)width : 0;
            double variance = sum_squares(x, mean, width) / (double)width;
            float inverse = (float)(1 / sqrt(variance + k->scalar.norm.eps));
            norm_apply(x, mean, inverse, k->in[1] ? row_in(k, 1, w_row) : NULL,
                       centred && k->in[2] ? row_in(k, 2, w_row) : NULL, width,
                       row_out(k, 0, row) + col);
        }
}

void k_rms_norm_c(const kargs *k, const kthread *t, int64_t begin, int64_t end)
{
    (void)t;
    norm_part(k, begin, end, false);
}

void k_layer_norm_c(const kargs *k, const kthread *t, int64_t begin, int64_t end)
{
    (void)t;
    norm_part(k, begin, end, true);
}
