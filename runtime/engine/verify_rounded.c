/* verify_rounded.c - a reference that rounds where the plan does.
 *
 * It runs the reference's plan, in which every step is a phase. Before a product for which the plan quantises
 * activations, its operand is rounded the same way (kernels/act.h says how), and put back afterwards,
 * because others may read it. So a kernel for quantised activations can be held against plain sums of the
 * very numbers it was given. The first step of a part may be such a product too: what it was given is rounded before it begins. */
#include "runtime/engine/verify.h"

#include "kernels/ref/dequant.h"
#include "runtime/base/vec.h"
#include <math.h>

/* A part of the model. */
typedef struct {
    verify_rounded *all;
    int32_t at; /* its number */
    const plan *p, *ref;
    kact **act;     /* [n_bucket of p][n_step of ref]: how the plan takes a step's activations */
    int32_t bucket; /* of p, for the call at hand */
} rounded_part;

struct verify_rounded {
    session *s;
    int32_t n_part;
    rounded_part part[PLAN_PARTS_MAX];
    int64_t n_tok, n_out;
    int32_t held_part;
    int64_t held;     /* where the operand is that is rounded at the moment; -1: none is */
    VEC(float) kept;  /* as it was */
    VEC(float) round; /* as it is */
};

static bool is_rounded(const plan *p, const plan_step *s)
{
    return act_rounds(plan_kernel_of(p, s)->act) && s->value[0] >= 0;
}

static bool rounds(const plan *p)
{
    for (int32_t b = 0; b < p->n_bucket; b++)
        for (int32_t i = 0; i < p->bucket[b].n_step; i++)
            if (is_rounded(p, &p->bucket[b].step[i]))
                return true;
    return p->n_cell > 0 && (p->kv != DT_F32 || p->tiers.n_tier > 1);
}

bool verify_rounds(const plan_parts *p)
{
    bool any = false;
    for (int32_t i = 0; i < p->n_part; i++)
        any = any || rounds(p->part[i].p);
    return any;
}

/* ---- rounding ---- */

/* A number as the sum of some bf16. */
static float rounded_split(float x, int64_t parts)
{
    float sum = 0, rest = x;
    for (int64_t p = 0; p < parts && (p == 0 || isfinite(rest)); p++) {
        const float part = bf16_to_f32(f32_to_bf16(rest));
        sum += part;
        rest -= part;
    }
    return sum;
}

/* A row of a multiple of a block's numbers; a rest, which no kernel has, stays. */
static void round_row(float *x, int64_t n, kact act)
{
    int64_t block = act_block(act);
    for (int64_t i = 0; i < n && act_is_split(act); i++)
        x[i] = rounded_split(x[i], act_parts(act));
    if (act_is_split(act))
        return;
    for (int64_t i = 0; i + block <= n; i += block) {
        float most = 0;
        for (int64_t k = i; k < i + block; k++)
            most = fmaxf(most, fabsf(x[k]));
        float d = most / 127;
        for (int64_t k = i; k < i + block && d > 0; k++)
            x[k] = d * rintf(x[k] / d);
    }
}

/* The operand of a product: so many vectors of so many numbers, without gaps. */
static void operand_size(const rounded_part *x, const plan_step *s, int64_t *out_n,
                         int64_t *out_len)
{
    const kop_row *op = kop_row_of(plan_kernel_of(x->ref, s)->op);
    int64_t rows = plan_step_rows(s, x->all->n_tok, x->all->n_out, 1);
    *out_len = kop_size(s->n, op->x_width);
    *out_n = rows * kop_size(s->n, op->x_vectors);
}

static weft_status put_back(weft_diag *dg, verify_rounded *t)
{
    int64_t at = t->held;
    t->held = -1;
    return at < 0 ? WEFT_OK
                  : session_arena_write(dg, t->s, t->held_part, at, t->kept.at,
                                        t->kept.n * sizeof(float));
}

