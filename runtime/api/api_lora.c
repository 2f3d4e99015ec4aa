/* api_lora.c - the public interface: adapters, their slots, and who uses them. */
#include "runtime/api/api_impl.h"

#include "runtime/base/mem.h"

weft_status weft_adapter_open(weft_diag *dg, const weft_model *m, const char *path,
                              weft_adapter **out_adapter)
{
    API_SCOPE(dg);
    if (!dg || !m || !path || !out_adapter)
        return api_lacks(dg, "weft_adapter_open", "a model or a path");
    adapter *from;
    WEFT_TRY(adapter_open(dg, path, m->bound, &from));
    weft_adapter *a = mem_alloc(sizeof *a);
    *a = (weft_adapter){.from = from, .model = model_file_hash(m->file)};
    *out_adapter = a;
    return WEFT_OK;
}

void weft_adapter_close(weft_adapter *a)
{
    if (!a)
        return;
    adapter_close(a->from);
    mem_free(a);
}

int64_t weft_adapter_rank(const weft_adapter *a)
{
    return a->from->rank_max;
}

weft_status weft_lora_load(weft_diag *dg, weft_session *s, int32_t slot, const weft_adapter *a)
{
    API_SCOPE(dg);
    if (!dg || !s || !a)
        return api_lacks(dg, "weft_lora_load", "a session or an adapter");
    const adapter *from = a->from;
    if (a->model.hi != s->model.hi || a->model.lo != s->model.lo)
        return weft_fail(dg, W0702, WEFT_NOWHERE,
                         "%s was opened for another model than the session's", from->path);
    adapter_part *part = mem_alloc(mem_product(from->n_site + 1, sizeof *part));
    for (size_t i = 0; i < from->n_site; i++) {
        const adapter_site *at = &from->site[i];
        part[i] = (adapter_part){.weight = at->name.p,
                                 .index = at->index,
                                 .rank = at->rank,
                                 .in = at->in,
                                 .out = at->out,
                                 .a = at->a,
                                 .b = at->b,
                                 .scale = at->scale};
    }
    adapter_source src = {
        .name = from->path, .hash = from->hash, .n_part = from->n_site, .part = part};
    weft_status st = session_lora_load(dg, s->run, slot, &src);
    mem_free(part);
    return st;
}

weft_status weft_lora_unload(weft_diag *dg, weft_session *s, int32_t slot)
{
    API_SCOPE(dg);
    if (!dg || !s)
        return api_lacks(dg, "weft_lora_unload", "a session");
    return session_lora_unload(dg, s->run, slot);
}

weft_status weft_lora_attach(weft_diag *dg, weft_session *s, int64_t seq, const weft_lora_use *mix,
                             size_t n)
{
    API_SCOPE(dg);
    _Static_assert(sizeof(weft_lora_use) == sizeof(adapter_use) &&
                       offsetof(weft_lora_use, scale) == offsetof(adapter_use, scale),
                   "a public use is an adapter's");
    if (!dg || !s || (!mix && n > 0))
        return api_lacks(dg, "weft_lora_attach", "a session or a mix");
    return session_lora_attach(dg, s->run, seq, (const adapter_use *)mix, n);
}
