/* test_exec.c - the suite of runtime/exec/exec_*.c: a plan made by hand, with two buckets that go about
 * it in different ways, run by all numbers of threads.
 *
 *     x = table[token];  h = rms_norm(x);  a = silu(h Wg) * (h Wu);  x = x + a Wd;  out = x[rows] Wo
 *
 * The bucket for one row has every thread compute h for itself and keeps g, u and y in tiles; the other
 * has h in the arena and a phase of its own for it. x is changed in place, so that a unit which is
 * computed twice, or not at all, shows. Kernels are the portable ones, whose bits depend neither on
 * tiles nor on rows. */
#include "runtime/exec/cuda_driver.h"
#include "runtime/exec/device.h"
#include "runtime/exec/pool.h"
#include "tests/base/kernel_list.h"
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

enum {
    V = 31,
    D = 48,
    FF = 292, /* 37 tiles, the last one half empty: more than one range of GRAIN in a share */
    TILE = 8,
    GRAIN = 2,
    ROWS = 8,
    STEPS = 9,
    /* Constants, in floats. */
    AT_TABLE = 0,
    AT_G = AT_TABLE + V * D,
    AT_U = AT_G + FF * D,
    AT_D = AT_U + FF * D,
    AT_O = AT_D + D * FF,
    CONSTS = AT_O + V * D,
    /* The arena, in floats for ROWS rows. */
    AT_X = 0,
    AT_A = AT_X + ROWS * D,
    AT_TAKEN = AT_A + ROWS * FF + 8,
    AT_OUT = AT_TAKEN + ROWS * D,
    AT_H = AT_OUT + ROWS * V + 8,
    ARENA = AT_H + ROWS * D,
    /* A thread's memory: h of one row, then two tiles. */
    LOCAL_H = 0,
    LOCAL_G = LOCAL_H + D,
    LOCAL_U = LOCAL_G + ROWS * TILE * GRAIN,
    LOCAL = LOCAL_U + ROWS * TILE * GRAIN,
};

typedef struct {
    _Alignas(PLAN_ALIGN) float consts[CONSTS];
    plan_step step[2][STEPS];
    plan_item item[2][STEPS];
    plan_operand place[2];
    plan_output output;
    plan_bucket bucket[2];
    kernel_list kernels;
    plan p;
} model;

/* A bucket being made. */
typedef struct {
    plan_bucket *b;
    plan_step *step;
    plan_item *item;
    kernel_list *kernels;
} maker;

/* ---- the plan ---- */

static plan_operand at(plan_space space, int64_t floats)
{
    return (plan_operand){.space = space, .type = DT_F32, .offset = floats * 4};
}

static plan_step *add_step(maker *m, const char *op, plan_rows rows, int64_t cols)
{
    plan_step *s = &m->step[m->b->n_step++];
    ck_assert(m->b->n_step <= STEPS);
    *s = (plan_step){.kernel = kernel_list_select(m->kernels, backend_cpu_find("c"), kop_find(op),
                                                  m->b->n_tok_max),
                     .rows = rows,
                     .per_row = 1,
                     .cols = cols,
                     .tile = cols ? TILE : 0,
                     .cell = -1,
                     .layer = -1,
                     .value = {-1, -1},
                     .n_out = 1};
    return s;
}

/* The steps from `first` on. */
static void add_item(maker *m, int32_t first, int32_t phase, bool each)
{
    m->item[m->b->n_item++] = (plan_item){.first = first,
                                          .n_step = m->b->n_step - first,
                                          .phase = phase,
                                          .per_thread = each,
                                          .grain = each ? 0 : GRAIN};
    m->b->n_phase = phase + 1;
}

static void add_linear(maker *m, plan_rows rows, plan_operand x, int64_t n, int64_t w,
                       plan_operand out, int64_t rows_w)
{
    plan_step *s = add_step(m, "linear", rows, rows_w);
    s->in[0] = x;
    s->in[1] = at(SPACE_CONST, w);
    s->n_in = 2;
    s->out[0] = out;
    s->n[1] = rows_w;
    s->n[2] = n;
    s->pitch[0] = s->pitch[1] = n * 4;
    s->out_pitch[0] = (out.space == SPACE_TILE ? TILE * GRAIN : rows_w) * 4;
}

