/* unary_ref.c - the element-wise functions of one tensor, in double, rounded once. A NaN stays one.
 * out may be x. */
#include "kernels/kernel_decls.h"

#include <math.h>
#include "kernels/ref/scalar_math.h"

enum { GELU_ERF, GELU_TANH, GELU_QUICK };
enum { CLAMP_LO = 1, CLAMP_HI = 2 };

/* x times the normal distribution function of x, exactly or as one of its two usual stand-ins. */
static double gelu(double x, int form)
{
    if (form == GELU_TANH) /* arXiv:1606.08415, section 2 */
        return 0.5 * x * (1 + tanh(sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
    if (form == GELU_QUICK)
        return x * sigmoid(1.702 * x);
    return 0.5 * x * erfc(-x * M_SQRT1_2); /* 1 + erf(y), without loss where that is near 0 */
}

static double clamp(const kargs *k, double x)
{
    if (k->word[0] & CLAMP_LO && x < k->f[0])
        x = k->f[0];
    if (k->word[0] & CLAMP_HI && x > k->f[1])
        x = k->f[1];
    return x;
}

/* clang-format off */
#define UNARY(op, expr)                                                                  \
    void k_##op##_ref(const kargs *k, const kthread *t, int64_t begin, int64_t end)      \
    {                                                                                    \
        const float *in = k->in[0]; /* [rows, n] */                                      \
        float *out = k->out[0];     /* like x */                                         \
        int64_t n = k->n[1];                                                             \
        (void)t;                                                                         \
        for (int64_t i = begin * n; i < end * n; i++) {                                  \
            double x = in[i];                                                            \
            out[i] = (float)(expr);                                                      \
        }                                                                                \
    }

UNARY(neg,      -x)
UNARY(silu,     x * sigmoid(x))
UNARY(gelu,     gelu(x, k->word[0]))
UNARY(tanh,     tanh(x))
UNARY(sigmoid,  sigmoid(x))
UNARY(relu,     x <= 0 ? 0 : x)
UNARY(softplus, softplus(x))
UNARY(exp,      exp(x))
UNARY(sqrt,     sqrt(x))
UNARY(clamp,    clamp(k, x))
/* clang-format on */
