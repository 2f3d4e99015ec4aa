/* weights_cuda.cuh - eight numbers of a row of weights, of every stored type.
 *
 * A thread takes EIGHT columns at a time, from a multiple of EIGHT on, so that a warp takes 256 that follow on each other:
 * a block of the larger types, eight of the smaller, whose bytes the loads of its threads cover together. What the types
 * mean, and the bits of the results, are kernels/ref/dequant*.c's; there stands how a block lies in memory.
 *
 * Each type is a struct with
 *
 *     eight(row, c, n, w)    w[8]: columns [c, c + 8) of a row of n; those from n on are 0 (floats alone have such)
 *
 * The floats come a second time, for rows that begin at multiples of 16 bytes and have whole eights: without branches, so
 * that loads of several steps of a loop are under way at once. */
#ifndef WEFT_KERNELS_CUDA_WEIGHTS_CUDA_CUH
#define WEFT_KERNELS_CUDA_WEIGHTS_CUDA_CUH

#include "kernels/cuda/block_cuda.cuh"
#include "kernels/cuda/numbers_cuda.cuh"
#include "runtime/base/dtype.h"

enum { EIGHT = 8 };

static __device__ inline bool at_16(const void *p)
{
    return ((uintptr_t)p & 15) == 0;
}

struct weight_F32 {
    static __device__ inline void eight(const uint8_t *row, uint32_t c, uint32_t n, float *w)
    {
        const uint8_t *p = row + 4 * c;
        if (c + EIGHT <= n && at_16(p)) {
            bytes16 low = load_16(p), high = load_16(p + 16);
            for (int i = 0; i < 4; i++) {
                w[i] = float_of(low.w[i]);
                w[i + 4] = float_of(high.w[i]);
            }
            return;
        }
        for (int i = 0; i < EIGHT; i++)
            w[i] = c + i < n ? float_of(load_u32(p + 4 * i)) : 0;
    }
};

/* Eight numbers of 16 bits, as they are. */
static __device__ inline void eight_halves(const uint8_t *row, uint32_t c, uint32_t n, uint16_t *h)
{
    const uint8_t *p = row + 2 * c;
    if (c + EIGHT <= n && at_16(p)) {
        bytes16 all = load_16(p);
        for (int i = 0; i < EIGHT; i++)
            h[i] = (uint16_t)(all.w[i / 2] >> 16 * (i % 2));
        return;
    }
    for (int i = 0; i < EIGHT; i++)
        h[i] = c + i < n ? load_u16(p + 2 * i) : 0;
}

struct weight_F32_EVEN {
    static __device__ inline void eight(const uint8_t *row, uint32_t c, uint32_t, float *w)
    {
        bytes16 low = load_16(row + 4 * c), high = load_16(row + 4 * c + 16);
        for (int i = 0; i < 4; i++) {
            w[i] = float_of(low.w[i]);
            w[i + 4] = float_of(high.w[i]);
        }
    }
};

struct weight_F16_EVEN {
    static __device__ inline void eight(const uint8_t *row, uint32_t c, uint32_t, float *w)
    {
        bytes16 all = load_16(row + 2 * c);
        for (int i = 0; i < EIGHT; i++)
            w[i] = from_f16((uint16_t)(all.w[i / 2] >> 16 * (i % 2)));
    }
};

struct weight_BF16_EVEN {
    static __device__ inline void eight(const uint8_t *row, uint32_t c, uint32_t, float *w)
    {
        bytes16 all = load_16(row + 2 * c);
        for (int i = 0; i < EIGHT; i += 2) {
            w[i] = float_of(all.w[i / 2] << 16);
            w[i + 1] = float_of(all.w[i / 2] & 0xffff0000u);
        }
    }
};

struct weight_F16 {
    static __device__ inline void eight(const uint8_t *row, uint32_t c, uint32_t n, float *w)
    {
        uint16_t h[EIGHT];
        eight_halves(row, c, n, h);
        for (int i = 0; i < EIGHT; i++)
            w[i] = from_f16(h[i]);
    }
};

