/* lower_ref.c - one step per node, in the order of the graph.
 *
 * What no wanted output reads is left out, but every append stays: a later call may read the rows.
 * to_heads and from_heads move nothing, so their results are other names for their operands. */
#include "compiler/lower_impl.h"
#include "compiler/plan_cells.h"

#include "runtime/base/intmath.h"
#include <inttypes.h>

/* ---- what is wanted ---- */

/* "logits", "resid" for every index of it, "resid.3" for one. */
static bool name_fits(const char *want, const goutput *o)
{
    str w = str_of(want);
    if (str_eq(w, o->name))
        return true;
    if (o->index < 0 || !str_starts(w, o->name))
        return false;
    char index[16];
    snprintf(index, sizeof index, ".%d", o->index);
    return str_eqz((str){w.p + o->name.n, w.n - o->name.n}, index);
}

bool lower_wants(const target *t, const goutput *o)
{
    for (int i = 0; i < t->n_output; i++)
        if (name_fits(t->outputs[i], o))
            return true;
    return t->outputs == NULL;
}

/* Every name once, one that has indices with the first and the last of them: "resid.0 .. resid.5, logits".
 * The nearest to `want` is kept in *best. */
static void list_outputs(const graph *g, str want, strbuf *out, str_guess *best)
{
    for (size_t i = 0; i < g->outputs.n; i++) {
        str name = g->outputs.at[i].name;
        int first = g->outputs.at[i].index, last = first;
        bool before = false;
        for (size_t k = 0; k < i && !before; k++)
            before = str_eq(g->outputs.at[k].name, name);
        if (before)
            continue;
        for (size_t k = i + 1; k < g->outputs.n; k++) {
            if (!str_eq(g->outputs.at[k].name, name))
                continue;
            int index = g->outputs.at[k].index;
            first = index < first ? index : first;
            last = index > last ? index : last;
        }
        str_guess_try(best, want, name);
        strbuf_add(out, "%s" STR_FMT, out->n ? ", " : "", STR_ARG(name));
        if (first >= 0)
            strbuf_add(out, ".%d", first);
        if (last > first)
            strbuf_add(out, " .. " STR_FMT ".%d", STR_ARG(name), last);
    }
}

/* Each wanted name must mean an output. */
static weft_status check_wanted(weft_diag *dg, const graph *g, const target *t)
{
    for (int i = 0; i < t->n_output; i++) {
        bool found = false;
        for (size_t o = 0; o < g->outputs.n && !found; o++)
            found = name_fits(t->outputs[i], &g->outputs.at[o]);
        if (found)
            continue;
        strbuf names = {0};
        str_guess best = {0};
        list_outputs(g, str_of(t->outputs[i]), &names, &best);
        weft_status st =
            weft_fail(dg, W0201, WEFT_NOWHERE, "the model has no output '%s'; it has %s",
                      t->outputs[i], names.n ? names.p : "none");
        weft_suggest(dg, &best);
        strbuf_free(&names);
        return st;
    }
    return WEFT_OK;
}

weft_status lower_check(weft_diag *dg, const graph *g, const target *t)
{
    if (t->n_tok_max < 1 || t->n_tok_max > INT32_MAX || t->n_out_max < 0 ||
        t->n_out_max > t->n_tok_max || t->n_seq < 0 || t->n_seq > INT32_MAX)
        return weft_fail(dg, W1406, WEFT_NOWHERE,
                         "a plan takes 1 to %d rows; %" PRId64 " rows, %" PRId64
                         " of them as output, of %" PRId64 " sequences were asked for",
                         INT32_MAX, t->n_tok_max, t->n_out_max, t->n_seq);
    if (t->lora_slots < 0 || t->lora_slots > LORA_SLOTS_MAX ||
        (t->lora_slots > 0 && (t->lora_rank < 1 || t->lora_rank > LORA_RANK_MAX)))
        return weft_fail(dg, W1406, WEFT_NOWHERE,
                         "%" PRId64 " adapters of rank %" PRId64
                         " were asked for; up to %d of rank 1 to %d are possible",
                         t->lora_slots, t->lora_rank, LORA_SLOTS_MAX, LORA_RANK_MAX);
    return check_wanted(dg, g, t);
}