/* Over rows of `width`: the n_code instructions from `code` on. */
static void add_map(maker *m, int32_t code, int32_t n_code, plan_operand x, plan_operand y,
                    plan_operand out, int64_t width)
{
    plan_step *s = add_step(m, "map", ROWS_T, width);
    const plan_operand in[2] = {x, y};
    for (int i = 0; i < 2; i++) {
        int64_t row = in[i].space == SPACE_TILE ? TILE * GRAIN : width;
        s->in[i] = in[i];
        s->pitch[i] = row * 4;
        s->stride[i][0] = row;
        s->stride[i][1] = 1;
    }
    s->n_in = 2;
    s->out[0] = out;
    s->out_pitch[0] = width * 4;
    s->n[1] = s->n[2] = width;
    s->word[0] = 1;
    s->code = code;
    s->n_code = n_code;
}

static void add_norm(maker *m, plan_operand out)
{
    plan_step *s = add_step(m, "rms_norm", ROWS_T, 0);
    s->in[0] = at(SPACE_ARENA, AT_X);
    s->n_in = 1;
    s->out[0] = out;
    s->pitch[0] = s->out_pitch[0] = D * 4;
    s->n[1] = s->n[3] = 1;
    s->n[2] = D;
    s->f[0] = 1e-5;
}

static void add_embed(maker *m, plan_operand out)
{
    plan_step *s = add_step(m, "embed", ROWS_T, 0);
    s->in[0] = at(SPACE_CONST, AT_TABLE);
    s->in[1] = (plan_operand){.space = SPACE_IO, .type = DT_I32, .id = IO_TOKENS};
    s->n_in = 2;
    s->out[0] = out;
    s->pitch[0] = s->out_pitch[0] = D * 4;
    s->n[1] = D;
    s->n[2] = V;
}

static void add_take(maker *m, plan_operand x, plan_operand out)
{
    plan_step *s = add_step(m, "take_rows", ROWS_R, 0);
    s->in[0] = x;
    s->n_in = 1;
    s->out[0] = out;
    s->pitch[0] = s->out_pitch[0] = D * 4;
    s->n[1] = D;
}

static void make_bucket(maker *m, plan_operand out)
{
    bool few = m->b->n_tok_max == 1;
    int32_t phase = 0;
    plan_operand h = few ? at(SPACE_LOCAL, LOCAL_H) : at(SPACE_ARENA, AT_H);
    plan_operand x = at(SPACE_ARENA, AT_X), a = at(SPACE_ARENA, AT_A);
    plan_operand taken = at(SPACE_ARENA, AT_TAKEN);
    plan_operand g = at(SPACE_TILE, LOCAL_G), u = at(SPACE_TILE, LOCAL_U);
    add_embed(m, x);
    add_item(m, 0, phase++, false);
    add_norm(m, h);
    add_item(m, 1, few ? phase : phase++, few);
    add_linear(m, ROWS_T, h, D, AT_G, g, FF);
    add_linear(m, ROWS_T, h, D, AT_U, u, FF);
    add_map(m, 0, 5, g, u, a, FF);
    add_item(m, 2, phase++, false);
    add_linear(m, ROWS_T, a, FF, AT_D, g, D);
    add_map(m, 5, 4, x, g, x, D);
    add_item(m, 5, phase++, false);
    add_take(m, x, taken);
    add_item(m, 7, phase++, false);
    add_linear(m, ROWS_R, taken, D, AT_O, out, V);
    add_item(m, 8, phase++, false);
}

static const kinstr code[] = {
    {.op = MAP_load, .to = 0, .at = {0}},   {.op = MAP_load, .to = 1, .at = {1}},
    {.op = MAP_silu, .to = 0, .at = {0}},   {.op = MAP_mul, .to = 0, .at = {0, 1}},
    {.op = MAP_store, .to = 0, .at = {0}},

    {.op = MAP_load, .to = 0, .at = {0}},   {.op = MAP_load, .to = 1, .at = {1}},
    {.op = MAP_add, .to = 0, .at = {0, 1}}, {.op = MAP_store, .to = 0, .at = {0}},
};

