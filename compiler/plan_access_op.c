/* plan_access_op.c - what each op touches, in the order that kernels/kernel_ops.def gives.
 *
 * One function per family of ops, found in a table at the end: it describes what a kernel reads and writes
 * when a call has as many rows as the bucket allows. */
#include "compiler/plan_access_impl.h"

#include "runtime/base/intmath.h"
#include <inttypes.h>

/* ---- cells ---- */

static bool cell_rows_are_tokens(plan_accesses *l)
{
    if (l->s->cell < 0)
        return acc_refuse(l, "it has no cell");
    if (l->s->rows != ROWS_T || l->s->per_row != 1)
        return acc_refuse(l, "its rows are not the call's tokens");
    return true;
}

enum { CELL_KEYS, CELL_VALUES };

static void touch_cell(plan_accesses *l, int part, bool write, acc_sharing how)
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
    int64_t width = acc_given(l, 0) ? c->k : c->v;
    if ((!acc_given(l, 0) && !acc_given(l, 1)) || (c->latent && acc_given(l, 1)))
        return acc_refuse(l, "a cell takes keys, and values unless it is latent");
    if (!acc_tiles(l, acc_times(l, c->heads, width), width))
        return false;
    acc_sharing how = acc_by_unit(l, 1), values = how;
    if (l->s->tile > 0)
        values.unit = acc_times(l, l->s->tile / width, c->v * 4);
    if (acc_given(l, 0)) {
        if (!acc_rows_in(l, 0, l->n_row, acc_times(l, c->heads, c->k), how))
            return false;
        touch_cell(l, CELL_KEYS, true, how);
    }
    if (acc_given(l, 1)) {
        if (!acc_rows_in(l, 1, l->n_row, acc_times(l, c->heads, c->v), values))
            return false;
        touch_cell(l, CELL_VALUES, true, values);
    }
    return true;
}

static bool access_attend(plan_accesses *l)
{
    const int64_t *n = l->s->n;
    if (!cell_rows_are_tokens(l) || !acc_sizes(l, 1))
        return false;
    const plan_cell *c = &l->p->cell[l->s->cell];
    if (n[1] % c->heads != 0)
        return acc_refuse(l, "%" PRId64 " heads are no whole groups for %" PRId64, n[1], c->heads);
    if (n[2] < 0 || n[3] < 0)
        return acc_refuse(l, "a window cannot be %" PRId64, n[2] < 0 ? n[2] : n[3]);
    bool near = (n[2] > 0 && n[2] - 1 <= c->keep) || (n[3] > 0 && n[3] - 1 <= c->keep);
    if (c->layout == PLAN_RING && !near)
        return acc_refuse(l, "it looks further back than the %" PRId64 " rows that cell %s keeps",
                          c->keep, c->name);
    acc_sharing part = {SHARE_ROW, 0}; /* of a row, a unit has some heads */
    int mode = l->s->word[0];
    if (mode < 0 || mode > 2 || (mode > 0 && !kernel_splits(l->k)))
        return acc_refuse(l, "its kernel has no part %d", mode);
    int64_t states = acc_times(l, n[1], kernel_state_elems(c->v));
    if (mode == 2)
        return acc_rows_in(l, 0, l->n_row, states, part) && acc_f32_in(l, 2, n[1]) &&
               acc_rows_out(l, l->n_row, acc_times(l, n[1], c->v), part);
    touch_cell(l, CELL_KEYS, false, acc_shared_by_all);
    touch_cell(l, CELL_VALUES, false, acc_shared_by_all);
    return acc_rows_in(l, 0, l->n_row, acc_times(l, n[1], c->k), part) && acc_f32_in(l, 2, n[1]) &&
           acc_f32_in(l, 3, n[1]) &&
           acc_rows_out(l, l->n_row, mode == 1 ? states : acc_times(l, n[1], c->v), part);
}

/* ---- the other ops ---- */

static bool access_embed(plan_accesses *l)
{
    const int64_t *n = l->s->n;
    return acc_sizes(l, 2) && acc_weight_in(l, 0, n[2], n[1], false, false) &&
           acc_ids_in(l, 1, l->n_row, n[2], acc_by_row(l, 1)) &&
           acc_rows_out(l, l->n_row, n[1], acc_by_row(l, 1));
}

