/* verify_bound.c - how far a result may be from the reference, from what it was made of.
 *
 * A step may add an error of its own, and passes on those of its operands that were not put right. The
 * rounded reference rounds as the plan does, so what is left is:
 *
 *   f32 sums: 2^-24 for each of some thousand terms, which cancel; the reference sums in double
 *   rounding to 8 bits of numbers that differ in the last bit: now and then one goes the other way, by
 *     1/127 of the largest of its block
 *   quantised weights as bf16, where activations are: 2^-9 each, which cancel
 *   rounding to two bf16 likewise: 2^-17 each at most, and as much for a product of parts that is left out with F16 weights
 *   storing in f16 or bf16 likewise, where a step is 2^-11 or 2^-8
 *   attention is e to a score: an error of keys comes out several times larger
 *
 * Outputs are held against the reference, which does not round: 8 bits in blocks of 32 cost 0.6 % of a row
 * of normal numbers in each product, in blocks of 256 0.7 %, at worst 1.3 and 3.6 %, and products
 * cancel. */
#include "runtime/engine/verify.h"

#include "runtime/base/vec.h"
#include <math.h>

/* What a step adds by itself; and what all of them come to in an output. */
/* clang-format off */
static const double step_f32 = 2e-5, step_near = 4e-5, step_bf16 = 4e-3,
                    step_quantized = 0.08; /* of a row of one number */
static const double output_f32 = 1e-3, output_bf16 = 0.05, output_q8 = 0.15, output_q8k = 0.25;

static const struct { kform form; double row, output; } kv_bound[] = {
    {KFORM_F16,  1e-4, 2e-2},
    {KFORM_BF16, 5e-4, 0.1},
    {KFORM_Q8,   5e-3, 0.2}, /* a code that goes the other way is 1/119 of its group's largest */
    {KFORM_Q4,   8e-2, 1},   /* 16/119 */
};

/* How much larger an error of the operands may come out. */
static const struct { kop op; double times; } grows[] = {
    {KOP_attend, 5}, {KOP_softmax, 5}, {KOP_exp, 5}, {KOP_rms_norm, 2}, {KOP_layer_norm, 2}, {KOP_div, 2},
};
/* clang-format on */

enum { KV_TYPES = sizeof kv_bound / sizeof *kv_bound, GROWS = sizeof grows / sizeof *grows };

/* The coarsest form of a plan's keys. */
static kform kv_form(const plan *p)
{
    kpolicy tiers = plan_tiers(&p->tiers, p->kv);
    return tiers.tier[tiers.n_tier - 1].key;
}

static double kv_row_bound(kform f)
{
    for (int i = 0; i < KV_TYPES; i++)
        if (kv_bound[i].form == f)
            return kv_bound[i].row;
    return 0;
}

static double growth(kop op)
{
    for (int i = 0; i < GROWS; i++)
        if (grows[i].op == op)
            return grows[i].times;
    return 1;
}

/* ---- errors on their way ---- */

/* A place that holds a result, and the error it may have. */
typedef struct {
    plan_space space;
    int64_t offset;
    double error;
} place;

typedef struct {
    const plan *p;
    verify_seen *seen;
    const void *ctx;
    VEC(place) places;
    double *cell; /* [n_cell] */
} flow;

/* The newest result that begins at this address or, where an operand is a part of one, closest before
 * it. */
static double error_at(const flow *f, const plan_operand *o)
{
    const place *best = NULL;
    for (size_t i = 0; i < f->places.n; i++) {
        const place *at = &f->places.at[i];
        if (at->space == o->space && at->offset <= o->offset &&
            (!best || at->offset > best->offset))
            best = at;
    }
    return best ? best->error : 0;
}

static void set_error(flow *f, const plan_operand *o, double error)
{
    for (size_t i = 0; i < f->places.n; i++) {
        place *at = &f->places.at[i];
        if (at->space == o->space && at->offset == o->offset) {
            at->error = error;
            return;
        }
    }
    VEC_PUSH(&f->places, ((place){o->space, o->offset, error}));
}

static bool is_memory(plan_space s)
{
    return s == SPACE_ARENA || s == SPACE_LOCAL || s == SPACE_TILE;
}

/* Four numbers of a row may go the other way: each is off by a 127th of the largest, which is some 2.5
 * times as large as others are. */
