/* map_cuda.cuh - an element-wise expression: a thread runs all instructions for one element, or four, after the other. The threads of
 * a warp are at the same instruction; the registers of an element lie in the thread's own memory.
 *
 * A result may be an input whose elements are in the same places.
 *
 * In an image that is made for a plan a map is straight code instead (runtime/exec/cuda_text.c), of map_compute with the
 * instruction known: both give the same bits. */
#ifndef WEFT_KERNELS_CUDA_MAP_CUDA_CUH
#define WEFT_KERNELS_CUDA_MAP_CUDA_CUH

#include <math.h>
#include "kernels/cuda/block_cuda.cuh"

static __device__ inline float sigmoid(float x)
{
    float e = expf(-fabsf(x)); /* no overflow, and no loss where the result is near 0 */
    return (x < 0 ? e : 1.0f) / (1.0f + e);
}

static __device__ inline float softplus(float x)
{
    return (x > 0 ? x : 0) + log1pf(expf(-fabsf(x)));
}

static __device__ inline float gelu_erf(float x)
{
    return 0.5f * x * erfcf(-0.70710678f * x);
}

/* (1 + tanh u) / 2 is the sigmoid of 2u. */
static __device__ inline float gelu_tanh(float x)
{
    return x * sigmoid(1.5957691216f * (x + 0.044715f * x * x * x)); /* 2 sqrt(2 / pi) (..) */
}

/* lo, hi: f[0] and f[1] of the instruction. */
static __device__ __forceinline__ float map_compute(kmap_op op, float lo, float hi, float x,
                                                    float y, float z)
{
    switch (op) {
    case MAP_add:
        return x + y;
    case MAP_sub:
        return x - y;
    case MAP_mul:
        return x * y;
    case MAP_div:
        return x / y;
    case MAP_max:
        return x > y || x != x ? x : y;
    case MAP_min:
        return x < y || x != x ? x : y;
    case MAP_select:
        return x > 0 ? y : z;
    case MAP_neg:
        return -x;
    case MAP_silu:
        return x * sigmoid(x);
    case MAP_gelu_erf:
        return gelu_erf(x);
    case MAP_gelu_tanh:
        return gelu_tanh(x);
    case MAP_gelu_quick:
        return x * sigmoid(1.702f * x);
    case MAP_tanh:
        return tanhf(x);
    case MAP_sigmoid:
        return sigmoid(x);
    case MAP_relu:
        return x <= 0 ? 0 : x;
    case MAP_softplus:
        return softplus(x);
    case MAP_exp:
        return expf(x);
    case MAP_sqrt:
        return sqrtf(x);
    case MAP_clamp:
        x = x < lo ? lo : x;
        return x > hi ? hi : x;
    case MAP_number:
        return lo;
    case MAP_load:
    case MAP_store:
    case MAP_COUNT:
        break;
    }
    return 0;
}

