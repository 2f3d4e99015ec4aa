/* route_c.c - the K best experts of each row. The choice must be the reference's, in which a last bit
 * decides between near equals, and a row has few experts: it is the reference's own code, row by row. */
#include "kernels/kernel_decls.h"

#include "kernels/c/vec.h"

void k_route_c(const kargs *k, const kthread *t, int64_t begin, int64_t end)
{
    for (int64_t row = begin; row < end; row++) {
        kargs one = *k;
        one.in[0] = row_in(k, 0, row);
        one.out[0] = row_out(k, 0, row);
        one.out[1] = row_out(k, 1, row);
        k_route_ref(&one, t, 0, 1);
    }
}
