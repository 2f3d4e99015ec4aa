/* quantize_ref.c - activations rounded to 8 bits, block by block, and four rows of them interleaved; or split into a
 * few bf16 each. act.h has the layouts.
 *
 * Scales and quotients are f32, so that every variant can give the same bits. */
#include "kernels/kernel_decls.h"

#include <float.h>
#include <math.h>
#include <string.h>
#include "kernels/ref/dequant.h"

/* One block of b elements; returns its scale. */
static float quantize_block(const float *x, int8_t *q, int64_t b)
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

/* Row r of those that are quantised together, as one to three bf16 each; x NULL: of zeros. */
static void split_row(kact act, const float *x, int64_t n, int64_t r, uint16_t *to)
{
    int64_t fill = act_fill(act);
    for (int64_t i = 0; i < (n + fill - 1) / fill * fill; i++) {
        float rest = x && i < n ? x[i] : 0;
        for (int64_t p = 0; p < act_parts(act); p++) {
            uint16_t part = p == 0 || isfinite(rest) ? f32_to_bf16(rest) : 0;
            to[act_split_at(act, i, p, r)] = part;
            rest -= bf16_to_f32(part);
        }
    }
}

enum { BLOCK_MAX = 256 };

/* Code i of a row, once or twice. */
static void put_code(kact act, int8_t code, int64_t i, int8_t *to)
{
    if (act_is_double(act))
        to[i / 8 * 16 + i % 8] = to[i / 8 * 16 + 8 + i % 8] = code;
    else
        to[i] = code;
}

void k_quantize_ref(const kargs *k, const kthread *t, int64_t begin, int64_t end)
{
    kact act = (kact)k->choice.quantize.act;
    int64_t n = k->size.quantize.width, b = act_block(act);
    (void)t;
    for (int64_t row = begin; row < end; row++) {
        const float *x = (const float *)((const char *)k->in[0] + row * k->pitch[0]); /* [n] */
        char *to = (char *)k->out[0] + row * k->out_pitch[0];
        if (act_is_split(act)) {
            split_row(act, x, n, 0, (uint16_t *)to);
            continue;
        }
        float *d = (float *)(uintptr_t)act_d_of(act, to, n);
        int16_t *sum = (int16_t *)(uintptr_t)act_sum(act, to, n);
        memset(sum, 0, (size_t)(n / 16) * sizeof *sum);
        for (int64_t i = 0; i < n; i += b) {
            int8_t q[BLOCK_MAX];
            d[i / b] = quantize_block(x + i, q, b);
            for (int64_t j = 0; j < b; j++) {
                put_code(act, q[j], i + j, (int8_t *)to);
                sum[(i + j) / 16] = (int16_t)(sum[(i + j) / 16] + q[j]);
            }
        }
    }
}

/* Row r among the four interleaved at `to`. */
static void interleave_row(kact act, const float *x, int64_t n, int64_t r, char *to)
{
    enum { SUMMED = 32 };
    int64_t b = act_block(act);
    int8_t *q4 = (int8_t *)to;                            /* [n / 8][4][8] */
    float *d4 = (float *)(uintptr_t)act_d4(to, n);        /* [n / b][8] */
    void *sums = (void *)(uintptr_t)act_sum4(act, to, n); /* [n / 32][4], or bytes */
    for (int64_t i = 0; i < n; i += b) {
        int8_t q[BLOCK_MAX] = {0};
        float d = x ? quantize_block(x + i, q, b) : 0;
        d4[i / b * 8 + r / 2 * 4 + r % 2] = d4[i / b * 8 + r / 2 * 4 + r % 2 + 2] = d;
        for (int64_t j = 0; j < b; j += SUMMED) {
            int sum = 0;
            for (int64_t l = j; l < j + SUMMED; l++) {
                q4[(i + l) / 8 * 32 + r * 8 + l % 8] = q[l];
                sum += q[l];
            }
            if (act == ACT_Q8X4) {
                ((float *)sums)[i / SUMMED * 4 + r] = d * (float)sum;
            } else {
                int8_t *two = (int8_t *)sums + i / b * 64 + r * 8 + j / SUMMED;
                two[0] = (int8_t)(sum & 127);
                two[32] = (int8_t)((sum - (sum & 127)) / 128);
            }
        }
    }
}

void k_quantize4_ref(const kargs *k, const kthread *t, int64_t begin, int64_t end)
{
    kact act = (kact)k->choice.quantize.act;
    (void)t;
    for (int64_t quad = begin; quad < end; quad++)
        for (int64_t r = 0; r < 4; r++) {
            int64_t row = quad * 4 + r;
            const float *x = (const float *)((const char *)k->in[0] + row * k->pitch[0]);
            char *to = (char *)k->out[0] + quad * 4 * k->out_pitch[0];
            if (act_is_split(act))
                split_row(act, row < k->size.quantize.rows ? x : NULL, k->size.quantize.width, r,
                          (uint16_t *)to);
            else
                interleave_row(act, row < k->size.quantize.rows ? x : NULL, k->size.quantize.width,
                               r, to);
        }
}
