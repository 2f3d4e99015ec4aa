/* lower_map.c - element-wise nodes into one step of instructions (kernels/map.def).
 *
 * Operands are loaded when first used and registers are free again after the last use, so that a map
 * needs about as many as it has values alive at once. */
#include "compiler/bucket_impl.h"
#include "compiler/graph_impl.h"

#include <math.h>

typedef struct {
    gref ref;
    int n_use; /* left */
    int reg;   /* -1: not loaded */
    int input; /* of the step; -1: a number, or a value of the map itself */
} operand;

typedef struct {
    lower *lo;
    plan_step *s;
    const gtype *r; /* of the results */
    int lead;       /* leading axes of r that count as rows */
    operand op[64];
    int n_op;
    uint32_t busy; /* registers */
    size_t first;  /* instruction */
} mapper;

static const uint8_t map_of[OP_COUNT] = {
    [OP_add] = MAP_add,       [OP_sub] = MAP_sub,           [OP_mul] = MAP_mul,
    [OP_div] = MAP_div,       [OP_max] = MAP_max,           [OP_min] = MAP_min,
    [OP_select] = MAP_select, [OP_neg] = MAP_neg,           [OP_silu] = MAP_silu,
    [OP_gelu] = MAP_gelu_erf, [OP_tanh] = MAP_tanh,         [OP_sigmoid] = MAP_sigmoid,
    [OP_relu] = MAP_relu,     [OP_softplus] = MAP_softplus, [OP_exp] = MAP_exp,
    [OP_sqrt] = MAP_sqrt,     [OP_clamp] = MAP_clamp,
};

static operand *find(mapper *m, gref r)
{
    for (int i = 0; i < m->n_op; i++)
        if (graph_ref_equal(m->op[i].ref, r))
            return &m->op[i];
    return NULL;
}

static operand *add(mapper *m, gref r)
{
    if (m->n_op == (int)(sizeof m->op / sizeof m->op[0]))
        return NULL;
    m->op[m->n_op] = (operand){.ref = r, .reg = -1, .input = -1};
    return &m->op[m->n_op++];
}

static int take_register(mapper *m)
{
    for (int i = 0; i < MAP_REGS_MAX; i++)
        if (!(m->busy & 1u << i)) {
            m->busy |= 1u << i;
            return i;
        }
    return -1;
}

static void emit(mapper *m, kinstr c)
{
    VEC_PUSH(&m->lo->code, c);
}

/* The register that holds o, loaded now if it is not there. */
static int load(mapper *m, operand *o)
{
    if (o->reg >= 0)
        return o->reg;
    o->reg = take_register(m);
    if (o->reg < 0)
        return -1;
    if (o->ref.kind == REF_NUMBER)
        emit(m, (kinstr){.op = MAP_number, .to = (uint8_t)o->reg, .f = {(float)o->ref.number}});
    else
        emit(m, (kinstr){.op = MAP_load, .to = (uint8_t)o->reg, .at = {(uint8_t)o->input}});
    return o->reg;
}

/* A result lies in its last operand's register or a free one. */
static bool compute(mapper *m, const gnode *n)
{
    kinstr c = {.op = map_of[n->op]};
    for (int i = 0; i < n->n_in; i++) {
        int reg = load(m, find(m, n->in[i]));
        if (reg < 0)
            return false;
        c.at[i] = (uint8_t)reg;
    }
    for (int i = 0; i < n->n_in; i++) {
        operand *o = find(m, n->in[i]);
        if (--o->n_use == 0)
            m->busy &= ~(1u << o->reg);
    }
    if (n->op == OP_gelu)
        c.op = (uint8_t)(MAP_gelu_erf + lower_attr_word(n, "form", 0));
    if (n->op == OP_clamp) {
        c.f[0] = (float)lower_attr_float(n, "lo", -INFINITY);
        c.f[1] = (float)lower_attr_float(n, "hi", INFINITY);
    }
    operand *o = find(m, (gref){.kind = REF_VALUE, .id = n->first});
    o->reg = take_register(m);
    if (o->reg < 0)
        return false;
    c.to = (uint8_t)o->reg;
    emit(m, c);
    return true;
}

/* ---- operands ---- */

/* Count the uses, and number the inputs that come from outside. */
static bool collect(mapper *m, const gnode *const *nodes, int n, int *out_n_in)
{
    int n_in = 0;
    for (int i = 0; i < n; i++) {
        for (int k = 0; k < nodes[i]->n_in; k++) {
            operand *o = find(m, nodes[i]->in[k]);
            if (!o) {
                o = add(m, nodes[i]->in[k]);
                if (!o)
                    return false;
                if (o->ref.kind != REF_NUMBER)
                    o->input = n_in++;
            }
            o->n_use++;
        }
        if (!add(m, (gref){.kind = REF_VALUE, .id = nodes[i]->first}))
            return false;
    }
    *out_n_in = n_in;
    return n_in <= K_IN_MAX;
}

