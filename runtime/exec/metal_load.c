/* metal_load.c - a plan onto a GPU: operands to its addresses, in tables as metal_phase.h has them.
 *
 * Tables are in memory that both see. What calls change is there once for each call that may be under way. One function lays it all
 * out: it is run without memory to learn the size and with it to fill the pointers, so that what a session needs is known
 * before it is taken, to the byte. */
#include "runtime/exec/metal_impl.h"

#include "runtime/base/intmath.h"
#include "runtime/base/mem.h"
#include <inttypes.h>

/* ---- sizes ---- */

typedef struct {
    char *base; /* NULL: only count */
    size_t at;
} carving;

/* Where the next n * item_bytes begin. */
static size_t carve_at(carving *c, size_t n, size_t item_bytes)
{
    size_t at = c->at, bytes = mem_product(n, item_bytes);
    c->at += metal_align_up(bytes);
    return at;
}

static void *carve(carving *c, size_t n, size_t item_bytes)
{
    size_t at = carve_at(c, n, item_bytes);
    return c->base ? c->base + at : NULL;
}

static int32_t steps_max(const plan *p)
{
    int32_t n = 0;
    for (int32_t i = 0; i < p->n_bucket; i++)
        n = p->bucket[i].n_step > n ? p->bucket[i].n_step : n;
    return n;
}

/* What a call has for itself: `which` of them. */
static void carve_call(carving *c, const device_load *what, exec *e, int which)
{
    const plan *p = what->p;
    const size_t first = c->at;
    metal_parts to;
    e->call_at[which] = first;
    to.cells = carve_at(c, (size_t)p->n_cell, sizeof(metal_cell)) - first;
    to.lora = carve_at(c, e->lora_bytes, 1) - first;
    to.batch = carve_at(c, what->batch_bytes, 1) - first;
    to.batch_end = c->at - first;
    to.how = carve_at(c, (size_t)p->n_out_max, sizeof(ksample)) - first;
    to.from = carve_at(c, (size_t)p->n_tok_max, sizeof(int32_t)) - first;
    to.chosen = carve_at(c, (size_t)p->n_out_max, sizeof(ksampled)) - first;
    for (int32_t i = 0; i < p->n_bucket; i++) {
        const plan_bucket *b = &p->bucket[i];
        metal_step *steps = carve(c, (size_t)b->n_step, sizeof *steps);
        metal_item *items = carve(c, (size_t)b->n_item, sizeof *items);
        metal_phase *phases = carve(c, (size_t)b->n_item, sizeof *phases);
        if (c->base) {
            e->buckets[i].of[which].steps = steps;
            e->buckets[i].of[which].items = items;
            e->buckets[i].of[which].phases = phases;
        }
    }
    to.end = c->at - first;
    e->part = to; /* the same for all */
}

/* What the GPU sees. */
static void carve_tables(carving *c, const device_load *what, exec *e)
{
    const plan *p = what->p;
    e->consts = carve_at(c, p->const_bytes, 1);
    e->code = carve_at(c, (size_t)p->n_code, sizeof(kinstr));
    e->cancel_at = carve_at(c, 1, sizeof(uint32_t));
    for (int32_t i = 0; i < p->n_bucket; i++) {
        metal_shape *shapes = carve(c, (size_t)p->bucket[i].n_step, sizeof *shapes);
        if (c->base)
            e->buckets[i].shapes = shapes;
    }
    for (int i = 0; i < DEVICE_CALLS; i++)
        carve_call(c, what, e, i);
    e->table_bytes = c->at;
}

