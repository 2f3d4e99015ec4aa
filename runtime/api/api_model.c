/* api_model.c - the public interface: models of any kind. */
#include "runtime/api/api_impl.h"

void weft_model_close(weft_model *m)
{
    if (m)
        m->kind->close(m);
}

weft_status weft_model_check(weft_diag *dg, const weft_model *m)
{
    API_SCOPE(dg);
    if (!dg || !m)
        return api_lacks(dg, "weft_model_check", "a model");
    return m->weights->kind->check(dg, m->weights);
}

const char *weft_model_name(const weft_model *m)
{
    return m->name;
}

bool weft_model_int(const weft_model *m, const char *name, int64_t *out_value)
{
    const value *v = m->kind->param(m, name);
    return value_kind_of(v) == VALUE_INT && value_int(v, out_value);
}

bool weft_model_float(const weft_model *m, const char *name, double *out_value)
{
    const value *v = m->kind->param(m, name);
    return value_kind_of(v) == VALUE_FLOAT && value_float(v, out_value);
}

uint64_t weft_model_bytes(const weft_model *m)
{
    const weight_source *src = m->weights;
    uint64_t bytes = 0;
    for (size_t i = 0; i < src->kind->count(src); i++)
        bytes += src->kind->tensor(src, i).bytes;
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
    return m->context;
}
