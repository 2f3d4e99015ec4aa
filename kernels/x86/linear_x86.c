/* linear_x86.c - linear and experts with the cores of each variant; the loops around them are those of the
 * portable kernels. */
#include "kernels/kernel_decls.h"

#include "kernels/x86/dot_x86.h"

#define CONTRACTIONS(type, name, variant)                                                          \
    void k_linear_##type##_##variant(const kargs *k, const kthread *t, int64_t begin, int64_t end) \
    {                                                                                              \
        dot_linear(k, t, begin, end, &dot_##variant##_##name);                                     \
    }                                                                                              \
    void k_experts_##type##_##variant(const kargs *k, const kthread *t, int64_t begin,             \
                                      int64_t end)                                                 \
    {                                                                                              \
        dot_experts(k, t, begin, end, &dot_##variant##_##name);                                    \
    }
#define AVX2(type, name) CONTRACTIONS(type, name, avx2)
X86_FLOATS(AVX2)
X86_BLOCKS(AVX2)
#define AVX512(type, name) CONTRACTIONS(type, name, avx512)
X86_FLOATS(AVX512)
