/* rows8.h - woven weights times a few rows of activations: the loops around a core, for linear and experts. */
#ifndef WEFT_KERNELS_NEON_ROWS8_H
#define WEFT_KERNELS_NEON_ROWS8_H

#include "kernels/neon/neon.h"

enum { ROWS8_X_MAX = 4 };

/* Eight weight rows, of which each has n columns, times some rows of activations: sum[i] of x[i]. */
typedef void rows8_fn(const uint8_t *w, const void *const *x, int64_t n, float32x4_t (*sum)[2]);

/* For 1 to 4 rows of activations. A row's bits do not depend on its company. */
typedef struct {
    rows8_fn *of[ROWS8_X_MAX];
} rows8_core;

void rows8_linear(const kargs *k, int64_t begin, int64_t end, const rows8_core *core);
void rows8_experts(const kargs *k, int64_t begin, int64_t end, const rows8_core *core);

/* The four functions of a core, its kernels, from group(w, x, n_x, n, sum, type). */
#define ROWS8_OF(n_x, type, group)                                                                 \
    static void type##_##n_x(const uint8_t *w, const void *const *x, int64_t n,                    \
                             float32x4_t(*sum)[2])                                                 \
    {                                                                                              \
        group(w, x, n_x, n, sum, &woven_##type);                                                   \
    }
#define ROWS8_KERNELS(type, group)                                                                 \
    ROWS8_OF(1, type, group)                                                                       \
    ROWS8_OF(2, type, group)                                                                       \
    ROWS8_OF(3, type, group)                                                                       \
    ROWS8_OF(4, type, group)                                                                       \
    static const rows8_core core_##type = {{type##_1, type##_2, type##_3, type##_4}};              \
    void k_linear_##type##_ANY_dotprod(const kargs *k, const kthread *t, int64_t begin,            \
                                       int64_t end)                                                \
    {                                                                                              \
        (void)t;                                                                                   \
        rows8_linear(k, begin, end, &core_##type);                                                 \
    }                                                                                              \
    void k_experts_##type##_ANY_dotprod(const kargs *k, const kthread *t, int64_t begin,           \
                                        int64_t end)                                               \
    {                                                                                              \
        (void)t;                                                                                   \
        rows8_experts(k, begin, end, &core_##type);                                                \
    }

#endif
