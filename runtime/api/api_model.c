/* api_model.c - the public interface: models. */
#include "runtime/api/api_impl.h"

#include "runtime/base/mem.h"

static weft_status model_finish(weft_diag *dg, weft_status st, model_file *file,
                                const weft_model_options *options, weft_model **out_model)
{
    if (st != WEFT_OK)
        return st;
    weft_model *m = mem_alloc(sizeof *m);
    *m = (weft_model){.file = file};
    bind_options how = {.arch = options->arch};
    st = model_bind(dg, file, &how, &m->bound);
    if (st != WEFT_OK) {
        weft_model_close(m);
        return st;
    }
    *out_model = m;
    return WEFT_OK;
}

static model_file_options file_options(const weft_model_options *o)
{
    return (model_file_options){.no_mmap = o->no_mmap, .mlock = o->mlock, .guard = o->guard};
}

weft_status weft_model_open(weft_diag *dg, const char *path, const weft_model_options *options,
                            weft_model **out_model)
{
    API_SCOPE(dg);
    if (!dg || !path || !out_model)
        return api_lacks(dg, "weft_model_open", "a path");
    weft_model_options o;
    WEFT_TRY(api_take(dg, "weft_model_open", options, &o, sizeof o));
    model_file_options how = file_options(&o);
    model_file *file = NULL;
    weft_status st = model_file_open(dg, path, &how, &file);
    return model_finish(dg, st, file, &o, out_model);
}

weft_status weft_model_open_fd(weft_diag *dg, int fd, const char *name,
                               const weft_model_options *options, weft_model **out_model)
{
    API_SCOPE(dg);
    if (!dg || !name || !out_model)
        return api_lacks(dg, "weft_model_open_fd", "a name");
    weft_model_options o;
    WEFT_TRY(api_take(dg, "weft_model_open_fd", options, &o, sizeof o));
    model_file_options how = file_options(&o);
    model_file *file = NULL;
    weft_status st = model_file_open_fd(dg, fd, name, &how, &file);
    return model_finish(dg, st, file, &o, out_model);
}

weft_status weft_model_open_memory(weft_diag *dg, const void *data, size_t bytes, const char *name,
                                   const weft_model_options *options, weft_model **out_model)
{
    API_SCOPE(dg);
    if (!dg || !data || !name || !out_model)
        return api_lacks(dg, "weft_model_open_memory", "data or a name");
    weft_model_options o;
    WEFT_TRY(api_take(dg, "weft_model_open_memory", options, &o, sizeof o));
    model_file *file = NULL;
    weft_status st = model_file_open_memory(dg, data, bytes, name, &file);
    return model_finish(dg, st, file, &o, out_model);
}

void weft_model_close(weft_model *m)
{
    if (!m)
        return;
    bound_model_destroy(m->bound);
    model_file_close(m->file);
    mem_free(m);
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
    for (size_t i = 0; i < m->bound->params.n; i++) {
        const bound_param *p = &m->bound->params.at[i];
        if (str_eqz(p->name, name) && p->layer < 0 && p->value.kind == KEY_FLOAT) {
            *out_value = p->value.number;
            return true;
        }
    }
    return false;
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

const model_file *api_model_file(const weft_model *m)
{
    return m->file;
}
