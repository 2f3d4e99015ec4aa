/* attend_avx512.c - softmax attention with AVX-512. */
#include "kernels/kernel_decls.h"

#include "kernels/x86/attend_codes_x86.h"

void k_attend_avx512(const kargs *k, const kthread *t, int64_t begin, int64_t end)
{
    attend_units(x86_wants, k, t, begin, end);
}
