/* pack_ref.c - activations rounded to 8 bits, block by block; act.h tells the layout.
 *
 * Scales and quotients are f32, so that every variant can give the same bits. */
#include "kernels/kernel_decls.h"

#include <float.h>
#include <math.h>

/* One block of b elements; returns its scale. */
static float pack_block(const float *x, int8_t *q, int64_t b)
{
    float max = 0;
    bool finite = true;
    for (int64_t i = 0; i < b; i++) {
        float a = fabsf(x[i]);
        finite = finite && a <= FLT_MAX;
        max = a > max ? a : max;
    }
    if (!finite || max == 0) {
        for (int64_t i = 0; i < b; i++)
            q[i] = (int8_t)!finite; /* times NaN is NaN; times 0 is 0 */
        return finite ? 0 : NAN;
    }
    float d = max / 127, inverse = 127 / max;
    if (inverse > FLT_MAX) /* numbers too small to have an inverse */
        inverse = FLT_MAX;
    for (int64_t i = 0; i < b; i++)
        q[i] = (int8_t)rintf(x[i] * inverse);
    return d;
}

void k_pack_ref(const kargs *k, const kthread *t, int64_t begin, int64_t end)
{
    kact act = (kact)k->word[0];
    int64_t n = k->n[1], b = act_block(act);
    (void)t;
    for (int64_t row = begin; row < end; row++) {
        const float *x = (const float *)((const char *)k->in[0] + row * k->pitch[0]); /* [n] */
        char *to = (char *)k->out[0] + row * k->out_pitch[0];
        int8_t *q = (int8_t *)to;
        float *d = (float *)(to + act_pad(n));
        int16_t *sum = (int16_t *)(to + act_pad(n) + act_pad(n / b * 4));
        for (int64_t i = 0; i < n / b; i++)
            d[i] = pack_block(x + i * b, q + i * b, b);
        for (int64_t i = 0; i < n / 16; i++) {
            int s = 0;
            for (int64_t j = 0; j < 16; j++)
                s += q[i * 16 + j];
            sum[i] = (int16_t)s;
        }
    }
}
