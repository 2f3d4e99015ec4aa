/* profile.c - runs with the clock on, then sums. */
#include "runtime/engine/profile.h"

#include "runtime/base/clock.h"
#include "runtime/base/vec.h"
#include <stdlib.h>

typedef struct {
    session *s;
    const plan *p;
    const profile_options *opt;
    arena *a;
    batch_row *rows; /* [n_tok_max] */
    plan_parts plans;
    plan_work **work[PLAN_PARTS_MAX]; /* [n_bucket][n_step]: what the timed calls did */
    uint64_t barriers;
    int64_t n_call;
} profiler;

/* ---- running ---- */

/* Which tokens they are makes no difference to the time, but for experts, so they vary. */
static int32_t token_at(const plan *p, int64_t pos)
{
    uint64_t x = (uint64_t)pos * UINT64_C(0x9E3779B97F4A7C15);
    return (int32_t)(p->n_vocab ? (x >> 33) % (uint64_t)p->n_vocab : 0);
}

static void count_work(profiler *r, const plan_call *c)
{
    for (int32_t k = 0; k < r->plans.n_part; k++) {
        const plan *p = r->plans.part[k].p;
        const plan_bucket *b = plan_bucket_for(p, c->n_tok);
        plan_work *work = r->work[k][b - p->bucket];
        for (int32_t i = 0; i < b->n_step; i++) {
            plan_work w = plan_work_of_step(&b->step[i], c);
            work[i].bytes += w.bytes;
            work[i].flops += w.flops;
        }
    }
}

static weft_status call(weft_diag *dg, profiler *r, int64_t pos, int64_t n, bool timed)
{
    for (int64_t i = 0; i < n; i++)
        r->rows[i] = (batch_row){
            .id = token_at(r->p, pos + i), .pos = (int32_t)(pos + i), .out = i + 1 == n};
    WEFT_TRY(session_eval(dg, r->s, r->rows, n));
    if (timed) {
        count_work(r, &(plan_call){.pos = pos, .n_tok = n, .n_out = 1});
        r->barriers += session_barriers(r->s);
        r->n_call++;
    }
    return WEFT_OK;
}

static bool interrupted(const profiler *r)
{
    return r->opt->interrupt && *r->opt->interrupt;
}

/* Tokens [from, to) in calls of at most n_call rows. */
static weft_status feed(weft_diag *dg, profiler *r, int64_t from, int64_t to, int64_t n_call,
                        bool timed)
{
    for (int64_t pos = from; pos < to && !interrupted(r);) {
        int64_t n = to - pos < n_call ? to - pos : n_call;
        WEFT_TRY(call(dg, r, pos, n, timed));
        pos += n;
    }
    return WEFT_OK;
}

/* Hold the first n tokens again; where a ring has lost some, by feeding them once more. */
static weft_status back_to(weft_diag *dg, profiler *r, int64_t n)
{
    if (session_keepable(r->s, 0, n) == n)
        return session_truncate(dg, r->s, 0, n);
    WEFT_TRY(session_truncate(dg, r->s, 0, 0));
    return feed(dg, r, 0, n, r->p->n_tok_max, false);
}

/* ---- sums ---- */

void profile_add(profile_sum *to, const profile_sum *more)
{
    to->seconds += more->seconds;
    to->bytes += more->bytes;
    to->flops += more->flops;
    to->roof += more->roof;
}

static profile_sum sum_of(const plan *p, const profile_limits *most, const plan_step *s,
                          const step_time *t, const plan_work *w)
{
    const peak_rates *peaks = &most->peaks;
    double move = most->bandwidth > 0 ? w->bytes / most->bandwidth : 0;
    const kernel_row *row = kernel_by_symbol(plan_kernel_of(p, s)->name);
    double compute = peaks->n > 0 ? w->flops / peaks->rate[peaks_of(peaks, row)] : 0;
    return (profile_sum){.seconds = clock_seconds(t->ns_busy) / most->threads,
                         .bytes = w->bytes,
                         .flops = w->flops,
                         .roof = move > compute ? move : compute};
}

static void gather(profiler *r, profile_run *out)
{
    VEC(profile_step) steps = {0};
    for (int32_t k = 0; k < r->plans.n_part; k++) {
        const plan *p = r->plans.part[k].p;
        const profile_limits *most = &r->opt->limits[k];
        for (int32_t b = 0; b < p->n_bucket; b++) {
            const step_time *t = session_profile_steps(r->s, k, b);
            for (int32_t i = 0; t && i < p->bucket[b].n_step; i++) {
                if (t[i].calls == 0)
                    continue;
                profile_step x = {.plan = k, .bucket = b, .step = i};
                x.sum = sum_of(p, most, &p->bucket[b].step[i], &t[i], &r->work[k][b][i]);
                profile_add(&out->each[k], &x.sum);
                VEC_PUSH(&steps, x);
            }
        }
        profile_add(&out->all, &out->each[k]);
        out->wait_seconds += clock_seconds(session_wait_ns(r->s, k)) / most->threads;
    }
    out->n_step = (int32_t)steps.n;
    out->step = ARENA_ARRAY(r->a, profile_step, steps.n + 1);
    if (steps.n)
        memcpy(out->step, steps.at, steps.n * sizeof *steps.at);
    VEC_FREE(&steps);
}

