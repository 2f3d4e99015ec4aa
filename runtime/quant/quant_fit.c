/* quant_fit.c - a search over roundings, each followed by least squares.
 *
 * With the codes given, the best scale and offset are a linear problem; with these given, the best codes are
 * the nearest. Going back and forth ends in a local minimum, so it starts from many scales a little
 * above and below the one that just spans the numbers, and the best end wins. */
#include "runtime/quant/quant_fit.h"

#include <math.h>
#include <string.h>

/* Start from (code_max + t) / span for t from -1 to 1 by tenths: the codes then reach from one too few
 * to one too many. Finer or wider gave under 0.1 % of error on real weights. */
enum { STEPS = 10, ROUNDS = 2 };

float fit_offset_codes(const float *x, const float *w, int n, int code_max, fit_affine f,
                       uint8_t *code)
{
    float inv = f.scale > 0 ? 1 / f.scale : 0, error = 0, top = (float)code_max + 0.5f;
    for (int i = 0; i < n; i++) {
        float v = (x[i] + f.min) * inv + 0.5f;
        v = v < 0 ? 0 : v;
        v = v > top ? top : v;
        code[i] = (uint8_t)v;
        float e = f.scale * (float)code[i] - f.min - x[i];
        error += w[i] * e * e;
    }
    return error;
}

/* The best scale and min for these codes; false if the codes do not determine them. */
static int solve_offset(const float *x, const float *w, int n, const uint8_t *code, fit_affine *out)
{
    float s1 = 0, sq = 0, sqq = 0, sx = 0, sxq = 0;
    for (int i = 0; i < n; i++) {
        float q = (float)code[i], wq = w[i] * q;
        s1 += w[i];
        sq += wq;
        sqq += wq * q;
        sx += w[i] * x[i];
        sxq += wq * x[i];
    }
    float det = s1 * sqq - sq * sq;
    if (!(det > 0) || !(sqq > 0))
        return 0;
    out->scale = (s1 * sxq - sx * sq) / det;
    out->min = -(sqq * sx - sq * sxq) / det;
    if (out->min < 0) { /* the stored offset only lowers */
        out->min = 0;
        out->scale = sxq / sqq;
    }
    return out->scale > 0;
}

fit_affine fit_offset(const float *x, const float *w, int n, int code_max)
{
    uint8_t code[FIT_MAX];
    float lo = 0, hi = x[0];
    for (int i = 0; i < n; i++) {
        lo = x[i] < lo ? x[i] : lo;
        hi = x[i] > hi ? x[i] : hi;
    }
    fit_affine best = {0, -lo};
    if (!(hi > lo))
        return best;
    float least = fit_offset_codes(x, w, n, code_max, best, code);
    for (int k = -STEPS; k <= STEPS; k++) {
        fit_affine f = {(hi - lo) / ((float)code_max + (float)k / STEPS), -lo};
        for (int round = 0; round <= ROUNDS; round++) {
            float error = fit_offset_codes(x, w, n, code_max, f, code);
            if (error < least) {
                least = error;
                best = f;
            }
            if (round == ROUNDS || !solve_offset(x, w, n, code, &f))
                break;
        }
    }
    return best;
}

float fit_signed_codes(const float *x, const float *w, int n, int half, float scale, int8_t *code)
{
    float inv = scale != 0 ? 1 / scale : 0, error = 0;
    float low = (float)-half, high = (float)(half - 1);
    for (int i = 0; i < n; i++) {
        float v = x[i] * inv;
        v = v < low ? low : v;
        v = v > high ? high : v;
        v = v < 0 ? v - 0.5f : v + 0.5f;
        code[i] = (int8_t)v;
        float e = scale * (float)code[i] - x[i];
        error += w[i] * e * e;
    }
    return error;
}

float fit_signed(const float *x, const float *w, int n, int half)
{
    int8_t code[FIT_MAX];
    float max = 0;
    for (int i = 0; i < n; i++)
        max = fabsf(x[i]) > fabsf(max) ? x[i] : max;
    if (max == 0)
        return 0;
    float best = 0, least = fit_signed_codes(x, w, n, half, 0, code);
    for (int k = -2 * STEPS; k <= STEPS; k++) {
        /* the largest number takes the longer, negative end of the codes */
        float scale = -max / ((float)half + (float)k / STEPS);
        for (int round = 0; round <= ROUNDS; round++) {
            float error = fit_signed_codes(x, w, n, half, scale, code);
            if (error < least) {
                least = error;
                best = scale;
            }
            float sxq = 0, sqq = 0;
            for (int i = 0; i < n; i++) {
                float q = (float)code[i], wq = w[i] * q;
                sxq += wq * x[i];
                sqq += wq * q;
            }
            if (round == ROUNDS || !(sqq > 0))
                break;
            scale = sxq / sqq;
        }
    }
    return best;
}
