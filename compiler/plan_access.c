/* plan_access.c - operands of a step as extents of bytes, checked against their space.
 *
 * Numbers may be anything; each size is looked at before it is multiplied. */
#include "compiler/plan_access_impl.h"

#include "runtime/base/intmath.h"
#include <inttypes.h>
#include <stdio.h>

/* ---- sizes ---- */

bool acc_refuse(plan_accesses *l, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    if (!l->why[0])
        vsnprintf(l->why, sizeof l->why, fmt, ap);
    va_end(ap);
    return false;
}

int64_t acc_times(plan_accesses *l, int64_t a, int64_t b)
{
    int64_t r = 0;
    if (!i64_mul(a, b, &r))
        l->overflow = true;
    return r;
}

int64_t acc_plus(plan_accesses *l, int64_t a, int64_t b)
{
    int64_t r = 0;
    if (!i64_add(a, b, &r))
        l->overflow = true;
    return r;
}

/* Sizes n[1] to n[last] are there. */
bool acc_sizes(plan_accesses *l, int last)
{
    for (int i = 1; i <= last; i++)
        if (l->s->n[i] < 1 || l->s->n[i] > PLAN_SIZE_MAX)
            return acc_refuse(l, "size %d is %" PRId64, i, l->s->n[i]);
    return true;
}

int64_t plan_rows_max(const plan *p, const plan_bucket *b, plan_rows rows)
{
    int64_t most = b->n_tok_max;
    if (rows == ROWS_R && p->n_out_max < most)
        most = p->n_out_max;
    if (rows == ROWS_S && p->n_seq_max < most)
        most = p->n_seq_max;
    return most;
}

/* ---- where an operand may be ---- */

/* Bytes that may be touched from the beginning of the operand's space on; -1: none. */
static int64_t room(const plan_accesses *l, const plan_operand *o)
{
    const plan_weight *w;
    size_t row;
    switch (o->space) {
    case SPACE_WEIGHT:
        w = &l->p->weight[o->id];
        if (w->mode != WEIGHT_MAPPED || w->layout != LAYOUT_STORED)
            return (int64_t)w->bytes;
        return dtype_bytes(w->type, w->dim[w->rank - 1], &row)
                   ? (w->rows - 1) * w->pitch + (int64_t)row
                   : -1;
    case SPACE_CONST:
        return (int64_t)l->p->const_bytes;
    case SPACE_ARENA:
        return (int64_t)l->b->arena_bytes;
    case SPACE_LOCAL:
    case SPACE_TILE:
        return (int64_t)l->b->local_bytes;
    case SPACE_NONE:
    case SPACE_IO:
    case SPACE_ADAPTER:
        break;
    }
    return -1;
}

int64_t plan_access_span(const plan_access *a)
{
    return (a->rows - 1) * a->pitch + a->width;
}

/* Add an access whose operand has been looked at. */
bool acc_put(plan_accesses *l, const plan_operand *o, plan_access a, int64_t align)
{
    const char *side = a.write ? "result" : "operand";
    int64_t end, have = room(l, o), span;
    bool per_thread = l->item->per_thread;
    a.space = (int)o->space;
    a.id = o->space == SPACE_WEIGHT ? o->id : 0;
    a.offset = o->offset;
    if (o->space == SPACE_TILE) {
        /* An executor moves all tiles of a step by the columns that the step counts. */
        if (per_thread || l->s->tile == 0 || a.share != SHARE_COL || a.unit != l->s->tile * 4)
            return acc_refuse(l, "%s %d cannot be a tile", side, a.operand);
        int64_t most = l->item->grain;
        if (most > 0 && i64_mul(most, a.unit, &most) && most < a.width)
            a.width = most;
    }
    if (a.write && (o->space == SPACE_LOCAL) != per_thread)
        return acc_refuse(l, "result %d of a step that %s is in %s", a.operand,
                          per_thread ? "every thread computes" : "threads share",
                          per_thread ? "shared memory" : "a thread's own memory");
    if (a.pitch < 0 || (a.write && a.rows > 1 && a.pitch < a.width))
        return acc_refuse(l, "%s %d has rows %" PRId64 " bytes apart, of %" PRId64, side, a.operand,
                          a.pitch, a.width);
    span = acc_plus(l, acc_times(l, a.rows - 1, a.pitch), a.width);
    end = acc_plus(l, o->offset, span);
    if (l->overflow || o->offset < 0 || end > have)
        return acc_refuse(l, "%s %d reaches to byte %" PRId64 " of %" PRId64, side, a.operand,
                          l->overflow ? INT64_MAX : end, have);
    if (o->space != SPACE_WEIGHT &&
        (o->offset % align != 0 || (a.rows > 1 && a.pitch % align != 0)))
        return acc_refuse(l, "%s %d is not aligned to %" PRId64 " bytes", side, a.operand, align);
    WEFT_ASSERT(l->n < ACCESS_MAX);
    l->at[l->n++] = a;
    return true;
}