static bool access_linear(plan_accesses *l)
{
    const int64_t *n = l->s->n;
    return acc_sizes(l, 2) && acc_tiles(l, n[1], acc_whole_rows(l)) &&
           acc_multiplied_in(l, l->n_row, n[2], acc_by_row(l, 1)) &&
           acc_weight_in(l, 1, n[1], n[2], true, false) && acc_vectors_in(l, 2, 1, n[1]) &&
           acc_rows_out(l, l->n_row, n[1], acc_by_unit(l, 1));
}

static bool access_norm(plan_accesses *l)
{
    const int64_t *n = l->s->n;
    if (!acc_sizes(l, 3))
        return false;
    int64_t width = acc_times(l, n[1], n[2]);
    bool layer = l->k->op == KOP_layer_norm;
    return acc_tiles(l, width, n[2]) && acc_rows_in(l, 0, l->n_row, width, acc_by_unit(l, 1)) &&
           acc_vectors_in(l, 1, n[3], n[2]) && (!layer || acc_vectors_in(l, 2, n[3], n[2])) &&
           acc_rows_out(l, l->n_row, width, acc_by_unit(l, 1));
}

static bool access_rope(plan_accesses *l)
{
    const int64_t *n = l->s->n;
    if (!acc_sizes(l, 3))
        return false;
    if (2 * n[3] > n[2] || (l->s->word[0] != 1 && l->s->word[0] != 2))
        return acc_refuse(l, "%" PRId64 " pairs in order %d do not fit %" PRId64 " elements", n[3],
                          (int)l->s->word[0], n[2]);
    int64_t width = acc_times(l, n[1], n[2]);
    if (!acc_given(l, 2))
        return acc_refuse(l, "operand 2 is missing");
    return acc_tiles(l, width, n[2]) && acc_rows_in(l, 0, l->n_row, width, acc_by_unit(l, 1)) &&
           acc_ids_in(l, 1, l->n_row, 0, acc_by_row(l, 1)) && acc_f32_in(l, 2, n[3]) &&
           acc_rows_out(l, l->n_row, width, acc_by_unit(l, 1));
}

static bool access_split(plan_accesses *l)
{
    const int64_t *n = l->s->n;
    if (!acc_sizes(l, 2) || n[3] < 0 || n[3] > n[2] || n[4] < 1 || n[4] > n[2] - n[3])
        return acc_refuse(l, "it takes %" PRId64 " elements from %" PRId64 " on, of %" PRId64, n[4],
                          n[3], n[2]);
    return acc_rows_in(l, 0, l->n_row, acc_times(l, n[1], n[2]), acc_by_row(l, 1)) &&
           acc_rows_out(l, l->n_row, acc_times(l, n[1], n[4]), acc_by_row(l, 1));
}

static bool access_concat(plan_accesses *l)
{
    const int64_t *n = l->s->n;
    return acc_sizes(l, 3) &&
           acc_rows_in(l, 0, l->n_row, acc_times(l, n[1], n[2]), acc_by_row(l, 1)) &&
           acc_rows_in(l, 1, l->n_row, acc_times(l, n[1], n[3]), acc_by_row(l, 1)) &&
           acc_rows_out(l, l->n_row, acc_times(l, n[1], n[2] + n[3]), acc_by_row(l, 1));
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
            return acc_refuse(l, "operand %d has a stride of %" PRId64, i, stride);
        if (axis == 0)
            break;
        dense = dense && (n == 1 || stride == step);
        step = acc_times(l, step, n);
        last = acc_plus(l, last, acc_times(l, n - 1, stride));
    }
    plan_operand o = s->in[i];
    int64_t pitch = acc_times(l, s->stride[i][0], 4), width = acc_times(l, acc_plus(l, last, 1), 4);
    if (o.type != DT_F32)
        return acc_refuse(l, "operand %d is %s instead of F32", i, dtype_row_of(o.type)->name);
    if (o.space == SPACE_WEIGHT &&
        (l->p->weight[o.id].mode != WEIGHT_COPIED || l->p->weight[o.id].n_table))
        return acc_refuse(l, "operand %d, weight %s, has not been copied", i,
                          l->p->weight[o.id].name);
    acc_sharing how =
        dense && !l->overflow && width == elems * 4 ? acc_by_unit(l, 1) : acc_by_row(l, 1);
    if (pitch == 0 && how.share == SHARE_ROW)
        how = acc_shared_by_all;
    return acc_put(l, &o,
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
    int rank = l->s->word[0], n_in = l->k->op == KOP_select ? 3 : 2;
    int64_t elems = 1;
    if (rank < 1 || rank > K_AXES_MAX)
        return acc_refuse(l, "it has %d axes", rank);
    if (!acc_sizes(l, rank - 1))
        return false;
    for (int i = 1; i < rank; i++)
        elems = acc_times(l, elems, l->s->n[i]);
    for (int i = 0; i < n_in; i++)
        if (acc_given(l, i) && !strided_in(l, i, rank - 1, 1, elems))
            return false;
    return acc_rows_out(l, l->n_row, elems, acc_by_row(l, 1));
}

