/* verify.c - running both, looking at the plan's values while they are there, and comparing. */
#include "runtime/engine/verify.h"

#include "runtime/base/mem.h"
#include <math.h>
#include <stdlib.h>

enum { FIRST_CALL = 4 }; /* rows; the only call in which passes are compared */
static const double passes_bound = 1e-4;

/* Where a value of the graph is among the reference's steps. */
typedef struct {
    int32_t step; /* -1: nowhere */
    int32_t out;
} ref_place;

/* A part of the model, as the plan and the reference have it. */
typedef struct {
    const plan *p, *ref;
    ref_place *place; /* [n_place] */
    int32_t n_place;
    int32_t *index;              /* [n_place]: into the values of the report, or -1 */
    double (**bound)[K_OUT_MAX]; /* [n_bucket] */
} verified_part;

typedef struct {
    const verify_options *opt;
    arena *a;
    verify_report *r;
    plan_parts p;
    verified_part part[PLAN_PARTS_MAX];
    session *ref, *forced, *free_run, *original;
    session *rounded_run; /* NULL: nothing is rounded, the reference is its own rounded one */
    verify_rounded *rounded;
    int64_t n_tok, n_out; /* of the call at hand */
    char *copy[2];        /* of a value: what is wanted and what came */
    size_t copy_bytes[2];
} verifier;

/* ---- where values are ---- */

/* How many of the rows that out_pitch counts make up a row of the call. */
static int64_t pitch_rows(const plan *p, const plan_step *s)
{
    return s->per_row * kop_size(s->n, kop_row_of(plan_kernel_of(p, s)->op)->y_vectors);
}

/* Rows of lora_down have room for as many adapters as a mix may have and hold those that it has; the rest is left as it
 * was. So it is not looked at: what lora_up makes of it is. */
static bool is_compared(const plan *p, const plan_step *s)
{
    return plan_kernel_of(p, s)->op != KOP_lora_down;
}

static void find_places(verified_part *x, arena *a)
{
    const plan_bucket *b = x->ref->bucket;
    for (int32_t i = 0; i < b->n_step; i++)
        for (int k = 0; k < b->step[i].n_out; k++)
            if (b->step[i].value[k] >= x->n_place)
                x->n_place = b->step[i].value[k] + 1;
    x->place = ARENA_ARRAY(a, ref_place, (size_t)x->n_place + 1);
    x->index = ARENA_ARRAY(a, int32_t, (size_t)x->n_place + 1);
    for (int32_t i = 0; i < x->n_place; i++) {
        x->place[i].step = -1;
        x->index[i] = -1;
    }
    for (int32_t i = 0; i < b->n_step; i++)
        for (int k = 0; k < b->step[i].n_out; k++)
            if (b->step[i].value[k] >= 0 && is_compared(x->ref, &b->step[i]))
                x->place[b->step[i].value[k]] = (ref_place){i, k};
}

static bool has_place(const void *ctx, int32_t id)
{
    const verified_part *x = ctx;
    return id >= 0 && id < x->n_place && x->place[id].step >= 0;
}

/* A result: rows of `width` elements, in parts that are `pitch` bytes apart. */
typedef struct {
    int64_t offset; /* in the arena */
    char *at;       /* a copy of it */
    int64_t n_row, width, parts, pitch;
    bool ids;
} view;

static view view_of(const verifier *v, const plan *p, const plan_step *step, int out)
{
    view x = {.offset = step->out[out].offset,
              .n_row = plan_step_rows(step, v->n_tok, v->n_out, 1) / step->per_row,
              .parts = pitch_rows(p, step),
              .pitch = step->out_pitch[out],
              .ids = step->out[out].type == DT_I32};
    x.width = x.parts * x.pitch / 4; /* right where rows have no gaps */
    return x;
}

/* From its first to its last element, with what is between rows. */
static size_t view_bytes(const view *x)
{
    int64_t n = x->n_row * x->parts;
    return n > 0 ? (size_t)((n - 1) * x->pitch + x->width / x->parts * 4) : 0;
}

static weft_status view_read(weft_diag *dg, verifier *v, const session *s, int32_t part, int which,
                             view *x)
{
    size_t bytes = view_bytes(x);
    if (bytes > v->copy_bytes[which]) {
        v->copy[which] = mem_realloc(v->copy[which], bytes);
        v->copy_bytes[which] = bytes;
    }
    x->at = v->copy[which];
    return session_arena_read(dg, s, part, x->offset, x->at, bytes);
}

