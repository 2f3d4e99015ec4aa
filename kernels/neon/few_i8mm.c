/* few_i8mm.c - linear for few rows: weights are multiplied as they are unpacked, or from a panel where that is faster.
 *
 * Runs of columns are the inner loop: few rows stay in a cache with all of theirs, and weights come in the order in which
 * they lie. out overlaps no input. */
#include "kernels/neon/panel_i8mm.h"

/* Of weights that few rows multiply in turn, from the first cache. */
enum { CHUNK_BYTES = 4608 };

typedef struct {
    const kargs *k;
    const few_core *core;
    int64_t first, cols;  /* of a run */
    int64_t row, row_end; /* rows asked for */
} run;

void panel_put(const float *t, float *const *out, const float *bias, bool add)
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

/* The four rows from x on. */
static panel_acts acts_of(const run *r, int64_t x, int64_t next)
{
    return (panel_acts){.x = (const char *)r->k->in[0] + x * r->k->pitch[0],
                        .n = r->k->size.linear.in,
                        .first = r->first,
                        .cols = r->cols,
                        .next = next};
}

/* Eight columns of the result for few rows, from a panel. Tiles bring the weights that come next closer instead of
 * activations, of which they have all. */
static void few_from_panel(const run *r, const uint8_t *w, int64_t col, void *panel)
{
    const kargs *k = r->k;
    int64_t end = (r->first + r->cols) / r->core->block * r->core->bytes;
    uintptr_t after = (uintptr_t)w + (uintptr_t)end;
    r->core->many.unpack(w, k->pitch[1], LAYOUT_GROUP, r->first, r->cols, panel);
    for (int64_t x = 0; x < k->size.linear.rows;
         x += TILE_X, after += (uintptr_t)r->cols * TILE_X) {
        float t[TILE] __attribute__((aligned(16)));
        const char *from = (const char *)k->in[0] + x * k->pitch[0];
        int64_t next = (int64_t)(after - (uintptr_t)(from + r->first * TILE_X));
        panel_acts acts = acts_of(r, x, next);
        r->core->many.multiply(panel, &acts, t);
        put(r, x, col, t);
    }
}

/* The same without a panel, eight rows at a time or four; all but the first find the weights in a cache. */
static void few_directly(const run *r, const uint8_t *w, float *t)
{
    const kargs *k = r->k;
    const few_core *core = r->core;
    for (int64_t x = 0, left, step; (left = k->size.linear.rows - x) > 0;
         x += step, t += step * 8) {
        panel_acts acts = acts_of(r, x, 0);
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
    const few_core *core = r->core;
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
static void four_run(run *r, const uint8_t *w, int64_t col)
{
    const kargs *k = r->k;
    float t[TILE] __attribute__((aligned(16)));
    r->cols = k->size.linear.in;
    panel_acts acts = acts_of(r, 0, 0);
    r->core->few(w, &acts, k->size.linear.rows > 2 ? 2 : 1, true, t);
    put(r, 0, col, t);
}

void few_linear(const kargs *k, const kthread *t, int64_t begin, int64_t end, const few_core *core)
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
            few_from_panel(&r, w, col, t->scratch);
        }
    }
}
