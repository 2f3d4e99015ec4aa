/* flash_size.h - how attend_flash_cuda.cuh cuts its work into units, and its scratch; for the kernel and for the table. */
#ifndef WEFT_KERNELS_CUDA_FLASH_SIZE_H
#define WEFT_KERNELS_CUDA_FLASH_SIZE_H

#include "kernels/cuda/attend_cuda_size.h"

enum {
    FLASH_QUERIES = 128, /* vectors of a unit at most: a strip of 16 for each of 8 warps */
    FLASH_WIDTH_MAX = 256,
    FLASH_ALIGN = 128,
    FLASH_TILES_ALIGN = 1024, /* of lines that matrix instructions of sm_90a read */
    /* What a block of weft_flash has where cards have so much: queries and rings of tiles (attend_tiles_cuda.cuh), of any kind. Else it
     * does what weft_phases does. */
    FLASH_TILES_BYTES = 192 * 1024 + FLASH_TILES_ALIGN,
};

/* Numbers of a key or a value as they lie in scratch: one of three sizes, filled up with zeros. */
K_FN int64_t flash_width(const kcell *c)
{
    int64_t n = c->k > c->v ? c->k : c->v;
    return n <= 64 ? 64 : n <= 128 ? 128 : FLASH_WIDTH_MAX;
}

/* Positions of a tile. */
K_FN int64_t flash_keys(int64_t width)
{
    return width > 128 ? 32 : 64;
}

/* As how many numbers of 16 bits a query or a weight is multiplied: f16 has 11 bits each, bf16 8. */
K_FN int64_t flash_parts(kform form)
{
    return form == KFORM_F16 ? 2 : 3;
}

K_FN int64_t flash_bytes(const kcell *c)
{
    int64_t width = flash_width(c), keys = flash_keys(width);
    return FLASH_QUERIES *
               (flash_parts(c->tier[0].key) * width * 2 + 4) + /* queries, and factors */
           2 * keys * (2 * width * 2 + 16) +
           FLASH_ALIGN; /* two tiles, and where they come from */
}

/* Is it a cell that this kernel reads? Of others attend_cuda.cuh takes care. */
K_FN bool flash_has(const kcell *c)
{
    enum { BYTES_MAX = 200 * 1024 };
    kform form = c->tier[0].key;
    return c->n_tier == 1 && !c->latent && (form == KFORM_F16 || form == KFORM_BF16) &&
           c->tier[0].value == form && c->k % 8 == 0 && c->v % 8 == 0 && c->k <= FLASH_WIDTH_MAX &&
           c->v <= FLASH_WIDTH_MAX && flash_bytes(c) <= BYTES_MAX;
}

/* Or one of f16 and codes, which tile_codes_cuda.cuh reads? Elsewhere its units are computed number by number. */
K_FN bool flash_codes(const kcell *c)
{
    return cuda_cell_codes(c) && c->k <= 128;
}

/* Are units blocks of queries, not those of attend_cuda.cuh? */
K_FN bool flash_cuts(const kcell *c)
{
    return flash_has(c) || flash_codes(c);
}

K_FN int64_t flash_rows(const kargs *k)
{
    return FLASH_QUERIES / cuda_attend_size_of(k).heads;
}

K_FN int64_t flash_units(const kargs *k)
{
    if (!flash_cuts(k->cell))
        return cuda_attend_units(k);
    int64_t rows = flash_rows(k);
    return (k->size.attend.rows + rows - 1) / rows * k->cell->heads * cuda_attend_size_of(k).parts;
}

K_FN int64_t flash_scratch(const kargs *k)
{
    int64_t plain = cuda_attend_bytes(k), own = flash_has(k->cell) ? flash_bytes(k->cell) : 0;
    return plain > own ? plain : own;
}

#endif