static void *element(const view *x, int64_t row, int64_t col)
{
    int64_t part = x->width / x->parts;
    return x->at + (row * x->parts + col / part) * x->pitch + col % part * 4;
}

static double number_at(const view *x, int64_t row, int64_t col)
{
    const void *p = element(x, row, col);
    float f;
    int32_t i;
    memcpy(&f, p, 4);
    memcpy(&i, p, 4);
    return x->ids ? (double)i : (double)f;
}

/* ---- comparing ---- */

typedef struct {
    double error;
    int64_t n_row_bad, col_min, col_last;
    verify_element worst;
    bool not_finite;
} difference;

/* Of what is a number: one NaN among weights makes no measure of the others. */
static double row_square(const view *x, int64_t row)
{
    double sum = 0;
    for (int64_t c = 0; c < x->width; c++) {
        double e = number_at(x, row, c);
        sum += isfinite(e) ? e * e : 0;
    }
    return sum;
}

/* One row; adds to d. A difference of ids counts whole, whatever the numbers are. */
static void compare_row(const view *want, const view *got, int64_t row, double floor, double bound,
                        difference *d)
{
    double scale = fmax(row_square(want, row), floor), sum = 0, far = 0;
    double size = sqrt(scale / (double)want->width);
    verify_element worst = {.row = row};
    for (int64_t c = 0; c < want->width; c++) {
        double a = number_at(want, row, c), b = number_at(got, row, c), e = fabs(a - b);
        if (want->ids && e > 0)
            e = size;
        if (!isfinite(b) && isfinite(a)) {
            d->not_finite = true;
            e = INFINITY;
        } else if (!isfinite(a)) {
            continue; /* the reference has no number either */
        }
        sum += e * e;
        if (e > 3 * bound * size) {
            d->col_min = c < d->col_min ? c : d->col_min;
            d->col_last = c > d->col_last ? c : d->col_last;
        }
        if (e > far) {
            far = e;
            worst.col = c, worst.want = a, worst.got = b;
        }
    }
    double error = sum > 0 ? sqrt(sum / fmax(scale, 1e-300)) : 0;
    d->n_row_bad += error > bound;
    if (error > d->error) {
        d->error = error;
        d->worst = worst;
    }
}

static difference compare(const view *want, const view *got, double bound)
{
    difference d = {.col_min = INT64_MAX, .col_last = -1};
    double all = 0;
    for (int64_t r = 0; r < want->n_row; r++)
        all += row_square(want, r);
    double floor = want->n_row ? all / (double)want->n_row * 1e-4 : 0;
    for (int64_t r = 0; r < want->n_row; r++)
        compare_row(want, got, r, isfinite(floor) ? floor : 0, bound, &d);
    return d;
}

static void put_right(const view *want, const view *got)
{
    for (int64_t r = 0; r < want->n_row; r++)
        for (int64_t c = 0; c < want->width; c++)
            memcpy(element(got, r, c), element(want, r, c), 4);
}

/* ---- while the plan runs ---- */

/* Which result of which step is looked at. */
typedef struct {
    int32_t part, bucket, step;
    int out;
} spot;

static verify_value *value_for(verifier *v, const spot *at, int32_t id, double bound)
{
    verify_report *r = v->r;
    int32_t *index = &v->part[at->part].index[id];
    if (*index < 0) {
        *index = r->n_value;
        r->value[r->n_value++] = (verify_value){.part = at->part,
                                                .bucket = at->bucket,
                                                .step = at->step,
                                                .value = id,
                                                .bound = bound,
                                                .col_last = -1};
    }
    return &r->value[*index];
}

static void note_error(verifier *v, verify_value *x, const spot *at, double bound, const view *want,
                       const difference *d)
{
    x->n_call++;
    /* Buckets may have different bounds: what counts is how far over its own an error is. */
    if (x->n_call > 1 && d->error / bound <= x->error / x->bound)
        return;
    int32_t n_call = x->n_call, id = x->value;
    double drift = x->drift;
    *x = (verify_value){.part = at->part,
                        .bucket = at->bucket,
                        .step = at->step,
                        .value = id,
                        .n_call = n_call,
                        .bound = bound,
                        .error = d->error,
                        .drift = drift,
                        .n_row = want->n_row,
                        .width = want->width,
                        .n_row_bad = d->n_row_bad,
                        .col_min = d->col_last < 0 ? 0 : d->col_min,
                        .col_last = d->col_last,
                        .worst = d->worst,
                        .not_finite = d->not_finite};
    if (v->r->first_bad < 0 && !(d->error <= bound))
        v->r->first_bad = (int32_t)(x - v->r->value);
}

