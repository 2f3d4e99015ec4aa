/* kernel_decls.h - the prototype of every row of kernels.def: k_linear_ref, k_linear_Q8_0_c and so on. */
#ifndef WEFT_KERNELS_KERNEL_DECLS_H
#define WEFT_KERNELS_KERNEL_DECLS_H

#include "kernels/kernels.h"

#define KERNEL_ROW(op, type, layout, act, least, most, symbol, ...) kernel_fn symbol;
#include "kernels/kernels.def"

#endif
