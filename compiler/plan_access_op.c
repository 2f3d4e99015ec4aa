/* plan_access_op.c - what each op touches, by the names that kernels/kernel_ops.def gives its sizes.
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

/* Other pages of the cell than those it reads, a head of one in each unit. */
static bool access_convert(plan_accesses *l)
{
    if (!cell_rows_are_tokens(l))
        return false;
    kpolicy all = plan_tiers(&l->p->tiers, l->p->kv);
    kpolicy own = plan_cell_tiers(&l->p->cell[l->s->cell], &all);
    if (l->s->size.convert.tier < 1 || l->s->size.convert.tier >= own.n_tier)
        return acc_refuse(l, "cell %s has no tier %" PRId64, l->p->cell[l->s->cell].name,
                          l->s->size.convert.tier);
    touch_cell(l, CELL_KEYS, true, acc_by_unit(l, 1));
    touch_cell(l, CELL_VALUES, true, acc_by_unit(l, 1));
    return true;
}

static bool access_attend(plan_accesses *l)
{
    int64_t heads = l->s->size.attend.heads, window = l->s->size.attend.window,
            chunk = l->s->size.attend.chunk;
    if (!cell_rows_are_tokens(l) || !acc_sizes(l, 1))
        return false;
    const plan_cell *c = &l->p->cell[l->s->cell];
    if (heads % c->heads != 0)
        return acc_refuse(l, "%" PRId64 " heads are no whole groups for %" PRId64, heads, c->heads);
    if (window < 0 || chunk < 0)
        return acc_refuse(l, "a window cannot be %" PRId64, window < 0 ? window : chunk);
    bool near = (window > 0 && window - 1 <= c->keep) || (chunk > 0 && chunk - 1 <= c->keep);
    if (c->layout == PLAN_RING && !near)
        return acc_refuse(l, "it looks further back than the %" PRId64 " rows that cell %s keeps",
                          c->keep, c->name);
    acc_sharing part = {SHARE_ROW, 0}; /* of a row, a unit has some heads */
    int mode = l->s->choice.attend.part;
    if (mode < 0 || mode > ATTEND_MERGE || (mode > 0 && !plan_kernel_splits(l->k)))
        return acc_refuse(l, "its kernel has no part %d", mode);
    int64_t states = acc_times(l, heads, kernel_state_elems(c->v));
    if (mode == ATTEND_MERGE)
        return acc_rows_in(l, 0, l->n_row, states, part) && acc_f32_in(l, 2, heads) &&
               acc_rows_out(l, l->n_row, acc_times(l, heads, c->v), part);
    touch_cell(l, CELL_KEYS, false, acc_shared_by_all);
    touch_cell(l, CELL_VALUES, false, acc_shared_by_all);
    return acc_rows_in(l, 0, l->n_row, acc_times(l, heads, c->k), part) &&
           acc_f32_in(l, 2, heads) && acc_f32_in(l, 3, heads) &&
           acc_rows_out(l, l->n_row, mode == ATTEND_STATES ? states : acc_times(l, heads, c->v),
                        part);
}

/* ---- the other ops ---- */

static bool access_embed(plan_accesses *l)
{
    int64_t width = l->s->size.embed.width, vocab = l->s->size.embed.vocab;
    return acc_sizes(l, 2) && acc_weight_in(l, 0, vocab, width, true, false) &&
           acc_ids_in(l, 1, l->n_row, vocab, acc_by_row(l, 1)) &&
           acc_rows_out(l, l->n_row, width, acc_by_row(l, 1));
}

static bool access_linear(plan_accesses *l)
{
    int64_t out = l->s->size.linear.out, in = l->s->size.linear.in;
    return acc_sizes(l, 2) && acc_tiles(l, out, acc_whole_rows(l)) &&
           acc_multiplied_in(l, l->n_row, in, acc_by_row(l, 1)) &&
           acc_weight_in(l, 1, out, in, true, false) && acc_vectors_in(l, 2, 1, out) &&
           acc_rows_out(l, l->n_row, out, acc_by_unit(l, 1));
}

static bool access_norm(plan_accesses *l)
{
    int64_t width = l->s->size.norm.width, rows = l->s->size.norm.weight_rows;
    if (!acc_sizes(l, 3))
        return false;
    int64_t cols = acc_times(l, l->s->size.norm.vectors, width);
    bool layer = l->k->op == KOP_layer_norm;
    return acc_tiles(l, cols, width) && acc_rows_in(l, 0, l->n_row, cols, acc_by_unit(l, 1)) &&
           acc_vectors_in(l, 1, rows, width) && (!layer || acc_vectors_in(l, 2, rows, width)) &&
           acc_rows_out(l, l->n_row, cols, acc_by_unit(l, 1));
}

