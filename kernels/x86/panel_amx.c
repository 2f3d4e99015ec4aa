/* panel_amx.c - the loops around a panel, and its products.
 *
 * Two tiles of activations meet two of weights: four loads for four products, which a core makes in 16 cycles each.
 * Tiles of weights come from the first-level cache; activations, where they lie, from the second. Sums begin with
 * the bias, a row that is loaded sixteen times, wait as tiles from panel to panel, and go to the result once.
 *
 * One core of a Sapphire Rapids, 2.9 GHz: products alone 2.9 TFLOP/s; with loads and panels of 512 columns 1.9, of
 * 2048 columns 1.75; 256 rows that lie 4096 bytes apart 1.5. */
#include "kernels/x86/panel_amx.h"

#include <string.h>
#include "kernels/c/chosen.h"
#include "kernels/x86/amx.h"

#ifndef TILES_LOAD_X /* of activations; tuning defines others */
#define TILES_LOAD_X AMX_LOAD
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
    int64_t run; /* columns of activations that are taken at once */
    int64_t block,
        across; /* columns of the result from `block` on have tiles of sums, so many side by side */
    int64_t col, width;  /* those at hand: up to PAIR */
    int64_t first, cols; /* columns of the weights */
    char *panel;         /* [2][cols / 32] tiles */
    char *sums;          /* [rows / 16][across] tiles */
    float *begin;        /* [PAIR]: what sums begin with */
    int shape[2];        /* rows of the two tiles of activations */
    /* Weights of the next panel: lines of 64 bytes, in so many rows or groups of them. */
    const uint8_t *next;
    int64_t next_rows, next_lines;
} tiles_work;

/* Where a tile of sums is loaded from or stored to. */
typedef struct {
    char *at;
    int64_t pitch;
} place;

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

/* Are these columns of the result a tile of their own? */
X86_INLINE bool is_tile(const tiles_work *j, int side)
{
    return !j->out_row && width_of(j, side) == AMX_ROWS;
}

X86_INLINE bool is_last(const tiles_work *j)
{
    return j->first + j->cols == j->n;
}

X86_INLINE char *sums_at(const tiles_work *j, int64_t row, int side)
{
    return j->sums +
           (row / AMX_ROWS * j->across + (j->col - j->block) / AMX_ROWS + side) * AMX_TILE;
}

X86_INLINE place sums_from(const tiles_work *j, int64_t row, int side)
{
    if (j->first == 0)
        return (place){(char *)(j->begin + side * AMX_ROWS), 0};
    return (place){sums_at(j, row, side), AMX_BYTES};
}

X86_INLINE place sums_to(const tiles_work *j, int64_t row, int side)
{
    if (is_last(j) && is_tile(j, side))
        return (place){(char *)(out_at(j, row) + side * AMX_ROWS), j->out_pitch};
    return (place){sums_at(j, row, side), AMX_BYTES};
}

/* Finished sums to where they are no tile. */
static void put_sums(const tiles_work *j, int64_t row, int side)
{
    int64_t width = width_of(j, side);
    if (width <= 0 || is_tile(j, side) || !is_last(j))
        return;
    for (int64_t i = row; i < row + PAIR && i < j->rows; i++)
        memcpy(out_at(j, i) + side * AMX_ROWS, sums_at(j, i, side) + i % AMX_ROWS * AMX_BYTES,
               (size_t)width * sizeof(float));
}

/* Rows [row, row + 32) with the panel; `two` and `wide`: there is a second tile of activations, of weights. */
X86_INLINE void multiply(const tiles_work *j, int64_t row, bool two, bool wide, int parts)
{
    int64_t pitch = j->x_pitch, steps = (j->cols + TILE_COLS - 1) / TILE_COLS;
    const char *a = j->x + row * pitch + (j->first - j->x_first) * parts * 2;
    const char *b = a + AMX_ROWS * pitch;
    const char *left = j->panel, *right = j->panel + steps * AMX_TILE;
    place from[2][2], to[2][2];
    for (int half = 0; half < 2; half++)
        for (int side = 0; side < 2; side++) {
            from[half][side] = sums_from(j, row + half * AMX_ROWS, side);
            to[half][side] = sums_to(j, half == 0 || two ? row + half * AMX_ROWS : row, side);
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
            TILES_LOAD_X(4, a + at, pitch);
            AMX_DOT_BF16(0, 4, 6);
            if (wide)
                AMX_DOT_BF16(1, 4, 7);
            if (two) {
                TILES_LOAD_X(5, b + at, pitch);
                AMX_DOT_BF16(2, 5, 6);
            }
            if (two && wide)
                AMX_DOT_BF16(3, 5, 7);
        }
    }
    AMX_STORE(0, to[0][0].at, to[0][0].pitch);
    if (wide)
        AMX_STORE(1, to[0][1].at, to[0][1].pitch);
    if (two)
        AMX_STORE(2, to[1][0].at, to[1][0].pitch);
    if (two && wide)
        AMX_STORE(3, to[1][1].at, to[1][1].pitch);
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

