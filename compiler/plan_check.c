/* plan_check.c - the whole of the proof: tables, then for each bucket its items, steps, units and scratch,
 * and at last the order of it all. */
#include "compiler/plan_check.h"

#include "compiler/plan_check_tables.h"
#include "compiler/plan_file_impl.h"
#include "runtime/base/vec.h"
#include <inttypes.h>

/* More than any model needs, and few enough that looking at pairs of them takes no time. */
enum { STEPS_MAX = 1 << 16, PHASE_STEPS_MAX = 1 << 10, LAYERS_MAX = 1 << 16 };

typedef struct {
    weft_diag *dg;
    const backend *be;
    const plan *p;
    const plan_bucket *b;
    int32_t index; /* of the bucket */
    VEC(plan_access) at;
    VEC(size_t) first;
    VEC(int32_t) item;
} checker;

static weft_status fail_step(checker *c, int32_t i, const char *why)
{
    const plan_step *s = &c->b->step[i];
    bool known = s->kernel >= 0 && s->kernel < c->p->n_kernel;
    return weft_fail(c->dg, W1503, s->loc, "plan: bucket %d, step %d (%s): %s", (int)c->index,
                     (int)i, known ? plan_kernel_of(c->p, s)->name : "?", why);
}

/* ---- buckets and items ---- */

static weft_status check_sizes(checker *c)
{
    const plan *p = c->p;
    const plan_bucket *b = c->b;
    int64_t before = c->index ? b[-1].n_tok_max : 0;
    bool last = c->index == p->n_bucket - 1;
    if (b->n_tok_max <= before || b->n_tok_max > p->n_tok_max ||
        (last && b->n_tok_max != p->n_tok_max))
        return weft_fail(c->dg, W1503, WEFT_NOWHERE,
                         "plan: bucket %d is for %" PRId64 " rows, the one before for %" PRId64,
                         (int)c->index, b->n_tok_max, before);
    if (b->arena_bytes > p->arena_bytes || b->local_bytes > p->local_bytes ||
        b->scratch_bytes > p->scratch_bytes || p->arena_bytes > INT64_MAX / 4 ||
        p->local_bytes > INT64_MAX / 4 || p->scratch_bytes > INT64_MAX / 4)
        return weft_fail(c->dg, W1503, WEFT_NOWHERE,
                         "plan: bucket %d takes more memory than the plan", (int)c->index);
    if (b->n_step < 0 || b->n_step > STEPS_MAX || b->n_item < 0 || b->n_item > b->n_step ||
        b->n_phase < 0 || b->n_phase > b->n_item || b->n_edge < 0)
        return weft_fail(c->dg, W1503, WEFT_NOWHERE,
                         "plan: bucket %d has %d steps in %d items in %d phases", (int)c->index,
                         (int)b->n_step, (int)b->n_item, (int)b->n_phase);
    return WEFT_OK;
}

static weft_status check_items(checker *c)
{
    const plan_bucket *b = c->b;
    int32_t next = 0, phase = -1, in_phase = 0;
    bool split = false; /* has an item of this phase shared units? */
    for (int32_t i = 0; i < b->n_item; i++) {
        const plan_item *it = &b->item[i];
        bool opens = it->phase == phase + 1;
        in_phase = opens ? 0 : in_phase;
        split = opens ? false : split;
        if (it->first != next || it->n_step < 1 || it->n_step > b->n_step - next || it->grain < 0 ||
            (!opens && (it->phase != phase || phase < 0)) ||
            (it->per_thread && (split || it->n_step != 1)) ||
            (in_phase += it->n_step) > PHASE_STEPS_MAX)
            return weft_fail(c->dg, W1503, WEFT_NOWHERE,
                             "plan: bucket %d: item %d, steps %d and %d more in phase %d, is out "
                             "of order",
                             (int)c->index, (int)i, (int)it->first, (int)it->n_step - 1,
                             (int)it->phase);
        phase = it->phase;
        split = !it->per_thread;
        next += it->n_step;
        for (int32_t k = 0; k < it->n_step; k++)
            VEC_PUSH(&c->item, i);
    }
    if (next != b->n_step || phase + 1 != b->n_phase)
        return weft_fail(c->dg, W1503, WEFT_NOWHERE,
                         "plan: bucket %d: its items hold %d of %d steps, in %d of %d phases",
                         (int)c->index, (int)next, (int)b->n_step, (int)phase + 1, (int)b->n_phase);
    return WEFT_OK;
}

