/* devices.c - the kinds of device by name. */
#include "runtime/exec/cuda_device.h"
#include "runtime/exec/metal_device.h"

#include <string.h>

static const device_kind *const kinds[] = {&device_kind_cpu, &device_kind_cuda, &device_kind_metal};

enum { KINDS = sizeof kinds / sizeof *kinds };

const device_kind *device_kind_find(const char *name)
{
    size_t n = strcspn(name, ":");
    for (size_t i = 0; i < KINDS; i++)
        if (strlen(kinds[i]->name) == n && memcmp(kinds[i]->name, name, n) == 0)
            return kinds[i];
    return NULL;
}

weft_status device_open(weft_diag *dg, const char *name, device **out_d)
{
    const char *colon = strchr(name, ':');
    const device_kind *kind = device_kind_find(name);
    if (kind)
        return kind->open(dg, colon ? colon + 1 : NULL, out_d);
    weft_status status = weft_fail(dg, W1605, WEFT_NOWHERE, "there is no device '%s'", name);
    for (size_t i = 0; i < KINDS; i++)
        weft_note(dg, "there is %s", kinds[i]->name);
    return status;
}
