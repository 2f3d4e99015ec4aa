/* kernel_rows.c - kernels.def as data: the rows of both architectures, those of this one with their functions.
 *
 * Nothing else refers to the functions of kernels, so a program that brings a table of its own under these names, with
 * the kernels that its plans use, links those alone. */
#include "kernels/kernel_decls.h"

#include <stddef.h>

#if defined(__x86_64__)
#define OF_X86_64(symbol) symbol
#else
#define OF_X86_64(symbol) NULL
#endif
#if defined(__aarch64__)
#define OF_AARCH64(symbol) symbol
#else
#define OF_AARCH64(symbol) NULL
#endif

/* Who includes this file may have other names for the functions (runtime/program/kernel_rows_used.c). */
#ifndef KERNEL_FN
#define KERNEL_FN(symbol) symbol
#endif

/* The function, where this is an architecture of the variant. */
#define FN_ref(symbol) KERNEL_FN(symbol)
#define FN_c(symbol) KERNEL_FN(symbol)
#define FN_neon(symbol) OF_AARCH64(KERNEL_FN(symbol))
#define FN_fhm(symbol) OF_AARCH64(KERNEL_FN(symbol))
#define FN_dotprod(symbol) OF_AARCH64(KERNEL_FN(symbol))
#define FN_i8mm(symbol) OF_AARCH64(KERNEL_FN(symbol))
#define FN_bf16(symbol) OF_AARCH64(KERNEL_FN(symbol))
#define FN_neon_bf16(symbol) OF_AARCH64(KERNEL_FN(symbol))
#define FN_avx2(symbol) OF_X86_64(KERNEL_FN(symbol))
#define FN_avxvnni(symbol) OF_X86_64(KERNEL_FN(symbol))
#define FN_avx512(symbol) OF_X86_64(KERNEL_FN(symbol))
#define FN_amx(symbol) OF_X86_64(KERNEL_FN(symbol))
#define FN_amx_bf16(symbol) OF_X86_64(KERNEL_FN(symbol))

#define DT_ANY DT_COUNT
#define KERNEL_ROW(op, type, layout, act, least, most, symbol, variant, unit, scratch)             \
    {KOP_##op,                                                                                     \
     DT_##type,                                                                                    \
     LAYOUT_##layout,                                                                              \
     ACT_##act,                                                                                    \
     least,                                                                                        \
     most,                                                                                         \
     #symbol,                                                                                      \
     FN_##variant(symbol),                                                                         \
     VARIANT_##variant,                                                                            \
     KUNIT_##unit,                                                                                 \
     KSCRATCH_##scratch},
const kernel_row kernel_row_table[] = {
#include "kernels/kernels.def"
};

const int32_t kernel_row_count = (int32_t)(sizeof kernel_row_table / sizeof kernel_row_table[0]);
