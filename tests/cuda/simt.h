/* simt.h - the words of CUDA for a C++ compiler, so that kernels/cuda is compiled and run where there is no card.
 *
 * A block is a group of fibres (tests/base/fibres.h), a CUDA thread one of them. What is not here does not compile: add it
 * with CUDA's meaning. Differences that tests have to know:
 * - A thread runs alone until it waits; atomics are plain. Code that lacks a barrier gives other results in another order
 *   of threads (simt_order).
 * - What a thread copies by cp.async is there when it has waited for it, and not before (simt_copies.h).
 * - Static __shared__ memory is a static variable, filled with 0xff before a launch and kept apart for each block that has
 *   begun; GCC leaves out those of templates, which blocks then share.
 * - Dynamic shared memory is simt_dynamic(), where CUDA has `extern __shared__`.
 * - A collective of a warp is for all lanes of its mask at one line of code, else an error.
 * - Products and sums are not contracted, and functions such as __expf are libm's. */
#ifndef WEFT_TESTS_CUDA_SIMT_H
#define WEFT_TESTS_CUDA_SIMT_H

#include <math.h>
#include <stdint.h>
#include <string.h>
#include <time.h>
#include "tests/base/fibres.h"
#include "tests/cuda/simt_copies.h"

#define __device__
#define __host__
#define __global__
#define __constant__ static
#define __grid_constant__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))
#define __shared__ static __attribute__((section("simt_shared")))

/* ---- where a thread is ---- */

struct uint3 {
    unsigned x, y, z;
};
typedef uint3 dim3;
static inline uint3 simt_thread(void)
{
    return {(unsigned)fibre_now.lane, 0, 0};
}
static inline uint3 simt_block(void)
{
    return {(unsigned)fibre_now.group, 0, 0};
}
static inline uint3 simt_block_dim(void)
{
    return {(unsigned)fibre_now.lanes, 1, 1};
}
static inline uint3 simt_grid_dim(void)
{
    return {(unsigned)fibre_now.groups, 1, 1};
}
#define threadIdx simt_thread()
#define blockIdx simt_block()
#define blockDim simt_block_dim()
#define gridDim simt_grid_dim()
#define warpSize 32

/* The block's dynamic shared memory, and how many of its threads kernels are called by (simt_run.h). */
extern "C" char *simt_dynamic(void);
extern "C" int simt_computing(void);
extern "C" uint32_t simt_host_word(const uint32_t *p);

/* ---- waiting ---- */

#define SIMT_AT(word) (fibre_place{word, __FILE__, __LINE__})
#define __syncthreads() fibre_sync(SIMT_AT("__syncthreads"), NULL, NULL)
#define __barrier_sync_count(id, n) fibre_sync_some(SIMT_AT("__barrier_sync_count"), (int)(n))
#define __syncthreads_or(p) simt_vote(SIMT_AT("__syncthreads_or"), (p), simt_join_or)
#define __syncthreads_and(p) simt_vote(SIMT_AT("__syncthreads_and"), (p), simt_join_and)
#define __syncthreads_count(p) simt_vote(SIMT_AT("__syncthreads_count"), (p), simt_join_count)
#define __nanosleep(ns) fibre_pause(SIMT_AT("__nanosleep"))
#define __threadfence() ((void)0)
#define __threadfence_block() ((void)0)
#define __threadfence_system() ((void)0)

struct simt_voter {
    int mine, result;
};

static inline int simt_count(void **own, int n)
{
    int sum = 0;
    for (int i = 0; i < n; i++)
        sum += own[i] && ((simt_voter *)own[i])->mine != 0;
    return sum;
}
static inline void simt_tell(void **own, int n, int result)
{
    for (int i = 0; i < n; i++)
        if (own[i])
            ((simt_voter *)own[i])->result = result;
}
static inline void simt_join_count(void **own, int n)
{
    simt_tell(own, n, simt_count(own, n));
}
static inline void simt_join_or(void **own, int n)
{
    simt_tell(own, n, simt_count(own, n) > 0);
}
static inline void simt_join_and(void **own, int n)
{
    simt_tell(own, n, simt_count(own, n) == n);
}
static inline int simt_vote(fibre_place at, int mine, fibre_join *join)
{
    simt_voter v = {mine, 0};
    fibre_sync(at, &v, join);
    return v.result;
}

