/* session_files.c - what a sequence holds to a file and back, by the copies of the session's devices. */
#include "runtime/base/mem.h"
#include "runtime/base/mem_scope.h"
#include "runtime/exec/session_parts.h"
#include <inttypes.h>

static weft_status copy_out(void *ctx, weft_diag *dg, void *to, const void *from, size_t bytes)
{
    device *d = session_device_at(ctx, from);
    return d->kind->copy_out(dg, d, to, from, bytes);
}

static weft_status copy_in(void *ctx, weft_diag *dg, void *to, const void *from, size_t bytes)
{
    device *d = session_device_at(ctx, to);
    return d->kind->copy_in(dg, d, to, from, bytes);
}

state_copies session_copies(const session_parts *s)
{
    return (state_copies){copy_out, copy_in, (void *)s->of};
}

static state_owner owner_of(const session_parts *s, uint64_t key)
{
    return (state_owner){.model = s->src ? s->src->kind->identity(s->src) : (model_hash){0},
                         .adapters = key,
                         .n_vocab = s->p->n_vocab};
}

weft_status session_save(weft_diag *dg, session *of, int64_t seq, uint64_t key,
                         const session_text *text, const char *path)
{
    session_parts s = session_parts_of(of);
    state_owner who = owner_of(&s, key);
    state_copies copy = session_copies(&s);
    if (state_has(s.st, seq) && state_length(s.st, seq) != text->n)
        return weft_fail(dg, W1402, WEFT_NOWHERE,
                         "sequence %" PRId64 " holds %" PRId64 " tokens; %" PRId64
                         " ids were given to save with it",
                         seq, state_length(s.st, seq), text->n);
    return state_file_save(dg, path, s.st, seq, text->ids, text->next, &who, &copy);
}

/* In a scope of its own: where memory for a message is short, the sequence must not be left half filled. */
static weft_status load_rows(weft_diag *dg, const session_parts *s, int64_t seq, state_file *f)
{
    state_copies copy = session_copies(s);
    MEM_SCOPE(scope);
    if (sigsetjmp(scope.env, 0) != 0) {
        if (state_has(s->st, seq))
            WEFT_TRY(state_truncate(dg, s->st, seq, 0));
        return diag_fail_memory(dg, scope.bytes);
    }
    return state_file_load(dg, f, s->st, seq, &copy);
}

weft_status session_load(weft_diag *dg, session *of, int64_t seq, uint64_t key, const char *path,
                         session_text *out_text)
{
    session_parts s = session_parts_of(of);
    state_owner who = owner_of(&s, key);
    state_file *f;
    session_text text;
    WEFT_TRY(state_file_open(dg, path, s.st, &who, &f));
    const int32_t *ids = state_file_ids(f, &text.n, &text.next);
    size_t n = (size_t)(text.n + text.next);
    text.ids = mem_alloc(mem_product(n + 1, sizeof *ids));
    if (n > 0)
        memcpy(text.ids, ids, n * sizeof *ids);
    while (s.prefixes && !state_file_room(f, s.st, seq) && prefix_cache_evict(s.prefixes))
        ;
    weft_status status = load_rows(dg, &s, seq, f);
    state_file_close(f);
    if (status == WEFT_OK)
        *out_text = text;
    else
        mem_free(text.ids);
    return status;
}
