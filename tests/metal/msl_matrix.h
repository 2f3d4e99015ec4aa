/* msl_matrix.h - matrices of 8 x 8 that the lanes of a simdgroup hold together. Included by msl.h alone.
 *
 * A lane has two neighbours of one row, in the places that Apple's hardware is known to use (kernels of MLX and llama.cpp
 * depend on them through thread_elements). Products are summed in float, k upwards, whatever the type. */
namespace msl
{
template <class T> struct pair {
    typedef metal::vec<T, 2> type;
};
#ifndef MSL_CHECK
template <> struct pair<bfloat> {
    typedef bfloat2 type;
};
#endif
inline uint matrix_row(uint lane)
{
    return (lane / 4 & 4) + lane / 2 % 4;
}
inline uint matrix_col(uint lane)
{
    return (lane / 4 & 2) * 2 + lane % 2 * 2;
}
inline uint matrix_lane(uint row, uint col)
{
    return ((row & 4) | (col & 4) >> 1) * 4 + (row & 3) * 2 + ((col & 2) >> 1);
}

struct product {
    float a[2], b[2], sum[2];
};
MSL_OWN inline void join_product(void **own, int)
{
    float a[8][8], b[8][8];
    for (uint i = 0; i < WIDTH; i++) {
        if (!own[i])
            return; /* told by the lanes that are here */
        const product *p = (product *)own[i];
        for (uint k = 0; k < 2; k++) {
            a[matrix_row(i)][matrix_col(i) + k] = p->a[k];
            b[matrix_row(i)][matrix_col(i) + k] = p->b[k];
        }
    }
    for (uint i = 0; i < WIDTH; i++) {
        product *p = (product *)own[i];
        for (uint j = 0; j < 2; j++)
            for (uint k = 0; k < 8; k++)
                p->sum[j] += a[matrix_row(i)][k] * b[k][matrix_col(i) + j];
    }
}
template <class P> struct pointee;
template <class T> struct pointee<T *> {
    typedef std::remove_cv_t<T> type;
};
} // namespace msl

namespace metal
{
template <class T, int Cols, int Rows> struct simdgroup_matrix {
    static_assert(Cols == 8 && Rows == 8, "matrices are 8 x 8");
    static_assert(std::is_same_v<T, half> || std::is_same_v<T, float> || std::is_same_v<T, bfloat>,
                  "matrices are of half, bfloat or float");
    typedef typename msl::pair<T>::type elements;
    elements own;
    simdgroup_matrix() = default;
    explicit simdgroup_matrix(T v)
    {
        own[0] = own[1] = v;
    }
    elements &thread_elements()
    {
        return own;
    }
};
typedef simdgroup_matrix<half, 8, 8> simdgroup_half8x8;
typedef simdgroup_matrix<bfloat, 8, 8> simdgroup_bfloat8x8;
typedef simdgroup_matrix<float, 8, 8> simdgroup_float8x8;

template <class T, int Cols, int Rows>
inline simdgroup_matrix<T, Cols, Rows> make_filled_simdgroup_matrix(T v)
{
    return simdgroup_matrix<T, Cols, Rows>(v);
}

/* Element (row, col) is src[(origin.y + row) * stride + origin.x + col]; transposed, row and col change places. */
template <class T, class P>
inline void simdgroup_load(simdgroup_matrix<T, 8, 8> &d, P src, ulong stride = 8,
                           ulong2 origin = (ulong2)0ul, bool transpose = false)
{
    uint row = msl::matrix_row(shader_lane()), col = msl::matrix_col(shader_lane());
    for (uint k = 0; k < 2; k++)
        d.own[k] = (T)(transpose ? src[(origin.y + col + k) * stride + origin.x + row]
                                 : src[(origin.y + row) * stride + origin.x + col + k]);
}
template <class T, class P>
inline void simdgroup_store(simdgroup_matrix<T, 8, 8> s, P dst, ulong stride = 8,
                            ulong2 origin = (ulong2)0ul, bool transpose = false)
{
    uint row = msl::matrix_row(shader_lane()), col = msl::matrix_col(shader_lane());
    for (uint k = 0; k < 2; k++)
        if (transpose)
            dst[(origin.y + col + k) * stride + origin.x + row] = s.own[k];
        else
            dst[(origin.y + row) * stride + origin.x + col + k] = s.own[k];
}

template <class D, class A, class B, class C>
MSL_MEET void
simdgroup_multiply_accumulate(simdgroup_matrix<D, 8, 8> &d, simdgroup_matrix<A, 8, 8> a,
                              simdgroup_matrix<B, 8, 8> b, simdgroup_matrix<C, 8, 8> c, MSL_LINE)
{
    msl::product p = {{(float)a.own[0], (float)a.own[1]},
                      {(float)b.own[0], (float)b.own[1]},
                      {(float)c.own[0], (float)c.own[1]}};
    shader_meet({"simdgroup_multiply_accumulate", file, line}, &p, msl::join_product);
    d.own[0] = (D)p.sum[0];
    d.own[1] = (D)p.sum[1];
}
template <class D, class A, class B>
inline void simdgroup_multiply(simdgroup_matrix<D, 8, 8> &d, simdgroup_matrix<A, 8, 8> a,
                               simdgroup_matrix<B, 8, 8> b, MSL_LINE)
{
    simdgroup_multiply_accumulate(d, a, b, simdgroup_matrix<D, 8, 8>((D)0), file, line);
}
} // namespace metal
