/* panel_amx.c - the loops around a panel, and its products.
 *
 * Two tiles of activations meet two of weights: four loads for four products, which a core makes in 16 cycles each.
 * Tiles of weights come from the first-level cache; activations, where they lie, from the second. Sums are loaded
 * from the result and stored to it once for each panel; they begin with the bias, a row that is loaded
 * sixteen times. */
#include "kernels/x86/panel_amx.h"

#include <string.h>
#include "kernels/x86/amx.h"

#ifndef TILES_HINTS /* tuning leaves them out */
#define TILES_HINTS 1
#endif

enum { PAIR = 2 * AMX_ROWS }; /* rows, of activations or of weights, that are multiplied at once */
_Static_assert((int)TILE_ROWS == (int)AMX_ROWS && (int)TILES_WIDTH == (int)PAIR, "tiles of both");

typedef struct {
    const tiles_core *core;
    const uint8_t *w; /* weights */
    int64_t w_pitch;
    const char *x; /* activations, at column `x_first` */
    int64_t x_pitch, x_first;
    char *out; /* results: rows `out_pitch` apart, or anywhere */
    int64_t out_pitch;
    float *const *out_row; /* [rows] or NULL */
    const float *bias;     /* of all columns, or NULL */
    int64_t n, rows;
    int64_t col, width;  /* columns of the result at hand: up to PAIR */
    int64_t first, cols; /* those of the weights */
    char *panel;         /* [2][cols / 32] tiles */
    char *stored;        /* [2][2] tiles: sums on their way to and from places that are no tiles */
    float *begin;        /* [PAIR]: what sums begin with */
    int shape[2];        /* rows of the two tiles of activations */
    /* Weights of the next panel: lines of 64 bytes, in so many rows or groups of them. */
    const uint8_t *next;
    int64_t next_rows, next_lines;
} tiles_work;

/* Where a tile of sums is loaded from and stored to. */
typedef struct {
    char *at;
    int64_t pitch;
} sums;

X86_INLINE float *out_at(const tiles_work *j, int64_t row)
{
    float *out = j->out_row ? j->out_row[row] : (float *)(void *)(j->out + row * j->out_pitch);
    return out + j->col;
}

X86_INLINE int64_t width_of(const tiles_work *j, int side)
{
    int64_t width = j->width - side * AMX_ROWS;
    return width < AMX_ROWS ? width : AMX_ROWS;
}

X86_INLINE bool is_tile(const tiles_work *j, int side)
{
    return !j->out_row && width_of(j, side) == AMX_ROWS;
}

X86_INLINE sums sums_of(const tiles_work *j, int64_t row, int half, int side)
{
    if (is_tile(j, side))
        return (sums){(char *)(out_at(j, row + half * AMX_ROWS) + side * AMX_ROWS), j->out_pitch};
    return (sums){j->stored + (half * 2 + side) * AMX_TILE, AMX_BYTES};
}

X86_INLINE sums sums_begin(const tiles_work *j, sums s, int side)
{
    return j->first > 0 ? s : (sums){(char *)(j->begin + side * AMX_ROWS), 0};
}

/* Sums that are no tile, to where they are one, and back. */
static void move_sums(const tiles_work *j, int64_t row, int side, bool back)
{
    int64_t width = width_of(j, side);
    if (width <= 0 || is_tile(j, side) || (!back && j->first == 0))
        return;
    for (int64_t i = 0; i < PAIR && row + i < j->rows; i++) {
        float *out = out_at(j, row + i) + side * AMX_ROWS;
        char *tile = j->stored + (i / AMX_ROWS * 2 + side) * AMX_TILE + i % AMX_ROWS * AMX_BYTES;
        if (back)
            memcpy(out, tile, (size_t)width * sizeof *out);
        else
            memcpy(tile, out, (size_t)width * sizeof *out);
    }
}

