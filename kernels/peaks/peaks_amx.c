/* peaks_amx.c - products of tiles: four sums of 16 x 16, from two tiles of rows and two of columns.
 *
 * The system hands out the tile registers on request, for the whole process. Where it refuses, the rate is 0. */
#include "kernels/peaks/peaks_impl.h"

#include <immintrin.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { REQUEST_PERMISSION = 0x1023, TILE_DATA = 18, TILES = 4, ROW_BYTES = 64, ROWS = 16 };

/* All tiles are 16 rows of 64 bytes. */
static void configure(void)
{
    struct {
        uint8_t palette, start, none[14];
        uint16_t bytes[16];
        uint8_t rows[16];
    } config;
    memset(&config, 0, sizeof config);
    config.palette = 1;
    for (int i = 0; i < 8; i++) {
        config.bytes[i] = ROW_BYTES;
        config.rows[i] = ROWS;
    }
    /* GCC 12's intrinsic says that it reads the first eight bytes; the other stores would be left out. */
    __asm__ volatile("" : : "r"(&config) : "memory");
    _tile_loadconfig(&config);
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    _tile_zero(4);
    _tile_zero(5);
    _tile_zero(6);
    _tile_zero(7);
}

static double finish(void)
{
    int32_t out[ROWS * ROW_BYTES / 4];
    _tile_stored(0, out, ROW_BYTES);
    _tile_release();
    return (double)out[0];
}

static double run_int8(int64_t steps)
{
    configure();
    for (int64_t n = 0; n < steps; n++) {
        _tile_dpbssd(0, 4, 6);
        _tile_dpbssd(1, 4, 7);
        _tile_dpbssd(2, 5, 6);
        _tile_dpbssd(3, 5, 7);
    }
    return finish();
}

static double run_bf16(int64_t steps)
{
    configure();
    for (int64_t n = 0; n < steps; n++) {
        _tile_dpbf16ps(0, 4, 6);
        _tile_dpbf16ps(1, 4, 7);
        _tile_dpbf16ps(2, 5, 6);
        _tile_dpbf16ps(3, 5, 7);
    }
    return finish();
}

static bool allowed(void)
{
    return syscall(SYS_arch_prctl, REQUEST_PERMISSION, TILE_DATA) == 0;
}

/* clang-format off */
const peak_row peaks_amx[] = {
    {"amx int8", PEAK_INT8, CPU_AMX_TILE | CPU_AMX_INT8, 2.0 * 16 * 16 * 64 * TILES, run_int8, allowed},
    {"amx bf16", PEAK_BF16, CPU_AMX_TILE | CPU_AMX_BF16, 2.0 * 16 * 16 * 32 * TILES, run_bf16, allowed},
    {.name = NULL},
};
/* clang-format on */
