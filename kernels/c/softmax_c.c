/* softmax_c.c - softmax over the last axis: exp(x - max) over its sum. A NaN makes a vector NaN. out may
 * be x. */
#include "kernels/kernel_decls.h"

#include <math.h>
#include "kernels/c/vec.h"
#include "kernels/c/vec_math.h"

static float largest(const float *x, int64_t n)
{
    float lane[VEC_LANES];
    int64_t i = 0;
    for (int l = 0; l < VEC_LANES; l++)
        lane[l] = -INFINITY;
    for (; i + VEC_LANES <= n; i += VEC_LANES)
        for (int l = 0; l < VEC_LANES; l++)
            lane[l] = x[i + l] > lane[l] ? x[i + l] : lane[l];
    float max = -INFINITY;
    for (; i < n; i++)
        max = x[i] > max ? x[i] : max;
    for (int l = 0; l < VEC_LANES; l++)
        max = lane[l] > max ? lane[l] : max;
    return max;
}

/* In double, as there may be as many terms as there are tokens. */
static double total(const float *x, int64_t n)
{
    double lane[VEC_LANES_WIDE] = {0};
    int64_t i = 0;
    for (; i + VEC_LANES_WIDE <= n; i += VEC_LANES_WIDE)
        for (int l = 0; l < VEC_LANES_WIDE; l++)
            lane[l] += (double)x[i + l];
    double sum = lanes_sum_wide(lane);
    for (; i < n; i++)
        sum += (double)x[i];
    return sum;
}

void k_softmax_c(const kargs *k, const kthread *t, int64_t begin, int64_t end)
{
    int64_t vectors = k->size.softmax.vectors, width = k->size.softmax.width;
    (void)t;
    for (int64_t row = begin; row < end; row++)
        for (int64_t v = 0; v < vectors; v++) {
            const float *x = row_in(k, 0, row) + v * width;
            float *out = row_out(k, 0, row) + v * width;
            float max = largest(x, width);
            VEC_LOOP
            for (int64_t i = 0; i < width; i++)
                out[i] = vec_exp(x[i] - max);
            float sum = (float)total(out, width);
            for (int64_t i = 0; i < width; i++)
                out[i] /= sum;
        }
}
