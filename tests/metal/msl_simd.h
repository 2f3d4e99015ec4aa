/* msl_simd.h - barriers, and functions in which the lanes of a simdgroup meet. Included by msl.h alone.
 *
 * Each lane brings its value; the last one there works out what all get (shader_meet). Sums are made in a fixed order: pairs,
 * pairs of pairs, and so on. Metal lets lanes that are elsewhere be absent; here all that have not returned must come. */
namespace metal
{
enum class mem_flags : int {
    mem_none = 0,
    mem_device = SHADER_DEVICE,
    mem_threadgroup = SHADER_SHARED,
    mem_texture = 4
};
constexpr mem_flags operator|(mem_flags a, mem_flags b)
{
    return (mem_flags)((int)a | (int)b);
}

MSL_MEET inline void threadgroup_barrier(mem_flags f, MSL_LINE)
{
    shader_group_barrier((int)f, {"threadgroup_barrier", file, line});
}
MSL_MEET inline void simdgroup_barrier(mem_flags f, MSL_LINE)
{
    shader_simd_barrier((int)f, {"simdgroup_barrier", file, line});
}
} // namespace metal

namespace msl
{
enum { WIDTH = FIBRE_WIDTH };

template <class T> struct brought {
    T value, result;
    uint source; /* a lane */
};

template <class T, class Op> MSL_OWN void join_reduce(void **own, int)
{
    T t[WIDTH];
    bool here[WIDTH];
    for (int i = 0; i < WIDTH; i++) {
        here[i] = own[i] != nullptr;
        if (here[i])
            t[i] = ((brought<T> *)own[i])->value;
    }
    for (int w = 1; w < WIDTH; w *= 2)
        for (int i = 0; i < WIDTH; i += 2 * w) {
            if (here[i] && here[i + w])
                t[i] = Op::of(t[i], t[i + w]);
            else if (here[i + w])
                t[i] = t[i + w];
            here[i] |= here[i + w];
        }
    for (int i = 0; i < WIDTH; i++)
        if (own[i])
            ((brought<T> *)own[i])->result = t[0];
}

/* Inclusive: with the lane's own value. */
template <class T, class Op, bool Inclusive> MSL_OWN void join_prefix(void **own, int)
{
    T sum = Op::none();
    for (int i = 0; i < WIDTH; i++) {
        brought<T> *b = (brought<T> *)own[i];
        if (!b)
            continue;
        T next = Op::of(sum, b->value);
        b->result = Inclusive ? next : sum;
        sum = next;
    }
}

template <class T> MSL_OWN void join_shuffle(void **own, int)
{
    for (int i = 0; i < WIDTH; i++) {
        brought<T> *b = (brought<T> *)own[i];
        if (!b)
            continue;
        brought<T> *from = b->source < WIDTH ? (brought<T> *)own[b->source] : nullptr;
        if (from)
            b->result = from->value;
        else
            b->source = WIDTH; /* nobody is there */
    }
}

template <class T> MSL_MEET inline T meet(T v, fibre_join *join, const char *what, MSL_LINE)
{
    brought<T> b = {v, v, 0};
    shader_meet({what, file, line}, &b, join);
    return b.result;
}

template <class T> MSL_MEET inline T shuffle(T v, uint from, const char *what, MSL_LINE)
{
    brought<T> b = {v, v, from};
    shader_meet({what, file, line}, &b, join_shuffle<T>);
    if (b.source >= WIDTH)
        shader_wrong({what, file, line}, "reads a lane that has ended or does not exist");
    return b.result;
}

#define MSL_OP(name, expression, nothing)                                                          \
    struct name {                                                                                  \
        template <class T> static T of(T a, T b)                                                   \
        {                                                                                          \
            return (T)(expression);                                                                \
        }                                                                                          \
        static int none()                                                                          \
        {                                                                                          \
            return nothing;                                                                        \
        }                                                                                          \
    };
MSL_OP(op_sum, a + b, 0)
MSL_OP(op_product, a *b, 1)
MSL_OP(op_max, metal::max(a, b), 0)
MSL_OP(op_min, metal::min(a, b), 0)
MSL_OP(op_or, a | b, 0)
MSL_OP(op_and, a &b, 0)
MSL_OP(op_xor, a ^ b, 0)
#undef MSL_OP
} // namespace msl

