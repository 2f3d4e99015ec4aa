/* api_lora.c - the public interface: adapters, their slots, and who uses them. */
#include "runtime/api/api_impl.h"

#include "runtime/base/mem.h"

void weft_adapter_close(weft_adapter *a)
{
    if (!a)
        return;
    a->keep_close(a->keep);
    mem_free(a);
}

int64_t weft_adapter_rank(const weft_adapter *a)
{
    return a ? a->rank_max : 0;
}

weft_status weft_lora_load(weft_diag *dg, weft_session *s, int32_t slot, const weft_adapter *a)
{
    API_SCOPE(dg);
    if (!dg || !s || !a)
        return api_lacks(dg, "weft_lora_load", "a session or an adapter");
    if (!model_hash_equal(a->model, s->model))
        return weft_fail(dg, W0702, WEFT_NOWHERE,
                         "%s was opened for another model than the session's", a->from.name);
    return session_lora_load(dg, s->run, slot, &a->from);
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
