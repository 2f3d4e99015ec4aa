/* kernel_rows_used.c - the table of kernels of a built program: those that its plans use have their functions, others none.
 *
 * The linker is told the names of those that are used, as used_k_linear_Q8_0_c=k_linear_Q8_0_c and so on; all other references stay weak and
 * without a definition, so that their kernels are left out. */
#include "kernels/kernel_decls.h"

#define KERNEL_ROW(op, type, layout, act, least, most, symbol, ...)                                \
    extern kernel_fn used_##symbol __attribute__((weak));
#include "kernels/kernels.def"

#define KERNEL_FN(symbol) used_##symbol
#include "kernels/kernel_rows.c"
