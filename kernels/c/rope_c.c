/* rope_c.c - rotate pairs by position times frequency.
 *
 * The cosines and sines of a row are worked out once for all its heads, in scratch [2, pairs]. Elements
 * beyond the pairs pass through. out may be x. */
#include "kernels/kernel_decls.h"

#include <string.h>
#include "kernels/c/rope_angles.h"
#include "kernels/c/vec.h"

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
    int64_t heads = k->size.rope.heads, width = k->size.rope.width, pairs = k->size.rope.pairs;
    float *cosine = t->scratch, *sine = cosine + pairs;
    kpart p = kpart_of(k, heads * width, begin, end);
    for (int64_t row = p.row; row < p.row_end && p.col < p.col_end; row++) {
        rope_angles(freqs, pos[row], (float)k->scalar.rope.factor, pairs, cosine, sine);
        for (int64_t col = p.col; col < p.col_end; col += width) {
            const float *x = row_in(k, 0, row) + col;
            float *out = row_out(k, 0, row) + col;
            if (k->choice.rope.order == ROPE_INTERLEAVED)
                turn_interleaved(x, cosine, sine, pairs, out);
            else
                turn_half(x, cosine, sine, pairs, out);
            if (x != out && 2 * pairs < width)
                memcpy(out + 2 * pairs, x + 2 * pairs, (size_t)(width - 2 * pairs) * sizeof *out);
        }
    }
}
