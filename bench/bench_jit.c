/* bench_jit.c - what does generated code cost when a session opens, and how fast does it decode beside the executor's loop?
 *
 *     bench_jit [-t THREADS] [-n TOKENS] [-r ROUNDS] [-c] MODEL|SHAPE:TYPE
 *
 * SHAPE:TYPE is a model made up in memory, as `weft bench --random` has them. Making code is timed with an empty cache, once
 * with LLVM to be loaded and once without; finding it is timed with the code on disk. CPU time is that of the process.
 * Then two sessions of one plan and the same weights take turns in decoding TOKENS tokens; with -c nothing is decoded, and
 * SHAPE:TYPE takes no memory. */
#include "bench/bench.h"
#include "runtime/api/api_open.h"
#include "runtime/base/clock.h"
#include "runtime/base/threads.h"
#include "runtime/jit/jit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS_MAX = 1000 };

typedef struct {
    const char *model;
    int threads, rounds;
    int64_t tokens;
    bool compile_only;
} settings;

static weft_diag *dg;

static void must(weft_status st)
{
    if (st == WEFT_OK)
        return;
    diag_print(dg, stderr, false);
    exit(1);
}

static uint64_t process_cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* ---- opening ---- */

typedef struct {
    uint64_t wall, cpu;
} cost;

static cost make_once(const plan *p, const char *cache)
{
    const plan_code *code;
    void *own;
    code_options how = {.use_cache = true, .cache_dir = cache};
    cost began = {clock_ns(), process_cpu_ns()};
    must(jit_maker()->make(dg, p, &how, &code, &own));
    cost c = {clock_ns() - began.wall, process_cpu_ns() - began.cpu};
    jit_maker()->release(own);
    return c;
}

static void empty(const char *cache)
{
    char command[128];
    snprintf(command, sizeof command, "rm -f %s/*", cache);
    if (system(command) != 0)
        exit(1);
}

static void print_cost(const char *what, const plan *p, const cost *c, int n)
{
    uint64_t wall[ROUNDS_MAX], cpu[ROUNDS_MAX];
    char shape[64];
    for (int i = 0; i < n; i++) {
        wall[i] = c[i].wall;
        cpu[i] = c[i].cpu;
    }
    snprintf(shape, sizeof shape, "%d buckets, %d steps", (int)p->n_bucket,
             (int)p->bucket[0].n_step);
    bench_print(what, "wall", shape, bench_sum_up(wall, n), 0);
    bench_print(what, "cpu", shape, bench_sum_up(cpu, n), 0);
}

static void measure_opening(const settings *s, const plan *p)
{
    cost c[ROUNDS_MAX];
    char cache[] = "/tmp/weft-bench-XXXXXX";
    int n = s->rounds < 10 ? s->rounds : 10;
    if (!mkdtemp(cache))
        exit(1);
    c[0] = make_once(p, cache);
    print_cost("load LLVM, make", p, c, 1);
    for (int i = 0; i < n; i++) {
        empty(cache);
        c[i] = make_once(p, cache);
    }
    print_cost("make", p, c, n);
    for (int i = 0; i < n; i++)
        c[i] = make_once(p, cache);
    print_cost("find on disk", p, c, n);
    empty(cache);
    rmdir(cache);
}

/* ---- decoding ---- */

static uint64_t decode(session *s, int64_t tokens)
{
    must(session_truncate(dg, s, 0, 0));
    uint64_t began = clock_ns();
    for (int64_t i = 0; i < tokens; i++) {
        batch_row row = {.id = (int32_t)(1 + i % 97), .pos = (int32_t)i, .out = true};
        must(session_eval(dg, s, &row, 1));
    }
    return (clock_ns() - began) / (uint64_t)tokens;
}

static void measure_decoding(const settings *s, const api_plan *made, const weight_source *src)
{
    session *by[2];
    static const char *const names[] = {"plan", "jit"};
    session_options run = made->run;
    must(session_create(dg, made->p, src, &run, &by[0]));
    run.w[0] = session_weights(by[0], 0);
    run.maker = jit_maker();
    must(session_create(dg, made->p, src, &run, &by[1]));
    static uint64_t ns[2][ROUNDS_MAX];
    for (int warm = 0; warm < 2; warm++)
        decode(by[warm], s->tokens);
    for (int i = 0; i < s->rounds; i++)
        for (int k = 0; k < 2; k++)
            ns[(i + k) % 2][i] = decode(by[(i + k) % 2], s->tokens); /* each goes first in turn */
    bench_times t[2];
    char shape[64];
    snprintf(shape, sizeof shape, "%d threads, %d tokens", s->threads, (int)s->tokens);
    for (int k = 0; k < 2; k++) {
        t[k] = bench_sum_up(ns[k], s->rounds);
        bench_print("decode", names[k], shape, t[k], 0);
    }
    printf("jit is %.3f times as fast as plan by medians, %.3f by the fastest\n",
           t[0].median_ns / t[1].median_ns, t[0].min_ns / t[1].min_ns);
    session_destroy(by[1]);
    session_destroy(by[0]);
}

/* ---- the whole ---- */

static settings read_flags(int argc, char **argv)
{
    settings s = {.threads = 1, .rounds = 20, .tokens = 64};
    for (int c; (c = getopt(argc, argv, "t:n:r:c")) != -1;)
        switch (c) {
        case 't':
            s.threads = atoi(optarg);
            break;
        case 'n':
            s.tokens = atoi(optarg);
            break;
        case 'r':
            s.rounds = atoi(optarg);
            break;
        case 'c':
            s.compile_only = true;
            break;
        default:
            exit(2);
        }
    if (optind + 1 != argc || s.threads < 1 || s.tokens < 1 || s.rounds < 1 ||
        s.rounds > ROUNDS_MAX) {
        fprintf(stderr,
                "usage: bench_jit [-t THREADS] [-n TOKENS] [-r ROUNDS] [-c] MODEL|SHAPE:TYPE\n");
        exit(2);
    }
    s.model = argv[optind];
    return s;
}

int main(int argc, char **argv)
{
    settings s = read_flags(argc, argv);
    bool random = strchr(s.model, ':') != NULL;
    api_source from = {.path = random ? NULL : s.model,
                       .random = random ? s.model : NULL,
                       .fillers = s.compile_only ? 0 : threads_default()};
    api_wanted w = {.how = {.size = sizeof w.how,
                            .context = s.tokens < 512 ? 512 : s.tokens,
                            .wants = 1,
                            .threads = s.threads}};
    weft_model *m;
    api_plan made;
    dg = diag_create();
    must(api_model_open(dg, &from, &m));
    must(api_plan_open(dg, m, &w, &made));
    bench_print_heading();
    measure_opening(&s, made.p);
    if (!s.compile_only)
        measure_decoding(&s, &made, m->weights);
    api_plan_close(&made);
    weft_model_close(m);
    diag_destroy(dg);
    return 0;
}
