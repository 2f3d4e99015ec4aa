/* metal_phases.c - the tables of a call: steps with its rows, units, the phases that have anything to do, and their pipelines.
 *
 * They depend on how many rows there are, which says where the arrays of a batch are too, and on the adapters in use: decoding
 * makes them ready once for each call that may be under way. */
#include "runtime/exec/metal_impl.h"

static int64_t units_of(const exec *e, const metal_bucket *c, int32_t step, const kbatch *b)
{
    kargs k = c->args[step];
    int32_t cell = c->plan->step[step].cell;
    k.batch = b; /* those that can be looked at here */
    k.cell = cell >= 0 ? e->cells + cell : NULL;
    k.lora = e->lora;
    return kernel_units(c->rows[step], &k);
}

/* Units of all items, or only of those that have other ones in calls with as many rows; whether any has changed. */
static bool count_units(const exec *e, const metal_bucket *c, metal_tables *t, const kbatch *b,
                        bool all)
{
    bool changed = false;
    for (int32_t i = 0; i < c->plan->n_item; i++) {
        const plan_item *it = &c->plan->item[i];
        if (!all && !kunit_varies(c->rows[it->first]->unit))
            continue;
        int64_t n = units_of(e, c, it->first, b);
        WEFT_ASSERT(n <= INT32_MAX);
        for (int32_t k = 1; k < it->n_step && all; k++)
            WEFT_ASSERT(units_of(e, c, it->first + k, b) == n);
        changed = changed || n != t->units[i];
        t->units[i] = n;
        t->items[i].units = (int32_t)n;
    }
    return changed;
}

/* ---- phases ---- */

/* Is the step a map that has become text, which needs no memory for registers? */
static bool is_made(const metal_bucket *c, int32_t step)
{
    return c->shapes[c->of[0].steps[step].shape].n_code < 0;
}

/* What can run the items of a span: a pipeline, and threadgroup memory. */
static weft_status find_pipeline(weft_diag *dg, const exec *e, const metal_bucket *c, item_span s,
                                 metal_pipeline **out_p, uint32_t *out_shared)
{
    metal_mask mask = {{0}};
    uint32_t shared = 0;
    for (int32_t i = s.first; i < s.end; i++)
        for (int32_t k = 0; k < c->plan->item[i].n_step; k++) {
            const kernel_row *row = c->rows[c->plan->item[i].first + k];
            const uint32_t own =
                is_made(c, c->plan->item[i].first + k) ? METAL_SHARED_WORDS : metal_row_shared(row);
            mask = metal_mask_with(mask, metal_row_index(row));
            shared = own > shared ? own : shared;
        }
    *out_shared = shared;
    return metal_pipeline_for(dg, e->d, e->kernels, mask, out_p);
}

/* A phase of these items, their units in one line. */
static void add_phase(metal_tables *t, item_span s, metal_pipeline *pipe, uint32_t shared)
{
    int64_t at = 0;
    for (int32_t i = s.first; i < s.end; i++) {
        t->items[i].at = (int32_t)at;
        at += t->items[i].every ? 0 : t->units[i];
    }
    WEFT_ASSERT(at <= INT32_MAX);
    t->pipe[t->n_phase] = pipe;
    t->shared[t->n_phase] = shared;
    t->phases[t->n_phase++] =
        (metal_phase){.first = s.first, .n_item = s.end - s.first, .units = (int32_t)at};
}

weft_status metal_list_phases(weft_diag *dg, exec *e, const metal_bucket *c, metal_tables *t)
{
    t->n_phase = 0;
    for (int32_t from = 0;;) {
        item_span s = exec_span_from(e->p, c->plan, t->units, from, t->manner != METAL_TOGETHER);
        metal_pipeline *pipe;
        uint32_t shared;
        if (s.first >= s.end)
            return WEFT_OK;
        WEFT_TRY(find_pipeline(dg, e, c, s, &pipe, &shared));
        if (t->manner != METAL_EACH)
            add_phase(t, s, pipe, shared);
        for (int32_t i = s.first; i < s.end && t->manner == METAL_EACH; i++)
            add_phase(t, (item_span){i, i + 1}, pipe, shared);
        from = s.end;
    }
}