static weft_status look_at(weft_diag *dg, verifier *v, session *s, const spot *where)
{
    const verified_part *part = &v->part[where->part];
    const plan_step *step = &part->p->bucket[where->bucket].step[where->step];
    int32_t id = step->value[where->out];
    if (step->out[where->out].space != SPACE_ARENA || !has_place(part, id))
        return WEFT_OK;
    const ref_place *at = &part->place[id];
    session *against = s == v->forced && v->rounded_run ? v->rounded_run : v->ref;
    view want = view_of(v, part->ref, &part->ref->bucket->step[at->step], at->out);
    view got = view_of(v, part->p, step, where->out);
    double bound = part->bound[where->bucket][where->step][where->out];
    got.width = want.width; /* rows of the plan may have gaps */
    if (want.n_row != got.n_row || want.width % got.parts != 0)
        return WEFT_OK;
    WEFT_TRY(view_read(dg, v, against, where->part, 0, &want));
    WEFT_TRY(view_read(dg, v, s, where->part, 1, &got));
    verify_value *x = value_for(v, where, id, bound);
    difference d = compare(&want, &got, bound);
    if (s == v->free_run) {
        x->drift = fmax(x->drift, d.error);
        return WEFT_OK;
    }
    note_error(v, x, where, bound, &want, &d);
    put_right(&want, &got);
    return session_arena_write(dg, s, where->part, got.offset, got.at, view_bytes(&got));
}

typedef struct {
    verifier *v;
    session *s;
    int32_t part;
} watcher;

static weft_status after_phase(void *ctx, weft_diag *dg, int32_t bucket, int32_t phase)
{
    const watcher *w = ctx;
    const plan_bucket *b = &w->v->part[w->part].p->bucket[bucket];
    for (int32_t i = 0; i < b->n_item; i++) {
        const plan_item *it = &b->item[i];
        if (it->phase != phase)
            continue;
        for (int32_t k = it->first; k < it->first + it->n_step; k++)
            for (int out = 0; out < b->step[k].n_out; out++)
                WEFT_TRY(look_at(dg, w->v, w->s, &(spot){w->part, bucket, k, out}));
    }
    return WEFT_OK;
}

/* w: a watcher for each part. */
static void watch(verifier *v, session *s, watcher *w)
{
    for (int32_t i = 0; i < v->p.n_part; i++) {
        w[i] = (watcher){v, s, i};
        session_watch(s, i, after_phase, &w[i]);
    }
}

/* ---- outputs ---- */

static view output_view(session *s, const plan *p, int32_t i)
{
    view x = {.parts = 1};
    const float *data = NULL;
    const plan_output *o = &p->output[i];
    if (session_output(s, o->name, o->index, &data, &x.n_row, &x.width))
        x.at = (char *)(uintptr_t)data; /* only read */
    x.pitch = x.width * 4;
    return x;
}

/* log of the sum of e^x, and the likeliest. */
static double log_sum(const float *x, int64_t n, int64_t *out_top)
{
    double largest = -INFINITY, sum = 0;
    *out_top = 0;
    for (int64_t i = 0; i < n; i++)
        if ((double)x[i] > largest) {
            largest = (double)x[i];
            *out_top = i;
        }
    for (int64_t i = 0; i < n; i++)
        sum += exp((double)x[i] - largest);
    return largest + log(sum);
}

static void compare_logits(verifier *v, const view *want, const view *got)
{
    verify_report *r = v->r;
    for (int64_t row = 0; row < want->n_row; row++) {
        const float *a = element(want, row, 0), *b = element(got, row, 0);
        int64_t top_a, top_b;
        double za = log_sum(a, want->width, &top_a), zb = log_sum(b, want->width, &top_b), kl = 0;
        if (!isfinite(za)) /* the reference predicts nothing */
            continue;
        for (int64_t i = 0; i < want->width; i++)
            kl += exp((double)a[i] - za) * (((double)a[i] - za) - ((double)b[i] - zb));
        r->n_row++;
        r->n_top_same += top_a == top_b;
        r->kl_mean += kl; /* divided at the end */
        r->kl_max = fmax(r->kl_max, kl);
    }
}