struct weight_BF16 {
    static __device__ inline void eight(const uint8_t *row, uint32_t c, uint32_t n, float *w)
    {
        uint16_t h[EIGHT];
        eight_halves(row, c, n, h);
        for (int i = 0; i < EIGHT; i++)
            w[i] = from_bf16(h[i]);
    }
};

/* ---- blocks of 32: number j of a byte's two is j in the low half, j + 16 in the high one ---- */

struct weight_Q8_0 {
    static __device__ inline void eight(const uint8_t *row, uint32_t c, uint32_t, float *w)
    {
        const uint8_t *p = row + c / 32 * 34;
        float d = load_f16(p);
        bytes8 codes = load_8_by_2(p + 2 + c % 32);
        for (int i = 0; i < EIGHT; i++)
            w[i] = d * (float)(int8_t)byte_of(codes, i);
    }
};

/* The bytes of columns c and on among the 16 of a block, and which half of them it is. */
static __device__ inline int half_byte(uint32_t c)
{
    return (int)(c % 16);
}

static __device__ inline int half_shift(uint32_t c)
{
    return (int)(c % 32 / 16 * 4);
}

struct weight_Q4_0 {
    static __device__ inline void eight(const uint8_t *row, uint32_t c, uint32_t, float *w)
    {
        const uint8_t *p = row + c / 32 * 18;
        float d = load_f16(p);
        bytes8 codes = load_8_by_2(p + 2 + half_byte(c));
        for (int i = 0; i < EIGHT; i++)
            w[i] = d * (float)((byte_of(codes, i) >> half_shift(c) & 15) - 8);
    }
};

struct weight_Q4_1 {
    static __device__ inline void eight(const uint8_t *row, uint32_t c, uint32_t, float *w)
    {
        const uint8_t *p = row + c / 32 * 20;
        float d = load_f16(p), m = load_f16(p + 2);
        bytes8 codes = load_8_by_4(p + 4 + half_byte(c));
        for (int i = 0; i < EIGHT; i++)
            w[i] = d * (float)(byte_of(codes, i) >> half_shift(c) & 15) + m;
    }
};

struct weight_Q5_0 {
    static __device__ inline void eight(const uint8_t *row, uint32_t c, uint32_t, float *w)
    {
        const uint8_t *p = row + c / 32 * 22;
        float d = load_f16(p);
        uint32_t fifth = load_4_by_2(p + 2).w >> c % 32;
        bytes8 codes = load_8_by_2(p + 6 + half_byte(c));
        for (int i = 0; i < EIGHT; i++) {
            int low = byte_of(codes, i) >> half_shift(c) & 15;
            w[i] = d * (float)((low | (int)(fifth >> i & 1) << 4) - 16);
        }
    }
};

struct weight_Q5_1 {
    static __device__ inline void eight(const uint8_t *row, uint32_t c, uint32_t, float *w)
    {
        const uint8_t *p = row + c / 32 * 24;
        float d = load_f16(p), m = load_f16(p + 2);
        uint32_t fifth = load_u32(p + 4) >> c % 32;
        bytes8 codes = load_8(p + 8 + half_byte(c));
        for (int i = 0; i < EIGHT; i++) {
            int low = byte_of(codes, i) >> half_shift(c) & 15;
            w[i] = d * (float)(low | (int)(fifth >> i & 1) << 4) + m;
        }
    }
};

/* Sixteen values of 8 bits in two words: a table that needs no memory. */
static __device__ inline int value16(uint64_t low, uint64_t high, int code)
{
    return (int)(int8_t)((code < 8 ? low : high) >> 8 * (code & 7));
}

/* -127 -104 -83 -65 -49 -35 -22 -10, 1 13 25 38 53 69 89 113 */
static __device__ inline int iq4_value(int code)
{
    return value16(0xf6eaddcfbfad9881u, 0x7159453526190d01u, code);
}

/* Twice E2M1: 0 1 2 3 4 6 8 12, and 0 -1 -2 -3 -4 -6 -8 -12 */
static __device__ inline int fp4_doubled(int code)
{
    return value16(0x0c08060403020100u, 0xf4f8fafcfdfeff00u, code);
}

