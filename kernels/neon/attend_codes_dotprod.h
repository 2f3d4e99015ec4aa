/* attend_codes_dotprod.h - products of codes with sdot, for processors that have it. */
#ifndef WEFT_KERNELS_NEON_ATTEND_CODES_DOTPROD_H
#define WEFT_KERNELS_NEON_ATTEND_CODES_DOTPROD_H

#include "kernels/c/attend_codes_operand.h"

/* As codes_products of c/attend_codes.h. */
void attend_codes_sdot(const codes_whole *x, const codes_operand *codes, int64_t n_q,
                       float (*out)[ATTEND_KEYS]);

#endif