bool acc_given(const plan_accesses *l, int i)
{
    return l->s->in[i].space != SPACE_NONE;
}

/* Reference kernels take rows without gaps. */
static int64_t pitch_of(const plan_accesses *l, int64_t pitch, int64_t width)
{
    return l->k->reference ? width : pitch;
}

/* ---- activations ---- */

const acc_sharing acc_shared_by_all = {SHARE_ALL, 0};

acc_sharing acc_by_row(const plan_accesses *l, int64_t rows)
{
    return l->s->tile > 0 ? acc_shared_by_all : (acc_sharing){SHARE_ROW, rows};
}

acc_sharing acc_by_unit(const plan_accesses *l, int64_t rows)
{
    return l->s->tile > 0 ? (acc_sharing){SHARE_COL, l->s->tile * 4}
                          : (acc_sharing){SHARE_ROW, rows};
}

/* Input i is no weight, or one whose f32 lie one after the other at addresses of floats: copied, or stored so. */
bool acc_weight_aligned(plan_accesses *l, int i)
{
    const plan_operand *o = &l->s->in[i];
    if (o->space != SPACE_WEIGHT)
        return true;
    const plan_weight *w = &l->p->weight[o->id];
    bool dense = (size_t)w->rows * (size_t)w->pitch == w->bytes;
    if (!w->n_table && w->layout == LAYOUT_STORED &&
        (w->mode == WEIGHT_COPIED || (w->align >= (int32_t)sizeof(float) && dense)))
        return true;
    return acc_refuse(l, "operand %d, weight %s, has not been copied", i, w->name);
}

/* Input i: rows of `elems` f32 each. */
bool acc_rows_in(plan_accesses *l, int i, int64_t rows, int64_t elems, acc_sharing how)
{
    const plan_operand *o = &l->s->in[i];
    int64_t width = acc_times(l, elems, 4);
    if (!acc_given(l, i))
        return acc_refuse(l, "operand %d is missing", i);
    if (o->type != DT_F32)
        return acc_refuse(l, "operand %d is %s instead of F32", i, dtype_row_of(o->type)->name);
    if (!acc_weight_aligned(l, i))
        return false;
    return acc_put(l, o,
                   (plan_access){.operand = (int8_t)i,
                                 .rows = rows,
                                 .width = width,
                                 .pitch = pitch_of(l, l->s->pitch[i], width),
                                 .share = how.share,
                                 .unit = how.unit},
                   4);
}

bool acc_rows_out_of(plan_accesses *l, int i, dtype type, int64_t rows, int64_t elems,
                     acc_sharing how)
{
    const plan_operand *o = &l->s->out[i];
    int64_t width = acc_times(l, elems, 4);
    if (o->space != SPACE_ARENA && o->space != SPACE_LOCAL && o->space != SPACE_TILE)
        return acc_refuse(l, "result %d has no memory", i);
    if (o->type != type)
        return acc_refuse(l, "result %d is %s instead of %s", i, dtype_row_of(o->type)->name,
                          dtype_row_of(type)->name);
    return acc_put(l, o,
                   (plan_access){.operand = (int8_t)i,
                                 .write = true,
                                 .rows = rows,
                                 .width = width,
                                 .pitch = pitch_of(l, l->s->out_pitch[i], width),
                                 .share = how.share,
                                 .unit = how.unit},
                   4);
}

bool acc_rows_out(plan_accesses *l, int64_t rows, int64_t elems, acc_sharing how)
{
    return acc_rows_out_of(l, 0, DT_F32, rows, elems, how);
}

