/* weights_cpu.c - views on the checkpoint's tensors, the copies, and interleaved rows from the weight cache. */
#include "runtime/exec/weights_cpu.h"

#include "runtime/base/mem.h"
#include "runtime/base/memory.h"
#include "runtime/exec/weight_cache.h"
#include <inttypes.h>

typedef struct {
    weights base;
    char *copies;              /* p->copied_bytes */
    weight_cache *interleaved; /* NULL: none */
    const void **table;        /* p->table_bytes */
    const void *at[];          /* [n_weight] */
} cpu_weights;

static const cpu_weights *own_of(const weights *w)
{
    return (const cpu_weights *)(const void *)w;
}

/* ---- loading ---- */

static weft_status load_copied(weft_diag *dg, const plan_weight *w, const weight_source *src,
                               char *to)
{
    if (w->computed) {
        memcpy(to, w->computed, w->bytes);
        return WEFT_OK;
    }
    const char *end = to + w->bytes;
    WEFT_TRY(weight_check(dg, w));
    for (int i = 0; i < w->n_piece; i++) {
        weight_piece v;
        WEFT_TRY(weight_find(dg, w, i, src, &v));
        weight_make(&v, 0, v.rows, to, NULL);
        to += (size_t)v.rows * v.row_bytes;
    }
    WEFT_ASSERT(to == end);
    return WEFT_OK;
}

/* The address of a weight that stays in place; with a table, that of each index of axis 0. */
static weft_status load_mapped(weft_diag *dg, const plan_weight *w, const weight_source *src,
                               const void **table, const void **out)
{
    WEFT_TRY(weight_check(dg, w));
    for (int i = 0; i < (table ? w->n_piece : 1); i++) {
        weight_piece v;
        WEFT_TRY(weight_find(dg, w, i, src, &v));
        if (w->align && (uintptr_t)v.data % (uintptr_t)w->align != 0)
            return weight_misfit(dg, w, "a tensor does not begin where the plan's kernels read it");
        for (int64_t e = 0; e < w->piece[i].rows && table; e++)
            *table++ = v.data + e * w->stride[0];
        *out = v.data;
    }
    return WEFT_OK;
}

static weft_status load_all(weft_diag *dg, cpu_weights *w, const weight_source *src,
                            const cancel_flag *cancel)
{
    const plan *p = w->base.p;
    const weight_source *kept = w->interleaved ? weight_cache_source(w->interleaved) : NULL;
    size_t copied = 0, tabled = 0, interleaved = 0;
    for (int32_t i = 0; i < p->n_weight; i++) {
        if (cancel_asked(cancel))
            return weight_cancelled(dg);
        const plan_weight *pw = &p->weight[i];
        const void **table = pw->n_table ? w->table + tabled / sizeof *w->table : NULL;
        const char *at = NULL; /* that it was moved to */
        tabled = weight_block_end(tabled, (size_t)pw->n_table * sizeof *w->table);
        if (pw->mode == WEIGHT_COPIED) {
            WEFT_TRY(load_copied(dg, pw, src, w->copies + copied));
            at = w->copies + copied;
            copied = weight_block_end(copied, pw->bytes);
        } else if (pw->mode == WEIGHT_INTERLEAVED) {
            at = kept->kind->tensor(kept, interleaved++).data;
        }
        WEFT_ASSERT(tabled <= p->table_bytes && copied <= p->copied_bytes);

        w->at[i] = at;
        if (pw->mode == WEIGHT_MAPPED)
            WEFT_TRY(load_mapped(dg, pw, src, table, &w->at[i]));
        for (int64_t e = 0; e < pw->n_table && at; e++)
            table[e] = at + (size_t)e * (pw->bytes / (size_t)pw->n_table);
        if (table)
            w->at[i] = table;
    }
    return WEFT_OK;
}

/* NULL for nothing. */
static bool alloc_block(size_t bytes, void **out_p)
{
    *out_p = bytes ? mem_try_aligned(PLAN_ALIGN, bytes) : NULL;
    return bytes == 0 || *out_p;
}

static size_t own_bytes(const plan *p)
{
    return sizeof(cpu_weights) + (size_t)p->n_weight * sizeof(void *);
}