static bool access_unary(plan_accesses *l)
{
    return acc_sizes(l, 1) && acc_rows_in(l, 0, l->n_row, l->s->n[1], acc_by_row(l, 1)) &&
           acc_rows_out(l, l->n_row, l->s->n[1], acc_by_row(l, 1));
}

static bool access_softmax(plan_accesses *l)
{
    if (!acc_sizes(l, 2))
        return false;
    int64_t width = acc_times(l, l->s->n[1], l->s->n[2]);
    return acc_rows_in(l, 0, l->n_row, width, acc_by_row(l, 1)) &&
           acc_rows_out(l, l->n_row, width, acc_by_row(l, 1));
}

static bool access_take_rows(plan_accesses *l)
{
    if (!acc_sizes(l, 1))
        return false;
    if (l->s->rows != ROWS_R || l->s->per_row != 1)
        return acc_refuse(l, "its rows are not those asked for");
    /* Which row a unit reads is told by the batch. */
    for (int i = 1; i < K_IN_MAX; i++)
        if (acc_given(l, i) && l->s->in[i].space != SPACE_IO)
            return acc_refuse(l, "operand %d is not read", i);
    return acc_rows_in(l, 0, plan_rows_max(l->p, l->b, ROWS_T), l->s->n[1], acc_shared_by_all) &&
           acc_rows_out(l, l->n_row, l->s->n[1], acc_by_row(l, 1));
}

static bool access_route(plan_accesses *l)
{
    const int64_t *n = l->s->n;
    if (!acc_sizes(l, 4))
        return false;
    if (n[1] % n[3] != 0 || n[4] < 1 || n[4] > n[3] || n[2] > n[1] / n[3] * n[4])
        return acc_refuse(l,
                          "%" PRId64 " of %" PRId64 " experts in %" PRId64 " of %" PRId64 " groups",
                          n[2], n[1], n[4], n[3]);
    return acc_rows_in(l, 0, l->n_row, n[1], acc_by_row(l, 1)) && acc_f32_in(l, 1, n[1]) &&
           acc_rows_out_of(l, 0, DT_I32, l->n_row, n[2], acc_by_row(l, 1)) &&
           acc_rows_out_of(l, 1, DT_F32, l->n_row, n[2], acc_by_row(l, 1));
}

static bool access_experts(plan_accesses *l)
{
    const int64_t *n = l->s->n;
    if (!acc_sizes(l, 3) || n[5] < 1 || n[5] > PLAN_SIZE_MAX)
        return acc_refuse(l, "size 5 is %" PRId64, n[5]);
    if (n[4] != 1 && n[4] != n[1])
        return acc_refuse(l, "%" PRId64 " vectors for %" PRId64 " slots", n[4], n[1]);
    int64_t slots = acc_times(l, l->n_row, n[1]), x_rows = acc_times(l, l->n_row, n[4]);
    return acc_tiles(l, n[2], acc_whole_rows(l)) &&
           acc_multiplied_in(l, x_rows, n[3], acc_by_row(l, n[4])) &&
           acc_table_in(l, n[5], n[2], n[3]) &&
           acc_ids_in(l, 2, slots, n[5], acc_by_row(l, n[1])) && acc_vectors_in(l, 3, n[5], n[2]) &&
           acc_rows_out(l, slots, n[2], acc_by_unit(l, n[1]));
}

