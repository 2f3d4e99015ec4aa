/* lower_ref.c - one step per node, in the order of the graph.
 *
 * What no wanted output reads is left out, but every append stays: a later call may read the rows.
 * to_heads and from_heads move nothing, so their results are other names for their operands. */
#include "compiler/lower_ref.h"

#include "compiler/lower_impl.h"
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

static bool is_wanted(const plan_limits *limits, const goutput *o)
{
    for (int i = 0; i < limits->n_output; i++)
        if (name_fits(limits->outputs[i], o))
            return true;
    return limits->outputs == NULL;
}

/* Each wanted name must mean an output. */
static weft_status check_wanted(lower *lo)
{
    for (int i = 0; i < lo->limits->n_output; i++) {
        const char *want = lo->limits->outputs[i];
        bool found = false;
        for (size_t o = 0; o < lo->g->outputs.n && !found; o++)
            found = name_fits(want, &lo->g->outputs.at[o]);
        if (found)
            continue;
        strbuf names = {0};
        for (size_t o = 0; o < lo->g->outputs.n; o++)
            if (o == 0 || !str_eq(lo->g->outputs.at[o].name, lo->g->outputs.at[o - 1].name))
                strbuf_add(&names, "%s" STR_FMT, names.n ? ", " : "",
                           STR_ARG(lo->g->outputs.at[o].name));
        weft_status st =
            weft_fail(lo->dg, W0201, WEFT_NOWHERE, "the model has no output '%s'; it has %s", want,
                      names.n ? names.p : "none");
        strbuf_free(&names);
        return st;
    }
    return WEFT_OK;
}

static void mark_ref(lower *lo, gref r)
{
    if (r.kind == REF_VALUE)
        lo->live[r.id] = true;
}

static bool node_is_live(const lower *lo, const gnode *n)
{
    if (n->op == OP_append)
        return true;
    for (int i = 0; i < n->n_out; i++)
        if (lo->live[n->first + i])
            return true;
    return false;
}

static void mark_live(lower *lo)
{
    for (size_t o = 0; o < lo->g->outputs.n; o++)
        if (is_wanted(lo->limits, &lo->g->outputs.at[o]))
            lo->live[lo->g->outputs.at[o].value] = true;
    for (size_t i = lo->g->nodes.n; i-- > 0;) {
        const gnode *n = &lo->g->nodes.at[i];
        if (!node_is_live(lo, n))
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
                   .phase = (int32_t)lo->steps.n,
                   .loc = n->loc,
                   .n_out = n_out};
    WEFT_ASSERT(n_out <= K_OUT_MAX);
    lo->part = part;
    for (int i = 0; i < n_out; i++) {
        WEFT_TRY(place_value(lo, n, n->first + part + i));
        s.out[i] = lo->value[n->first + part + i];
    }
    WEFT_TRY(lower_step(lo, n, &s));
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
    if (n->op == OP_append)
        return add_step(lo, n, 0, 0);
    if (n->op != OP_split)
        return add_step(lo, n, 0, n->n_out);
    for (int part = 0; part < n->n_out; part++)
        if (lo->live[n->first + part])
            WEFT_TRY(add_step(lo, n, part, 1));
    return WEFT_OK;
}

static weft_status add_outputs(lower *lo)
{
    for (size_t i = 0; i < lo->g->outputs.n; i++) {
        const goutput *o = &lo->g->outputs.at[i];
        if (!is_wanted(lo->limits, o))
            continue;
        const gtype *t = &lo->g->values.at[o->value].type;
        if (t->cell >= 0)
            return weft_fail(lo->dg, W0207, o->loc, "output " STR_FMT " is a state cell",
                             STR_ARG(o->name));
        plan_output out = {.name = arena_str(lo->a, o->name).p,
                           .index = o->index,
                           .rows = lower_rows_of(t),
                           .from = lo->value[o->value],
                           .width = t->rank ? lower_span(t, 1, t->rank) : 1,
                           .n_row = lower_rows_max(lo, t)};
        VEC_PUSH(&lo->outputs, out);
    }
    return WEFT_OK;
}