static void compare_outputs(verifier *v)
{
    for (int32_t i = 0; i < v->r->n_output; i++) {
        verify_output *o = &v->r->output[i];
        view want = output_view(v->ref, v->opt->ref, i);
        view got = output_view(v->free_run, v->opt->p, i);
        if (!want.at || !got.at || want.n_row != got.n_row || want.width != got.width) {
            o->error = INFINITY;
            continue;
        }
        o->error = fmax(o->error, compare(&want, &got, o->bound).error);
        if (strcmp(o->name, "logits") == 0)
            compare_logits(v, &want, &got);
        if (!v->original)
            continue;
        view before = output_view(v->original, v->opt->original, i);
        bool same = before.at && before.n_row == want.n_row && before.width == want.width;
        o->passes = same ? fmax(o->passes, compare(&before, &want, passes_bound).error) : INFINITY;
    }
}

/* ---- the whole ---- */

static weft_status open_session(weft_diag *dg, const verify_options *o, const plan *p,
                                const plan_parts *parts, const session_options *run, session **out)
{
    session_options how = *run;
    how.parts = parts;
    if (p != o->p && how.dev && strcmp(how.dev->kind->name, p->backend) != 0)
        how.dev = NULL; /* the reference is the CPU's */
    WEFT_TRY(session_create(dg, p, o->src, &how, out));
    return o->prepare ? o->prepare(o->prepare_ctx, dg, p, *out) : WEFT_OK;
}

static weft_status open_sessions(weft_diag *dg, verifier *v)
{
    const verify_options *o = v->opt;
    session_options run = o->run;
    run.check_cache = true; /* no kernel is blamed for a damaged file */
    run.maker = NULL;       /* code is what is verified */
    WEFT_TRY(open_session(dg, o, o->ref, o->ref_parts, &run, &v->ref));
    if (verify_rounds(&v->p)) {
        plan_parts rounded = plan_parts_or(o->rounded_parts, o->rounded);
        WEFT_TRY(open_session(dg, o, o->rounded, o->rounded_parts, &run, &v->rounded_run));
        v->rounded = verify_rounded_create(&v->p, &rounded, v->rounded_run, v->a);
    }
    if (o->original)
        WEFT_TRY(open_session(dg, o, o->original, NULL, &run, &v->original));
    run.maker = o->run.maker;
    WEFT_TRY(open_session(dg, o, o->p, o->run.parts, &run, &v->forced));
    for (int32_t i = 0; i < v->p.n_part; i++)
        run.w[i] = session_weights(v->forced, i);
    return open_session(dg, o, o->p, o->run.parts, &run, &v->free_run);
}

static void close_sessions(verifier *v)
{
    session_destroy(v->ref);
    session_destroy(v->rounded_run);
    verify_rounded_destroy(v->rounded);
    session_destroy(v->original);
    session_destroy(v->free_run);
    session_destroy(v->forced);
    for (int i = 0; i < 2; i++)
        mem_free(v->copy[i]);
}

/* How many of n tokens the call at pos takes: a few, then many, then a few again behind them, then one at
 * a time: kernels differ between them. */
static int64_t call_length(int64_t n, int64_t pos, int64_t n_tok_max)
{
    int64_t behind = n >= 12 ? 7 : n > 4 ? 4 : n - 1, left = n - pos, len = 1;
    if (left > behind)
        len = pos == 0 && left - behind > FIRST_CALL ? FIRST_CALL : left - behind;
    else if (left > 4)
        len = left - 4;
    return len < n_tok_max ? len : n_tok_max;
}

static weft_status run_call(weft_diag *dg, verifier *v, int64_t pos, int64_t n)
{
    batch_row *rows = ARENA_ARRAY(v->a, batch_row, (size_t)n);
    v->n_tok = n;
    v->n_out = 0;
    for (int64_t i = 0; i < n; i++) { /* every second one is asked for, and the last */
        bool out = (n - i) % 2 == 1;
        rows[i] = (batch_row){.id = v->opt->ids[pos + i], .pos = (int32_t)(pos + i), .out = out};
        v->n_out += out;
    }
    WEFT_TRY(session_eval(dg, v->ref, rows, n));
    if (v->original)
        WEFT_TRY(session_eval(dg, v->original, rows, n));
    if (v->rounded)
        WEFT_TRY(verify_rounded_eval(dg, v->rounded, rows, n));
    WEFT_TRY(session_eval(dg, v->forced, rows, n));
    WEFT_TRY(session_eval(dg, v->free_run, rows, n));
    compare_outputs(v);
    session_destroy(v->original); /* once is enough: it is slow */
    v->original = NULL;
    return WEFT_OK;
}

