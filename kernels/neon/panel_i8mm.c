/* panel_i8mm.c - linear for many rows: eight rows of weights are unpacked once for up to 256 rows of activations.
 *
 * Columns go in runs of ROWS8_COLS, the outermost loop, so that what all rows have of a run stays in the second-level
 * cache while the weights pass; results are added up from run to run. out overlaps no input. */
#include "kernels/neon/panel.h"

/* Rows that share a panel; bytes of weights that few rows multiply in turn, from the first cache. */
enum { ROWS_MAX = 256, CHUNK_BYTES = 4608 };

typedef struct {
    const kargs *k;
    const panel_core *core;
    int64_t first, cols;  /* of a run */
    int64_t row, row_end; /* rows asked for */
} run;

void panel_put(const float t[TILE], float *const out[TILE_X], const float *bias, bool add)
{
    for (int x = 0; x < TILE_X; x++) {
        if (!out[x])
            continue;
        for (int i = 0; i < 2; i++) { /* four columns: two pairs of weight rows */
            const float *a = t + (i * 4 + x / 2) * 4, *b = a + 8;
            float32x4_t va = vld1q_f32(a), vb = vld1q_f32(b);
            float32x4_t sum = x % 2 ? vuzp2q_f32(va, vb) : vuzp1q_f32(va, vb);
            if (add)
                sum = vaddq_f32(vld1q_f32(out[x] + i * 4), sum);
            else if (bias)
                sum = vaddq_f32(sum, vld1q_f32(bias + i * 4));
            vst1q_f32(out[x] + i * 4, sum);
        }
    }
}

static void put(const run *r, int64_t row, int64_t col, const float t[TILE])
{
    const kargs *k = r->k;
    float *out[TILE_X];
    for (int x = 0; x < TILE_X; x++) {
        bool asked = row + x >= r->row && row + x < r->row_end;
        out[x] = asked ? (float *)((char *)k->out[0] + (row + x) * k->out_pitch[0]) + col : NULL;
    }
    panel_put(t, out, k->in[2] ? (const float *)k->in[2] + col : NULL, r->first > 0);
}

/* Some rows of activations with columns [col, col_end) of the result. */
static void rows_run(const run *r, int64_t row, int64_t row_end, int64_t col, int64_t col_end,
                     void *panel)
{
    const kargs *k = r->k;
    for (; col < col_end; col += LAYOUT_GROUP) {
        const uint8_t *w = (const uint8_t *)k->in[1] + col / LAYOUT_GROUP * k->pitch[1];
        r->core->unpack(w + r->first / r->core->block * r->core->bytes, r->cols, panel);
        for (int64_t x = row; x < row_end; x += TILE_X) {
            float t[TILE] __attribute__((aligned(16)));
            int64_t next = x + TILE_X < row_end ? x + TILE_X : row;
            panel_acts acts = {(const char *)k->in[0] + x * k->pitch[0], k->size.linear.in,
                               r->first, r->cols, (next - x) * k->pitch[0]};
            r->core->tile(panel, &acts, t);
            put(r, x, col, t);
        }
    }
}

/* Eight columns of the result for few rows, from a panel. Tiles bring the weights that come next closer instead of
 * activations, of which they have all. */
static void few_from_panel(const run *r, const uint8_t *w, int64_t col, void *panel)
{
    const kargs *k = r->k;
    uintptr_t after = (uintptr_t)w + (uintptr_t)(r->cols / r->core->block * r->core->bytes);
    r->core->unpack(w, r->cols, panel);
    for (int64_t x = 0; x < k->size.linear.rows;
         x += TILE_X, after += (uintptr_t)r->cols * TILE_X) {
        float t[TILE] __attribute__((aligned(16)));
        const char *from = (const char *)k->in[0] + x * k->pitch[0];
        int64_t next = (int64_t)(after - (uintptr_t)(from + r->first * TILE_X));
        panel_acts acts = {from, k->size.linear.in, r->first, r->cols, next};
        r->core->tile(panel, &acts, t);
        put(r, x, col, t);
    }
}

