/* quant_fit.h - the scale, and the offset, with which small codes come closest to some numbers.
 *
 * Numbers come in groups of n, a multiple of FIT_LANES and at most FIT_MAX; all are finite. w[n] weighs squared
 * errors. Codes are whole numbers in floats: that is what is computed with. */
#ifndef WEFT_RUNTIME_QUANT_QUANT_FIT_H
#define WEFT_RUNTIME_QUANT_QUANT_FIT_H

enum { FIT_MAX = 32, FIT_LANES = 8 };

typedef struct {
    float scale, min; /* x is about scale * code - min; neither is below 0 */
} fit_affine;

/* Codes 0 .. code_max. */
fit_affine fit_offset(const float *x, const float *w, int n, int code_max);
/* x about scale * code with codes -half .. half - 1; the scale may be negative. */
float fit_signed(const float *x, const float *w, int n, int half);

/* Codes for a given scale and min, each the nearest, and the weighted squared error they leave. */
float fit_offset_codes(const float *x, const float *w, int n, int code_max, fit_affine f,
                       float *code);
float fit_signed_codes(const float *x, const float *w, int n, int half, float scale, float *code);

#endif