/* What the host alone has; the exec itself is first. */
static void carve_own(carving *c, exec *e)
{
    const plan *p = e->p;
    metal_bucket *buckets = carve(c, (size_t)p->n_bucket, sizeof *buckets);
    for (int32_t i = 0; i < p->n_bucket; i++) {
        const plan_bucket *b = &p->bucket[i];
        metal_bucket to = {.plan = b, .local_bytes = metal_align_up(b->local_bytes)};
        to.args = carve(c, (size_t)b->n_step, sizeof *to.args);
        to.own = carve(c, (size_t)b->n_step, sizeof *to.own);
        to.rows = carve(c, (size_t)b->n_step, sizeof *to.rows);
        for (int k = 0; k < DEVICE_CALLS; k++) {
            to.of[k].pipe = carve(c, (size_t)b->n_item, sizeof *to.of[k].pipe);
            to.of[k].shared = carve(c, (size_t)b->n_item, sizeof *to.of[k].shared);
            to.of[k].units = carve(c, (size_t)b->n_item, sizeof *to.of[k].units);
        }
        if (c->base)
            buckets[i] = to;
    }
    for (int k = 0; k < DEVICE_CALLS; k++)
        e->seen[k] = carve(c, (size_t)p->n_cell, sizeof(kcell));
    e->ns = carve(c, (size_t)steps_max(p), sizeof *e->ns);
    e->buckets = buckets;
}

static size_t lora_size(const klora *l)
{
    return l ? klora_bytes(l->n_slot, l->n_site, l->n_mix) : 0;
}

/* What an exec will be; its memory is not there. out_own: bytes of the host alone. */
static weft_status size_exec(weft_diag *dg, const metal_device *d, const device_load *what,
                             exec *out_e, size_t *out_own)
{
    const plan *p = what->p;
    exec e = {.d = metal_of(&d->base), .p = p, .lora_bytes = lora_size(what->lora)};
    carving tables = {0}, own = {0};
    size_t scratch;
    if (!size_align_up(p->local_bytes, METAL_ALIGN, &e.local_bytes) ||
        !size_align_up(p->scratch_bytes, METAL_ALIGN, &scratch) ||
        !size_add(e.local_bytes, scratch, &e.block_bytes) || e.block_bytes > UINT32_MAX ||
        !size_mul(e.block_bytes, (size_t)d->groups, &e.bytes.scratch))
        return weft_fail(dg, W0902, WEFT_NOWHERE, "memory for %d threadgroups is too large",
                         d->groups);
    carve_tables(&tables, what, &e);
    carve(&own, 1, sizeof e);
    carve_own(&own, &e);
    e.bytes.arena = p->arena_bytes;
    e.bytes.tables = e.table_bytes;
    e.bytes.host = own.at;
    *out_e = e;
    *out_own = own.at;
    return WEFT_OK;
}

weft_status metal_need(weft_diag *dg, device *d, const device_load *what, device_memory *out_m)
{
    exec e;
    size_t own;
    WEFT_TRY(size_exec(dg, metal_of(d), what, &e, &own));
    *out_m = e.bytes;
    return WEFT_OK;
}

/* ---- steps ---- */

static weft_status find_kernels(weft_diag *dg, const plan *p, const kernel_row **rows)
{
    for (int32_t i = 0; i < p->n_kernel; i++) {
        rows[i] = metal_row_find(p->kernel[i].name);
        if (!rows[i])
            return weft_fail(dg, W1501, WEFT_NOWHERE,
                             "the plan has a kernel %s, which Metal GPUs have not",
                             p->kernel[i].name);
    }
    return WEFT_OK;
}

/* Numbers that shaders have in 32 bits; false if one does not fit. */
static bool narrow(const int64_t *from, size_t n, int32_t *to)
{
    bool fits = true;
    for (size_t i = 0; i < n; i++) {
        to[i] = (int32_t)from[i];
        fits = fits && to[i] == from[i];
    }
    return fits;
}