/* Ask for part i of n of the weights that come next, while the processor is busy with others. */
static void hint_next(const tiles_work *j, int64_t i, int64_t n)
{
    int64_t all = j->next_rows * j->next_lines;
    int64_t line = all * i / n, left = all * (i + 1) / n - line;
    if (left <= 0)
        return;
    const uint8_t *row = j->next + line / j->next_lines * j->w_pitch;
    line %= j->next_lines;
    for (; left > 0; line = 0, row += j->w_pitch) {
        int64_t end = j->next_lines - line < left ? j->next_lines : line + left;
        left -= end - line;
        for (; line < end; line++)
            _mm_prefetch((const char *)row + line * 64, _MM_HINT_T1);
    }
}

enum { PIECE = 256, PIECES = 2 * ((TILES_COLS + PIECE - 1) / PIECE) }; /* columns between hints */

/* Sixteen rows of the panel. Where few rows of activations follow, there is no better time to ask for what comes next. */
static void unpack_side(const tiles_work *j, int side, bool hints)
{
    int64_t at = j->col + side * AMX_ROWS, width = width_of(j, side);
    char *to = j->panel + side * ((j->cols + TILE_COLS - 1) / TILE_COLS) * AMX_TILE;
    const uint8_t *w = j->w + at / j->core->group * j->w_pitch;
    for (int64_t c = 0; c < j->cols; c += PIECE, to += PIECE / TILE_COLS * AMX_TILE) {
        if (hints)
            hint_next(j, side * PIECES / 2 + c / PIECE, PIECES);
        j->core->unpack(w, j->w_pitch, width, j->first + c,
                        j->cols - c < PIECE ? j->cols - c : PIECE, to);
    }
}

static void begin_side(const tiles_work *j, int side)
{
    int64_t at = j->col + side * AMX_ROWS, width = width_of(j, side);
    memset(j->begin + side * AMX_ROWS, 0, AMX_BYTES);
    if (j->bias)
        memcpy(j->begin + side * AMX_ROWS, j->bias + at, (size_t)width * sizeof *j->bias);
}