static model *model_create(void)
{
    void *block = NULL;
    ck_assert_int_eq(posix_memalign(&block, PLAN_ALIGN, sizeof(model)), 0);
    memset(block, 0, sizeof(model));
    model *m = block;
    uint32_t seed = 1;
    for (int i = 0; i < CONSTS; i++) {
        seed = seed * 1664525u + 1013904223u;
        m->consts[i] = (float)(int32_t)seed * 0x1p-33f;
    }
    m->output = (plan_output){.name = "out", .index = -1, .rows = ROWS_R, .width = V};
    m->place[0] = at(SPACE_ARENA, AT_H);
    m->place[1] = at(SPACE_ARENA, AT_OUT);
    for (int i = 0; i < 2; i++) {
        m->bucket[i] = (plan_bucket){.n_tok_max = i ? ROWS : 1,
                                     .step = m->step[i],
                                     .item = m->item[i],
                                     .output = &m->place[i]};
        make_bucket(&(maker){&m->bucket[i], m->step[i], m->item[i], &m->kernels}, m->place[i]);
    }
    m->p = (plan){.model = "hand",
                  .entry = "decode",
                  .n_tok_max = ROWS,
                  .n_out_max = ROWS,
                  .n_seq_max = 1,
                  .n_kernel = m->kernels.n,
                  .kernel = m->kernels.at,
                  .n_bucket = 2,
                  .bucket = m->bucket,
                  .n_output = 1,
                  .output = &m->output,
                  .code = code,
                  .n_code = COUNT_OF(code),
                  .consts = m->consts,
                  .const_bytes = sizeof m->consts,
                  .arena_bytes = ARENA * 4,
                  .local_bytes = LOCAL * 4,
                  .scratch_bytes = MAP_REGS_MAX * MAP_REG_ELEMS * 4};
    return m;
}

static const device_kind *const cpu = &device_kind_cpu;

static exec *load(weft_diag *dg, const model *m, int threads)
{
    exec *e = NULL;
    device_load what = {.p = &m->p, .threads = threads};
    ck_assert_int_eq(cpu->load(dg, device_cpu(), &what, &e), WEFT_OK);
    return e;
}

/* ---- the same in plain loops ---- */

static double dot(const float *w, const double *x, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += w[i] * x[i];
    return sum;
}

static void plain(const model *m, int token, double out[V])
{
    const float *c = m->consts;
    double x[D], h[D], a[FF], squares = 0;
    for (int i = 0; i < D; i++) {
        x[i] = c[AT_TABLE + token * D + i];
        squares += x[i] * x[i];
    }
    for (int i = 0; i < D; i++)
        h[i] = x[i] / sqrt(squares / D + 1e-5);
    for (int i = 0; i < FF; i++) {
        double g = dot(c + AT_G + i * D, h, D);
        a[i] = g / (1 + exp(-g)) * dot(c + AT_U + i * D, h, D);
    }
    for (int i = 0; i < D; i++)
        x[i] += dot(c + AT_D + i * FF, a, FF);
    for (int i = 0; i < V; i++)
        out[i] = dot(c + AT_O + i * D, x, D);
}

/* ---- tests ---- */

/* Tokens 0, 1, .. in calls of n rows, of which every `step`th asks for its output, if any. */
static void run_calls(const model *m, exec *e, float out[V][V], int n, int step)
{
    kbatch *b = calloc(1, kbatch_bytes(&(kbatch){.n_tok = ROWS}));
    b->n_seq = 1;
    for (int first = 0; first < V; first += n) {
        b->n_tok = V - first < n ? V - first : n;
        b->n_out = 0;
        int32_t *rows = kbatch_room(b, KBATCH_OUT);
        for (int i = 0; i < b->n_tok; i++) {
            kbatch_room(b, KBATCH_TOKEN)[i] = kbatch_room(b, KBATCH_POS)[i] = first + i;
            kbatch_room(b, KBATCH_SEQ)[i] = 0;
            if (step && i % step == 0)
                rows[b->n_out++] = i;
        }
        kbatch_room(b, KBATCH_LAST)[0] = (int32_t)b->n_tok - 1;
        ck_assert_int_eq(cpu->submit(NULL, e, b), WEFT_OK);
        ck_assert_int_eq(cpu->wait(NULL, e), WEFT_OK);
        const float *got = cpu->host(e, (size_t)m->place[b->n_tok > 1].offset);
        for (int i = 0; i < b->n_out; i++)
            memcpy(out[first + rows[i]], got + i * V, V * sizeof(float));
        /* Without an output its two phases have nothing to do. */
        uint64_t phases = b->n_tok == 1 ? 5 : 6;
        ck_assert_uint_eq(cpu->stats(e).barriers, b->n_out ? phases : phases - 2);
    }
    free(b);
}

