/* linear_float_stream.h - one row of activations times weights as stored, in several streams.
 *
 * Loads of activations cost as much as those of weights, so a vector of them serves three weight rows. Rows next
 * to each other would be three streams that end after a row each, which the prefetcher of a core loses again
 * and again (70 % of the bandwidth); so a range of rows is cut into three, and each stream runs through
 * its third. The hints of a stream's end go to where it will go on in the next range. */
#ifndef WEFT_KERNELS_NEON_LINEAR_FLOAT_STREAM_H
#define WEFT_KERNELS_NEON_LINEAR_FLOAT_STREAM_H

#include "kernels/neon/neon.h"

enum { NEON_STREAMS = 3 };

NEON_INLINE void neon_hint_here(const uint8_t *p)
{
    __asm__ volatile("prfm pldl3keep, [%0]" ::"r"(p));
}

/* Weight rows w[..] times x, to out[..]; one of them, or NEON_STREAMS. Both give a row the same bits. */
typedef void neon_dots(const uint8_t *const *w, const uint8_t *const *ahead, const void *x,
                       int64_t n, float *out);

static inline void neon_linear_put(const kargs *k, int64_t row, int64_t col, float sum)
{
    float *out = (float *)((char *)k->out[0] + row * k->out_pitch[0]);
    const float *bias = k->in[2]; /* [m] or NULL */
    out[col] = bias ? sum + bias[col] : sum;
}

static inline void neon_linear_streams(const kargs *k, int64_t begin, int64_t end, neon_dots *one,
                                       neon_dots *streams)
{
    kpart part = kpart_of(k, k->size.linear.out, begin, end);
    int64_t pitch = k->pitch[1], len = (part.col_end - part.col) / NEON_STREAMS;
    int64_t far = NEON_AHEAD / (pitch > 0 ? pitch : 1) + 1; /* rows ahead */
    const uint8_t *base = k->in[1];
    for (int64_t row = part.row; row < part.row_end; row++) {
        const void *x = (const char *)k->in[0] + row * k->pitch[0];
        const uint8_t *w[NEON_STREAMS], *ahead[NEON_STREAMS];
        float sum[NEON_STREAMS];
        for (int64_t i = 0; i < len; i++) {
            for (int64_t j = 0; j < NEON_STREAMS; j++) {
                int64_t past = i + far - len; /* of its end */
                int64_t then =
                    past < 0 ? part.col + j * len + i + far : part.col_end + j * len + past;
                w[j] = base + (part.col + j * len + i) * pitch;
                ahead[j] = base + then * pitch;
            }
            streams(w, ahead, x, k->size.linear.in, sum);
            for (int64_t j = 0; j < NEON_STREAMS; j++)
                neon_linear_put(k, row, part.col + j * len + i, sum[j]);
        }
        for (int64_t col = part.col + NEON_STREAMS * len; col < part.col_end; col++) {
            w[0] = base + col * pitch;
            ahead[0] = w[0] + NEON_AHEAD;
            one(w, ahead, x, k->size.linear.in, sum);
            neon_linear_put(k, row, col, sum[0]);
        }
    }
}

#endif
