/* plan_check_order.c - threads do not meet in memory, and nothing is read before it was made.
 *
 * Threads wait for each other only between phases. So what an item of a phase writes to shared memory, or
 * to a cell, no other item of the phase may touch; and within an item, one step may touch what another
 * wrote only where every unit keeps to its own part. What a thread has for itself is safe from others,
 * but its values must not have been overwritten by a later one that was given the same place. */
#include "compiler/plan_check_tables.h"

#include <inttypes.h>

static weft_status fail_at(weft_diag *dg, const plan_trace *t, int32_t step, const char *what,
                           int32_t other)
{
    const plan_step *s = &t->b->step[step], *o = other >= 0 ? &t->b->step[other] : NULL;
    weft_status st = weft_fail(dg, W1503, s->loc, "plan: bucket %d, step %d (%s): %s",
                               (int)t->index, (int)step, plan_kernel_of(t->p, s)->name, what);
    if (o)
        weft_note_at(dg, o->loc, "the other one is step %d (%s)", (int)other,
                     plan_kernel_of(t->p, o)->name);
    return st;
}

static bool is_shared(const plan_access *a)
{
    return a->space == SPACE_ARENA || a->space == ACCESS_CELL;
}

/* A thread begins a chain again for each range of units, so that its tiles may not lie where it reads a value that was
 * made before it, be it at an earlier step. */
static bool is_lost(const plan_access *a, const plan_access *by)
{
    return !a->write && a->space == SPACE_LOCAL && by->write && by->space == SPACE_TILE &&
           plan_access_meet(a, by);
}

/* Whether steps i <= j, of one phase, can be run side by side. */
static weft_status check_pair(weft_diag *dg, const plan_trace *t, int32_t i, int32_t j)
{
    bool same_item = t->item[i] == t->item[j];
    bool in_place = i == j && kop_row_of(plan_kernel_of(t->p, &t->b->step[i])->op)->in_place;
    for (size_t x = t->first[i]; x < t->first[i + 1]; x++)
        for (size_t y = i == j ? x + 1 : t->first[j]; y < t->first[j + 1]; y++) {
            const plan_access *a = &t->at[x], *b = &t->at[y];
            if (i != j && same_item && (is_lost(a, b) || is_lost(b, a)))
                return fail_at(dg, t, i, "a tile of its chain overwrites what the chain reads", j);
            if ((!a->write && !b->write) || (i != j && !is_shared(a)) || !plan_access_meet(a, b))
                continue;
            if (i == j && (!in_place || !plan_access_align(a, b)))
                return fail_at(dg, t, i, "a result overlaps an operand or another result", -1);
            if (!same_item)
                return fail_at(dg, t, j, "it touches memory that another step of its phase writes",
                               i);
            if (!plan_access_align(a, b))
                return fail_at(dg, t, j,
                               "it touches what other threads write in another step of its chain",
                               i);
        }
    return WEFT_OK;
}

static weft_status check_phase(weft_diag *dg, const plan_trace *t, int32_t first, int32_t end)
{
    for (int32_t j = first; j < end; j++)
        for (int32_t i = first; i <= j; i++)
            WEFT_TRY(check_pair(dg, t, i, j));
    return WEFT_OK;
}

/* The last write before `step` that meets a; NULL: there is none. */
static const plan_access *writer_of(const plan_trace *t, int32_t step, const plan_access *a,
                                    int32_t *out_step)
{
    for (int32_t i = step - 1; i >= 0; i--)
        for (size_t x = t->first[i]; x < t->first[i + 1]; x++)
            if (t->at[x].write && plan_access_meet(&t->at[x], a)) {
                *out_step = i;
                return &t->at[x];
            }
    return NULL;
}

/* Ids may look something up if they were made by a route among few enough experts. */
static bool ids_are_bound(const plan_trace *t, const plan_step *s, const plan_access *a,
                          const plan_step *from, const plan_access *w)
{
    return plan_kernel_of(t->p, from)->op == KOP_route && w->operand == 0 &&
           w->offset == a->offset && (w->pitch == w->width || w->rows == 1) &&
           from->rows == s->rows && plan_access_span(w) >= plan_access_span(a) &&
           from->size.route.experts <= a->id_limit;
}

static bool quantized_fits(const plan_trace *t, const plan_step *s, const plan_access *a,
                           const plan_step *from, const plan_access *w)
{
    kop op = plan_kernel_of(t->p, from)->op;
    bool quantizes = op == KOP_quantize || op == KOP_quantize4;
    return quantizes && w->offset == a->offset && w->rows == a->rows && w->width == a->width &&
           (w->pitch == a->pitch || a->rows == 1) &&
           from->choice.quantize.act == (int32_t)plan_kernel_of(t->p, s)->act;
}

