/* rope_cuda.cuh - rotate pairs by position times frequency.
 *
 * The cosines and sines of a row are worked out once for all its heads, in scratch [2, pairs]. Elements beyond the pairs pass
 * through. out may be x. */
#ifndef WEFT_KERNELS_CUDA_ROPE_CUDA_CUH
#define WEFT_KERNELS_CUDA_ROPE_CUDA_CUH

#include <math.h>
#include "kernels/cuda/block_cuda.cuh"

/* The angle, in double, less whole quarters is a float within pi/4, of which float functions are right to a unit. */
static __device__ void rope_angle(double angle, float factor, float *cosine, float *sine)
{
    const double half_pi_high = 0x1.921fb544p0, half_pi_low = 0x1.0b4611a626331p-34;
    double whole = rint(angle * 0x1.45f306dc9c883p-1); /* 2 / pi */
    float r = (float)(angle - whole * half_pi_high - whole * half_pi_low);
    float c = cosf(r), s = sinf(r);
    int quarter = (int)((int64_t)whole & 3);
    float turned_c = quarter & 1 ? s : c, turned_s = quarter & 1 ? c : s;
    *cosine = (quarter == 1 || quarter == 2 ? -turned_c : turned_c) * factor;
    *sine = (quarter >= 2 ? -turned_s : turned_s) * factor;
}

static __device__ ONE_COPY void k_rope_cuda(const kargs *k, const kthread *t, int64_t begin,
                                            int64_t end)
{
    const int32_t *pos = (const int32_t *)k->in[1]; /* [rows] */
    const float *freqs = (const float *)k->in[2];   /* [pairs] */
    int64_t width = k->size.rope.width, pairs = k->size.rope.pairs, rest = width - 2 * pairs;
    bool interleaved = k->choice.rope.order == ROPE_INTERLEAVED;
    float *cosine = (float *)t->scratch, *sine = cosine + pairs;
    kpart p = kpart_of(k, k->size.rope.heads * width, begin, end);
    int64_t heads = (p.col_end - p.col) / width;
    for (int64_t row = p.row; row < p.row_end && heads > 0; row++) {
        const float *x = row_in(k, 0, row) + p.col;
        float *out = row_out(k, 0, row) + p.col;
        __syncthreads(); /* the angles of the row before have been read */
        for (int64_t i = threadIdx.x; i < pairs; i += block_threads())
            rope_angle((double)pos[row] * (double)freqs[i], (float)k->scalar.rope.factor,
                       &cosine[i], &sine[i]);
        __syncthreads();
        for (int64_t at = threadIdx.x; at < heads * pairs; at += block_threads()) {
            int64_t i = at % pairs, head = at / pairs * width;
            int64_t one = head + (interleaved ? 2 * i : i);
            int64_t two = interleaved ? one + 1 : one + pairs;
            float a = x[one], b = x[two];
            out[one] = a * cosine[i] - b * sine[i];
            out[two] = a * sine[i] + b * cosine[i];
        }
        for (int64_t at = threadIdx.x; x != out && at < heads * rest; at += block_threads()) {
            int64_t i = at / rest * width + 2 * pairs + at % rest;
            out[i] = x[i];
        }
    }
}

#endif