/* Items wait for earlier phases only; or for what every thread did for itself, earlier in the same one. */
static weft_status check_edges(checker *c)
{
    const plan_bucket *b = c->b;
    for (int32_t i = 0; i < b->n_edge; i++) {
        const plan_edge *e = &b->edge[i];
        if (e->from < 0 || e->from >= e->to || e->to >= b->n_item ||
            (b->item[e->from].phase == b->item[e->to].phase && !b->item[e->from].per_thread))
            return weft_fail(c->dg, W1503, WEFT_NOWHERE,
                             "plan: bucket %d: item %d cannot wait for item %d", (int)c->index,
                             (int)e->to, (int)e->from);
    }
    return WEFT_OK;
}

/* ---- steps ---- */

/* How many units a step has: so many for each of `rows` of a kind, or a number. */
typedef struct {
    plan_rows rows;
    int64_t n;
    int64_t joined; /* rows that make one */
    bool asked;     /* by tiles: there are none in a call that asks for no row */
} unit_count;

static unit_count units_of(const plan *p, const plan_step *s)
{
    kunit unit = plan_kernel_of(p, s)->unit;
    if (s->tile > 0)
        return (unit_count){ROWS_FIXED, (s->cols + s->tile - 1) / s->tile, 1, s->rows == ROWS_R};
    int64_t parts = unit == KUNIT_HEAD ? s->n[1] : unit == KUNIT_GROUP ? p->cell[s->cell].heads : 1;
    return (unit_count){.rows = s->rows,
                        .n = (s->rows == ROWS_FIXED ? s->n[0] : s->per_row) * parts,
                        .joined = unit == KUNIT_QUAD ? 4 : 1};
}

/* Blocks of queries and squares follow from more than check_units compares. */
static bool stands_alone(const plan_kernel *k)
{
    return plan_kernel_splits(k) || kunit_is_square(k->unit) || k->unit == KUNIT_QUERIES_FLASH;
}

/* Steps of a chain are handed the same range of units. */
static weft_status check_units(checker *c, const plan_item *it)
{
    const plan_step *s = &c->b->step[it->first];
    unit_count a = units_of(c->p, s);
    for (int32_t i = 1; i < it->n_step; i++) {
        unit_count b = units_of(c->p, s + i);
        if (stands_alone(plan_kernel_of(c->p, s)) || stands_alone(plan_kernel_of(c->p, s + i)) ||
            a.rows != b.rows || a.n != b.n || a.joined != b.joined || a.asked != b.asked ||
            (s->tile > 0) != (s[i].tile > 0))
            return fail_step(c, it->first + i, "it has other units than the chain it is in");
    }
    return WEFT_OK;
}

size_t plan_step_scratch(const backend *be, const plan_kernel *kernel, const plan_step *s,
                         const plan_cell *cells, const kpolicy *tiers)
{
    kcell cell = {0};
    kargs k = {.cols = s->cols, .tile = s->tile, .n_code = s->n_code};
    memcpy(k.n, s->n, sizeof k.n);
    memcpy(k.word, s->word, sizeof k.word);
    for (int i = 0; i < K_IN_MAX; i++)
        k.type[i] = s->in[i].type;
    if (s->cell >= 0) {
        cell = plan_cell_view(&cells[s->cell], tiers);
        k.cell = &cell;
    }
    return be->scratch(be, kernel, &k);
}

