/* bucket_memory.c - a place for every value: shared, a thread's own, or a tile of a chain.
 *
 * A value is a tile when only its own chain reads it, a thread's own when each thread computes it, and
 * shared otherwise. Shared values that are never needed in the same phase may lie at the same place;
 * a thread's own, that are never needed at the same step. Offsets are given first fit, in a few orders, and
 * the order that needs least wins. */
#include "compiler/bucket_impl.h"

#include "runtime/base/intmath.h"
#include <inttypes.h>
#include <stdlib.h>

enum {
    GRAIN_MAX = 64, /* units of a claim */
};

/* ---- tiles ---- */

/* Which values are read by steps of another item than the one that makes them; or by one that splits a chain's last columns, for
 * which tiles would be smaller. */
static void find_readers(const bucket *b, bool *elsewhere)
{
    for (size_t i = 0; i < b->steps.n; i++) {
        const plan_step *s = &b->steps.at[i].s;
        for (int k = 0; k < s->n_in; k++) {
            if (s->in[k].space != SPACE_ARENA)
                continue;
            int maker = b->values.at[s->in[k].id].step;
            if (maker < 0 || b->steps.at[maker].item != b->steps.at[i].item ||
                bucket_op(b, s) == KOP_quantize)
                elsewhere[s->in[k].id] = true;
        }
    }
}

/* A kernel that gives the heads of a row apart finds no such rows in a tile. */
static bool can_be_tile(const bucket *b, const plan_step *s)
{
    return bucket_op(b, s) != KOP_head_linear;
}

static void choose_spaces(bucket *b)
{
    bool *elsewhere = ARENA_ARRAY(b->a, bool, b->values.n);
    find_readers(b, elsewhere);
    for (size_t i = 0; i < b->values.n; i++) {
        bvalue *v = &b->values.at[i];
        if (v->step < 0)
            continue;
        const bstep *st = &b->steps.at[v->step];
        const bitem *it = &b->items.at[st->item];
        v->pitch = v->row_bytes;
        v->space = it->per_thread ? SPACE_LOCAL : SPACE_ARENA;
        if (it->cols > 0 && !elsewhere[i] && !v->output && can_be_tile(b, &st->s))
            v->space = SPACE_TILE;
    }
}

/* Rows of an item's tiles, one below the other. Values for which the back end has no room, the last ones first, are no tiles:
 * they are shared memory, of which a chain reads what it wrote. */
static int64_t tile_rows(bucket *b, const bitem *it)
{
    const int64_t most = b->lo->t->be->tile_bytes_max / 4 / it->tile;
    int64_t rows = 0;
    for (int k = 0; k < it->n_step; k++) {
        const plan_step *s = &b->steps.at[it->step[k]].s;
        for (int o = 0; o < s->n_out; o++) {
            bvalue *v = &b->values.at[s->out[o].id];
            if (v->space != SPACE_TILE)
                continue;
            if (v->rows > most - rows)
                v->space = SPACE_ARENA;
            else
                rows += v->rows;
        }
    }
    return rows;
}

/* Columns of a unit, and units that a claim may take. */
static void size_tiles(bucket *b)
{
    const backend *be = b->lo->t->be;
    const bool few = be->tile_bytes_few > 0 && b->lo->n_tok <= be->whole_rows;
    const int64_t bytes = few ? be->tile_bytes_few : be->tile_bytes;
    for (size_t i = 0; i < b->items.n; i++) {
        bitem *it = &b->items.at[i];
        if (it->cols == 0)
            continue;
        int64_t least = be->tile_cols[b->lo->n_tok > be->tile_rows], whole = it->tile;
        while (it->tile < least && it->tile + whole <= it->cols)
            it->tile += whole;
        const int64_t rows = tile_rows(b, it);
        it->grain = 0;
        if (rows > 0) {
            it->grain = bytes / 4 / rows / it->tile;
            it->grain = it->grain < 1 ? 1 : it->grain > GRAIN_MAX ? GRAIN_MAX : it->grain;
            int64_t units = i64_ceil_div(it->cols, it->tile);
            it->grain = it->grain > units ? units : it->grain;
        }
        for (int k = 0; k < it->n_step; k++) {
            plan_step *s = &b->steps.at[it->step[k]].s;
            s->cols = it->cols;
            s->tile = it->tile;
            for (int o = 0; o < s->n_out; o++) {
                bvalue *v = &b->values.at[s->out[o].id];
                if (v->space == SPACE_TILE)
                    v->pitch = it->grain * it->tile * 4;
            }
        }
    }
}

/* ---- lifetimes ---- */

