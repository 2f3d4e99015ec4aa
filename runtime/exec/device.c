/* device.c - devices of any kind, and weights on them. */
#include "runtime/exec/device.h"

void device_close(device *d)
{
    if (d)
        d->kind->close(d);
}

/* ---- weights ---- */

static const weights_options plain = {.threads = 1};

weft_status weights_create(weft_diag *dg, device *dev, const plan *p, const weight_source *src,
                           const weights_options *opt, weights **out_w)
{
    device *d = dev ? dev : device_cpu();
    return d->kind->weights_load(dg, d, p, src, opt ? opt : &plain, out_w);
}

void weights_destroy(weights *w)
{
    if (w)
        w->dev->kind->weights_free(w);
}

weights_memory weights_need(device *dev, const plan *p, const weight_source *src,
                            const weights_options *opt)
{
    device *d = dev ? dev : device_cpu();
    return d->kind->weights_need(d, p, src, opt ? opt : &plain);
}

weights_memory weights_bytes(const weights *w)
{
    return w->dev->kind->weights_bytes(w);
}

weft_status weights_check(weft_diag *dg, const weights *w)
{
    return w->dev->kind->weights_check(dg, w);
}

device_rates device_rates_of(const device *d)
{
    return d->kind->rates ? d->kind->rates(d) : (device_rates){0};
}
