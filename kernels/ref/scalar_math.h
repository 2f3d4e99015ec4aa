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

#endif
