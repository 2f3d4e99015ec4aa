/* panel_experts_i8mm.c - experts for many rows: those that chose an expert are interleaved by four, ROWS8_ROWS at a time, and
 * multiplied with its weights as panel_i8mm.c does it. out overlaps no input. */
#include <string.h>
#include "kernels/c/chosen.h"
#include "kernels/neon/panel.h"

typedef struct {
    const kargs *k;
    const panel_core *core;
    int64_t n, col, col_end;
    const uint8_t *w;  /* of the expert */
    const float *bias; /* [m] or NULL */
    int64_t n_row;
    const void *x[ROWS8_ROWS];
    float *out[ROWS8_ROWS];
    void *panel;
    char *rows8;
} work;

/* Columns [first, first + cols) of a row quantised alone, as row r of four interleaved ones that have `cols` columns. */
static void interleave_row(kact rows8, const void *x, int64_t n, int64_t first, int64_t cols,
                           int64_t r, char *to)
{
    kact single = rows8 == ACT_Q8X4 ? ACT_Q8 : ACT_Q8K;
    int64_t b = act_block(rows8);
    const int8_t *q = act_q(x) + first;
    const float *d = act_d_of(single, x, n) + first / b;
    const int16_t *sum16 = act_sum(single, x, n) + first / 16;
    float *d4 = (float *)(uintptr_t)act_d4(to, cols) + r / 2 * 4 + r % 2;
    void *sums = (void *)(uintptr_t)act_sum4(rows8, to, cols);
    for (int64_t i = 0; i < cols; i += 8)
        memcpy(to + i * 4 + r * 8, q + i, 8);
    for (int64_t i = 0; i < cols / b; i++)
        d4[i * 8] = d4[i * 8 + 2] = d[i];
    for (int64_t i = 0; i < cols / 32; i++) {
        int sum = sum16[2 * i] + sum16[2 * i + 1];
        if (rows8 == ACT_Q8X4) {
            ((float *)sums)[i * 4 + r] = d[i] * (float)sum;
        } else {
            int8_t *two = (int8_t *)sums + i / 8 * 64 + r * 8 + i % 8;
            two[0] = (int8_t)(sum & 127);
            two[32] = (int8_t)(sum >> 7);
        }
    }
}

static void run(const work *j)
{
    kact rows8 = j->core->block == 32 ? ACT_Q8X4 : ACT_Q8KX4;
    for (int64_t first = 0, cols; first < j->n; first += cols) {
        cols = j->n - first < ROWS8_COLS ? j->n - first : ROWS8_COLS;
        int64_t group = TILE_X * act_row_bytes(rows8, cols);
        for (int64_t i = 0; i < (j->n_row + 3) / 4 * 4; i++) /* the last one fills up a group */
            interleave_row(rows8, j->x[i < j->n_row ? i : j->n_row - 1], j->n, first, cols, i % 4,
                           j->rows8 + i / 4 * group);
        for (int64_t col = j->col; col < j->col_end; col += LAYOUT_GROUP) {
            const uint8_t *w = j->w + col / LAYOUT_GROUP * j->k->pitch[1];
            j->core->unpack(w + first / j->core->block * j->core->bytes, cols, j->panel);
            for (int64_t i = 0; i < j->n_row; i += TILE_X) {
                float t[TILE] __attribute__((aligned(16)));
                float *out[TILE_X] = {0};
                for (int64_t x = i; x < i + TILE_X && x < j->n_row; x++)
                    out[x - i] = j->out[x] + col;
                int64_t next = i + TILE_X < j->n_row ? group : -i / 4 * group;
                panel_acts x = {j->rows8 + i / 4 * group, cols, 0, cols, next};
                j->core->tile(j->panel, &x, t);
                panel_put(t, out, j->bias ? j->bias + col : NULL, first > 0);
            }
        }
    }
}

void panel_experts(const kargs *k, const kthread *t, int64_t begin, int64_t end,
                   const panel_core *core)
{
    const uint8_t *const *w = k->in[1]; /* [E] addresses of [m, n] */
    kpart part = kpart_of(k, k->size.experts.out, begin, end);
    work j = {
        .k = k, .core = core, .n = k->size.experts.in, .col = part.col, .col_end = part.col_end};
    j.panel = t->scratch;
    j.rows8 = (char *)t->scratch + ROWS8_PANEL_BYTES;
    for (int64_t e = 0; e < k->size.experts.experts; e++) {
        chosen_slots slots = chosen_of(k, &part);
        j.w = w[e];
        j.bias = chosen_bias(k, e);
        while ((j.n_row = chosen_next(k, &slots, e, ROWS8_ROWS, j.x, j.out)) > 0)
            run(&j);
    }
}
