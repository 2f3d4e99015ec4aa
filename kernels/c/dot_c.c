/* dot_c.c - the table of cores, and the loop around them that every contraction shares.
 *
 * Weight rows are the outer loop: each is read from memory once and multiplied with all rows of
 * activations at hand, which stay in the caches.
 *
 * GB/s of weights at one row, 65536 x 2048, GCC 12, two cores of a Neoverse V1 that read 78 at best:
 * F32 60, F16 32, BF16 26, Q8_0 29, Q4_0 12, Q4_1 13, Q5_0 and Q5_1 9, Q4_K, Q5_K and Q6_K 17, IQ4_XS 15,
 * IQ4_NL and MXFP4 12, Q3_K 8, Q2_K 7; at many rows 40 to 65 GFLOP/s whatever the type. */
#include "kernels/c/dot_impl.h"
#include "kernels/ref/dequant.h"

/* clang-format off */
static const dot_core *const cores[DT_COUNT] = {
    [DT_F32]    = &dot_core_F32,
    [DT_F16]    = &dot_core_F16,
    [DT_BF16]   = &dot_core_BF16,
    [DT_Q8_0]   = &dot_core_Q8_0,
    [DT_Q4_0]   = &dot_core_Q4_0,
    [DT_Q4_1]   = &dot_core_Q4_1,
    [DT_Q5_0]   = &dot_core_Q5_0,
    [DT_Q5_1]   = &dot_core_Q5_1,
    [DT_IQ4_NL] = &dot_core_IQ4_NL,
    [DT_MXFP4]  = &dot_core_MXFP4,
    [DT_Q2_K]   = &dot_core_Q2_K,
    [DT_Q3_K]   = &dot_core_Q3_K,
    [DT_Q4_K]   = &dot_core_Q4_K,
    [DT_Q5_K]   = &dot_core_Q5_K,
    [DT_Q6_K]   = &dot_core_Q6_K,
    [DT_IQ4_XS] = &dot_core_IQ4_XS,
};
/* clang-format on */

const dot_core *dot_core_of(dtype t)
{
    return cores[t];
}

dot_work dot_work_of(const kargs *k, const kthread *t, const dot_core *core, int64_t n)
{
    dot_work j = {.core = core, .pitch = k->pitch[1], .type = k->type[1], .n = n};
    if (!core) {
        j.core = cores[j.type];
        if (!j.core || j.core->act != ACT_F32) {
            j.core = &dot_core_F32;
            j.scratch = t->scratch;
        }
    }
    return j;
}

static void put(float *out, int64_t row, float sum, const float *bias)
{
    out[row] = bias ? sum + bias[row] : sum;
}

static void dot_tiles(const dot_work *j, int64_t row)
{
    for (int64_t i = 0, n_x; i < j->n_x; i += n_x) {
        float sum[DOT_TILE][DOT_TILE];
        n_x = j->n_x - i < DOT_TILE ? j->n_x - i : DOT_TILE;
        j->core->tile(j->w + row * j->pitch, j->pitch, j->x + i, n_x, j->n, sum);
        for (int64_t r = 0; r < n_x; r++)
            for (int64_t of = 0; of < DOT_TILE; of++)
                put(j->out[i + r], row + of, sum[r][of], j->bias);
    }
}

void dot_block(const dot_work *j)
{
    int64_t row = j->row;
    for (; j->core->tile && !j->scratch && row + DOT_TILE <= j->row_end; row += DOT_TILE)
        dot_tiles(j, row);
    for (; row < j->row_end; row++) {
        const void *w = j->w + row * j->pitch;
        if (j->scratch) {
            dequant_row(j->type, w, j->scratch, j->n);
            w = j->scratch;
        }
        int64_t i = 0;
        for (; i + 4 <= j->n_x; i += 4) {
            float sum[4];
            j->core->four(w, j->x + i, j->n, sum);
            for (int r = 0; r < 4; r++)
                put(j->out[i + r], row, sum[r], j->bias);
        }
        for (; i < j->n_x; i++) {
            float sum;
            j->core->one(w, j->x + i, j->n, &sum);
            put(j->out[i], row, sum, j->bias);
        }
    }
}