/* ---- the whole ---- */

static weft_status make(lower *lo)
{
    WEFT_TRY(check_wanted(lo));
    mark_live(lo);
    for (size_t i = 0; i < lo->g->nodes.n; i++)
        if (node_is_live(lo, &lo->g->nodes.at[i]))
            WEFT_TRY(lower_node(lo, &lo->g->nodes.at[i]));
    return add_outputs(lo);
}

#define KEEP(lo, vec)                                                                              \
    memcpy(arena_alloc_array((lo)->a, (lo)->vec.n, sizeof *(lo)->vec.at),                          \
           (lo)->vec.n ? (const void *)(lo)->vec.at : "", (lo)->vec.n * sizeof *(lo)->vec.at)

static void finish(lower *lo)
{
    plan *p = lo->p;
    p->n_step = p->n_phase = (int32_t)lo->steps.n;
    p->n_weight = (int32_t)lo->weights.n;
    p->n_cell = (int32_t)lo->cells.n;
    p->n_output = (int32_t)lo->outputs.n;
    p->step = KEEP(lo, steps);
    p->weight = KEEP(lo, weights);
    p->cell = KEEP(lo, cells);
    p->output = KEEP(lo, outputs);
    p->consts = KEEP(lo, consts);
    p->const_bytes = lo->consts.n * sizeof(float);
}

static weft_status check_limits(weft_diag *dg, const plan_limits *l)
{
    if (l->n_tok_max < 1 || l->n_tok_max > INT32_MAX || l->n_out_max < 0 ||
        l->n_out_max > l->n_tok_max || l->n_seq_max < 0 || l->n_seq_max > INT32_MAX)
        return weft_fail(dg, W1406, WEFT_NOWHERE,
                         "a plan takes 1 to %d rows; %" PRId64 " rows, %" PRId64
                         " of them as output, of %" PRId64 " sequences were asked for",
                         INT32_MAX, l->n_tok_max, l->n_out_max, l->n_seq_max);
    return WEFT_OK;
}

weft_status plan_make_ref(weft_diag *dg, const graph *g, const plan_limits *limits, arena *a,
                          plan **out_plan)
{
    WEFT_TRY(check_limits(dg, limits));
    arena *scratch = arena_create();
    plan *p = ARENA_NEW(a, plan);
    *p = (plan){.model = arena_str(a, g->model).p,
                .entry = arena_str(a, g->entry).p,
                .n_tok_max = limits->n_tok_max,
                .n_out_max = limits->n_out_max ? limits->n_out_max : limits->n_tok_max,
                .n_seq_max = limits->n_seq_max ? limits->n_seq_max : limits->n_tok_max};
    lower lo = {.dg = dg,
                .g = g,
                .limits = limits,
                .a = a,
                .p = p,
                .live = ARENA_ARRAY(scratch, bool, g->values.n),
                .value = ARENA_ARRAY(scratch, plan_operand, g->values.n),
                .const_at = ARENA_ARRAY(scratch, int64_t, g->consts.n),
                .cell_of = ARENA_ARRAY(scratch, int32_t, g->cells.n),
                .weight_of = ARENA_ARRAY(scratch, int32_t, g->weights.n * FORM_COUNT)};
    for (size_t i = 0; i < g->consts.n; i++)
        lo.const_at[i] = -1;
    for (size_t i = 0; i < g->cells.n; i++)
        lo.cell_of[i] = -1;
    for (size_t i = 0; i < g->weights.n * FORM_COUNT; i++)
        lo.weight_of[i] = -1;

    weft_status status = make(&lo);
    if (status == WEFT_OK) {
        finish(&lo);
        *out_plan = p;
    }
    VEC_FREE(&lo.steps);
    VEC_FREE(&lo.weights);
    VEC_FREE(&lo.cells);
    VEC_FREE(&lo.outputs);
    VEC_FREE(&lo.consts);
    arena_destroy(scratch);
    return status;
}
