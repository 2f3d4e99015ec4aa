/* scalar_math.h - functions of one number that several reference kernels use. */
#ifndef WEFT_KERNELS_REF_SCALAR_MATH_H
#define WEFT_KERNELS_REF_SCALAR_MATH_H

#include <math.h>

/* For the largest of many, where a NaN does not count. (GCC 12 fails on loops over fmax.) */
static inline double larger(double a, double b)
{
    return b > a ? b : a;
}

static inline double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

/* log(1 + exp(x)), without overflow above and without loss below. */
static inline double softplus(double x)
{
    return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x));
}

/* x times the normal distribution function of x, exactly or as one of its two usual stand-ins. */
static inline double gelu_erf(double x)
{
    return 0.5 * x * erfc(-x * M_SQRT1_2); /* 1 + erf(y), without loss where that is near 0 */
}

static inline double gelu_tanh(double x) /* arXiv:1606.08415, section 2 */
{
    return 0.5 * x * (1 + tanh(sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}

static inline double gelu_quick(double x)
{
    return x * sigmoid(1.702 * x);
}

#endif