static void mark_ref(lower *lo, gref r)
{
    if (r.kind == REF_VALUE)
        lo->live[r.id] = true;
}

static int32_t cell_tiers(const lower *lo, const gnode *n)
{
    plan_cell c = plan_cell_of(&lo->g->cells.at[graph_type(lo->g, n->in[0])->cell]);
    return plan_cell_tiers(&c, &lo->tiers).n_tier;
}

bool lower_node_is_live(const lower *lo, const gnode *n)
{
    if (n->op == OP_append)
        return true;
    if (n->op == OP_convert) /* a graph that was made for more tiers than the plan is */
        return lower_attr_int(n, "tier", 0) < cell_tiers(lo, n);
    for (int i = 0; i < n->n_out; i++)
        if (lo->live[n->first + i])
            return true;
    return false;
}

void lower_mark_live(lower *lo)
{
    for (size_t o = 0; o < lo->g->outputs.n; o++)
        if (lower_wants(lo->t, &lo->g->outputs.at[o]))
            lo->live[lo->g->outputs.at[o].value] = true;
    for (size_t i = lo->g->nodes.n; i-- > 0;) {
        const gnode *n = &lo->g->nodes.at[i];
        if (!lower_node_is_live(lo, n))
            continue;
        for (int k = 0; k < n->n_in; k++)
            mark_ref(lo, n->in[k]);
        for (int k = 0; k < OP_ATTRS_MAX; k++)
            if (n->attr[k].kind == GATTR_REF)
                mark_ref(lo, n->attr[k].ref);
    }
}

/* ---- values and steps ---- */

/* Give value v its place in the arena. */
static weft_status place_value(lower *lo, const gnode *n, int v)
{
    const gtype *t = &lo->g->values.at[v].type;
    size_t bytes = 4, rows = (size_t)lower_rows_max(lo, t), end;
    bool fits = size_mul(bytes, rows, &bytes);
    for (int i = 1; i < t->rank && fits; i++)
        fits = t->dim[i] >= 1 && t->dim[i] <= DIM_MAX && size_mul(bytes, (size_t)t->dim[i], &bytes);
    if (!fits || rows < 1 || rows > DIM_MAX || !size_add(lo->p->arena_bytes, bytes, &end) ||
        !size_align_up(end, PLAN_ALIGN, &end) || end > INT64_MAX / 4)
        return weft_fail(lo->dg, W0902, n->loc,
                         "%s: %" PRId64 " rows of its result do not fit into memory",
                         op_row_of(n->op)->name, lower_rows_max(lo, t));
    lo->value[v] = (plan_operand){.space = SPACE_ARENA,
                                  .type = t->ids ? DT_I32 : DT_F32,
                                  .offset = (int64_t)lo->p->arena_bytes};
    lo->p->arena_bytes = end;
    return WEFT_OK;
}

/* A step that makes results [first, first + n_out) of node n, beginning with `part`. */
static weft_status add_step(lower *lo, const gnode *n, int part, int n_out)
{
    plan_step s = {.cell = -1,
                   .per_row = 1,
                   .layer = n->layer,
                   .node = (int32_t)(n - lo->g->nodes.at),
                   .value = {-1, -1},
                   .loc = n->loc,
                   .n_out = n_out};
    WEFT_ASSERT(n_out <= K_OUT_MAX);
    lo->part = part;
    for (int i = 0; i < n_out; i++) {
        WEFT_TRY(place_value(lo, n, n->first + part + i));
        s.out[i] = lo->value[n->first + part + i];
        s.value[i] = n->first + part + i;
    }
    WEFT_TRY(lower_step(lo, n, &s));
    for (int i = 0; i < s.n_in; i++)
        if (s.in[i].space == SPACE_IO && s.in[i].id == IO_COUNT)
            s.in[i] = (plan_operand){
                .space = SPACE_ARENA, .type = s.in[i].type, .offset = s.in[i].offset};
    VEC_PUSH(&lo->steps, s);
    return WEFT_OK;
}