static weft_status round_operand(weft_diag *dg, const rounded_part *x, const plan_step *s, kact act)
{
    verify_rounded *t = x->all;
    int64_t n, len;
    if (s->in[0].space != SPACE_ARENA)
        return WEFT_OK;
    operand_size(x, s, &n, &len);
    size_t bytes = (size_t)(n * len) * sizeof(float);
    t->kept.n = t->round.n = 0;
    for (int64_t i = 0; i < n * len; i++) {
        VEC_PUSH(&t->kept, 0);
        VEC_PUSH(&t->round, 0);
    }
    if (bytes == 0)
        return WEFT_OK;
    WEFT_TRY(session_arena_read(dg, t->s, x->at, s->in[0].offset, t->kept.at, bytes));
    memcpy(t->round.at, t->kept.at, bytes);
    for (int64_t i = 0; i < n; i++)
        round_row(t->round.at + i * len, len, act);
    t->held_part = x->at;
    t->held = s->in[0].offset;
    return session_arena_write(dg, t->s, x->at, t->held, t->round.at, bytes);
}

static weft_status between_steps(void *ctx, weft_diag *dg, int32_t bucket, int32_t phase)
{
    const rounded_part *x = ctx;
    const plan_bucket *b = &x->ref->bucket[bucket];
    WEFT_TRY(put_back(dg, x->all));
    if (phase + 1 < b->n_step && x->act[x->bucket][phase + 1] != ACT_F32)
        return round_operand(dg, x, &b->step[phase + 1], x->act[x->bucket][phase + 1]);
    return WEFT_OK;
}

/* ---- the whole ---- */

/* The step of the reference that makes a value; -1: none does. */
static int32_t step_of_value(const plan_bucket *b, int32_t id)
{
    for (int32_t i = 0; i < b->n_step; i++)
        if (b->step[i].n_out > 0 && b->step[i].value[0] == id)
            return i;
    return -1;
}

/* How the plan of a part takes the activations of each step of its reference. */
static void find_acts(rounded_part *x, arena *a)
{
    const plan *p = x->p;
    const plan_bucket *ref = x->ref->bucket;
    x->act = ARENA_ARRAY(a, kact *, (size_t)p->n_bucket);
    for (int32_t b = 0; b < p->n_bucket; b++) {
        x->act[b] = ARENA_ARRAY(a, kact, (size_t)ref->n_step + 1);
        for (int32_t i = 0; i < ref->n_step; i++)
            x->act[b][i] = ACT_F32;
        for (int32_t i = 0; i < p->bucket[b].n_step; i++) {
            const plan_step *step = &p->bucket[b].step[i];
            int32_t at = is_rounded(p, step) ? step_of_value(ref, step->value[0]) : -1;
            if (at >= 0)
                x->act[b][at] = plan_kernel_of(p, step)->act;
        }
    }
}

verify_rounded *verify_rounded_create(const plan_parts *p, const plan_parts *ref, session *s,
                                      arena *a)
{
    verify_rounded *t = ARENA_NEW(a, verify_rounded);
    *t = (verify_rounded){.s = s, .n_part = p->n_part, .held = -1};
    VEC_START(&t->kept);
    VEC_START(&t->round);
    for (int32_t i = 0; i < t->n_part; i++) {
        t->part[i] = (rounded_part){.all = t, .at = i, .p = p->part[i].p, .ref = ref->part[i].p};
        find_acts(&t->part[i], a);
        session_watch(s, i, between_steps, &t->part[i]);
    }
    return t;
}

void verify_rounded_destroy(verify_rounded *t)
{
    if (!t)
        return;
    VEC_FREE(&t->kept);
    VEC_FREE(&t->round);
}

weft_status verify_rounded_eval(weft_diag *dg, verify_rounded *t, const batch_row *rows, int64_t n)
{
    for (int32_t i = 0; i < t->n_part; i++) {
        rounded_part *x = &t->part[i];
        x->bucket = (int32_t)(plan_bucket_for(x->p, n) - x->p->bucket);
    }
    t->n_tok = n;
    t->n_out = 0;
    for (int64_t i = 0; i < n; i++)
        t->n_out += rows[i].out;
    t->held = -1;
    WEFT_TRY(session_eval(dg, t->s, rows, n));
    return put_back(dg, t); /* where the last step had nothing to do */
}
