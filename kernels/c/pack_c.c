/* pack_c.c - activations rounded to 8 bits, block by block; act.h tells the layout.
 *
 * The same bits as k_pack_ref. Magnitudes are compared as integers, which orders them alike and puts
 * infinities and NaNs above all numbers; adding 1.5 * 2^23 leaves the nearest integer in the low
 * bits, ties to even. Both are loops that vectorise everywhere. */
#include "kernels/kernel_decls.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum { CHUNK = 32, INF_BITS = 0x7f800000 };

/* The bits of the largest magnitude among 32. */
static int32_t max_bits(const float *x)
{
    int32_t max = 0;
    for (int i = 0; i < CHUNK; i++) {
        int32_t bits;
        memcpy(&bits, x + i, sizeof bits);
        bits &= 0x7fffffff;
        max = bits > max ? bits : max;
    }
    return max;
}

static void round_chunk(const float *restrict x, int8_t *restrict q, float inverse)
{
    int32_t rounded[CHUNK];
    for (int i = 0; i < CHUNK; i++) {
        float y = x[i] * inverse + 0x1.8p23f;
        memcpy(rounded + i, &y, sizeof y);
    }
    for (int i = 0; i < CHUNK; i++)
        q[i] = (int8_t)rounded[i];
}

/* One block of b elements; returns its scale. */
static float pack_block(const float *x, int8_t *q, int64_t b)
{
    int32_t bits = 0;
    for (int64_t i = 0; i < b; i += CHUNK) {
        int32_t here = max_bits(x + i);
        bits = here > bits ? here : bits;
    }
    if (bits >= INF_BITS || bits == 0) {
        memset(q, bits != 0, (size_t)b); /* times NaN is NaN; times 0 is 0 */
        return bits ? NAN : 0;
    }
    float max;
    memcpy(&max, &bits, sizeof max);
    float d = max / 127, inverse = 127 / max;
    if (inverse > FLT_MAX) /* numbers too small to have an inverse */
        inverse = FLT_MAX;
    for (int64_t i = 0; i < b; i += CHUNK)
        round_chunk(x + i, q + i, inverse);
    return d;
}

/* In the lanes of a word: the bytes are made positive by adding 128 to each, then added up in 16 bits. */
static int16_t sum16(const int8_t *q)
{
    const uint64_t flip = 0x8080808080808080u, low = 0x00ff00ff00ff00ffu;
    uint64_t a, b;
    memcpy(&a, q, sizeof a);
    memcpy(&b, q + 8, sizeof b);
    a ^= flip;
    b ^= flip;
    uint64_t four = (a & low) + (a >> 8 & low) + (b & low) + (b >> 8 & low);
    return (int16_t)((int)(four * 0x0001000100010001u >> 48) - 16 * 128);
}

/* By columns, a tile is a multiple of 256: it cuts no block. */
void k_pack_c(const kargs *k, const kthread *t, int64_t begin, int64_t end)
{
    kact act = (kact)k->word[0];
    int64_t n = k->n[1], b = act_block(act);
    kpart part = kpart_of(k, n, begin, end);
    (void)t;
    for (int64_t row = part.row; row < part.row_end; row++) {
        const float *x = (const float *)((const char *)k->in[0] + row * k->pitch[0]); /* [n] */
        char *to = (char *)k->out[0] + row * k->out_pitch[0];
        int8_t *q = (int8_t *)to;
        float *d = (float *)(to + act_pad(n));
        int16_t *sum = (int16_t *)(to + act_pad(n) + act_pad(n / b * 4));
        for (int64_t i = part.col; i < part.col_end; i += b)
            d[i / b] = pack_block(x + i, q + i, b);
        for (int64_t i = part.col; i < part.col_end; i += 16)
            sum[i / 16] = sum16(q + i);
    }
}