/* The place of each step in the order that threads walk them. */
static int32_t *number_steps(const bucket *b, int32_t *last_of)
{
    int32_t *at = ARENA_ARRAY(b->a, int32_t, b->steps.n), n = 0;
    for (size_t i = 0; i < b->items.n; i++) {
        const bitem *it = &b->items.at[b->order[i]];
        for (int k = 0; k < it->n_step; k++)
            at[it->step[k]] = n++;
        last_of[b->order[i]] = n - 1;
    }
    return at;
}

/* The phase that a phase's last per-thread step may run beside: where no row of a call uses an adapter, a phase that shares
 * out their products alone has nothing to share out and runs together with the next one (plan_phase_may_idle). */
static int32_t *find_last_phases(const bucket *b)
{
    int32_t *last = ARENA_ARRAY(b->a, int32_t, (size_t)b->n_phase + 1);
    bool *down = ARENA_ARRAY(b->a, bool, (size_t)b->n_phase + 1),
         *other = ARENA_ARRAY(b->a, bool, (size_t)b->n_phase + 1);
    for (size_t i = 0; i < b->items.n; i++) {
        const bitem *it = &b->items.at[i];
        bool is_down = bucket_op(b, &b->steps.at[it->step[0]].s) == KOP_lora_down;
        down[it->phase] = down[it->phase] || (is_down && !it->per_thread);
        other[it->phase] = other[it->phase] || (!is_down && !it->per_thread);
    }
    for (int32_t p = b->n_phase - 1; p >= 0; p--)
        last[p] = down[p] && !other[p] && p + 1 < b->n_phase ? last[p + 1] : p;
    return last;
}

/* The first phase that a step's results may be written in: where blocks quantise what they attended with, that of attention, which may
 * also be that of what comes before it (runtime/exec/cuda_heads.c). */
static int32_t first_phase(const bucket *b, const bstep *st)
{
    const int32_t phase = b->items.at[st->item].phase, id = st->s.in[0].id;
    const bool joins = b->lo->t->be->launches && b->lo->n_tok > 1 && phase >= 2 &&
                       bucket_op(b, &st->s) == KOP_quantize && st->s.in[0].space == SPACE_ARENA &&
                       b->values.at[id].step >= 0 &&
                       bucket_op(b, &b->steps.at[b->values.at[id].step].s) == KOP_attend;
    return joins ? phase - 2 : phase;
}

static void find_lifetimes(bucket *b)
{
    const int32_t *last_phase = find_last_phases(b);
    int32_t *last_of = ARENA_ARRAY(b->a, int32_t, b->items.n);
    const int32_t *at = number_steps(b, last_of);
    for (size_t i = 0; i < b->values.n; i++) {
        bvalue *v = &b->values.at[i];
        if (v->step < 0)
            continue;
        v->begin = v->space == SPACE_ARENA ? first_phase(b, &b->steps.at[v->step]) : at[v->step];
        v->end = v->output ? INT32_MAX : v->begin;
    }
    for (size_t i = 0; i < b->steps.n; i++) {
        const bstep *st = &b->steps.at[i];
        for (int k = 0; k < st->s.n_in; k++) {
            if (st->s.in[k].space != SPACE_ARENA)
                continue;
            bvalue *v = &b->values.at[st->s.in[k].id];
            const bitem *it = &b->items.at[st->item];
            int32_t when = v->space == SPACE_ARENA
                               ? (it->per_thread ? last_phase[it->phase] : it->phase)
                           : v->space == SPACE_LOCAL ? last_of[st->item] /* claims repeat a chain */
                                                     : at[i];
            v->end = when > v->end ? when : v->end;
        }
    }
}

/* ---- in place ---- */

/* Whether operand k of map s is read where its result is written, and nobody reads it after or beside. */
static bool ends_here(const bucket *b, int step, int k, const int32_t *n_reader)
{
    const bstep *st = &b->steps.at[step];
    const bvalue *in = &b->values.at[st->s.in[k].id], *out = &b->values.at[st->s.out[0].id];
    int64_t stride = 1;
    for (int axis = st->s.choice.map.axes; axis > 0; axis--) {
        if (st->s.stride[k][axis] != stride && st->s.size.map.dim[axis - 1] != 1)
            return false;
        stride *= st->s.size.map.dim[axis - 1];
    }
    return in->space == SPACE_ARENA && out->space == SPACE_ARENA && in->step >= 0 && !in->output &&
           in->rows == out->rows && in->row_bytes == out->row_bytes &&
           st->s.stride[k][0] * 4 == in->row_bytes && in->end == b->items.at[st->item].phase &&
           in->begin < in->end && n_reader[st->s.in[k].id] == 1;
}

