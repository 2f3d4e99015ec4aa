/* msl_atomic.h - atomics, relaxed alone, as Metal has them. Included by msl.h alone.
 *
 * Lanes change places only where they wait, so plain code is atomic; race mode is told. In the check pass they are enums: types
 * of their own that clang takes in every address space. */
namespace metal
{
enum memory_order { memory_order_relaxed };

#ifdef MSL_CHECK
enum class atomic_uint : uint {};
enum class atomic_int : int {};
enum class atomic_ulong : ulong {};
enum class atomic_float : uint {};
} // namespace metal
namespace msl
{
template <class A> struct atomic_of;
template <> struct atomic_of<metal::atomic_uint> {
    typedef uint type;
};
template <> struct atomic_of<metal::atomic_int> {
    typedef int type;
};
template <> struct atomic_of<metal::atomic_ulong> {
    typedef ulong type;
};
template <> struct atomic_of<metal::atomic_float> {
    typedef float type;
};
template <class T> struct of_atomic;
template <> struct of_atomic<uint> {
    typedef metal::atomic_uint type;
};
template <> struct of_atomic<int> {
    typedef metal::atomic_int type;
};
template <> struct of_atomic<ulong> {
    typedef metal::atomic_ulong type;
};
template <> struct of_atomic<float> {
    typedef metal::atomic_float type;
};
template <class P> auto atomic_value(P p)
{
    auto a = *p;
    static_assert(std::is_enum_v<decltype(a)>, "not an atomic");
    return typename atomic_of<decltype(a)>::type();
}
} // namespace msl
namespace metal
{
template <class T> using atomic = typename msl::of_atomic<T>::type;
#define MSL_ATOMIC(name, expression)                                                               \
    template <class P, class V> auto name(P p, V y, memory_order)                                  \
    {                                                                                              \
        auto x = msl::atomic_value(p);                                                             \
        x = (decltype(x))(expression);                                                             \
        return x;                                                                                  \
    }
template <class P> auto atomic_load_explicit(P p, memory_order)
{
    return msl::atomic_value(p);
}
#else
template <class T> struct atomic {
    T value;
};
typedef atomic<uint> atomic_uint;
typedef atomic<int> atomic_int;
typedef atomic<ulong> atomic_ulong;
typedef atomic<float> atomic_float;
#define MSL_ATOMIC(name, expression)                                                               \
    template <class P, class V> MSL_OWN auto name(P p, V y, memory_order)                          \
    {                                                                                              \
        auto x = p->value;                                                                         \
        shader_atomic((void *)&p->value, sizeof x, true);                                          \
        p->value = (decltype(x))(expression);                                                      \
        return x;                                                                                  \
    }
template <class P> MSL_OWN auto atomic_load_explicit(P p, memory_order)
{
    shader_atomic((void *)&p->value, sizeof p->value, false);
    return p->value;
}
#endif
MSL_ATOMIC(atomic_fetch_add_explicit, x + y)
MSL_ATOMIC(atomic_fetch_sub_explicit, x - y)
MSL_ATOMIC(atomic_fetch_max_explicit, x > (decltype(x))y ? x : (decltype(x))y)
MSL_ATOMIC(atomic_fetch_min_explicit, x < (decltype(x))y ? x : (decltype(x))y)
MSL_ATOMIC(atomic_fetch_or_explicit, x | y)
MSL_ATOMIC(atomic_fetch_and_explicit, x &y)
MSL_ATOMIC(atomic_exchange_explicit, y)
MSL_ATOMIC(atomic_store_explicit, y)
#undef MSL_ATOMIC
} // namespace metal
