/* attend_avx2.c - softmax attention with AVX2 and FMA. */
#include "kernels/kernel_decls.h"

#define ATTEND_AVX2
#include "kernels/x86/attend_codes_x86.h"

void k_attend_avx2(const kargs *k, const kthread *t, int64_t begin, int64_t end)
{
    attend_units(x86_wants, k, t, begin, end);
}
