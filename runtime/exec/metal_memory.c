/* metal_memory.c - buffers that host and GPU both see, addresses in them, shaders and pipelines. */
#include "runtime/exec/metal_impl.h"

#include "runtime/base/mem.h"
#include "runtime/base/mem_scope.h"
#include <inttypes.h>

weft_status metal_fail(weft_diag *dg, const metal_device *d, const char *doing,
                       const metal_why *why)
{
    return weft_fail(dg, W1610, WEFT_NOWHERE, "%s failed %s: %s", doing, d->place, why->text);
}

/* ---- memory ---- */

/* Out of the list of its device, and released. */
static void drop(void *ctx)
{
    metal_block *b = ctx;
    metal_device *d = b->d;
    metal_block **at = &d->held;
    pthread_mutex_lock(&d->lock);
    while (*at != b)
        at = &(*at)->next;
    *at = b->next;
    pthread_mutex_unlock(&d->lock);
    d->driver->give(d->gpu, b->buffer);
    mem_free(b);
}

static weft_status refuse(weft_diag *dg, metal_device *d, size_t bytes)
{
    memory_room room = {0};
    if (d->base.kind->room(dg, &d->base, &room) != WEFT_OK)
        return WEFT_ERR_DEVICE;
    return weft_fail(dg, W0902, WEFT_NOWHERE,
                     "%zu bytes of memory cannot be allocated: %" PRIu64 " are available %s", bytes,
                     room.bytes, room.within);
}

/* A block of a buffer; wrapped NULL: one of its own. */
static weft_status add_block(weft_diag *dg, metal_device *d, const void *wrapped, size_t bytes,
                             metal_block **out_b)
{
    metal_block *b = mem_try_kept(sizeof *b);
    if (!b)
        return refuse(dg, d, bytes);
    *b = (metal_block){.d = d, .bytes = bytes, .wrapped = wrapped != NULL};
    b->buffer = bytes > d->facts.buffer_max ? NULL
                : wrapped                   ? d->driver->wrap(d->gpu, wrapped, bytes)
                                            : d->driver->take(d->gpu, bytes);
    if (!b->buffer) {
        mem_free(b);
        return refuse(dg, d, bytes);
    }
    b->p = d->driver->contents(b->buffer);
    b->at = d->driver->address(b->buffer);
    pthread_mutex_lock(&d->lock);
    b->next = d->held;
    d->held = b;
    pthread_mutex_unlock(&d->lock);
    mem_scope_on_fail(drop, b);
    *out_b = b;
    return WEFT_OK;
}

weft_status metal_take(weft_diag *dg, metal_device *d, size_t bytes, metal_block **out_b)
{
    *out_b = NULL;
    return bytes == 0 ? WEFT_OK : add_block(dg, d, NULL, bytes, out_b);
}

weft_status metal_wrap(weft_diag *dg, metal_device *d, const void *p, size_t bytes,
                       metal_block **out_b)
{
    return add_block(dg, d, p, bytes, out_b);
}

void metal_give(metal_block *b)
{
    if (!b)
        return;
    mem_scope_forget(drop, b);
    drop(b);
}

static metal_block *find_block(metal_device *d, const char *p)
{
    pthread_mutex_lock(&d->lock);
    metal_block *b = d->held;
    while (b && (b->wrapped || p < b->p || p >= b->p + b->bytes))
        b = b->next;
    pthread_mutex_unlock(&d->lock);
    WEFT_ASSERT(b);
    return b;
}

metal_block *metal_block_of(metal_device *d, const void *p)
{
    return p ? find_block(d, p) : NULL;
}

uint64_t metal_seen(metal_device *d, const void *p)
{
    const metal_block *b = metal_block_of(d, p);
    return b ? b->at + (uint64_t)((const char *)p - b->p) : 0;
}

/* ---- shaders ---- */

static metal_kernels *find_kernels(metal_device *d, str maps)
{
    pthread_mutex_lock(&d->lock);
    metal_kernels *k = d->kernels;
    while (k && !str_eq(str_of(k->maps), maps))
        k = k->next;
    pthread_mutex_unlock(&d->lock);
    return k;
}