/* Input 0 of a contraction, in the form that the kernel wants. */
bool acc_multiplied_in(plan_accesses *l, int64_t rows, int64_t n, acc_sharing how)
{
    kact act = l->k->act;
    const plan_operand *o = &l->s->in[0];
    if (act == ACT_F32)
        return acc_rows_in(l, 0, rows, n, how);
    if (n % act_block(act) != 0)
        return acc_refuse(l, "rows of %" PRId64 " elements cannot be quantised", n);
    if (o->space != SPACE_ARENA && o->space != SPACE_LOCAL)
        return acc_refuse(l, "operand 0 is not quantised");
    int64_t group = act_group(act), width = act_row_bytes(act, n);
    if (group > 1) { /* none can be read without the others of its group */
        if (l->s->pitch[0] != width)
            return acc_refuse(l, "groups of quantised rows have no gaps between them");
        rows = acc_times(l, i64_ceil_div(rows, group), group);
        how = acc_shared_by_all;
    }
    return acc_put(l, o,
                   (plan_access){.rows = rows,
                                 .width = width,
                                 .pitch = l->s->pitch[0],
                                 .share = how.share,
                                 .unit = how.unit,
                                 .quantized = true},
                   ACT_ALIGN);
}

/* Ids, one after the other, all of them below limit (0: positions, which are only numbers). */
bool acc_ids_in(plan_accesses *l, int i, int64_t n, int64_t limit, acc_sharing how)
{
    const plan_operand *o = &l->s->in[i];
    int64_t below = o->id == IO_TOKENS ? l->p->n_vocab : l->p->n_pos;
    if (o->type != DT_I32)
        return acc_refuse(l, "operand %d is %s instead of I32", i, dtype_row_of(o->type)->name);
    if (o->space == SPACE_IO) {
        if (o->id != IO_TOKENS && o->id != IO_POS)
            return acc_refuse(l, "operand %d cannot be the rows asked for", i);
        if (l->s->rows != ROWS_T || l->s->per_row != 1 || n != l->n_row)
            return acc_refuse(l, "operand %d has one number for each token", i);
        if (limit > 0 && (below < 1 || below > limit))
            return acc_refuse(l, "operand %d may go up to %" PRId64 ", there are %" PRId64 " rows",
                              i, below - 1, limit);
        return true;
    }
    if (limit == 0 || (o->space != SPACE_ARENA && o->space != SPACE_LOCAL))
        return acc_refuse(l, "operand %d is not among what a call brings", i);
    int64_t per_unit = how.share == SHARE_ROW ? how.unit : 0;
    return acc_put(l, o,
                   (plan_access){.operand = (int8_t)i,
                                 .rows = n,
                                 .width = 4,
                                 .pitch = 4,
                                 .share = how.share,
                                 .unit = per_unit,
                                 .id_limit = limit},
                   4);
}

/* ---- weights ---- */

/* Bytes of n numbers; a part of a block is read as a whole one where `part`. */
static bool numbers_bytes(plan_accesses *l, dtype type, int64_t n, bool part, int64_t *out)
{
    const dtype_row *t = dtype_row_of(type);
    if (!part && n % t->elems != 0)
        return acc_refuse(l, "rows of %" PRId64 " are not whole blocks of %s", n, t->name);
    *out = acc_times(l, i64_ceil_div(n, t->elems), (int64_t)t->bytes);
    return true;
}

static bool weight_type(plan_accesses *l, int i, bool chosen)
{
    const plan_operand *o = &l->s->in[i];
    klayout layout = o->space == SPACE_WEIGHT ? l->p->weight[o->id].layout : LAYOUT_STORED;
    if (layout != (chosen ? l->k->layout : LAYOUT_STORED))
        return acc_refuse(l, "operand %d lies in memory as %s", i, layout_name(layout));
    if (!dtype_row_of(o->type)->is_weight || o->type == DT_MXFP4_HF)
        return acc_refuse(l, "no kernel reads operand %d as %s", i, dtype_row_of(o->type)->name);
    if (o->space == SPACE_WEIGHT && l->p->weight[o->id].type != o->type)
        return acc_refuse(l, "operand %d is read as %s; weight %s is %s", i,
                          dtype_row_of(o->type)->name, l->p->weight[o->id].name,
                          dtype_row_of(l->p->weight[o->id].type)->name);
    if (o->space != SPACE_WEIGHT && o->type != DT_F32)
        return acc_refuse(l, "operand %d is %s and no weight", i, dtype_row_of(o->type)->name);
    if (chosen && l->k->type != DT_COUNT && o->type != l->k->type)
        return acc_refuse(l, "operand %d is %s, the kernel reads %s", i,
                          dtype_row_of(o->type)->name, dtype_row_of(l->k->type)->name);
    return true;
}