static bool access_combine(plan_accesses *l)
{
    const int64_t *n = l->s->n;
    if (!acc_sizes(l, 2))
        return false;
    return acc_tiles(l, n[2], 1) &&
           acc_rows_in(l, 0, acc_times(l, l->n_row, n[1]), n[2], acc_by_unit(l, n[1])) &&
           acc_rows_in(l, 1, l->n_row, n[1], acc_by_row(l, 1)) &&
           acc_rows_out(l, l->n_row, n[2], acc_by_unit(l, 1));
}

/* Units are heads of a row, or columns over all heads: then rows of the call are heads apart. */
static bool access_head_linear(plan_accesses *l)
{
    const int64_t *n = l->s->n;
    if (!acc_sizes(l, 3))
        return false;
    int64_t vectors = acc_times(l, l->n_row, n[1]), width = acc_times(l, n[1], n[2]);
    acc_sharing head = l->s->tile > 0 ? acc_shared_by_all : (acc_sharing){SHARE_ROW, 1};
    if (!acc_tiles(l, width, n[2]) || !acc_multiplied_in(l, vectors, n[3], head) ||
        !acc_table_in(l, n[1], n[2], n[3]) || !acc_vectors_in(l, 2, n[1], n[2]))
        return false;
    if (l->s->tile == 0)
        return acc_rows_out(l, vectors, n[2], head);
    if (l->s->out_pitch[0] != n[2] * 4)
        return acc_refuse(l, "by columns, its heads have no gaps between them");
    plan_step by_cols = *l->s;
    by_cols.out_pitch[0] = acc_times(l, width, 4);
    const plan_step *s = l->s;
    l->s = &by_cols;
    bool fits = acc_rows_out(l, l->n_row, width, acc_by_unit(l, 1));
    l->s = s;
    return fits;
}

static bool access_at_pos(plan_accesses *l)
{
    return acc_sizes(l, 1) && acc_rows_in(l, 0, 1, l->s->n[1], acc_shared_by_all) &&
           acc_ids_in(l, 1, l->n_row, 0, acc_by_row(l, 1)) &&
           acc_rows_out(l, l->n_row, 1, acc_by_row(l, 1));
}

