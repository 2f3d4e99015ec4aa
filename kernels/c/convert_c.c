/* convert_c.c - make pages of a state cell's tier from those of the tier before. */
#include "kernels/kernel_decls.h"

#include "kernels/ref/cell_convert.h"

void k_convert_c(const kargs *k, const kthread *t, int64_t begin, int64_t end)
{
    (void)t;
    convert_units(k, begin, end);
}
