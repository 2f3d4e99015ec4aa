/* plan_access.c - the extents of every op's operands, in the layout that kernels/kernels.def gives.
 *
 * One function per family of ops, found in a table at the end: it describes what a kernel reads and writes
 * when a call has as many rows as the bucket allows. Numbers may be anything; each size is looked at
 * before it is multiplied. */
#include "compiler/plan_access.h"

#include "runtime/base/intmath.h"
#include <inttypes.h>
#include <stdio.h>

/* ---- sizes ---- */

static bool refuse(plan_accesses *l, const char *fmt, ...) WEFT_PRINTF(2, 3);
static bool refuse(plan_accesses *l, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    if (!l->why[0])
        vsnprintf(l->why, sizeof l->why, fmt, ap);
    va_end(ap);
    return false;
}

static int64_t times(plan_accesses *l, int64_t a, int64_t b)
{
    int64_t r = 0;
    if (!i64_mul(a, b, &r))
        l->overflow = true;
    return r;
}

static int64_t plus(plan_accesses *l, int64_t a, int64_t b)
{
    int64_t r = 0;
    if (!i64_add(a, b, &r))
        l->overflow = true;
    return r;
}

/* Sizes n[1] to n[last] are there. */
static bool sizes(plan_accesses *l, int last)
{
    for (int i = 1; i <= last; i++)
        if (l->s->n[i] < 1 || l->s->n[i] > PLAN_SIZE_MAX)
            return refuse(l, "size %d is %" PRId64, i, l->s->n[i]);
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
        break;
    }
    return -1;
}

int64_t plan_access_span(const plan_access *a)
{
    return (a->rows - 1) * a->pitch + a->width;
}

/* Add an access whose operand has been looked at. */
static bool put(plan_accesses *l, const plan_operand *o, plan_access a, int64_t align)
{
    const char *side = a.write ? "result" : "operand";
    int64_t end, have = room(l, o), span;
    bool each = l->item->each;
    a.space = (int)o->space;
    a.id = o->space == SPACE_WEIGHT ? o->id : 0;
    a.offset = o->offset;
    if (o->space == SPACE_TILE) {
        if (each || l->s->tile == 0 || a.share != SHARE_COL)
            return refuse(l, "%s %d cannot be a tile", side, a.operand);
        int64_t most = l->item->grain;
        if (most > 0 && i64_mul(most, a.unit, &most) && most < a.width)
            a.width = most;
    }
    if (a.write && (o->space == SPACE_LOCAL) != each)
        return refuse(l, "result %d of a step that %s is in %s", a.operand,
                      each ? "each thread computes" : "threads share",
                      each ? "shared memory" : "each thread's memory");
    if (a.pitch < 0 || (a.write && a.rows > 1 && a.pitch < a.width))
        return refuse(l, "%s %d has rows %" PRId64 " bytes apart, of %" PRId64, side, a.operand,
                      a.pitch, a.width);
    span = plus(l, times(l, a.rows - 1, a.pitch), a.width);
    end = plus(l, o->offset, span);
    if (l->overflow || o->offset < 0 || end > have)
        return refuse(l, "%s %d reaches to byte %" PRId64 " of %" PRId64, side, a.operand,
                      l->overflow ? INT64_MAX : end, have);
    if (o->space != SPACE_WEIGHT &&
        (o->offset % align != 0 || (a.rows > 1 && a.pitch % align != 0)))
        return refuse(l, "%s %d is not aligned to %" PRId64 " bytes", side, a.operand, align);
    WEFT_ASSERT(l->n < ACCESS_MAX);
    l->at[l->n++] = a;
    return true;
}

static bool given(const plan_accesses *l, int i)
{
    return l->s->in[i].space != SPACE_NONE;
}

/* A kernel that is told nothing about pitch takes rows without gaps. */
static int64_t pitch_of(const plan_accesses *l, int64_t pitch, int64_t width)
{
    return l->k->variant == VARIANT_ref ? width : pitch;
}

/* ---- activations ---- */

/* How the units of a step share an operand: `rows` of it for each row, or columns in step with the
 * result's when it is cut into tiles. */
typedef struct {
    plan_share share;
    int64_t unit;
} sharing;

static const sharing shared_by_all = {SHARE_ALL, 0};

static sharing by_row(const plan_accesses *l, int64_t rows)
{
    return l->s->tile > 0 ? shared_by_all : (sharing){SHARE_ROW, rows};
}

static sharing by_unit(const plan_accesses *l, int64_t rows)
{
    return l->s->tile > 0 ? (sharing){SHARE_COL, l->s->tile * 4} : (sharing){SHARE_ROW, rows};
}

