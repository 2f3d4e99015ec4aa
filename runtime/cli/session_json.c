#include "runtime/cli/session_json.h"

held_tiers held_tiers_now(const weft_session *s)
{
    held_tiers t;
    t.n = weft_kv_tiers(s, t.at, HELD_TIERS_MAX);
    t.n = t.n < HELD_TIERS_MAX ? t.n : HELD_TIERS_MAX;
    return t;
}

void held_tiers_json(json_writer *w, const held_tiers *t)
{
    json_key_open(w, "state", '[');
    for (int64_t i = 0; i < t->n; i++) {
        const weft_kv_tier *tier = &t->at[i];
        uint64_t in_use = (uint64_t)(tier->pages - tier->pages_free) * tier->page_bytes;
        json_open(w, '{');
        json_key_text(w, "keys", tier->keys);
        json_key_text(w, "values", tier->values);
        if (tier->last >= 0)
            json_key_int(w, "last", tier->last);
        json_key_int(w, "page_tokens", tier->page_tokens);
        json_key_int(w, "pages", tier->pages);
        json_key_int(w, "pages_free", tier->pages_free);
        json_key_int(w, "bytes", (int64_t)tier->bytes);
        json_key_int(w, "bytes_used", (int64_t)in_use);
        json_close(w, '}');
    }
    json_close(w, ']');
}

void session_json(json_writer *w, const weft_session *s)
{
    weft_session_info now = {.size = sizeof now};
    weft_diag *dg = weft_diag_create();
    held_tiers tiers = held_tiers_now(s);
    held_tiers_json(w, &tiers);
    if (weft_session_about(dg, s, &now) == WEFT_OK) {
        json_key_int(w, "tokens_on_device", (int64_t)now.tokens_on_device);
        json_key_open(w, "prefixes", '{');
        json_key_int(w, "most", now.prefixes);
        json_key_int(w, "kept", now.prefixes_used);
        json_key_int(w, "pages", now.prefix_pages);
        json_key_int(w, "bytes", (int64_t)now.prefix_bytes);
        json_key_int(w, "lookups", (int64_t)now.prefix_lookups);
        json_key_int(w, "hits", (int64_t)now.prefix_hits);
        json_key_int(w, "tokens", (int64_t)now.prefix_tokens);
        json_key_int(w, "tokens_reused", (int64_t)now.prefix_tokens_saved);
        json_key_int(w, "evicted", (int64_t)now.prefix_evicted);
        json_close(w, '}');
    }
    weft_diag_destroy(dg);
}
