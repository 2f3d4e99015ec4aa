/* amx.h - tiles, and products of bf16 and of bytes.
 *
 * The left operand is a tile of up to 16 rows of activations where they lie; the right one holds 16 rows of
 * weights, turned: row j of it has columns 2j and 2j + 1 of each (Intel SDM, TDPBF16PS), of bytes 4j to 4j + 3. The result is rows of
 * activations by rows of weights, and is added to what is there.
 *
 * Instructions are written out, with memory as a clobber: GCC 12's intrinsics do not say that
 * they read and write memory. The system must have let the process use tiles, which cpu_features asks for. */
#ifndef WEFT_KERNELS_X86_AMX_H
#define WEFT_KERNELS_X86_AMX_H

#include "kernels/x86/unpack.h"

enum { AMX_ROWS = 16, AMX_BYTES = 64, AMX_TILE = AMX_ROWS * AMX_BYTES };

/* Shapes of the eight tiles: sums in 0 .. 3, activations in 4 and 5, weights in 6 and 7. */
typedef struct {
    uint8_t palette, start_row, zero[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
} amx_shapes;
_Static_assert(sizeof(amx_shapes) == 64, "as ldtilecfg reads it");

/* `first` and `second` rows of the two tiles of activations, of which the second may be none. Sums
 * of the first are 0 and 1, of the second 2 and 3. */
X86_INLINE void amx_shape(int first, int second)
{
    amx_shapes s = {.palette = 1};
    for (int i = 0; i < 8; i++) {
        bool is_second = i == 2 || i == 3 || i == 5;
        int rows = i >= 6 ? AMX_ROWS : is_second ? second : first;
        s.row_bytes[i] = AMX_BYTES;
        s.rows[i] = (uint8_t)(rows > 0 ? rows : 1);
    }
    __asm__ volatile("ldtilecfg %0" ::"m"(s));
}
/* For products of `rows` rows of activations, `bytes` of each at a time, 4 to 64: the same tiles. */
X86_INLINE void amx_shape_bytes(int rows, int bytes)
{
    amx_shapes s = {.palette = 1};
    for (int i = 0; i < 8; i++) {
        s.row_bytes[i] = (uint16_t)(i == 4 || i == 5 ? bytes : AMX_BYTES);
        s.rows[i] = (uint8_t)(i >= 6 ? bytes / 4 : rows);
    }
    __asm__ volatile("ldtilecfg %0" ::"m"(s));
}
X86_INLINE void amx_end(void)
{
    __asm__ volatile("tilerelease" ::: "memory");
}

/* t, c, a, b: numbers of tiles; stride: bytes from row to row. */
#define AMX_LOAD(t, p, stride)                                                                     \
    __asm__ volatile("tileloadd (%0,%1,1), %%tmm" #t ::"r"((const void *)(p)),                     \
                     "r"((int64_t)(stride))                                                        \
                     : "memory")
#define AMX_STORE(t, p, stride)                                                                    \
    __asm__ volatile("tilestored %%tmm" #t ", (%0,%1,1)" ::"r"((void *)(p)),                       \
                     "r"((int64_t)(stride))                                                        \
                     : "memory")
#define AMX_ZERO(t) __asm__ volatile("tilezero %%tmm" #t ::: "memory")
/* Signed bytes with signed ones, with unsigned ones. */
#define AMX_DOT_I8(c, a, b)                                                                        \
    __asm__ volatile("tdpbssd %%tmm" #b ", %%tmm" #a ", %%tmm" #c ::: "memory")
#define AMX_DOT_U8(c, a, b)                                                                        \
    __asm__ volatile("tdpbsud %%tmm" #b ", %%tmm" #a ", %%tmm" #c ::: "memory")
#define AMX_DOT_BF16(c, a, b)                                                                      \
    __asm__ volatile("tdpbf16ps %%tmm" #b ", %%tmm" #a ", %%tmm" #c ::: "memory")

#endif