/* Input i: rows of `elems` f32 each. */
static bool rows_in(plan_accesses *l, int i, int64_t rows, int64_t elems, sharing how)
{
    const plan_operand *o = &l->s->in[i];
    int64_t width = times(l, elems, 4);
    if (!given(l, i))
        return refuse(l, "operand %d is missing", i);
    if (o->type != DT_F32)
        return refuse(l, "operand %d is %s instead of F32", i, dtype_row_of(o->type)->name);
    if (o->space == SPACE_WEIGHT &&
        (l->p->weight[o->id].mode != WEIGHT_COPIED || l->p->weight[o->id].n_table))
        return refuse(l, "operand %d, weight %s, has not been copied", i, l->p->weight[o->id].name);
    return put(l, o,
               (plan_access){.operand = (int8_t)i,
                             .rows = rows,
                             .width = width,
                             .pitch = pitch_of(l, l->s->pitch[i], width),
                             .share = how.share,
                             .unit = how.unit},
               4);
}

static bool rows_out_of(plan_accesses *l, int i, dtype type, int64_t rows, int64_t elems,
                        sharing how)
{
    const plan_operand *o = &l->s->out[i];
    int64_t width = times(l, elems, 4);
    if (o->space != SPACE_ARENA && o->space != SPACE_LOCAL && o->space != SPACE_TILE)
        return refuse(l, "result %d has no memory", i);
    if (o->type != type)
        return refuse(l, "result %d is %s instead of %s", i, dtype_row_of(o->type)->name,
                      dtype_row_of(type)->name);
    return put(l, o,
               (plan_access){.operand = (int8_t)i,
                             .write = true,
                             .rows = rows,
                             .width = width,
                             .pitch = pitch_of(l, l->s->out_pitch[i], width),
                             .share = how.share,
                             .unit = how.unit},
               4);
}

static bool rows_out(plan_accesses *l, int64_t rows, int64_t elems, sharing how)
{
    return rows_out_of(l, 0, DT_F32, rows, elems, how);
}

/* Input 0 of a contraction, in the form that the kernel wants. */
static bool multiplied_in(plan_accesses *l, int64_t rows, int64_t n, sharing how)
{
    kact act = l->k->act;
    const plan_operand *o = &l->s->in[0];
    if (act == ACT_F32)
        return rows_in(l, 0, rows, n, how);
    if (n % act_block(act) != 0)
        return refuse(l, "rows of %" PRId64 " elements cannot be packed", n);
    if (o->space != SPACE_ARENA && o->space != SPACE_LOCAL)
        return refuse(l, "operand 0 is not packed");
    return put(l, o,
               (plan_access){.rows = rows,
                             .width = act_row_bytes(act, n),
                             .pitch = l->s->pitch[0],
                             .share = how.share,
                             .unit = how.unit,
                             .packed = true},
               ACT_ALIGN);
}