/* Input i: rows of `elems` numbers in their stored type. */
bool acc_weight_in(plan_accesses *l, int i, int64_t rows, int64_t elems, bool chosen, bool part)
{
    const plan_operand *o = &l->s->in[i];
    int64_t width = 0;
    if (!acc_given(l, i))
        return acc_refuse(l, "operand %d is missing", i);
    if (!weight_type(l, i, chosen) || !numbers_bytes(l, o->type, elems, part, &width))
        return false;
    if (o->space == SPACE_WEIGHT && l->p->weight[o->id].n_table)
        return acc_refuse(l, "operand %d, weight %s, is a table of addresses", i,
                          l->p->weight[o->id].name);
    if (chosen && l->k->layout != LAYOUT_STORED) { /* pitch counts groups of rows */
        if (rows % LAYOUT_GROUP != 0)
            return acc_refuse(l, "%" PRId64 " rows are no whole groups of %d", rows, LAYOUT_GROUP);
        rows /= LAYOUT_GROUP;
        width = acc_times(l, width, LAYOUT_GROUP);
    }
    return acc_put(l, o,
                   (plan_access){.operand = (int8_t)i,
                                 .rows = rows,
                                 .width = width,
                                 .pitch = l->s->pitch[i],
                                 .share = SHARE_ALL},
                   4);
}

/* A norm's weight, a bias: in its stored type to the reference, else f32. May be absent. */
bool acc_vectors_in(plan_accesses *l, int i, int64_t rows, int64_t elems)
{
    if (!acc_given(l, i))
        return true;
    if (l->k->reference)
        return acc_weight_in(l, i, rows, elems, false, true);
    return acc_rows_in(l, i, rows, elems, acc_shared_by_all);
}

/* f32 to every variant. May be absent. */
bool acc_f32_in(plan_accesses *l, int i, int64_t elems)
{
    return !acc_given(l, i) || acc_rows_in(l, i, 1, elems, acc_shared_by_all);
}

/* Input 1: a table of `count` addresses of [rows, elems]. */
bool acc_table_in(plan_accesses *l, int64_t count, int64_t rows, int64_t elems)
{
    const plan_operand *o = &l->s->in[1];
    if (o->space != SPACE_WEIGHT)
        return acc_refuse(l, "operand 1 is no table of addresses");
    const plan_weight *w = &l->p->weight[o->id];
    if (!weight_type(l, 1, true))
        return false;
    int64_t group = l->k->layout == LAYOUT_STORED ? 1 : LAYOUT_GROUP;
    if (w->n_table < count || o->offset != 0 || rows % group != 0 || w->rows / w->dim[0] < rows ||
        w->dim[w->rank - 1] != elems || l->s->pitch[1] != w->pitch)
        return acc_refuse(l, "weight %s is not a table of %" PRId64 " [%" PRId64 ", %" PRId64 "]",
                          w->name, count, rows, elems);
    return true;
}

/* Tiles are some of `cols` columns, cut only between parts of `whole`. */
bool acc_tiles(plan_accesses *l, int64_t cols, int64_t whole)
{
    const plan_step *s = l->s;
    if (s->tile == 0)
        return true;
    if (l->overflow || s->cols != cols || s->tile > PLAN_SIZE_MAX || s->tile % whole != 0)
        return acc_refuse(l,
                          "tiles of %" PRId64 " of %" PRId64 " columns do not fit %" PRId64
                          " in parts "
                          "of %" PRId64,
                          s->tile, s->cols, cols, whole);
    return true;
}

/* Rows of a weight that a kernel reads together: columns of its result. */
int64_t acc_whole_rows(const plan_accesses *l)
{
    return l->k->layout == LAYOUT_STORED ? 1 : LAYOUT_GROUP;
}

/* ---- two accesses ---- */

/* LOCAL and TILE are the same memory. */
static int memory_of(const plan_access *a)
{
    return a->space == SPACE_TILE ? SPACE_LOCAL : a->space;
}

bool plan_access_meet(const plan_access *a, const plan_access *b)
{
    if (memory_of(a) != memory_of(b) || a->id != b->id)
        return false;
    int64_t apart = b->offset - a->offset;
    if (apart >= plan_access_span(a) || -apart >= plan_access_span(b))
        return false;
    /* Columns of rows that go in step need not meet where the whole of them overlaps. */
    int64_t pitch = a->pitch;
    if (pitch != b->pitch || a->rows < 2 || b->rows < 2 || a->width > pitch || b->width > pitch)
        return true;
    int64_t column = (apart % pitch + pitch) % pitch;
    return column < a->width || column + b->width > pitch;
}

bool plan_access_align(const plan_access *a, const plan_access *b)
{
    return a->space == b->space && a->share != SHARE_ALL && a->share == b->share && a->unit > 0 &&
           a->unit == b->unit && a->offset == b->offset && a->width == b->width &&
           a->rows == b->rows && (a->pitch == b->pitch || a->rows == 1);
}
