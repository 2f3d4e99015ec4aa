/* quant_fit.c - a search over roundings, each followed by least squares.
 *
 * With the codes given, the best scale and offset are a linear problem; with these given, the best codes are
 * the nearest. Going back and forth ends in a local minimum, so scales a little above and below the one that just
 * spans the numbers are tried first, and the best of them is where it starts.
 *
 * Sums are kept in lanes that are added up in a fixed order: compilers make vectors of them, and the result is the
 * same on every machine. */
#include "runtime/quant/quant_fit.h"

#include <math.h>

/* Try (code_max + t) / span for t from -1 to 1 by tenths: the codes then reach from one too few to one too
 * many. */
enum { STEPS = 10, ROUNDS = 3, L = FIT_LANES };

static float total(const float *lane)
{
    return ((lane[0] + lane[4]) + (lane[2] + lane[6])) +
           ((lane[1] + lane[5]) + (lane[3] + lane[7]));
}

/* Numbers near the largest float may overflow on the way: a NaN becomes lo. */
static inline float clamped(float v, float lo, float hi)
{
    v = v > lo ? v : lo;
    return v < hi ? v : hi;
}

/* To the nearest whole number, for v >= 0. */
static inline float rounded_up(float v)
{
    return (float)(int)(v + 0.5f);
}

static inline float rounded_both(float v)
{
    return (float)(int)(v + copysignf(0.5f, v));
}

/* ---- scale and offset ---- */

float fit_offset_codes(const float *x, const float *w, int n, int code_max, fit_affine f,
                       float *code)
{
    float inv = f.scale > 0 ? 1 / f.scale : 0, top = (float)code_max, lane[L] = {0};
    for (int i = 0; i < n; i += L)
        for (int l = 0; l < L; l++) {
            float q = rounded_up(clamped((x[i + l] + f.min) * inv, 0, top));
            float e = f.scale * q - f.min - x[i + l];
            code[i + l] = q;
            lane[l] += w[i + l] * e * e;
        }
    return total(lane);
}

/* What least squares needs to know of numbers and codes. */
typedef struct {
    float one, x;    /* sums of w and w x: of the numbers alone */
    float q, qq, xq; /* sums of w q, w q q and w x q */
} sums;

static sums sum_numbers(const float *x, const float *w, int n)
{
    float one[L] = {0}, sx[L] = {0};
    for (int i = 0; i < n; i += L)
        for (int l = 0; l < L; l++) {
            one[l] += w[i + l];
            sx[l] += w[i + l] * x[i + l];
        }
    return (sums){.one = total(one), .x = total(sx)};
}

/* The codes for scale 1 / inv and offset lo, summed up. */
static void sum_codes(const float *x, const float *w, int n, float inv, float lo, float top,
                      sums *s)
{
    float sq[L] = {0}, sqq[L] = {0}, sxq[L] = {0};
    for (int i = 0; i < n; i += L)
        for (int l = 0; l < L; l++) {
            float q = rounded_up(clamped((x[i + l] - lo) * inv, 0, top)), wq = w[i + l] * q;
            sq[l] += wq;
            sqq[l] += wq * q;
            sxq[l] += wq * x[i + l];
        }
    s->q = total(sq);
    s->qq = total(sqq);
    s->xq = total(sxq);
}

/* The best scale and offset for these sums, and how much of the numbers' square they explain; below 0: none. */
static float solve(const sums *s, fit_affine *out)
{
    float det = s->one * s->qq - s->q * s->q;
    if (!(det > 0) || !(s->qq > 0))
        return -1;
    *out = (fit_affine){(s->one * s->xq - s->x * s->q) / det, (s->q * s->xq - s->qq * s->x) / det};
    if (out->min < 0) /* the stored offset only lowers */
        *out = (fit_affine){s->xq / s->qq, 0};
    return out->scale > 0 ? out->scale * s->xq - out->min * s->x : -1;
}

fit_affine fit_offset(const float *x, const float *w, int n, int code_max)
{
    float lo = 0, hi = x[0], top = (float)code_max, code[FIT_MAX];
    for (int i = 0; i < n; i++) {
        lo = x[i] < lo ? x[i] : lo;
        hi = x[i] > hi ? x[i] : hi;
    }
    fit_affine best = {0, -lo}, f;
    if (!(hi > lo))
        return best;
    sums s = sum_numbers(x, w, n);
    float most = -1;
    for (int k = -STEPS; k <= STEPS; k++) {
        sum_codes(x, w, n, (top + (float)k / STEPS) / (hi - lo), lo, top, &s);
        float explained = solve(&s, &f);
        if (explained > most) {
            most = explained;
            best = f;
        }
    }
    if (most < 0) /* weights of zero: any scale that spans the numbers will do */
        return (fit_affine){(hi - lo) / top, -lo};
    float least = fit_offset_codes(x, w, n, code_max, best, code);
    for (int round = 0; round < ROUNDS && best.scale > 0; round++) {
        sum_codes(x, w, n, 1 / best.scale, -best.min, top, &s);
        if (solve(&s, &f) < 0)
            break;
        float error = fit_offset_codes(x, w, n, code_max, f, code);
        if (!(error < least))
            break;
        least = error;
        best = f;
    }
    return best;
}

/* ---- a scale alone ---- */

float fit_signed_codes(const float *x, const float *w, int n, int half, float scale, float *code)
{
    float inv = scale != 0 ? 1 / scale : 0, lane[L] = {0};
    float low = (float)-half, high = (float)(half - 1);
    for (int i = 0; i < n; i += L)
        for (int l = 0; l < L; l++) {
            float q = rounded_both(clamped(x[i + l] * inv, low, high));
            float e = scale * q - x[i + l];
            code[i + l] = q;
            lane[l] += w[i + l] * e * e;
        }
    return total(lane);
}

/* The best scale for the codes that 1 / inv gives, and how much of the numbers' square it explains. */
static float solve_signed(const float *x, const float *w, int n, int half, float inv, float *out)
{
    float sxq[L] = {0}, sqq[L] = {0}, low = (float)-half, high = (float)(half - 1);
    for (int i = 0; i < n; i += L)
        for (int l = 0; l < L; l++) {
            float q = rounded_both(clamped(x[i + l] * inv, low, high)), wq = w[i + l] * q;
            sqq[l] += wq * q;
            sxq[l] += wq * x[i + l];
        }
    float qq = total(sqq), xq = total(sxq);
    if (!(qq > 0))
        return -1;
    *out = xq / qq;
    return *out * xq;
}

float fit_signed(const float *x, const float *w, int n, int half)
{
    float max = 0, best = 0, most = -1, scale, code[FIT_MAX];
    for (int i = 0; i < n; i++)
        max = fabsf(x[i]) > fabsf(max) ? x[i] : max;
    if (max == 0)
        return 0;
    for (int k = -2 * STEPS; k <= STEPS; k++) {
        /* the largest number takes the longer, negative end of the codes */
        float inv = -((float)half + (float)k / STEPS) / max;
        float explained = solve_signed(x, w, n, half, inv, &scale);
        if (explained > most) {
            most = explained;
            best = scale;
        }
    }
    if (most < 0 || best == 0)
        return -max / (float)half;
    float least = fit_signed_codes(x, w, n, half, best, code);
    for (int round = 0; round < ROUNDS; round++) {
        if (solve_signed(x, w, n, half, 1 / best, &scale) < 0 || scale == 0)
            break;
        float error = fit_signed_codes(x, w, n, half, scale, code);
        if (!(error < least))
            break;
        least = error;
        best = scale;
    }
    return best;
}
