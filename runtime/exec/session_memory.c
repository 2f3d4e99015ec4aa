/* session_memory.c - what a session takes, before and after it is there, and whether it fits. */
#include "runtime/exec/session_impl.h"

#include <inttypes.h>

static size_t prefix_bytes(const session *s)
{
    return s->prefixes ? prefix_cache_bytes(s->prefixes) : 0;
}

/* Tables of the session itself, which are the host's. */
static size_t table_bytes(const session *s)
{
    size_t bytes = state_table_bytes(s->st) + batch_bytes(s->b) + session_output_bytes(s) +
                   session_handed_bytes(s) + prefix_bytes(s) + session_calls_bytes(s->calls) +
                   sizeof *s + (s->lora ? adapters_table_bytes(s->lora) : 0);
    for (int32_t i = 0; i < s->n_part && s->n_part > 1; i++)
        bytes += ((size_t)s->part[i].p->n_cell + 1) * sizeof(kcell);
    return bytes;
}

/* Of a part whose tables are open, on a device that takes m and, where they are its own, for weights w. The session's tables are
 * counted with the first. */
static session_memory sum_up(const session *s, const session_part *x, const device_memory *m,
                             const weights_memory *w)
{
    size_t tables = x == s->part ? table_bytes(s) : 0;
    const bool apart = !x->dev->kind->host_memory;
    return (session_memory){
        .weights_mapped = w->mapped,
        .weights_copied = w->copied,
        .weights_cached = w->cached,
        .weights_interleaved = w->interleaved,
        .arena = m->arena,
        .state = x->cell_bytes,
        .adapters = s->lora ? adapters_bytes(s->lora, (int32_t)(x - s->part)) : 0,
        .scratch = m->scratch,
        .tables = m->tables + w->tables + (apart ? 0 : m->host + w->host + tables),
        .host = apart ? m->host + w->host + tables : 0};
}

static session_memory add_up(const session_memory *a, const session_memory *b)
{
    return (session_memory){.weights_mapped = a->weights_mapped + b->weights_mapped,
                            .weights_copied = a->weights_copied + b->weights_copied,
                            .weights_cached = a->weights_cached + b->weights_cached,
                            .weights_interleaved = a->weights_interleaved + b->weights_interleaved,
                            .arena = a->arena + b->arena,
                            .state = a->state + b->state,
                            .adapters = a->adapters + b->adapters,
                            .scratch = a->scratch + b->scratch,
                            .tables = a->tables + b->tables,
                            .host = a->host + b->host};
}

/* Of all parts that are on a device; NULL: of all. */
static session_memory on_device(const session *s, const session_memory *each, const device *dev)
{
    session_memory m = {0};
    for (int32_t i = 0; i < s->n_part; i++)
        if (!dev || s->part[i].dev == dev)
            m = add_up(&m, &each[i]);
    return m;
}

session_memory session_bytes_on(const session *s, const device *dev)
{
    session_memory each[PLAN_PARTS_MAX];
    for (int32_t i = 0; i < s->n_part; i++) {
        const session_part *x = &s->part[i];
        device_memory m;
        weights_memory w = {0};
        x->dev->kind->bytes(x->e, &m);
        if (x->own)
            w = weights_bytes(x->own);
        each[i] = sum_up(s, x, &m, &w);
    }
    return on_device(s, each, dev);
}

session_memory session_bytes(const session *s)
{
    return session_bytes_on(s, NULL);
}

/* Of each part. */
static weft_status need_of(weft_diag *dg, const session *s, const weight_source *src,
                           const session_options *opt, session_memory *each)
{
    for (int32_t i = 0; i < s->n_part; i++) {
        const session_part *x = &s->part[i];
        device_memory m;
        weights_memory w = {0};
        weights_options how = session_weights_how(opt);
        device_load what = session_load_how(s, x, opt);
        WEFT_TRY(x->dev->kind->need(dg, x->dev, &what, &m));
        if (!opt->w[i])
            w = weights_need(x->dev, x->p, src, &how);
        each[i] = sum_up(s, x, &m, &w);
    }
    return WEFT_OK;
}

