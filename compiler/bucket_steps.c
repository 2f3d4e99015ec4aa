/* bucket_steps.c - the nodes of a graph as steps: kernels selected for the rows of the bucket, element-wise
 * nodes joined, activations quantised where a kernel wants them so, appends cut into keys and values.
 * Steps of a chain become one item. */
#include "compiler/bucket_impl.h"

#include "runtime/base/intmath.h"
#include <inttypes.h>

/* ---- values ---- */

static weft_status add_value(bucket *b, int id, weft_loc loc, const char *op, int64_t rows,
                             int64_t row_bytes)
{
    size_t bytes;
    bvalue *v = &b->values.at[id];
    v->rows = rows;
    v->row_bytes = row_bytes;
    if (rows < 1 || row_bytes < 1 || !size_mul((size_t)rows, (size_t)row_bytes, &bytes) ||
        bytes > INT64_MAX / 1024)
        return weft_fail(b->lo->dg, W0902, loc,
                         "%s: %" PRId64 " rows of its result do not fit into memory", op, rows);
    return WEFT_OK;
}

/* What kernels think a row of a step's result is, pitch counts. */
static weft_status add_results(bucket *b, const plan_step *s)
{
    const kop_row *op = kop_row_of(bucket_op(b, s));
    int64_t rows = s->n[0] * kop_size(s->n, op->y_vectors);
    for (int i = 0; i < s->n_out; i++)
        WEFT_TRY(add_value(b, s->out[i].id, s->loc, op->name, rows, s->out_pitch[i]));
    return WEFT_OK;
}

/* ---- chains ---- */

/* May steps of this bucket join chains, and threads compute for themselves what prepares these? */
static bool has_chains(const bucket *b)
{
    return b->lo->n_tok <= b->lo->t->be->chain_rows;
}

/* Columns of the result of a step, and the number of them that cannot be cut; false for a step that has no
 * units of columns. */
static bool step_columns(const bucket *b, const plan_step *s, int64_t *cols, int64_t *whole)
{
    const plan_kernel *k = lower_kernel_of(b->lo, s);
    const kop_row *op = kop_row_of(k->op);
    if (op->cut != KCUT_ANY && op->cut != KCUT_VECTOR)
        return false;
    if (k->op == KOP_append) {
        const plan_cell *c = &b->lo->cells.at[s->cell];
        *whole = s->in[0].space != SPACE_NONE ? c->k : c->v;
        *cols = c->heads * *whole;
        return true;
    }
    int64_t width = kop_size(s->n, op->col_width);
    *cols = kop_size(s->n, op->col_vectors) * width;
    *whole = op->cut == KCUT_VECTOR ? width : k->layout != LAYOUT_STORED ? LAYOUT_GROUP : 1;
    return true;
}

static int32_t new_item(bucket *b, bitem it)
{
    VEC_PUSH(&b->items, it);
    return (int32_t)b->items.n - 1;
}

/* Has a step more columns that cannot be cut than the item that it would join, and too many? */
static bool begins_item(const bucket *b, const bitem *it, int64_t whole)
{
    const backend *be = b->lo->t->be;
    const int64_t rows = b->lo->n_tok;
    const int most = rows == 1 ? 0 : rows <= be->whole_rows ? 1 : 2;
    return i64_lcm(it->tile, whole) > it->tile && whole > be->whole_cols[most];
}

/* Does a step compute whole rows, each from the same row of its operands? */
static bool is_by_row(const bucket *b, const plan_step *s)
{
    const plan_kernel *k = lower_kernel_of(b->lo, s);
    return k->unit == KUNIT_ROW && kop_row_of(k->op)->weight < 0 && k->op != KOP_take_rows &&
           k->op != KOP_lora_up;
}

/* The same of the first step of an item, whose operands are not of it: these may be other rows. */
static bool begins_by_row(const bucket *b, const plan_step *s)
{
    const plan_kernel *k = lower_kernel_of(b->lo, s);
    return is_by_row(b, s) ||
           (k->unit == KUNIT_ROW && (k->op == KOP_take_rows || k->op == KOP_embed));
}

/* The item that a step of whole rows may join, one phase less: of those that it waits for the last, so that no other waits for this
 * one, if all steps of that are of the same rows and threads share them out. -1: none such. With chains only quantize joins,
 * as all else may be part of one. What combine reads has other rows than the map that made it: a row for each expert. */
