/* plan_check_tables.c - the parts of a plan that all its steps share: weights, cells, outputs, totals.
 *
 * A weight's rows, pitch and bytes must follow from its sizes and strides as lower_weight.c makes them, for
 * steps are held against those, and the loader holds sizes and strides against the checkpoint. */
#include "compiler/plan_check_tables.h"

#include "compiler/target.h"
#include "runtime/base/intmath.h"
#include <inttypes.h>

/* ---- weights ---- */

/* Whether axes [from, rank - 1) are rows at one distance, which is then *out_pitch. */
static bool rows_are_even(const plan_weight *w, int from, int64_t row_bytes, int64_t *out_pitch)
{
    int64_t pitch = 0, n = 1; /* of the rows seen so far, from the fastest axis up */
    for (int i = w->rank - 2; i >= from; i--) {
        if (w->dim[i] == 1)
            continue;
        int64_t whole = w->stride[i];
        if (n == 1)
            pitch = whole;
        else if (!i64_mul(pitch, n, &whole) || whole != w->stride[i])
            return false;
        n *= w->dim[i]; /* the product of all of them is w->rows */
    }
    *out_pitch = n == 1 ? row_bytes : pitch;
    return true;
}

static const char *interleaved_fault(const plan_weight *w, int64_t row_bytes)
{
    bool same = w->type == w->stored && w->stored != DT_MXFP4_HF;
    bool repacked = w->stored == DT_MXFP4_HF && w->type == DT_MXFP4;
    if (w->computed || (!same && !repacked) || !layout_has(w->layout, w->type))
        return "cannot be interleaved";
    if (w->rank < 2 || w->dim[w->rank - 2] % LAYOUT_GROUP != 0)
        return "is interleaved and has no whole groups of rows";
    return w->pitch == row_bytes * LAYOUT_GROUP ? NULL : "has another distance between its groups";
}

static const char *mapped_fault(const plan_weight *w, int64_t row_bytes)
{
    const dtype_row *t = dtype_row_of(w->type);
    int64_t pitch, last = w->dim[w->rank - 1];
    if (w->stored != w->type || w->type == DT_MXFP4_HF || w->computed)
        return "stays in place and yet changes";
    if (t->elems == 1 && last > 1 && w->stride[w->rank - 1] != (int64_t)t->bytes)
        return "stays in place and has gaps in its rows";
    if ((!w->n_table && w->n_piece != 1) ||
        !rows_are_even(w, w->n_table ? 1 : 0, row_bytes, &pitch))
        return "stays in place and its rows are not even";
    if (w->layout != LAYOUT_STORED)
        return pitch == row_bytes ? interleaved_fault(w, row_bytes)
                                  : "is interleaved in place and has gaps";
    if (w->pitch != pitch || pitch < 0)
        return "has another distance between its rows";
    return NULL;
}

static const char *copied_fault(const plan_weight *w, int64_t row_bytes)
{
    bool same = w->type == w->stored && w->stored != DT_MXFP4_HF;
    bool repacked = w->stored == DT_MXFP4_HF && w->type == DT_MXFP4;
    if (w->pitch != row_bytes)
        return "has another distance between its rows";
    if (w->computed && w->type != DT_F32)
        return "is computed and not F32";
    if (!w->computed && !same && !repacked && w->type != DT_F32)
        return "cannot be converted";
    return NULL;
}

static const char *pieces_fault(const plan_weight *w)
{
    int64_t rows = 0;
    if (w->computed)
        return w->n_piece == 0 ? NULL : "is computed and stored";
    if (w->n_piece < 1 || !w->piece || (w->stored == DT_MXFP4_HF) != (w->scales != NULL))
        return "has no pieces";
    for (int32_t i = 0; i < w->n_piece; i++) {
        if (w->piece[i].rows < 1 || w->piece[i].offset < 0 || w->piece[i].tensor < 0 ||
            !i64_add(rows, w->piece[i].rows, &rows))
            return "has a piece that cannot be";
        if (w->scales && w->scales[i].rows != w->piece[i].rows)
            return "has scales of other sizes";
    }
    return rows == w->dim[0] ? NULL : "has pieces of another size";
}

