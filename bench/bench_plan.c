/* bench_plan.c - how long does it take to compile a model: its passes, and the plans of all buckets?
 *
 * Processor time of plan_make for models in their true shapes, whose weights are never touched. Target: 50 ms
 * for an 8B model with calls of up to 512 rows, which is ten buckets. */
#include "bench/bench.h"
#include "compiler/compiler.h"
#include "compiler/plan_make.h"
#include "runtime/base/clock.h"
#include "runtime/formats/random_model.h"

#include <stdlib.h>

enum { WARM_UP = 2, RUNS = 15, ROWS = 512, CONTEXT = 4096 };

static const double target_ns = 50e6;

static void must(weft_diag *dg, weft_status st)
{
    if (st == WEFT_OK)
        return;
    diag_print(dg, stderr, false);
    exit(EXIT_FAILURE);
}

static uint64_t make_once(weft_diag *dg, const graph *g, const backend *be, int32_t *out_n_step)
{
    static const char *const logits[] = {"logits"};
    target t = {.be = be,
                .n_ctx = CONTEXT,
                .n_seq = 1,
                .n_tok_max = ROWS,
                .n_out_max = 1,
                .kv = DT_F16,
                .outputs = logits,
                .n_output = 1};
    arena *a = arena_create();
    plan *p;
    uint64_t begin = clock_cpu_ns();
    must(dg, plan_make(dg, g, &t, NULL, a, &p));
    uint64_t ns = clock_cpu_ns() - begin;
    *out_n_step = 0;
    for (int32_t i = 0; i < p->n_bucket; i++)
        *out_n_step += p->bucket[i].n_step;
    arena_destroy(a);
    return ns;
}

static void make(weft_diag *dg, const char *spec, const backend *be)
{
    random_model *rm;
    model_file *mf;
    bound_model *bm;
    must(dg, random_model_create(dg, spec, 0, &rm));
    must(dg, model_file_open_memory(dg, random_model_data(rm), random_model_bytes(rm), spec, &mf));
    must(dg, model_bind(dg, mf, &(bind_options){.context = CONTEXT}, &bm));
    uint64_t ns[RUNS];
    int32_t n_step = 0;
    char shape[32];
    for (int i = 0; i < WARM_UP; i++)
        make_once(dg, bm->graph, be, &n_step);
    for (int i = 0; i < RUNS; i++)
        ns[i] = make_once(dg, bm->graph, be, &n_step);
    snprintf(shape, sizeof shape, "%d steps", (int)n_step);
    bench_print("plan", spec, shape, bench_sum_up(ns, RUNS), target_ns);
    bound_model_destroy(bm);
    model_file_close(mf);
    random_model_destroy(rm);
}

int main(void)
{
    static const char *const specs[] = {"llama-1b:Q8_0", "llama-8b:Q4_K_M", "gemma2-2b:Q4_K_M",
                                        "mixtral:Q4_K_M"};
    weft_diag *dg = diag_create();
    const backend *be;
    must(dg, backend_cpu(dg, false, &be));
    bench_print_heading();
    for (size_t i = 0; i < sizeof specs / sizeof specs[0]; i++)
        make(dg, specs[i], be);
    diag_destroy(dg);
    return 0;
}