/* ---- lanes of a warp ---- */

#define __syncwarp(...) simt_syncwarp(SIMT_AT("__syncwarp"), ##__VA_ARGS__)
#define __shfl_sync(mask, ...) simt_shuffle_at(SIMT_AT("__shfl_sync"), mask, __VA_ARGS__)
#define __shfl_up_sync(mask, ...) simt_shuffle_up(SIMT_AT("__shfl_up_sync"), mask, __VA_ARGS__)
#define __shfl_down_sync(mask, ...)                                                                \
    simt_shuffle_down(SIMT_AT("__shfl_down_sync"), mask, __VA_ARGS__)
#define __shfl_xor_sync(mask, ...) simt_shuffle_xor(SIMT_AT("__shfl_xor_sync"), mask, __VA_ARGS__)
#define __ballot_sync(mask, p) simt_ballot(SIMT_AT("__ballot_sync"), mask, (p) != 0)
#define __any_sync(mask, p) (simt_ballot(SIMT_AT("__any_sync"), mask, (p) != 0) != 0)
#define __all_sync(mask, p) simt_all(SIMT_AT("__all_sync"), mask, (p) != 0)
#define __reduce_add_sync(mask, v) simt_reduce<simt_add>(SIMT_AT("__reduce_add_sync"), mask, v)
#define __reduce_min_sync(mask, v) simt_reduce<simt_least>(SIMT_AT("__reduce_min_sync"), mask, v)
#define __reduce_max_sync(mask, v) simt_reduce<simt_most>(SIMT_AT("__reduce_max_sync"), mask, v)
#define __reduce_or_sync(mask, v) simt_reduce<simt_or>(SIMT_AT("__reduce_or_sync"), mask, v)
#define __reduce_and_sync(mask, v) simt_reduce<simt_and>(SIMT_AT("__reduce_and_sync"), mask, v)

static inline void simt_syncwarp(fibre_place at, unsigned mask = 0xffffffffu)
{
    fibre_meet(at, mask, NULL, NULL);
}

/* What a lane brings to a shuffle, whose value it wants, and that. */
template <typename T> struct simt_shuffler {
    T mine, result;
    int from;
};
template <typename T> static void simt_join_shuffle(void **own, int n)
{
    for (int i = 0; i < n; i++) {
        simt_shuffler<T> *s = (simt_shuffler<T> *)own[i];
        if (!s)
            continue;
        simt_shuffler<T> *from = (simt_shuffler<T> *)own[s->from];
        if (from)
            s->result = from->mine;
        else /* undefined in CUDA */
            memset((void *)&s->result, 0xff, sizeof s->result);
    }
}
template <typename T> static T simt_shuffle(fibre_place at, unsigned mask, T v, int from)
{
    static_assert(sizeof(T) == 4 || sizeof(T) == 8 || sizeof(T) == 2, "shuffles take numbers");
    simt_shuffler<T> s = {v, v, from};
    fibre_meet(at, mask, &s, simt_join_shuffle<T>);
    return s.result;
}
static inline int simt_lane(void)
{
    return fibre_now.lane % FIBRE_WIDTH;
}
template <typename T>
static T simt_shuffle_at(fibre_place at, unsigned mask, T v, int from, int width = 32)
{
    return simt_shuffle(at, mask, v, (simt_lane() & -width) | (from & (width - 1)));
}
template <typename T>
static T simt_shuffle_up(fibre_place at, unsigned mask, T v, unsigned by, int width = 32)
{
    int from = simt_lane() - (int)by;
    return simt_shuffle(at, mask, v, from < (simt_lane() & -width) ? simt_lane() : from);
}
template <typename T>
static T simt_shuffle_down(fibre_place at, unsigned mask, T v, unsigned by, int width = 32)
{
    int from = simt_lane() + (int)by, end = (simt_lane() & -width) + width;
    return simt_shuffle(at, mask, v, from >= end ? simt_lane() : from);
}
template <typename T>
static T simt_shuffle_xor(fibre_place at, unsigned mask, T v, int by, int width = 32)
{
    int from = simt_lane() ^ by, end = (simt_lane() & -width) + width;
    return simt_shuffle(at, mask, v, from >= end ? simt_lane() : from);
}