/* Rows [row, row + 32) with the panel; `two` and `wide`: there is a second tile of activations, of weights. */
X86_INLINE void multiply(const tiles_work *j, int64_t row, bool two, bool wide, int parts)
{
    int64_t pitch = j->x_pitch, steps = (j->cols + TILE_COLS - 1) / TILE_COLS;
    const char *a = j->x + row * pitch + (j->first - j->x_first) * parts * 2,
               *b = a + AMX_ROWS * pitch;
    const char *left = j->panel, *right = j->panel + steps * AMX_TILE;
    sums s[2][2], from[2][2];
    for (int half = 0; half < 2; half++)
        for (int side = 0; side < 2; side++) {
            s[half][side] = sums_of(j, row, half, side);
            from[half][side] = sums_begin(j, s[half][side], side);
        }
    AMX_LOAD(0, from[0][0].at, from[0][0].pitch);
    if (wide)
        AMX_LOAD(1, from[0][1].at, from[0][1].pitch);
    if (two)
        AMX_LOAD(2, from[1][0].at, from[1][0].pitch);
    if (two && wide)
        AMX_LOAD(3, from[1][1].at, from[1][1].pitch);
    for (int64_t i = 0; i < steps; i++) {
        AMX_LOAD(6, left + i * AMX_TILE, AMX_BYTES);
        if (wide)
            AMX_LOAD(7, right + i * AMX_TILE, AMX_BYTES);
        for (int p = 0; p < parts; p++) {
            int64_t at = (i * parts + p) * AMX_BYTES;
            AMX_LOAD(4, a + at, pitch);
            AMX_DOT_BF16(0, 4, 6);
            if (wide)
                AMX_DOT_BF16(1, 4, 7);
            if (two) {
                AMX_LOAD(5, b + at, pitch);
                AMX_DOT_BF16(2, 5, 6);
            }
            if (two && wide)
                AMX_DOT_BF16(3, 5, 7);
        }
    }
    AMX_STORE(0, s[0][0].at, s[0][0].pitch);
    if (wide)
        AMX_STORE(1, s[0][1].at, s[0][1].pitch);
    if (two)
        AMX_STORE(2, s[1][0].at, s[1][0].pitch);
    if (two && wide)
        AMX_STORE(3, s[1][1].at, s[1][1].pitch);
}

X86_INLINE void multiply_parts(const tiles_work *j, int64_t row, int parts)
{
    bool two = j->rows - row > AMX_ROWS, wide = j->width > AMX_ROWS;
    if (two && wide)
        multiply(j, row, true, true, parts);
    else if (two)
        multiply(j, row, true, false, parts);
    else if (wide)
        multiply(j, row, false, true, parts);
    else
        multiply(j, row, false, false, parts);
}

/* Tiles of activations get as many rows as there are: the last ones fewer. */
static void shape_rows(tiles_work *j, int64_t row)
{
    int64_t left = j->rows - row;
    int first = left < AMX_ROWS ? (int)left : AMX_ROWS;
    int second = left < PAIR ? (int)left - first : AMX_ROWS;
    if (first == j->shape[0] && second == j->shape[1])
        return;
    j->shape[0] = first;
    j->shape[1] = second;
    amx_shape(first, second);
}

/* Ask for part i of n of the weights that come next, while products keep the processor busy. */
static void hint_next(const tiles_work *j, int64_t i, int64_t n)
{
    int64_t all = j->next_rows * j->next_lines, end = all * (i + 1) / n;
    for (int64_t line = all * i / n; line < end; line++)
        _mm_prefetch(
            (const char *)(j->next + line / j->next_lines * j->w_pitch + line % j->next_lines * 64),
            _MM_HINT_T1);
}

/* The panel at hand with all rows. */
static void run_panel(tiles_work *j)
{
    for (int side = 0; side < 2; side++) {
        int64_t width = width_of(j, side), at = j->col + side * AMX_ROWS;
        if (width <= 0)
            continue;
        j->core->unpack(j->w + at / j->core->group * j->w_pitch, j->w_pitch, width, j->first,
                        j->cols,
                        j->panel + side * ((j->cols + TILE_COLS - 1) / TILE_COLS) * AMX_TILE);
        memset(j->begin + side * AMX_ROWS, 0, AMX_BYTES);
        if (j->bias)
            memcpy(j->begin + side * AMX_ROWS, j->bias + at, (size_t)width * sizeof *j->bias);
    }
    for (int64_t row = 0; row < j->rows; row += PAIR) {
        shape_rows(j, row);
        hint_next(j, row / PAIR, (j->rows + PAIR - 1) / PAIR);
        move_sums(j, row, 0, false);
        move_sums(j, row, 1, false);
        if (j->core->parts == 1)
            multiply_parts(j, row, 1);
        else
            multiply_parts(j, row, 3);
        move_sums(j, row, 0, true);
        move_sums(j, row, 1, true);
    }
}

/* What comes after the panel at hand: further columns of the weights, or of the result. */
static void find_next(tiles_work *j, int64_t first, int64_t end, int64_t col_end)
{
    int64_t at = j->first + TILES_COLS, col = j->col, group = j->core->group;
    if (at >= end) {
        at = first;
        col += PAIR;
    }
    int64_t cols = end - at < TILES_COLS ? end - at : TILES_COLS;
    int64_t rows = col_end - col < PAIR ? col_end - col : PAIR;
    j->next = j->w + col / group * j->w_pitch + at * j->core->bytes / 256;
    j->next_rows = TILES_HINTS && rows > 0 ? (rows + group - 1) / group : 0;
    j->next_lines = cols * j->core->bytes / 256 / 64;
}

