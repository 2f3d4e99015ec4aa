/* metal_library.c - libweft_metal, found and loaded when a GPU is opened: what of Weft is made with Metal. */
#include "runtime/exec/metal_device.h"

#include "runtime/base/library_path.h"
#include <dlfcn.h>
#include <stdatomic.h>
#include <string.h>

void metal_library_path(strbuf *out)
{
    library_path(METAL_LIBRARY, "WEFT_METAL", out);
}

static weft_status absent(weft_diag *dg)
{
#ifdef __APPLE__
    weft_status st = weft_fail(dg, W1614, WEFT_NOWHERE,
                               "running on the GPU needs " METAL_LIBRARY ", which is not there");
#else
    weft_status st = weft_fail(dg, W1614, WEFT_NOWHERE, "there is no Metal on this system");
#endif
    weft_note(dg, "there is cpu, and cuda where a card is");
    return st;
}

static weft_status open_library(weft_diag *dg, const char *path, const metal_driver **out_d)
{
    void *lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!lib)
        return weft_fail(dg, W1614, WEFT_NOWHERE, "%s", dlerror());
    weft_metal_fn *entry;
    void *found = dlsym(lib, METAL_ENTRY);
    memcpy(&entry, &found, sizeof entry);
    const metal_driver *d = entry ? entry() : NULL;
    if (!d || strcmp(d->build, metal_build_id()) != 0) {
        weft_status st =
            weft_fail(dg, W1614, WEFT_NOWHERE, "%s is of another build of Weft: %s, this one is %s",
                      path, d ? d->build : "unknown", metal_build_id());
        dlclose(lib);
        return st;
    }
    *out_d = d;
    return WEFT_OK;
}

weft_status metal_library(weft_diag *dg, const metal_driver **out_d)
{
    static _Atomic(const metal_driver *) loaded;
    const metal_driver *d = atomic_load(&loaded);
    strbuf path = {0};
    weft_status st = WEFT_OK;
    if (!d) {
        metal_library_path(&path);
        st = path.n ? open_library(dg, path.p, &d) : absent(dg);
        strbuf_free(&path);
    }
    if (st != WEFT_OK)
        return st;
    atomic_store(&loaded, d); /* whoever else loads it at the same time finds the same */
    *out_d = d;
    return WEFT_OK;
}
