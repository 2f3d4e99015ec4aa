/* quant_fit.h - the scale, and the offset, with which small codes come closest to some numbers. */
#ifndef WEFT_RUNTIME_QUANT_QUANT_FIT_H
#define WEFT_RUNTIME_QUANT_QUANT_FIT_H

#include <stdint.h>

enum { FIT_MAX = 32 }; /* numbers at a time */

typedef struct {
    float scale, min; /* x is about scale * code - min; neither is below 0 */
} fit_affine;

/* Codes 0 .. code_max. w[n] weighs squared errors. All x are finite. */
fit_affine fit_offset(const float *x, const float *w, int n, int code_max);
/* x about scale * code with codes -half .. half - 1; the scale may be negative. */
float fit_signed(const float *x, const float *w, int n, int half);

/* Codes for a given scale and min, each the nearest, and the weighted squared error they leave. */
float fit_offset_codes(const float *x, const float *w, int n, int code_max, fit_affine f,
                       uint8_t *code);
float fit_signed_codes(const float *x, const float *w, int n, int half, float scale, int8_t *code);

#endif
