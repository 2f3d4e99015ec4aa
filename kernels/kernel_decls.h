/* kernel_decls.h - the prototype of every row of kernels.def: k_linear_ref, k_linear_Q8_0_c and so on. */
#ifndef WEFT_KERNELS_KERNEL_DECLS_H
#define WEFT_KERNELS_KERNEL_DECLS_H

#include "kernels/kernels.h"

#define KERNEL(op, variant, ...) kernel_fn k_##op##_##variant;
#define KERNEL_OF(op, type, act, rows, variant, ...) kernel_fn k_##op##_##type##_##variant;
#define KERNEL_AT(op, type, layout, act, rows, variant, ...)                                       \
    kernel_fn k_##op##_##type##_##rows##_##variant;
#include "kernels/kernels.def"
#undef KERNEL
#undef KERNEL_OF
#undef KERNEL_AT

#endif