/* What steps of one shape have in common: memcmp compares it. */
static bool shape_of(const kargs *k, int32_t row, metal_shape *to)
{
    memset(to, 0, sizeof *to);
    for (int i = 0; i < K_IN_MAX; i++)
        to->type[i] = (int32_t)k->type[i];
    for (int i = 0; i < K_SCALARS_MAX; i++)
        to->scalar.f[i] = (float)k->f[i];
    memcpy(to->choice.word, k->word, sizeof k->word);
    to->row = row;
    return narrow(k->n + 1, K_SIZES_MAX - 1, to->size.n + 1) &&
           narrow(k->pitch, K_IN_MAX, to->pitch) &&
           narrow(k->out_pitch, K_OUT_MAX, to->out_pitch) &&
           narrow(&k->stride[0][0], (size_t)K_IN_MAX * K_AXES_MAX, &to->stride[0][0]) &&
           narrow(&k->cols, 1, &to->cols) && narrow(&k->tile, 1, &to->tile) &&
           narrow(&k->n_code, 1, &to->n_code) && k->n[0] <= INT32_MAX;
}

/* The number of a step's shape, which is added where none is the same. */
static int32_t add_shape(metal_bucket *c)
{
    const metal_shape *last = &c->shapes[c->n_shape];
    int32_t i = 0;
    while (memcmp(&c->shapes[i], last, sizeof *last) != 0)
        i++;
    c->n_shape += i == c->n_shape;
    return i;
}

/* maps: where a map becomes text; NULL: it does not. */
static weft_status load_step(weft_diag *dg, const exec *e, const exec_places *at, metal_maps *maps,
                             metal_bucket *c, int32_t i)
{
    const plan_step *s = &c->plan->step[i];
    kargs k = exec_step_args(e->p, c->plan, s, at);
    c->args[i] = k;
    c->own[i] = exec_step_spaces(s);
    if (maps && s->n_code > 0) { /* in the place of instructions a number of maps.msl */
        const int32_t made = metal_maps_add(maps, &k, e->p->code + s->code);
        k.n_code = made >= 0 ? -1 - made : k.n_code;
    }
    if (!shape_of(&k, metal_row_index(c->rows[i]), &c->shapes[c->n_shape]))
        return weft_fail(dg, W1501, s->loc, "%s has sizes of more than 32 bits",
                         c->rows[i]->symbol);
    const int32_t shape = add_shape(c);
    for (int which = 0; which < DEVICE_CALLS; which++) {
        metal_step *to = &c->of[which].steps[i];
        *to = (metal_step){.code = (uint64_t)(uintptr_t)k.code,
                           .rows = (int32_t)k.n[0],
                           .shape = shape,
                           .local = c->own[i].local,
                           .tile = c->own[i].tile};
        if (s->cell >= 0)
            to->cell = e->tables->at + e->call_at[which] + e->part.cells +
                       (uint64_t)s->cell * sizeof(metal_cell);
        for (int o = 0; o < K_OUT_MAX; o++) {
            const bool own = (to->local | to->tile) >> (K_IN_MAX + o) & 1;
            to->out[o] = (uint64_t)(uintptr_t)k.out[o] + (own ? e->blocks->at : 0);
        }
    }
    k.cell = s->cell >= 0 ? e->cells + s->cell : NULL; /* those that can be looked at here */
    k.lora = e->lora;
    size_t need = kernel_scratch(c->rows[i], &k), scratch = e->block_bytes - e->local_bytes;
    if (need > scratch)
        return weft_fail(dg, W1501, s->loc, "%s needs %zu bytes of scratch, the plan has %zu",
                         c->rows[i]->symbol, need, scratch);
    return WEFT_OK;
}

static void load_items(metal_bucket *c)
{
    for (int which = 0; which < DEVICE_CALLS; which++)
        for (int32_t i = 0; i < c->plan->n_item; i++) {
            const plan_item *it = &c->plan->item[i];
            c->of[which].items[i] = (metal_item){.first = it->first,
                                                 .n_step = it->n_step,
                                                 .every = it->per_thread,
                                                 .grain = (int32_t)it->grain};
        }
}

