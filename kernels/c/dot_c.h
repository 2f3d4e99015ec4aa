/* dot_c.h - dot products of stored weight rows with activations: one core per storage type.
 *
 * A core multiplies one weight row with one row of activations, or with four at once so that the weights
 * are unpacked once. Some take several weight rows at once besides, as streams through memory.
 * Either way a row's sums are made in the same order, which depends on the type and
 * on n alone. Kernels of other variants can hand cores of their own to dot_block. */
#ifndef WEFT_KERNELS_C_DOT_C_H
#define WEFT_KERNELS_C_DOT_C_H

#include "kernels/kernels.h"

/* out[i] = w times x[i]; w[n] stored at any byte, x[i] in the core's form. */
typedef void dot_fn(const void *w, const void *const *x, int64_t n, float *out);

/* The same for DOT_STREAMS weight rows and up to DOT_STREAMS_X rows of activations: out[i][r] of x[i] and w[r].
 * ahead[r] is what comes after w[r] a while later, for hints to memory. */
enum { DOT_STREAMS = 2, DOT_STREAMS_X = 4 };
typedef void dot_streams_fn(const void *const *w, const void *const *ahead, const void *const *x,
                            int64_t n_x, int64_t n, float (*out)[DOT_STREAMS]);

typedef struct {
    kact act; /* how x is given */
    dot_fn *one, *four;
    dot_streams_fn *streams; /* or NULL */
} dot_core;

/* Weight rows [row, row_end) times up to DOT_ROWS_MAX rows of activations: out[i][row] and so on. Where
 * scratch, [n], is given, rows are unpacked into it and the core takes f32. */
enum { DOT_ROWS_MAX = 32 };
typedef struct {
    const dot_core *core;
    const char *w; /* row 0 */
    int64_t pitch;
    dtype type;
    float *scratch;
    int64_t n, row, row_end;
    const float *bias; /* [rows of w] or NULL */
    int64_t n_x;
    const void *x[DOT_ROWS_MAX];
    float *out[DOT_ROWS_MAX];
} dot_work;
void dot_block(const dot_work *j);

/* The work of a kernel whose weight is input 1. `core` NULL: f32 activations and weights of any type,
 * unpacked where there is no core for them. Rows, weights and bias are left to the caller. */
dot_work dot_work_of(const kargs *k, const kthread *t, const dot_core *core, int64_t n);

/* linear and experts (kernel_ops.def) with a core for the type of their weights; NULL: as above. */
void dot_linear(const kargs *k, const kthread *t, int64_t begin, int64_t end, const dot_core *core);
void dot_experts(const kargs *k, const kthread *t, int64_t begin, int64_t end,
                 const dot_core *core);

#endif
