/* cuda_driver.c - libcuda.so.1 loaded, and its functions by their names. */
#include "runtime/exec/cuda_driver.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

static const char *const names[] = {
#define CUDA_FN(name, suffix, args) #name suffix,
#include "runtime/exec/cuda_driver.def"
#undef CUDA_FN
};

enum { N_FN = sizeof names / sizeof *names };
_Static_assert(sizeof(cuda_driver) == N_FN * sizeof(void *), "a table of functions, nothing else");

/* Fill the table; the name of the first function that the library has not, else NULL. */
static const char *fill(void *lib, cuda_driver *d)
{
    for (size_t i = 0; i < N_FN; i++) {
        void *found = dlsym(lib, names[i]);
        if (!found)
            return names[i];
        memcpy((char *)d + i * sizeof found, &found, sizeof found);
    }
    return NULL;
}

/* The driver counts 13.1 as 13010. */
static weft_status check_version(weft_diag *dg, const cuda_driver *d)
{
    int v = 0;
    cu_result r = d->cuDriverGetVersion(&v);
    if (r != CU_OK || v < CUDA_VERSION_LEAST)
        return weft_fail(dg, W1608, WEFT_NOWHERE,
                         "the CUDA driver is too old: it is for CUDA %d.%d, %d.%d is needed",
                         v / 1000, v % 1000 / 10, CUDA_VERSION_LEAST / 1000,
                         CUDA_VERSION_LEAST % 1000 / 10);
    r = d->cuInit(0);
    if (r == CU_NO_DEVICE)
        return weft_fail(dg, W1608, WEFT_NOWHERE, "the CUDA driver finds no card");
    const char *name = NULL;
    if (r != CU_OK && d->cuGetErrorName(r, &name) != CU_OK)
        name = NULL;
    return r == CU_OK ? WEFT_OK
                      : weft_fail(dg, W1608, WEFT_NOWHERE,
                                  "the CUDA driver cannot be initialised: %s (%d)",
                                  name ? name : "unknown error", (int)r);
}

static weft_status load(weft_diag *dg, cuda_driver *to)
{
    void *lib = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!lib)
        return weft_fail(dg, W1608, WEFT_NOWHERE, "there is no CUDA driver: %s", dlerror());
    cuda_driver d = {0};
    const char *missing = fill(lib, &d);
    weft_status st = missing ? weft_fail(dg, W1608, WEFT_NOWHERE,
                                         "the CUDA driver is too old: it has no %s", missing)
                             : check_version(dg, &d);
    if (st == WEFT_OK)
        *to = d; /* and lib stays */
    else
        dlclose(lib);
    return st;
}

weft_status cuda_driver_load(weft_diag *dg, const cuda_driver **out_d)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static cuda_driver driver; /* these two are guarded by the lock until loaded */
    static bool loaded;
    pthread_mutex_lock(&lock);
    weft_status st = loaded ? WEFT_OK : load(dg, &driver);
    loaded = st == WEFT_OK;
    pthread_mutex_unlock(&lock);
    if (st == WEFT_OK)
        *out_d = &driver;
    return st;
}
