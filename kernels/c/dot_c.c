/* dot_c.c - the loop around the cores that every contraction shares.
 *
 * Weight rows are the outer loop: each is read from memory once and multiplied with all rows of
 * activations at hand, which stay in the caches. */
#include "kernels/c/dot_impl.h"
#include "kernels/ref/dequant.h"

/* Kernels for weights of one type name their core; those for any type multiply floats, so that a program that has few types
 * does not link the cores of all. */
static const dot_core *const float_cores[DT_COUNT] = {
    [DT_F32] = &dot_core_F32,
    [DT_F16] = &dot_core_F16,
    [DT_BF16] = &dot_core_BF16,
};

dot_work dot_work_of(const kargs *k, const kthread *t, const dot_core *core, int64_t n)
{
    dot_work j = {.core = core, .pitch = k->pitch[1], .type = k->type[1], .n = n};
    if (!core) {
        j.core = float_cores[j.type];
        if (!j.core) {
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

/* How far ahead of its use, in bytes, memory is asked for a line: measured with AVX-512, x86/unpack.h. */
enum { AHEAD = 8 << 10 };

/* Rows w[r], after which comes what lies at then[r] from row 0 on, with all rows of activations: out[i][row[r]]. */
static void dot_pair(const dot_work *j, const int64_t row[DOT_STREAMS],
                     const int64_t then[DOT_STREAMS])
{
    const void *w[DOT_STREAMS], *ahead[DOT_STREAMS];
    for (int r = 0; r < DOT_STREAMS; r++) {
        w[r] = j->w + row[r] * j->pitch;
        ahead[r] = (const void *)((uintptr_t)j->w + (uintptr_t)then[r]);
    }
    for (int64_t i = 0, n_x; i < j->n_x; i += n_x) {
        float sum[DOT_STREAMS_X][DOT_STREAMS];
        n_x = j->n_x - i < DOT_STREAMS_X ? j->n_x - i : DOT_STREAMS_X;
        j->core->streams(w, i ? w : ahead, j->x + i, n_x, j->n, sum);
        for (int64_t k = 0; k < n_x; k++)
            for (int r = 0; r < DOT_STREAMS; r++)
                put(j->out[i + k], row[r], sum[k][r], j->bias);
    }
}

/* Rows [j->row, the result): each stream has a part of its own, so that it is a long one. What comes after its end
 * is the same part of the range that follows. */
static int64_t dot_streams(const dot_work *j)
{
    int64_t len = (j->row_end - j->row) / DOT_STREAMS;
    for (int64_t i = 0; i < len; i++) {
        int64_t row[DOT_STREAMS], then[DOT_STREAMS];
        int64_t past = (len - i) * j->pitch > AHEAD ? 0 : (DOT_STREAMS - 1) * len;
        for (int r = 0; r < DOT_STREAMS; r++) {
            row[r] = j->row + r * len + i;
            then[r] = (row[r] + past) * j->pitch + AHEAD;
        }
        dot_pair(j, row, then);
    }
    return j->row + DOT_STREAMS * len;
}

void dot_block(const dot_work *j)
{
    int64_t row = j->core->streams && !j->scratch ? dot_streams(j) : j->row;
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
