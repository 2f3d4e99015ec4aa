/* append_ref.c - write a call's rows into the pages of a state cell, in the forms of its first tier: F32, F16
 * or BF16, rounded to nearest, ties to even.
 *
 * Rows of a call go to different places, so they may be written in any order: no sequence has two
 * rows of one position. The runtime sees to that. */
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
    const float *keys = k->in[0];   /* [rows, heads, k], or NULL */
    const float *values = k->in[1]; /* [rows, heads, v], or NULL, as for a latent cell */
    const int32_t *pos = kbatch_at(b, KBATCH_POS);
    dtype key = kform_dtype(c->tier[0].key), value = kform_dtype(c->tier[0].value);
    (void)t;
    for (int64_t row = begin; row < end; row++) {
        const int32_t *pages = kcell_pages(c, 0, b, row);
        for (int64_t h = 0; h < c->heads; h++) {
            int64_t i = row * c->heads + h;
            if (keys)
                store(key, keys + i * c->k, cell_key(c, 0, pages, pos[row], h), c->k);
            if (values)
                store(value, values + i * c->v, cell_value(c, 0, pages, pos[row], h), c->v);
        }
    }
}