static int32_t item_of_rows(bucket *b, const plan_step *s)
{
    const backend *be = b->lo->t->be;
    const kop op = bucket_op(b, s);
    const bool joins = has_chains(b)
                           ? op == KOP_quantize && be->recompute_elems[b->lo->n_tok > 1] == 0
                           : be->launches && op != KOP_combine;
    const int32_t last =
        joins && s->rows != ROWS_FIXED && is_by_row(b, s) ? bucket_last_wait(b, s) : -1;
    if (last < 0 || b->items.at[last].cols > 0 || b->items.at[last].n_step == be->chain_steps)
        return -1;
    const bitem *it = &b->items.at[last];
    for (int32_t i = 0; i < it->n_step; i++) {
        const plan_step *of = &b->steps.at[it->step[i]].s;
        bool fits = i == 0 ? begins_by_row(b, of) : is_by_row(b, of);
        if (!fits || of->rows != s->rows || of->per_row != s->per_row)
            return -1;
    }
    return last;
}

/* The item of a chain whose columns a step splits into bf16, each by itself, so that it may be the chain's last: one phase less.
 * -1: none such, or threads do that for themselves. */
static int32_t item_of_columns(bucket *b, const plan_step *s)
{
    const backend *be = b->lo->t->be;
    if (!has_chains(b) || be->recompute_elems[1] > 0 || b->lo->n_tok == 1 ||
        bucket_op(b, s) != KOP_quantize || !act_is_tiled((kact)s->choice.quantize.act) ||
        s->in[0].space != SPACE_ARENA)
        return -1;
    const int32_t last = bucket_last_wait(b, s), maker = b->values.at[s->in[0].id].step;
    if (last < 0 || maker < 0 || b->steps.at[maker].item != last)
        return -1;
    const bitem *it = &b->items.at[last];
    const plan_step *of = &b->steps.at[maker].s;
    bool fits = it->cols == s->size.quantize.width && it->n_step < be->chain_steps &&
                of->rows == s->rows && of->per_row == s->per_row && s->rows != ROWS_FIXED &&
                of->n[0] == s->n[0];
    return fits ? last : -1;
}

enum { QUANTIZE_COLS = 256 }; /* of which no form has a part in another block */

/* Is a step that quantises shared out by columns of all rows? Where these are more than rows more threads have some. */
static bool alone_by_columns(const bucket *b, const plan_step *s)
{
    const backend *be = b->lo->t->be;
    return has_chains(b) && be->launches && be->recompute_elems[1] == 0 && b->lo->n_tok > 1 &&
           bucket_op(b, s) == KOP_quantize && !act_is_split((kact)s->choice.quantize.act) &&
           s->size.quantize.width % QUANTIZE_COLS == 0 &&
           s->size.quantize.width / QUANTIZE_COLS > s->n[0];
}

/* Put step number i into the item of its chain, or into one of its own. Passes let nothing into a chain that its tiles
 * cannot compute. */
static void join_item(bucket *b, int i)
{
    bstep *st = &b->steps.at[i];
    int64_t cols, whole;
    st->item = item_of_columns(b, &st->s);
    if (st->item >= 0) {
        bitem *it = &b->items.at[st->item];
        it->tile = i64_lcm(it->tile, ACT_SPLIT_COLS);
        it->step[it->n_step++] = i;
        return;
    }
    if (st->chain == 0 || st->recompute) {
        st->item = item_of_rows(b, &st->s);
        if (st->item < 0)
            st->item =
                new_item(b, alone_by_columns(b, &st->s)
                                ? (bitem){.cols = st->s.size.quantize.width, .tile = QUANTIZE_COLS}
                                : (bitem){0});
        bitem *own = &b->items.at[st->item];
        own->step[own->n_step++] = i;
        return;
    }
    bool tiled = step_columns(b, &st->s, &cols, &whole);
    WEFT_ASSERT(tiled);
    if (b->chain_at[st->chain] < 0 || begins_item(b, &b->items.at[b->chain_at[st->chain]], whole))
        b->chain_at[st->chain] = new_item(b, (bitem){.cols = cols, .tile = 1});
    st->item = b->chain_at[st->chain];
    bitem *it = &b->items.at[st->item];
    it->tile = i64_lcm(it->tile, whole);
    WEFT_ASSERT(it->cols == cols && it->tile <= cols && it->n_step < CHAIN_STEPS_MAX);
    it->step[it->n_step++] = i;
}