static inline void simt_join_ballot(void **own, int n)
{
    int bits = 0;
    for (int i = 0; i < n; i++)
        bits |= (int)((unsigned)(own[i] && ((simt_voter *)own[i])->mine) << i);
    simt_tell(own, n, bits);
}
static inline unsigned simt_ballot(fibre_place at, unsigned mask, bool p)
{
    simt_voter v = {p, 0};
    fibre_meet(at, mask, &v, simt_join_ballot);
    return (unsigned)v.result;
}
static inline bool simt_all(fibre_place at, unsigned mask, bool p)
{
    return simt_ballot(at, mask, p) == mask;
}

struct simt_add {
    template <typename T> static T of(T a, T b)
    {
        return (T)(a + b);
    }
};
struct simt_least {
    template <typename T> static T of(T a, T b)
    {
        return b < a ? b : a;
    }
};
struct simt_most {
    template <typename T> static T of(T a, T b)
    {
        return b > a ? b : a;
    }
};
struct simt_or {
    template <typename T> static T of(T a, T b)
    {
        return a | b;
    }
};
struct simt_and {
    template <typename T> static T of(T a, T b)
    {
        return a & b;
    }
};
template <typename OP, typename T> static void simt_join_reduce(void **own, int n)
{
    T *sum = NULL;
    for (int i = 0; i < n; i++)
        if (own[i] && !sum)
            sum = (T *)own[i];
        else if (own[i])
            *sum = OP::of(*sum, *(T *)own[i]);
    for (int i = 0; i < n; i++)
        if (own[i])
            *(T *)own[i] = *sum;
}
template <typename OP, typename T> static T simt_reduce(fibre_place at, unsigned mask, T v)
{
    static_assert(sizeof(T) == 4 && (T)1.5 == (T)1, "__reduce_ takes whole numbers of 32 bits");
    fibre_meet(at, mask, &v, simt_join_reduce<OP, T>);
    return v;
}

/* ---- matrices of a warp (sm_80) ----
 *
 * As PTX has them: ldmatrix .m8n8.x4.b16 and mma .m16n8k16 with f32 sums; `number` reads what 16 bits stand for,
 * from_f16 or from_bf16. */

struct simt_matrix {
    const char *line;
    uint32_t *to;
    bool turned;
};
static inline uint16_t simt_element(void **own, int matrix, int line, int i)
{
    uint16_t h;
    memcpy(&h, ((simt_matrix *)own[matrix * 8 + line])->line + 2 * i, sizeof h);
    return h;
}
static inline void simt_join_ldmatrix(void **own, int n)
{
    for (int lane = 0; lane < n; lane++)
        for (int m = 0; m < 4; m++) {
            simt_matrix *to = (simt_matrix *)own[lane];
            int a = lane / 4, b = lane % 4 * 2;
            uint16_t low = to->turned ? simt_element(own, m, b, a) : simt_element(own, m, a, b);
            uint16_t high =
                to->turned ? simt_element(own, m, b + 1, a) : simt_element(own, m, a, b + 1);
            to->to[m] = (uint32_t)low | (uint32_t)high << 16;
        }
}
static inline void simt_ldmatrix(uint32_t *to, const char *line, bool turned)
{
    simt_matrix m = {line, to, turned};
    if ((uintptr_t)line % 16 != 0)
        fibre_fail(SIMT_AT("ldmatrix"), "has an address that is no multiple of 16");
    fibre_meet(SIMT_AT("ldmatrix"), 0xffffffffu, &m, simt_join_ldmatrix);
}