/* Ids, one after the other, all of them below limit (0: positions, which are only numbers). */
static bool ids_in(plan_accesses *l, int i, int64_t n, int64_t limit, sharing how)
{
    const plan_operand *o = &l->s->in[i];
    int64_t below = o->id == IO_TOKENS ? l->p->n_vocab : l->p->n_pos;
    if (o->type != DT_I32)
        return refuse(l, "operand %d is %s instead of I32", i, dtype_row_of(o->type)->name);
    if (o->space == SPACE_IO) {
        if (o->id != IO_TOKENS && o->id != IO_POS)
            return refuse(l, "operand %d cannot be the rows asked for", i);
        if (l->s->rows != ROWS_T || l->s->per_row != 1 || n != l->n_row)
            return refuse(l, "operand %d has one number for each token", i);
        if (limit > 0 && (below < 1 || below > limit))
            return refuse(l, "operand %d may go up to %" PRId64 ", there are %" PRId64 " rows", i,
                          below - 1, limit);
        return true;
    }
    if (limit == 0 || (o->space != SPACE_ARENA && o->space != SPACE_LOCAL))
        return refuse(l, "operand %d is not among what a call brings", i);
    int64_t per_unit = how.share == SHARE_ROW ? how.unit : 0;
    return put(l, o,
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
        return refuse(l, "rows of %" PRId64 " are not whole blocks of %s", n, t->name);
    *out = times(l, i64_ceil_div(n, t->elems), (int64_t)t->bytes);
    return true;
}

static bool weight_type(plan_accesses *l, int i, bool chosen)
{
    const plan_operand *o = &l->s->in[i];
    if (!dtype_row_of(o->type)->is_weight || o->type == DT_MXFP4_HF)
        return refuse(l, "no kernel reads operand %d as %s", i, dtype_row_of(o->type)->name);
    if (o->space == SPACE_WEIGHT && l->p->weight[o->id].type != o->type)
        return refuse(l, "operand %d is read as %s; weight %s is %s", i,
                      dtype_row_of(o->type)->name, l->p->weight[o->id].name,
                      dtype_row_of(l->p->weight[o->id].type)->name);
    if (o->space != SPACE_WEIGHT && o->type != DT_F32)
        return refuse(l, "operand %d is %s and no weight", i, dtype_row_of(o->type)->name);
    if (chosen && l->k->type != DT_COUNT && o->type != l->k->type)
        return refuse(l, "operand %d is %s, the kernel reads %s", i, dtype_row_of(o->type)->name,
                      dtype_row_of(l->k->type)->name);
    return true;
}

/* Input i: rows of `elems` numbers in their stored type. */
static bool weight_in(plan_accesses *l, int i, int64_t rows, int64_t elems, bool chosen, bool part)
{
    const plan_operand *o = &l->s->in[i];
    int64_t width = 0;
    if (!given(l, i))
        return refuse(l, "operand %d is missing", i);
    if (!weight_type(l, i, chosen) || !numbers_bytes(l, o->type, elems, part, &width))
        return false;
    if (o->space == SPACE_WEIGHT && l->p->weight[o->id].n_table)
        return refuse(l, "operand %d, weight %s, is a table of addresses", i,
                      l->p->weight[o->id].name);
    return put(l, o,
               (plan_access){.operand = (int8_t)i,
                             .rows = rows,
                             .width = width,
                             .pitch = l->s->pitch[i],
                             .share = SHARE_ALL},
               4);
}

/* A norm's weight, a bias: in its stored type to ref, else f32. May be absent. */
static bool vectors_in(plan_accesses *l, int i, int64_t rows, int64_t elems)
{
    if (!given(l, i))
        return true;
    if (l->k->variant == VARIANT_ref)
        return weight_in(l, i, rows, elems, false, true);
    return rows_in(l, i, rows, elems, shared_by_all);
}

/* f32 to every variant. May be absent. */
static bool f32_in(plan_accesses *l, int i, int64_t elems)
{
    return !given(l, i) || rows_in(l, i, 1, elems, shared_by_all);
}

/* Input 1: a table of `count` addresses of [rows, elems]. */
static bool table_in(plan_accesses *l, int64_t count, int64_t rows, int64_t elems)
{
    const plan_operand *o = &l->s->in[1];
    if (o->space != SPACE_WEIGHT)
        return refuse(l, "operand 1 is no table of addresses");
    const plan_weight *w = &l->p->weight[o->id];
    if (!weight_type(l, 1, true))
        return false;
    if (w->n_table < count || o->offset != 0 || w->rows / w->dim[0] < rows ||
        w->dim[w->rank - 1] != elems || l->s->pitch[1] != w->pitch)
        return refuse(l, "weight %s is not a table of %" PRId64 " [%" PRId64 ", %" PRId64 "]",
                      w->name, count, rows, elems);
    return true;
}

/* Tiles are some of `cols` columns, cut only between parts of `whole`. */
static bool tiles(plan_accesses *l, int64_t cols, int64_t whole)
{
    const plan_step *s = l->s;
    if (s->tile == 0)
        return true;
    if (l->overflow || s->cols != cols || s->tile > PLAN_SIZE_MAX || s->tile % whole != 0)
        return refuse(l,
                      "tiles of %" PRId64 " of %" PRId64 " columns do not fit %" PRId64 " in parts "
                      "of %" PRId64,
                      s->tile, s->cols, cols, whole);
    return true;
}

/* ---- cells ---- */

static bool cell_rows_are_tokens(plan_accesses *l)
{
    if (l->s->cell < 0)
        return refuse(l, "it has no cell");
    if (l->s->rows != ROWS_T || l->s->per_row != 1)
        return refuse(l, "its rows are not the call's tokens");
    return true;
}

enum { CELL_KEYS, CELL_VALUES };

static void touch_cell(plan_accesses *l, int part, bool write, sharing how)
{
    WEFT_ASSERT(l->n < ACCESS_MAX);
    l->at[l->n++] = (plan_access){.space = ACCESS_CELL,
                                  .id = l->s->cell * 2 + part,
                                  .write = write,
                                  .operand = -1,
                                  .rows = 1,
                                  .width = 1,
                                  .share = how.share,
                                  .unit = how.unit};
}

static bool access_append(plan_accesses *l)
{
    if (!cell_rows_are_tokens(l))
        return false;
    const plan_cell *c = &l->p->cell[l->s->cell];
    int64_t width = given(l, 0) ? c->k : c->v;
    if ((!given(l, 0) && !given(l, 1)) || (c->latent && given(l, 1)))
        return refuse(l, "a cell takes keys, and values unless it is latent");
    if (!tiles(l, times(l, c->heads, width), width))
        return false;
    sharing how = by_unit(l, 1), values = how;
    if (l->s->tile > 0)
        values.unit = times(l, l->s->tile / width, c->v * 4);
    if (given(l, 0)) {
        if (!rows_in(l, 0, l->n_row, times(l, c->heads, c->k), how))
            return false;
        touch_cell(l, CELL_KEYS, true, how);
    }
    if (given(l, 1)) {
        if (!rows_in(l, 1, l->n_row, times(l, c->heads, c->v), values))
            return false;
        touch_cell(l, CELL_VALUES, true, values);
    }
    return true;
}

static bool access_attend(plan_accesses *l)
{
    const int64_t *n = l->s->n;
    if (!cell_rows_are_tokens(l) || !sizes(l, 1))
        return false;
    const plan_cell *c = &l->p->cell[l->s->cell];
    if (n[1] % c->heads != 0)
        return refuse(l, "%" PRId64 " heads are no whole groups for %" PRId64, n[1], c->heads);
    if (n[2] < 0 || n[3] < 0)
        return refuse(l, "a window cannot be %" PRId64, n[2] < 0 ? n[2] : n[3]);
    bool near = (n[2] > 0 && n[2] - 1 <= c->keep) || (n[3] > 0 && n[3] - 1 <= c->keep);
    if (c->form == PLAN_RING && !near)
        return refuse(l, "it looks further back than the %" PRId64 " rows that cell %s keeps",
                      c->keep, c->name);
    sharing part = {SHARE_ROW, 0}; /* of a row, a unit has some heads */
    touch_cell(l, CELL_KEYS, false, shared_by_all);
    touch_cell(l, CELL_VALUES, false, shared_by_all);
    return rows_in(l, 0, l->n_row, times(l, n[1], c->k), part) && f32_in(l, 2, n[1]) &&
           f32_in(l, 3, n[1]) && rows_out(l, l->n_row, times(l, n[1], c->v), part);
}

/* ---- the other ops ---- */

static bool access_embed(plan_accesses *l)
{
    const int64_t *n = l->s->n;
    return sizes(l, 2) && weight_in(l, 0, n[2], n[1], false, false) &&
           ids_in(l, 1, l->n_row, n[2], by_row(l, 1)) && rows_out(l, l->n_row, n[1], by_row(l, 1));
}

static bool access_linear(plan_accesses *l)
{
    const int64_t *n = l->s->n;
    return sizes(l, 2) && tiles(l, n[1], 1) && multiplied_in(l, l->n_row, n[2], by_row(l, 1)) &&
           weight_in(l, 1, n[1], n[2], true, false) && vectors_in(l, 2, 1, n[1]) &&
           rows_out(l, l->n_row, n[1], by_unit(l, 1));
}

static bool access_norm(plan_accesses *l)
{
    const int64_t *n = l->s->n;
    if (!sizes(l, 3))
        return false;
    int64_t width = times(l, n[1], n[2]);
    bool layer = strcmp(l->k->op, "layer_norm") == 0;
    return tiles(l, width, n[2]) && rows_in(l, 0, l->n_row, width, by_unit(l, 1)) &&
           vectors_in(l, 1, n[3], n[2]) && (!layer || vectors_in(l, 2, n[3], n[2])) &&
           rows_out(l, l->n_row, width, by_unit(l, 1));
}

static bool access_rope(plan_accesses *l)
{
    const int64_t *n = l->s->n;
    if (!sizes(l, 3))
        return false;
    if (2 * n[3] > n[2] || (l->s->word[0] != 1 && l->s->word[0] != 2))
        return refuse(l, "%" PRId64 " pairs in order %d do not fit %" PRId64 " elements", n[3],
                      (int)l->s->word[0], n[2]);
    int64_t width = times(l, n[1], n[2]);
    if (!given(l, 2))
        return refuse(l, "operand 2 is missing");
    return tiles(l, width, n[2]) && rows_in(l, 0, l->n_row, width, by_unit(l, 1)) &&
           ids_in(l, 1, l->n_row, 0, by_row(l, 1)) && f32_in(l, 2, n[3]) &&
           rows_out(l, l->n_row, width, by_unit(l, 1));
}

static bool access_split(plan_accesses *l)
{
    const int64_t *n = l->s->n;
    if (!sizes(l, 2) || n[3] < 0 || n[3] > n[2] || n[4] < 1 || n[4] > n[2] - n[3])
        return refuse(l, "it takes %" PRId64 " elements from %" PRId64 " on, of %" PRId64, n[4],
                      n[3], n[2]);
    return rows_in(l, 0, l->n_row, times(l, n[1], n[2]), by_row(l, 1)) &&
           rows_out(l, l->n_row, times(l, n[1], n[4]), by_row(l, 1));
}

static bool access_concat(plan_accesses *l)
{
    const int64_t *n = l->s->n;
    return sizes(l, 3) && rows_in(l, 0, l->n_row, times(l, n[1], n[2]), by_row(l, 1)) &&
           rows_in(l, 1, l->n_row, times(l, n[1], n[3]), by_row(l, 1)) &&
           rows_out(l, l->n_row, times(l, n[1], n[2] + n[3]), by_row(l, 1));
}

/* Input i, of which stride[i][0] counts elements from row to row and the others along `axes` axes whose
 * sizes begin at n[first]. */
static bool strided_in(plan_accesses *l, int i, int axes, int first, int64_t elems)
{
    const plan_step *s = l->s;
    int64_t last = 0, step = 1;
    bool dense = true;
    for (int axis = axes; axis >= 0; axis--) {
        int64_t n = axis > 0 ? s->n[first + axis - 1] : l->n_row, stride = s->stride[i][axis];
        if (stride < 0)
            return refuse(l, "operand %d has a stride of %" PRId64, i, stride);
        if (axis == 0)
            break;
        dense = dense && (n == 1 || stride == step);
        step = times(l, step, n);
        last = plus(l, last, times(l, n - 1, stride));
    }
    plan_operand o = s->in[i];
    int64_t pitch = times(l, s->stride[i][0], 4), width = times(l, plus(l, last, 1), 4);
    if (o.type != DT_F32)
        return refuse(l, "operand %d is %s instead of F32", i, dtype_row_of(o.type)->name);
    if (o.space == SPACE_WEIGHT &&
        (l->p->weight[o.id].mode != WEIGHT_COPIED || l->p->weight[o.id].n_table))
        return refuse(l, "operand %d, weight %s, has not been copied", i, l->p->weight[o.id].name);
    sharing how = dense && !l->overflow && width == elems * 4 ? by_unit(l, 1) : by_row(l, 1);
    if (pitch == 0 && how.share == SHARE_ROW)
        how = shared_by_all;
    return put(l, &o,
               (plan_access){.operand = (int8_t)i,
                             .rows = l->n_row,
                             .width = width,
                             .pitch = pitch,
                             .share = how.share,
                             .unit = how.unit},
               4);
}

/* add and the like: axes n[0] to n[word[0] - 1]. */
static bool access_binary(plan_accesses *l)
{
    int rank = l->s->word[0], n_in = strcmp(l->k->op, "select") == 0 ? 3 : 2;
    int64_t elems = 1;
    if (rank < 1 || rank > K_AXES_MAX)
        return refuse(l, "it has %d axes", rank);
    if (!sizes(l, rank - 1))
        return false;
    for (int i = 1; i < rank; i++)
        elems = times(l, elems, l->s->n[i]);
    for (int i = 0; i < n_in; i++)
        if (given(l, i) && !strided_in(l, i, rank - 1, 1, elems))
            return false;
    return rows_out(l, l->n_row, elems, by_row(l, 1));
}

static bool access_unary(plan_accesses *l)
{
    return sizes(l, 1) && rows_in(l, 0, l->n_row, l->s->n[1], by_row(l, 1)) &&
           rows_out(l, l->n_row, l->s->n[1], by_row(l, 1));
}

static bool access_softmax(plan_accesses *l)
{
    if (!sizes(l, 2))
        return false;
    int64_t width = times(l, l->s->n[1], l->s->n[2]);
    return rows_in(l, 0, l->n_row, width, by_row(l, 1)) &&
           rows_out(l, l->n_row, width, by_row(l, 1));
}

static bool access_take_rows(plan_accesses *l)
{
    if (!sizes(l, 1))
        return false;
    if (l->s->rows != ROWS_R || l->s->per_row != 1)
        return refuse(l, "its rows are not those asked for");
    /* Which row a unit reads is told by the batch. */
    for (int i = 1; i < K_IN_MAX; i++)
        if (given(l, i) && l->s->in[i].space != SPACE_IO)
            return refuse(l, "operand %d is not read", i);
    return rows_in(l, 0, plan_rows_max(l->p, l->b, ROWS_T), l->s->n[1], shared_by_all) &&
           rows_out(l, l->n_row, l->s->n[1], by_row(l, 1));
}

static bool access_route(plan_accesses *l)
{
    const int64_t *n = l->s->n;
    if (!sizes(l, 4))
        return false;
    if (n[1] % n[3] != 0 || n[4] < 1 || n[4] > n[3] || n[2] > n[1] / n[3] * n[4])
        return refuse(l, "%" PRId64 " of %" PRId64 " experts in %" PRId64 " of %" PRId64 " groups",
                      n[2], n[1], n[4], n[3]);
    return rows_in(l, 0, l->n_row, n[1], by_row(l, 1)) && f32_in(l, 1, n[1]) &&
           rows_out_of(l, 0, DT_I32, l->n_row, n[2], by_row(l, 1)) &&
           rows_out_of(l, 1, DT_F32, l->n_row, n[2], by_row(l, 1));
}

static bool access_experts(plan_accesses *l)
{
    const int64_t *n = l->s->n;
    if (!sizes(l, 3) || n[5] < 1 || n[5] > PLAN_SIZE_MAX)
        return refuse(l, "size 5 is %" PRId64, n[5]);
    int64_t slots = times(l, l->n_row, n[1]), x_rows = n[4] ? slots : l->n_row;
    return tiles(l, n[2], 1) && multiplied_in(l, x_rows, n[3], by_row(l, n[4] ? n[1] : 1)) &&
           table_in(l, n[5], n[2], n[3]) && ids_in(l, 2, slots, n[5], by_row(l, n[1])) &&
           vectors_in(l, 3, n[5], n[2]) && rows_out(l, slots, n[2], by_unit(l, n[1]));
}

static bool access_combine(plan_accesses *l)
{
    const int64_t *n = l->s->n;
    if (!sizes(l, 2))
        return false;
    return tiles(l, n[2], 1) && rows_in(l, 0, times(l, l->n_row, n[1]), n[2], by_unit(l, n[1])) &&
           rows_in(l, 1, l->n_row, n[1], by_row(l, 1)) &&
           rows_out(l, l->n_row, n[2], by_unit(l, 1));
}

/* Units are heads of a row, or columns over all heads: then rows of the call are heads apart. */
static bool access_head_linear(plan_accesses *l)
{
    const int64_t *n = l->s->n;
    if (!sizes(l, 3))
        return false;
    int64_t vectors = times(l, l->n_row, n[1]), width = times(l, n[1], n[2]);
    sharing head = l->s->tile > 0 ? shared_by_all : (sharing){SHARE_ROW, 1};
    if (!tiles(l, width, n[2]) || !multiplied_in(l, vectors, n[3], head) ||
        !table_in(l, n[1], n[2], n[3]) || !vectors_in(l, 2, n[1], n[2]))
        return false;
    if (l->s->tile == 0)
        return rows_out(l, vectors, n[2], head);
    if (l->s->out_pitch[0] != n[2] * 4)
        return refuse(l, "by columns, its heads have no gaps between them");
    plan_step by_cols = *l->s;
    by_cols.out_pitch[0] = times(l, width, 4);
    const plan_step *s = l->s;
    l->s = &by_cols;
    bool fits = rows_out(l, l->n_row, width, by_unit(l, 1));
    l->s = s;
    return fits;
}

static bool access_at_pos(plan_accesses *l)
{
    return sizes(l, 1) && rows_in(l, 0, 1, l->s->n[1], shared_by_all) &&
           ids_in(l, 1, l->n_row, 0, by_row(l, 1)) && rows_out(l, l->n_row, 1, by_row(l, 1));
}

static bool access_pack(plan_accesses *l)
{
    int act = l->s->word[0];
    int64_t n = l->s->n[1];
    if (!sizes(l, 1) || (act != ACT_Q8 && act != ACT_Q8K) || n % act_block((kact)act) != 0)
        return refuse(l, "rows of %" PRId64 " elements cannot be packed in form %d", n, act);
    const plan_operand *o = &l->s->out[0];
    if (!tiles(l, n, 256) || !rows_in(l, 0, l->n_row, n, by_unit(l, 1)))
        return false;
    if (o->space != SPACE_ARENA && o->space != SPACE_LOCAL)
        return refuse(l, "packed rows are not cut into tiles");
    sharing how = by_row(l, 1); /* by columns, a unit has a part of each array of a row */
    return put(l, o,
               (plan_access){.write = true,
                             .rows = l->n_row,
                             .width = act_row_bytes((kact)act, n),
                             .pitch = l->s->out_pitch[0],
                             .share = how.share,
                             .unit = how.unit,
                             .packed = true},
               ACT_ALIGN);
}

/* ---- maps ---- */

/* How many registers an instruction reads. */
static const uint8_t map_reads[MAP_COUNT] = {
#define MAP(name, operands) operands,
#include "kernels/map.def"
#undef MAP
};

/* One instruction; `set` are the registers that hold something, `stored` the outputs. */
static bool map_instr(plan_accesses *l, const kinstr *c, uint32_t *set, uint32_t *stored)
{
    if (c->op >= MAP_COUNT)
        return refuse(l, "its code has no instruction %d", c->op);
    for (int i = 0; i < map_reads[c->op]; i++)
        if (c->at[i] >= MAP_REGS_MAX || !(*set >> c->at[i] & 1))
            return refuse(l, "its code reads register %d, which holds nothing", c->at[i]);
    if (c->op == MAP_load && (c->at[0] >= l->s->n_in || !given(l, c->at[0])))
        return refuse(l, "its code loads operand %d, which is missing", c->at[0]);
    /* Kernels look at the registers of absent operands, too. */
    for (int i = c->op == MAP_load ? 1 : map_reads[c->op]; i < 3; i++)
        if (c->at[i] >= MAP_REGS_MAX)
            return refuse(l, "its code names register %d", c->at[i]);
    if (c->op == MAP_store) {
        if (c->to >= l->s->n_out)
            return refuse(l, "its code stores to result %d of %d", c->to, l->s->n_out);
        *stored |= 1u << c->to;
        return true;
    }
    if (c->to >= MAP_REGS_MAX)
        return refuse(l, "its code sets register %d", c->to);
    *set |= 1u << c->to;
    return true;
}

static bool map_code(plan_accesses *l)
{
    const plan_step *s = l->s;
    uint32_t set = 0, stored = 0;
    if (s->n_code < 1 || s->code < 0 || s->code > l->p->n_code ||
        s->n_code > l->p->n_code - s->code)
        return refuse(l, "its code is not in the plan");
    for (int32_t i = 0; i < s->n_code; i++)
        if (!map_instr(l, &l->p->code[s->code + i], &set, &stored))
            return false;
    if (stored != (1u << s->n_out) - 1)
        return refuse(l, "its code leaves a result without a value");
    return true;
}

static bool access_map(plan_accesses *l)
{
    const plan_step *s = l->s;
    int axes = s->word[0];
    int64_t elems = 1;
    if (axes < 1 || axes > K_AXES_MAX - 1)
        return refuse(l, "it has %d axes", axes);
    if (!sizes(l, 1 + axes))
        return false;
    for (int i = 0; i < axes; i++)
        elems = times(l, elems, s->n[2 + i]);
    if (l->overflow || elems != s->n[1])
        return refuse(l, "its axes make %" PRId64 " elements of %" PRId64, elems, s->n[1]);
    if (!tiles(l, elems, 1) || !map_code(l))
        return false;
    for (int i = 0; i < s->n_in; i++)
        if (given(l, i) && !strided_in(l, i, axes, 2, elems))
            return false;
    for (int i = 0; i < s->n_out; i++)
        if (!rows_out_of(l, i, DT_F32, l->n_row, elems, by_unit(l, 1)))
            return false;
    return true;
}

/* ---- the table ---- */

typedef struct {
    const char *op;
    bool (*find)(plan_accesses *l);
    int8_t n_in, n_out; /* at most; -1 results: as many as there are */
    bool tiled;         /* takes columns as units */
    bool in_place;      /* a result may take the place of an operand */
} access_row;

/* clang-format off */
static const access_row access_rows[] = {
    /* op          what it touches     in  out  tiled  in place */
    {"embed",       access_embed,       2,  1,  false, false},
    {"linear",      access_linear,      3,  1,  true,  false},
    {"rms_norm",    access_norm,        2,  1,  true,  true},
    {"layer_norm",  access_norm,        3,  1,  true,  true},
    {"rope",        access_rope,        3,  1,  true,  true},
    {"split",       access_split,       1,  1,  false, false},
    {"concat",      access_concat,      2,  1,  false, false},
    {"append",      access_append,      2,  0,  true,  false},
    {"attend",      access_attend,      4,  1,  false, false},
    {"add",         access_binary,      2,  1,  false, true},
    {"sub",         access_binary,      2,  1,  false, true},
    {"mul",         access_binary,      2,  1,  false, true},
    {"div",         access_binary,      2,  1,  false, true},
    {"max",         access_binary,      2,  1,  false, true},
    {"min",         access_binary,      2,  1,  false, true},
    {"select",      access_binary,      3,  1,  false, true},
    {"neg",         access_unary,       1,  1,  false, true},
    {"silu",        access_unary,       1,  1,  false, true},
    {"gelu",        access_unary,       1,  1,  false, true},
    {"tanh",        access_unary,       1,  1,  false, true},
    {"sigmoid",     access_unary,       1,  1,  false, true},
    {"relu",        access_unary,       1,  1,  false, true},
    {"softplus",    access_unary,       1,  1,  false, true},
    {"exp",         access_unary,       1,  1,  false, true},
    {"sqrt",        access_unary,       1,  1,  false, true},
    {"clamp",       access_unary,       1,  1,  false, true},
    {"softmax",     access_softmax,     1,  1,  false, true},
    {"take_rows",   access_take_rows,   2,  1,  false, false},
    {"route",       access_route,       2,  2,  false, false},
    {"experts",     access_experts,     4,  1,  true,  false},
    {"combine",     access_combine,     2,  1,  true,  false},
    {"head_linear", access_head_linear, 3,  1,  true,  false},
    {"at_pos",      access_at_pos,      2,  1,  false, false},
    {"map",         access_map,  K_IN_MAX, -1,  true,  true},
    {"pack",        access_pack,        1,  1,  true,  false},
};
/* clang-format on */

static const access_row *row_of(const char *op)
{
    for (size_t i = 0; i < sizeof access_rows / sizeof access_rows[0]; i++)
        if (strcmp(access_rows[i].op, op) == 0)
            return &access_rows[i];
    return NULL;
}

bool plan_op_in_place(const char *op)
{
    const access_row *r = row_of(op);
    return r && r->in_place;
}

/* Operands that say what they are: a number of a type, a weight that is there. */
static bool operands(plan_accesses *l, const access_row *r)
{
    const plan_step *s = l->s;
    if (s->n_in < 0 || s->n_in > r->n_in || s->n_out < 0 || s->n_out > K_OUT_MAX ||
        (r->n_out >= 0 && s->n_out != r->n_out) || (r->n_out < 0 && s->n_out < 1))
        return refuse(l, "it has %d operands and %d results", (int)s->n_in, (int)s->n_out);
    for (int i = 0; i < K_IN_MAX; i++) {
        const plan_operand *o = &s->in[i];
        if ((unsigned)o->space > SPACE_IO || (unsigned)o->type >= DT_COUNT)
            return refuse(l, "operand %d is of no kind", i);
        if (i >= s->n_in && o->space != SPACE_NONE)
            return refuse(l, "operand %d is not read", i);
        if (o->space == SPACE_WEIGHT && (o->id < 0 || o->id >= l->p->n_weight))
            return refuse(l, "operand %d is weight %d of %d", i, (int)o->id, (int)l->p->n_weight);
        if (o->space == SPACE_IO && (o->id < 0 || o->id >= IO_COUNT))
            return refuse(l, "operand %d is none of what a call brings", i);
    }
    for (int i = 0; i < s->n_out; i++)
        if ((unsigned)s->out[i].space > SPACE_IO || (unsigned)s->out[i].type >= DT_COUNT)
            return refuse(l, "result %d is of no kind", i);
    return true;
}

static bool rows_of_call(plan_accesses *l)
{
    const plan_step *s = l->s;
    if ((unsigned)s->rows > ROWS_FIXED || s->per_row < 1 || s->per_row > PLAN_SIZE_MAX)
        return refuse(l, "it counts %" PRId64 " rows for each of kind %d", s->per_row,
                      (int)s->rows);
    l->n_row =
        s->rows == ROWS_FIXED ? s->n[0] : times(l, plan_rows_max(l->p, l->b, s->rows), s->per_row);
    if (l->n_row < 1 || l->n_row > PLAN_SIZE_MAX)
        return refuse(l, "it has %" PRId64 " rows", l->n_row);
    return true;
}

bool plan_access_step(const plan *p, const plan_bucket *b, const plan_item *item,
                      const plan_step *s, plan_accesses *l)
{
    int n_kernel;
    const kernel_row *rows = kernel_rows(&n_kernel);
    *l = (plan_accesses){.p = p, .b = b, .s = s, .item = item};
    if (s->kernel < 0 || s->kernel >= n_kernel)
        return refuse(l, "there is no kernel %d", (int)s->kernel);
    l->k = &rows[s->kernel];
    const access_row *r = row_of(l->k->op);
    if (!r)
        return refuse(l, "nothing is known of the memory that %s touches", l->k->op);
    if (s->tile < 0 || (s->tile > 0 && (!r->tiled || l->k->variant == VARIANT_ref)))
        return refuse(l, "it does not take columns as units");
    if (s->cell < -1 || s->cell >= p->n_cell)
        return refuse(l, "there is no cell %d", (int)s->cell);
    if (!operands(l, r) || !rows_of_call(l) || !r->find(l))
        return false;
    return !l->overflow || refuse(l, "its sizes do not fit");
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
