/* simt_numbers.h - CUDA's vectors, halves and functions of numbers, for simt.h. */
#ifndef WEFT_TESTS_CUDA_SIMT_NUMBERS_H
#define WEFT_TESTS_CUDA_SIMT_NUMBERS_H
/* clang-format off */

/* ---- vectors ---- */

#define SIMT_VECTORS(T, name, align2, align4)                                                      \
    struct __align__(align2) name##2                                                               \
    {                                                                                              \
        T x, y;                                                                                    \
    };                                                                                             \
    struct name##3                                                                                 \
    {                                                                                              \
        T x, y, z;                                                                                 \
    };                                                                                             \
    struct __align__(align4) name##4                                                               \
    {                                                                                              \
        T x, y, z, w;                                                                              \
    };                                                                                             \
    static inline name##2 make_##name##2(T x, T y)                                                 \
    {                                                                                              \
        return {x, y};                                                                             \
    }                                                                                              \
    static inline name##3 make_##name##3(T x, T y, T z)                                            \
    {                                                                                              \
        return {x, y, z};                                                                          \
    }                                                                                              \
    static inline name##4 make_##name##4(T x, T y, T z, T w)                                       \
    {                                                                                              \
        return {x, y, z, w};                                                                       \
    }
#define uint3 simt_uint3 /* simt.h has it */
SIMT_VECTORS(float, float, 8, 16)
SIMT_VECTORS(int, int, 8, 16)
SIMT_VECTORS(unsigned, uint, 8, 16)
SIMT_VECTORS(double, double, 16, 16)
SIMT_VECTORS(long long, longlong, 16, 16)
SIMT_VECTORS(unsigned long long, ulonglong, 16, 16)
SIMT_VECTORS(short, short, 4, 8)
SIMT_VECTORS(unsigned short, ushort, 4, 8)
SIMT_VECTORS(signed char, char, 2, 4)
SIMT_VECTORS(unsigned char, uchar, 2, 4)
#undef uint3
#undef SIMT_VECTORS

/* ---- the bits of numbers ---- */

template <typename TO, typename FROM> static inline TO simt_bits(FROM v)
{
    static_assert(sizeof(TO) == sizeof(FROM), "the same bits");
    TO to;
    memcpy(&to, &v, sizeof to);
    return to;
}
static inline int __float_as_int(float f) { return simt_bits<int>(f); }
static inline unsigned __float_as_uint(float f) { return simt_bits<unsigned>(f); }
static inline float __int_as_float(int i) { return simt_bits<float>(i); }
static inline float __uint_as_float(unsigned i) { return simt_bits<float>(i); }
static inline long long __double_as_longlong(double d) { return simt_bits<long long>(d); }
static inline double __longlong_as_double(long long i) { return simt_bits<double>(i); }

/* ---- f16 and bf16 ---- */

struct __half_raw {
    unsigned short x;
};
struct __half {
    unsigned short x;
    __half() = default;
    __half(__half_raw r) : x(r.x)
    {
    }
    inline __half(float f);
    inline operator float() const;
};
struct __nv_bfloat16_raw {
    unsigned short x;
};
struct __nv_bfloat16 {
    unsigned short x;
    __nv_bfloat16() = default;
    __nv_bfloat16(__nv_bfloat16_raw r) : x(r.x)
    {
    }
    inline __nv_bfloat16(float f);
    inline operator float() const;
};
typedef __half half;
typedef __nv_bfloat16 nv_bfloat16;

