#include "runtime/api/api_device.h"

#include "runtime/exec/device.h"
#include <string.h>

bool api_device_is_card(const char *name)
{
    const device_kind *kind = name ? device_kind_find(name) : NULL;
    return kind && kind->absent;
}

/* Can a card not do what is asked? The words for it; NULL: it can. */
static const char *beyond_cards(const api_wanted *w)
{
    const weft_session_options *o = &w->how;
    if (w->be)
        return "a level of instructions";
    if (o->exec != WEFT_EXEC_PLAN)
        return o->exec == WEFT_EXEC_REF ? "the reference" : "native code";
    return NULL;
}

backend_rounding api_rounding(const weft_session_options *o)
{
    return o->round_bf16 ? ROUNDING_BF16 : o->exact ? ROUNDING_NONE : ROUNDING_USUAL;
}

bool api_device_divides(const weft_session_options *o, int64_t layers)
{
    return o->device_layers > 0 && (o->device_layers <= layers || layers == 0);
}

/* What a session whose layers are on two devices cannot have. */
static weft_status check_layers(weft_diag *dg, const api_wanted *w, int64_t layers)
{
    const weft_session_options *o = &w->how;
    if (!api_device_divides(o, layers) || !o->plan)
        return WEFT_OK;
    return weft_fail(
        dg, W1611, WEFT_NOWHERE,
        "%lld of the model's %lld layers on a card, the others on the CPU: a plan file "
        "is for one device",
        (long long)o->device_layers, (long long)layers);
}

static weft_status open_card(weft_diag *dg, const char *name, const api_wanted *w, api_plan *out)
{
    if (w->purpose == API_RUNS) {
        WEFT_TRY(device_open(dg, name, &out->dev));
        out->run.dev = out->dev;
        return WEFT_OK;
    }
    weft_diag *quiet = diag_create();
    if (w->purpose == API_PLANS || device_open(quiet, name, &out->dev) != WEFT_OK)
        out->dev = NULL;
    diag_destroy(quiet);
    out->run.dev = out->dev ? out->dev : device_kind_find(name)->absent();
    return WEFT_OK;
}

/* A card if there is one that can do it, else the CPU; but what the environment asks of cards has to be possible. */
static weft_status open_any(weft_diag *dg, const api_wanted *w, api_plan *out)
{
    static const char *const cards[] = {"cuda", "metal"};
    weft_diag *quiet = diag_create();
    weft_status st = WEFT_OK;
    out->dev = NULL;
    for (size_t i = 0; i < sizeof cards / sizeof *cards && !out->dev; i++)
        if (beyond_cards(w) || w->how.plan || device_open(quiet, cards[i], &out->dev) != WEFT_OK)
            out->dev = NULL;
    for (size_t i = 0; i < diag_count(quiet) && st == WEFT_OK; i++)
        if (diag_at(quiet, i).code == W1618)
            st = weft_fail(dg, W1618, WEFT_NOWHERE, STR_FMT, STR_ARG(diag_at(quiet, i).message));
    diag_destroy(quiet);
    if (out->dev)
        out->run.dev = out->dev;
    return st;
}

weft_status api_device_choose(weft_diag *dg, const api_wanted *w, int64_t layers, api_plan *out,
                              const struct backend **out_be)
{
    const weft_session_options *o = &w->how;
    const char *name = o->device && o->device[0] ? o->device : "cpu", *beyond = beyond_cards(w);
    *out_be = NULL;
    if (strcmp(name, "cpu") == 0 || o->device_layers < 0)
        return WEFT_OK;
    WEFT_TRY(check_layers(dg, w, layers));
    if (strcmp(name, "auto") == 0) {
        WEFT_TRY(open_any(dg, w, out));
    } else if (!api_device_is_card(name)) {
        WEFT_TRY(device_open(dg, name, &out->dev)); /* which says what there is */
    } else if (beyond) {
        return weft_fail(dg, W1406, WEFT_NOWHERE, "cards run compiled plans: %s is for the CPU",
                         beyond);
    } else {
        WEFT_TRY(open_card(dg, name, w, out));
    }
    if (!out->run.dev)
        return WEFT_OK;
    const char *kind = out->run.dev->kind->name;
    *out_be = backend_card(kind, api_rounding(o));
    return *out_be ? WEFT_OK
                   : weft_fail(dg, W1603, WEFT_NOWHERE, "no kernels of %s round to bf16", kind);
}