/* ---- steps ---- */

static weft_status add_step(bucket *b, plan_step s, int chain, bool recompute)
{
    int i = (int)b->steps.n;
    WEFT_TRY(add_results(b, &s));
    bstep st = {.s = s, .chain = chain, .recompute = recompute};
    if (!has_chains(b)) {
        const plan_kernel *k = lower_kernel_of(b->lo, &s);
        bool tiles = kop_row_of(k->op)->weight > 0 && !kunit_is_square(k->unit); /* contractions */
        st.chain = tiles ? chain : 0;
        st.recompute = false;
    }
    VEC_PUSH(&b->steps, st);
    join_item(b, i);
    bucket_add_waits(b, &s, b->steps.at[i].item);
    for (int k = 0; k < s.n_out; k++)
        b->values.at[s.out[k].id].step = i;
    return WEFT_OK;
}

static plan_step step_for(const bucket *b, const gnode *n)
{
    return (plan_step){.cell = -1,
                       .per_row = 1,
                       .layer = n->layer,
                       .node = (int32_t)(n - b->lo->g->nodes.at),
                       .value = {-1, -1},
                       .loc = n->loc};
}

/* Have operand 0 of a contraction quantised, once for all that read it so. */
static weft_status quantize_operand(bucket *b, const gnode *n, plan_step *s, kact act)
{
    lower *lo = b->lo;
    int64_t width = s->pitch[0] / 4;
    int64_t vectors = kop_size(s->n, kop_row_of(bucket_op(b, s))->x_vectors);
    int64_t per_row = s->per_row * vectors;
    int32_t alone = -1; /* what is no value of the graph is quantised for each that reads it */
    int32_t *quantized = s->in[0].space == SPACE_ARENA ? &b->quantized[act][s->in[0].id] : &alone;
    if (*quantized >= 0 &&
        b->steps.at[b->values.at[*quantized].step].s.size.quantize.width != width)
        *quantized = -1; /* other rows of the same bytes */
    if (*quantized < 0) {
        plan_kernel k;
        kernel_want want = {.op = act_group(act) > 1 ? KOP_quantize4 : KOP_quantize,
                            .type = DT_F32,
                            .rows = lo->n_tok};
        if (!lo->t->be->select(lo->t->be, &want, &k) || width % act_block(act) != 0)
            return weft_fail(lo->dg, W0901, n->loc,
                             "%s: rows of %" PRId64 " elements cannot be quantised for its kernel",
                             op_row_of(n->op)->name, width);
        bvalue v = {.step = -1};
        *quantized = (int32_t)b->values.n;
        VEC_PUSH(&b->values, v);
        plan_step p = step_for(b, n);
        p.kernel = lower_kernel(lo, &k);
        p.n_in = p.n_out = 1;
        p.in[0] = s->in[0];
        p.pitch[0] = s->pitch[0];
        p.out[0] = (plan_operand){.space = SPACE_ARENA, .type = DT_F32, .id = *quantized};
        p.out_pitch[0] = act_row_bytes(act, width);
        p.rows = s->rows;
        p.per_row = per_row;
        p.size.quantize.rows = s->n[0] * vectors;
        p.size.quantize.width = width;
        p.choice.quantize.act = (int32_t)act;
        p.cost.row_bytes = per_row * (width * 4 + p.out_pitch[0]);
        p.cost.row_flops = per_row * width * 3;
        WEFT_TRY(add_step(b, p, n->chain, true));
        bvalue *made = &b->values.at[*quantized];
        made->rows = i64_ceil_div(made->rows, act_group(act)) * act_group(act);
    }
    s->in[0] = (plan_operand){.space = SPACE_ARENA, .type = DT_F32, .id = *quantized};
    s->pitch[0] = act_row_bytes(act, width);
    return WEFT_OK;
}

