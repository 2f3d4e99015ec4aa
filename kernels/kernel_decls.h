/* kernel_decls.h - the prototype of every row of kernels.def: k_linear_ref and so on. */
#ifndef WEFT_KERNELS_KERNEL_DECLS_H
#define WEFT_KERNELS_KERNEL_DECLS_H

#include "kernels/kernels.h"

#define KERNEL(op, variant, ...) kernel_fn k_##op##_##variant;
#include "kernels/kernels.def"
#undef KERNEL

#endif
