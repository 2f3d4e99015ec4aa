/* target.c - how many rows a call can have. */
#include "compiler/target.h"

#include "runtime/base/intmath.h"

int64_t target_rows(int64_t asked, int64_t n_ctx, int64_t n_seq)
{
    int64_t all;
    if (!i64_mul(n_ctx, n_seq, &all) || all > TARGET_ROWS_MAX)
        all = TARGET_ROWS_MAX;
    return asked < all ? asked : all;
}
