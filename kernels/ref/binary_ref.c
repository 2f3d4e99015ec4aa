/* binary_ref.c - add, sub, mul, div, max, min, and select: element-wise with broadcasting.
 *
 * Each input brings its stride along every axis, 0 where it is stretched; an absent input is the
 * number scalar.binary.number[i]. Worked out in double, rounded once. max and min of a NaN and a number are NaN. out
 * is dense; it may be an input that is dense too. */
#include "kernels/kernel_decls.h"

#include "kernels/ref/weight_read.h"

static int64_t row_elements(const kargs *k)
{
    int64_t n = 1;
    for (int axis = 1; axis < k->choice.binary.rank; axis++)
        n *= k->size.binary.dim[axis - 1];
    return n;
}

/* Input i at element `flat` of a row of the output. */
static double input_at(const kargs *k, int i, int64_t row, int64_t flat)
{
    if (!k->in[i])
        return k->scalar.binary.number[i];
    int64_t at = row * k->stride[i][0];
    for (int axis = k->choice.binary.rank - 1; axis > 0; axis--) {
        at += flat % k->size.binary.dim[axis - 1] * k->stride[i][axis];
        flat /= k->size.binary.dim[axis - 1];
    }
    return weight_at(k->type[i], k->in[i], at);
}

/* clang-format off */
#define BINARY(op, expr)                                                                 \
    void k_##op##_ref(const kargs *k, const kthread *t, int64_t begin, int64_t end)      \
    {                                                                                    \
        float *out = k->out[0];                                                          \
        int64_t n = row_elements(k);                                                     \
        (void)t;                                                                         \
        for (int64_t row = begin; row < end; row++)                                      \
            for (int64_t i = 0; i < n; i++) {                                            \
                double a = input_at(k, 0, row, i), b = input_at(k, 1, row, i);           \
                out[row * n + i] = (float)(expr);                                        \
            }                                                                            \
    }

BINARY(add, a + b)
BINARY(sub, a - b)
BINARY(mul, a * b)
BINARY(div, a / b)
BINARY(max, a > b || a != a ? a : b)
BINARY(min, a < b || a != a ? a : b)
/* clang-format on */

/* a where c > 0, else b; c is input 0. */
void k_select_ref(const kargs *k, const kthread *t, int64_t begin, int64_t end)
{
    float *out = k->out[0];
    int64_t n = row_elements(k);
    (void)t;
    for (int64_t row = begin; row < end; row++)
        for (int64_t i = 0; i < n; i++) {
            bool c = input_at(k, 0, row, i) > 0;
            out[row * n + i] = (float)input_at(k, c ? 1 : 2, row, i);
        }
}
