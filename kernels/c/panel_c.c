/* panel_c.c - the loops around a panel.
 *
 * Columns go in runs, outside of the weights, so that what all rows of activations have of a run stays in the second-level
 * cache while the weights pass; results are added up from run to run. */
#include "kernels/c/panel.h"

#include <string.h>
#include "kernels/c/chosen.h"

enum { ROWS_MAX = 256 };         /* rows of activations that share a panel */
enum { FEW_BYTES = 512 * 1024 }; /* of all columns of them, for a second-level cache */

/* Some rows of activations with columns [col, col_end) of the result. */
typedef struct {
    const panel_core *core;
    const uint8_t *w;
    int64_t pitch;     /* of a row of weights, or of a group of them */
    const float *bias; /* of all columns, or NULL */
    int64_t n, col, col_end;
    int64_t n_x;
    const void *x[ROWS_MAX + PANEL_TILE_MAX]; /* [n_x], then the last one again */
    float *out[ROWS_MAX + PANEL_TILE_MAX];    /* NULL: not asked for */
    char *panel;
    char *
        interleaved; /* where activations become groups of four; NULL: they are as the core wants them */
} work;

/* Fill up the last tile. */
static void fill_tile(work *j)
{
    for (int64_t i = j->n_x; i < j->n_x + PANEL_TILE_MAX; i++) {
        j->x[i] = j->x[j->n_x - 1];
        j->out[i] = NULL;
    }
}

/* Columns [col, col + width) of the sums of a tile. */
static void put(const work *j, const float *t, float *const *out, int count, int64_t col,
                int64_t width, bool add)
{
    const float *bias = j->bias ? j->bias + col : NULL;
    for (int i = 0; i < count; i++, t += j->core->rows) {
        if (!out[i])
            continue;
        float *to = out[i] + col;
        for (int64_t c = 0; c < width; c++)
            to[c] = add ? to[c] + t[c] : bias ? t[c] + bias[c] : t[c];
    }
}

static void put_tile(const work *j, const float *t, int64_t i, int count, int64_t col,
                     int64_t width, bool add)
{
    if (!j->core->put || width < j->core->rows) {
        put(j, t, j->out + i, count, col, width, add);
        return;
    }
    float *out[PANEL_TILE_MAX];
    for (int k = 0; k < j->core->tile; k++)
        out[k] = k < count && j->out[i + k] ? j->out[i + k] + col : NULL;
    j->core->put(t, out, j->bias ? j->bias + col : NULL, add);
}

/* The rows of the next tile. Tiles are even where they may be: a small one takes longer for a row. */
static int tile_rows(const panel_core *core, int64_t left)
{
    int64_t tiles = (left + core->tile - 1) / core->tile;
    if (act_group(core->act) > 1)
        return left < core->tile ? (int)left : core->tile;
    return (int)((left + tiles - 1) / tiles);
}

/* One panel with all rows. */
static void run_panel(const work *j, const panel_acts *run, const void *const *x, int64_t col,
                      bool add)
{
    const panel_core *core = j->core;
    float t[PANEL_TILE_MAX * PANEL_ROWS_MAX] __attribute__((aligned(64)));
    int64_t width = j->col_end - col < core->rows ? j->col_end - col : core->rows;
    panel_acts acts = *run;
    for (int64_t i = 0; i < j->n_x; i += acts.count) {
        acts.count = tile_rows(core, j->n_x - i);
        const void *next = x[i + acts.count < j->n_x ? i + acts.count : 0];
        acts.rows = x + i;
        acts.x = x[i];
        acts.next = (int64_t)((uintptr_t)next - (uintptr_t)x[i]);
        core->multiply(j->panel, &acts, t);
        put_tile(j, t, i, acts.count, col, width, add);
    }
}

/* Columns [first, first + cols) of a row quantised alone, as row r of four interleaved ones that have `cols` columns. */
static void interleave_row(kact four, const void *x, int64_t n, int64_t first, int64_t cols,
                           int64_t r, char *to)
{
    kact single = four == ACT_Q8X4 ? ACT_Q8 : ACT_Q8K;
    int64_t b = act_block(four);
    const int8_t *q = act_q(x) + first;
    const float *d = act_d_of(single, x, n) + first / b;
    const int16_t *sum16 = act_sum(single, x, n) + first / 16;
    float *d4 = (float *)(uintptr_t)act_d4(to, cols) + r / 2 * 4 + r % 2;
    void *sums = (void *)(uintptr_t)act_sum4(four, to, cols);
    for (int64_t i = 0; i < cols; i += 8)
        memcpy(to + i * 4 + r * 8, q + i, 8);
    for (int64_t i = 0; i < cols / b; i++)
        d4[i * 8] = d4[i * 8 + 2] = d[i];
    for (int64_t i = 0; i < cols / 32; i++) {
        int sum = sum16[2 * i] + sum16[2 * i + 1];
        if (four == ACT_Q8X4) {
            ((float *)sums)[i * 4 + r] = d[i] * (float)sum;
        } else {
            int8_t *two = (int8_t *)sums + i / 8 * 64 + r * 8 + i % 8;
            two[0] = (int8_t)(sum & 127);
            two[32] = (int8_t)(sum >> 7);
        }
    }
}