/* The panel at hand with all rows. */
static void run_panel(tiles_work *j)
{
    bool few = j->rows <= PAIR;
    for (int side = 0; side < 2 && width_of(j, side) > 0; side++) {
        unpack_side(j, side, few);
        begin_side(j, side);
    }
    for (int64_t row = 0; row < j->rows; row += PAIR) {
        shape_rows(j, row);
        if (!few)
            hint_next(j, row / PAIR, (j->rows + PAIR - 1) / PAIR);
        if (j->core->parts == 1)
            multiply_parts(j, row, 1);
        else
            multiply_parts(j, row, 3);
        put_sums(j, row, 0);
        put_sums(j, row, 1);
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
    j->next_rows = rows > 0 ? (rows + group - 1) / group : 0;
    j->next_lines = cols * j->core->bytes / 256 / 64;
}

/* Columns [first, end) of the weights for columns of the result from j->block to col_end. */
static void run_columns(tiles_work *j, int64_t first, int64_t end, int64_t col_end)
{
    for (j->col = j->block; j->col < col_end; j->col += PAIR) {
        j->width = col_end - j->col < PAIR ? col_end - j->col : PAIR;
        for (j->first = first; j->first < end; j->first += TILES_COLS) {
            j->cols = end - j->first < TILES_COLS ? end - j->first : TILES_COLS;
            find_next(j, first, end, col_end);
            run_panel(j);
        }
    }
}

/* As many columns of the result as there are tiles of sums for. */
static int64_t block_of(const tiles_work *j)
{
    int64_t down = (j->rows + AMX_ROWS - 1) / AMX_ROWS;
    return TILES_SUMS / 2 / down * PAIR;
}

static tiles_work work_of(const kthread *t, const tiles_core *core, int64_t n)
{
    char *sums = (char *)t->scratch + TILES_PANEL_BYTES;
    return (tiles_work){.core = core,
                        .n = n,
                        .panel = t->scratch,
                        .sums = sums,
                        .begin = (float *)(void *)(sums + TILES_SUMS_BYTES)};
}

void tiles_linear(const kargs *k, const kthread *t, int64_t begin, int64_t end,
                  const tiles_core *core)
{
    kpart part = kpart_of(k, k->size.linear.out, begin, end);
    tiles_work j = work_of(t, core, k->size.linear.in);
    j.w = k->in[1];
    j.w_pitch = k->pitch[1];
    j.x_pitch = k->pitch[0];
    j.out_pitch = k->out_pitch[0];
    j.bias = k->in[2];
    for (int64_t row = part.row; row < part.row_end; row += TILES_ROWS) {
        j.rows = part.row_end - row < TILES_ROWS ? part.row_end - row : TILES_ROWS;
        j.x = (const char *)k->in[0] + row * j.x_pitch;
        j.out = (char *)k->out[0] + row * j.out_pitch;
        j.run = core->parts == 1          ? TILES_RUN
                : j.rows > TILES_ROWS / 2 ? TILES_RUN / 4
                                          : TILES_RUN / 2;
        int64_t block = block_of(&j);
        j.across = block / AMX_ROWS;
        for (j.block = part.col; j.block < part.col_end; j.block += block) {
            int64_t col_end = part.col_end - j.block < block ? part.col_end : j.block + block;
            for (int64_t first = 0; first < j.n; first += j.run)
                run_columns(&j, first, j.n - first < j.run ? j.n : first + j.run, col_end);
        }
    }
    if (part.row < part.row_end)
        amx_end();
}

/* Rows that chose an expert, side by side. */
typedef struct {
    const void *x[TILES_EXPERT_ROWS];
    float *out[TILES_EXPERT_ROWS];
    char *gathered;
} chosen;

/* Columns [first, end) of the activations of all rows. */
static void gather(const tiles_work *j, const chosen *c, int64_t first, int64_t end)
{
    int64_t bytes = j->core->parts * 2,
            cols = (end - first + TILE_COLS - 1) / TILE_COLS * TILE_COLS;
    for (int64_t i = 0; i < j->rows; i++)
        memcpy(c->gathered + i * TILES_EXPERT_PITCH, (const char *)c->x[i] + first * bytes,
               (size_t)(cols * bytes));
}

static void run_expert(tiles_work *j, const chosen *c, const kpart *part)
{
    int64_t block = block_of(j);
    j->x = c->gathered;
    j->x_pitch = TILES_EXPERT_PITCH;
    j->out_row = c->out;
    j->across = block / AMX_ROWS;
    for (j->block = part->col; j->block < part->col_end; j->block += block) {
        int64_t col_end = part->col_end - j->block < block ? part->col_end : j->block + block;
        for (int64_t first = 0; first < j->n; first += j->run) {
            int64_t end = j->n - first < j->run ? j->n : first + j->run;
            gather(j, c, first, end);
            j->x_first = first;
            run_columns(j, first, end, col_end);
        }
    }
}

void tiles_experts(const kargs *k, const kthread *t, int64_t begin, int64_t end,
                   const tiles_core *core)
{
    const uint8_t *const *w = k->in[1]; /* [E] addresses of [m, n] */
    kpart part = kpart_of(k, k->size.experts.out, begin, end);
    tiles_work j = work_of(t, core, k->size.experts.in);
    chosen c;
    c.gathered = (char *)t->scratch + TILES_BYTES;
    j.w_pitch = k->pitch[1];
    j.run = core->parts == 1 ? TILES_RUN : TILES_RUN / 4;
    for (int64_t e = 0; e < k->size.experts.experts; e++) {
        chosen_slots slots = chosen_of(k, &part);
        j.w = w[e];
        j.bias = chosen_bias(k, e);
        while ((j.rows = chosen_next(k, &slots, e, TILES_EXPERT_ROWS, c.x, c.out)) > 0)
            run_expert(&j, &c, &part);
    }
    if (part.row < part.row_end)
        amx_end();
}
