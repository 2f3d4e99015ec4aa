/* check_jit_rows.c - maps made by codegen/ as kernels of variant `jit`, of each width of vectors.
 *
 * What they compute is compared with the reference like any kernel's and, bit by bit, with the kernel whose arithmetic they
 * have: that is what codegen/ promises. Where functions come from is up to the program (jit_function): check_jit.c
 * compiles them, check_emit.c writes them into an object for another architecture, where check_emitted.c finds them. */
#include "tests/kernels/check_jit.h"

#include <math.h>
#include <stdlib.h>

static bool same_bits(const float *a, const float *b)
{
    return memcmp(a, b, sizeof *a) == 0 || (isnan(*a) && isnan(*b));
}

/* The kernel that a function has the arithmetic of, into other memory; then the function; then both compared. */
static void run(const jit_level *level, const kargs *k, const kthread *t, int64_t begin,
                int64_t end)
{
    const kernel_row *like = kernel_by_symbol(level->like);
    like = like && like->fn && !check_times() ? like : NULL;
    kernel_fn *fn = jit_function(k, level);
    kargs other = *k;
    kpart p = kpart_of(k, k->size.map.elems, begin, end);
    for (int i = 0; like && i < K_OUT_MAX; i++)
        if (k->out[i])
            other.out[i] = calloc((size_t)k->size.map.rows, (size_t)k->out_pitch[i]);
    if (like)
        like->fn(&other, t, begin, end);
    fn(k, t, begin, end);
    for (int i = 0; like && i < K_OUT_MAX; i++) {
        for (int64_t row = p.row; k->out[i] && row < p.row_end; row++)
            for (int64_t col = p.col; col < p.col_end; col++) {
                int64_t at = row * k->out_pitch[i] + col * (int64_t)sizeof(float);
                if (!same_bits((float *)(void *)((char *)k->out[i] + at),
                               (float *)(void *)((char *)other.out[i] + at)))
                    check_fail("its bits are not those of the kernel it is made after");
            }
        if (k->out[i])
            free(other.out[i]);
    }
}

#define LEVEL(name, level, like)                                                                   \
    static void k_map_##name(const kargs *k, const kthread *t, int64_t begin, int64_t end)         \
    {                                                                                              \
        static const jit_level own = {level, like};                                                \
        run(&own, k, t, begin, end);                                                               \
    }
#if defined(__x86_64__) && !defined(CHECK_FOR_AARCH64)
LEVEL(jit_c, "c", "k_map_c")
LEVEL(jit_avx512, "avx512", "k_map_avx512")
LEVEL(jit_fused, "avx2", "k_map_neon") /* its arithmetic; the kernel itself is not here */
#else
LEVEL(jit_c, "c", "k_map_c")
LEVEL(jit_neon, "neon", "k_map_neon")
#endif

const kernel_row *check_more_rows(int *out_n)
{
#define ROW(name, as)                                                                              \
    {.op = KOP_map,                                                                                \
     .type = DT_COUNT,                                                                             \
     .variant = VARIANT_##as,                                                                      \
     .most = INT64_MAX,                                                                            \
     .symbol = "k_map_" #name,                                                                     \
     .fn = k_map_##name,                                                                           \
     .unit = KUNIT_ROW,                                                                            \
     .scratch = KSCRATCH_REGS /* of the kernel it is compared with */},
    static const kernel_row rows[] = {
#if defined(__x86_64__) && !defined(CHECK_FOR_AARCH64)
        ROW(jit_c, c) ROW(jit_avx512, avx512) ROW(jit_fused, avx2)
#else
        ROW(jit_c, c) ROW(jit_neon, c)
#endif
    };
    jit_open();
    *out_n = (int)(sizeof rows / sizeof rows[0]);
    return rows;
}