/* ---- code ---- */

/* What generated code does, as plan_code.h has it, of the plan that this names: code has it built in. */
static const plan *coded;
static kernel_fn *coded_fn[32]; /* of its kernels */
static atomic_int map_calls;
static cancel_flag code_stop;
static bool map_stops; /* written between calls */

/* In place of the kernel of every map. */
static void code_map(const kargs *k, const kthread *t, int64_t begin, int64_t end)
{
    atomic_fetch_add(&map_calls, 1);
    if (map_stops)
        cancel_ask(&code_stop, true);
    kernel_find(KOP_map, "c")->fn(k, t, begin, end);
}

static void code_tile(const code_thread *th, const plan_operand *o, int64_t columns, void *place)
{
    char *at = th->block + o->offset - columns * (int64_t)sizeof(float);
    if (o->space == SPACE_TILE)
        memcpy(place, &at, sizeof at);
}

static void code_chain(const code_thread *th, int bucket, const plan_item *it, int64_t begin,
                       int64_t end)
{
    const plan_bucket *b = &coded->bucket[bucket];
    for (int32_t i = it->first; i < it->first + it->n_step; i++) {
        const plan_step *s = &b->step[i];
        kargs *k = th->args[i];
        for (int j = 0; j < s->n_in; j++)
            code_tile(th, &s->in[j], begin * s->tile, &k->in[j]);
        for (int j = 0; j < s->n_out; j++)
            code_tile(th, &s->out[j], begin * s->tile, &k->out[j]);
        coded_fn[s->kernel](k, &th->t, begin, end);
    }
}

static void code_alone(const code_run *r, int bucket)
{
    const plan_bucket *b = &coded->bucket[bucket];
    for (int32_t i = 0; i < b->n_item; i++)
        for (int64_t begin = 0, end; begin < r->units[i]; begin = end) {
            int64_t most = b->item[i].per_thread ? r->units[i] : r->most[i];
            if (code_leaves(&r->thread[0]))
                return;
            end = begin + most < r->units[i] ? begin + most : r->units[i];
            code_chain(&r->thread[0], bucket, &b->item[i], begin, end);
        }
}

static void code_item(const code_run *r, code_thread *th, int bucket, int32_t i)
{
    const plan_item *it = &coded->bucket[bucket].item[i];
    code_range range = {0};
    if (it->per_thread && r->units[i] && !code_leaves(th))
        code_chain(th, bucket, it, 0, r->units[i]);
    while (!it->per_thread && code_claim(th, i, &range))
        code_chain(th, bucket, it, range.begin, range.end);
}

static void code_both(const code_run *r, int bucket, int index, int count)
{
    const plan_bucket *b = &coded->bucket[bucket];
    if (count == 1) {
        code_alone(r, bucket);
        return;
    }
    for (int32_t first = 0, end = 0; first < b->n_item; first = end) {
        while (end < b->n_item && b->item[end].phase == b->item[first].phase)
            end++;
        if (code_phase(&r->thread[index], first, end))
            for (int32_t i = first; i < end; i++)
                code_item(r, &r->thread[index], bucket, i);
    }
}

static void code_one(const code_run *r, int index, int count)
{
    code_both(r, 0, index, count);
}

static void code_many(const code_run *r, int index, int count)
{
    code_both(r, 1, index, count);
}

static const int thread_counts[] = {1, 2, 3, 7, 16, 40};

