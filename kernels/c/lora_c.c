/* lora_c.c - products with the low-rank matrices of adapters, gathered by slot: each slot's matrix is taken from memory
 * once, for all rows that use it.
 *
 * A sum's numbers are added in the same order whatever rows are computed together, so that a row has the same bits alone and
 * in company. */
#include "kernels/kernel_decls.h"

#include "kernels/c/vec.h"
#include "kernels/lora_rows.h"
#include <string.h>

/* As wide as the machine's vectors: GCC keeps those in registers, and Clang too. */
#if defined(__AVX512F__)
enum { WIDE = 64 };
#elif defined(__AVX2__)
enum { WIDE = 32 };
#else
enum { WIDE = 16 };
#endif
typedef float wide __attribute__((vector_size(WIDE)));
enum { ELEMS = WIDE / 4, N_LANE = LORA_LANES / ELEMS, N_COL = LORA_COLS / ELEMS };
_Static_assert((int)LORA_LANES == (int)VEC_LANES, "lanes_sum");

static inline wide wide_at(const float *p)
{
    wide v;
    memcpy(&v, p, sizeof v);
    return v;
}

/* ---- A ---- */

/* x times each of n rows of A, which are `pitch` apart; n is LORA_RANKS but for the last of a matrix. */
static inline void dots(const float *a, int64_t pitch, int n, const float *x, int64_t len,
                        float *out)
{
    wide sum[LORA_RANKS][N_LANE] = {0};
    int64_t i = 0;
    for (; i + LORA_LANES <= len; i += LORA_LANES)
        for (int l = 0; l < N_LANE; l++) {
            wide xs = wide_at(x + i + l * ELEMS);
            for (int r = 0; r < n; r++)
                sum[r][l] += wide_at(a + r * pitch + i + l * ELEMS) * xs;
        }
    for (int r = 0; r < n; r++) {
        float lane[LORA_LANES];
        memcpy(lane, sum[r], sizeof lane);
        for (int64_t j = i; j < len; j++)
            lane[j - i] += a[r * pitch + j] * x[j];
        out[r] = lanes_sum(lane);
    }
}

/* The slot and the first row of A of group `g` of a call. */
static int32_t group_slot(const kargs *k, int64_t g, int64_t *out_first)
{
    const int32_t *used = klora_used_of(k->lora);
    for (;; used++) {
        int64_t n = (lora_rank_of(k, *used) + LORA_RANKS - 1) / LORA_RANKS;
        if (g < n) {
            *out_first = g * LORA_RANKS;
            return *used;
        }
        g -= n;
    }
}

typedef struct {
    lora_shape s;
    int32_t slot;
    int64_t first; /* row of A */
    int n;         /* of them */
} group;

/* Vector v of a row through the rows of A of a group. */
static void down_vector(const kargs *k, const group *g, int64_t row, int64_t v, float scale,
                        float *to)
{
    const lora_shape *s = &g->s;
    const float *a = (const float *)k->in[1] + lora_a_at(s, g->slot, lora_part(k, row, v));
    float sum[LORA_RANKS];
    if (s->kind == LORA_EMBED) {
        const float *from = a + ((const int32_t *)k->in[2])[row] * s->rank + g->first;
        memcpy(sum, from, (size_t)g->n * sizeof *sum);
    } else {
        int64_t xs = k->size.lora.x_vectors;
        const float *x = row_in(k, 0, row * xs + (xs > 1 ? v : 0));
        const float *from = a + g->first * lora_a_pitch(s);
        if (g->n == LORA_RANKS)
            dots(from, lora_a_pitch(s), LORA_RANKS, x, s->in, sum);
        else
            dots(from, lora_a_pitch(s), g->n, x, s->in, sum);
    }
    for (int r = 0; r < g->n; r++)
        to[g->first + r] = scale * sum[r];
}

void k_lora_down_c(const kargs *k, const kthread *t, int64_t begin, int64_t end)
{
    int64_t groups = lora_groups(k), vectors = k->size.lora.vectors;
    (void)t;
    for (int64_t u = begin; u < end; u++) {
        group g = {.s = lora_shape_of(k)};
        g.slot = group_slot(k, u % groups, &g.first);
        int64_t left = lora_rank_of(k, g.slot) - g.first;
        g.n = left < LORA_RANKS ? (int)left : LORA_RANKS;
        int64_t row = u / groups * LORA_ROWS,
                row_end = row + LORA_ROWS < k->n[0] ? row + LORA_ROWS : k->n[0];
        for (; row < row_end; row++) {
            const kmix *m = lora_mix_of(k, row);
            int j = lora_place(m, g.slot);
            for (int64_t v = 0; v < vectors && j >= 0; v++)
                down_vector(k, &g, row, v, m->scale[j],
                            row_out(k, 0, row * vectors + v) + j * g.s.rank);
        }
    }
}

/* ---- B ---- */

/* Add h [rank] times LORA_COLS columns of B to columns [from, to) of them, y[from] being the first. */
static inline void add_block(const float *b, const float *h, int64_t rank, int64_t from, int64_t to,
                             float *y)
{
    wide sum[N_COL] = {0};
    for (int64_t r = 0; r < rank; r++)
        for (int c = 0; c < N_COL; c++)
            sum[c] += wide_at(b + r * LORA_COLS + c * ELEMS) * h[r];
    float add[LORA_COLS];
    memcpy(add, sum, sizeof add);
    if (to - from == LORA_COLS) {
        for (int c = 0; c < LORA_COLS; c++)
            y[c] += add[c];
        return;
    }
    for (int64_t c = from; c < to; c++)
        y[c] += add[c];
}

/* Columns [col, col_end) of vector v of a row: those of all its blocks. */
static void up_vector(const kargs *k, const lora_shape *s, int32_t slot, int j, int64_t row,
                      int64_t v, int64_t block, int64_t col, int64_t col_end)
{
    const float *b = (const float *)k->in[1] + lora_b_at(s, slot, lora_part(k, row, v)) +
                     block * LORA_COLS * s->rank;
    const float *h = row_in(k, 0, row * k->size.lora.vectors + v) + j * s->rank;
    float *y = row_out(k, 0, row * k->size.lora.vectors + v) + block * LORA_COLS;
    int64_t from = col - block * LORA_COLS, to = col_end - block * LORA_COLS;
    add_block(b, h, lora_rank_of(k, slot), from > 0 ? from : 0, to < LORA_COLS ? to : LORA_COLS, y);
}

void k_lora_up_c(const kargs *k, const kthread *t, int64_t begin, int64_t end)
{
    lora_shape s = lora_shape_of(k);
    kpart part = kpart_of(k, s.out, begin, end);
    int64_t vectors = k->size.lora.vectors;
    (void)t;
    for (int64_t row = part.row * vectors; row < part.row_end * vectors; row++)
        memset(row_out(k, 0, row) + part.col, 0, (size_t)(part.col_end - part.col) * sizeof(float));
    for (int64_t i = 0; k->lora && i < k->lora->n_used; i++) {
        int32_t slot = klora_used_of(k->lora)[i];
        if (lora_rank_of(k, slot) == 0)
            continue;
        for (int64_t block = part.col / LORA_COLS; block * LORA_COLS < part.col_end; block++)
            for (int64_t row = part.row; row < part.row_end; row++) {
                int j = lora_place(lora_mix_of(k, row), slot);
                for (int64_t v = 0; v < vectors && j >= 0; v++)
                    up_vector(k, &s, slot, j, row, v, block, part.col, part.col_end);
            }
    }
}
