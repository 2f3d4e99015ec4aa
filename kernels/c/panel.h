/* panel.h - linear and experts for many rows: some rows of weights are unpacked once, to a panel in a form that multiplies
 * fast, and meet all rows of activations while they are in the first-level cache.
 *
 * The loops are the same for every instruction set and type of weights; a core says how weights are unpacked and how a
 * panel is multiplied with a few rows, a tile. */
#ifndef WEFT_KERNELS_C_PANEL_H
#define WEFT_KERNELS_C_PANEL_H

#include "kernels/c/panel_size.h"
#include "kernels/kernels.h"

/* Columns [first, first + cols) of the rows of activations of a tile, which have n columns. */
typedef struct {
    const void *const
        *rows;     /* each of them, all there: those that were not asked for repeat another */
    const char *x; /* the first; where four are interleaved (act.h), all of them */
    int count;     /* rows, the first, that are asked for: sums of others may become anything */
    int64_t n, first, cols;
    int64_t next; /* bytes from x to what is multiplied next, to be brought closer */
} panel_acts;

typedef struct {
    kact act; /* how activations come to a tile */
    int rows; /* of weights in a panel, at most PANEL_ROWS_MAX */
    int tile; /* of activations in a tile, at most PANEL_TILE_MAX; of interleaved ones four */
    int group; /* rows of weights that lie together, `pitch` bytes from the next: 1, or LAYOUT_GROUP */
    int cols; /* that are unpacked at once, at most PANEL_COLS_MAX; a multiple of the type's block */
    /* Columns [first, first + cols) of `rows` rows from w on. Fewer than a panel has: the others may become anything. */
    void (*unpack)(const uint8_t *w, int64_t pitch, int64_t rows, int64_t first, int64_t cols,
                   void *panel);
    /* The sums of all rows of the panel for each row of activations: t[tile][rows]. */
    void (*multiply)(const void *panel, const panel_acts *x, float *t);
    /* The sums of a full panel to out[tile], NULL: not asked for. They are added to what is there, or begin with a bias, which
     * may be NULL. Without it loops in C do so; where sums lie otherwise panels are always full. */
    void (*put)(const float *t, float *const *out, const float *bias, bool add);
} panel_core;

/* Arguments as in kernel_ops.def; out overlaps no input. The rows of experts are quantised one by one, and interleaved
 * here where the core wants it. */
void panel_linear(const kargs *k, const kthread *t, int64_t begin, int64_t end,
                  const panel_core *core);
void panel_experts(const kargs *k, const kthread *t, int64_t begin, int64_t end,
                   const panel_core *core);

/* The kernels of a core. */
#define PANEL_KERNELS(type, variant, core)                                                         \
    void k_linear_##type##_MANY_##variant(const kargs *k, const kthread *t, int64_t begin,         \
                                          int64_t end)                                             \
    {                                                                                              \
        panel_linear(k, t, begin, end, core);                                                      \
    }                                                                                              \
    void k_experts_##type##_MANY_##variant(const kargs *k, const kthread *t, int64_t begin,        \
                                           int64_t end)                                            \
    {                                                                                              \
        panel_experts(k, t, begin, end, core);                                                     \
    }

#endif