static void clear_work(profiler *r)
{
    for (int32_t k = 0; k < r->plans.n_part; k++) {
        const plan *p = r->plans.part[k].p;
        for (int32_t b = 0; b < p->n_bucket; b++)
            memset(r->work[k][b], 0, (size_t)p->bucket[b].n_step * sizeof *r->work[k][b]);
    }
    r->barriers = 0;
    r->n_call = 0;
}

/* Tokens [from, to), once as they are and once timed. */
static weft_status measure(weft_diag *dg, profiler *r, int64_t from, int64_t to, int64_t n_call,
                           profile_run *out)
{
    if (from == to)
        return WEFT_OK;
    WEFT_TRY(feed(dg, r, from, from + (to - from < n_call ? to - from : n_call), n_call, false));
    WEFT_TRY(back_to(dg, r, from)); /* that was to warm up */
    uint64_t start = clock_ns();
    WEFT_TRY(feed(dg, r, from, to, n_call, false));
    out->seconds = clock_seconds(clock_ns() - start);
    WEFT_TRY(back_to(dg, r, from));
    clear_work(r);
    session_profile_begin(r->s);
    start = clock_ns();
    weft_status st = feed(dg, r, from, to, n_call, true);
    out->timed_seconds = clock_seconds(clock_ns() - start);
    session_profile_end(r->s);
    WEFT_TRY(st);
    out->n_tok = session_length(r->s, 0) - from;
    out->n_call = r->n_call;
    out->barriers = r->n_call ? (double)r->barriers / (double)r->n_call : 0;
    gather(r, out);
    return WEFT_OK;
}

/* ---- lines ---- */

static int by_place(const void *a, const void *b)
{
    const profile_line *x = a, *y = b;
    int order = strcmp(x->src->name, y->src->name);
    return order ? order : (x->line > y->line) - (x->line < y->line);
}

static void sum_lines(profile *f, arena *a)
{
    VEC(profile_line) lines = {0};
    for (int part = 0; part < PROFILE_PARTS; part++)
        for (int32_t i = 0; i < f->run[part].n_step; i++) {
            const profile_step *x = &f->run[part].step[i];
            weft_loc loc = profile_step_of(f, x)->loc;
            if (!loc.src)
                continue;
            uint32_t line = source_find(loc.src, loc.begin).line;
            size_t k = 0;
            while (k < lines.n && !(lines.at[k].src == loc.src && lines.at[k].line == line))
                k++;
            if (k == lines.n)
                VEC_PUSH(&lines, ((profile_line){.src = loc.src, .line = line}));
            profile_add(&lines.at[k].part[part], &x->sum);
        }
    f->n_line = (int32_t)lines.n;
    f->line = ARENA_ARRAY(a, profile_line, lines.n + 1);
    if (lines.n) {
        memcpy(f->line, lines.at, lines.n * sizeof *lines.at);
        qsort(f->line, lines.n, sizeof *f->line, by_place);
    }
    VEC_FREE(&lines);
}

static plan_work **room_for(const plan *p, arena *a)
{
    plan_work **work = ARENA_ARRAY(a, plan_work *, (size_t)p->n_bucket);
    for (int32_t b = 0; b < p->n_bucket; b++)
        work[b] = ARENA_ARRAY(a, plan_work, (size_t)p->bucket[b].n_step + 1);
    return work;
}

weft_status profile_make(weft_diag *dg, session *s, const profile_options *opt, arena *a,
                         profile *out)
{
    const plan *p = session_plan_of(s);
    profiler r = {.s = s, .p = p, .opt = opt, .a = a, .plans = session_plans_of(s)};
    profile f = {.p = p, .plans = r.plans, .images = session_images(s)};
    memcpy(f.limits, opt->limits, sizeof f.limits);
    r.rows = ARENA_ARRAY(a, batch_row, (size_t)p->n_tok_max);
    for (int32_t k = 0; k < r.plans.n_part; k++)
        r.work[k] = room_for(r.plans.part[k].p, a);
    int64_t end = opt->n_prompt + opt->n_decode;
    WEFT_TRY(measure(dg, &r, 0, opt->n_prompt, p->n_tok_max, &f.run[PROFILE_PREFILL]));
    WEFT_TRY(measure(dg, &r, opt->n_prompt, end, 1, &f.run[PROFILE_DECODE]));
    WEFT_TRY(session_truncate(dg, s, 0, 0));
    sum_lines(&f, a);
    *out = f;
    return WEFT_OK;
}
