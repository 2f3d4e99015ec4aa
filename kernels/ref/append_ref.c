/* append_ref.c - write a call's rows into the pages of a state cell, in its stored type: F32, F16
 * or BF16, rounded to nearest, ties to even.
 *
 * Rows of a call go to different places, so they may be written in any order: no sequence has two
 * rows of one position, and a ring is no shorter than a call (and, so that the attend which follows
 * finds its window, longer by the window less one). The runtime sees to both. */
#include "kernels/kernel_decls.h"

#include <string.h>
#include "kernels/ref/cell_place.h"
#include "kernels/ref/dequant.h"

static void store(dtype type, const float *src, char *dst, int64_t n)
{
    WEFT_ASSERT(type == DT_F32 || type == DT_F16 || type == DT_BF16);
    if (type == DT_F32) {
        memcpy(dst, src, (size_t)n * sizeof *src);
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        uint16_t h = type == DT_F16 ? f32_to_f16(src[i]) : f32_to_bf16(src[i]);
        dst[2 * i] = (char)(h & 0xff); /* little endian, as dequant_row reads it */
        dst[2 * i + 1] = (char)(h >> 8);
    }
}

void k_append_ref(const kargs *k, const kthread *t, int64_t begin, int64_t end)
{
    const kcell *c = k->cell;
    const kbatch *b = k->batch;
    const float *keys = k->in[0];   /* [rows, heads, k] */
    const float *values = k->in[1]; /* [rows, heads, v]; NULL for a latent cell */
    int64_t k_row = c->heads * c->k, v_row = c->heads * c->v;
    (void)t;
    for (int64_t row = begin; row < end; row++) {
        const int32_t *pages = b->pages[b->seq[row]];
        store(c->type, keys + row * k_row, cell_key(c, pages, b->pos[row], 0), k_row);
        if (!c->latent)
            store(c->type, values + row * v_row, cell_value(c, pages, b->pos[row], 0), v_row);
    }
}
