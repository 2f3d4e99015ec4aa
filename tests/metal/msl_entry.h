/* msl_entry.h - how a kernel gets its arguments: types from its signature, kinds from metalc.py's table. Included by msl.h alone. */
#ifdef MSL_CHECK
namespace msl
{
struct constant_entry {
    bool defined;
    template <class T> constexpr constant_entry(const char *, int, bool, T *) : defined(false)
    {
    }
};
} // namespace msl
#else
extern "C" {
extern __attribute__((weak, visibility("hidden"))) char __start_msl_shared[], __stop_msl_shared[];
#ifdef MSL_RACE
#define MSL_IS_RACE true
#else
#define MSL_IS_RACE false
#endif
__attribute__((visibility("default")))
shader_library shader_self = {nullptr, nullptr, __start_msl_shared, __stop_msl_shared, MSL_IS_RACE};
}
namespace msl
{
template <class A> MSL_OWN inline A argument(const shader_param &p)
{
    if constexpr (std::is_pointer_v<A>) {
        return (A)(p.kind == PARAM_SHARED ? shader_shared(p.index) : shader_buffer(p.index, 1));
    } else if constexpr (std::is_reference_v<A>) {
        typedef std::remove_reference_t<A> T;
        return *(T *)shader_buffer(p.index, sizeof(T));
    } else {
        const uint32_t *v = shader_position(p.kind);
        A a;
        if constexpr (shape<A>::vector)
            for (int i = 0; i < shape<A>::n; i++)
                a[i] = (typename shape<A>::element)v[i];
        else
            a = (A)v[0];
        return a;
    }
}

template <auto F> struct entry;
template <class... A, void (*F)(A...)> struct entry<F> {
    enum { params = sizeof...(A) };
    template <size_t... I> MSL_OWN static void go(const shader_param *p, std::index_sequence<I...>)
    {
        F(argument<A>(p[I])...);
    }
    MSL_OWN static void call(const shader_param *p)
    {
        go(p, std::index_sequence_for<A...>{});
    }
};

struct kernel_entry {
    shader_kernel k;
    kernel_entry(const char *name, void (*call)(const shader_param *), const shader_param *p, int n,
                 int threads_max)
    {
        k = {name, call, p, n, threads_max, shader_self.kernels};
        shader_self.kernels = &k;
    }
};

struct constant_entry {
    shader_constant c;
    bool defined = false;
    template <class T> constant_entry(const char *name, int index, bool optional, T *value)
    {
        c = {name, index, sizeof(T), value, &defined, optional, shader_self.constants};
        shader_self.constants = &c;
    }
};
} // namespace msl
#endif
#define is_function_constant_defined(x) (msl_constant_##x.defined)
