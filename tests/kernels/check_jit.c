/* check_jit.c - maps made by codegen/ as kernels of variant `jit`, of each width of vectors.
 *
 * A case's arguments become a plan of one step, which is compiled, loaded and run. What it computes is compared with the
 * reference like any kernel's, and before that, bit by bit, with the kernel whose arithmetic it has: that is what
 * codegen/ promises. */
#include "tests/kernels/check_jit.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "codegen/codegen.h"
#include "runtime/exec/plan_code.h"

typedef struct {
    map_key key;
    const jit_level *level;
    code *c;
    kernel_fn *fn;
} made;

enum { KEPT = 64 };
static made kept[KEPT];
static int n_made;
static const codegen *gen;

static void stop(const char *what)
{
    fprintf(stderr, "check: %s\n", what);
    exit(2);
}

/* ---- compiling ---- */

static void stop_diag(weft_diag *dg)
{
    for (size_t i = 0; i < diag_count(dg); i++)
        fprintf(stderr, "check: " STR_FMT "\n", STR_ARG(diag_at(dg, i).message));
    exit(2);
}

static void load_generator(void)
{
    static codegen_host host;
    void *lib = dlopen(WEFT_LLVM_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    weft_codegen_fn *entry = lib ? (weft_codegen_fn *)dlsym(lib, CODEGEN_ENTRY) : NULL;
    if (!entry)
        stop(dlerror());
    host = codegen_host_here();
    gen = entry(&host);
    if (strcmp(gen->build, codegen_build_id()) != 0)
        stop("libweft_llvm is of another build");
}

static kernel_fn *compile(const kargs *k, const jit_level *level, code **out_c)
{
    weft_diag *dg = diag_create();
    plan_kernel kernel = {.name = level->like, .op = KOP_map, .type = DT_COUNT};
    plan_step s = map_step(k);
    plan_item item = {.n_step = 1};
    plan_bucket b = {
        .n_tok_max = 1, .n_step = 1, .n_item = 1, .n_phase = 1, .step = &s, .item = &item};
    plan p = {.level = level->level,
              .n_kernel = 1,
              .kernel = &kernel,
              .n_bucket = 1,
              .bucket = &b,
              .code = k->code,
              .n_code = (int32_t)k->n_code};
    code_job job = {.p = &p, .bucket = -1, .pic = true};
    strbuf object = {0};
    void *at = NULL;
    if (gen->compile(dg, &job, CODE_OBJECT, &object) != WEFT_OK ||
        gen->load(dg, object.p, object.n, NULL, 0, out_c) != WEFT_OK ||
        gen->find(dg, *out_c, CODE_SYMBOL, &at) != WEFT_OK)
        stop_diag(dg);
    strbuf_free(&object);
    diag_destroy(dg);
    return ((const plan_code *)at)->bucket[0].map[0];
}

static kernel_fn *function_for(const kargs *k, const jit_level *level)
{
    map_key key = map_key_of(k);
    for (int i = 0; i < KEPT && i < n_made; i++)
        if (kept[i].level == level && map_key_equal(&kept[i].key, &key))
            return kept[i].fn;
    made *m = &kept[n_made++ % KEPT];
    if (n_made > KEPT)
        gen->unload(m->c);
    *m = (made){.key = key, .level = level};
    m->fn = compile(k, level, &m->c);
    return m->fn;
}

/* ---- running ---- */

static bool same_bits(const float *a, const float *b)
{
    return memcmp(a, b, sizeof *a) == 0 || (isnan(*a) && isnan(*b));
}

/* The kernel that a function has the arithmetic of, into other memory; then the function; then both compared. */
static void run(const jit_level *level, const kargs *k, const kthread *t, int64_t begin,
                int64_t end)
{
    const kernel_row *like = kernel_by_symbol(level->like);
    like = like && like->fn ? like : NULL;
    kernel_fn *fn = function_for(k, level);
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
#if defined(__x86_64__)
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
#if defined(__x86_64__)
        ROW(jit_c, c) ROW(jit_avx512, avx512) ROW(jit_fused, avx2)
#else
        ROW(jit_c, c) ROW(jit_neon, neon)
#endif
    };
    load_generator();
    *out_n = (int)(sizeof rows / sizeof rows[0]);
    return rows;
}
