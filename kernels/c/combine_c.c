/* combine_c.c - the weighted sum of what a row's experts gave. out overlaps no input. */
#include "kernels/kernel_decls.h"

#include "kernels/c/vec.h"

void k_combine_c(const kargs *k, const kthread *t, int64_t begin, int64_t end)
{
    int64_t top = k->size.combine.slots;
    kpart p = kpart_of(k, k->size.combine.width, begin, end);
    (void)t;
    for (int64_t row = p.row; row < p.row_end; row++) {
        const float *w = row_in(k, 1, row); /* [K] */
        float *out = row_out(k, 0, row);    /* [d] */
        for (int64_t i = p.col; i < p.col_end; i++)
            out[i] = 0;
        for (int64_t j = 0; j < top; j++) {
            const float *y = row_in(k, 0, row * top + j); /* [d] */
            VEC_LOOP
            for (int64_t i = p.col; i < p.col_end; i++)
                out[i] += w[j] * y[i];
        }
    }
}