/* Four numbers at a time, whatever the compiler is asked to optimise. */
typedef float simt_four __attribute__((vector_size(16)));
typedef int32_t simt_four_int __attribute__((vector_size(16)));

struct simt_product {
    float *sum;
    const uint32_t *a, *b;
    bool half; /* of f16, else bf16 */
};
/* What 16 bits stand for: as from_bf16 and from_f16 have it. */
static inline simt_four simt_bfloats(simt_four_int h)
{
    return (simt_four)(h << 16);
}
static inline simt_four simt_halves(simt_four_int h)
{
    const int32_t up = 112 << 23, exponents = 31 << 23;
    const simt_four_int bits = (h & 0x7fff) << 13, e = bits & exponents;
    const simt_four_int tiny =
        bits + (up + (1 << 23)); /* e == 0: one too much, which has no fraction */
    const simt_four rest = (simt_four)tiny - __builtin_bit_cast(float, up + (1 << 23));
    const simt_four_int usual = bits + up + ((e == exponents) & up), none = e == 0;
    return (simt_four)((none & (simt_four_int)rest) | (~none & usual) | (h & 0x8000) << 16);
}
/* n numbers, a multiple of four. */
static inline void simt_floats(const uint16_t *from, int n, bool half, float *to)
{
    for (int i = 0; i < n; i += 4) {
        const simt_four_int h = {from[i], from[i + 1], from[i + 2], from[i + 3]};
        const simt_four f = half ? simt_halves(h) : simt_bfloats(h);
        memcpy(to + i, &f, sizeof f);
    }
}
/* Each sum is in the order of its numbers. */
static inline void simt_join_mma(void **own, int n)
{
    uint16_t a_bits[16][16], b_bits[8][16]; /* b by columns, as lanes have it */
    float a[16][16], b[8][16], sum[16][8];
    simt_four b_rows[16][2];
    for (int lane = 0; lane < n; lane++) {
        const simt_product *p = (simt_product *)own[lane];
        const int at = lane % 4 * 2, line = lane / 4;
        memcpy(&a_bits[line][at], &p->a[0], 4);
        memcpy(&a_bits[line + 8][at], &p->a[1], 4);
        memcpy(&a_bits[line][at + 8], &p->a[2], 4);
        memcpy(&a_bits[line + 8][at + 8], &p->a[3], 4);
        memcpy(&b_bits[line][at], &p->b[0], 4);
        memcpy(&b_bits[line][at + 8], &p->b[1], 4);
    }
    const bool half = ((simt_product *)own[0])->half;
    simt_floats(a_bits[0], 16 * 16, half, a[0]);
    simt_floats(b_bits[0], 8 * 16, half, b[0]);
    for (int k = 0; k < 16; k++)
        for (int i = 0; i < 2; i++)
            b_rows[k][i] =
                simt_four{b[4 * i][k], b[4 * i + 1][k], b[4 * i + 2][k], b[4 * i + 3][k]};
    for (int row = 0; row < 16; row++) {
        simt_four low = {}, high = {};
        for (int k = 0; k < 16; k++) {
            low += a[row][k] * b_rows[k][0];
            high += a[row][k] * b_rows[k][1];
        }
        memcpy(&sum[row][0], &low, sizeof low);
        memcpy(&sum[row][4], &high, sizeof high);
    }
    for (int lane = 0; lane < n; lane++)
        for (int i = 0; i < 4; i++)
            ((simt_product *)own[lane])->sum[i] += sum[lane / 4 + i / 2 * 8][lane % 4 * 2 + i % 2];
}
static inline void simt_mma(float *sum, const uint32_t *a, const uint32_t *b,
                            float (*number)(uint16_t))
{
    simt_product p = {sum, a, b, number(0x3c00) == 1};
    fibre_meet(SIMT_AT("mma"), 0xffffffffu, &p, simt_join_mma);
}

