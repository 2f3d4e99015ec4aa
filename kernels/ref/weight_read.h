/* weight_read.h - how reference kernels read weights of any stored type: a row, an element, a dot
 * product. MXFP4_HF, which is stored in two tensors, is not among the types a kernel meets. */
#ifndef WEFT_KERNELS_REF_WEIGHT_READ_H
#define WEFT_KERNELS_REF_WEIGHT_READ_H

#include "kernels/ref/dequant.h"

/* Row i of a weight whose rows are pitch bytes apart. */
static inline const void *weight_row(const void *w, int64_t pitch, int64_t i)
{
    return (const char *)w + i * pitch;
}

/* Number i of a row. Meant for biases and short vectors: it unpacks the block that holds it. */
static inline float weight_at(dtype type, const void *row, int64_t i)
{
    const dtype_row *d = dtype_row_of(type);
    float block[256]; /* the longest block there is */
    WEFT_ASSERT(d->elems <= 256);
    dequant_row(type, (const char *)row + i / d->elems * (int64_t)d->bytes, block, d->elems);
    return block[i % d->elems];
}

static inline double dot(const float *a, const float *b, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += (double)a[i] * b[i];
    return sum;
}

#endif