/* quantize, and quantize4 for forms that interleave rows: its units are groups of them. */
static bool access_quantize(plan_accesses *l)
{
    int act = l->s->word[0];
    int64_t n = l->s->n[1], group = l->k->op == KOP_quantize4 ? 4 : 1;
    if (!acc_sizes(l, 1) || act <= ACT_F32 || act >= ACT_COUNT || act_group((kact)act) != group ||
        n % act_block((kact)act) != 0)
        return acc_refuse(l, "rows of %" PRId64 " elements cannot be quantised in form %d", n, act);
    const plan_operand *o = &l->s->out[0];
    int64_t width = act_row_bytes((kact)act, n);
    if (!acc_tiles(l, n, 256) || !acc_rows_in(l, 0, l->n_row, n, acc_by_unit(l, group)))
        return false;
    if (o->space != SPACE_ARENA && o->space != SPACE_LOCAL)
        return acc_refuse(l, "quantised rows are not cut into tiles");
    if (group > 1 && l->s->out_pitch[0] != width)
        return acc_refuse(l, "groups of quantised rows have no gaps between them");
    acc_sharing how =
        acc_by_row(l, group); /* by columns, a unit has a part of each array of a row */
    return acc_put(l, o,
                   (plan_access){.write = true,
                                 .rows = acc_times(l, i64_ceil_div(l->n_row, group), group),
                                 .width = width,
                                 .pitch = l->s->out_pitch[0],
                                 .share = how.share,
                                 .unit = how.unit,
                                 .quantized = true},
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
        return acc_refuse(l, "its code has no instruction %d", c->op);
    for (int i = 0; i < map_reads[c->op]; i++)
        if (c->at[i] >= MAP_REGS_MAX || !(*set >> c->at[i] & 1))
            return acc_refuse(l, "its code reads register %d, which holds nothing", c->at[i]);
    if (c->op == MAP_load && (c->at[0] >= l->s->n_in || !acc_given(l, c->at[0])))
        return acc_refuse(l, "its code loads operand %d, which is missing", c->at[0]);
    /* Kernels look at the registers of absent operands, too. */
    for (int i = c->op == MAP_load ? 1 : map_reads[c->op]; i < 3; i++)
        if (c->at[i] >= MAP_REGS_MAX)
            return acc_refuse(l, "its code names register %d", c->at[i]);
    if (c->op == MAP_store) {
        if (c->to >= l->s->n_out)
            return acc_refuse(l, "its code stores to result %d of %d", c->to, l->s->n_out);
        *stored |= 1u << c->to;
        return true;
    }
    if (c->to >= MAP_REGS_MAX)
        return acc_refuse(l, "its code sets register %d", c->to);
    *set |= 1u << c->to;
    return true;
}

static bool map_code(plan_accesses *l)
{
    const plan_step *s = l->s;
    uint32_t set = 0, stored = 0;
    if (s->n_code < 1 || s->code < 0 || s->code > l->p->n_code ||
        s->n_code > l->p->n_code - s->code)
        return acc_refuse(l, "its code is not in the plan");
    for (int32_t i = 0; i < s->n_code; i++)
        if (!map_instr(l, &l->p->code[s->code + i], &set, &stored))
            return false;
    if (stored != (1u << s->n_out) - 1)
        return acc_refuse(l, "its code leaves a result without a value");
    return true;
}

static bool access_map(plan_accesses *l)
{
    const plan_step *s = l->s;
    int axes = s->word[0];
    int64_t elems = 1;
    if (axes < 1 || axes > K_AXES_MAX - 1)
        return acc_refuse(l, "it has %d axes", axes);
    if (!acc_sizes(l, 1 + axes))
        return false;
    for (int i = 0; i < axes; i++)
        elems = acc_times(l, elems, s->n[2 + i]);
    if (l->overflow || elems != s->n[1])
        return acc_refuse(l, "its axes make %" PRId64 " elements of %" PRId64, elems, s->n[1]);
    if (!acc_tiles(l, elems, 1) || !map_code(l))
        return false;
    for (int i = 0; i < s->n_in; i++)
        if (acc_given(l, i) && !strided_in(l, i, axes, 2, elems))
            return false;
    for (int i = 0; i < s->n_out; i++)
        if (!acc_rows_out_of(l, i, DT_F32, l->n_row, elems, acc_by_unit(l, 1)))
            return false;
    return true;
}

/* ---- the table ---- */

typedef struct {
    kop op;
    bool (*find)(plan_accesses *l);
    int8_t n_in, n_out; /* at most; -1 results: as many as there are */
    bool tiled;         /* takes columns as units */
    bool in_place;      /* a result may take the place of an operand */
} access_row;

/* clang-format off */
static const access_row access_rows[] = {
    /* op          what it touches     in  out  tiled  in place */
    {KOP_embed,       access_embed,       2,  1,  false, false},
    {KOP_linear,      access_linear,      3,  1,  true,  false},
    {KOP_rms_norm,    access_norm,        2,  1,  true,  true},
    {KOP_layer_norm,  access_norm,        3,  1,  true,  true},
    {KOP_rope,        access_rope,        3,  1,  true,  true},
    {KOP_split,       access_split,       1,  1,  false, false},
    {KOP_concat,      access_concat,      2,  1,  false, false},
    {KOP_append,      access_append,      2,  0,  true,  false},
    {KOP_attend,      access_attend,      4,  1,  false, false},
    {KOP_add,         access_binary,      2,  1,  false, true},
    {KOP_sub,         access_binary,      2,  1,  false, true},
    {KOP_mul,         access_binary,      2,  1,  false, true},
    {KOP_div,         access_binary,      2,  1,  false, true},
    {KOP_max,         access_binary,      2,  1,  false, true},
    {KOP_min,         access_binary,      2,  1,  false, true},
    {KOP_select,      access_binary,      3,  1,  false, true},
    {KOP_neg,         access_unary,       1,  1,  false, true},
    {KOP_silu,        access_unary,       1,  1,  false, true},
    {KOP_gelu,        access_unary,       1,  1,  false, true},
    {KOP_tanh,        access_unary,       1,  1,  false, true},
    {KOP_sigmoid,     access_unary,       1,  1,  false, true},
    {KOP_relu,        access_unary,       1,  1,  false, true},
    {KOP_softplus,    access_unary,       1,  1,  false, true},
    {KOP_exp,         access_unary,       1,  1,  false, true},
    {KOP_sqrt,        access_unary,       1,  1,  false, true},
    {KOP_clamp,       access_unary,       1,  1,  false, true},
    {KOP_softmax,     access_softmax,     1,  1,  false, true},
    {KOP_take_rows,   access_take_rows,   2,  1,  false, false},
    {KOP_route,       access_route,       2,  2,  false, false},
    {KOP_experts,     access_experts,     4,  1,  true,  false},
    {KOP_combine,     access_combine,     2,  1,  true,  false},
    {KOP_head_linear, access_head_linear, 3,  1,  true,  false},
    {KOP_at_pos,      access_at_pos,      2,  1,  false, false},
    {KOP_map,         access_map,  K_IN_MAX, -1,  true,  true},
    {KOP_quantize,        access_quantize,        1,  1,  true,  false},
    {KOP_quantize4,       access_quantize,        1,  1,  false, false},
};
/* clang-format on */

static const access_row *row_of(kop op)
{
    for (size_t i = 0; i < sizeof access_rows / sizeof access_rows[0]; i++)
        if (access_rows[i].op == op)
            return &access_rows[i];
    return NULL;
}

bool plan_op_in_place(kop op)
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
        return acc_refuse(l, "it has %d operands and %d results", (int)s->n_in, (int)s->n_out);
    for (int i = 0; i < K_IN_MAX; i++) {
        const plan_operand *o = &s->in[i];
        if ((unsigned)o->space > SPACE_IO || (unsigned)o->type >= DT_COUNT)
            return acc_refuse(l, "operand %d is of no kind", i);
        if (i >= s->n_in && o->space != SPACE_NONE)
            return acc_refuse(l, "operand %d is not read", i);
        if (o->space == SPACE_WEIGHT && (o->id < 0 || o->id >= l->p->n_weight))
            return acc_refuse(l, "operand %d is weight %d of %d", i, (int)o->id,
                              (int)l->p->n_weight);
        if (o->space == SPACE_IO && (o->id < 0 || o->id >= IO_COUNT))
            return acc_refuse(l, "operand %d is none of what a call brings", i);
    }
    for (int i = 0; i < s->n_out; i++)
        if ((unsigned)s->out[i].space > SPACE_IO || (unsigned)s->out[i].type >= DT_COUNT)
            return acc_refuse(l, "result %d is of no kind", i);
    return true;
}

