/* embed_c.c - the table's row for each id, from any stored type. The runtime refuses tokens outside
 * the table before a call begins. */
#include "kernels/kernel_decls.h"

#include "kernels/c/vec.h"
#include "kernels/ref/weight_read.h"

void k_embed_c(const kargs *k, const kthread *t, int64_t begin, int64_t end)
{
    const int32_t *ids = k->in[1]; /* [rows] */
    (void)t;
    for (int64_t row = begin; row < end; row++)
        dequant_row(k->type[0], weight_row(k->in[0], k->pitch[0], ids[row]), row_out(k, 0, row),
                    k->size.embed.width);
}