/* What is wrong with it; NULL: nothing. */
static const char *weight_fault(const plan_weight *w)
{
    int64_t rows = 1;
    size_t row_bytes, bytes, reach;
    if ((unsigned)w->stored >= DT_COUNT || (unsigned)w->type >= DT_COUNT ||
        (unsigned)w->mode > WEIGHT_INTERLEAVED || (unsigned)w->layout >= LAYOUT_COUNT ||
        !dtype_row_of(w->type)->is_weight || (!w->computed && !dtype_row_of(w->stored)->is_weight))
        return "is of no type that kernels read";
    if (w->rank < 1 || w->rank > K_AXES_MAX)
        return "has no such number of axes";
    for (int i = 0; i < w->rank; i++) {
        if (w->dim[i] < 1 || w->dim[i] > PLAN_SIZE_MAX || w->stride[i] < 0)
            return "has a size that cannot be";
        if (i < w->rank - 1 && !i64_mul(rows, w->dim[i], &rows))
            return "is too large";
    }
    if (w->rows != rows || (w->n_table != 0 && (w->n_table != w->dim[0] || w->rank < 2)))
        return "has another number of rows";
    if (!dtype_bytes(w->type, w->dim[w->rank - 1], &row_bytes) || row_bytes > INT64_MAX / 4 ||
        !size_mul((size_t)rows, row_bytes, &bytes) || w->bytes != bytes || bytes > INT64_MAX / 4)
        return "has another number of bytes";
    if (w->pitch < 0 || !size_mul((size_t)rows, (size_t)w->pitch, &reach) || reach > INT64_MAX / 4)
        return "is too large";
    if (w->mode != WEIGHT_MAPPED && (w->mode == WEIGHT_INTERLEAVED) != (w->layout != LAYOUT_STORED))
        return "lies in memory as it is not loaded";
    if (w->align < 0 || w->align > 4096 || (w->align & (w->align - 1)) != 0 ||
        (w->align && w->mode != WEIGHT_MAPPED))
        return "begins where it cannot";
    const char *fault = w->mode == WEIGHT_MAPPED        ? mapped_fault(w, (int64_t)row_bytes)
                        : w->mode == WEIGHT_INTERLEAVED ? interleaved_fault(w, (int64_t)row_bytes)
                                                        : copied_fault(w, (int64_t)row_bytes);
    return fault ? fault : pieces_fault(w);
}

/* Add n bytes that begin at PLAN_ALIGN to a total. */
static bool add_block(size_t *total, size_t n)
{
    size_t end;
    return size_add(*total, n, &end) && size_align_up(end, PLAN_ALIGN, total);
}

/* Add weight i to the total of its mode; one in the place of another counts once. */
static bool add_weight(const plan *p, int32_t i, size_t *copied, size_t *interleaved,
                       size_t *mapped)
{
    const plan_weight *w = &p->weight[i];
    if (w->mode != WEIGHT_MAPPED)
        return add_block(w->mode == WEIGHT_INTERLEAVED ? interleaved : copied, w->bytes);
    for (int32_t k = 0; k < i; k++)
        if (plan_weights_share(&p->weight[k], w))
            return true;
    return size_add(*mapped, w->bytes, mapped);
}

static weft_status check_weights(weft_diag *dg, const plan *p)
{
    size_t copied = 0, interleaved = 0, tables = 0, mapped = 0;
    for (int32_t i = 0; i < p->n_weight; i++) {
        const plan_weight *w = &p->weight[i];
        const char *fault = weight_fault(w);
        if (fault)
            return weft_fail(dg, W1503, WEFT_NOWHERE, "plan: weight %d, %s, %s", (int)i, w->name,
                             fault);
        if (!add_weight(p, i, &copied, &interleaved, &mapped) ||
            !add_block(&tables, (size_t)w->n_table * sizeof(void *)))
            return weft_fail(dg, W1503, WEFT_NOWHERE, "plan: its weights are too large");
    }
    if (interleaved != p->interleaved_bytes)
        return weft_fail(dg, W1503, WEFT_NOWHERE,
                         "plan: its weights take %zu bytes interleaved; it says %zu", interleaved,
                         p->interleaved_bytes);
    if (copied != p->copied_bytes || tables != p->table_bytes || mapped != p->mapped_bytes)
        return weft_fail(dg, W1503, WEFT_NOWHERE,
                         "plan: its weights take %zu bytes of copies, %zu of tables and %zu in "
                         "place; it says %zu, %zu and %zu",
                         copied, tables, mapped, p->copied_bytes, p->table_bytes, p->mapped_bytes);
    return WEFT_OK;
}

/* ---- the rest ---- */

static bool is_size(int64_t n)
{
    return n >= 1 && n <= PLAN_SIZE_MAX;
}

static weft_status check_cells(weft_diag *dg, const plan *p)
{
    if (p->kv != DT_F32 && p->kv != DT_F16 && p->kv != DT_BF16)
        return weft_fail(dg, W1503, WEFT_NOWHERE, "plan: cells do not store %s",
                         (unsigned)p->kv < DT_COUNT ? dtype_row_of(p->kv)->name : "that type");
    const char *why = p->tiers.n_tier ? kpolicy_wrong(&p->tiers) : NULL;
    if (why)
        return weft_fail(dg, W1503, WEFT_NOWHERE, "plan: its tiers: %s", why);
    for (int32_t i = 0; i < p->n_cell; i++) {
        const plan_cell *c = &p->cell[i];
        int64_t n;
        if (!is_size(c->heads) || !is_size(c->k) || !is_size(c->v) ||
            (c->latent && (c->heads != 1 || c->v > c->k)) || !i64_mul(c->heads, c->k + c->v, &n) ||
            n > PLAN_SIZE_MAX || c->window < 0 || c->window > PLAN_SIZE_MAX ||
            (unsigned)c->layout > PLAN_RING || c->keep < 0 || c->keep > PLAN_SIZE_MAX ||
            (unsigned)c->coarsest >= KFORM_COUNT || c->pin < 0)
            return weft_fail(dg, W1503, WEFT_NOWHERE, "plan: cell %d, %s, cannot have these sizes",
                             (int)i, c->name);
    }
    return WEFT_OK;
}