/* Let a map write over an operand that ends with it: the two become one value for placing. */
static void share_places(bucket *b, int32_t *same)
{
    int32_t *n_reader = ARENA_ARRAY(b->a, int32_t, b->values.n); /* in its last phase */
    for (size_t i = 0; i < b->steps.n; i++)
        for (int k = 0; k < b->steps.at[i].s.n_in; k++)
            if (b->steps.at[i].s.in[k].space == SPACE_ARENA) {
                int id = b->steps.at[i].s.in[k].id;
                n_reader[id] += b->items.at[b->steps.at[i].item].phase == b->values.at[id].end;
            }
    for (size_t i = 0; i < b->values.n; i++)
        same[i] = (int32_t)i;
    for (size_t i = 0; i < b->steps.n; i++) {
        const plan_step *s = &b->steps.at[i].s;
        if (bucket_op(b, s) != KOP_map || s->n_out != 1)
            continue;
        for (int k = 0; k < s->n_in; k++) {
            if (s->in[k].space != SPACE_ARENA || !ends_here(b, (int)i, k, n_reader))
                continue;
            int32_t keep = same[s->in[k].id];
            same[s->out[0].id] = keep;
            b->values.at[keep].end = b->values.at[s->out[0].id].end;
            break;
        }
    }
}

/* ---- offsets ---- */

typedef struct {
    int32_t id, begin, end;
    int64_t bytes, offset;
} block;

static int by_size(const void *x, const void *y)
{
    const block *a = x, *b = y;
    if (a->bytes != b->bytes)
        return a->bytes < b->bytes ? 1 : -1;
    return a->begin != b->begin ? (a->begin > b->begin) - (a->begin < b->begin)
                                : (a->id > b->id) - (a->id < b->id);
}

static int by_begin(const void *x, const void *y)
{
    const block *a = x, *b = y;
    return a->begin != b->begin ? (a->begin > b->begin) - (a->begin < b->begin) : by_size(x, y);
}

static int by_length(const void *x, const void *y)
{
    const block *a = x, *b = y;
    int32_t m = a->end - a->begin, n = b->end - b->begin;
    return m != n ? (m < n) - (m > n) : by_size(x, y);
}

static int by_offset(const void *x, const void *y)
{
    const block *const *a = x, *const *b = y;
    return ((*a)->offset > (*b)->offset) - ((*a)->offset < (*b)->offset);
}

/* First fit: each block at the lowest offset that no block placed before it, and needed at the same time,
 * takes. Returns the bytes in all, or -1 if there are too many. */
static int64_t fit(block *blocks, size_t n, block **beside)
{
    int64_t total = 0;
    for (size_t i = 0; i < n; i++) {
        block *x = &blocks[i];
        size_t m = 0;
        for (size_t k = 0; k < i; k++)
            if (blocks[k].begin <= x->end && x->begin <= blocks[k].end)
                beside[m++] = &blocks[k];
        qsort(beside, m, sizeof *beside, by_offset);
        int64_t at = 0;
        for (size_t k = 0; k < m && beside[k]->offset < at + x->bytes; k++)
            if (beside[k]->offset + beside[k]->bytes > at)
                at = beside[k]->offset + beside[k]->bytes;
        x->offset = at;
        if (at > INT64_MAX / 2 - x->bytes)
            return -1;
        total = at + x->bytes > total ? at + x->bytes : total;
    }
    return total;
}

/* Offsets for the values of a space (TILE goes with LOCAL) whose place is their own. */
static int64_t place_space(bucket *b, bool shared, const int32_t *same)
{
    static int (*const orders[])(const void *, const void *) = {by_size, by_begin, by_length};
    block *blocks = ARENA_ARRAY(b->a, block, b->values.n),
          **beside = ARENA_ARRAY(b->a, block *, b->values.n);
    size_t n = 0;
    for (size_t i = 0; i < b->values.n; i++) {
        const bvalue *v = &b->values.at[i];
        if (v->step < 0 || (v->space == SPACE_ARENA) != shared || same[i] != (int32_t)i)
            continue;
        int64_t bytes = v->pitch * v->rows;
        blocks[n++] = (block){.id = (int32_t)i,
                              .begin = v->begin,
                              .end = v->end,
                              .bytes = i64_ceil_div(bytes, PLAN_ALIGN) * PLAN_ALIGN};
    }
    int64_t best = -1;
    for (size_t o = 0; o < sizeof orders / sizeof orders[0]; o++) {
        qsort(blocks, n, sizeof *blocks, orders[o]);
        int64_t total = fit(blocks, n, beside);
        if (total < 0 || (best >= 0 && total >= best))
            continue;
        best = total;
        for (size_t i = 0; i < n; i++)
            b->values.at[blocks[i].id].offset = blocks[i].offset;
    }
    return best;
}