/* Are there too few units in a row of attention for many threads, and positions enough to share out instead? */
static bool attend_splits(const bucket *b, const plan_step *s)
{
    enum { WINDOW_MANY = 4096 };
    const lower *lo = b->lo;
    const plan_kernel *row = lower_kernel_of(lo, s);
    int64_t window = s->size.attend.window, chunk = s->size.attend.chunk;
    if (row->op != KOP_attend || !plan_kernel_splits(row) ||
        lo->t->n_ctx < lo->t->be->split_positions || (window > 0 && window < WINDOW_MANY) ||
        (chunk > 0 && chunk < WINDOW_MANY))
        return false;
    const plan_cell *c = &lo->cells.at[s->cell];
    kcell cell = plan_cell_view(c, &lo->tiers);
    /* Of latent rows a call of many has few units, too. */
    const bool latent = cell.latent && row->unit == KUNIT_QUERIES_FEW;
    if (lo->n_tok > K_ROWS_FEW && !latent)
        return false;
    kargs k = {.n = {1, s->size.attend.heads}, .cell = &cell};
    bool halves = cell.n_tier == 1 && !cell.latent &&
                  (cell.tier[0].key == KFORM_F16 || cell.tier[0].key == KFORM_BF16);
    const int64_t units = lo->t->be->units(lo->t->be, row, &k), most = lo->t->be->split_units;
    /* A unit's walk takes no longer than waiting for all to be merged; and for rope too, where that would be a phase of its own, even if
     * half of the blocks have none. */
    const int64_t walk = lo->t->be->walk_elems / (c->k + c->v), all = lo->n_tok * units;
    const bool rope = c->k > lo->t->be->whole_cols[1];
    if (halves && lo->n_tok > 1 &&
        (all >= most ? lo->t->n_ctx <= walk
                     : rope && 2 * all >= most && lo->t->n_ctx <= walk * 3 / 4))
        return false;
    return (latent ? all : units) < most;
}

/* A step of its own for what the stretches of positions have, which s then merges. */
static weft_status split_attend(bucket *b, plan_step *s)
{
    plan_step p = *s;
    const plan_operand none = {SPACE_NONE, DT_F32, 0, 0};
    bvalue v = {.step = -1};
    plan_operand states = {.space = SPACE_ARENA, .type = DT_F32, .id = (int32_t)b->values.n};
    int64_t width;
    if (!i64_mul(s->size.attend.heads, kernel_state_elems(b->lo->cells.at[s->cell].v) * 4, &width))
        return weft_fail(b->lo->dg, W0902, s->loc, "attend: its states do not fit into memory");
    VEC_PUSH(&b->values, v);
    p.in[2] = none;
    p.out[0] = states;
    p.out_pitch[0] = width;
    p.value[0] = -1;
    p.choice.attend.part = ATTEND_STATES;
    WEFT_TRY(add_step(b, p, 0, false));
    s->in[0] = states;
    s->pitch[0] = width;
    s->in[3] = none;
    s->choice.attend.part = ATTEND_MERGE;
    s->cost = (plan_cost){.row_bytes = s->out_pitch[0]};
    return WEFT_OK;
}

/* The step for results [part, part + n_out) of a node. */
static weft_status add_node_step(bucket *b, const gnode *n, int part, int n_out)
{
    lower *lo = b->lo;
    plan_step s = step_for(b, n);
    lo->part = part;
    s.n_out = n_out;
    for (int i = 0; i < n_out; i++) {
        s.out[i] = lo->value[n->first + part + i];
        s.value[i] = n->first + part + i;
    }
    WEFT_TRY(lower_step(lo, n, &s));
    kact act = lower_kernel_of(lo, &s)->act;
    if (act != ACT_F32)
        WEFT_TRY(quantize_operand(b, n, &s, act));
    if (attend_splits(b, &s))
        WEFT_TRY(split_attend(b, &s));
    /* One row's states are a fraction of the keys and values they came from: every thread merges them for itself,
     * which saves a barrier, unless there are many: of long contexts, or of heads that share latent rows. */
    const int64_t once = lo->t->be->merge_positions;
    const bool latent = s.cell >= 0 && lo->cells.at[s.cell].latent;
    bool merge =
        bucket_merges(b, &s) && lo->n_tok == 1 && (once == 0 || (lo->t->n_ctx < once && !latent));
    return add_step(b, s, n->chain, n->recompute || merge);
}

