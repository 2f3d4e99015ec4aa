/* panel_amx.c - the loops around panels, and their products.
 *
 * Two tiles of activations meet two of weights: four loads for four products, which a core makes in 16 cycles each.
 * Both come from the second-level cache, which gives a tile in 21 cycles: 21 cycles for a product at best. A panel has as
 * many columns as the activations that stay in that cache, because sums that wait in memory cost 240 cycles for each
 * four tiles, most of it waiting for the last product. Sums begin with the bias, a row that is loaded sixteen times, wait as tiles
 * from run to run of columns, and go to the result once.
 *
 * Between steps of products, pieces of the next panel are unpacked, 5 cycles for 32 numbers. That is free where products
 * wait for each other, as those of two threads of a core do; elsewhere the vector instructions delay the loads of tiles
 * about as much as they take alone.
 *
 * One core of a Sapphire Rapids, 2.9 GHz, cycles for each product with 256 rows, weights of Q4_K: products alone 16, from the first
 * cache 20, from the second 25, with unpacking 34. */
#include "kernels/x86/panel_amx.h"

#include <string.h>
#include "kernels/c/chosen.h"
#include "kernels/x86/amx.h"

#ifndef TILES_LOAD_X /* of activations; tuning defines others */
#define TILES_LOAD_X AMX_LOAD
#endif

enum { PAIR = 2 * AMX_ROWS }; /* rows, of activations or of weights, that are multiplied at once */
_Static_assert((int)TILE_ROWS == (int)AMX_ROWS && (int)TILES_WIDTH == (int)PAIR, "tiles of both");

/* A panel: columns of the result from `col` on, columns of the weights from `first` on, and the first column of the
 * result that has tiles of sums meanwhile. */
typedef struct {
    int64_t block, first, col;
} panel_at;

/* A panel that is unpacked piece by piece. */
typedef struct {
    panel_at at;
    char *to;        /* [2][cols / 32] tiles */
    int64_t side, c; /* the next piece: which sixteen rows, column of the panel */
    int64_t width, cols;
    int64_t left;       /* pieces */
    int64_t due, steps; /* the share of a piece that is due, of so many steps of products */
    int64_t pieces;
    const uint8_t *hint; /* the weights of the panel after it, or NULL */
    int64_t hint_rows;
    tiles_head head;
} panel_feed;

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
    int64_t run;               /* columns of a panel */
    int64_t begin_col, end;    /* columns of the result */
    int64_t across;            /* tiles of sums side by side */
    int64_t block, col, width; /* columns at hand: up to PAIR */
    int64_t first, cols;       /* columns of the weights */
    const char *panel;         /* [2][cols / 32] tiles */
    char *sums;                /* [rows / 16][across] tiles */
    float *begin;              /* [PAIR]: what sums begin with */
    int shape[2];              /* rows of the two tiles of activations */
    panel_feed feed;           /* the next panel */
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

/* ---- unpacking ---- */

/* Lines of a piece of the weights, to come from memory while there is other work. */
static void hint_piece(const tiles_work *j, const uint8_t *w, int64_t rows)
{
    int64_t bytes = j->core->piece * j->core->bytes / 256;
    for (int64_t row = 0; row < rows; row += j->core->group, w += j->w_pitch)
        for (int64_t i = 0; i < bytes; i += 64)
            _mm_prefetch((const char *)w + i, _MM_HINT_T1);
}

X86_INLINE int64_t half_width(int64_t width, int64_t side)
{
    width -= side * AMX_ROWS;
    return width < AMX_ROWS ? width : AMX_ROWS;
}

static __attribute__((noinline)) void feed_piece(tiles_work *j)
{
    panel_feed *f = &j->feed;
    const tiles_core *core = j->core;
    int64_t at = f->side * AMX_ROWS, rest = f->cols - f->c;
    int64_t steps = (f->cols + TILE_COLS - 1) / TILE_COLS;
    const uint8_t *w = j->w + (f->at.col + at) / core->group * j->w_pitch;
    if (f->hint)
        hint_piece(j, f->hint + at / core->group * j->w_pitch + f->c * core->bytes / 256,
                   half_width(f->hint_rows, f->side));
    core->unpack(w, j->w_pitch, half_width(f->width, f->side), f->at.first + f->c,
                 rest < core->piece ? rest : core->piece,
                 f->to + f->side * steps * AMX_TILE + f->c * AMX_TILE / TILE_COLS, &f->head);
    f->left--;
    f->c += core->piece;
    if (f->c >= f->cols) {
        f->c = 0;
        f->side++;
    }
}

/* Between two steps of products: as many pieces as keep up with them. */
X86_INLINE void feed_some(tiles_work *j)
{
    panel_feed *f = &j->feed;
    f->due += f->pieces;
    while (f->due >= f->steps) {
        f->due -= f->steps;
        feed_piece(j);
    }
}

static void feed_rest(tiles_work *j)
{
    while (j->feed.left > 0)
        feed_piece(j);
    j->feed.pieces = 0;
}

/* ---- products ---- */

/* Rows [row, row + 32) with the panel; `two` and `wide`: there is a second tile of activations, of weights. */
X86_INLINE void multiply(tiles_work *j, int64_t row, bool two, bool wide, int parts)
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
        feed_some(j);
    }
    AMX_STORE(0, to[0][0].at, to[0][0].pitch);
    if (wide)
        AMX_STORE(1, to[0][1].at, to[0][1].pitch);
    if (two)
        AMX_STORE(2, to[1][0].at, to[1][0].pitch);
    if (two && wide)
        AMX_STORE(3, to[1][1].at, to[1][1].pitch);
}