struct weight_IQ4_NL {
    static __device__ inline void eight(const uint8_t *row, uint32_t c, uint32_t, float *w)
    {
        const uint8_t *p = row + c / 32 * 18;
        float d = load_f16(p);
        bytes8 codes = load_8_by_2(p + 2 + half_byte(c));
        for (int i = 0; i < EIGHT; i++)
            w[i] = d * (float)iq4_value(byte_of(codes, i) >> half_shift(c) & 15);
    }
};

struct weight_MXFP4 {
    static __device__ inline void eight(const uint8_t *row, uint32_t c, uint32_t, float *w)
    {
        const uint8_t *p = row + c / 32 * 17;
        uint32_t e = load_u8(p);
        float d = float_of(e < 2 ? 0x00200000u << e : (e - 1) << 23); /* half of 2^(e - 127) */
        bytes8 codes = load_8_by_1(p + 1 + half_byte(c));
        for (int i = 0; i < EIGHT; i++)
            w[i] = d * (float)fp4_doubled(byte_of(codes, i) >> half_shift(c) & 15);
    }
};

/* ---- blocks of 256, in groups with scales of their own ---- */

struct weight_Q2_K {
    static __device__ inline void eight(const uint8_t *row, uint32_t c, uint32_t, float *w)
    {
        const uint8_t *p = row + c / 256 * 84;
        int j = (int)(c % 256), scale = load_u8(p + j / 16);
        float dl = load_f16(p + 80) * (float)(scale & 15);
        float ml = load_f16(p + 82) * (float)(scale >> 4);
        bytes8 codes = load_8_by_4(p + 16 + j / 128 * 32 + j % 32);
        for (int i = 0; i < EIGHT; i++)
            w[i] = dl * (float)(byte_of(codes, i) >> j % 128 / 32 * 2 & 3) - ml;
    }
};

struct weight_Q3_K {
    static __device__ inline void eight(const uint8_t *row, uint32_t c, uint32_t, float *w)
    {
        const uint8_t *p = row + c / 256 * 110;
        int j = (int)(c % 256), g = j / 16;
        int low = load_u8(p + 96 + g % 8) >> g / 8 * 4 & 15;
        int high = load_u8(p + 104 + g % 4) >> g / 4 * 2 & 3;
        float dl = load_f16(p + 108) * (float)((low | high << 4) - 32);
        bytes8 codes = load_8_by_2(p + 32 + j / 128 * 32 + j % 32);
        bytes8 bits = load_8_by_2(p + j % 32);
        for (int i = 0; i < EIGHT; i++) {
            int code = byte_of(codes, i) >> j % 128 / 32 * 2 & 3;
            w[i] = dl * (float)(code - 4 + 4 * (byte_of(bits, i) >> j / 32 & 1));
        }
    }
};

/* Scale and minimum of group g, 6 bits each, from the 12 bytes that Q4_K and Q5_K have after d and m. */
static __device__ inline void scale_min_6(const bytes16 &head, int g, int *scale, int *min)
{
    int at = 4 + g % 4; /* of the block */
    int a = byte_of(head, at), b = byte_of(head, at + 4), both = byte_of(head, at + 8);
    *scale = g < 4 ? a & 63 : (both & 15) | a >> 6 << 4;
    *min = g < 4 ? b & 63 : both >> 4 | b >> 6 << 4;
}

struct weight_Q4_K {
    static __device__ inline void eight(const uint8_t *row, uint32_t c, uint32_t, float *w)
    {
        const uint8_t *p = row + c / 256 * 144;
        int j = (int)(c % 256), g = j / 32, scale, min;
        bytes16 head = load_16(p);
        bytes8 codes = load_8(p + 16 + g / 2 * 32 + j % 32);
        scale_min_6(head, g, &scale, &min);
        float dl = from_f16((uint16_t)head.w[0]) * (float)scale;
        float ml = from_f16((uint16_t)(head.w[0] >> 16)) * (float)min;
        for (int i = 0; i < EIGHT; i++)
            w[i] = dl * (float)(byte_of(codes, i) >> g % 2 * 4 & 15) - ml;
    }
};