/* An exec with that code; and with that of the first bucket and of the maps only. */
static exec *load_code(weft_diag *dg, const model *m, int threads, bool whole)
{
    static kernel_fn *maps[STEPS];
    static code_bucket table[2];
    static const plan_code both = {2, table};
    ck_assert_int_le(coded->n_kernel, (int)COUNT_OF(coded_fn));
    for (int32_t i = 0; i < coded->n_kernel; i++)
        coded_fn[i] =
            coded->kernel[i].op == KOP_map ? code_map : kernel_by_symbol(coded->kernel[i].name)->fn;
    for (int32_t i = 0; i < m->bucket[0].n_step; i++)
        maps[i] = coded->kernel[m->step[0][i].kernel].op == KOP_map ? code_map : NULL;
    table[0] = (code_bucket){maps, code_one};
    table[1] = (code_bucket){NULL, whole ? code_many : NULL};
    exec *e = NULL;
    device_memory need, has;
    device_load what = {.p = &m->p, .threads = threads, .for_code = true, .cancel = &code_stop};
    ck_assert_int_eq(cpu->need(dg, device_cpu(), &what, &need), WEFT_OK);
    what.code = &both;
    ck_assert_int_eq(cpu->load(dg, device_cpu(), &what, &e), WEFT_OK);
    cpu->bytes(e, &has);
    ck_assert_mem_eq(&has, &need, sizeof need);
    return e;
}

START_TEST(code_agrees_with_the_loop)
{
    weft_diag *dg = diag_create();
    model *m = model_create();
    float want[V][V], got[V][V];
    exec *e = load(dg, m, 1);
    run_calls(m, e, want, 1, 1);
    cpu->unload(e);
    coded = &m->p;
    for (size_t c = 0; c < 2 * COUNT_OF(thread_counts); c++) {
        e = load_code(dg, m, thread_counts[c / 2], c % 2);
        for (int round = 0; round < 2; round++)
            for (int n = 1; n <= ROWS; n++) {
                memset(got, 0, sizeof got);
                run_calls(m, e, got, n, 1);
                ck_assert_mem_eq(got, want, sizeof want);
                run_calls(m, e, got, n, 3);
                run_calls(m, e, got, n, 0);
                ck_assert_mem_eq(got, want, sizeof want);
            }
        cpu->unload(e);
    }
    free(m);
    diag_destroy(dg);
}
END_TEST

/* Cancelled by a map, in the middle: all threads end, nothing is lost, and the next call is whole. */
START_TEST(code_is_cancelled)
{
    weft_diag *dg = diag_create();
    model *m = model_create();
    float want[V][V], got[V][V];
    kbatch *b = calloc(1, kbatch_bytes(&(kbatch){.n_tok = 1}));
    b->n_tok = b->n_seq = b->n_out = 1;
    coded = &m->p;
    for (size_t c = 0; c < COUNT_OF(thread_counts); c++) {
        exec *e = load_code(dg, m, thread_counts[c], true);
        run_calls(m, e, want, 1, 1);
        map_stops = true;
        ck_assert_int_eq(cpu->submit(dg, e, b), WEFT_ERR_CANCELLED);
        expect_one(dg, W1412, "cancelled");
        diag_reset(dg);
        map_stops = false;
        cancel_ask(&code_stop, false);
        run_calls(m, e, got, 1, 1);
        ck_assert_mem_eq(got, want, sizeof want);
        cpu->unload(e);
    }
    free(b);
    free(m);
    diag_destroy(dg);
}
END_TEST

/* What is measured is run by the loop, but with the functions of the steps. */
START_TEST(code_is_measured_by_step)
{
    weft_diag *dg = diag_create();
    model *m = model_create();
    float want[V][V], got[V][V];
    coded = &m->p;
    exec *e = load_code(dg, m, 2, true);
    run_calls(m, e, want, 1, 1);
    atomic_store(&map_calls, 0);
    cpu->profile(e, true);
    run_calls(m, e, got, 1, 1);
    cpu->profile(e, false);
    ck_assert_int_ge(atomic_load(&map_calls), V);
    ck_assert_uint_eq(cpu->profile_steps(e, 0)[0].calls, V);
    ck_assert_mem_eq(got, want, sizeof want);
    cpu->unload(e);
    free(m);
    diag_destroy(dg);
}
END_TEST

