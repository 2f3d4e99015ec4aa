/* linear_metal_size.h - the squares of linear_many.msl; for the kernel and for the table. */
#ifndef WEFT_KERNELS_METAL_LINEAR_METAL_SIZE_H
#define WEFT_KERNELS_METAL_LINEAR_METAL_SIZE_H

enum {
    METAL_SQUARE_ROWS = 64,                      /* of the call, of a square of the result */
    METAL_SQUARE_COLS = 64,                      /* of the result */
    METAL_SQUARE_DEPTH = 32,                     /* columns of x and w at a time */
    METAL_SQUARE_PITCH = METAL_SQUARE_DEPTH + 4, /* floats of a row of a tile: in different banks */
    METAL_CHOICES = 4096                         /* of experts that are sorted at a time */
};

#ifndef __METAL_VERSION__
#include <stdint.h>
/* Of experts.msl: choices in order of their experts, and where those of each begin. */
static inline int64_t metal_experts_bytes(int64_t experts)
{
    return (METAL_CHOICES + experts + 1) * (int64_t)sizeof(int32_t);
}
#endif

#endif