/* Keys and values apart, each with what makes it. */
static weft_status add_append(bucket *b, const gnode *n)
{
    lower *lo = b->lo;
    plan_step s = step_for(b, n);
    lo->part = 0;
    WEFT_TRY(lower_step(lo, n, &s));
    const plan_operand none = {SPACE_NONE, DT_F32, 0, 0};
    for (int half = 0; half < 2; half++) {
        if (s.in[half].space == SPACE_NONE)
            continue;
        plan_step one = s;
        one.in[1 - half] = none;
        one.cost.row_bytes = s.pitch[half] * 2;
        WEFT_TRY(add_step(b, one, half ? n->values : n->chain, false));
    }
    return WEFT_OK;
}

/* ---- maps ---- */

/* The nodes of a map up to its last one, n, and which of them somebody else reads. */
typedef struct {
    const gnode **nodes;
    bool *is_read;
    int n;
} map_group;

static weft_status add_map(bucket *b, const map_group *m)
{
    lower *lo = b->lo;
    const gnode *last = m->nodes[m->n - 1];
    weft_status status = WEFT_OK;
    /* What of a map reads the chain may be needed by nobody: the rest may then come before it, and stands apart. */
    if (has_chains(b) && last->chain > 0 && !last->recompute && b->chain_at[last->chain] >= 0) {
        plan_step s = step_for(b, last);
        int64_t cols = b->items.at[b->chain_at[last->chain]].cols;
        if (lower_map(lo, m->nodes, m->n, m->is_read, cols, &s, &status))
            return add_step(b, s, last->chain, false);
        WEFT_TRY(status);
        return weft_fail(lo->dg, W0901, last->loc, "%s: there is no kernel for these operands",
                         op_row_of(last->op)->name);
    }
    plan_step s = step_for(b, last);
    if (lower_map(lo, m->nodes, m->n, m->is_read, 0, &s, &status))
        return add_step(b, s, last->recompute ? last->chain : 0, last->recompute);
    WEFT_TRY(status);
    if (m->n == 1)
        return weft_fail(lo->dg, W0901, last->loc, "%s: there is no kernel for these operands",
                         op_row_of(last->op)->name);
    for (int i = 0; i < m->n; i++) { /* too much for one step */
        bool yes = true;
        map_group one = {&m->nodes[i], &yes, 1};
        WEFT_TRY(add_map(b, &one));
    }
    return WEFT_OK;
}

/* ---- all nodes ---- */

typedef struct {
    int *first, *next; /* nodes of each map, in order: [maps], [nodes]; -1 ends */
    int *last;
    int32_t *readers; /* [values]: nodes of other maps, and outputs, that read it */
} map_table;

static int n_chain_of(const graph *g)
{
    int n = 0;
    for (size_t i = 0; i < g->nodes.n; i++)
        n = g->nodes.at[i].chain > n ? g->nodes.at[i].chain : n;
    return n + 1;
}

static int n_map_of(const bucket *b)
{
    int n = 0;
    for (size_t i = 0; i < b->lo->g->nodes.n; i++)
        n = b->map[i] > n ? b->map[i] : n;
    return n + 1;
}

static map_table tabulate(bucket *b)
{
    const graph *g = b->lo->g;
    int n_map = n_map_of(b);
    map_table t = {.first = ARENA_ARRAY(b->a, int, (size_t)n_map),
                   .last = ARENA_ARRAY(b->a, int, (size_t)n_map),
                   .next = ARENA_ARRAY(b->a, int, g->nodes.n),
                   .readers = ARENA_ARRAY(b->a, int32_t, g->values.n)};
    for (int i = 0; i < n_map; i++)
        t.first[i] = t.last[i] = -1;
    for (size_t i = 0; i < g->nodes.n; i++) {
        const gnode *n = &g->nodes.at[i];
        t.next[i] = -1;
        if (!lower_node_is_live(b->lo, n))
            continue;
        int map = b->map[i];
        if (map > 0) {
            if (t.last[map] >= 0)
                t.next[t.last[map]] = (int)i;
            else
                t.first[map] = (int)i;
            t.last[map] = (int)i;
        }
        for (int k = 0; k < n->n_in; k++)
            if (n->in[k].kind == REF_VALUE) {
                int maker = g->values.at[n->in[k].id].node;
                if (map == 0 || b->map[maker] != map)
                    t.readers[n->in[k].id]++;
            }
        for (int k = 0; k < OP_ATTRS_MAX; k++)
            if (n->attr[k].kind == GATTR_REF && n->attr[k].ref.kind == REF_VALUE)
                t.readers[n->attr[k].ref.id]++;
    }
    for (size_t i = 0; i < g->outputs.n; i++)
        if (lower_wants(b->lo->t, &g->outputs.at[i]))
            t.readers[g->outputs.at[i].value]++;
    return t;
}