/* Do rows of x, whose sizes were checked, and of r have the same number of elements? */
static bool spans_agree(const gtype *x, const gtype *r)
{
    int64_t n = 1;
    for (int i = 1; i < r->rank; i++)
        if (r->dim[i] < 1 || r->dim[i] > DIM_MAX || !i64_mul(n, r->dim[i], &n))
            return false;
    return n == lower_span(x, 1, x->rank);
}

static weft_status lower_node(lower *lo, const gnode *n)
{
    if (n->op == OP_to_heads || n->op == OP_from_heads) {
        const gtype *x = graph_type(lo->g, n->in[0]), *r = &lo->g->values.at[n->first].type;
        if (n->in[0].kind != REF_VALUE || x->rank < 1 || r->rank < 1 || x->dim[0] != r->dim[0] ||
            !spans_agree(x, r))
            return weft_fail(lo->dg, W0301, n->loc, "%s: its result is not its operand regrouped",
                             op_row_of(n->op)->name);
        lo->value[n->first] = lo->value[n->in[0].id];
        return WEFT_OK;
    }
    if (n->op == OP_append || n->op == OP_convert)
        return add_step(lo, n, 0, 0);
    if (n->op != OP_split)
        return add_step(lo, n, 0, n->n_out);
    for (int part = 0; part < n->n_out; part++)
        if (lo->live[n->first + part])
            WEFT_TRY(add_step(lo, n, part, 1));
    return WEFT_OK;
}

weft_status lower_outputs(lower *lo)
{
    for (size_t i = 0; i < lo->g->outputs.n; i++) {
        const goutput *o = &lo->g->outputs.at[i];
        if (!lower_wants(lo->t, o))
            continue;
        const gtype *t = &lo->g->values.at[o->value].type;
        if (t->cell >= 0)
            return weft_fail(lo->dg, W0207, o->loc, "output " STR_FMT " is a state cell",
                             STR_ARG(o->name));
        plan_output out = {.name = arena_str(lo->a, o->name).p,
                           .index = o->index,
                           .rows = lower_rows_of(t),
                           .width = t->rank ? lower_span(t, 1, t->rank) : 1,
                           .n_row = lower_rows_max(lo, t)};
        VEC_PUSH(&lo->outputs, out);
    }
    return WEFT_OK;
}

/* ---- the whole ---- */

void lower_init(lower *lo, weft_diag *dg, const graph *g, const target *t, arena *a, arena *scratch)
{
    plan *p = ARENA_NEW(a, plan);
    *p = (plan){.model = arena_str(a, g->model).p,
                .entry = arena_str(a, g->entry).p,
                .backend = t->be->name,
                .level = t->be->level,
                .arch = t->be->arch,
                .kv = t->kv,
                .tiers = t->tiers,
                .deterministic = t->deterministic,
                .lora_slots = t->lora_slots,
                .lora_rank = t->lora_slots > 0 ? t->lora_rank : 1,
                .n_ctx = t->be->fuses ? t->n_ctx : 0,
                .n_tok_max = t->n_tok_max,
                .n_out_max = t->n_out_max ? t->n_out_max : t->n_tok_max,
                .n_seq_max = t->n_seq ? t->n_seq : t->n_tok_max};
    p->input_bytes = (size_t)lower_input_offset(g, p, (int)g->inputs.n);
    *lo = (lower){.dg = dg,
                  .g = g,
                  .t = t,
                  .a = a,
                  .p = p,
                  .tiers = plan_tiers(&t->tiers, t->kv),
                  .n_tok = p->n_tok_max,
                  .n_out = p->n_out_max,
                  .n_seq = p->n_seq_max,
                  .live = ARENA_ARRAY(scratch, bool, g->values.n),
                  .value = ARENA_ARRAY(scratch, plan_operand, g->values.n),
                  .const_at = ARENA_ARRAY(scratch, int64_t, g->consts.n),
                  .cell_of = ARENA_ARRAY(scratch, int32_t, g->cells.n),
                  .weight_of = ARENA_ARRAY(scratch, int32_t, g->weights.n * READ_COUNT)};
    for (size_t i = 0; i < g->consts.n; i++)
        lo->const_at[i] = -1;
    for (size_t i = 0; i < g->cells.n; i++)
        lo->cell_of[i] = -1;
    for (size_t i = 0; i < g->weights.n * READ_COUNT; i++)
        lo->weight_of[i] = -1;
}

