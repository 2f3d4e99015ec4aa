/* check_jit.c - generated maps for check_jit_rows.c: a case's arguments become a plan of one step, which is compiled and
 * loaded. */
#include "tests/kernels/check_jit.h"

#include <dlfcn.h>
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

void jit_open(void)
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
    plan_bucket b = {.n_tok_max = 1, .n_step = 1, .step = &s}; /* no items: only the map */
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

kernel_fn *jit_function(const kargs *k, const jit_level *level)
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
