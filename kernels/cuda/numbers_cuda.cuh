/* numbers_cuda.cuh - bits of floats, half-width floats both ways, and loads of weights.
 *
 * f16 and bf16 have the bits of kernels/ref/dequant.h, but for the payload of a NaN. */
#ifndef WEFT_KERNELS_CUDA_NUMBERS_CUDA_CUH
#define WEFT_KERNELS_CUDA_NUMBERS_CUDA_CUH

#include <stdint.h>
#include <string.h>

static __device__ inline uint32_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static __device__ inline float float_of(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static __device__ inline bool is_finite(float x)
{
    return (bits_of(x) & 0x7f800000u) != 0x7f800000u;
}

static __device__ inline float from_bf16(uint16_t h)
{
    return float_of((uint32_t)h << 16);
}

static __device__ inline uint16_t to_bf16(float x)
{
    uint32_t bits = bits_of(x);
    if ((bits & 0x7fffffffu) > 0x7f800000u)
        return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

#ifdef __CUDACC__
static __device__ inline float from_f16(uint16_t h)
{
    float x;
    asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(h));
    return x;
}

static __device__ inline uint16_t to_f16(float x)
{
    uint16_t h;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(x));
    return h;
}
#else
/* A subnormal is a count of 2^-24. */
static inline float from_f16(uint16_t h)
{
    uint32_t sign = (uint32_t)(h >> 15) << 31, exponent = h >> 10 & 31, fraction = h & 0x3ff;
    if (exponent == 31)
        return float_of(sign | 0xffu << 23 | fraction << 13);
    if (exponent == 0)
        return float_of(sign | bits_of((float)fraction * 0x1p-24f));
    return float_of(sign | (exponent + 127 - 15) << 23 | fraction << 13);
}

/* 0.5 has units of 2^-24 above it, so that a sum is rounded as a subnormal must be. */
static inline uint16_t to_f16(float x)
{
    uint32_t bits = bits_of(x), magnitude = bits & 0x7fffffffu, sign = bits >> 16 & 0x8000;
    if (magnitude > 0x7f800000u)
        return (uint16_t)(sign | 0x7e00 | (magnitude >> 13 & 0x3ff));
    if (magnitude >= 143u << 23)
        return (uint16_t)(sign | 0x7c00);
    if (magnitude < 113u << 23)
        return (uint16_t)(sign | (bits_of(float_of(magnitude) + 0.5f) - bits_of(0.5f)));
    return (uint16_t)(sign | (((magnitude + 0xfff + (magnitude >> 13 & 1)) >> 13) - (112u << 10)));
}
#endif

/* ---- loads of weights ----
 *
 * Weights lie in global memory and nobody writes them. A card loads a word from a multiple of its size only: on a card
 * weights begin at a multiple of 16 bytes and rows are whole blocks, so that every block of a type lies at the alignment that
 * its size has in common with 16, which is what the loads of its decoder count on. */

struct bytes4 {
    uint32_t w;
};
struct alignas(8) bytes8 {
    uint32_t w[2];
};
struct alignas(16) bytes16 {
    uint32_t w[4];
};

static __device__ inline int byte_of(const bytes4 &b, int i)
{
    return (int)(b.w >> 8 * i & 255);
}

static __device__ inline int byte_of(const bytes8 &b, int i)
{
    return (int)(b.w[i / 4] >> 8 * (i % 4) & 255);
}

static __device__ inline int byte_of(const bytes16 &b, int i)
{
    return (int)(b.w[i / 4] >> 8 * (i % 4) & 255);
}

#ifdef __CUDACC__
static __device__ inline size_t global_at(const void *p)
{
    return __cvta_generic_to_global(p);
}

static __device__ inline uint8_t load_u8(const void *p)
{
    uint32_t x;
    asm("ld.global.nc.u8 %0, [%1];" : "=r"(x) : "l"(global_at(p)));
    return (uint8_t)x;
}

static __device__ inline uint16_t load_u16(const void *p)
{
    uint16_t x;
    asm("ld.global.nc.u16 %0, [%1];" : "=h"(x) : "l"(global_at(p)));
    return x;
}

static __device__ inline uint32_t load_u32(const void *p)
{
    uint32_t x;
    asm("ld.global.nc.u32 %0, [%1];" : "=r"(x) : "l"(global_at(p)));
    return x;
}

static __device__ inline bytes8 load_8(const void *p)
{
    bytes8 x;
    asm("ld.global.nc.v2.u32 {%0, %1}, [%2];" : "=r"(x.w[0]), "=r"(x.w[1]) : "l"(global_at(p)));
    return x;
}

static __device__ inline bytes16 load_16(const void *p)
{
    bytes16 x;
    asm("ld.global.nc.v4.u32 {%0, %1, %2, %3}, [%4];"
        : "=r"(x.w[0]), "=r"(x.w[1]), "=r"(x.w[2]), "=r"(x.w[3])
        : "l"(global_at(p)));
    return x;
}
#else
template <class T> static inline T load_any(const void *p)
{
    return simt_load(T, p); /* refuses what a card cannot load */
}

static inline uint8_t load_u8(const void *p)
{
    return load_any<uint8_t>(p);
}

static inline uint16_t load_u16(const void *p)
{
    return load_any<uint16_t>(p);
}

static inline uint32_t load_u32(const void *p)
{
    return load_any<uint32_t>(p);
}

static inline bytes8 load_8(const void *p)
{
    return load_any<bytes8>(p);
}

static inline bytes16 load_16(const void *p)
{
    return load_any<bytes16>(p);
}
#endif

/* 4 and 8 bytes from a multiple of 2. */
static __device__ inline bytes4 load_4_by_2(const uint8_t *p)
{
    return bytes4{(uint32_t)load_u16(p) | (uint32_t)load_u16(p + 2) << 16};
}

static __device__ inline bytes8 load_8_by_2(const uint8_t *p)
{
    return bytes8{{load_4_by_2(p).w, load_4_by_2(p + 4).w}};
}

static __device__ inline bytes8 load_8_by_4(const uint8_t *p)
{
    return bytes8{{load_u32(p), load_u32(p + 4)}};
}

static __device__ inline bytes8 load_8_by_1(const uint8_t *p)
{
    bytes8 x = {{0, 0}};
    for (int i = 0; i < 8; i++)
        x.w[i / 4] |= (uint32_t)load_u8(p + i) << 8 * (i % 4);
    return x;
}

static __device__ inline float load_f16(const void *p)
{
    return from_f16(load_u16(p));
}

#endif
