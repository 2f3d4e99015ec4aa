/* cuda_library.c - libweft_cuda, found and loaded when a card is opened. It holds the kernels, and links nothing. */
#include "runtime/exec/cuda_device.h"

#include "kernels/cuda/image.h"
#include "runtime/base/library_path.h"
#include <dlfcn.h>
#include <stdatomic.h>
#include <string.h>

void cuda_library_path(strbuf *out)
{
    library_path(CUDA_LIBRARY, "WEFT_CUDA", out);
}

static weft_status open_library(weft_diag *dg, const char *path, const weft_cuda_image **out_image)
{
    void *lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!lib)
        return weft_fail(dg, W1609, WEFT_NOWHERE, "%s", dlerror());
    weft_cuda_fn *entry;
    void *found = dlsym(lib, CUDA_ENTRY);
    memcpy(&entry, &found, sizeof entry);
    const weft_cuda_image *c = entry ? entry() : NULL;
    if (!c || strcmp(c->build, cuda_build_id()) != 0) {
        weft_status st =
            weft_fail(dg, W1609, WEFT_NOWHERE, "%s is of another build of Weft: %s, this one is %s",
                      path, c ? c->build : "unknown", cuda_build_id());
        dlclose(lib);
        return st;
    }
    *out_image = c;
    return WEFT_OK;
}

weft_status cuda_library(weft_diag *dg, const weft_cuda_image **out_image)
{
    static _Atomic(const weft_cuda_image *) loaded;
    const weft_cuda_image *image = atomic_load(&loaded);
    strbuf path = {0};
    weft_status st = WEFT_OK;
    if (!image) {
        cuda_library_path(&path);
        st = path.n ? open_library(dg, path.p, &image)
                    : weft_fail(dg, W1609, WEFT_NOWHERE,
                                "running on a card needs " CUDA_LIBRARY ", which is not there");
        strbuf_free(&path);
    }
    if (st != WEFT_OK)
        return st;
    atomic_store(&loaded, image); /* whoever else loads it at the same time finds the same */
    *out_image = image;
    return WEFT_OK;
}
