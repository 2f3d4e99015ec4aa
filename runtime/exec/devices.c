/* devices.c - the kinds of device by name. */
#include "runtime/exec/cuda_device.h"

#include <string.h>

static const device_kind *const kinds[] = {&device_kind_cpu, &device_kind_cuda};

enum { KINDS = sizeof kinds / sizeof *kinds };

weft_status device_open(weft_diag *dg, const char *name, device **out_d)
{
    const char *colon = strchr(name, ':');
    size_t n = colon ? (size_t)(colon - name) : strlen(name);
    for (size_t i = 0; i < KINDS; i++)
        if (strlen(kinds[i]->name) == n && memcmp(kinds[i]->name, name, n) == 0)
            return kinds[i]->open(dg, colon ? colon + 1 : NULL, out_d);
    weft_status status = weft_fail(dg, W1605, WEFT_NOWHERE, "there is no device '%s'", name);
    for (size_t i = 0; i < KINDS; i++)
        weft_note(dg, "there is %s", kinds[i]->name);
    return status;
}