/* An instruction that is not known before, for N elements. */
template <int N>
static __device__ ONE_COPY void map_run(const kinstr *c, const float *x, const float *y,
                                        const float *z, float *to)
{
    const float lo = c->f[0], hi = c->f[1];
    switch ((kmap_op)c->op) {
#define MAP(name, ...)                                                                             \
    case MAP_##name:                                                                               \
        UNROLL                                                                                     \
        for (int i = 0; i < N; i++)                                                                \
            to[i] = map_compute(MAP_##name, lo, hi, x[i], y[i], z[i]);                             \
        break;
#include "kernels/map.def"
#undef MAP
    case MAP_COUNT:
        break;
    }
}

/* How far from each other the elements of a row are in an input, where that is one number for all of them; -1: it is not. */
static __device__ int64_t map_step(const kargs *k, int input)
{
    int64_t step = 0, n = 1; /* of the axes seen so far, from the last one on; elements of them */
    for (int axis = k->choice.map.axes; axis > 0; axis--) {
        int64_t dim = k->size.map.dim[axis - 1], stride = k->stride[input][axis];
        if (dim == 1)
            continue;
        if (n > 1 && stride != step * n)
            return -1;
        step = n > 1 ? step : stride;
        n *= dim;
    }
    return step;
}

/* Where element e of a row is in an input. */
static __device__ int64_t map_place(const kargs *k, int input, int64_t e)
{
    int64_t at = 0;
    for (int axis = k->choice.map.axes; axis > 0; axis--) {
        int64_t dim = k->size.map.dim[axis - 1];
        at += e % dim * k->stride[input][axis];
        e /= dim;
    }
    return at;
}

/* Element number `at` of a part. */
struct map_at {
    int64_t row, col;
};

static __device__ inline map_at map_at_of(const kpart &p, int64_t at)
{
    const int64_t width = p.col_end - p.col;
    if (p.row_end - p.row == 1)
        return map_at{p.row, p.col + at};
    if ((at | width) >> 32 == 0) { /* a fraction of what dividing 64 bits takes */
        const uint32_t row = (uint32_t)at / (uint32_t)width;
        return map_at{p.row + row, p.col + ((uint32_t)at - row * (uint32_t)width)};
    }
    return map_at{p.row + at / width, p.col + at % width};
}

static __device__ inline int64_t map_count(const kpart &p)
{
    return (p.row_end - p.row) * (p.col_end - p.col);
}

static __device__ void map_element(const kargs *k, const int64_t *step, int64_t row, int64_t col)
{
    float reg[MAP_REGS_MAX];
    for (const kinstr *c = k->code, *end = c + k->n_code; c < end; c++) {
        int input = c->at[0];
        if (c->op == MAP_load) {
            int64_t at = step[input] >= 0 ? col * step[input] : map_place(k, input, col);
            reg[c->to] = ((const float *)k->in[input])[row * k->stride[input][0] + at];
        } else if (c->op == MAP_store) {
            row_out(k, c->to, row)[col] = reg[c->at[0]];
        } else {
            map_run<1>(c, &reg[c->at[0]], &reg[c->at[1]], &reg[c->at[2]], &reg[c->to]);
        }
    }
}

/* ---- four elements at a time, where they lie side by side ---- */

struct alignas(16) map_four {
    float x[4];
};

/* Has every row of it whole fours, which a card can load at once? An input may be one number for all of a row. */
static __device__ bool map_has_fours(const kargs *k, const kpart &p, const int64_t *step)
{
    bool fours = p.col % 4 == 0 && (p.col_end - p.col) % 4 == 0;
    for (int i = 0; i < K_IN_MAX; i++)
        if (k->in[i] && step[i] != 0)
            fours = fours && step[i] == 1 && k->stride[i][0] % 4 == 0 &&
                    ((uintptr_t)k->in[i] & 15) == 0;
    for (int i = 0; i < K_OUT_MAX; i++)
        fours = fours && k->out_pitch[i] % 16 == 0 && ((uintptr_t)k->out[i] & 15) == 0;
    return fours;
}

static __device__ inline void map_fours(const kargs *k, const int64_t *step, int64_t row, int col)
{
    map_four reg[MAP_REGS_MAX];
    for (const kinstr *c = k->code, *end = c + k->n_code; c < end; c++) {
        const int input = c->at[0];
        if (c->op == MAP_load) {
            const float *from = (const float *)k->in[input] + row * k->stride[input][0];
            if (step[input])
                reg[c->to] = *(const map_four *)(from + col);
            else
                reg[c->to] = map_four{{*from, *from, *from, *from}};
        } else if (c->op == MAP_store) {
            *(map_four *)(row_out(k, c->to, row) + col) = reg[input];
        } else {
            map_run<4>(c, reg[input].x, reg[c->at[1]].x, reg[c->at[2]].x, reg[c->to].x);
        }
    }
}

/* ---- two inputs that become one ----
 *
 * Most maps are a sum of two values, or a product of which one factor is a gate: what is done is known when they are compiled, and
 * a thread has several loads under way. */

/* out = two(one(a), b); one: MAP_load for a itself. */
struct map_pair {
    int a, b; /* inputs; a < 0: it is no such map */
    kmap_op one, two;
};

static __device__ inline map_pair map_pair_of(const kargs *k, const int64_t *step)
{
    const kinstr *c = k->code;
    map_pair m = {-1, 0, MAP_load, MAP_load};
    const int gate = k->n_code == 5 ? 1 : 0; /* after the first load, or after both */
    if (k->n_code != 4 + gate || c[0].op != MAP_load)
        return m;
    const int second = gate && c[1].op != MAP_load ? 2 : 1, unary = second == 2 ? 1 : 2;
    const kinstr &two = c[2 + gate], &store = c[3 + gate];
    const int a = gate ? c[unary].to : c[0].to;
    if (c[second].op != MAP_load || (gate && c[unary].at[0] != c[0].to) || two.at[0] != a ||
        two.at[1] != c[second].to || c[second].to == a || store.op != MAP_store ||
        store.at[0] != two.to || store.to != 0 || (gate && unary == 2 && c[0].to == c[1].to) ||
        step[c[0].at[0]] != 1 || step[c[second].at[0]] != 1)
        return m;
    m = map_pair{c[0].at[0], c[second].at[0], gate ? (kmap_op)c[unary].op : MAP_load,
                 (kmap_op)two.op};
    return m;
}

template <kmap_op ONE, kmap_op TWO>
static __device__ void map_two(const kargs *k, const map_pair &m, const kpart &p)
{
    enum { AT_ONCE = 2 };
    const int step = block_threads() * 4;
    for (int64_t row = p.row; row < p.row_end; row++) {
        const float *a = (const float *)k->in[m.a] + row * k->stride[m.a][0];
        const float *b = (const float *)k->in[m.b] + row * k->stride[m.b][0];
        float *to = row_out(k, 0, row);
        for (int col = (int)(p.col + threadIdx.x * 4); col < p.col_end; col += AT_ONCE * step) {
            map_four x[AT_ONCE] = {}, y[AT_ONCE] = {};
            UNROLL
            for (int i = 0; i < AT_ONCE; i++)
                if (col + i * step < p.col_end) {
                    x[i] = *(const map_four *)(a + col + i * step);
                    y[i] = *(const map_four *)(b + col + i * step);
                }
            UNROLL
            for (int i = 0; i < AT_ONCE; i++) {
                if (col + i * step >= p.col_end)
                    continue;
                UNROLL
                for (int e = 0; e < 4; e++) {
                    const float one =
                        ONE == MAP_load ? x[i].x[e] : map_compute(ONE, 0, 0, x[i].x[e], 0, 0);
                    x[i].x[e] = map_compute(TWO, 0, 0, one, y[i].x[e], 0);
                }
                *(map_four *)(to + col + i * step) = x[i];
            }
        }
    }
}

/* False: it is none of these. */
static __device__ inline bool map_pairs(const kargs *k, const int64_t *step, const kpart &p)
{
    const map_pair m = map_pair_of(k, step);
    if (m.a < 0)
        return false;
    if (m.one == MAP_load && m.two == MAP_add)
        map_two<MAP_load, MAP_add>(k, m, p);
    else if (m.one == MAP_load && m.two == MAP_mul)
        map_two<MAP_load, MAP_mul>(k, m, p);
    else if (m.one == MAP_silu && m.two == MAP_mul)
        map_two<MAP_silu, MAP_mul>(k, m, p);
    else if (m.one == MAP_gelu_tanh && m.two == MAP_mul)
        map_two<MAP_gelu_tanh, MAP_mul>(k, m, p);
    else
        return false;
    return true;
}

static __device__ ONE_COPY void k_map_cuda(const kargs *k, const kthread *, int64_t begin,
                                           int64_t end)
{
    kpart p = kpart_of(k, k->size.map.elems, begin, end);
    int64_t step[K_IN_MAX];
    for (int i = 0; i < K_IN_MAX; i++)
        step[i] = k->in[i] ? map_step(k, i) : 0;
    if (map_has_fours(k, p, step)) {
        if (map_pairs(k, step, p))
            return;
        for (int64_t row = p.row; row < p.row_end; row++)
            for (int col = (int)(p.col + threadIdx.x * 4); col < p.col_end;
                 col += block_threads() * 4)
                map_fours(k, step, row, col);
        return;
    }
    for (int64_t at = threadIdx.x; at < map_count(p); at += block_threads()) {
        const map_at e = map_at_of(p, at);
        map_element(k, step, e.row, e.col);
    }
}

#endif