START_TEST(buckets_and_threads_agree)
{
    weft_diag *dg = diag_create();
    model *m = model_create();
    float want[V][V], got[V][V];
    exec *e = load(dg, m, 1);
    run_calls(m, e, want, 1, 1);
    cpu->unload(e);
    for (int t = 0; t < V; t++) {
        double exact[V];
        plain(m, t, exact);
        for (int i = 0; i < V; i++)
            ck_assert_double_eq_tol((double)want[t][i], exact[i], 1e-4);
    }
    for (size_t c = 0; c < COUNT_OF(thread_counts); c++) {
        e = load(dg, m, thread_counts[c]);
        for (int round = 0; round < 5; round++)
            for (int n = 1; n <= ROWS; n++) {
                memset(got, 0, sizeof got);
                run_calls(m, e, got, n, 1);
                ck_assert_mem_eq(got, want, sizeof want);
                run_calls(m, e, got, n, 3);
                run_calls(m, e, got, n, 0);
                ck_assert_mem_eq(got, want, sizeof want);
            }
        cpu->unload(e);
    }
    ck_assert_int_eq(pool_workers(), 0);
    free(m);
    diag_destroy(dg);
}
END_TEST

typedef struct {
    const model *m;
    int threads;
    float got[V][V];
} user;

static void *use_exec(void *arg)
{
    user *u = arg;
    weft_diag *dg = diag_create();
    for (int round = 0; round < 3; round++) {
        exec *e = load(dg, u->m, u->threads);
        for (int n = ROWS; n >= 1; n--)
            run_calls(u->m, e, u->got, n, 1);
        cpu->unload(e);
    }
    diag_destroy(dg);
    return NULL;
}

START_TEST(several_run_at_once)
{
    model *m = model_create();
    const int threads[] = {1, 2, 7, 16, 3};
    user users[COUNT_OF(threads)];
    pthread_t thread[COUNT_OF(threads)];
    for (size_t i = 0; i < COUNT_OF(threads); i++) {
        users[i] = (user){.m = m, .threads = threads[i]};
        ck_assert_int_eq(pthread_create(&thread[i], NULL, use_exec, &users[i]), 0);
    }
    for (size_t i = 0; i < COUNT_OF(threads); i++)
        pthread_join(thread[i], NULL);
    for (size_t i = 1; i < COUNT_OF(threads); i++)
        ck_assert_mem_eq(users[i].got, users[0].got, sizeof users[0].got);
    ck_assert_int_eq(pool_workers(), 0);
    free(m);
}
END_TEST

START_TEST(measured_by_bucket)
{
    weft_diag *dg = diag_create();
    model *m = model_create();
    float got[V][V];
    for (int threads = 1; threads <= 3; threads++) {
        exec *e = load(dg, m, threads);
        ck_assert_ptr_null(cpu->profile_steps(e, 1));
        cpu->profile(e, true);
        run_calls(m, e, got, 5, 2); /* six calls of five rows, and one of one */
        cpu->profile(e, false);
        run_calls(m, e, got, 5, 2);
        const step_time *one = cpu->profile_steps(e, 0), *more = cpu->profile_steps(e, 1);
        for (int i = 0; i < STEPS; i++) {
            ck_assert_uint_eq(one[i].calls, 1);
            ck_assert_uint_eq(one[i].rows, 1);
            ck_assert_uint_eq(more[i].calls, 6);
            ck_assert_uint_eq(more[i].rows, m->step[1][i].rows == ROWS_T ? 30 : 18);
            ck_assert(more[i].ns <= more[i].ns_busy);
            ck_assert(more[i].ns_busy <= more[i].ns * (uint64_t)threads);
        }
        cpu->unload(e);
    }
    free(m);
    diag_destroy(dg);
}
END_TEST