/* The activations of a run in groups of four; the last row fills up a group. */
static void interleave(const work *j, panel_acts *run, const void **x)
{
    kact four = j->core->act;
    int64_t group = 4 * act_row_bytes(four, run->cols);
    for (int64_t i = 0; i < (j->n_x + 3) / 4 * 4; i++) {
        x[i] = j->interleaved + i / 4 * group;
        interleave_row(four, j->x[i], j->n, run->first, run->cols, i % 4,
                       j->interleaved + i / 4 * group);
    }
    run->n = run->cols;
    run->first = 0;
}

/* Columns [first, ..) of a run against columns [col, col_end) of the result. */
static void run_columns(const work *j, int64_t first, int64_t col, int64_t col_end)
{
    const panel_core *core = j->core;
    int64_t cols = j->n - first < core->cols ? j->n - first : core->cols;
    panel_acts run = {.n = j->n, .first = first, .cols = cols};
    const void *own[PANEL_CHOSEN + PANEL_TILE_MAX];
    const void *const *x = j->x;
    if (j->interleaved) {
        interleave(j, &run, own);
        x = own;
    }
    for (; col < col_end; col += core->rows) {
        int64_t rows = col_end - col < core->rows ? col_end - col : core->rows;
        core->unpack(j->w + col / core->group * j->pitch, j->pitch, rows, first, cols, j->panel);
        run_panel(j, &run, x, col, first > 0);
    }
}

/* Of few rows a cache has all columns: weights are then read in the order in which they lie. */
static void run_rows(work *j)
{
    bool few = !j->interleaved && j->n_x * act_row_bytes(j->core->act, j->n) <= FEW_BYTES;
    int64_t step = few ? j->core->rows : j->col_end - j->col;
    fill_tile(j);
    for (int64_t col = j->col; col < j->col_end; col += step)
        for (int64_t first = 0; first < j->n; first += j->core->cols)
            run_columns(j, first, col, j->col_end - col < step ? j->col_end : col + step);
}

void panel_linear(const kargs *k, const kthread *t, int64_t begin, int64_t end,
                  const panel_core *core)
{
    kpart part = kpart_of(k, k->size.linear.out, begin, end);
    int64_t four = act_group(core->act);
    work j = {.core = core,
              .w = k->in[1],
              .pitch = k->pitch[1],
              .bias = k->in[2],
              .n = k->size.linear.in,
              .col = part.col,
              .col_end = part.col_end,
              .panel = t->scratch};
    for (int64_t row = part.row / four * four; row < part.row_end; row += j.n_x) {
        j.n_x = part.row_end - row < ROWS_MAX ? part.row_end - row : ROWS_MAX;
        for (int64_t i = 0; i < j.n_x; i++) {
            char *out = (char *)k->out[0] + (row + i) * k->out_pitch[0];
            j.x[i] = (const char *)k->in[0] + (row + i) / four * four * k->pitch[0];
            j.out[i] = row + i < part.row ? NULL : (float *)(void *)out;
        }
        run_rows(&j);
    }
}

void panel_experts(const kargs *k, const kthread *t, int64_t begin, int64_t end,
                   const panel_core *core)
{
    const uint8_t *const *w = k->in[1]; /* [E] addresses of [m, n] */
    kpart part = kpart_of(k, k->size.experts.out, begin, end);
    work j = {.core = core,
              .pitch = k->pitch[1],
              .n = k->size.experts.in,
              .col = part.col,
              .col_end = part.col_end,
              .panel = t->scratch};
    if (act_group(core->act) > 1)
        j.interleaved = j.panel + PANEL_BYTES;
    for (int64_t e = 0; e < k->size.experts.experts; e++) {
        chosen_slots slots = chosen_of(k, &part);
        j.w = w[e];
        j.bias = chosen_bias(k, e);
        while ((j.n_x = chosen_next(k, &slots, e, PANEL_CHOSEN, j.x, j.out)) > 0)
            run_rows(&j);
    }
}
