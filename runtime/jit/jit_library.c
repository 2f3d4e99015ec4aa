#include "runtime/jit/jit_library.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- where ---- */

/* The folder of the program or library that has this function; empty: the system does not say. */
static void own_folder(strbuf *out)
{
    static const char here;
    Dl_info info;
    char *path = NULL;
    if (dladdr(&here, &info) && info.dli_fname)
        path = realpath(strchr(info.dli_fname, '/') ? info.dli_fname : "/proc/self/exe", NULL);
    char *end = path ? strrchr(path, '/') : NULL;
    if (end)
        strbuf_put(out, (str){path, (size_t)(end - path)});
    free(path);
}

/* Folders behind that one, in the order in which they are looked at. */
static const char *const places[] = {"", "/..", "/weft", "/../lib/weft",
                                     "/../" WEFT_LIBDIR "/weft"};

void jit_library_path(strbuf *out)
{
    const char *named = getenv("WEFT_LLVM");
    if (named && named[0]) {
        strbuf_add(out, "%s", named);
        return;
    }
    strbuf folder = {0}, path = {0};
    own_folder(&folder);
    for (size_t i = 0; folder.n && path.n == 0 && i < sizeof places / sizeof *places; i++) {
        strbuf_put(&path, strbuf_view(&folder));
        strbuf_add(&path, "%s/" CODEGEN_LIBRARY, places[i]);
        if (access(path.p, R_OK) != 0)
            strbuf_reset(&path);
    }
    if (path.n == 0)
        strbuf_add(&path, "%s", WEFT_INSTALLED_LLVM);
    if (access(path.p, R_OK) == 0)
        strbuf_put(out, strbuf_view(&path));
    strbuf_free(&folder);
    strbuf_free(&path);
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