static int32_t layer_of(const verifier *v, const verify_value *x)
{
    return v->part[x->part].p->bucket[x->bucket].step[x->step].layer;
}

static void finish(verifier *v)
{
    verify_report *r = v->r;
    for (int32_t k = 0; k < v->p.n_part; k++)
        for (int32_t i = 0; i < v->part[k].n_place; i++)
            r->n_hidden += v->part[k].place[i].step >= 0 && v->part[k].index[i] < 0;
    for (int32_t i = 0; i < r->n_value; i++) {
        int32_t layer = layer_of(v, &r->value[i]);
        r->n_layer = layer >= r->n_layer ? layer + 1 : r->n_layer;
    }
    r->layer_drift = ARENA_ARRAY(v->a, double, (size_t)r->n_layer + 1);
    for (int32_t i = 0; i < r->n_layer; i++)
        r->layer_drift[i] = -1;
    for (int32_t i = 0; i < r->n_value; i++) {
        int32_t layer = layer_of(v, &r->value[i]);
        if (layer >= 0)
            r->layer_drift[layer] = r->value[i].drift;
    }
    if (r->n_row)
        r->kl_mean /= (double)r->n_row;
}

static void begin(verifier *v)
{
    const plan *p = v->opt->p;
    plan_parts ref = plan_parts_or(v->opt->ref_parts, v->opt->ref);
    size_t n_place = 0;
    v->p = plan_parts_or(v->opt->run.parts, p);
    WEFT_ASSERT(ref.n_part == v->p.n_part);
    for (int32_t k = 0; k < ref.n_part; k++) {
        verified_part *x = &v->part[k];
        *x = (verified_part){.p = v->p.part[k].p, .ref = ref.part[k].p};
        find_places(x, v->a);
        n_place += (size_t)x->n_place;
        x->bound = arena_alloc_array(v->a, (size_t)x->p->n_bucket, sizeof *x->bound);
        for (int32_t i = 0; i < x->p->n_bucket; i++)
            x->bound[i] = verify_bounds(x->p, i, has_place, x, v->a);
    }
    v->r->value = ARENA_ARRAY(v->a, verify_value, n_place + 1);
    v->r->n_output = p->n_output;
    v->r->output = ARENA_ARRAY(v->a, verify_output, (size_t)p->n_output + 1);
    for (int32_t i = 0; i < p->n_output; i++)
        v->r->output[i] = (verify_output){.name = p->output[i].name,
                                          .index = p->output[i].index,
                                          .bound = verify_output_bound(&v->p),
                                          .passes_bound = passes_bound};
}

weft_status verify_run(weft_diag *dg, const verify_options *opt, arena *a, verify_report *out)
{
    verify_report r = {.first_bad = -1};
    verifier v = {.opt = opt, .a = a, .r = &r};
    for (int i = 0; i < 2; i++) /* they grow in a watch (device.h) */
        v.copy[i] = mem_alloc(v.copy_bytes[i] = PLAN_ALIGN);
    begin(&v);
    weft_status st = open_sessions(dg, &v);
    if (st == WEFT_OK) {
        watcher forced[PLAN_PARTS_MAX], free_run[PLAN_PARTS_MAX];
        watch(&v, v.forced, forced);
        watch(&v, v.free_run, free_run);
        for (int64_t pos = 0, n; pos < opt->n_id && st == WEFT_OK; pos += n) {
            n = call_length(opt->n_id, pos, opt->p->n_tok_max);
            st = run_call(dg, &v, pos, n);
        }
    }
    close_sessions(&v);
    if (st != WEFT_OK)
        return st;
    finish(&v);
    *out = r;
    return WEFT_OK;
}

bool verify_passed(const verify_report *r)
{
    bool good = r->first_bad < 0;
    for (int32_t i = 0; i < r->n_output; i++)
        good = good && r->output[i].error <= r->output[i].bound &&
               r->output[i].passes <= r->output[i].passes_bound;
    return good;
}
