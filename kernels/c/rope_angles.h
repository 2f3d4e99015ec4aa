/* rope_angles.h - the cosines and sines of a row, in float from angles in double.
 *
 * An angle is brought to within pi/4 of a multiple of pi/2; what is left is a float, of which Cephes' polynomials give sine
 * and cosine to 2^-23. */
#ifndef WEFT_KERNELS_C_ROPE_ANGLES_H
#define WEFT_KERNELS_C_ROPE_ANGLES_H

#include <stdint.h>
#include <string.h>
#include "kernels/c/vec_math.h"

/* pi/2 as a number of 33 bits and the rest, so that a whole number up to 2^20 times the first is exact;
 * beyond (positions over 1.6 million) the angle is right to 2^-53 of itself. */
static const double half_pi_high = 0x1.921fb544p0, half_pi_low = 0x1.0b4611a626331p-34;

/* cos and sin of position * freq times factor. The rest r, |r| <= pi/4, is turned by `quarter` quarters:
 * odd ones swap the two, and signs follow. */
static inline void rope_angles(const float *freqs, double position, float factor, int64_t pairs,
                               float *cosine, float *sine)
{
    const double magic = 0x1.8p52; /* adding it rounds to integers */
    for (int64_t i = 0; i < pairs; i++) {
        double angle = position * (double)freqs[i];
        double biased = angle * 0x1.45f306dc9c883p-1 + magic; /* 2 / pi */
        double whole = biased - magic;
        float r = (float)(angle - whole * half_pi_high - whole * half_pi_low);
        uint64_t bits;
        memcpy(&bits, &biased, sizeof bits);
        uint32_t quarter = (uint32_t)bits;

        float z = r * r;
        float s = -1.9515295891e-4f;
        s = s * z + 8.3321608736e-3f;
        s = s * z + -1.6666654611e-1f;
        s = s * z * r + r;
        float c = 2.443315711809948e-5f;
        c = c * z + -1.388731625493765e-3f;
        c = c * z + 4.166664568298827e-2f;
        c = c * (z * z) + -0.5f * z + 1.0f;

        float cos_size = quarter & 1 ? s : c, sin_size = quarter & 1 ? c : s;
        uint32_t cos_sign = (quarter + 1) << 30 & 0x80000000u,
                 sin_sign = quarter << 30 & 0x80000000u;
        cosine[i] = float_of(bits_of(cos_size) ^ cos_sign) * factor;
        sine[i] = float_of(bits_of(sin_size) ^ sin_sign) * factor;
    }
}

#endif