static weft_status load_steps(weft_diag *dg, const device_load *what, exec *e,
                              const kernel_row *const *rows, metal_maps *maps)
{
    const uintptr_t tables = (uintptr_t)e->tables->at;
    /* As the GPU sees them; cells and batch are each call's own. */
    exec_places at = {.weight = metal_weights_at,
                      .w = what->w,
                      .arena = e->arena ? (char *)(uintptr_t)e->arena->at : NULL,
                      .consts = (const char *)(tables + e->consts),
                      .code = (const kinstr *)(tables + e->code),
                      .cells = e->cells,
                      .slots = (const void *)(uintptr_t)metal_seen(e->d, what->slots)};
    for (int32_t b = 0; b < e->p->n_bucket; b++) {
        metal_bucket *c = &e->buckets[b];
        for (int32_t i = 0; i < c->plan->n_step; i++) {
            c->rows[i] = rows[c->plan->step[i].kernel];
            WEFT_TRY(load_step(dg, e, &at, maps, c, i));
        }
        load_items(c);
    }
    return WEFT_OK;
}

/* ---- the whole ---- */

void metal_unload(exec *e)
{
    if (!e)
        return;
    metal_drop(e); /* nothing is under way when its memory goes */
    if (e->queue)
        e->d->driver->queue_free(e->queue);
    metal_give(e->arena);
    metal_give(e->blocks);
    metal_give(e->tables);
    mem_free(e->times);
    mem_free(e); /* its tables with it */
}

static weft_status take_parts(weft_diag *dg, exec *e)
{
    metal_why why;
    WEFT_TRY(metal_take(dg, e->d, e->bytes.arena, &e->arena));
    WEFT_TRY(metal_take(dg, e->d, e->bytes.scratch, &e->blocks));
    WEFT_TRY(metal_take(dg, e->d, e->table_bytes, &e->tables));
    e->queue = e->d->driver->queue(e->d->gpu, &why);
    return e->queue ? WEFT_OK : metal_fail(dg, e->d, "making a queue", &why);
}

static weft_status fill(weft_diag *dg, const device_load *what, exec *e)
{
    const plan *p = what->p;
    carving c = {.base = e->tables->p};
    memset(e->tables->p, 0, e->table_bytes);
    carve_tables(&c, what, e);
    if (p->const_bytes)
        memcpy(e->tables->p + e->consts, p->consts, p->const_bytes);
    if (p->n_code)
        memcpy(e->tables->p + e->code, p->code, (size_t)p->n_code * sizeof *p->code);
    const kernel_row **rows = mem_alloc(mem_product((size_t)p->n_kernel + 1, sizeof *rows));
    metal_maps maps;
    strbuf text = {0};
    metal_maps_init(&maps);
    weft_status st = find_kernels(dg, p, rows);
    if (st == WEFT_OK)
        st = load_steps(dg, what, e, rows, metal_maps_are_off() ? NULL : &maps);
    if (st == WEFT_OK) {
        metal_maps_text(&maps, &text);
        st = metal_kernels_for(dg, e->d, strbuf_view(&text), &e->kernels);
    }
    strbuf_free(&text);
    metal_maps_deinit(&maps);
    mem_free(rows);
    WEFT_TRY(st);
    return metal_pipelines_make(dg, e);
}

weft_status metal_load(weft_diag *dg, device *d, const device_load *what, exec **out_e)
{
    exec sized;
    size_t own;
    WEFT_TRY(size_exec(dg, metal_of(d), what, &sized, &own));
    exec *e = mem_alloc(own);
    carving c = {.base = (char *)e};
    memset(e, 0, own);
    *e = sized;
    e->cells = what->cells;
    e->lora = what->lora;
    e->cancel = what->cancel;
    carve(&c, 1, sizeof *e);
    carve_own(&c, e);
    weft_status st = take_parts(dg, e);
    if (st == WEFT_OK)
        st = fill(dg, what, e);
    if (st == WEFT_OK)
        *out_e = e;
    else
        metal_unload(e);
    return st;
}