/* Strides of input o: rows first, then the axes of a row. The leading axes must advance as one. */
static bool set_strides(mapper *m, const operand *o)
{
    int64_t full[K_AXES_MAX] = {0}, *to = m->s->stride[o->input];
    const gtype *t = graph_type(m->lo->g, o->ref);
    if (!lower_strides(full, t, m->r))
        return false;
    int64_t rows = m->lead ? full[m->lead - 1] : 0;
    for (int i = 0; i < m->lead - 1; i++)
        if (full[i] != full[i + 1] * m->r->dim[i + 1])
            return false;
    to[0] = rows;
    for (int i = m->lead; i < m->r->rank; i++)
        to[1 + i - m->lead] = full[i];
    return true;
}

/* Join axes that every input walks as one. */
static void merge_axes(plan_step *s)
{
    int n = s->choice.map.axes;
    int64_t *dim = s->size.map.dim;
    for (int axis = n - 1; axis >= 1; axis--) { /* axis and axis + 1, as strides count */
        bool one = true;
        for (int i = 0; i < s->n_in; i++)
            one = one && s->stride[i][axis] == s->stride[i][axis + 1] * dim[axis];
        if (!one)
            continue;
        dim[axis - 1] *= dim[axis];
        for (int i = 0; i < s->n_in; i++)
            s->stride[i][axis] = s->stride[i][axis + 1];
        for (int k = axis + 1; k < n; k++) {
            dim[k - 1] = dim[k];
            for (int i = 0; i < s->n_in; i++)
                s->stride[i][k] = s->stride[i][k + 1];
        }
        n--;
    }
    s->choice.map.axes = n;
}

static bool set_shape(mapper *m, int64_t cols)
{
    const gtype *r = m->r;
    int64_t width = 1;
    int lead = r->rank ? 1 : 0;
    if (cols > 0) { /* the last axes that make up the columns of the chain */
        lead = r->rank;
        while (lead > 1 && (width < cols || r->dim[lead - 1] == 1))
            width *= r->dim[--lead];
        if (width != cols || lead < 1)
            return false;
    }
    m->lead = lead;
    lower_count_rows(m->lo, m->s, r, lead > 1 ? lower_span(r, 1, lead) : 1);
    m->s->size.map.elems = lower_span(r, lead, r->rank);
    m->s->choice.map.axes = r->rank - lead;
    if (r->rank - lead > K_AXES_MAX - 1)
        return false;
    for (int i = lead; i < r->rank; i++)
        m->s->size.map.dim[i - lead] = r->dim[i];
    if (r->rank == lead) { /* a number for each row */
        m->s->choice.map.axes = 1;
        m->s->size.map.dim[0] = 1;
    }
    return true;
}

bool lower_map(lower *lo, const gnode *const *nodes, int n, const bool *is_read, int64_t cols,
               plan_step *s, weft_status *out_status)
{
    mapper m = {.lo = lo, .s = s, .first = lo->code.n};
    int n_in = 0, n_out = 0;
    plan_kernel k;
    kernel_want want = {.op = KOP_map, .type = DT_F32, .rows = lo->n_tok};
    *out_status = WEFT_OK;
    m.r = lower_result_type(lo, nodes[n - 1], 0);
    if (!lo->t->be->select(lo->t->be, &want, &k) || !collect(&m, nodes, n, &n_in) ||
        !set_shape(&m, cols))
        return false;
    s->kernel = lower_kernel(lo, &k);
    for (int i = 0; i < m.n_op; i++) {
        operand *o = &m.op[i];
        if (o->input < 0)
            continue;
        *out_status = lower_use(lo, nodes[0], s, o->input, o->ref, READ_F32);
        if (*out_status != WEFT_OK || !set_strides(&m, o))
            return false;
        s->pitch[o->input] = s->stride[o->input][0] * 4;
    }
    merge_axes(s);
    for (int i = 0; i < n; i++)
        if (is_read[i]) /* stored, so it is used once more */
            find(&m, (gref){.kind = REF_VALUE, .id = nodes[i]->first})->n_use++;
    for (int i = 0; i < n; i++) {
        if (!compute(&m, nodes[i]))
            goto undo;
        if (!is_read[i])
            continue;
        operand *o = find(&m, (gref){.kind = REF_VALUE, .id = nodes[i]->first});
        if (n_out == K_OUT_MAX)
            goto undo;
        s->out[n_out] = lo->value[nodes[i]->first];
        s->value[n_out] = nodes[i]->first;
        s->out_pitch[n_out] = s->size.map.elems * 4;
        emit(&m, (kinstr){.op = MAP_store, .to = (uint8_t)n_out, .at = {(uint8_t)o->reg}});
        n_out++;
        if (--o->n_use == 0)
            m.busy &= ~(1u << o->reg);
    }
    s->n_out = n_out;
    s->code = (int32_t)m.first;
    s->n_code = (int32_t)(lo->code.n - m.first);
    s->cost.row_flops = s->per_row * s->size.map.elems * n;
    s->cost.row_bytes += s->per_row * s->size.map.elems * 4 * n_out;
    return true;
undo:
    lo->code.n = m.first;
    return false;
}
