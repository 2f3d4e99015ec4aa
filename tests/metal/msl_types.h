/* msl_types.h - scalars and vectors of Metal. Included by msl.h alone.
 *
 * Vectors are clang's own (swizzles, indices, operators with scalars). What those lack is a constructor: metalc.py turns
 * `float4(` into `msl::make<float4>(`, also for vec<T, N> and for type parameters of templates. */
typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;
typedef _Float16 half;

#ifdef MSL_CHECK
typedef __fp16 bfloat; /* any type that is not half and that clang loads from every address space */
#else
struct bfloat { /* the upper half of a float, rounded to nearest even */
    ushort bits;
    bfloat() = default;
    template <class T, class = std::enable_if_t<std::is_arithmetic_v<T> || std::is_same_v<T, half>>>
    bfloat(T x)
    {
        uint u = __builtin_bit_cast(uint, (float)x);
        bool nan = (u & 0x7fffffff) > 0x7f800000;
        bits = (ushort)(nan ? u >> 16 | 64 : (u + 0x7fff + (u >> 16 & 1)) >> 16);
    }
    operator float() const
    {
        return __builtin_bit_cast(float, (uint)bits << 16);
    }
    bfloat &operator+=(float x)
    {
        return *this = bfloat(float(*this) + x);
    }
    bfloat &operator*=(float x)
    {
        return *this = bfloat(float(*this) * x);
    }
};
#define MSL_OF_BFLOAT(op)                                                                          \
    inline bfloat operator op(bfloat a, bfloat b)                                                  \
    {                                                                                              \
        return bfloat(float(a) op float(b));                                                       \
    }
MSL_OF_BFLOAT(+)
MSL_OF_BFLOAT(-)
MSL_OF_BFLOAT(*)
MSL_OF_BFLOAT(/)
#undef MSL_OF_BFLOAT
#endif

namespace metal
{
template <class T, int N> using vec = T __attribute__((ext_vector_type(N)));
}

/* Packed vectors have the alignment of their elements. */
#define MSL_VECTORS(T)                                                                             \
    typedef metal::vec<T, 2> T##2;                                                                 \
    typedef metal::vec<T, 3> T##3;                                                                 \
    typedef metal::vec<T, 4> T##4;                                                                 \
    typedef T packed_##T##2 __attribute__((ext_vector_type(2), aligned(sizeof(T))));               \
    typedef T packed_##T##4 __attribute__((ext_vector_type(4), aligned(sizeof(T))));               \
    struct packed_##T##3                                                                           \
    {                                                                                              \
        T x, y, z;                                                                                 \
    };
MSL_VECTORS(char)
MSL_VECTORS(uchar)
MSL_VECTORS(short)
MSL_VECTORS(ushort)
MSL_VECTORS(int)
MSL_VECTORS(uint)
MSL_VECTORS(long)
MSL_VECTORS(ulong)
MSL_VECTORS(half)
MSL_VECTORS(float)
#undef MSL_VECTORS

#ifdef MSL_CHECK
typedef metal::vec<bfloat, 2> bfloat2;
typedef metal::vec<bfloat, 4> bfloat4;
typedef bfloat packed_bfloat2 __attribute__((ext_vector_type(2), aligned(2)));
typedef bfloat packed_bfloat4 __attribute__((ext_vector_type(4), aligned(2)));
#else
namespace msl
{
template <int N> struct bfloats { /* indices and conversions, no arithmetic */
    bfloat v[N];
    bfloats() = default;
    bfloats(bfloat x)
    {
        for (int i = 0; i < N; i++)
            v[i] = x;
    }
    bfloat &operator[](int i)
    {
        return v[i];
    }
    bfloat operator[](int i) const
    {
        return v[i];
    }
};
} // namespace msl
struct alignas(4) bfloat2 : msl::bfloats<2> {
    using msl::bfloats<2>::bfloats;
};
struct alignas(8) bfloat4 : msl::bfloats<4> {
    using msl::bfloats<4>::bfloats;
};
struct packed_bfloat2 : msl::bfloats<2> {
    using msl::bfloats<2>::bfloats;
};
struct packed_bfloat4 : msl::bfloats<4> {
    using msl::bfloats<4>::bfloats;
};
#endif

namespace msl
{
/* Element type and count; a scalar is a vector of one. */
template <class T> struct shape {
    typedef T element;
    static constexpr int n = 1;
    static constexpr bool vector = false;
};
template <class T, int N> struct shape<T __attribute__((ext_vector_type(N)))> {
    typedef T element;
    static constexpr int n = N;
    static constexpr bool vector = true;
};
#ifndef MSL_CHECK
#define MSL_SHAPE(T, N)                                                                            \
    template <> struct shape<T> {                                                                  \
        typedef bfloat element;                                                                    \
        static constexpr int n = N;                                                                \
        static constexpr bool vector = true;                                                       \
    };
MSL_SHAPE(bfloat2, 2)
MSL_SHAPE(bfloat4, 4)
MSL_SHAPE(packed_bfloat2, 2)
MSL_SHAPE(packed_bfloat4, 4)
#undef MSL_SHAPE
#endif

template <class V, class A> inline void put(V &v, int &at, A a)
{
    typedef typename shape<V>::element E;
    if constexpr (!shape<A>::vector)
        v[at++] = (E)a;
    else
        for (int i = 0; i < shape<A>::n; i++)
            v[at++] = (E)a[i];
}

/* V(a...), as Metal has it: a scalar for all elements, or as many elements as V has. */
template <class V, class... A> inline V make(A... a)
{
    if constexpr (!shape<V>::vector) {
        return V(a...);
    } else {
        typedef typename shape<V>::element E;
        constexpr int given = (0 + ... + shape<A>::n);
        V v = V();
        int at = 0;
        if constexpr (sizeof...(A) == 1 && given == 1) {
            for (int i = 0; i < shape<V>::n; i++)
                v[i] = ((E)a, ...);
        } else {
            static_assert(given == 0 || given == shape<V>::n, "wrong number of elements");
            (put(v, at, a), ...);
        }
        return v;
    }
}
} // namespace msl

inline half operator""h(long double x)
{
    return (half)(float)x;
}

template <class T, class S> inline T as_type(S s)
{
    static_assert(sizeof(T) == sizeof(S), "as_type of another size");
    return __builtin_bit_cast(T, s);
}
