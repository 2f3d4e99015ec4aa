/* embed_ref.c - the table's row for each id.
 *
 * The runtime refuses tokens outside the table before a call begins, so an id out of range is a bug
 * of the caller; it ends the process rather than read past the table. */
#include "kernels/kernel_decls.h"

#include "kernels/ref/weight_read.h"

void k_embed_ref(const kargs *k, const kthread *t, int64_t begin, int64_t end)
{
    const void *table = k->in[0];  /* [vocab, d] */
    const int32_t *ids = k->in[1]; /* [rows] */
    float *out = k->out[0];        /* [rows, d] */
    int64_t d = k->size.embed.width, vocab = k->size.embed.vocab;
    (void)t;
    for (int64_t row = begin; row < end; row++) {
        WEFT_ASSERT(ids[row] >= 0 && ids[row] < vocab);
        dequant_row(k->type[0], weight_row(table, k->pitch[0], ids[row]), out + row * d, d);
    }
}