/* All phases of a bucket with units for every item, and as they are where nobody uses an adapter. */
weft_status metal_pipelines_make(weft_diag *dg, exec *e)
{
    for (int32_t b = 0; b < e->p->n_bucket; b++) {
        metal_bucket *c = &e->buckets[b];
        metal_tables *t = &c->of[0];
        for (int idle = 0; idle < (e->lora ? 2 : 1); idle++) {
            for (int32_t i = 0; i < c->plan->n_item; i++)
                t->units[i] = !(idle && c->rows[c->plan->item[i].first]->op == KOP_lora_down);
            WEFT_TRY(metal_list_phases(dg, e, c, t));
        }
    }
    return WEFT_OK;
}

/* ---- a call ---- */

/* Cells as kernels see them, if they have changed since this part of the tables was last used. */
static void write_cells(exec *e)
{
    kcell *seen = e->seen[metal_which(e->turn)];
    const size_t bytes = (size_t)e->p->n_cell * sizeof *seen;
    metal_cell *to = (metal_cell *)(void *)metal_part(e, e->turn, e->part.cells);
    if (bytes == 0 || memcmp(seen, e->cells, bytes) == 0)
        return;
    memcpy(seen, e->cells, bytes);
    for (int32_t i = 0; i < e->p->n_cell; i++) {
        const kcell *c = &e->cells[i];
        to[i] = (metal_cell){.n_tier = c->n_tier,
                             .table = c->table,
                             .page_tok = (int32_t)c->page_tok,
                             .pinned = (int32_t)c->pinned,
                             .heads = (int32_t)c->heads,
                             .k = (int32_t)c->k,
                             .v = (int32_t)c->v,
                             .latent = c->latent};
        for (int32_t k = 0; k < c->n_tier; k++)
            to[i].tier[k] = (metal_tier){.base = metal_seen(e->d, c->tier[k].base),
                                         .page_bytes = c->tier[k].page_bytes,
                                         .key = (int32_t)c->tier[k].key,
                                         .value = (int32_t)c->tier[k].value};
    }
}

static void write_lora(exec *e)
{
    char *to = metal_part(e, e->turn, e->part.lora);
    if (e->lora_bytes && memcmp(to, e->lora, e->lora_bytes) != 0)
        memcpy(to, e->lora, e->lora_bytes);
}

/* Does an operand begin at a multiple of 16 bytes, and each of its rows? */
static uint32_t aligned_bit(uint64_t at, int64_t pitch, int bit)
{
    return (uint32_t)(at % 16 == 0 && pitch % 16 == 0) << bit;
}

/* Rows, and the operands that depend on where the batch is. */
static void write_steps(exec *e, metal_bucket *c, metal_tables *t, const int64_t *rows)
{
    const kbatch *batch = (const kbatch *)(uintptr_t)metal_part_at(e, e->turn, e->part.batch);
    for (int32_t i = 0; i < c->plan->n_step; i++) {
        kargs *k = &c->args[i];
        metal_step *to = &t->steps[i];
        exec_step_call(&c->plan->step[i], c->own[i].io, batch, rows, k);
        WEFT_ASSERT(k->n[0] <= INT32_MAX);
        to->rows = (int32_t)k->n[0];
        to->aligned = 0;
        for (int o = 0; o < K_IN_MAX; o++) {
            const bool own = (to->local | to->tile) >> o & 1;
            to->in[o] = (uint64_t)(uintptr_t)k->in[o] + (own ? e->blocks->at : 0);
            to->aligned |= aligned_bit(to->in[o], k->pitch[o], o);
        }
        for (int o = 0; o < K_OUT_MAX; o++)
            to->aligned |= aligned_bit(to->out[o], k->out_pitch[o], K_IN_MAX + o);
    }
}

weft_status metal_prepare(weft_diag *dg, exec *e, metal_bucket *c, const kbatch *b)
{
    const int64_t rows[] = {[ROWS_T] = b->n_tok, [ROWS_R] = b->n_out, [ROWS_S] = b->n_seq};
    const uint64_t version = e->lora ? e->lora->version : 0;
    const metal_manner manner = e->watch ? METAL_APART : e->measure ? METAL_EACH : METAL_TOGETHER;
    metal_tables *t = &c->of[metal_which(e->turn)];
    bool same = t->ready && memcmp(t->n_row, rows, sizeof rows) == 0 && t->lora == version &&
                t->manner == manner;
    write_cells(e);
    write_lora(e);
    if (!same)
        write_steps(e, c, t, rows);
    t->ready = false;
    t->lora = version;
    t->manner = manner;
    memcpy(t->n_row, rows, sizeof rows);
    if (count_units(e, c, t, b, !same) || !same)
        WEFT_TRY(metal_list_phases(dg, e, c, t));
    t->ready = true;
    return WEFT_OK;
}