/* Sites lie behind each other, each with all its slots. */
static weft_status check_sites(weft_diag *dg, const plan *p)
{
    size_t total = 0;
    if (p->lora_slots < 0 || p->lora_slots > LORA_SLOTS_MAX || p->lora_rank < (p->n_site > 0) ||
        p->lora_rank > LORA_RANK_MAX || p->n_site < 0)
        return weft_fail(dg, W1503, WEFT_NOWHERE,
                         "plan: %" PRId64 " adapters of rank %" PRId64 " cannot be", p->lora_slots,
                         p->lora_rank);
    for (int32_t i = 0; i < p->n_site; i++) {
        const plan_site *s = &p->site[i];
        lora_shape shape = plan_site_shape(p, s);
        size_t bytes;
        int64_t n;
        /* Sizes are below 2^31 and ranks below 2^13, so that only the number of parts can be too much. */
        bool good = (unsigned)s->kind < LORA_KINDS && s->first >= 0 && is_size(s->in) &&
                    is_size(s->out) && is_size(s->parts);
        good = good && i64_mul(lora_a_floats(&shape) + lora_b_floats(&shape), s->parts, &n) &&
               n < INT64_MAX / 64 && s->slot_bytes == (size_t)n * sizeof(float) &&
               s->offset == total && size_mul(s->slot_bytes, (size_t)p->lora_slots, &bytes) &&
               bytes < SIZE_MAX / 4 && add_block(&total, bytes) && total < SIZE_MAX / 4;
        if (!good)
            return weft_fail(dg, W1503, WEFT_NOWHERE, "plan: site %d, %s, cannot have these sizes",
                             (int)i, s->name);
    }
    if (total != p->adapter_bytes)
        return weft_fail(dg, W1503, WEFT_NOWHERE, "plan: its adapters take %zu bytes; it says %zu",
                         total, p->adapter_bytes);
    return WEFT_OK;
}

static weft_status check_limits(weft_diag *dg, const plan *p)
{
    if (!is_size(p->n_tok_max) || p->n_out_max < 0 || p->n_out_max > p->n_tok_max ||
        !is_size(p->n_seq_max) || p->n_ctx < 0 || p->n_ctx > PLAN_SIZE_MAX || p->n_vocab < 0 ||
        p->n_vocab > PLAN_SIZE_MAX || p->n_pos < 0 || p->n_pos > PLAN_SIZE_MAX)
        return weft_fail(dg, W1503, WEFT_NOWHERE,
                         "plan: calls of %" PRId64 " rows, %" PRId64 " as output, of %" PRId64
                         " sequences cannot be",
                         p->n_tok_max, p->n_out_max, p->n_seq_max);
    if (p->n_bucket < 1 || p->n_kernel < 0 || p->n_weight < 0 || p->n_cell < 0 || p->n_output < 0 ||
        p->n_code < 0 || p->const_bytes > INT64_MAX / 4)
        return weft_fail(dg, W1503, WEFT_NOWHERE, "plan: it has %d buckets", (int)p->n_bucket);
    for (int32_t i = 0; i < p->n_output; i++) {
        const plan_output *o = &p->output[i];
        if ((unsigned)o->rows > ROWS_FIXED || !is_size(o->width) || o->index < -1 ||
            (o->rows == ROWS_FIXED && !is_size(o->n_row)))
            return weft_fail(dg, W1503, WEFT_NOWHERE, "plan: output %s cannot have these sizes",
                             o->name);
    }
    return WEFT_OK;
}

/* Each is one that the back end has, with the facts that it has there. */
static weft_status check_kernels(weft_diag *dg, const backend *be, const plan *p)
{
    for (int32_t i = 0; i < p->n_kernel; i++) {
        const plan_kernel *k = &p->kernel[i];
        plan_kernel has;
        if (!be->find(be, k->name, &has))
            return weft_fail(dg, W1503, WEFT_NOWHERE,
                             "plan: kernel %s is not among the %s kernels of this machine", k->name,
                             be->level);
        if (k->op != has.op || k->type != has.type || k->layout != has.layout ||
            k->act != has.act || k->unit != has.unit || k->reference != has.reference ||
            k->row != has.row)
            return weft_fail(dg, W1503, WEFT_NOWHERE, "plan: kernel %s is another one here",
                             k->name);
    }
    return WEFT_OK;
}

weft_status plan_check_tables(weft_diag *dg, const backend *be, const plan *p)
{
    WEFT_TRY(check_limits(dg, p));
    WEFT_TRY(check_kernels(dg, be, p));
    WEFT_TRY(check_cells(dg, p));
    WEFT_TRY(check_sites(dg, p));
    return check_weights(dg, p);
}
