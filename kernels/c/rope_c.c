/* rope_c.c - rotate pairs by position times frequency.
 *
 * The cosines and sines of a row are worked out once for all its heads, in scratch [2, pairs]. The angle
 * is a double, brought to within pi/4 of a multiple of pi/2; what is left is a float, of which Cephes'
 * polynomials give sine and cosine to 2^-23. Elements beyond the pairs pass through. out may be x. */
#include "kernels/kernel_decls.h"

#include <string.h>
#include "kernels/c/vec.h"
#include "kernels/c/vec_math.h"

enum { PAIRS_HALF = 1, PAIRS_INTERLEAVED = 2 };

/* pi/2 as a number of 33 bits and the rest, so that a whole number up to 2^20 times the first is exact;
 * beyond (positions over 1.6 million) the angle is right to 2^-53 of itself. */
static const double half_pi_high = 0x1.921fb544p0, half_pi_low = 0x1.0b4611a626331p-34;

/* cos and sin of position * freq times factor. The rest r, |r| <= pi/4, is turned by `quarter` quarters:
 * odd ones swap the two, and signs follow. */
static void angles(const float *freqs, double position, float factor, int64_t pairs, float *cosine,
                   float *sine)
{
    const double magic = 0x1.8p52; /* adding it rounds to whole numbers */
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

static void turn_half(const float *x, const float *c, const float *s, int64_t pairs, float *out)
{
    VEC_LOOP
    for (int64_t i = 0; i < pairs; i++) {
        float a = x[i], b = x[i + pairs];
        out[i] = a * c[i] - b * s[i];
        out[i + pairs] = a * s[i] + b * c[i];
    }
}

static void turn_interleaved(const float *x, const float *c, const float *s, int64_t pairs,
                             float *out)
{
    VEC_LOOP
    for (int64_t i = 0; i < pairs; i++) {
        float a = x[2 * i], b = x[2 * i + 1];
        out[2 * i] = a * c[i] - b * s[i];
        out[2 * i + 1] = a * s[i] + b * c[i];
    }
}

void k_rope_c(const kargs *k, const kthread *t, int64_t begin, int64_t end)
{
    const int32_t *pos = k->in[1]; /* [rows] */
    const float *freqs = k->in[2]; /* [pairs] */
    int64_t heads = k->n[1], width = k->n[2], pairs = k->n[3];
    float *cosine = t->scratch, *sine = cosine + pairs;
    kpart p = kpart_of(k, heads * width, begin, end);
    for (int64_t row = p.row; row < p.row_end && p.col < p.col_end; row++) {
        angles(freqs, pos[row], (float)k->f[0], pairs, cosine, sine);
        for (int64_t col = p.col; col < p.col_end; col += width) {
            const float *x = row_in(k, 0, row) + col;
            float *out = row_out(k, 0, row) + col;
            if (k->word[0] == PAIRS_INTERLEAVED)
                turn_interleaved(x, cosine, sine, pairs, out);
            else
                turn_half(x, cosine, sine, pairs, out);
            if (x != out && 2 * pairs < width)
                memcpy(out + 2 * pairs, x + 2 * pairs, (size_t)(width - 2 * pairs) * sizeof *out);
        }
    }
}