/* The same without a panel, eight rows at a time or four; all but the first find the weights in a cache. */
static void few_directly(const run *r, const uint8_t *w, float *t)
{
    const kargs *k = r->k;
    const panel_core *core = r->core;
    for (int64_t x = 0, left, step; (left = k->size.linear.rows - x) > 0;
         x += step, t += step * 8) {
        panel_acts acts = {(const char *)k->in[0] + x * k->pitch[0], k->size.linear.in, r->first,
                           r->cols, 0};
        step = core->eight && left > TILE_X ? 2 * TILE_X : TILE_X;
        if (step > TILE_X)
            core->eight(w, &acts, TILE_X * k->pitch[0], left, x == 0, t);
        else
            core->few(w, &acts, left > 2 ? 2 : 1, x == 0, t);
    }
}

static void few_run(run *r, const uint8_t *w, int64_t col)
{
    const kargs *k = r->k;
    const panel_core *core = r->core;
    float t[K_ROWS_FEW / TILE_X * TILE] __attribute__((aligned(16)));
    int64_t n = k->size.linear.in, most = CHUNK_BYTES / core->bytes * core->block;
    for (r->first = 0; r->first < n; r->first += r->cols) {
        r->cols = n - r->first < most ? n - r->first : most;
        few_directly(r, w + r->first / core->block * core->bytes, t);
    }
    r->first = 0;
    for (int64_t x = 0; x < k->size.linear.rows; x += TILE_X)
        put(r, x, col, t + x * 8);
}

/* Up to four rows, all columns at once. */
static void four_run(const run *r, const uint8_t *w, int64_t col)
{
    const kargs *k = r->k;
    float t[TILE] __attribute__((aligned(16)));
    panel_acts acts = {k->in[0], k->size.linear.in, 0, k->size.linear.in, 0};
    r->core->few(w, &acts, k->size.linear.rows > 2 ? 2 : 1, true, t);
    put(r, 0, col, t);
}

/* Runs of columns are the inner loop: few rows stay in a cache with all of theirs, and weights come in the order in which
 * they lie. */
void panel_linear_few(const kargs *k, const kthread *t, int64_t begin, int64_t end,
                      const panel_core *core)
{
    kpart part = kpart_of(k, k->size.linear.out, begin, end);
    int64_t n = k->size.linear.in;
    run r = {.k = k, .core = core, .row = part.row, .row_end = part.row_end};
    for (int64_t col = part.col; col < part.col_end; col += LAYOUT_GROUP) {
        const uint8_t *w = (const uint8_t *)k->in[1] + col / LAYOUT_GROUP * k->pitch[1];
        if (k->size.linear.rows <= TILE_X) {
            four_run(&r, w, col);
            continue;
        }
        if (k->size.linear.rows <= core->few_max) {
            few_run(&r, w, col);
            continue;
        }
        for (r.first = 0; r.first < n; r.first += r.cols) {
            r.cols = n - r.first < ROWS8_COLS ? n - r.first : ROWS8_COLS;
            few_from_panel(&r, w + r.first / core->block * core->bytes, col, t->scratch);
        }
    }
}

void panel_linear(const kargs *k, const kthread *t, int64_t begin, int64_t end,
                  const panel_core *core)
{
    kpart part = kpart_of(k, k->size.linear.out, begin, end);
    int64_t n = k->size.linear.in;
    run r = {.k = k, .core = core, .row = part.row, .row_end = part.row_end};
    for (r.first = 0; r.first < n; r.first += r.cols) {
        r.cols = n - r.first < ROWS8_COLS ? n - r.first : ROWS8_COLS;
        for (int64_t row = part.row / TILE_X * TILE_X; row < part.row_end; row += ROWS_MAX)
            rows_run(&r, row, row + ROWS_MAX < part.row_end ? row + ROWS_MAX : part.row_end,
                     part.col, part.col_end, t->scratch);
    }
}