weft_status session_need_on(weft_diag *dg, const plan *p, const weight_source *src,
                            const session_options *opt, const device *dev, session_memory *out_m)
{
    session s;
    session_memory each[PLAN_PARTS_MAX];
    WEFT_TRY(session_open_tables(dg, p, opt, &s));
    weft_status status = need_of(dg, &s, src, opt, each);
    if (status == WEFT_OK)
        *out_m = on_device(&s, each, dev);
    session_close_parts(&s);
    return status;
}

weft_status session_need(weft_diag *dg, const plan *p, const weight_source *src,
                         const session_options *opt, session_memory *out_m)
{
    return session_need_on(dg, p, src, opt, NULL, out_m);
}

size_t session_memory_sum(const session_memory *m)
{
    return m->weights_mapped + m->weights_cached + session_memory_own(m);
}

size_t session_memory_own(const session_memory *m)
{
    return m->weights_copied + m->weights_interleaved + m->arena + m->state + m->adapters +
           m->scratch + m->tables;
}

/* It takes `all` bytes and `most` are there. */
static weft_status refuse(weft_diag *dg, const session_memory *m, uint64_t all, uint64_t most,
                          const char *within)
{
    weft_status status =
        weft_fail(dg, W0902, WEFT_NOWHERE,
                  "the session takes %" PRIu64 " bytes, %" PRIu64 " more than the %" PRIu64
                  " available %s: it does not fit by %.1f MiB",
                  all, all - most, most, within, (double)(all - most) / (1 << 20));
    weft_note(dg, "weights %zu, state %zu, activations %zu, threads %zu, tables %zu",
              m->weights_mapped + m->weights_cached + m->weights_copied + m->weights_interleaved,
              m->state, m->arena, m->scratch, m->tables);
    if (m->host > 0)
        weft_note(dg, "these are of the device; beside them %zu bytes of the host", m->host);
    if (m->adapters > 0)
        weft_note(dg, "slots for adapters %zu", m->adapters);
    if (m->weights_interleaved > 0)
        weft_note(dg,
                  "%zu bytes of weights are repacked in memory, since no file of the weight cache "
                  "holds them; with no_repack they are used as the model file has them",
                  m->weights_interleaved);
    weft_note(dg, "%s", diag_row_of(W0902)->hint);
    return status;
}

/* Does what is on a device fit there? left: what is left beside it. */
static weft_status check_device(weft_diag *dg, device *dev, const session_memory *m,
                                uint64_t *out_left)
{
    memory_room room;
    uint64_t own = dev->kind->holds_mapped ? session_memory_sum(m) : session_memory_own(m);
    WEFT_TRY(dev->kind->room(dg, dev, &room));
    if (own > room.bytes)
        return refuse(dg, m, own, room.bytes, room.within);
    *out_left = room.bytes - own;
    room = memory_available("");
    if (m->host > room.bytes)
        return refuse(dg, m, m->host, room.bytes, room.within);
    room = memory_mappable("");
    if (dev->kind->host_memory && own + m->weights_cached > room.bytes)
        return refuse(dg, m, own + m->weights_cached, room.bytes, room.within);
    return WEFT_OK;
}

/* The system hands out more than there is and ends the process when it is used; so what cannot fit is
 * refused here. What is mapped from files may be larger than memory: it is read again when it is needed.
 * Should the interleaved weights of a part come to lie in memory after all, interleaved_max is the room for them. */
weft_status session_check_need(weft_diag *dg, const session *s, const weight_source *src,
                               const session_options *opt, size_t *interleaved_max)
{
    session_memory each[PLAN_PARTS_MAX];
    WEFT_TRY(need_of(dg, s, src, opt, each));
    session_memory all = on_device(s, each, NULL);
    for (int32_t i = 0; i < s->n_part; i++)
        interleaved_max[i] = 0;
    if (opt->bytes_max && session_memory_sum(&all) > opt->bytes_max)
        return refuse(dg, &all, session_memory_sum(&all), opt->bytes_max, "by its options");
    for (int32_t i = 0; i < s->n_part && !opt->bytes_max; i++) {
        uint64_t left = 0;
        session_memory m = on_device(s, each, s->part[i].dev);
        WEFT_TRY(check_device(dg, s->part[i].dev, &m, &left));
        left += each[i].weights_interleaved;
        interleaved_max[i] = left < SIZE_MAX ? (size_t)left : SIZE_MAX;
    }
    return WEFT_OK;
}
