/* device.c - the table of devices. */
#include "runtime/exec/device.h"

static const device *const devices[] = {&device_cpu};

enum { N_DEVICE = (int)(sizeof devices / sizeof devices[0]) };

const device *device_at(int i)
{
    return i >= 0 && i < N_DEVICE ? devices[i] : NULL;
}

const device *device_find(const char *name)
{
    for (int i = 0; i < N_DEVICE; i++)
        if (strcmp(devices[i]->name, name) == 0)
            return devices[i];
    return NULL;
}
