/* rows8.c - the loops around a core: a group of eight weight rows is read once for up to four rows of activations,
 * which stay in the first cache. out overlaps no input. */
#include "kernels/neon/rows8.h"

/* Up to four rows against columns [col, col_end). */
typedef struct {
    const rows8_core *core;
    const uint8_t *w;
    int64_t pitch; /* of a group */
    int64_t n, col, col_end;
    const float *bias; /* [m] or NULL */
    int n_x;
    const void *x[ROWS8_X_MAX];
    float *out[ROWS8_X_MAX];
} work;

static void run(work *j)
{
    if (j->n_x == 0)
        return;
    rows8_fn *fn = j->core->of[j->n_x - 1];
    for (int64_t col = j->col; col < j->col_end; col += LAYOUT_GROUP) {
        float32x4_t sum[ROWS8_X_MAX][2];
        fn(j->w + col / LAYOUT_GROUP * j->pitch, j->x, j->n, sum);
        for (int i = 0; i < j->n_x; i++)
            neon_store8(j->out[i] + col, j->bias ? j->bias + col : NULL, sum[i]);
    }
    j->n_x = 0;
}

static void add(work *j, const kargs *k, int64_t x, int64_t out)
{
    j->x[j->n_x] = (const char *)k->in[0] + x * k->pitch[0];
    j->out[j->n_x++] = (float *)((char *)k->out[0] + out * k->out_pitch[0]);
    if (j->n_x == ROWS8_X_MAX)
        run(j);
}

void rows8_linear(const kargs *k, int64_t begin, int64_t end, const rows8_core *core)
{
    kpart part = kpart_of(k, k->n[1], begin, end);
    work j = {.core = core, .w = k->in[1], .pitch = k->pitch[1], .n = k->n[2], .bias = k->in[2]};
    j.col = part.col;
    j.col_end = part.col_end;
    for (int64_t row = part.row; row < part.row_end; row++)
        add(&j, k, row, row);
    run(&j);
}

void rows8_experts(const kargs *k, int64_t begin, int64_t end, const rows8_core *core)
{
    const uint8_t *const *w = k->in[1]; /* [E] addresses of [m, n] */
    const int32_t *ids = k->in[2];      /* [rows, K] */
    int64_t top = k->n[1];
    bool x_each = k->n[4] != 0; /* every choice has an x of its own */
    kpart part = kpart_of(k, k->n[2], begin, end);
    work j = {.core = core, .pitch = k->pitch[1], .n = k->n[3]};
    j.col = part.col;
    j.col_end = part.col_end;
    for (int64_t e = 0; e < k->n[5]; e++) {
        j.w = w[e];
        j.bias = k->in[3] ? (const float *)((const char *)k->in[3] + e * k->pitch[3]) : NULL;
        for (int64_t slot = part.row * top; slot < part.row_end * top; slot++)
            if (ids[slot] == e)
                add(&j, k, x_each ? slot : slot / top, slot);
        run(&j);
    }
}
