/* bench_lora.c - what do adapters cost a decoded token, and how long do loading them and switching between them take?
 *
 *     bench_lora [-t N] [-r ROUNDS] [-np 1|16] [SHAPE:TYPE]         llama-1b:Q8_0 is normal
 *
 * Adapters of rank 16 on all weights of the layers, of random numbers. A round takes each case in turn, so that what else
 * the machine does meets them alike: one sequence and sixteen, without an adapter, with one, each with one of its own. The speed
 * is held against the one of the same round without adapters, and the middle of those over all rounds against what the bytes
 * that are read would allow.
 *
 *     bench_lora --load        how long an adapter on many experts takes to load */
#include "bench/bench.h"
#include "runtime/base/clock.h"
#include "runtime/cli/lora_flags.h"
#include "runtime/exec/adapters.h"

#include <inttypes.h>
#include <stdlib.h>

enum { SEQS = 16, ROUNDS_MAX = 1000, TOKENS = 2 };

static weft_diag *dg;

#define OK(call)                                                                                   \
    do {                                                                                           \
        if ((call) != WEFT_OK) {                                                                   \
            fputs(weft_diag_text(dg), stderr);                                                     \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

typedef struct {
    const char *name;
    int64_t n_seq;
    int n_use; /* different adapters */
    uint64_t ns[ROUNDS_MAX];
} kase;

static void use(weft_session *s, const kase *k)
{
    for (int64_t seq = 0; seq < k->n_seq; seq++) {
        weft_lora_use mix = {k->n_use > 0 ? (int32_t)(seq % k->n_use) + 1 : 1, 1};
        OK(weft_lora_attach(dg, s, seq, &mix, k->n_use > 0));
    }
}

/* TOKENS tokens in each sequence of a case, at the beginning of a text. */
static uint64_t decode(weft_session *s, const kase *k)
{
    use(s, k);
    uint64_t start = 0;
    for (int32_t pos = 0; pos <= TOKENS; pos++) {
        weft_row rows[SEQS];
        for (int32_t i = 0; i < k->n_seq; i++)
            rows[i] = (weft_row){.token = 100 + i + pos, .pos = pos, .seq = i, .want = true};
        OK(weft_eval(dg, s, rows, k->n_seq));
        if (pos == 0)
            start = clock_ns(); /* the first one warms up */
    }
    uint64_t ns = (clock_ns() - start) / TOKENS;
    for (int64_t i = 0; i < k->n_seq; i++)
        OK(weft_truncate(dg, s, i, 0));
    return ns;
}

/* Attach another adapter, or none, and back. */
static void time_switching(weft_session *s)
{
    uint64_t ns[ROUNDS_MAX];
    for (int i = 0; i < ROUNDS_MAX; i++) {
        weft_lora_use mix = {i % SEQS + 1, 1};
        uint64_t start = clock_ns();
        OK(weft_lora_attach(dg, s, 0, &mix, 1));
        ns[i] = clock_ns() - start;
    }
    bench_print("lora", "switch", "between two tokens", bench_sum_up(ns, ROUNDS_MAX), 1e6);
}

/* Write an adapter of rank 1 on 128 experts of 48 layers with 3 weights each, of small matrices: finding the place of each of
 * its 18432 parts is what takes time here, not their numbers. */
static void time_loading(void)
{
    enum { LAYERS = 48, WEIGHTS = 3, EXPERTS = 128, SIDE = 32, TIMES = 5 };
    static plan_site site[LAYERS * WEIGHTS];
    static char name[LAYERS * WEIGHTS][32];
    static adapter_part part[LAYERS * WEIGHTS * EXPERTS];
    static const float numbers[SIDE];
    plan p = {.lora_slots = 1, .lora_rank = 1, .n_site = LAYERS * WEIGHTS, .site = site};
    for (int i = 0; i < p.n_site; i++) {
        snprintf(name[i], sizeof name[i], "blk[%d].%d", i / WEIGHTS, i % WEIGHTS);
        site[i] = (plan_site){.name = name[i],
                              .kind = LORA_EXPERTS,
                              .in = SIDE,
                              .out = SIDE,
                              .parts = EXPERTS,
                              .offset = p.adapter_bytes};
        lora_shape s = plan_site_shape(&p, &site[i]);
        site[i].slot_bytes = (size_t)lora_slot_floats(&s) * sizeof(float);
        p.adapter_bytes += site[i].slot_bytes;
        for (int e = 0; e < EXPERTS; e++)
            part[i * EXPERTS + e] = (adapter_part){.weight = name[i],
                                                   .index = e,
                                                   .rank = 1,
                                                   .in = SIDE,
                                                   .out = SIDE,
                                                   .a = numbers,
                                                   .b = numbers,
                                                   .scale = 1};
    }
    adapter_source src = {.name = "made up", .n_part = sizeof part / sizeof *part, .part = part};
    uint64_t ns[TIMES];
    const adapter_home home = {&p, device_cpu()};
    adapters *a = adapters_create(&home, 1, 1);
    OK(adapters_bind(dg, a));
    for (int i = 0; i < TIMES; i++) {
        uint64_t start = clock_ns();
        OK(adapters_load(dg, a, 1, &src));
        ns[i] = clock_ns() - start;
    }
    bench_print_heading();
    bench_print("lora", "load", "18432 parts of rank 1", bench_sum_up(ns, TIMES), 0);
    adapters_destroy(a);
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The case, and its speed against that of `none`, round by round. */
static void print_case(const kase *k, const kase *none, int rounds, const char *shape,
                       double adapter_bytes, double model_bytes)
{
    static double ratio[ROUNDS_MAX];
    static uint64_t ns[ROUNDS_MAX];
    char rate[96] = "";
    double share = model_bytes / (model_bytes + k->n_use * adapter_bytes);
    for (int r = 0; r < rounds; r++) {
        ns[r] = k->ns[r];
        ratio[r] = (double)none->ns[r] / (double)k->ns[r];
    }
    qsort(ratio, (size_t)rounds, sizeof *ratio, by_value);
    if (k->n_use > 0)
        snprintf(rate, sizeof rate, "%.3f of the speed without; by bytes %.3f, so %.3f of that",
                 ratio[rounds / 2], share, ratio[rounds / 2] / share);
    bench_print_rate("lora", k->name, shape, bench_sum_up(ns, rounds), rate);
}

int main(int argc, char **argv)
{
    const char *shape = "llama-1b:Q8_0";
    int rounds = 15, np = 0;
    bool load = false;
    model_flags f = {.threads = 1};
    const char *random[] = {"random:16*16"};
    dg = weft_diag_create();
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "-t") == 0 && i + 1 < argc)
            f.threads = atoi(argv[++i]);
        else if (strcmp(argv[i], "-r") == 0 && i + 1 < argc)
            rounds = atoi(argv[++i]) % ROUNDS_MAX;
        else if (strcmp(argv[i], "-np") == 0 && i + 1 < argc)
            np = atoi(argv[++i]);
        else if (strcmp(argv[i], "--load") == 0)
            load = true;
        else
            shape = argv[i];
    if (load) {
        time_loading();
        weft_diag_destroy(dg);
        return 0;
    }
    f.random = shape;
    f.lora = (flag_list){.at = random, .n = 1};
    api_source from = model_flags_source(&f);
    weft_model *m;
    weft_session *s;
    lora l;
    progress bar = {0};
    OK(api_model_open(dg, &from, &m));
    OK(lora_open(dg, m, &f, &l));
    weft_session_options how = model_flags_session(&f, &bar);
    how.context = 64;
    how.sequences = how.wants = how.batch = SEQS;
    how.no_weight_cache = true;
    lora_want(&l, &how);
    OK(weft_session_create(dg, m, &how, &s));
    OK(lora_load(dg, &l, s, LORA_SLOTS));

    static kase cases[] = {{.name = "1 sequence, none", .n_seq = 1},
                           {.name = "1 sequence, 1 adapter", .n_seq = 1, .n_use = 1},
                           {.name = "16 sequences, none", .n_seq = SEQS},
                           {.name = "16 sequences, 1 adapter", .n_seq = SEQS, .n_use = 1},
                           {.name = "16 sequences, 16 adapters", .n_seq = SEQS, .n_use = SEQS}};
    enum { N_CASE = sizeof cases / sizeof *cases };
    for (int r = 0; r < rounds; r++)
        for (int i = 0; i < N_CASE; i++)
            if (np == 0 || cases[i].n_seq == np)
                cases[i].ns[r] = decode(s, &cases[i]);
    bench_print_heading();
    for (int i = 0, none = 0; i < N_CASE; i++) {
        none = cases[i].n_use == 0 ? i : none;
        if (np == 0 || cases[i].n_seq == np)
            print_case(&cases[i], &cases[none], rounds, shape,
                       (double)lora_reads(&l, s->plan.p, 1, LORA_EACH),
                       (double)weft_model_bytes(m));
    }
    time_switching(s);
    weft_session_destroy(s);
    lora_close(&l);
    weft_model_close(m);
    weft_diag_destroy(dg);
    return 0;
}