namespace metal
{
#define MSL_REDUCE(name)                                                                           \
    template <class T> inline T simd_##name(T v, MSL_LINE)                                         \
    {                                                                                              \
        return msl::meet(v, msl::join_reduce<T, msl::op_##name>, "simd_" #name, file, line);       \
    }
MSL_REDUCE(sum)
MSL_REDUCE(product)
MSL_REDUCE(max)
MSL_REDUCE(min)
MSL_REDUCE(or)
MSL_REDUCE(and)
MSL_REDUCE(xor)
#undef MSL_REDUCE
#define MSL_PREFIX(kind, name, inclusive)                                                          \
    template <class T> inline T simd_prefix_##kind##_##name(T v, MSL_LINE)                         \
    {                                                                                              \
        return msl::meet(v, msl::join_prefix<T, msl::op_##name, inclusive>,                        \
                         "simd_prefix_" #kind "_" #name, file, line);                              \
    }
MSL_PREFIX(inclusive, sum, true)
MSL_PREFIX(exclusive, sum, false)
MSL_PREFIX(inclusive, product, true)
MSL_PREFIX(exclusive, product, false)
#undef MSL_PREFIX

template <class T> inline T simd_shuffle(T v, ushort lane, MSL_LINE)
{
    return msl::shuffle(v, lane, "simd_shuffle", file, line);
}
template <class T> inline T simd_shuffle_xor(T v, ushort mask, MSL_LINE)
{
    return msl::shuffle(v, shader_lane() ^ mask, "simd_shuffle_xor", file, line);
}
/* Lanes whose source is outside keep an undefined value on a GPU: NaN or all bits here, to be seen. */
template <class T> inline T simd_shuffle_down(T v, ushort by, MSL_LINE)
{
    uint from = shader_lane() + by;
    T got = msl::shuffle(v, from < 32 ? from : shader_lane(), "simd_shuffle_down", file, line);
    if (from >= 32)
        __builtin_memset(&got, 0xff, sizeof got);
    return got;
}
template <class T> inline T simd_shuffle_up(T v, ushort by, MSL_LINE)
{
    uint lane = shader_lane();
    T got = msl::shuffle(v, lane >= by ? lane - by : lane, "simd_shuffle_up", file, line);
    if (lane < by)
        __builtin_memset(&got, 0xff, sizeof got);
    return got;
}
template <class T> inline T simd_shuffle_rotate_down(T v, ushort by, MSL_LINE)
{
    return msl::shuffle(v, (shader_lane() + by) % 32, "simd_shuffle_rotate_down", file, line);
}
template <class T> inline T simd_shuffle_rotate_up(T v, ushort by, MSL_LINE)
{
    return msl::shuffle(v, (shader_lane() + 32 - by % 32) % 32, "simd_shuffle_rotate_up", file,
                        line);
}
template <class T> inline T simd_broadcast(T v, ushort lane, MSL_LINE)
{
    return msl::shuffle(v, lane, "simd_broadcast", file, line);
}
template <class T> inline T simd_broadcast_first(T v, MSL_LINE)
{
    return msl::shuffle(v, 0, "simd_broadcast_first", file, line);
}
inline bool simd_any(bool b, MSL_LINE)
{
    return msl::meet((uint)b, msl::join_reduce<uint, msl::op_or>, "simd_any", file, line) != 0;
}
inline bool simd_all(bool b, MSL_LINE)
{
    return msl::meet((uint)b, msl::join_reduce<uint, msl::op_and>, "simd_all", file, line) != 0;
}

struct simd_vote {
    typedef ulong vote_t;
    vote_t bits;
    explicit simd_vote(vote_t b) : bits(b)
    {
    }
    operator vote_t() const
    {
        return bits;
    }
    bool all() const
    {
        return bits == 0xffffffff;
    }
    bool any() const
    {
        return bits != 0;
    }
};
inline simd_vote simd_ballot(bool b, MSL_LINE)
{
    return simd_vote(msl::meet(b ? 1u << shader_lane() : 0u, msl::join_reduce<uint, msl::op_or>,
                               "simd_ballot", file, line));
}
inline bool simd_is_first()
{
    return shader_lane() == 0;
}
} // namespace metal