struct weight_Q5_K {
    static __device__ inline void eight(const uint8_t *row, uint32_t c, uint32_t, float *w)
    {
        const uint8_t *p = row + c / 256 * 176;
        int j = (int)(c % 256), g = j / 32, scale, min;
        bytes16 head = load_16(p);
        bytes8 fifth = load_8(p + 16 + j % 32), codes = load_8(p + 48 + g / 2 * 32 + j % 32);
        scale_min_6(head, g, &scale, &min);
        float dl = from_f16((uint16_t)head.w[0]) * (float)scale;
        float ml = from_f16((uint16_t)(head.w[0] >> 16)) * (float)min;
        for (int i = 0; i < EIGHT; i++) {
            int low = byte_of(codes, i) >> g % 2 * 4 & 15;
            w[i] = dl * (float)(low | (byte_of(fifth, i) >> g & 1) << 4) - ml;
        }
    }
};

struct weight_Q6_K {
    static __device__ inline void eight(const uint8_t *row, uint32_t c, uint32_t, float *w)
    {
        const uint8_t *p = row + c / 256 * 210;
        int j = (int)(c % 256);
        float dl = load_f16(p + 208) * (float)(int8_t)load_u8(p + 192 + j / 16);
        bytes8 low = load_8_by_2(p + j / 128 * 64 + j % 64);
        bytes8 high = load_8_by_2(p + 128 + j / 128 * 32 + j % 32);
        for (int i = 0; i < EIGHT; i++) {
            int code = byte_of(low, i) >> j % 128 / 64 * 4 & 15;
            code |= (byte_of(high, i) >> j % 128 / 32 * 2 & 3) << 4;
            w[i] = dl * (float)(code - 32);
        }
    }
};

struct weight_IQ4_XS {
    static __device__ inline void eight(const uint8_t *row, uint32_t c, uint32_t, float *w)
    {
        const uint8_t *p = row + c / 256 * 136;
        int j = (int)(c % 256), g = j / 32;
        bytes8 head = load_8(p); /* d, high bits of the scales, low bits */
        int low = byte_of(head, 4 + g / 2) >> g % 2 * 4 & 15;
        int high = (int)(head.w[0] >> (16 + 2 * g) & 3);
        float dl = from_f16((uint16_t)head.w[0]) * (float)((low | high << 4) - 32);
        bytes8 codes = load_8(p + 8 + g * 16 + half_byte(c));
        for (int i = 0; i < EIGHT; i++)
            w[i] = dl * (float)iq4_value(byte_of(codes, i) >> half_shift(c) & 15);
    }
};

/* X(type) for each of them; and for blocks that products of few rows have code of their own for. */
#define WEIGHT_TYPES(X)                                                                            \
    X(F32)                                                                                         \
    X(F16)                                                                                         \
    X(BF16) WEIGHT_BLOCKS_OFTEN(X) X(Q4_1) X(Q5_0) X(Q5_1) X(IQ4_NL) X(Q2_K) X(Q3_K) X(IQ4_XS)
#define WEIGHT_BLOCKS_OFTEN(X) X(Q8_0) X(Q4_0) X(MXFP4) X(Q4_K) X(Q5_K) X(Q6_K)

struct eight_floats {
    float w[EIGHT];
};

/* The same of a type that is known when it runs. One copy: code for every type in each kernel takes minutes to compile. */
static __device__ ONE_COPY eight_floats eight_of(dtype type, const uint8_t *row, uint32_t c,
                                                 uint32_t n)
{
    eight_floats e = {};
    switch (type) {
#define CASE(t)                                                                                    \
    case DT_##t:                                                                                   \
        weight_##t::eight(row, c, n, e.w);                                                         \
        break;
        WEIGHT_TYPES(CASE)
#undef CASE
    default:
        break;
    }
    return e;
}

/* For templates: any of them. */
struct weight_any {
};

template <class W>
static __device__ inline eight_floats eight_as(dtype, const uint8_t *row, uint32_t c, uint32_t n)
{
    eight_floats e;
    W::eight(row, c, n, e.w);
    return e;
}

template <>
inline __device__ eight_floats eight_as<weight_any>(dtype type, const uint8_t *row, uint32_t c,
                                                    uint32_t n)
{
    return eight_of(type, row, c, n);
}

#endif
