/* sched_adapters.c - adapters by name: opened when a job needs them, in slots as long as somebody uses them or no other needs the slot. */
#include "runtime/base/mem.h"
#include "runtime/serve/sched_impl.h"
#include <string.h>

sched_adapter *adapter_for(scheduler *s, const char *name)
{
    if (!name || !*name)
        return NULL;
    for (sched_adapter *a = s->adapters; a; a = a->next)
        if (!a->stale && strcmp(a->name, name) == 0) {
            a->jobs++;
            return a;
        }
    sched_adapter *a = mem_alloc(sizeof *a);
    size_t n = strlen(name) + 1;
    *a = (sched_adapter){.name = mem_alloc(n), .number = ++s->adapter_number, .jobs = 1};
    memcpy(a->name, name, n);
    a->next = s->adapters;
    s->adapters = a;
    return a;
}

static void unload(scheduler *s, sched_adapter *a)
{
    if (!a->slot)
        return;
    size_t n_before = diag_count(s->quiet);
    weft_status st = session_lora_unload(s->quiet, s->run, a->slot);
    WEFT_ASSERT(st == WEFT_OK); /* nobody uses it */
    diag_keep_first(s->quiet, n_before);
    s->slot[a->slot] = NULL;
    s->did.adapters_loaded--;
    a->slot = 0;
}

static void destroy(scheduler *s, sched_adapter *a)
{
    for (sched_adapter **at = &s->adapters; *at; at = &(*at)->next)
        if (*at == a) {
            *at = a->next;
            break;
        }
    unload(s, a);
    if (a->src && s->o.adapter_close)
        s->o.adapter_close(s->o.adapter_ctx, a->src);
    mem_free(a->name);
    mem_free(a);
}

/* An adapter that no job names stays in its slot for the next one, unless its file was to be read again. */
void adapter_release(scheduler *s, sched_adapter *a)
{
    if (a && --a->jobs == 0 && (a->stale || !a->slot))
        destroy(s, a);
}

/* A slot that is empty, or that of the adapter nobody uses which was used least recently. */
static int32_t free_slot(scheduler *s)
{
    sched_adapter *old = NULL;
    for (int32_t i = 1; i <= s->n_slot; i++) {
        sched_adapter *a = s->slot[i];
        if (!a)
            return i;
        if (a->users == 0 && (!old || a->used < old->used))
            old = a;
    }
    if (!old)
        return 0;
    int32_t slot = old->slot;
    unload(s, old);
    if (old->jobs == 0)
        destroy(s, old);
    return slot;
}

static weft_status load(weft_diag *dg, scheduler *s, sched_adapter *a)
{
    if (!a->src)
        WEFT_TRY(s->o.adapter_open(s->o.adapter_ctx, dg, a->name, &a->src));
    int32_t slot = free_slot(s);
    WEFT_ASSERT(slot > 0); /* the policy counts them */
    WEFT_TRY(session_lora_load(dg, s->run, slot, a->src));
    a->slot = slot;
    s->slot[slot] = a;
    s->did.adapters_loaded++;
    s->did.adapter_loads++;
    return WEFT_OK;
}

weft_status adapter_use_begin(weft_diag *dg, scheduler *s, sched_adapter *a, int64_t seq,
                              float scale)
{
    if (!a)
        return WEFT_OK;
    if (a->slot)
        s->did.adapter_hits++;
    else
        WEFT_TRY(load(dg, s, a));
    adapter_use use = {.slot = a->slot, .scale = scale != 0 ? scale : 1};
    WEFT_TRY(session_lora_attach(dg, s->run, seq, &use, 1));
    a->users++;
    a->used = s->did.steps;
    return WEFT_OK;
}

void adapter_use_end(scheduler *s, sched_adapter *a, int64_t seq)
{
    if (!a)
        return;
    weft_status st = session_lora_attach(s->quiet, s->run, seq, NULL, 0);
    WEFT_ASSERT(st == WEFT_OK); /* to use none cannot fail */
    a->users--;
}

void adapters_mark_stale(scheduler *s, const char *name)
{
    for (sched_adapter *a = s->adapters, *next; a; a = next) {
        next = a->next;
        if (*name && strcmp(a->name, name) != 0)
            continue;
        a->stale = true;
        if (a->jobs == 0)
            destroy(s, a);
    }
}

void adapters_close_all(scheduler *s)
{
    while (s->adapters)
        destroy(s, s->adapters);
}
