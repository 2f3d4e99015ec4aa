/* quant_block256.c - the types with 256 numbers to a block, in groups whose scales are small integers.
 *
 * Every group gets the scale that fits it best; these are then rounded to multiples of one f16 number, which is
 * fitted to them in turn, and each group tries the neighbours of its own multiple. Layouts: see
 * kernels/ref/dequant_block256.c. */
#include "runtime/quant/quant_fit.h"
#include "runtime/quant/quant_impl.h"
#include <math.h>
#include <string.h>

enum { BLOCK = 256, SCALE_MAX = 63, REFITS = 2 };

static const float *weights_of(const float *importance, float *ones)
{
    bool usable = importance;
    float sum = 0;
    for (int j = 0; usable && j < BLOCK; j++) {
        usable = importance[j] >= 0 && isfinite(importance[j]);
        sum += importance[j];
    }
    if (usable && sum > 0 && isfinite(sum))
        return importance;
    for (int j = 0; j < BLOCK; j++)
        ones[j] = 1;
    return ones;
}

static bool all_finite(const float *x)
{
    bool fine = true;
    for (int j = 0; j < BLOCK; j++)
        fine = fine && isfinite(x[j]);
    return fine;
}

static int rounded(float x, int lo, int hi)
{
    float v = !(x > (float)lo) ? (float)lo : x < (float)hi ? x : (float)hi;
    return (int)(v < 0 ? v - 0.5f : v + 0.5f);
}

/* ---- Q4_K and Q5_K: eight groups of 32, scale and minimum each ---- */

enum { GROUPS = 8, GROUP = 32 };

typedef struct {
    float d, m; /* as stored */
    int scale[GROUPS], min[GROUPS];
    float code[BLOCK];
    double error;
} affine_block;

static fit_affine group_fit(const affine_block *b, int scale, int min)
{
    return (fit_affine){b->d * (float)scale, b->m * (float)min};
}

/* One group with these multiples; kept if that is better. */
static void try_group(affine_block *b, const float *x, const float *w, int code_max, int g,
                      int scale, int min, float *least)
{
    float code[GROUP];
    if (scale < 0 || scale > SCALE_MAX || min < 0 || min > SCALE_MAX)
        return;
    float error = fit_offset_codes(x + g * GROUP, w + g * GROUP, GROUP, code_max,
                                   group_fit(b, scale, min), code);
    if (!(error < *least))
        return;
    *least = error;
    b->scale[g] = scale;
    b->min[g] = min;
    memcpy(b->code + g * GROUP, code, sizeof code);
}

/* The best multiples near those that are there, and the codes. */
static void choose_groups(affine_block *b, const float *x, const float *w, int code_max)
{
    b->error = 0;
    for (int g = 0; g < GROUPS; g++) {
        float least = INFINITY;
        int scale = b->scale[g];
        try_group(b, x, w, code_max, g, scale, b->min[g], &least);
        try_group(b, x, w, code_max, g, scale - 1, b->min[g], &least);
        try_group(b, x, w, code_max, g, scale + 1, b->min[g], &least);
        int min = b->min[g];
        try_group(b, x, w, code_max, g, b->scale[g], min - 1, &least);
        try_group(b, x, w, code_max, g, b->scale[g], min + 1, &least);
        b->error += (double)least;
    }
}

/* d and m by least squares for the multiples and codes that were chosen. */
static bool refit(const affine_block *b, const float *x, const float *w, float *out_d, float *out_m)
{
    double aa = 0, ab = 0, bb = 0, ax = 0, bx = 0;
    for (int j = 0; j < BLOCK; j++) {
        double u = (double)b->scale[j / GROUP] * (double)b->code[j], v = -(double)b->min[j / GROUP];
        double wu = (double)w[j] * u, wv = (double)w[j] * v;
        aa += wu * u;
        ab += wu * v;
        bb += wv * v;
        ax += wu * (double)x[j];
        bx += wv * (double)x[j];
    }
    double det = aa * bb - ab * ab;
    if (bb == 0 && aa > 0) {
        *out_d = (float)(ax / aa);
        *out_m = b->m;
    } else if (det > 1e-9 * aa * bb) {
        *out_d = (float)((ax * bb - bx * ab) / det);
        *out_m = (float)((bx * aa - ax * ab) / det);
    } else {
        return false;
    }
    return *out_d > 0 && *out_m >= 0;
}

static void fit_block(affine_block *b, const float *x, const float *w, int code_max)
{
    fit_affine f[GROUPS];
    float scale_max = 0, min_max = 0;
    for (int g = 0; g < GROUPS; g++) {
        f[g] = fit_offset(x + g * GROUP, w + g * GROUP, GROUP, code_max);
        scale_max = f[g].scale > scale_max ? f[g].scale : scale_max;
        min_max = f[g].min > min_max ? f[g].min : min_max;
    }
    *b = (affine_block){.d = f16_to_f32(f32_to_f16(scale_max / SCALE_MAX)),
                        .m = f16_to_f32(f32_to_f16(min_max / SCALE_MAX))};
    for (int g = 0; g < GROUPS; g++) {
        b->scale[g] = b->d > 0 ? rounded(f[g].scale / b->d, 0, SCALE_MAX) : 0;
        b->min[g] = b->m > 0 ? rounded(f[g].min / b->m, 0, SCALE_MAX) : 0;
    }
    choose_groups(b, x, w, code_max);
    for (int i = 0; i < REFITS; i++) {
        affine_block next = *b;
        if (!refit(b, x, w, &next.d, &next.m))
            break;
        next.d = f16_to_f32(f32_to_f16(next.d));
        next.m = f16_to_f32(f32_to_f16(next.m));
        choose_groups(&next, x, w, code_max);
        if (!(next.error < b->error))
            break;
        *b = next;
    }
}