X86_INLINE void multiply_parts(tiles_work *j, int64_t row, int parts)
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
    for (int side = 0; side < 2 && width_of(j, side) > 0; side++)
        begin_side(j, side);
    for (int64_t row = 0; row < j->rows; row += PAIR) {
        shape_rows(j, row);
        if (j->core->parts == 1)
            multiply_parts(j, row, 1);
        else
            multiply_parts(j, row, 3);
        put_sums(j, row, 0);
        put_sums(j, row, 1);
    }
}

/* ---- the order of panels ---- */

X86_INLINE int64_t at_most(int64_t n, int64_t most)
{
    return n < most ? n : most;
}

/* The panel that comes next: further columns of the result, as far as there are tiles of sums; else of the weights. */
static bool panel_next(const tiles_work *j, panel_at *at)
{
    int64_t block = j->across * AMX_ROWS;
    at->col += PAIR;
    if (at->col < j->end && at->col < at->block + block)
        return true;
    at->col = at->block;
    at->first += j->run;
    if (at->first < j->n)
        return true;
    at->first = 0;
    at->col = at->block += block;
    return at->col < j->end;
}

/* Begin to unpack a panel while another takes so many steps. */
static void feed_begin(tiles_work *j, panel_at at, char *to, int64_t steps)
{
    panel_feed *f = &j->feed;
    panel_at after = at;
    const tiles_core *core = j->core;
    f->at = at;
    f->to = to;
    f->side = f->c = f->due = 0;
    f->steps = steps;
    f->width = at_most(j->end - at.col, PAIR);
    f->cols = at_most(j->n - at.first, j->run);
    f->pieces = f->left =
        (f->width > AMX_ROWS ? 2 : 1) * ((f->cols + core->piece - 1) / core->piece);
    f->hint = NULL;
    if (panel_next(j, &after)) {
        f->hint = j->w + after.col / core->group * j->w_pitch + after.first * core->bytes / 256;
        f->hint_rows = at_most(j->end - after.col, PAIR);
    }
}

/* Rows that chose an expert, side by side. */
typedef struct {
    const void *x[TILES_EXPERT_ROWS];
    float *out[TILES_EXPERT_ROWS];
    char *gathered;
} chosen;

/* Columns [first, end) of the activations of all rows. */
static void gather(tiles_work *j, const chosen *c, int64_t first, int64_t end)
{
    int64_t bytes = j->core->parts * 2,
            cols = (end - first + TILE_COLS - 1) / TILE_COLS * TILE_COLS;
    for (int64_t i = 0; i < j->rows; i++)
        memcpy(c->gathered + i * TILES_EXPERT_PITCH, (const char *)c->x[i] + first * bytes,
               (size_t)(cols * bytes));
    j->x_first = first;
}

/* Columns [begin_col, end) of the result; c: rows of activations are gathered first. */
static void run_all(tiles_work *j, const kthread *t, const chosen *c)
{
    char *panel = t->scratch, *other = panel + TILES_PANEL_BYTES;
    panel_at now = {.block = j->begin_col, .col = j->begin_col};
    int64_t passes = (j->rows + PAIR - 1) / PAIR, gathered = -1;
    j->across = TILES_SUMS / 2 / ((j->rows + AMX_ROWS - 1) / AMX_ROWS) * 2;
    feed_begin(j, now, panel, 1);
    for (bool more = now.col < j->end; more;) {
        panel_at next = now;
        feed_rest(j);
        j->panel = panel;
        j->block = now.block;
        j->col = now.col;
        j->first = now.first;
        j->width = at_most(j->end - now.col, PAIR);
        j->cols = at_most(j->n - now.first, j->run);
        if (c && gathered != now.first)
            gather(j, c, now.first, now.first + j->cols);
        gathered = now.first;
        more = panel_next(j, &next);
        if (more)
            feed_begin(j, next, other, passes * ((j->cols + TILE_COLS - 1) / TILE_COLS));
        run_panel(j);
        now = next;
        char *last = panel;
        panel = other;
        other = last;
    }
}

/* ---- ops ---- */

static tiles_work work_of(const kthread *t, const tiles_core *core, int64_t n)
{
    char *sums = (char *)t->scratch + 2 * TILES_PANEL_BYTES;
    return (tiles_work){
        .core = core, .n = n, .sums = sums, .begin = (float *)(void *)(sums + TILES_SUMS_BYTES)};
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
    j.begin_col = part.col;
    j.end = part.col_end;
    for (int64_t row = part.row; row < part.row_end; row += TILES_ROWS) {
        j.rows = part.row_end - row < TILES_ROWS ? part.row_end - row : TILES_ROWS;
        j.x = (const char *)k->in[0] + row * j.x_pitch;
        j.out = (char *)k->out[0] + row * j.out_pitch;
        j.run = core->parts == 1          ? TILES_RUN
                : j.rows > TILES_ROWS / 2 ? TILES_RUN / 4
                                          : TILES_RUN / 2;
        run_all(&j, t, NULL);
    }
    if (part.row < part.row_end)
        amx_end();
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
    j.begin_col = part.col;
    j.end = part.col_end;
    j.x = c.gathered;
    j.x_pitch = TILES_EXPERT_PITCH;
    j.out_row = c.out;
    for (int64_t e = 0; e < k->size.experts.experts; e++) {
        chosen_slots slots = chosen_of(k, &part);
        j.w = w[e];
        j.bias = chosen_bias(k, e);
        while ((j.rows = chosen_next(k, &slots, e, TILES_EXPERT_ROWS, c.x, c.out)) > 0)
            run_all(&j, t, &c);
    }
    if (part.row < part.row_end)
        amx_end();
}
