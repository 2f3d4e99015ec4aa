/* host_nvrtc.h - what kernels/cuda uses of the host's headers, for a compiler that has none: NVRTC is given this text under the
 * names of all of them (kernels/cuda/texts.cmake). For 64-bit hosts, whose `long` is as long as an address. */
#ifndef WEFT_KERNELS_CUDA_HOST_NVRTC_H
#define WEFT_KERNELS_CUDA_HOST_NVRTC_H

#ifdef __CUDACC_RTC__
typedef signed char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long int64_t;
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned long uint64_t, uintptr_t;

#define UINT16_MAX 0xffff
#define INT32_MAX 0x7fffffff
#define INT64_MAX 0x7fffffffffffffffL

#define INFINITY __int_as_float(0x7f800000)
#else /* another compiler, which has them */
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#endif

/* Of runtime/base/str.h and status.h: what declarations of the host's functions mention. */
typedef struct {
    const char *p;
    size_t n;
} str;
typedef struct strbuf strbuf;
#define WEFT_MUST_USE

#endif