static double rounding_error(const plan *p, const plan_step *s)
{
    const plan_kernel *k = plan_kernel_of(p, s);
    kact act = k->act;
    if (!act_rounds(act))
        return step_f32;
    if (act_rounds_near(act))
        return step_near;
    if (act_rounds_bf16(act))
        return step_bf16;
    return step_quantized / sqrt(fmax((double)kop_size(s->n, kop_row_of(k->op)->x_width), 1));
}

static double step_error(flow *f, const plan_step *s)
{
    const plan_kernel *row = plan_kernel_of(f->p, s);
    bool append = row->op == KOP_append, quantize = row->op == KOP_quantize;
    double in = 0;
    for (int i = 0; i < s->n_in; i++)
        if (is_memory(s->in[i].space))
            in += error_at(f, &s->in[i]);
    if (append) {
        in += kv_row_bound(kv_form(f->p));
        if (in > f->cell[s->cell])
            f->cell[s->cell] = in;
        return in;
    }
    if (s->cell >= 0)
        in += f->cell[s->cell];
    if (row->op == KOP_route) /* a near tie may go the other way */
        in = in < 1e-3 ? in * 10 : 1;
    double own = quantize ? step_f32 : rounding_error(f->p, s);
    double out = growth(row->op) * in + own;
    return out < 1 ? out : 1;
}

static void walk(flow *f, const plan_bucket *b, double (*bound)[K_OUT_MAX])
{
    for (int32_t i = 0; i < b->n_step; i++) {
        const plan_step *s = &b->step[i];
        double error = step_error(f, s);
        for (int k = 0; k < s->n_out; k++) {
            bool right =
                s->out[k].space == SPACE_ARENA && s->value[k] >= 0 && f->seen(f->ctx, s->value[k]);
            bound[i][k] = error;
            set_error(f, &s->out[k], right ? 0 : error);
        }
    }
}

double (*verify_bounds(const plan *p, int32_t bucket, verify_seen *seen, const void *ctx,
                       arena *a))[K_OUT_MAX]
{
    const plan_bucket *b = &p->bucket[bucket];
    double(*bound)[K_OUT_MAX] = arena_alloc_array(a, (size_t)b->n_step, sizeof *bound);
    flow f = {.p = p, .seen = seen, .ctx = ctx};
    f.cell = ARENA_ARRAY(a, double, (size_t)p->n_cell + 1);
    /* Cells hold rows that other buckets wrote, so each is walked for them first. */
    for (int32_t i = 0; i < p->n_bucket; i++) {
        arena *scratch = arena_create();
        walk(&f, &p->bucket[i],
             arena_alloc_array(scratch, (size_t)p->bucket[i].n_step, sizeof *bound));
        arena_destroy(scratch);
        f.places.n = 0;
    }
    walk(&f, b, bound);
    VEC_FREE(&f.places);
    return bound;
}

static double output_of(kact act)
{
    if (!act_rounds(act) || act_rounds_near(act))
        return output_f32;
    if (act_rounds_bf16(act))
        return output_bf16;
    return act_block(act) > 32 ? output_q8k : output_q8;
}

double verify_output_bound(const plan_parts *p)
{
    double bound = output_f32;
    const plan *with_cells = NULL; /* all of them store the same */
    for (int32_t k = 0; k < p->n_part; k++) {
        const plan *one = p->part[k].p;
        with_cells = one->n_cell ? one : with_cells;
        for (int32_t i = 0; i < one->n_kernel; i++) {
            double own = output_of(one->kernel[i].act);
            bound = own > bound ? own : bound;
        }
    }
    for (int i = 0; i < KV_TYPES && with_cells; i++)
        bound += kv_bound[i].form == kv_form(with_cells) ? kv_bound[i].output : 0;
    return bound;
}

const char *verify_reason(const plan *p, const plan_step *s)
{
    const plan_kernel *row = plan_kernel_of(p, s);
    if (act_rounds_bf16(row->act))
        return "activations rounded to bf16";
    if (act_rounds_near(row->act))
        return "activations rounded to two bf16";
    if (act_rounds(row->act))
        return act_block(row->act) > 32 ? "activations rounded to 8 bits in blocks of 256"
                                        : "activations rounded to 8 bits in blocks of 32";
    static const char *const stored[KFORM_COUNT] = {
#define FORM(name, text, ...) [KFORM_##name] = "state stored in " text,
#include "kernels/kforms.def"
#undef FORM
    };
    return s->cell >= 0 && kv_form(p) != KFORM_F32 ? stored[kv_form(p)] : NULL;
}