/* Columns [first, end) of the weights for columns [col, col_end) of the result. */
static void run_columns(tiles_work *j, int64_t first, int64_t end, int64_t col, int64_t col_end)
{
    for (j->col = col; j->col < col_end; j->col += PAIR) {
        j->width = col_end - j->col < PAIR ? col_end - j->col : PAIR;
        for (j->first = first; j->first < end; j->first += TILES_COLS) {
            j->cols = end - j->first < TILES_COLS ? end - j->first : TILES_COLS;
            find_next(j, first, end, col_end);
            run_panel(j);
        }
    }
}

static tiles_work work_of(const kthread *t, const tiles_core *core)
{
    char *stored = (char *)t->scratch + TILES_PANEL_BYTES;
    return (tiles_work){.core = core,
                        .panel = t->scratch,
                        .stored = stored,
                        .begin = (float *)(void *)(stored + 4 * AMX_TILE)};
}

/* Columns of activations that are taken at once: where they have more parts, fewer. */
static int64_t run_of(const tiles_core *core)
{
    return core->parts == 1 ? TILES_RUN : TILES_RUN / 4;
}

void tiles_linear(const kargs *k, const kthread *t, int64_t begin, int64_t end,
                  const tiles_core *core)
{
    kpart part = kpart_of(k, k->n[1], begin, end);
    tiles_work j = work_of(t, core);
    int64_t run = run_of(core);
    j.w = k->in[1];
    j.w_pitch = k->pitch[1];
    j.x_pitch = k->pitch[0];
    j.out_pitch = k->out_pitch[0];
    j.bias = k->in[2];
    for (int64_t row = part.row; row < part.row_end; row += TILES_ROWS) {
        j.rows = part.row_end - row < TILES_ROWS ? part.row_end - row : TILES_ROWS;
        j.x = (const char *)k->in[0] + row * j.x_pitch;
        j.out = (char *)k->out[0] + row * j.out_pitch;
        for (int64_t first = 0; first < k->n[2]; first += run)
            run_columns(&j, first, k->n[2] - first < run ? k->n[2] : first + run, part.col,
                        part.col_end);
    }
    if (part.row < part.row_end)
        amx_end();
}

/* Rows that chose an expert, side by side. */
typedef struct {
    const char *x[TILES_EXPERT_ROWS];
    float *out[TILES_EXPERT_ROWS];
    char *gathered;
} chosen;

static void run_expert(tiles_work *j, const chosen *c, int64_t n, const kpart *part)
{
    int64_t run = run_of(j->core), bytes = j->core->parts * 2;
    j->x = c->gathered;
    j->x_pitch = TILES_EXPERT_PITCH;
    j->out_row = c->out;
    for (int64_t first = 0; first < n; first += run) {
        int64_t end = n - first < run ? n : first + run;
        for (int64_t i = 0; i < j->rows; i++)
            memcpy(c->gathered + i * TILES_EXPERT_PITCH, c->x[i] + first * bytes,
                   (size_t)((end - first + TILE_COLS - 1) / TILE_COLS * TILE_COLS * bytes));
        j->x_first = first;
        run_columns(j, first, end, part->col, part->col_end);
    }
    j->rows = 0;
}

void tiles_experts(const kargs *k, const kthread *t, int64_t begin, int64_t end,
                   const tiles_core *core)
{
    const uint8_t *const *w = k->in[1]; /* [E] addresses of [m, n] */
    const int32_t *ids = k->in[2];      /* [rows, K] */
    int64_t top = k->n[1], n = k->n[3];
    bool x_each = k->n[4] != 0; /* every choice has an x of its own */
    kpart part = kpart_of(k, k->n[2], begin, end);
    tiles_work j = work_of(t, core);
    chosen c;
    c.gathered = (char *)t->scratch + TILES_BYTES;
    j.w_pitch = k->pitch[1];
    for (int64_t e = 0; e < k->n[5]; e++) {
        j.w = w[e];
        j.bias = k->in[3] ? (const float *)((const char *)k->in[3] + e * k->pitch[3]) : NULL;
        for (int64_t slot = part.row * top; slot < part.row_end * top; slot++) {
            if (ids[slot] != e)
                continue;
            c.x[j.rows] = (const char *)k->in[0] + (x_each ? slot : slot / top) * k->pitch[0];
            c.out[j.rows++] = (float *)(void *)((char *)k->out[0] + slot * k->out_pitch[0]);
            if (j.rows == TILES_EXPERT_ROWS)
                run_expert(&j, &c, n, &part);
        }
        if (j.rows > 0)
            run_expert(&j, &c, n, &part);
    }
    if (part.row < part.row_end)
        amx_end();
}
