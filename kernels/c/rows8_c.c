/* rows8_c.c - the loops around a core for interleaved weights: some columns outside, rows of activations inside, so that
 * weights come from memory once for ROWS_MAX of them. */
#include "kernels/c/rows8.h"

#include "kernels/c/chosen.h"

/* Some groups, which stay in a second-level cache, while the rows of activations that are multiplied at once stay in
 * the first. */
enum { ROWS_MAX = 32, COLS = 4 * LAYOUT_GROUP };

/* Some rows of activations against columns [col, col_end). */
typedef struct {
    const rows8_core *core;
    const uint8_t *w;
    int64_t pitch; /* of a group */
    int64_t n, col, col_end;
    const float *bias; /* [m] or NULL */
    int n_x;
    const void *x[ROWS_MAX];
    float *out[ROWS_MAX];
} work;

/* As many rows as the core takes at once. */
static int some_of(const rows8_core *core, int left)
{
    int some = left < ROWS8_X_MAX ? left : ROWS8_X_MAX;
    while (!core->of[some])
        some--;
    return some;
}

static void put(float *out, const float *bias, const float sum[LAYOUT_GROUP])
{
    for (int r = 0; r < LAYOUT_GROUP; r++)
        out[r] = bias ? sum[r] + bias[r] : sum[r];
}

/* x[i], two groups at a time; returns the first column that is left. */
static int64_t run_pairs(const work *j, int i, int64_t col, int64_t col_end)
{
    for (; col + 2 * LAYOUT_GROUP <= col_end; col += 2 * LAYOUT_GROUP) {
        float sum[2 * LAYOUT_GROUP];
        j->core->pair(j->w + col / LAYOUT_GROUP * j->pitch, j->pitch, j->x[i], j->n, sum);
        for (int g = 0; g < 2 * LAYOUT_GROUP; g += LAYOUT_GROUP)
            put(j->out[i] + col + g, j->bias ? j->bias + col + g : NULL, sum + g);
    }
    return col;
}

/* x[i] .. of `some` rows, columns [col, col_end). */
static void run_some(const work *j, int i, int some, int64_t col, int64_t col_end)
{
    if (some == 1 && j->core->pair)
        col = run_pairs(j, i, col, col_end);
    for (; col < col_end; col += LAYOUT_GROUP) {
        float sum[ROWS8_X_MAX][LAYOUT_GROUP];
        j->core->of[some](j->w + col / LAYOUT_GROUP * j->pitch, j->x + i, j->n, sum);
        for (int r = 0; r < some; r++)
            put(j->out[i + r] + col, j->bias ? j->bias + col : NULL, sum[r]);
    }
}

static void run(const work *j)
{
    for (int64_t col = j->col; col < j->col_end; col += COLS) {
        int64_t col_end = j->col_end - col < COLS ? j->col_end : col + COLS;
        for (int i = 0, some; i < j->n_x; i += some) {
            some = some_of(j->core, j->n_x - i);
            run_some(j, i, some, col, col_end);
        }
    }
}

void rows8_linear(const kargs *k, int64_t begin, int64_t end, const rows8_core *core)
{
    kpart part = kpart_of(k, k->size.linear.out, begin, end);
    work j = {.core = core,
              .w = k->in[1],
              .pitch = k->pitch[1],
              .n = k->size.linear.in,
              .bias = k->in[2]};
    j.col = part.col;
    j.col_end = part.col_end;
    for (int64_t row = part.row; row < part.row_end; row += j.n_x) {
        j.n_x = part.row_end - row < ROWS_MAX ? (int)(part.row_end - row) : ROWS_MAX;
        for (int i = 0; i < j.n_x; i++) {
            j.x[i] = (const char *)k->in[0] + (row + i) * k->pitch[0];
            j.out[i] = (float *)(void *)((char *)k->out[0] + (row + i) * k->out_pitch[0]);
        }
        run(&j);
    }
}

void rows8_experts(const kargs *k, int64_t begin, int64_t end, const rows8_core *core)
{
    const uint8_t *const *w = k->in[1]; /* [E] addresses of [m, n] */
    kpart part = kpart_of(k, k->size.experts.out, begin, end);
    work j = {.core = core, .pitch = k->pitch[1], .n = k->size.experts.in};
    j.col = part.col;
    j.col_end = part.col_end;
    for (int64_t e = 0; e < k->size.experts.experts; e++) {
        chosen_slots slots = chosen_of(k, &part);
        j.w = w[e];
        j.bias = chosen_bias(k, e);
        while ((j.n_x = (int)chosen_next(k, &slots, e, ROWS_MAX, j.x, j.out)) > 0)
            run(&j);
    }
}