static weft_status check_read(weft_diag *dg, const plan_trace *t, int32_t step,
                              const plan_access *a)
{
    const plan_step *s = &t->b->step[step];
    int32_t from = -1;
    if (a->space != SPACE_ARENA && a->space != SPACE_LOCAL && a->space != SPACE_TILE)
        return WEFT_OK;
    const plan_access *w = writer_of(t, step, a, &from);
    if (!w && a->space == SPACE_ARENA &&
        a->offset + plan_access_span(a) <= (int64_t)t->p->input_bytes)
        return WEFT_OK; /* given by another part of the model */
    if (!w)
        return fail_at(dg, t, step, "it reads memory that no step has written", -1);
    if (a->space == SPACE_LOCAL && w->space != SPACE_LOCAL)
        return fail_at(dg, t, step, "the value it reads has been overwritten by a tile", from);
    if (a->space == SPACE_TILE && (t->item[from] != t->item[step] || !plan_access_align(w, a)))
        return fail_at(dg, t, step, "the tile it reads is not one that its chain has made", from);
    if (a->id_limit > 0 && !ids_are_bound(t, s, a, &t->b->step[from], w))
        return fail_at(dg, t, step, "ids that look rows up come from tokens, pos or a route only",
                       from);
    if (a->quantized != w->quantized ||
        (a->quantized && !quantized_fits(t, s, a, &t->b->step[from], w)))
        return fail_at(dg, t, step, "the activations it reads are quantised in another form", from);
    return WEFT_OK;
}

static weft_status check_outputs(weft_diag *dg, const plan_trace *t)
{
    for (int32_t i = 0; i < t->p->n_output; i++) {
        const plan_output *o = &t->p->output[i];
        const plan_operand *at = &t->b->output[i];
        int64_t rows = o->rows == ROWS_FIXED ? o->n_row : plan_rows_max(t->p, t->b, o->rows);
        plan_access a = {.space = SPACE_ARENA,
                         .offset = at->offset,
                         .rows = rows,
                         .width = o->width * 4,
                         .pitch = o->width * 4};
        int32_t from;
        /* Rows and widths are below 2^31, so their product fits. */
        if (at->space != SPACE_ARENA || (at->type != DT_F32 && at->type != DT_I32) ||
            at->offset < 0 || at->offset % 4 != 0 || rows < 0 ||
            (rows > 0 && (a.width > INT64_MAX / 4 / rows ||
                          at->offset > (int64_t)t->b->arena_bytes - rows * a.width)))
            return weft_fail(dg, W1503, WEFT_NOWHERE,
                             "plan: bucket %d: output %s is outside the arena", (int)t->index,
                             o->name);
        if (rows > 0 && !writer_of(t, t->b->n_step, &a, &from))
            return weft_fail(dg, W1503, WEFT_NOWHERE, "plan: bucket %d: no step makes output %s",
                             (int)t->index, o->name);
    }
    return WEFT_OK;
}

/* Steps [first, end) may run together with those of the phases before them, from step `from` on, of which only those stay
 * that every thread does for itself. */
static weft_status check_joined(weft_diag *dg, const plan_trace *t, int32_t from, int32_t first,
                                int32_t end)
{
    for (int32_t i = from; i < first; i++)
        for (int32_t j = first; j < end && t->b->item[t->item[i]].per_thread; j++)
            WEFT_TRY(check_pair(dg, t, i, j));
    return WEFT_OK;
}

weft_status plan_check_order(weft_diag *dg, const plan_trace *t)
{
    const plan_bucket *b = t->b;
    int32_t step = 0, from = 0; /* from: where the phases begin that may run as one */
    for (int32_t i = 0; i < b->n_item;) {
        int32_t first = step, phase = b->item[i].phase;
        bool may_idle = plan_phase_may_idle(t->p, b, i);
        for (; i < b->n_item && b->item[i].phase == phase; i++)
            step += b->item[i].n_step;
        WEFT_TRY(check_phase(dg, t, first, step));
        WEFT_TRY(check_joined(dg, t, from, first, step));
        from = may_idle ? from : step;
    }
    for (int32_t i = 0; i < b->n_step; i++)
        for (size_t x = t->first[i]; x < t->first[i + 1]; x++)
            if (!t->at[x].write)
                WEFT_TRY(check_read(dg, t, i, &t->at[x]));
    return check_outputs(dg, t);
}
