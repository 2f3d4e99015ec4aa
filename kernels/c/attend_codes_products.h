/* attend_codes_products.h - the loops around products of whole numbers and codes, for attend_codes.h; lanes of a vector are
 * tokens or columns.
 *
 * The file that includes this defines vectors vf of WIDE floats, types codes_sums (of a vector's lanes) and codes_loaded (a
 * vector of codes), and
 *
 *     codes_load(at, half), codes_upper(code)   codes, of q4 the low nibbles; then the high ones
 *     sums_begin(x, g, half), sums_end(sums)    before the first quad; as floats
 *     quad_add(quad, code, sums, n_q, n_v)      a quad of n_v vectors for n_q queries
 *     codes_fetch(p)                            ask for a line of memory
 *     CODES_VECTORS(n_q)     vectors at a time: so many that sums do not wait for each other, and fit into registers
 *     CODES_NAME             what the products are called */
#ifdef CODES_NAME
#include "kernels/c/attend_codes_operand.h"

enum { CODES_LINE = 64 };

/* Lanes from `lane` on, n_v vectors of them; at each step so many lines from *hint on are asked for, up to the last. */
CODES_INLINE void products_at(const codes_whole *x, const codes_operand *codes, int64_t lane,
                              const char **hint, int64_t lines, float (*out)[ATTEND_KEYS],
                              bool half, int n_q, int n_v)
{
    const uint8_t *at = codes->at + lane * PAGE_QUAD;
    const char *last = lines ? codes->hint + codes->hint_bytes : NULL;
    codes_sums sums[CODES_TILE][4];
#pragma GCC unroll 4
    for (int g = 0; g < n_q; g++)
#pragma GCC unroll 4
        for (int v = 0; v < n_v; v++)
            sums[g][v] = sums_begin(x, g, half);
    for (int64_t i = 0; i < codes->quads; i += half ? 2 : 1) {
        codes_loaded code[4];
        for (int64_t j = 0; j < lines && *hint < last; j++, *hint += CODES_LINE)
            codes_fetch(*hint);
#pragma GCC unroll 4
        for (int v = 0; v < n_v; v++)
            code[v] = codes_load(at + v * WIDE * PAGE_QUAD, half);
        quad_add(&x->quad[i], code, sums, n_q, n_v);
#pragma GCC unroll 4
        for (int v = 0; half && v < n_v; v++)
            code[v] = codes_upper(code[v]);
        if (half)
            quad_add(&x->quad[i + 1], code, sums, n_q, n_v);
        at += codes->pitch;
    }
#pragma GCC unroll 4
    for (int g = 0; g < n_q; g++)
#pragma GCC unroll 4
        for (int v = 0; v < n_v; v++)
            vf_store(out[g] + lane + v * WIDE, sums_end(sums[g][v]));
}

CODES_INLINE void products_of(const codes_whole *x, const codes_operand *codes,
                              float (*out)[ATTEND_KEYS], bool half, int n_q)
{
    const int n_v = CODES_VECTORS(n_q);
    int64_t steps = codes->quads / (half ? 2 : 1), turns = codes->lanes / (n_v * WIDE), lane = 0;
    int64_t all = steps * turns, lines = 0;
    const char *hint = codes->hint;
    if (hint && all > 0)
        lines = (codes->hint_bytes / CODES_LINE + all - 1) / all;
    for (; lane + n_v * WIDE <= codes->lanes; lane += n_v * WIDE)
        products_at(x, codes, lane, &hint, lines, out, half, n_q, n_v);
    for (; lane < codes->lanes; lane += WIDE)
        products_at(x, codes, lane, &hint, 0, out, half, n_q, 1);
}

#define PRODUCTS(half, n)                                                                          \
    static void products_##half##_##n(const codes_whole *x, const codes_operand *codes,            \
                                      float(*out)[ATTEND_KEYS])                                    \
    {                                                                                              \
        products_of(x, codes, out, half, n);                                                       \
    }
PRODUCTS(0, 1)
PRODUCTS(0, 2)
PRODUCTS(0, 3)
PRODUCTS(0, 4)
PRODUCTS(1, 1)
PRODUCTS(1, 2)
PRODUCTS(1, 3)
PRODUCTS(1, 4)
#undef PRODUCTS

CODES_STATIC void CODES_NAME(const codes_whole *x, const codes_operand *codes, int64_t n_q,
                             float (*out)[ATTEND_KEYS])
{
    typedef void products_fn(const codes_whole *, const codes_operand *, float(*)[ATTEND_KEYS]);
    static products_fn *const by[2][CODES_TILE] = {
        {products_0_1, products_0_2, products_0_3, products_0_4},
        {products_1_1, products_1_2, products_1_3, products_1_4}};
    by[codes->half][n_q - 1](x, codes, out);
}

#endif
