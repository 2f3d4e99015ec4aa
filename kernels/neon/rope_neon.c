/* rope_neon.c - rotate pairs by position times frequency, four pairs at a time.
 *
 * Most of the work are the cosines and sines, since a unit of a chain is a head or two of all rows. Angles are kept in two
 * floats, the product and what it was rounded by; taking away multiples of pi/2, itself in three floats, then leaves the
 * rest as right as double does, up to 2^20 of them. Larger angles are left to the portable function, and widths that are no
 * multiple of four pairs to the portable kernel. */
#include "kernels/kernel_decls.h"

#include <string.h>
#include "kernels/c/rope_angles.h"
#include "kernels/c/vec.h"
#include "kernels/neon/neon.h"

static const float angle_max = 0x1p20f;

/* As rope_angles, in float. */
static void angles(const float *freqs, float position, float factor, int64_t pairs, float *cosine,
                   float *sine)
{
    const float32x4_t magic = vdupq_n_f32(0x1.8p23f); /* adding it rounds to integers */
    const uint32x4_t sign = vdupq_n_u32(0x80000000u), one = vdupq_n_u32(1);
    for (int64_t i = 0; i < pairs; i += 4) {
        float32x4_t freq = vld1q_f32(freqs + i), angle = vmulq_n_f32(freq, position);
        float32x4_t low = vfmaq_n_f32(vnegq_f32(angle), freq, position);
        float32x4_t biased = vfmaq_n_f32(magic, angle, 0x1.45f306p-1f); /* 2 / pi */
        float32x4_t whole = vsubq_f32(biased, magic);
        float32x4_t r = vfmsq_n_f32(angle, whole, 0x1.921fb6p0f);
        r = vfmsq_n_f32(r, whole, -0x1.777a5cp-25f);
        r = vaddq_f32(r, vfmsq_n_f32(low, whole, -0x1.ee59dap-50f));
        uint32x4_t quarter = vreinterpretq_u32_f32(biased), odd = vtstq_u32(quarter, one);

        float32x4_t z = vmulq_f32(r, r), s, c;
        s = vfmaq_n_f32(vdupq_n_f32(8.3321608736e-3f), z, -1.9515295891e-4f);
        s = vfmaq_f32(vdupq_n_f32(-1.6666654611e-1f), s, z);
        s = vfmaq_f32(r, vmulq_f32(s, z), r);
        c = vfmaq_n_f32(vdupq_n_f32(-1.388731625493765e-3f), z, 2.443315711809948e-5f);
        c = vfmaq_f32(vdupq_n_f32(4.166664568298827e-2f), c, z);
        c = vfmaq_f32(vfmaq_n_f32(vdupq_n_f32(1), z, -0.5f), c, vmulq_f32(z, z));

        uint32x4_t cos_size = vreinterpretq_u32_f32(vbslq_f32(odd, s, c));
        uint32x4_t sin_size = vreinterpretq_u32_f32(vbslq_f32(odd, c, s));
        uint32x4_t cos_sign = vandq_u32(vshlq_n_u32(vaddq_u32(quarter, one), 30), sign);
        uint32x4_t sin_sign = vandq_u32(vshlq_n_u32(quarter, 30), sign);
        float32x4_t cosines = vreinterpretq_f32_u32(veorq_u32(cos_size, cos_sign));
        float32x4_t sines = vreinterpretq_f32_u32(veorq_u32(sin_size, sin_sign));
        vst1q_f32(cosine + i, vmulq_n_f32(cosines, factor));
        vst1q_f32(sine + i, vmulq_n_f32(sines, factor));
    }
}

static void turn_half(const float *x, const float *cosine, const float *sine, int64_t pairs,
                      float *out)
{
    for (int64_t i = 0; i < pairs; i += 4) {
        float32x4_t a = vld1q_f32(x + i), b = vld1q_f32(x + pairs + i);
        float32x4_t c = vld1q_f32(cosine + i), s = vld1q_f32(sine + i);
        vst1q_f32(out + i, vfmsq_f32(vmulq_f32(a, c), b, s));
        vst1q_f32(out + pairs + i, vfmaq_f32(vmulq_f32(a, s), b, c));
    }
}

static void turn_interleaved(const float *x, const float *cosine, const float *sine, int64_t pairs,
                             float *out)
{
    for (int64_t i = 0; i < pairs; i += 4) {
        float32x4x2_t v = vld2q_f32(x + 2 * i), turned;
        float32x4_t c = vld1q_f32(cosine + i), s = vld1q_f32(sine + i);
        turned.val[0] = vfmsq_f32(vmulq_f32(v.val[0], c), v.val[1], s);
        turned.val[1] = vfmaq_f32(vmulq_f32(v.val[0], s), v.val[1], c);
        vst2q_f32(out + 2 * i, turned);
    }
}

static float largest(const float *x, int64_t n)
{
    float32x4_t most = vdupq_n_f32(0);
    for (int64_t i = 0; i < n; i += 4)
        most = vmaxq_f32(most, vabsq_f32(vld1q_f32(x + i)));
    return vmaxvq_f32(most);
}

void k_rope_neon(const kargs *k, const kthread *t, int64_t begin, int64_t end)
{
    const int32_t *pos = k->in[1]; /* [rows] */
    const float *freqs = k->in[2]; /* [pairs] */
    int64_t heads = k->size.rope.heads, width = k->size.rope.width, pairs = k->size.rope.pairs;
    float *cosine = t->scratch, *sine = cosine + pairs, factor = (float)k->scalar.rope.factor;
    kpart p = kpart_of(k, heads * width, begin, end);
    if (pairs % 4 != 0) {
        k_rope_c(k, t, begin, end);
        return;
    }
    float most = largest(freqs, pairs);
    for (int64_t row = p.row; row < p.row_end && p.col < p.col_end; row++) {
        float position = (float)pos[row];
        if (position * most < angle_max && position < angle_max) /* not so for a NaN */
            angles(freqs, position, factor, pairs, cosine, sine);
        else
            rope_angles(freqs, pos[row], factor, pairs, cosine, sine);
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
