/* unary_ref.c - the element-wise functions of one tensor, in double, rounded once. A NaN stays one.
 * out may be x. */
#include "kernels/kernel_decls.h"

#include <math.h>
#include "kernels/ref/scalar_math.h"

static double gelu(double x, int form)
{
    return form == GELU_TANH ? gelu_tanh(x) : form == GELU_QUICK ? gelu_quick(x) : gelu_erf(x);
}

static double clamp(const kargs *k, double x)
{
    if (k->choice.clamp.bounds & CLAMP_LO && x < k->scalar.clamp.lo)
        x = k->scalar.clamp.lo;
    if (k->choice.clamp.bounds & CLAMP_HI && x > k->scalar.clamp.hi)
        x = k->scalar.clamp.hi;
    return x;
}

/* clang-format off */
#define UNARY(op, expr)                                                                  \
    void k_##op##_ref(const kargs *k, const kthread *t, int64_t begin, int64_t end)      \
    {                                                                                    \
        const float *in = k->in[0]; /* [rows, n] */                                      \
        float *out = k->out[0];     /* like x */                                         \
        int64_t n = k->size.unary.elems;                                                 \
        (void)t;                                                                         \
        for (int64_t i = begin * n; i < end * n; i++) {                                  \
            double x = in[i];                                                            \
            out[i] = (float)(expr);                                                      \
        }                                                                                \
    }

UNARY(neg,      -x)
UNARY(silu,     x * sigmoid(x))
UNARY(gelu,     gelu(x, k->choice.gelu.form))
UNARY(tanh,     tanh(x))
UNARY(sigmoid,  sigmoid(x))
UNARY(relu,     x <= 0 ? 0 : x)
UNARY(softplus, softplus(x))
UNARY(exp,      exp(x))
UNARY(sqrt,     sqrt(x))
UNARY(clamp,    clamp(k, x))
/* clang-format on */