static void put_scales(const affine_block *b, uint8_t *p)
{
    memset(p, 0, 12);
    for (int g = 0; g < 4; g++) {
        int s = b->scale[g + 4], m = b->min[g + 4];
        p[g] = (uint8_t)(b->scale[g] | s >> 4 << 6);
        p[g + 4] = (uint8_t)(b->min[g] | m >> 4 << 6);
        p[g + 8] = (uint8_t)((s & 15) | (m & 15) << 4);
    }
}

static void put_affine(const float *x, const float *importance, int bits, uint8_t *dst)
{
    float ones[BLOCK];
    affine_block b = {.d = NAN};
    if (all_finite(x))
        fit_block(&b, x, weights_of(importance, ones), (1 << bits) - 1);
    store_f16(dst, b.d);
    store_f16(dst + 2, b.m);
    put_scales(&b, dst + 4);
    uint8_t *fifth = dst + 16, *low = bits == 5 ? dst + 48 : dst + 16;
    if (bits == 5)
        memset(fifth, 0, 32);
    for (int g = 0; g < GROUPS; g++)
        for (int j = 0; j < GROUP; j++) {
            int code = (int)b.code[g * GROUP + j], at = g / 2 * GROUP + j;
            low[at] = (uint8_t)(g % 2 ? low[at] | (code & 15) << 4 : code & 15);
            if (bits == 5)
                fifth[j] = (uint8_t)(fifth[j] | (code >> 4) << g);
        }
}

void quant_q4_k(const float *src, const float *importance, uint8_t *dst, int64_t n)
{
    for (int64_t i = 0; i < n; i += BLOCK, dst += 144)
        put_affine(src + i, importance ? importance + i : NULL, 4, dst);
}

void quant_q5_k(const float *src, const float *importance, uint8_t *dst, int64_t n)
{
    for (int64_t i = 0; i < n; i += BLOCK, dst += 176)
        put_affine(src + i, importance ? importance + i : NULL, 5, dst);
}

/* ---- Q6_K: sixteen groups of 16, a signed scale each ---- */

enum { GROUPS6 = 16, GROUP6 = 16, HALF6 = 32 };

typedef struct {
    float d;
    int scale[GROUPS6];
    float code[BLOCK];
    double error;
} signed_block;

static void choose_groups6(signed_block *b, const float *x, const float *w)
{
    b->error = 0;
    for (int g = 0; g < GROUPS6; g++) {
        float code[GROUP6];
        float least = INFINITY;
        int scale = b->scale[g];
        for (int s = scale - 1; s <= scale + 1; s++) {
            if (s < INT8_MIN || s > INT8_MAX)
                continue;
            float error = fit_signed_codes(x + g * GROUP6, w + g * GROUP6, GROUP6, HALF6,
                                           b->d * (float)s, code);
            if (error < least) {
                least = error;
                b->scale[g] = s;
                memcpy(b->code + g * GROUP6, code, sizeof code);
            }
        }
        b->error += (double)least;
    }
}

static void fit_block6(signed_block *b, const float *x, const float *w)
{
    float f[GROUPS6], max = 0;
    for (int g = 0; g < GROUPS6; g++) {
        f[g] = fit_signed(x + g * GROUP6, w + g * GROUP6, GROUP6, HALF6);
        max = fabsf(f[g]) > fabsf(max) ? f[g] : max;
    }
    *b = (signed_block){.d = f16_to_f32(f32_to_f16(max / INT8_MIN))};
    for (int g = 0; g < GROUPS6; g++)
        b->scale[g] = b->d != 0 ? rounded(f[g] / b->d, INT8_MIN, INT8_MAX) : 0;
    choose_groups6(b, x, w);
    for (int i = 0; i < REFITS; i++) {
        signed_block next = *b;
        double ux = 0, uu = 0;
        for (int j = 0; j < BLOCK; j++) {
            double u = (double)b->scale[j / GROUP6] * (double)b->code[j], wu = (double)w[j] * u;
            ux += wu * (double)x[j];
            uu += wu * u;
        }
        if (!(uu > 0))
            break;
        next.d = f16_to_f32(f32_to_f16((float)(ux / uu)));
        choose_groups6(&next, x, w);
        if (!(next.error < b->error))
            break;
        *b = next;
    }
}

void quant_q6_k(const float *src, const float *importance, uint8_t *dst, int64_t n)
{
    for (int64_t i = 0; i < n; i += BLOCK, dst += 210) {
        float ones[BLOCK];
        signed_block b = {.d = NAN};
        if (all_finite(src + i))
            fit_block6(&b, src + i, weights_of(importance ? importance + i : NULL, ones));
        memset(dst, 0, 192);
        for (int j = 0; j < BLOCK; j++) {
            int code = (int)b.code[j] + HALF6;
            uint8_t *low = dst + j / 128 * 64 + j % 64, *high = dst + 128 + j / 128 * 32 + j % 32;
            *low = (uint8_t)(*low | (code & 15) << j % 128 / 64 * 4);
            *high = (uint8_t)(*high | (code >> 4) << j % 128 / 32 * 2);
        }
        for (int g = 0; g < GROUPS6; g++)
            dst[192 + g] = (uint8_t)b.scale[g];
        store_f16(dst + 208, b.d);
    }
}