void lower_deinit(lower *lo)
{
    VEC_FREE(&lo->kernels);
    VEC_FREE(&lo->steps);
    VEC_FREE(&lo->weights);
    VEC_FREE(&lo->cells);
    VEC_FREE(&lo->outputs);
    VEC_FREE(&lo->sites);
    VEC_FREE(&lo->places);
    VEC_FREE(&lo->code);
    VEC_FREE(&lo->consts);
}

void lower_finish(lower *lo)
{
    plan *p = lo->p;
    for (int32_t i = 0; i < p->n_bucket; i++) {
        p->arena_bytes = size_max(p->arena_bytes, p->bucket[i].arena_bytes);
        p->local_bytes = size_max(p->local_bytes, p->bucket[i].local_bytes);
        p->scratch_bytes = size_max(p->scratch_bytes, p->bucket[i].scratch_bytes);
    }
    p->n_kernel = (int32_t)lo->kernels.n;
    p->n_weight = (int32_t)lo->weights.n;
    p->n_cell = (int32_t)lo->cells.n;
    p->n_output = (int32_t)lo->outputs.n;
    p->n_site = (int32_t)lo->sites.n;
    p->n_code = (int32_t)lo->code.n;
    p->kernel = LOWER_KEEP(lo, kernels);
    p->weight = LOWER_KEEP(lo, weights);
    p->cell = LOWER_KEEP(lo, cells);
    p->output = LOWER_KEEP(lo, outputs);
    p->site = LOWER_KEEP(lo, sites);
    p->code = LOWER_KEEP(lo, code);
    p->consts = LOWER_KEEP(lo, consts);
    p->const_bytes = lo->consts.n * sizeof(float);
}

/* One bucket, every step an item and a phase of its own, that waits for the one before. */
weft_status lower_reference(lower *lo)
{
    plan *p = lo->p;
    p->arena_bytes = p->input_bytes; /* values stand behind what other parts of the model give */
    for (size_t i = 0; i < lo->g->nodes.n; i++)
        if (lower_node_is_live(lo, &lo->g->nodes.at[i]))
            WEFT_TRY(lower_node(lo, &lo->g->nodes.at[i]));
    for (size_t i = 0; i < lo->g->outputs.n; i++)
        if (lower_wants(lo->t, &lo->g->outputs.at[i]))
            VEC_PUSH(&lo->places, lo->value[lo->g->outputs.at[i].value]);
    plan_bucket *b = ARENA_NEW(lo->a, plan_bucket);
    plan_item *items = ARENA_ARRAY(lo->a, plan_item, lo->steps.n);
    plan_edge *edges = ARENA_ARRAY(lo->a, plan_edge, lo->steps.n);
    int32_t n = (int32_t)lo->steps.n;
    *b = (plan_bucket){.n_tok_max = p->n_tok_max,
                       .n_step = n,
                       .n_item = n,
                       .n_phase = n,
                       .n_edge = n > 0 ? n - 1 : 0,
                       .step = LOWER_KEEP(lo, steps),
                       .item = items,
                       .edge = edges,
                       .output = LOWER_KEEP(lo, places),
                       .arena_bytes = p->arena_bytes};
    for (int32_t i = 0; i < n; i++) {
        items[i] = (plan_item){.first = i, .n_step = 1, .phase = i};
        if (i > 0)
            edges[i - 1] = (plan_edge){i - 1, i};
        b->scratch_bytes = size_max(b->scratch_bytes, lower_scratch(lo, &b->step[i]));
    }
    p->bucket = b;
    p->n_bucket = 1;
    return WEFT_OK;
}
