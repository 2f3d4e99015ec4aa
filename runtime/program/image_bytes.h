/* image_bytes.h - numbers in the bytes of an image, which are little-endian as the systems are that programs are built for. */
#ifndef WEFT_RUNTIME_PROGRAM_IMAGE_BYTES_H
#define WEFT_RUNTIME_PROGRAM_IMAGE_BYTES_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "images are little-endian"
#endif

static inline uint64_t image_get64(const void *p)
{
    uint64_t x;
    memcpy(&x, p, sizeof x);
    return x;
}

static inline uint32_t image_get32(const void *p)
{
    uint32_t x;
    memcpy(&x, p, sizeof x);
    return x;
}

static inline void image_put64(void *to, uint64_t x)
{
    memcpy(to, &x, sizeof x);
}

static inline void image_put32(void *to, uint32_t x)
{
    memcpy(to, &x, sizeof x);
}

static inline bool image_all_zero(const unsigned char *p, uint64_t n)
{
    while (n > 0 && *p == 0)
        p++, n--;
    return n == 0;
}

#endif
