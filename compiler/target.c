/* target.c - which kernels this machine may use. */
#include "compiler/target.h"

#include "runtime/base/intmath.h"
#include <stdlib.h>

int64_t target_rows(int64_t asked, int64_t n_ctx, int64_t n_seq)
{
    int64_t all;
    if (!i64_mul(n_ctx, n_seq, &all) || all > TARGET_ROWS_MAX)
        all = TARGET_ROWS_MAX;
    return asked < all ? asked : all;
}

weft_status target_best(weft_diag *dg, kvariant *out_best)
{
    const char *cap = getenv("WEFT_CPU");
    if (!cap || !*cap) {
        *out_best = kvariant_best();
        return WEFT_OK;
    }
    kvariant best = kvariant_find(cap);
    if (best < VARIANT_COUNT) {
        *out_best = best;
        return WEFT_OK;
    }
    strbuf names = {0};
    for (kvariant v = 0; v < VARIANT_COUNT; v++)
        if (kvariant_runs(v))
            strbuf_add(&names, "%s%s", names.n ? ", " : "", kvariant_name(v));
    weft_status st = weft_fail(dg, W1602, WEFT_NOWHERE,
                               "WEFT_CPU names %s; this processor can run %s", cap, names.p);
    strbuf_free(&names);
    return st;
}

weft_status target_best_rounding(weft_diag *dg, kvariant *out_best)
{
    kvariant best, rounds = kvariant_rounding();
    const char *cap = getenv("WEFT_CPU");
    WEFT_TRY(target_best(dg, &best));
    if (rounds == VARIANT_COUNT)
        return weft_fail(dg, W1603, WEFT_NOWHERE,
                         "this processor lacks what kernels need that round to bf16");
    if (cap && *cap && best < rounds)
        return weft_fail(dg, W1603, WEFT_NOWHERE,
                         "WEFT_CPU allows kernels up to %s; those that round to bf16 are %s", cap,
                         kvariant_name(rounds));
    *out_best = rounds;
    return WEFT_OK;
}