static bool rows_of_call(plan_accesses *l)
{
    const plan_step *s = l->s;
    if ((unsigned)s->rows > ROWS_FIXED || s->per_row < 1 || s->per_row > PLAN_SIZE_MAX)
        return acc_refuse(l, "it counts %" PRId64 " rows for each of kind %d", s->per_row,
                          (int)s->rows);
    l->n_row = s->rows == ROWS_FIXED ? s->n[0]
                                     : acc_times(l, plan_rows_max(l->p, l->b, s->rows), s->per_row);
    if (l->n_row < 1 || l->n_row > PLAN_SIZE_MAX)
        return acc_refuse(l, "it has %" PRId64 " rows", l->n_row);
    return true;
}

bool plan_access_step(const plan *p, const plan_bucket *b, const plan_item *item,
                      const plan_step *s, plan_accesses *l)
{
    int n_kernel;
    const kernel_row *rows = kernel_rows(&n_kernel);
    *l = (plan_accesses){.p = p, .b = b, .s = s, .item = item};
    if (s->kernel < 0 || s->kernel >= n_kernel)
        return acc_refuse(l, "there is no kernel %d", (int)s->kernel);
    l->k = &rows[s->kernel];
    const access_row *r = row_of(l->k->op);
    if (!r)
        return acc_refuse(l, "nothing is known of the memory that %s touches", kop_name(l->k->op));
    if (s->tile < 0 || (s->tile > 0 && (!r->tiled || l->k->variant == VARIANT_ref)))
        return acc_refuse(l, "it does not take columns as units");
    if (s->cell < -1 || s->cell >= p->n_cell)
        return acc_refuse(l, "there is no cell %d", (int)s->cell);
    if (!operands(l, r) || !rows_of_call(l) || !r->find(l))
        return false;
    return !l->overflow || acc_refuse(l, "its sizes do not fit");
}
