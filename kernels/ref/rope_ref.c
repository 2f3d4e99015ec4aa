/* rope_ref.c - rotate the pairs of each head by position times frequency.
 *
 * The angle is taken in double from the f32 frequency; cos and sin, times the table's factor, are
 * rounded to f32 once, as if read from a table. (Published code multiplies position and frequency
 * in f32, which for large positions turns the angle itself; at position p the two differ by up to p
 * * 2^-24.) Elements beyond the pairs pass through. out may be x. */
#include "kernels/kernel_decls.h"

#include <math.h>

void k_rope_ref(const kargs *k, const kthread *t, int64_t begin, int64_t end)
{
    const float *x = k->in[0];     /* [rows, heads, width] */
    const int32_t *pos = k->in[1]; /* [rows] */
    const float *freqs = k->in[2]; /* [pairs] */
    float *out = k->out[0];        /* like x */
    int64_t heads = k->size.rope.heads, width = k->size.rope.width, pairs = k->size.rope.pairs;
    double factor = k->scalar.rope.factor;
    bool interleaved = k->choice.rope.order == ROPE_INTERLEAVED;
    (void)t;
    for (int64_t row = begin; row < end; row++) {
        for (int64_t i = 0; i < pairs; i++) {
            double angle = (double)pos[row] * freqs[i];
            float c = (float)(cos(angle) * factor), s = (float)(sin(angle) * factor);
            int64_t first = interleaved ? 2 * i : i;
            int64_t second = interleaved ? 2 * i + 1 : i + pairs;
            for (int64_t head = 0; head < heads; head++) {
                int64_t at = (row * heads + head) * width;
                double a = x[at + first], b = x[at + second];
                out[at + first] = (float)(a * c - b * s);
                out[at + second] = (float)(a * s + b * c);
            }
        }
        for (int64_t head = 0; head < heads; head++)
            for (int64_t i = 2 * pairs; i < width; i++) {
                int64_t at = (row * heads + head) * width + i;
                out[at] = x[at];
            }
    }
}