static cache_options cache_of(const weights_options *opt)
{
    return (cache_options){.keep = opt->use_cache,
                           .dir = opt->cache_dir,
                           .bytes_max = opt->cache_bytes_max,
                           .threads = opt->threads > 0 ? opt->threads : 1,
                           .check_all = opt->check_cache,
                           .cancel = opt->cancel};
}

/* Interleaved weights, from the last time or made now. */
static weft_status load_interleaved(weft_diag *dg, cpu_weights *w, const weight_source *src,
                                    const weights_options *opt)
{
    bool filled;
    const plan *p = w->base.p;
    cache_options how = cache_of(opt);
    WEFT_TRY(weight_cache_open(dg, p, src, &how, &w->interleaved, &filled));
    if (opt->interleaved_max && !weight_cache_is_file(w->interleaved) &&
        p->interleaved_bytes > opt->interleaved_max) {
        weft_status status =
            weft_fail(dg, W0902, WEFT_NOWHERE,
                      "repacked weights take %zu bytes of memory, since no file of the weight "
                      "cache holds them; there is room for %zu",
                      p->interleaved_bytes, opt->interleaved_max);
        weft_note(dg, "with no_repack weights are used as the model file has them");
        return status;
    }
    if (filled)
        return WEFT_OK;
    WEFT_TRY(cpu_weights_interleave(dg, p, src, opt, weight_cache_data(w->interleaved)));
    return weight_cache_publish(dg, w->interleaved);
}

weft_status cpu_weights_load(weft_diag *dg, device *d, const plan *p, const weight_source *src,
                             const weights_options *opt, weights **out_w)
{
    cpu_weights *w = mem_alloc(own_bytes(p));
    void *copies, *table = NULL;
    bool fits = alloc_block(p->copied_bytes, &copies) && alloc_block(p->table_bytes, &table);
    *w = (cpu_weights){.base = {.dev = d, .p = p}, .copies = copies, .table = table};
    weft_status status = WEFT_OK;
    if (!fits) {
        memory_room room = memory_available("");
        status = weft_fail(dg, W0902, WEFT_NOWHERE,
                           "%zu bytes for copied weights cannot be allocated: %" PRIu64
                           " are available %s",
                           p->copied_bytes + p->table_bytes, room.bytes, room.within);
    }
    if (status == WEFT_OK && p->interleaved_bytes)
        status = load_interleaved(dg, w, src, opt);
    if (status == WEFT_OK)
        status = load_all(dg, w, src, opt->cancel);
    if (status == WEFT_OK && p->interleaved_bytes && src->kind->let_go)
        src->kind->let_go(src); /* what was interleaved is not read in place any more */
    if (status == WEFT_OK)
        *out_w = &w->base;
    else
        cpu_weights_free(&w->base);
    return status;
}

void cpu_weights_free(weights *base)
{
    cpu_weights *w = (cpu_weights *)(void *)base;
    mem_free(w->copies);
    weight_cache_close(w->interleaved);
    mem_free(w->table);
    mem_free(w);
}

/* ---- what they take ---- */

static weights_memory memory_of(const plan *p, bool cached)
{
    weights_memory m = {.mapped = p->mapped_bytes,
                        .copied = p->copied_bytes,
                        .tables = p->table_bytes + own_bytes(p)};
    *(cached ? &m.cached : &m.interleaved) = p->interleaved_bytes;
    return m;
}

weights_memory cpu_weights_need(device *d, const plan *p, const weight_source *src,
                                const weights_options *opt)
{
    cache_options how = cache_of(opt);
    (void)d;
    return memory_of(p, src && weight_cache_would_keep(p, src, &how));
}

weights_memory cpu_weights_bytes(const weights *w)
{
    const weight_cache *c = own_of(w)->interleaved;
    return memory_of(w->p, c && weight_cache_is_file(c));
}

weft_status cpu_weights_check(weft_diag *dg, const weights *w)
{
    const weight_cache *c = own_of(w)->interleaved;
    return c ? weight_cache_check(dg, c) : WEFT_OK;
}

const void *cpu_weights_at(const weights *w, int32_t i)
{
    WEFT_ASSERT(i >= 0 && i < w->p->n_weight);
    return own_of(w)->at[i];
}