weft_status metal_kernels_for(weft_diag *dg, metal_device *d, str maps, metal_kernels **out_k)
{
    metal_kernels *k = find_kernels(d, maps);
    if (k) {
        *out_k = k;
        return WEFT_OK;
    }
    metal_why why;
    k = mem_try_kept(sizeof *k + maps.n + 1);
    if (!k)
        mem_exhausted(sizeof *k + maps.n + 1);
    *k = (metal_kernels){0};
    if (maps.n)
        memcpy(k->maps, maps.p, maps.n);
    k->maps[maps.n] = 0;
    k->shaders = d->driver->compile(d->gpu, maps.n ? k->maps : NULL, &why);
    if (!k->shaders) {
        mem_free(k);
        return weft_fail(dg, W1615, WEFT_NOWHERE, "the shaders do not compile %s: %s", d->place,
                         why.text);
    }
    pthread_mutex_lock(&d->lock);
    k->next = d->kernels; /* should another thread have made them too, there are two */
    d->kernels = k;
    pthread_mutex_unlock(&d->lock);
    *out_k = k;
    return WEFT_OK;
}

/* ---- pipelines ---- */

static metal_pipeline *find_made(metal_device *d, const metal_kernels *k, metal_mask mask)
{
    pthread_mutex_lock(&d->lock);
    const metal_made *m = k->made;
    while (m && memcmp(&m->mask, &mask, sizeof mask) != 0)
        m = m->next;
    pthread_mutex_unlock(&d->lock);
    return m ? m->pipeline : NULL;
}

/* One that runs with so many threads of a threadgroup. Constants are those of all kernels, who use them or not. */
static weft_status make_pipeline(weft_diag *dg, metal_device *d, metal_kernels *k, const char *name,
                                 metal_mask mask, int threads, metal_pipeline **out_p)
{
    metal_why why;
    metal_pipeline *p = d->driver->pipeline(k->shaders, name, mask.word, METAL_MASK_WORDS, &why);
    if (!p)
        return weft_fail(dg, W1615, WEFT_NOWHERE, "%s cannot be made %s: %s", name, d->place,
                         why.text);
    if (d->driver->threads_max(p) < threads) {
        weft_status st = weft_fail(dg, W1615, WEFT_NOWHERE,
                                   "%s runs with threadgroups of at most %d threads %s: not %d",
                                   name, d->driver->threads_max(p), d->place, threads);
        d->driver->pipeline_free(p);
        return st;
    }
    *out_p = p;
    return WEFT_OK;
}

weft_status metal_pipeline_for(weft_diag *dg, metal_device *d, metal_kernels *k, metal_mask mask,
                               metal_pipeline **out_p)
{
    metal_pipeline *p = find_made(d, k, mask);
    if (!p) {
        WEFT_TRY(make_pipeline(dg, d, k, "weft_phase", mask, METAL_BLOCK, &p));
        metal_made *m = mem_try_kept(sizeof *m);
        if (!m) {
            d->driver->pipeline_free(p);
            mem_exhausted(sizeof *m);
        }
        *m = (metal_made){.mask = mask, .pipeline = p};
        pthread_mutex_lock(&d->lock);
        m->next = k->made; /* should another thread have made it too, there are two */
        k->made = m;
        pthread_mutex_unlock(&d->lock);
    }
    *out_p = p;
    return WEFT_OK;
}

weft_status metal_choosers(weft_diag *dg, metal_device *d, metal_kernels *k)
{
    const metal_mask none = {{0}};
    metal_pipeline *choose = NULL, *tokens = NULL;
    pthread_mutex_lock(&d->lock);
    const bool there = k->choose != NULL;
    pthread_mutex_unlock(&d->lock);
    if (there)
        return WEFT_OK;
    WEFT_TRY(make_pipeline(dg, d, k, "weft_choose", none, METAL_CHOOSE_BLOCK, &choose));
    weft_status st = make_pipeline(dg, d, k, "weft_tokens", none, METAL_BLOCK, &tokens);
    if (st != WEFT_OK) {
        d->driver->pipeline_free(choose);
        return st;
    }
    pthread_mutex_lock(&d->lock);
    const bool first = !k->choose;
    if (first) {
        k->tokens = tokens;
        k->choose = choose;
    }
    pthread_mutex_unlock(&d->lock);
    if (!first) {
        d->driver->pipeline_free(choose);
        d->driver->pipeline_free(tokens);
    }
    return WEFT_OK;
}

static void free_pipelines(metal_device *d, metal_kernels *k)
{
    while (k->made) {
        metal_made *m = k->made;
        k->made = m->next;
        d->driver->pipeline_free(m->pipeline);
        mem_free(m);
    }
    if (k->choose) {
        d->driver->pipeline_free(k->choose);
        d->driver->pipeline_free(k->tokens);
    }
}

void metal_kernels_free(metal_device *d)
{
    while (d->kernels) {
        metal_kernels *k = d->kernels;
        d->kernels = k->next;
        free_pipelines(d, k);
        d->driver->shaders_free(k->shaders);
        mem_free(k);
    }
}
