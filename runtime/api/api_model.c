/* api_model.c - the public interface: models. */
#include "runtime/api/api_impl.h"

static weft_status model_open(weft_diag *dg, const char *call, const weft_model_options *options,
                              api_source from, weft_model **out_model)
{
    weft_model_options o;
    WEFT_TRY(api_take(dg, call, options, &o, sizeof o));
    from.file = (model_file_options){.no_mmap = o.no_mmap, .mlock = o.mlock, .guard = o.guard};
    from.bind.arch = o.arch;
    return api_model_open(dg, &from, out_model);
}

weft_status weft_model_open(weft_diag *dg, const char *path, const weft_model_options *options,
                            weft_model **out_model)
{
    API_SCOPE(dg);
    if (!dg || !path || !out_model)
        return api_lacks(dg, "weft_model_open", "a path");
    return model_open(dg, "weft_model_open", options, (api_source){.path = path}, out_model);
}

weft_status weft_model_open_fd(weft_diag *dg, int fd, const char *name,
                               const weft_model_options *options, weft_model **out_model)
{
    API_SCOPE(dg);
    if (!dg || !name || !out_model)
        return api_lacks(dg, "weft_model_open_fd", "a name");
    return model_open(dg, "weft_model_open_fd", options, (api_source){.fd = fd, .name = name},
                      out_model);
}

weft_status weft_model_open_memory(weft_diag *dg, const void *data, size_t bytes, const char *name,
                                   const weft_model_options *options, weft_model **out_model)
{
    API_SCOPE(dg);
    if (!dg || !data || !name || !out_model)
        return api_lacks(dg, "weft_model_open_memory", "data or a name");
    return model_open(dg, "weft_model_open_memory", options,
                      (api_source){.data = data, .bytes = bytes, .name = name}, out_model);
}

weft_status weft_model_check(weft_diag *dg, const weft_model *m)
{
    API_SCOPE(dg);
    if (!dg || !m)
        return api_lacks(dg, "weft_model_check", "a model");
    return model_file_check(dg, m->file);
}

const char *weft_model_name(const weft_model *m)
{
    return m->bound->graph->model.p; /* arena_str ends it with a NUL */
}

bool weft_model_int(const weft_model *m, const char *name, int64_t *out_value)
{
    return bound_model_int(m->bound, name, out_value);
}

bool weft_model_float(const weft_model *m, const char *name, double *out_value)
{
    const value *v = bound_model_param(m->bound, name);
    return value_kind_of(v) == VALUE_FLOAT && value_float(v, out_value);
}

uint64_t weft_model_bytes(const weft_model *m)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < model_file_tensor_count(m->file); i++)
        bytes += model_file_tensor_at(m->file, i)->bytes;
    return bytes;
}

uint64_t weft_model_token_bytes(const weft_model *m)
{
    enum { FEW = 1 << 20, MORE = FEW + 64 }; /* beyond any window but those that hide nothing */
    API_SCOPE_OR(0);
    weft_session_options few = {.context = FEW}, more = {.context = MORE};
    uint64_t few_bytes = api_state_bytes(m, &few), more_bytes = api_state_bytes(m, &more);
    return more_bytes == UINT64_MAX ? 0 : (more_bytes - few_bytes) / (MORE - FEW);
}

int64_t weft_model_context(const weft_model *m)
{
    int64_t context = 0;
    return bound_model_context(m->bound, &context) ? context : 0;
}