static bool access_rope(plan_accesses *l)
{
    int64_t width = l->s->size.rope.width, pairs = l->s->size.rope.pairs;
    int order = l->s->choice.rope.order;
    if (!acc_sizes(l, 3))
        return false;
    if (2 * pairs > width || (order != 1 && order != 2))
        return acc_refuse(l, "%" PRId64 " pairs in order %d do not fit %" PRId64 " elements", pairs,
                          order, width);
    int64_t cols = acc_times(l, l->s->size.rope.heads, width);
    if (!acc_given(l, 2))
        return acc_refuse(l, "operand 2 is missing");
    return acc_tiles(l, cols, width) && acc_rows_in(l, 0, l->n_row, cols, acc_by_unit(l, 1)) &&
           acc_ids_in(l, 1, l->n_row, 0, acc_by_row(l, 1)) && acc_f32_in(l, 2, pairs) &&
           acc_rows_out(l, l->n_row, cols, acc_by_unit(l, 1));
}

static bool access_split(plan_accesses *l)
{
    int64_t vectors = l->s->size.split.vectors, width = l->s->size.split.width,
            first = l->s->size.split.first, part = l->s->size.split.part;
    if (!acc_sizes(l, 2) || first < 0 || first > width || part < 1 || part > width - first)
        return acc_refuse(l, "it takes %" PRId64 " elements from %" PRId64 " on, of %" PRId64, part,
                          first, width);
    return acc_rows_in(l, 0, l->n_row, acc_times(l, vectors, width), acc_by_row(l, 1)) &&
           acc_rows_out(l, l->n_row, acc_times(l, vectors, part), acc_by_row(l, 1));
}

