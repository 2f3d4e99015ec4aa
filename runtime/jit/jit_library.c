#include "runtime/jit/jit_library.h"

#include "runtime/base/library_path.h"
#include <dlfcn.h>
#include <stdatomic.h>
#include <string.h>

void jit_library_path(strbuf *out)
{
    library_path(CODEGEN_LIBRARY, "WEFT_LLVM", out);
}

/* ---- loading ---- */

static weft_status open_library(weft_diag *dg, const char *path, const codegen **out_c)
{
    static const codegen_host host = {.fail = weft_fail, .put = strbuf_put};
    void *lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!lib)
        return weft_fail(dg, W1607, WEFT_NOWHERE, "%s", dlerror());
    weft_codegen_fn *entry;
    void *found = dlsym(lib, CODEGEN_ENTRY);
    memcpy(&entry, &found, sizeof entry);
    const codegen *c = entry ? entry(&host) : NULL;
    if (!c || strcmp(c->build, codegen_build_id()) != 0) {
        weft_status st =
            weft_fail(dg, W1607, WEFT_NOWHERE, "%s is of another build of Weft: %s, this one is %s",
                      path, c ? c->build : "unknown", codegen_build_id());
        dlclose(lib);
        return st;
    }
    *out_c = c;
    return WEFT_OK;
}

static _Atomic(const codegen *) loaded;

weft_status jit_library(weft_diag *dg, const codegen **out_c)
{
    const codegen *c = atomic_load(&loaded);
    strbuf path = {0};
    weft_status st = WEFT_OK;
    if (!c) {
        jit_library_path(&path);
        st = path.n ? open_library(dg, path.p, &c)
                    : weft_fail(dg, W1607, WEFT_NOWHERE,
                                "generating code needs " CODEGEN_LIBRARY ", which is not there");
        strbuf_free(&path);
    }
    if (st != WEFT_OK)
        return st;
    atomic_store(&loaded, c); /* whoever else loads it at the same time finds the same */
    *out_c = c;
    return WEFT_OK;
}