/* The same of signed bytes: .m16n8k16 and .m16n8k32, added to whole numbers. */
struct simt_product_s8 {
    int *sum;
    const uint32_t *a, *b;
    int deep;
};
/* Sums of 32 such products are whole in f32. */
static inline void simt_join_mma_s8(void **own, int n)
{
    float a[16][32];
    simt_four b[32][2];
    int sum[16][8];
    const int deep = ((simt_product_s8 *)own[0])->deep;
    for (int lane = 0; lane < n; lane++) {
        const simt_product_s8 *p = (simt_product_s8 *)own[lane];
        for (int i = 0; i < deep / 2; i++)
            a[lane / 4 + i / 4 % 2 * 8][lane % 4 * 4 + i % 4 + i / 8 * 16] =
                (int8_t)(p->a[i / 4] >> 8 * (i % 4));
        for (int i = 0; i < deep / 4; i++)
            b[lane % 4 * 4 + i % 4 + i / 4 * 16][lane / 16][lane / 4 % 4] =
                (int8_t)(p->b[i / 4] >> 8 * (i % 4));
    }
    for (int row = 0; row < 16; row++) {
        simt_four low = {}, high = {};
        for (int k = 0; k < deep; k++) {
            low += a[row][k] * b[k][0];
            high += a[row][k] * b[k][1];
        }
        for (int i = 0; i < 4; i++) {
            sum[row][i] = (int)low[i];
            sum[row][4 + i] = (int)high[i];
        }
    }
    for (int lane = 0; lane < n; lane++)
        for (int i = 0; i < 4; i++)
            ((simt_product_s8 *)own[lane])->sum[i] +=
                sum[lane / 4 + i / 2 * 8][lane % 4 * 2 + i % 2];
}
static inline void simt_mma_s8(int *sum, const uint32_t *a, const uint32_t *b, int deep)
{
    simt_product_s8 p = {sum, a, b, deep};
    fibre_meet(SIMT_AT("mma"), 0xffffffffu, &p, simt_join_mma_s8);
}

/* ---- memory ---- */

/* A word at a multiple of its size, as a card loads it. */
#define simt_load(T, p) simt_load_at<T>(SIMT_AT("a load of " #T), p)
template <typename T> static T simt_load_at(fibre_place at, const void *p)
{
    T v;
    if ((uintptr_t)p % sizeof v != 0)
        fibre_fail(at, "has an address that is no multiple of its size");
    memcpy(&v, p, sizeof v);
    return v;
}

/* ---- atomics: a thread runs alone ---- */

template <typename T, typename V> static T simt_swap(T *p, V v)
{
    T old = *p;
    *p = (T)v;
    return old;
}
#define SIMT_ATOMIC(name, expr)                                                                    \
    template <typename T, typename V> static T name(T *p, V w)                                     \
    {                                                                                              \
        T v = (T)w, old = *p;                                                                      \
        (void)v;                                                                                   \
        *p = (T)(expr);                                                                            \
        return old;                                                                                \
    }
SIMT_ATOMIC(atomicAdd, old + v)
SIMT_ATOMIC(atomicSub, old - v)
SIMT_ATOMIC(atomicMax, old > v ? old : v)
SIMT_ATOMIC(atomicMin, old < v ? old : v)
SIMT_ATOMIC(atomicOr, old | v)
SIMT_ATOMIC(atomicAnd, old &v)
SIMT_ATOMIC(atomicXor, old ^ v)
SIMT_ATOMIC(atomicExch, v)
#undef SIMT_ATOMIC
template <typename T, typename A, typename B> static T atomicCAS(T *p, A compare, B v)
{
    return *p == (T)compare ? simt_swap(p, v) : *p;
}

#include "tests/cuda/simt_numbers.h"

#endif
