/* rows8.h - interleaved weights (kernels/layout.h) times rows of activations: the loops around a core, for linear and
 * experts.
 *
 * A group of eight weight rows is read from memory once and multiplied with all rows of activations at hand, some
 * at a time, while it is in the caches. */
#ifndef WEFT_KERNELS_C_ROWS8_H
#define WEFT_KERNELS_C_ROWS8_H

#include "kernels/kernels.h"

/* A group of n columns times some rows of activations: sum[i][r] of x[i] and weight row r. */
typedef void rows8_fn(const uint8_t *w, const void *const *x, int64_t n,
                      float (*sum)[LAYOUT_GROUP]);

/* The same of two groups, the second `pitch` bytes behind the first, and one row of activations: each sum has the bits that rows8_fn gives it. */
typedef void rows8_pair_fn(const uint8_t *w, int64_t pitch, const void *x, int64_t n,
                           float sum[2 * LAYOUT_GROUP]);

enum { ROWS8_X_MAX = 8 };

/* By the number of rows of activations; that for one is there, others may be NULL. A row's bits do not depend on its
 * company. */
typedef struct {
    rows8_fn *of[ROWS8_X_MAX + 1];
    rows8_pair_fn
        *pair; /* may be NULL: where the sums of one group are too few to keep a processor busy */
} rows8_core;

/* Arguments as in kernel_ops.def; out overlaps no input. */
void rows8_linear(const kargs *k, int64_t begin, int64_t end, const rows8_core *core);
void rows8_experts(const kargs *k, int64_t begin, int64_t end, const rows8_core *core);

/* The functions of a core and its kernels, from group(w, x, n_x, n, sum, &rows8_TYPE), which is inlined; pair: a function, or NULL. */
#define ROWS8_OF(n_x, type, group)                                                                 \
    static void type##_##n_x(const uint8_t *w, const void *const *x, int64_t n,                    \
                             float(*sum)[LAYOUT_GROUP])                                            \
    {                                                                                              \
        group(w, x, n_x, n, sum, &rows8_##type);                                                   \
    }
#define ROWS8_KERNELS(type, variant, group)                                                        \
    ROWS8_OF(8, type, group)                                                                       \
    ROWS8_KERNELS_TO_4(type, variant, group, type##_8)
#define ROWS8_KERNELS_PAIR(type, variant, group, pair)                                             \
    ROWS8_OF(8, type, group)                                                                       \
    ROWS8_KERNELS_ALL(type, variant, group, type##_8, pair)
/* The same for cores that more than four rows would not fit. */
#define ROWS8_KERNELS_TO_4(type, variant, group, of_8)                                             \
    ROWS8_KERNELS_ALL(type, variant, group, of_8, NULL)
#define ROWS8_KERNELS_ALL(type, variant, group, of_8, pair_)                                       \
    ROWS8_OF(1, type, group)                                                                       \
    ROWS8_OF(2, type, group)                                                                       \
    ROWS8_OF(3, type, group)                                                                       \
    ROWS8_OF(4, type, group)                                                                       \
    static const rows8_core core_##type = {                                                        \
        {[1] = type##_1, [2] = type##_2, [3] = type##_3, [4] = type##_4, [8] = of_8}, pair_};      \
    void k_linear_##type##_ANY_##variant(const kargs *k, const kthread *t, int64_t begin,          \
                                         int64_t end)                                              \
    {                                                                                              \
        (void)t;                                                                                   \
        rows8_linear(k, begin, end, &core_##type);                                                 \
    }                                                                                              \
    void k_experts_##type##_ANY_##variant(const kargs *k, const kthread *t, int64_t begin,         \
                                          int64_t end)                                             \
    {                                                                                              \
        (void)t;                                                                                   \
        rows8_experts(k, begin, end, &core_##type);                                                \
    }

#endif