static weft_status check_steps(checker *c)
{
    const plan_bucket *b = c->b;
    kpolicy tiers = plan_tiers(&c->p->tiers, c->p->kv);
    for (int32_t i = 0; i < b->n_step; i++) {
        plan_accesses l;
        VEC_PUSH(&c->first, c->at.n);
        if (!plan_access_step(c->p, b, &b->item[c->item.at[i]], &b->step[i], &l))
            return fail_step(c, i, l.why);
        if (b->step[i].layer < -1 || b->step[i].layer > LAYERS_MAX)
            return fail_step(c, i, "there is no such layer");
        if (b->step[i].prec_f32 && act_rounds(l.k->act))
            return fail_step(c, i,
                             "the model asks for prec(f32), and its kernel rounds its activations");
        if (plan_step_scratch(c->be, l.k, &b->step[i], c->p->cell, &tiers) > b->scratch_bytes)
            return fail_step(c, i, "it needs more scratch than the bucket has");
        for (int x = 0; x < l.n; x++)
            VEC_PUSH(&c->at, l.at[x]);
    }
    VEC_PUSH(&c->first, c->at.n);
    for (int32_t i = 0; i < b->n_item; i++)
        WEFT_TRY(check_units(c, &b->item[i]));
    return WEFT_OK;
}

/* Whoever reads a cell after rows were appended finds all its tiers made, each after the one that it is made from. */
static weft_status check_tiers(checker *c)
{
    const plan *p = c->p;
    kpolicy all = plan_tiers(&p->tiers, p->kv);
    arena *a = arena_create();
    int32_t *left = ARENA_ARRAY(a, int32_t, (size_t)p->n_cell + 1); /* tiers to be made */
    weft_status st = WEFT_OK;
    for (int32_t i = 0; i < c->b->n_step && st == WEFT_OK; i++) {
        const plan_step *s = &c->b->step[i];
        kop op = plan_kernel_of(p, s)->op;
        if (s->cell < 0 || (op == KOP_attend && s->choice.attend.part == ATTEND_MERGE))
            continue;
        int32_t n = plan_cell_tiers(&p->cell[s->cell], &all).n_tier, *more = &left[s->cell];
        if (op == KOP_append)
            *more = n - 1;
        else if (op == KOP_convert && s->size.convert.tier == n - *more)
            --*more;
        else if (op == KOP_convert || *more > 0)
            st = fail_step(c, i, "tiers of its cell are not made before it");
    }
    for (int32_t i = 0; i < p->n_cell && st == WEFT_OK; i++)
        if (left[i] > 0)
            st = weft_fail(c->dg, W1503, WEFT_NOWHERE,
                           "plan: bucket %d: tiers of cell %s are not made", (int)c->index,
                           p->cell[i].name);
    arena_destroy(a);
    return st;
}

static weft_status check_bucket(checker *c)
{
    c->at.n = c->first.n = c->item.n = 0;
    WEFT_TRY(check_sizes(c));
    WEFT_TRY(check_items(c));
    WEFT_TRY(check_steps(c));
    WEFT_TRY(check_tiers(c));
    plan_trace t = {.p = c->p,
                    .b = c->b,
                    .index = c->index,
                    .at = c->at.at,
                    .first = c->first.at,
                    .item = c->item.at};
    WEFT_TRY(plan_check_order(c->dg, &t));
    return check_edges(c);
}

weft_status plan_check(weft_diag *dg, const backend *be, const plan *p)
{
    checker c = {.dg = dg, .be = be, .p = p};
    weft_status st = plan_check_tables(dg, be, p);
    for (; st == WEFT_OK && c.index < p->n_bucket; c.index++) {
        c.b = &p->bucket[c.index];
        st = check_bucket(&c);
    }
    VEC_FREE(&c.at);
    VEC_FREE(&c.first);
    VEC_FREE(&c.item);
    return st;
}