START_TEST(what_is_asked_for_is_checked)
{
    weft_diag *dg = diag_create();
    model *m = model_create();
    const int bad[] = {0, -1, POOL_THREADS_MAX + 1, 10000};
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        exec *e = NULL;
        device_load what = {.p = &m->p, .threads = bad[i]};
        char text[32];
        snprintf(text, sizeof text, "%d threads", bad[i]);
        ck_assert_int_eq(cpu->load(dg, device_cpu(), &what, &e), WEFT_ERR_LIMIT);
        expect_one(dg, W1406, text);
        diag_reset(dg);
    }
    /* Memory: each thread has its block, and the tables grow with the threads. */
    device_memory one, two, loaded;
    ck_assert_int_eq(cpu->need(dg, device_cpu(), &(device_load){.p = &m->p, .threads = 1}, &one),
                     WEFT_OK);
    ck_assert_int_eq(cpu->need(dg, device_cpu(), &(device_load){.p = &m->p, .threads = 2}, &two),
                     WEFT_OK);
    ck_assert_uint_eq(one.arena, m->p.arena_bytes);
    ck_assert_uint_eq(one.scratch, (LOCAL * 4 + 63) / 64 * 64 + m->p.scratch_bytes);
    ck_assert_uint_eq(two.scratch, 2 * one.scratch);
    ck_assert_uint_gt(two.tables, one.tables);
    exec *e = load(dg, m, 2);
    cpu->bytes(e, &loaded);
    ck_assert_mem_eq(&loaded, &two, sizeof two);
    cpu->unload(e);
    /* A plan that has too little for its kernels does not belong to them. */
    m->p.scratch_bytes = 64;
    device_load what = {.p = &m->p, .threads = 2};
    ck_assert_int_eq(cpu->load(dg, device_cpu(), &what, &e), WEFT_ERR_PLAN);
    expect_one(dg, W1501, "bytes of scratch");
    ck_assert_int_eq(pool_workers(), 0);
    free(m);
    diag_destroy(dg);
}
END_TEST

START_TEST(devices_have_names)
{
    weft_diag *dg = diag_create();
    device *d = NULL;
    ck_assert_int_eq(device_open(dg, "cpu", &d), WEFT_OK);
    ck_assert_ptr_eq(d, device_cpu());
    device_close(d);
    device_close(NULL);
    d = NULL;
    ck_assert_int_eq(device_open(dg, "cpus", &d), WEFT_ERR_DEVICE);
    ck_assert_ptr_null(d);
    expect_one(dg, W1605, "there is no device 'cpus'");
    static const struct {
        const char *name, *message;
    } wrong[] = {{"cpu:0", "there is one cpu: no cpu:0"},
                 {"cud", "there is no device 'cud'"},
                 {"cuda:", "there is no cuda:: cards have numbers, from 0"},
                 {"cuda:-1", "there is no cuda:-1"},
                 {"cuda:1x", "there is no cuda:1x"},
                 {"cuda:99999999999999999999", "cards have numbers"}};
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        diag_reset(dg);
        ck_assert_int_eq(device_open(dg, wrong[i].name, &d), WEFT_ERR_DEVICE);
        ck_assert_ptr_null(d);
        expect_one(dg, W1605, wrong[i].message);
    }
    diag_destroy(dg);
}
END_TEST

/* Tests that open a card are in tests/cuda; whoever has none is told what is missing. */
START_TEST(a_card_needs_a_driver)
{
    weft_diag *dg = diag_create();
    device *d = NULL;
    const cuda_driver *driver = NULL;
    if (cuda_driver_load(dg, &driver) != WEFT_OK) {
        expect_one(dg, W1608, "CUDA driver");
        diag_reset(dg);
        ck_assert_int_eq(device_open(dg, "cuda", &d), WEFT_ERR_DEVICE);
        expect_one(dg, W1608, "CUDA driver");
        ck_assert_ptr_null(driver);
    }
    diag_destroy(dg);
}
END_TEST

SUITE_MAIN("exec", buckets_and_threads_agree, several_run_at_once, measured_by_bucket,
           code_agrees_with_the_loop, code_is_measured_by_step, code_is_cancelled,
           what_is_asked_for_is_checked, devices_have_names, a_card_needs_a_driver)
