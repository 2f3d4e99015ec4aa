/* msl_math.h - functions of numbers. Included by msl.h alone. Those of half are computed in float and rounded once. */
#define M_PI_F 3.14159265358979323846f
#define M_E_F 2.71828182845904523536f
#define M_SQRT2_F 1.41421356237309504880f
#define M_SQRT1_2_F 0.70710678118654752440f
#define M_LN2_F 0.69314718055994530942f
#define M_LOG2E_F 1.44269504088896340736f
#define M_2_SQRTPI_F 1.12837916709551257390f
#undef INFINITY
#undef NAN
#define INFINITY __builtin_inff()
#define NAN __builtin_nanf("")
#define MAXFLOAT 3.402823466e+38f
#define FLT_MAX 3.402823466e+38f
#define FLT_MIN 1.175494351e-38f
#define FLT_EPSILON 1.192092896e-07f
#define HALF_MAX 65504.0h

namespace metal
{
/* Of one number, element by element for vectors. Integers are taken as float. */
#define MSL_ONE(name, call)                                                                        \
    inline float name(float x)                                                                     \
    {                                                                                              \
        return call(x);                                                                            \
    }                                                                                              \
    inline half name(half x)                                                                       \
    {                                                                                              \
        return (half)call((float)x);                                                               \
    }                                                                                              \
    template <class T, int N> inline vec<T, N> name(vec<T, N> v)                                   \
    {                                                                                              \
        for (int i = 0; i < N; i++)                                                                \
            v[i] = name((T)v[i]);                                                                  \
        return v;                                                                                  \
    }
#define MSL_TWO(name, call)                                                                        \
    inline float name(float x, float y)                                                            \
    {                                                                                              \
        return call(x, y);                                                                         \
    }                                                                                              \
    inline half name(half x, half y)                                                               \
    {                                                                                              \
        return (half)call((float)x, (float)y);                                                     \
    }                                                                                              \
    template <class T, int N> inline vec<T, N> name(vec<T, N> v, vec<T, N> w)                      \
    {                                                                                              \
        for (int i = 0; i < N; i++)                                                                \
            v[i] = name((T)v[i], (T)w[i]);                                                         \
        return v;                                                                                  \
    }
} // namespace metal
namespace msl
{
inline float rsqrt(float x)
{
    return 1.0f / __builtin_sqrtf(x);
}
inline float sign(float x)
{
    return x > 0 ? 1.0f : x < 0 ? -1.0f : x;
}
inline float saturate(float x)
{
    return __builtin_fminf(__builtin_fmaxf(x, 0.0f), 1.0f);
}
inline float fract(float x)
{
    return __builtin_fminf(x - __builtin_floorf(x), 0x1.fffffep-1f);
}
inline float exp10(float x)
{
    return __builtin_powf(10.0f, x);
}
} // namespace msl
namespace metal
{
MSL_ONE(exp, __builtin_expf)
MSL_ONE(exp2, __builtin_exp2f)
MSL_ONE(exp10, msl::exp10)
MSL_ONE(log, __builtin_logf)
MSL_ONE(log2, __builtin_log2f)
MSL_ONE(log10, __builtin_log10f)
MSL_ONE(sin, __builtin_sinf)
MSL_ONE(cos, __builtin_cosf)
MSL_ONE(tan, __builtin_tanf)
MSL_ONE(asin, __builtin_asinf)
MSL_ONE(acos, __builtin_acosf)
MSL_ONE(atan, __builtin_atanf)
MSL_ONE(sinh, __builtin_sinhf)
MSL_ONE(cosh, __builtin_coshf)
MSL_ONE(tanh, __builtin_tanhf)
MSL_ONE(sqrt, __builtin_sqrtf)
MSL_ONE(rsqrt, msl::rsqrt)
MSL_ONE(floor, __builtin_floorf)
MSL_ONE(ceil, __builtin_ceilf)
MSL_ONE(trunc, __builtin_truncf)
MSL_ONE(rint, __builtin_rintf)
MSL_ONE(round, __builtin_roundf)
MSL_ONE(fabs, __builtin_fabsf)
MSL_ONE(sign, msl::sign)
MSL_ONE(saturate, msl::saturate)
MSL_ONE(fract, msl::fract)
MSL_TWO(pow, __builtin_powf)
MSL_TWO(powr, __builtin_powf)
MSL_TWO(atan2, __builtin_atan2f)
MSL_TWO(fmod, __builtin_fmodf)
MSL_TWO(fmin, __builtin_fminf)
MSL_TWO(fmax, __builtin_fmaxf)
MSL_TWO(copysign, __builtin_copysignf)
#undef MSL_ONE
#undef MSL_TWO
/* Metal's fast and precise forms differ in accuracy that cannot be known here: both are this machine's. */
namespace precise
{
using namespace metal;
}
namespace fast
{
using namespace metal;
}

inline float ldexp(float x, int e)
{
    return __builtin_ldexpf(x, e);
}
template <class T> inline T fma(T a, T b, T c)
{
    if constexpr (msl::shape<T>::vector) {
        for (int i = 0; i < msl::shape<T>::n; i++)
            a[i] = (typename msl::shape<T>::element)__builtin_fmaf(a[i], b[i], c[i]);
        return a;
    } else {
        return (T)__builtin_fmaf(a, b, c);
    }
}

/* Of two of one type, as Metal's overloads: min(int, uint) does not exist. */
template <class T> inline T min(T a, T b)
{
    if constexpr (msl::shape<T>::vector) {
        for (int i = 0; i < msl::shape<T>::n; i++)
            a[i] = b[i] < a[i] ? b[i] : a[i];
        return a;
    } else {
        return b < a ? b : a;
    }
}
template <class T> inline T max(T a, T b)
{
    if constexpr (msl::shape<T>::vector) {
        for (int i = 0; i < msl::shape<T>::n; i++)
            a[i] = a[i] < b[i] ? b[i] : a[i];
        return a;
    } else {
        return a < b ? b : a;
    }
}
template <class T> inline T clamp(T x, T low, T high)
{
    return min(max(x, low), high);
}
template <class T, int N> inline vec<T, N> clamp(vec<T, N> x, T low, T high)
{
    for (int i = 0; i < N; i++)
        x[i] = clamp((T)x[i], low, high);
    return x;
}
template <class T> inline T mix(T a, T b, T x)
{
    return a + (b - a) * x;
}
template <class T> inline T abs(T a)
{
    if constexpr (msl::shape<T>::vector) {
        for (int i = 0; i < msl::shape<T>::n; i++)
            a[i] = a[i] < 0 ? -a[i] : a[i];
        return a;
    } else if constexpr (std::is_unsigned_v<T>) {
        return a;
    } else {
        return a < 0 ? (T)-a : a;
    }
}
template <class T> inline T select(T a, T b, bool c)
{
    return c ? b : a;
}
template <class T, int N, class C> inline vec<T, N> select(vec<T, N> a, vec<T, N> b, vec<C, N> c)
{
    for (int i = 0; i < N; i++)
        a[i] = c[i] ? b[i] : a[i];
    return a;
}
template <class T, int N> inline bool any(vec<T, N> v)
{
    bool is = false;
    for (int i = 0; i < N; i++)
        is |= v[i] != 0;
    return is;
}
template <class T, int N> inline bool all(vec<T, N> v)
{
    bool is = true;
    for (int i = 0; i < N; i++)
        is &= v[i] != 0;
    return is;
}
template <class T, int N> inline T dot(vec<T, N> a, vec<T, N> b)
{
    T s = 0;
    for (int i = 0; i < N; i++)
        s += a[i] * b[i];
    return s;
}
template <class T, int N> inline T length(vec<T, N> v)
{
    return sqrt(dot(v, v));
}
template <class T> inline bool isnan(T x)
{
    return x != x;
}
template <class T> inline bool isinf(T x)
{
    return __builtin_isinf((float)x);
}
template <class T> inline bool isfinite(T x)
{
    return __builtin_isfinite((float)x);
}

template <class T> inline T popcount(T x)
{
    static_assert(std::is_integral_v<T>, "popcount of an integer");
    return (T)__builtin_popcountl((std::make_unsigned_t<T>)x);
}
template <class T> inline T clz(T x)
{
    return x ? (T)(__builtin_clzl((std::make_unsigned_t<T>)x) - 8 * (int)(sizeof(long) - sizeof x))
             : (T)(8 * sizeof x);
}
template <class T> inline T ctz(T x)
{
    return x ? (T)__builtin_ctzl((std::make_unsigned_t<T>)x) : (T)(8 * sizeof x);
}
template <class T> inline T extract_bits(T x, uint offset, uint bits)
{
    static_assert(std::is_integral_v<T>, "extract_bits of an integer");
    if (bits == 0)
        return 0;
    T up = (T)((std::make_unsigned_t<T>)x << (8 * sizeof x - offset - bits));
    return (T)(up >> (8 * sizeof x - bits));
}
inline uint mulhi(uint a, uint b)
{
    return (uint)((ulong)a * b >> 32);
}
inline int mulhi(int a, int b)
{
    return (int)((long)a * b >> 32);
}
template <class T> inline T rotate(T x, T by)
{
    static_assert(std::is_unsigned_v<T>, "rotate of an unsigned integer");
    constexpr uint n = 8 * sizeof(T);
    return (T)(x << (by & (n - 1)) | x >> ((n - (by & (n - 1))) & (n - 1)));
}

template <class T> struct numeric_limits : std::numeric_limits<T> {
};
template <> struct numeric_limits<half> {
    static constexpr half infinity()
    {
        return (half)__builtin_inff();
    }
    static constexpr half max()
    {
        return (half)65504.0f;
    }
    static constexpr half lowest()
    {
        return (half)-65504.0f;
    }
};
using std::conditional;
using std::conditional_t;
using std::enable_if;
using std::enable_if_t;
using std::integral_constant;
using std::is_integral_v;
using std::is_same;
using std::is_same_v;
} // namespace metal