static inline float simt_half_float(unsigned short h)
{
    unsigned sign = (unsigned)(h & 0x8000) << 16, e = h >> 10 & 31, m = h & 0x3ff;
    if (e == 0) /* m * 2^-24, exact */
        return __uint_as_float(sign | __float_as_uint((float)m * 0x1p-24f));
    return __uint_as_float(sign | (e == 31 ? 0x7f800000u : (e + 112) << 23) | m << 13);
}
/* To the nearest, ties to even. */
static inline unsigned short simt_float_half(float f)
{
    unsigned bits = __float_as_uint(f), sign = bits >> 16 & 0x8000, a = bits & 0x7fffffff;
    if (a > 0x7f800000)
        return 0x7fff;
    if (a >= 0x477ff000)
        return (unsigned short)(sign | 0x7c00);
    if (a < 0x38800000) /* below 2^-14: a whole number of 2^-24; adding 0.5 rounds at that bit */
        return (unsigned short)(sign | (__float_as_uint(__uint_as_float(a) + 0.5f) - 0x3f000000));
    return (unsigned short)(sign | (a - 0x38000000 + 0xfff + (a >> 13 & 1)) >> 13);
}
static inline float simt_bfloat_float(unsigned short h)
{
    return __uint_as_float((unsigned)h << 16);
}
static inline unsigned short simt_float_bfloat(float f)
{
    unsigned bits = __float_as_uint(f);
    if ((bits & 0x7fffffff) > 0x7f800000)
        return 0x7fff;
    return (unsigned short)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

__half::__half(float f) : x(simt_float_half(f))
{
}
__half::operator float() const { return simt_half_float(x); }
__nv_bfloat16::__nv_bfloat16(float f) : x(simt_float_bfloat(f))
{
}
__nv_bfloat16::operator float() const { return simt_bfloat_float(x); }

struct __align__(4) __half2
{
    __half x, y;
};
struct __align__(4) __nv_bfloat162
{
    __nv_bfloat16 x, y;
};
typedef __half2 half2;
typedef __nv_bfloat162 nv_bfloat162;

static inline float __half2float(__half h) { return h; }
static inline __half __float2half(float f) { return __half(f); }
static inline __half __float2half_rn(float f) { return __half(f); }
static inline __half __ushort_as_half(unsigned short u) { return __half(__half_raw{u}); }
static inline unsigned short __half_as_ushort(__half h) { return h.x; }
static inline float2 __half22float2(__half2 h) { return {h.x, h.y}; }
static inline float __low2float(__half2 h) { return h.x; }
static inline float __high2float(__half2 h) { return h.y; }
static inline __half2 __floats2half2_rn(float a, float b) { return {__half(a), __half(b)}; }
static inline __half2 __float22half2_rn(float2 f) { return {__half(f.x), __half(f.y)}; }
static inline __half2 __halves2half2(__half a, __half b) { return {a, b}; }
static inline __half2 __half2half2(__half a) { return {a, a}; }
static inline __half2 __hadd2(__half2 a, __half2 b)
{
    return {__half(a.x + b.x), __half(a.y + b.y)};
}
static inline __half2 __hmul2(__half2 a, __half2 b)
{
    return {__half(a.x * b.x), __half(a.y * b.y)};
}
static inline __half2 __hsub2(__half2 a, __half2 b)
{
    return {__half(a.x - b.x), __half(a.y - b.y)};
}
/* The product of two halves is exact in f32, the sum in double; rounded twice at most where the sum is no f32. */
static inline __half2 __hfma2(__half2 a, __half2 b, __half2 c)
{
    return {__half((float)((double)a.x * (double)b.x + (double)c.x)),
            __half((float)((double)a.y * (double)b.y + (double)c.y))};
}
static inline float __bfloat162float(__nv_bfloat16 h) { return h; }
static inline __nv_bfloat16 __float2bfloat16(float f) { return __nv_bfloat16(f); }
static inline __nv_bfloat16 __float2bfloat16_rn(float f) { return __nv_bfloat16(f); }
static inline __nv_bfloat16 __ushort_as_bfloat16(unsigned short u)
{
    return __nv_bfloat16(__nv_bfloat16_raw{u});
}
static inline unsigned short __bfloat16_as_ushort(__nv_bfloat16 h) { return h.x; }
static inline float2 __bfloat1622float2(__nv_bfloat162 h) { return {h.x, h.y}; }
static inline __nv_bfloat162 __floats2bfloat162_rn(float a, float b)
{
    return {__nv_bfloat16(a), __nv_bfloat16(b)};
}

/* ---- whole numbers ---- */

static inline int __popc(unsigned v) { return __builtin_popcount(v); }
static inline int __popcll(unsigned long long v) { return __builtin_popcountll(v); }
static inline int __ffs(int v) { return __builtin_ffs(v); }
static inline int __clz(int v) { return v ? __builtin_clz((unsigned)v) : 32; }
static inline int __clzll(long long v) { return v ? __builtin_clzll((unsigned long long)v) : 64; }
static inline unsigned __umulhi(unsigned a, unsigned b)
{
    return (unsigned)((unsigned long long)a * b >> 32);
}
static inline unsigned __funnelshift_r(unsigned lo, unsigned hi, unsigned by)
{
    return (unsigned)(((unsigned long long)hi << 32 | lo) >> (by & 31));
}
/* Byte i of the result is byte (selector's nibble i) of the eight of b:a; its high bit spreads the byte's sign. */
static inline unsigned __byte_perm(unsigned a, unsigned b, unsigned select)
{
    unsigned long long from = (unsigned long long)b << 32 | a;
    unsigned to = 0;
    for (int i = 0; i < 4; i++) {
        unsigned s = select >> 4 * i, byte = (unsigned)(from >> 8 * (s & 7)) & 0xff;
        to |= (s & 8 ? (byte & 0x80 ? 0xffu : 0) : byte) << 8 * i;
    }
    return to;
}
static inline int __dp4a(int a, int b, int c)
{
    for (int i = 0; i < 32; i += 8)
        c += (int)(signed char)(a >> i) * (int)(signed char)(b >> i);
    return c;
}
static inline unsigned __dp4a(unsigned a, unsigned b, unsigned c)
{
    for (int i = 0; i < 32; i += 8)
        c += (a >> i & 0xff) * (b >> i & 0xff);
    return c;
}
/* Four bytes at once. */
#define SIMT_BYTES(name, expr)                                                                     \
    static inline unsigned name(unsigned a, unsigned b)                                            \
    {                                                                                              \
        unsigned to = 0;                                                                           \
        for (int i = 0; i < 32; i += 8) {                                                          \
            unsigned x = a >> i & 0xff, y = b >> i & 0xff;                                         \
            to |= ((expr)&0xff) << i;                                                              \
        }                                                                                          \
        return to;                                                                                 \
    }
SIMT_BYTES(__vadd4, x + y)
SIMT_BYTES(__vsub4, x - y)
SIMT_BYTES(__vcmpeq4, x == y ? 0xffu : 0u)
SIMT_BYTES(__vcmpne4, x != y ? 0xffu : 0u)
#undef SIMT_BYTES

/* ---- f32 ---- */

#define rsqrtf simt_rsqrtf /* libm may have it */
#define rsqrt simt_rsqrt
static inline float rsqrtf(float v) { return 1 / sqrtf(v); }
static inline double rsqrt(double v) { return 1 / sqrt(v); }
static inline float __frcp_rn(float v) { return 1 / v; }
static inline float __frsqrt_rn(float v) { return (float)(1 / sqrt((double)v)); }
static inline float __fsqrt_rn(float v) { return sqrtf(v); }
static inline float __fmaf_rn(float a, float b, float c) { return fmaf(a, b, c); }
static inline float __fmul_rn(float a, float b) { return a * b; }
static inline float __fadd_rn(float a, float b) { return a + b; }
static inline float __fsub_rn(float a, float b) { return a - b; }
static inline float __fdiv_rn(float a, float b) { return a / b; }
static inline float __fdividef(float a, float b) { return a / b; }
#define __expf(v) expf(v)
#define __logf(v) logf(v)
#define __log2f(v) log2f(v)
#define __sinf(v) sinf(v)
#define __cosf(v) cosf(v)
#define __powf(a, b) powf(a, b)
static inline float __saturatef(float v) { return v > 0 ? (v < 1 ? v : 1) : 0; }
#define __sincosf(v, s, c) (*(s) = sinf(v), *(c) = cosf(v))
/* Out of range: the nearest number there is, as the card has it; a NaN is 0. */
static inline int simt_int(float v)
{
    return v >= 0x1p31f ? 0x7fffffff : v >= -0x1p31f ? (int)v : v == v ? (int)0x80000000 : 0;
}
static inline int __float2int_rn(float v) { return simt_int(rintf(v)); }
static inline int __float2int_rz(float v) { return simt_int(truncf(v)); }
static inline int __float2int_rd(float v) { return simt_int(floorf(v)); }
static inline int __float2int_ru(float v) { return simt_int(ceilf(v)); }
static inline float __int2float_rn(int v) { return (float)v; }
static inline float __uint2float_rn(unsigned v) { return (float)v; }

#define SIMT_MIN_MAX(T)                                                                            \
    static inline T min(T a, T b)                                                                  \
    {                                                                                              \
        return b < a ? b : a;                                                                      \
    }                                                                                              \
    static inline T max(T a, T b)                                                                  \
    {                                                                                              \
        return a < b ? b : a;                                                                      \
    }
SIMT_MIN_MAX(int)
SIMT_MIN_MAX(unsigned)
SIMT_MIN_MAX(long)
SIMT_MIN_MAX(unsigned long)
SIMT_MIN_MAX(long long)
SIMT_MIN_MAX(unsigned long long)
#undef SIMT_MIN_MAX
static inline float min(float a, float b) { return fminf(a, b); }
static inline float max(float a, float b) { return fmaxf(a, b); }
static inline double min(double a, double b) { return fmin(a, b); }
static inline double max(double a, double b) { return fmax(a, b); }

/* ---- memory and time ---- */

template <typename T> static inline T __ldg(const T *p) { return *p; }
template <typename T> static inline T __ldcg(const T *p) { return *p; }
template <typename T> static inline T __ldca(const T *p) { return *p; }
template <typename T> static inline T __ldcs(const T *p) { return *p; }
template <typename T> static inline T __ldlu(const T *p) { return *p; }
template <typename T> static inline void __stcg(T *p, T v) { *p = v; }
template <typename T> static inline void __stcs(T *p, T v) { *p = v; }
template <typename T> static inline void __stwt(T *p, T v) { *p = v; }

static inline unsigned long long simt_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (unsigned long long)t.tv_sec * 1000000000u + (unsigned long long)t.tv_nsec;
}
static inline long long clock64(void) { return (long long)simt_ns(); }
/* clang-format on */

#endif