static weft_status add_map_of(bucket *b, const map_table *t, int node)
{
    const graph *g = b->lo->g;
    int count = 0, first = b->map[node] ? t->first[b->map[node]] : node;
    for (int i = first; i >= 0; i = t->next[i])
        count++;
    map_group m = {ARENA_ARRAY(b->a, const gnode *, (size_t)count),
                   ARENA_ARRAY(b->a, bool, (size_t)count), 0};
    for (int i = first; i >= 0; i = t->next[i]) {
        m.is_read[m.n] = t->readers[g->nodes.at[i].first] > 0;
        m.nodes[m.n++] = &g->nodes.at[i];
    }
    return add_map(b, &m);
}

static bool is_view(const gnode *n)
{
    return n->op == OP_to_heads || n->op == OP_from_heads;
}

/* Every value's operand is its own number, or that of what it views. */
static weft_status number_values(bucket *b)
{
    lower *lo = b->lo;
    const graph *g = lo->g;
    for (size_t v = 0; v < g->values.n; v++) {
        bvalue val = {.step = -1};
        VEC_PUSH(&b->values, val);
        b->root[v] = (int32_t)v;
    }
    for (size_t i = 0; i < g->nodes.n; i++) {
        const gnode *n = &g->nodes.at[i];
        if (is_view(n)) {
            if (n->in[0].kind != REF_VALUE)
                return weft_fail(lo->dg, W0301, n->loc, "%s: its operand is no value",
                                 op_row_of(n->op)->name);
            b->root[n->first] = b->root[n->in[0].id];
        }
    }
    for (size_t v = 0; v < g->values.n; v++)
        lo->value[v] = (plan_operand){.space = SPACE_ARENA,
                                      .type = g->values.at[v].type.ids ? DT_I32 : DT_F32,
                                      .id = b->root[v]};
    for (size_t i = 0; i < g->outputs.n; i++)
        if (lower_wants(lo->t, &g->outputs.at[i]))
            b->values.at[b->root[g->outputs.at[i].value]].output = true;
    return WEFT_OK;
}

static weft_status add_node(bucket *b, const map_table *t, int i)
{
    const gnode *n = &b->lo->g->nodes.at[i];
    if (is_view(n))
        return WEFT_OK;
    if (op_row_of(n->op)->fuses == FUSE_ELEMENTWISE)
        return add_map_of(b, t, i);
    if (n->op == OP_append)
        return add_append(b, n);
    if (n->op == OP_convert)
        return add_node_step(b, n, 0, 0);
    if (n->op != OP_split)
        return add_node_step(b, n, 0, n->n_out);
    for (int part = 0; part < n->n_out; part++)
        if (b->lo->live[n->first + part])
            WEFT_TRY(add_node_step(b, n, part, 1));
    return WEFT_OK;
}

weft_status bucket_steps(bucket *b)
{
    const graph *g = b->lo->g;
    int n_chain = n_chain_of(g);
    b->root = ARENA_ARRAY(b->a, int32_t, g->values.n);
    b->chain_at = ARENA_ARRAY(b->a, int32_t, (size_t)n_chain);
    for (int i = 0; i < n_chain; i++)
        b->chain_at[i] = -1;
    for (int act = 0; act < ACT_COUNT; act++) {
        b->quantized[act] = ARENA_ARRAY(b->a, int32_t, g->values.n);
        for (size_t v = 0; v < g->values.n; v++)
            b->quantized[act][v] = -1;
    }
    WEFT_TRY(number_values(b));
    bucket_order(b);
    map_table t = tabulate(b);
    for (int32_t i = 0; i < b->n_order; i++)
        WEFT_TRY(add_node(b, &t, b->node_order[i]));
    return WEFT_OK;
}