/* ---- the finished bucket ---- */

/* Behind what other parts of the model give. */
static void resolve_value(const bucket *b, const int32_t *same, plan_operand *o, int64_t *pitch)
{
    const bvalue *v = &b->values.at[o->id], *place = &b->values.at[same[o->id]];
    int64_t inputs = v->space == SPACE_ARENA ? (int64_t)b->lo->p->input_bytes : 0;
    *o = (plan_operand){.space = v->space, .type = o->type, .offset = inputs + place->offset};
    if (v->space == SPACE_TILE)
        *pitch = v->pitch;
}

static void resolve(const bucket *b, const int32_t *same, plan_operand *o, int64_t *pitch)
{
    if (o->space == SPACE_IO && o->id == IO_COUNT) /* given by another part of the model */
        *o = (plan_operand){.space = SPACE_ARENA, .type = o->type, .offset = o->offset};
    else if (o->space == SPACE_ARENA)
        resolve_value(b, same, o, pitch);
}
static plan_step finish_step(const bucket *b, const int32_t *same, plan_step s)
{
    bool is_map = bucket_op(b, &s) == KOP_map;
    for (int i = 0; i < s.n_in; i++) {
        resolve(b, same, &s.in[i], &s.pitch[i]);
        if (is_map && s.in[i].space == SPACE_TILE)
            s.stride[i][0] = s.pitch[i] / 4;
    }
    for (int i = 0; i < s.n_out; i++)
        resolve(b, same, &s.out[i], &s.out_pitch[i]);
    return s;
}

/* The edges between items, by their places in the plan. */
static void place_edges(const bucket *b, plan_bucket *out)
{
    int32_t *at = ARENA_ARRAY(b->a, int32_t, b->items.n);
    plan_edge *edges = ARENA_ARRAY(b->lo->a, plan_edge, b->edges.n);
    for (size_t i = 0; i < b->items.n; i++)
        at[b->order[i]] = (int32_t)i;
    for (size_t i = 0; i < b->edges.n; i++)
        edges[i] = (plan_edge){at[b->edges.at[i].from], at[b->edges.at[i].to]};
    out->edge = edges;
    out->n_edge = (int32_t)b->edges.n;
}

weft_status bucket_place(bucket *b, plan_bucket *out)
{
    lower *lo = b->lo;
    choose_spaces(b);
    size_tiles(b);
    find_lifetimes(b);
    int32_t *same = ARENA_ARRAY(b->a, int32_t, b->values.n);
    share_places(b, same);
    int64_t shared = place_space(b, true, same), own = place_space(b, false, same);
    if (shared < 0 || own < 0)
        return weft_fail(lo->dg, W0902, WEFT_NOWHERE,
                         "activations for %" PRId64 " rows do not fit into memory", lo->n_tok);

    plan_step *steps = ARENA_ARRAY(lo->a, plan_step, b->steps.n);
    plan_item *items = ARENA_ARRAY(lo->a, plan_item, b->items.n);
    *out = (plan_bucket){.n_tok_max = lo->n_tok,
                         .n_item = (int32_t)b->items.n,
                         .n_phase = b->n_phase,
                         .step = steps,
                         .item = items,
                         .arena_bytes = lo->p->input_bytes + (size_t)shared,
                         .local_bytes = (size_t)own};
    for (size_t i = 0; i < b->items.n; i++) {
        const bitem *it = &b->items.at[b->order[i]];
        items[i] = (plan_item){.first = out->n_step,
                               .n_step = it->n_step,
                               .phase = it->phase,
                               .per_thread = it->per_thread,
                               .grain = it->grain};
        for (int k = 0; k < it->n_step; k++) {
            plan_step *s = &steps[out->n_step++];
            *s = finish_step(b, same, b->steps.at[it->step[k]].s);
            out->scratch_bytes = size_max(out->scratch_bytes, lower_scratch(lo, s));
        }
    }
    place_edges(b, out);
    size_t n = 0;
    plan_operand *places = ARENA_ARRAY(lo->a, plan_operand, lo->outputs.n);
    for (size_t i = 0; i < lo->g->outputs.n; i++) {
        if (!lower_wants(lo->t, &lo->g->outputs.at[i]))
            continue;
        places[n] = lo->value[lo->g->outputs.at[i].value];
        int64_t pitch;
        resolve(b, same, &places[n++], &pitch);
    }
    out->output = places;
    return WEFT_OK;
}
