/* intmath.h - integer arithmetic on sizes that came from outside.
 *
 * Each function returns false, and leaves *out untouched, when the result does not fit; the caller
 * turns that into a diagnostic. The letters after the noun name the type: i64, u64, size. */
#ifndef WEFT_RUNTIME_BASE_INTMATH_H
#define WEFT_RUNTIME_BASE_INTMATH_H

#include "runtime/base/status.h"

/* A compiler without these builtins would need functions of the same meaning here. */
#define INTMATH_OP(T, noun, verb)                                                                  \
    static inline WEFT_MUST_USE bool noun##_##verb(T a, T b, T *out)                               \
    {                                                                                              \
        T r;                                                                                       \
        if (__builtin_##verb##_overflow(a, b, &r))                                                 \
            return false;                                                                          \
        *out = r;                                                                                  \
        return true;                                                                               \
    }

INTMATH_OP(int64_t, i64, add)
INTMATH_OP(int64_t, i64, sub)
INTMATH_OP(int64_t, i64, mul)
INTMATH_OP(uint64_t, u64, add)
INTMATH_OP(uint64_t, u64, sub)
INTMATH_OP(uint64_t, u64, mul)
INTMATH_OP(size_t, size, add)
INTMATH_OP(size_t, size, sub)
INTMATH_OP(size_t, size, mul)

#undef INTMATH_OP

/* x rounded up to a multiple of align, which is a power of two. */
static inline WEFT_MUST_USE bool u64_align_up(uint64_t x, uint64_t align, uint64_t *out)
{
    WEFT_ASSERT(align != 0 && (align & (align - 1)) == 0);
    uint64_t r;
    if (!u64_add(x, align - 1, &r))
        return false;
    *out = r & ~(align - 1);
    return true;
}
static inline WEFT_MUST_USE bool size_align_up(size_t x, size_t align, size_t *out)
{
    uint64_t r;
    if (!u64_align_up(x, align, &r) || r > SIZE_MAX)
        return false;
    *out = (size_t)r;
    return true;
}

static inline size_t size_max(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* The least multiple of both, which are above 0; the product must fit. */
static inline int64_t i64_lcm(int64_t a, int64_t b)
{
    int64_t x = a, y = b;
    while (y) {
        int64_t r = x % y;
        x = y;
        y = r;
    }
    return a / x * b;
}

/* a / b rounded up, for a >= 0 and b > 0; always fits. */
static inline int64_t i64_ceil_div(int64_t a, int64_t b)
{
    WEFT_ASSERT(a >= 0 && b > 0);
    return a / b + (a % b != 0);
}

/* x as an index or a size, if it is in range. */
static inline WEFT_MUST_USE bool i64_from_u64(uint64_t x, int64_t *out)
{
    if (x > INT64_MAX)
        return false;
    *out = (int64_t)x;
    return true;
}
static inline WEFT_MUST_USE bool size_from_u64(uint64_t x, size_t *out)
{
    if (x > SIZE_MAX)
        return false;
    *out = (size_t)x;
    return true;
}

#endif
