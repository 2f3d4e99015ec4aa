#include "runtime/jit/jit.h"

#include "runtime/base/mem.h"
#include "runtime/exec/code_cache.h"
#include "runtime/jit/code_key.h"
#include "runtime/jit/elf_code.h"
#include "runtime/jit/jit_library.h"
#include "runtime/jit/perf_map.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

/* One of the two is set. */
typedef struct {
    elf_code *linked;
    const codegen *by;
    code *loaded;
} jit_code;

/* ---- names ---- */

/* All that code may refer to: kernels, and the executor's helpers. */
static code_symbol *symbols(size_t *out_n)
{
    int n_row, n_helper;
    const kernel_row *row = kernel_rows(&n_row);
    const code_symbol *helper = code_helpers(&n_helper);
    code_symbol *all = mem_alloc(mem_product((size_t)(n_row + n_helper), sizeof *all));
    size_t n = 0;
    for (int i = 0; i < n_row; i++)
        if (row[i].fn)
            all[n++] = (code_symbol){row[i].symbol, (const void *)row[i].fn};
    for (int i = 0; i < n_helper; i++)
        all[n++] = helper[i];
    *out_n = n;
    return all;
}

static code_name name_of(const plan *p)
{
    struct utsname os;
    strbuf maker = {0};
    if (uname(&os) != 0)
        os = (struct utsname){.machine = "unknown"};
    strbuf_add(&maker, "%s LLVM %s %s", codegen_build_id(), WEFT_LLVM_VERSION, os.machine);
    code_key key = code_key_of(p, maker.p, 0);
    strbuf_free(&maker);
    return (code_name){key.lo, key.hi};
}

/* ---- code ---- */

static void release(void *own)
{
    jit_code *c = own;
    if (!c)
        return;
    elf_code_unload(c->linked);
    if (c->loaded)
        c->by->unload(c->loaded);
    mem_free(c);
}

static bool fits(const plan *p, const plan_code *table)
{
    return table && table->n_bucket == p->n_bucket;
}

/* From the cache; NULL: there is none, or none that can be used. */
static const plan_code *find(weft_diag *dg, const plan *p, const code_options *how, code_name name,
                             const code_symbol *known, size_t n_known, jit_code *c)
{
    strbuf object = {0};
    const plan_code *table = NULL;
    if (code_cache_get(dg, how->cache_dir, name, &object) &&
        elf_code_load(dg, "generated code on disk", object.p, object.n, known, n_known,
                      &c->linked) == WEFT_OK)
        table = elf_code_find(c->linked, CODE_SYMBOL);
    if (fits(p, table))
        perf_map_add(p, table, strbuf_view(&object));
    strbuf_free(&object);
    if (fits(p, table))
        return table;
    elf_code_unload(c->linked);
    c->linked = NULL;
    return NULL;
}

static weft_status make_new(weft_diag *dg, const plan *p, strbuf *object, const code_symbol *known,
                            size_t n_known, jit_code *c, const plan_code **out_code)
{
    void *found;
    const code_job job = {.p = p, .bucket = -1, .pic = true, .debug = true, .few_rows = true};
    WEFT_TRY(jit_library(dg, &c->by));
    WEFT_TRY(c->by->compile(dg, &job, CODE_OBJECT, object));
    WEFT_TRY(c->by->load(dg, object->p, object->n, known, n_known, &c->loaded));
    WEFT_TRY(c->by->find(dg, c->loaded, CODE_SYMBOL, &found));
    WEFT_ASSERT(fits(p, found));
    perf_map_add(p, found, strbuf_view(object));
    *out_code = found;
    return WEFT_OK;
}

static void keep(weft_diag *dg, const plan *p, const code_options *how, code_name name, str object)
{
    char what[256];
    snprintf(what, sizeof what, "%s, kernels up to %s", p->model, p->level);
    code_cache_put(dg, how->cache_dir, name, what, object);
}

static weft_status make(weft_diag *dg, const plan *p, const code_options *how,
                        const plan_code **out_code, void **out_own)
{
    jit_code *c = mem_alloc(sizeof *c);
    *c = (jit_code){0};
    size_t n_known;
    code_symbol *known = symbols(&n_known);
    code_name name = name_of(p);
    bool cached = how->use_cache && !getenv("WEFT_DEBUG_CODE"); /* gdb is told of new code alone */
    const plan_code *table = cached ? find(dg, p, how, name, known, n_known, c) : NULL;
    weft_status st = WEFT_OK;
    if (!table) {
        strbuf object = {0};
        st = make_new(dg, p, &object, known, n_known, c, &table);
        if (st == WEFT_OK && cached)
            keep(dg, p, how, name, strbuf_view(&object));
        strbuf_free(&object);
    }
    mem_free(known);
    if (st != WEFT_OK) {
        release(c);
        return st;
    }
    *out_code = table;
    *out_own = c;
    return WEFT_OK;
}

const code_maker *jit_maker(void)
{
    static const code_maker maker = {make, release};
    return &maker;
}