static bool access_concat(plan_accesses *l)
{
    int64_t vectors = l->s->size.concat.vectors, x = l->s->size.concat.x_width,
            y = l->s->size.concat.y_width;
    return acc_sizes(l, 3) &&
           acc_rows_in(l, 0, l->n_row, acc_times(l, vectors, x), acc_by_row(l, 1)) &&
           acc_rows_in(l, 1, l->n_row, acc_times(l, vectors, y), acc_by_row(l, 1)) &&
           acc_rows_out(l, l->n_row, acc_times(l, vectors, x + y), acc_by_row(l, 1));
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
    if (!acc_weight_aligned(l, i))
        return false;
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

/* add and the like: as many axes as its rank. */
static bool access_binary(plan_accesses *l)
{
    int rank = l->s->choice.binary.rank;
    int64_t elems = 1;
    if (rank < 1 || rank > K_AXES_MAX)
        return acc_refuse(l, "it has %d axes", rank);
    if (!acc_sizes(l, rank - 1))
        return false;
    for (int i = 1; i < rank; i++)
        elems = acc_times(l, elems, l->s->size.binary.dim[i - 1]);
    for (int i = 0; i < l->s->n_in; i++)
        if (acc_given(l, i) && !strided_in(l, i, rank - 1, 1, elems))
            return false;
    return acc_rows_out(l, l->n_row, elems, acc_by_row(l, 1));
}

static bool access_unary(plan_accesses *l)
{
    return acc_sizes(l, 1) &&
           acc_rows_in(l, 0, l->n_row, l->s->size.unary.elems, acc_by_row(l, 1)) &&
           acc_rows_out(l, l->n_row, l->s->size.unary.elems, acc_by_row(l, 1));
}

static bool access_softmax(plan_accesses *l)
{
    if (!acc_sizes(l, 2))
        return false;
    int64_t width = acc_times(l, l->s->size.softmax.vectors, l->s->size.softmax.width);
    return acc_rows_in(l, 0, l->n_row, width, acc_by_row(l, 1)) &&
           acc_rows_out(l, l->n_row, width, acc_by_row(l, 1));
}

static bool access_take_rows(plan_accesses *l)
{
    if (!acc_sizes(l, 1))
        return false;
    if (l->s->rows != ROWS_R || l->s->per_row != 1)
        return acc_refuse(l, "its rows are not those asked for");
    /* The batch says which row a unit reads. */
    for (int i = 1; i < K_IN_MAX; i++)
        if (acc_given(l, i) && l->s->in[i].space != SPACE_IO)
            return acc_refuse(l, "operand %d is not read", i);
    return acc_rows_in(l, 0, plan_rows_max(l->p, l->b, ROWS_T), l->s->size.take_rows.width,
                       acc_shared_by_all) &&
           acc_rows_out(l, l->n_row, l->s->size.take_rows.width, acc_by_row(l, 1));
}

static bool access_route(plan_accesses *l)
{
    int64_t experts = l->s->size.route.experts, slots = l->s->size.route.slots,
            groups = l->s->size.route.groups, top = l->s->size.route.top_groups;
    if (!acc_sizes(l, 4))
        return false;
    if (experts % groups != 0 || top < 1 || top > groups || slots > experts / groups * top)
        return acc_refuse(l,
                          "%" PRId64 " of %" PRId64 " experts in %" PRId64 " of %" PRId64 " groups",
                          slots, experts, top, groups);
    return acc_rows_in(l, 0, l->n_row, experts, acc_by_row(l, 1)) && acc_f32_in(l, 1, experts) &&
           acc_rows_out_of(l, 0, DT_I32, l->n_row, slots, acc_by_row(l, 1)) &&
           acc_rows_out_of(l, 1, DT_F32, l->n_row, slots, acc_by_row(l, 1));
}

static bool access_experts(plan_accesses *l)
{
    int64_t slots = l->s->size.experts.slots, out = l->s->size.experts.out,
            in = l->s->size.experts.in, x = l->s->size.experts.x_vectors,
            experts = l->s->size.experts.experts;
    if (!acc_sizes(l, 5))
        return false;
    if (x != 1 && x != slots)
        return acc_refuse(l, "it has %" PRId64 " rows of operand 0 for %" PRId64 " experts", x,
                          slots);
    int64_t chosen = acc_times(l, l->n_row, slots);
    return acc_tiles(l, out, acc_whole_rows(l)) &&
           acc_multiplied_in(l, acc_times(l, l->n_row, x), in, acc_by_row(l, x)) &&
           acc_table_in(l, experts, out, in) &&
           acc_ids_in(l, 2, chosen, experts, acc_by_row(l, slots)) &&
           acc_vectors_in(l, 3, experts, out) &&
           acc_rows_out(l, chosen, out, acc_by_unit(l, slots));
}

static bool access_combine(plan_accesses *l)
{
    int64_t slots = l->s->size.combine.slots, width = l->s->size.combine.width;
    if (!acc_sizes(l, 2))
        return false;
    return acc_tiles(l, width, 1) &&
           acc_rows_in(l, 0, acc_times(l, l->n_row, slots), width, acc_by_unit(l, slots)) &&
           acc_rows_in(l, 1, l->n_row, slots, acc_by_row(l, 1)) &&
           acc_rows_out(l, l->n_row, width, acc_by_unit(l, 1));
}

/* Units are heads of a row, or columns over all heads: then rows of the call are heads apart. */
static bool access_head_linear(plan_accesses *l)
{
    int64_t heads = l->s->size.head_linear.heads, out = l->s->size.head_linear.out,
            in = l->s->size.head_linear.in;
    if (!acc_sizes(l, 3))
        return false;
    int64_t vectors = acc_times(l, l->n_row, heads), width = acc_times(l, heads, out);
    acc_sharing head = l->s->tile > 0 ? acc_shared_by_all : (acc_sharing){SHARE_ROW, 1};
    if (!acc_tiles(l, width, out) || !acc_multiplied_in(l, vectors, in, head) ||
        !acc_table_in(l, heads, out, in) || !acc_vectors_in(l, 2, heads, out))
        return false;
    if (l->s->tile == 0)
        return acc_rows_out(l, vectors, out, head);
    if (l->s->out_pitch[0] != out * 4)
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
    return acc_sizes(l, 1) &&
           acc_rows_in(l, 0, 1, l->s->size.at_pos.positions, acc_shared_by_all) &&
           acc_ids_in(l, 1, l->n_row, 0, acc_by_row(l, 1)) &&
           acc_rows_out(l, l->n_row, 1, acc_by_row(l, 1));
}

/* quantize, and quantize4 for forms that interleave rows: its units are groups of them. */
static bool access_quantize(plan_accesses *l)
{
    int act = l->s->choice.quantize.act;
    int64_t n = l->s->size.quantize.width, group = l->k->op == KOP_quantize4 ? 4 : 1;
    if (!acc_sizes(l, 1) || act <= ACT_F32 || act >= ACT_COUNT || act_group((kact)act) != group ||
        n % act_block((kact)act) != 0)
        return acc_refuse(l, "rows of %" PRId64 " elements cannot be quantised in form %d", n, act);
    const plan_operand *o = &l->s->out[0];
    int64_t width = act_row_bytes((kact)act, n);
    int64_t whole = act_is_tiled((kact)act) ? ACT_SPLIT_COLS : 256;
    if (!acc_tiles(l, n, whole) || !acc_rows_in(l, 0, l->n_row, n, acc_by_unit(l, group)))
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

/* ---- adapters ---- */

/* The site that a step names is the one whose memory it is given, of the sizes it has. */
static bool site_fits(plan_accesses *l)
{
    const plan_step *s = l->s;
    static const plan_rows rows_of[] = {
        [LORA_OF_ALL] = ROWS_T, [LORA_OF_ASKED] = ROWS_R, [LORA_OF_SEQS] = ROWS_S};
    int32_t id = s->in[1].id;
    if (s->in[1].space != SPACE_ADAPTER || id < 0 || id >= l->p->n_site || s->in[1].offset != 0 ||
        s->in[1].type != DT_F32 || s->choice.lora.site != id)
        return acc_refuse(l, "operand 1 is no site of adapters");
    const plan_site *site = &l->p->site[id];
    if (s->choice.lora.kind != (int32_t)site->kind || s->size.lora.in != site->in ||
        s->size.lora.out != site->out || s->size.lora.parts != site->parts ||
        s->size.lora.rank != l->p->lora_rank)
        return acc_refuse(l, "site %s has other sizes", site->name);
    if (s->choice.lora.rows < 0 || s->choice.lora.rows > LORA_OF_SEQS ||
        rows_of[s->choice.lora.rows] != s->rows || s->per_row != 1)
        return acc_refuse(l, "its rows are not those that it takes mixes of");
    if (site->kind == LORA_HEAD_LINEAR && s->size.lora.vectors != site->parts)
        return acc_refuse(l, "it has %" PRId64 " vectors for %" PRId64 " heads",
                          s->size.lora.vectors, site->parts);
    return true;
}

/* Ids that say which part of a site a vector takes; of an embedding, which row of its matrix. */
static bool site_ids_in(plan_accesses *l)
{
    const plan_site *site = &l->p->site[l->s->in[1].id];
    if (site->kind == LORA_EMBED)
        return acc_ids_in(l, 2, l->n_row, site->in, acc_shared_by_all);
    if (site->kind == LORA_EXPERTS)
        return acc_ids_in(l, 2, acc_times(l, l->n_row, l->s->size.lora.vectors), site->parts,
                          acc_shared_by_all);
    return !acc_given(l, 2) || acc_refuse(l, "operand 2 is not read");
}

static bool access_lora_down(plan_accesses *l)
{
    int64_t vectors = l->s->size.lora.vectors, x = l->s->size.lora.x_vectors;
    if (!acc_sizes(l, 6) || !site_fits(l) || !site_ids_in(l))
        return false;
    bool embeds = l->s->choice.lora.kind == LORA_EMBED;
    if ((x != 1 && x != vectors) || embeds == acc_given(l, 0))
        return acc_refuse(l, "it has %" PRId64 " rows of operand 0 for %" PRId64, x, vectors);
    int64_t ranks = acc_times(l, K_MIX_MAX, l->s->size.lora.rank);
    return (embeds ||
            acc_rows_in(l, 0, acc_times(l, l->n_row, x), l->s->size.lora.in, acc_shared_by_all)) &&
           acc_rows_out(l, acc_times(l, l->n_row, vectors), ranks, acc_shared_by_all);
}

static bool access_lora_up(plan_accesses *l)
{
    int64_t vectors = l->s->size.lora.vectors, out = l->s->size.lora.out;
    if (!acc_sizes(l, 6) || !site_fits(l) || !acc_tiles(l, out, 1))
        return false;
    int64_t rows = acc_times(l, l->n_row, vectors);
    if (l->s->choice.lora.kind != LORA_EMBED && !site_ids_in(l))
        return false;
    return acc_rows_in(l, 0, rows, acc_times(l, K_MIX_MAX, l->s->size.lora.rank),
                       acc_by_row(l, vectors)) &&
           acc_rows_out(l, rows, out, acc_by_unit(l, vectors));
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
    int axes = s->choice.map.axes;
    int64_t elems = 1;
    if (axes < 1 || axes > K_AXES_MAX - 1)
        return acc_refuse(l, "it has %d axes", axes);
    if (!acc_sizes(l, 1 + axes))
        return false;
    for (int i = 0; i < axes; i++)
        elems = acc_times(l, elems, s->size.map.dim[i]);
    if (l->overflow || elems != s->size.map.elems)
        return acc_refuse(l, "its axes make %" PRId64 " elements of %" PRId64, elems,
                          s->size.map.elems);
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

static bool (*const access_of[KOP_COUNT])(plan_accesses *l) = {
    [KOP_embed] = access_embed,         [KOP_linear] = access_linear,
    [KOP_rms_norm] = access_norm,       [KOP_layer_norm] = access_norm,
    [KOP_rope] = access_rope,           [KOP_split] = access_split,
    [KOP_concat] = access_concat,       [KOP_append] = access_append,
    [KOP_attend] = access_attend,       [KOP_add] = access_binary,
    [KOP_sub] = access_binary,          [KOP_mul] = access_binary,
    [KOP_div] = access_binary,          [KOP_max] = access_binary,
    [KOP_min] = access_binary,          [KOP_select] = access_binary,
    [KOP_neg] = access_unary,           [KOP_silu] = access_unary,
    [KOP_gelu] = access_unary,          [KOP_tanh] = access_unary,
    [KOP_sigmoid] = access_unary,       [KOP_relu] = access_unary,
    [KOP_softplus] = access_unary,      [KOP_exp] = access_unary,
    [KOP_sqrt] = access_unary,          [KOP_clamp] = access_unary,
    [KOP_softmax] = access_softmax,     [KOP_take_rows] = access_take_rows,
    [KOP_route] = access_route,         [KOP_experts] = access_experts,
    [KOP_combine] = access_combine,     [KOP_head_linear] = access_head_linear,
    [KOP_at_pos] = access_at_pos,       [KOP_map] = access_map,
    [KOP_lora_down] = access_lora_down, [KOP_lora_up] = access_lora_up,
    [KOP_convert] = access_convert,     [KOP_quantize] = access_quantize,
    [KOP_quantize4] = access_quantize,
};

/* Operands that say what they are: a number of a type, a weight that is there. */
static bool operands(plan_accesses *l, const kop_row *r)
{
    const plan_step *s = l->s;
    if (s->n_in < 0 || s->n_in > r->n_in || s->n_out < 0 || s->n_out > K_OUT_MAX ||
        (r->n_out >= 0 && s->n_out != r->n_out) || (r->n_out < 0 && s->n_out < 1))
        return acc_refuse(l, "it has %d operands and %d results", (int)s->n_in, (int)s->n_out);
    for (int i = 0; i < K_IN_MAX; i++) {
        const plan_operand *o = &s->in[i];
        if ((unsigned)o->space > SPACE_ADAPTER || (unsigned)o->type >= DT_COUNT)
            return acc_refuse(l, "operand %d is of no kind", i);
        bool site = l->k->op == KOP_lora_down || l->k->op == KOP_lora_up;
        if (o->space == SPACE_ADAPTER && (!site || i != 1))
            return acc_refuse(l, "operand %d cannot be adapters", i);
        if (i >= s->n_in && o->space != SPACE_NONE)
            return acc_refuse(l, "operand %d is not read", i);
        if (o->space == SPACE_WEIGHT && (o->id < 0 || o->id >= l->p->n_weight))
            return acc_refuse(l, "operand %d is weight %d of %d", i, (int)o->id,
                              (int)l->p->n_weight);
        if (o->space == SPACE_IO && (o->id < 0 || o->id >= IO_COUNT))
            return acc_refuse(l, "operand %d is none of what a call brings", i);
    }
    for (int i = 0; i < s->n_out; i++)
        if ((unsigned)s->out[i].space > SPACE_ADAPTER || (unsigned)s->out[i].type >= DT_COUNT)
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
    *l = (plan_accesses){.p = p, .b = b, .s = s, .item = item};
    if (s->kernel < 0 || s->kernel >= p->n_kernel)
        return acc_refuse(l, "there is no kernel %d", (int)s->kernel);
    l->k = plan_kernel_of(p, s);
    const kop_row *r = kop_row_of(l->k->op);
    if (!access_of[l->k->op])
        return acc_refuse(l, "nothing is known of the memory that %s touches", r->name);
    if (s->tile < 0 || (s->tile > 0 && (r->cut == KCUT_NO || l->k->reference)))
        return acc_refuse(l, "it does not take columns as units");
    if (s->cell < -1 || s->cell >= p->n_cell)
        return acc_refuse(l, "there is no cell %d", (int)s->cell);
    if (!operands(l, r) || !rows_of_call(l) || !access_of[l->k->op](l))
        return false;
    return !l->overflow || acc_refuse(l, "its sizes do not fit");
}
