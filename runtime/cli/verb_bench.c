/* verb_bench.c - `weft bench`: how fast prompts are read and tokens come, and what share that is of what
 * the memory allows. */
#include "runtime/base/bandwidth.h"
#include "runtime/base/clock.h"
#include "runtime/base/threads.h"
#include "runtime/cli/bench_reads.h"
#include "runtime/cli/bench_table.h"
#include "runtime/cli/interrupt.h"
#include "runtime/exec/device.h"
#include "runtime/cli/lora_flags.h"
#include "runtime/engine/score.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

enum { LIST_MAX = 32, WARM_UP_CALLS = 2 };

typedef struct {
    model_flags open;
    const char *prompt, *gen, *seqs, *depth;
    int64_t repeat;
    bool markdown, lora_each;
} bench_options;

/* clang-format off */
static const flag bench_flags[] = {
    MODEL_FLAG_ROW (bench_options, open, "the checkpoint"),
    RANDOM_FLAG_ROW(bench_options, open),
    FLAG_ROW_STR   (bench_options, prompt,   "n-prompt", "p",  "N,..", "512", "tokens of a prompt; 0: no such test"),
    FLAG_ROW_STR   (bench_options, gen,      "n-gen",    "n",  "N,..", "128", "tokens to generate; 0: no such test"),
    FLAG_ROW_STR   (bench_options, seqs,     "parallel", "np", "N,..", "1", "sequences that generate in one call"),
    FLAG_ROW_STR   (bench_options, depth,    "n-depth",  "d",  "N,..", "0", "tokens already in the context"),
    FLAG_ROW_INT   (bench_options, repeat,   "repetitions", "r", "N", "5", 1, 1000, "how often each test is measured"),
    FLAG_ROW_BOOL  (bench_options, markdown, "md",       NULL, "print the table in Markdown"),
    BATCH_FLAG_ROW (bench_options, open, "512"),
    LORA_FLAG_ROWS (bench_options, open),
    FLAG_ROW_BOOL  (bench_options, lora_each, "lora-each", NULL, "sequence 1 uses the first --lora alone, sequence 2 the second, and so on"),
    SESSION_FLAG_ROWS(bench_options, open, "0"),
    FILE_FLAG_ROWS (bench_options, open),
    FLAG_ROW_END   (bench_options),
};

static const char *const examples[] = {
    "weft bench -m model.gguf -t 2",                               "pp512 and tg128",
    "weft bench --random llama-1b:Q4_K_M -p 0 -n 32 -r 3",         "no file needed",
    "weft bench -m model.gguf -p 0 -n 64 -np 1,8 -d 0,4096",       "eight at once, and far into a text",
    NULL,
};
/* clang-format on */

const verb_page bench_verb_page = {
    bench_flags,
    "Rows are those of llama-bench: pp512 reads a prompt of 512 tokens, tg128 generates 128, x8 in "
    "eight sequences at once (rates are of all together), @ d4096 after 4096 others. After a "
    "warm-up "
    "each is measured -r times: mean and deviation, median, least. For tg the bytes of weights and "
    "state that a token needs, and what share that is, at the median, of the read bandwidth "
    "measured "
    "in the same process. --json adds the pages and bytes of state, by tier, that a test ends "
    "with. "
    "Tokens are random; a device that chooses tokens by itself generates the likeliest. Shapes of "
    "--random: tiny, smollm2-135m, llama-1b, "
    "llama-3b, llama-8b, qwen-0.5b, qwen-1.5b, qwen-7b, gemma2-2b, phi3-mini, mixtral, "
    "deepseek-lite; types: F32, "
    "F16, "
    "BF16, Q8_0, Q4_0, Q4_1, Q5_0, Q5_1, Q2_K to Q6_K, Q4_K_M, Q5_K_M, IQ4_NL, IQ4_XS, MXFP4.",
    examples,
};

typedef struct {
    int64_t at[LIST_MAX];
    int n;
} int_list;

typedef struct {
    cli *c;
    const bench_options *o;
    int_list prompt, gen, seqs, depth;
    weft_model *m;
    lora adapters;
    weft_session *s;
    weft_row *rows; /* of one call */
    int64_t batch;
    kpolicy kv;
    int64_t vocab;   /* tokens are below this; 0: any will do */
    uint64_t random; /* where the tokens come from */
    bench_about about;
    char name[64], device[16];
    /* Where the device chooses tokens: a sampler for each sequence, its newest token, and true for each. */
    VEC(weft_sampler *) likeliest;
    int32_t *tokens;
    bool *more;
    VEC(bench_row) results;
    bool stopped;
    bool warned; /* of logits that are no numbers */
} bench_run;

/* ---- flags ---- */

static weft_status read_list(weft_diag *dg, const char *flag_name, const char *text, int64_t least,
                             int_list *out)
{
    for (const char *p = text;; p++) {
        char *end;
        errno = 0;
        long long x = strtoll(p, &end, 10);
        if (end == p || errno || x < least || x > 1 << 24 || (*end && *end != ',') ||
            out->n == LIST_MAX)
            return weft_fail(dg, W1903, WEFT_NOWHERE,
                             "bench: %s takes up to %d whole numbers from %" PRId64
                             " to %d with commas between, not '%s'",
                             flag_name, LIST_MAX, least, 1 << 24, text);
        out->at[out->n++] = x;
        p = end;
        if (!*p)
            return WEFT_OK;
    }
}

static int64_t largest(const int_list *l)
{
    int64_t most = 0;
    for (int i = 0; i < l->n; i++)
        most = l->at[i] > most ? l->at[i] : most;
    return most;
}

static weft_status read_flags(bench_run *r)
{
    const bench_options *o = r->o;
    weft_diag *dg = r->c->dg;
    WEFT_TRY(model_flags_check(dg, &o->open));
    WEFT_TRY(read_list(dg, "-p", o->prompt, 0, &r->prompt));
    WEFT_TRY(read_list(dg, "-n", o->gen, 0, &r->gen));
    WEFT_TRY(read_list(dg, "-np", o->seqs, 1, &r->seqs));
    WEFT_TRY(read_list(dg, "-d", o->depth, 0, &r->depth));
    if (largest(&r->prompt) + largest(&r->gen) == 0)
        return weft_fail(dg, W1904, WEFT_NOWHERE, "-p 0 and -n 0 leave nothing to measure");
    return WEFT_OK;
}

/* ---- opening ---- */

/* "llama Q8_0": the model, and how most of it is stored. */
static void name_model(bench_run *r)
{
    const model_file *mf = api_file_of(r->m)->file;
    uint64_t by_type[DT_COUNT] = {0};
    int most = 0;
    for (size_t i = 0; i < model_file_tensor_count(mf); i++) {
        const model_tensor *t = model_file_tensor_at(mf, i);
        by_type[t->type] += t->bytes;
        r->about.bytes += t->bytes;
        r->about.n_param += t->elems;
        most = by_type[t->type] > by_type[most] ? (int)t->type : most;
    }
    if (r->o->open.random)
        snprintf(r->name, sizeof r->name, "%s", r->o->open.random);
    else
        snprintf(r->name, sizeof r->name, "%s %s", weft_model_name(r->m),
                 dtype_row_of((dtype)most)->name);
    r->about.model = r->name;
}

static lora_who lora_who_of(const bench_options *o)
{
    return o->lora_each ? LORA_EACH : LORA_MIX;
}

static weft_status open_samplers(bench_run *r, int64_t n_seq)
{
    weft_session_info about = {.size = sizeof about};
    weft_sampler_options o = {.size = sizeof o};
    weft_sampler_defaults(&o);
    o.temp = 0;
    WEFT_TRY(weft_session_about(r->c->dg, r->s, &about));
    r->tokens = calloc((size_t)n_seq, sizeof *r->tokens);
    r->more = calloc((size_t)n_seq, sizeof *r->more);
    if (!r->tokens || !r->more)
        return weft_fail(r->c->dg, W1406, WEFT_NOWHERE, "no memory for %" PRId64 " sequences",
                         n_seq);
    for (int64_t i = 0; i < n_seq; i++) {
        weft_sampler *s;
        WEFT_TRY(weft_sampler_create(r->c->dg, &o, about.vocab, 1, NULL, &s));
        VEC_PUSH(&r->likeliest, s);
        r->more[i] = true;
    }
    return WEFT_OK;
}

static weft_status open_session(bench_run *r)
{
    const bench_options *o = r->o;
    int64_t n_seq = largest(&r->seqs), most = largest(&r->prompt), deep = largest(&r->depth);
    int64_t at_once = most > deep ? most : deep; /* tokens that could come in one call */
    r->batch = at_once < o->open.batch ? at_once : o->open.batch;
    r->batch = r->batch < n_seq ? n_seq : r->batch;
    most = most > largest(&r->gen) ? most : largest(&r->gen);
    progress bar = {0};
    weft_session_options how = model_flags_session(&o->open, &bar);
    how.context = deep + most;
    how.sequences = how.wants = n_seq;
    how.batch = r->batch;
    static const char *const execs[] = {
        [WEFT_EXEC_PLAN] = "plan", [WEFT_EXEC_REF] = "ref", [WEFT_EXEC_JIT] = "jit"};
    r->about.exec = execs[o->open.exec];
    r->rows = calloc((size_t)r->batch, sizeof *r->rows);
    if (!r->rows)
        return weft_fail(r->c->dg, W1406, WEFT_NOWHERE, "no memory for calls of %" PRId64 " rows",
                         r->batch);
    WEFT_TRY(lora_open(r->c->dg, r->m, &o->open, &r->adapters));
    lora_want(&r->adapters, &how);
    WEFT_TRY(weft_session_create(r->c->dg, r->m, &how, &r->s));
    if (session_images(r->s->run) > 0)
        r->about.exec = "made"; /* kernels of a card, for this plan alone */
    WEFT_TRY(lora_load(r->c->dg, &r->adapters, r->s, lora_who_of(o)));
    if (session_chooses(r->s->run))
        WEFT_TRY(open_samplers(r, n_seq));
    r->vocab = r->s->plan.p->n_vocab;
    r->kv = plan_tiers(&r->s->plan.p->tiers, r->s->plan.p->kv);
    return WEFT_OK;
}

/* ---- one test ---- */

static int32_t random_token(bench_run *r)
{
    r->random = r->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return r->vocab ? (int32_t)((r->random >> 33) % (uint64_t)r->vocab) : 0;
}

/* n tokens of one sequence, `batch` at a time; only the last row asks for logits. */
static weft_status read_prompt(bench_run *r, int64_t seq, int64_t n)
{
    int64_t pos = weft_length(r->s, seq), end = pos + n;
    while (pos < end && !*interrupt_flag()) {
        int64_t part = end - pos < r->batch ? end - pos : r->batch;
        for (int64_t i = 0; i < part; i++)
            r->rows[i] = (weft_row){.token = random_token(r),
                                    .pos = (int32_t)(pos + i),
                                    .seq = (int32_t)seq,
                                    .want = pos + i + 1 == end};
        WEFT_TRY(weft_eval(r->c->dg, r->s, r->rows, part));
        pos += part;
    }
    return WEFT_OK;
}

/* A token in each of n_seq sequences, n times: random ones, or where the device chooses by itself the likeliest, which it has
 * before the host does. The last call leaves logits in any case. */
static weft_status generate(bench_run *r, int64_t n_seq, int64_t n)
{
    const bool chooses = r->likeliest.n > 0;
    for (int64_t k = 0; k < n && !*interrupt_flag(); k++) {
        for (int64_t i = 0; i < n_seq; i++)
            r->rows[i] = (weft_row){.token = chooses && k > 0 ? r->tokens[i] : random_token(r),
                                    .pos = (int32_t)weft_length(r->s, i),
                                    .seq = (int32_t)i,
                                    .want = true};
        const bool *more = k + 2 < n ? r->more : NULL;
        if (chooses && k + 1 < n)
            WEFT_TRY(
                weft_eval_choose(r->c->dg, r->s, r->rows, n_seq, r->likeliest.at, more, r->tokens));
        else
            WEFT_TRY(weft_eval(r->c->dg, r->s, r->rows, n_seq));
    }
    return WEFT_OK;
}

/* Every sequence of the test holds `depth` tokens, all others none. */
static weft_status prepare(bench_run *r, const bench_row *t)
{
    weft_diag *dg = r->c->dg;
    for (int64_t i = 0; i < largest(&r->seqs); i++) {
        int64_t depth = i < t->n_seq ? t->depth : 0;
        if (weft_length(r->s, i) > depth) {
            weft_diag *quiet = weft_diag_create(); /* a window may have given rows back */
            bool cut = weft_truncate(quiet, r->s, i, depth) == WEFT_OK;
            weft_diag_destroy(quiet);
            if (!cut)
                WEFT_TRY(weft_truncate(dg, r->s, i, 0));
        }
        WEFT_TRY(read_prompt(r, i, depth - weft_length(r->s, i)));
    }
    return WEFT_OK;
}

static weft_status run_once(bench_run *r, const bench_row *t, bool warm_up)
{
    int64_t n_prompt = t->n_prompt, n_gen = t->n_gen;
    if (warm_up) {
        n_prompt = n_prompt < r->batch ? n_prompt : r->batch;
        n_gen = n_gen < WARM_UP_CALLS ? n_gen : WARM_UP_CALLS;
    }
    return t->n_prompt ? read_prompt(r, 0, n_prompt) : generate(r, t->n_seq, n_gen);
}

static weft_status measure(bench_run *r, bench_row *t)
{
    progress bar;
    strbuf label = {0};
    weft_status st = prepare(r, t);
    if (st == WEFT_OK)
        st = run_once(r, t, true);
    bench_test_name(t, &label);
    progress_start(&bar, label.p, (uint64_t)r->o->repeat, PROGRESS_COUNT);
    for (int64_t i = 0; st == WEFT_OK && i < r->o->repeat && !*interrupt_flag(); i++) {
        st = prepare(r, t);
        uint64_t start = clock_ns();
        if (st == WEFT_OK)
            st = run_once(r, t, false);
        double seconds = clock_seconds(clock_ns() - start);
        double tokens = (double)(t->n_prompt ? t->n_prompt : t->n_gen * t->n_seq);
        VEC_PUSH(&t->rates, seconds > 0 ? tokens / seconds : 0);
        progress_update(&bar, (uint64_t)i + 1);
    }
    progress_end(&bar);
    strbuf_free(&label);
    r->stopped = *interrupt_flag();
    return st;
}

/* A model whose logits are NaN may skip work, its experts for instance: its times mean nothing. */
static weft_status check_logits(bench_run *r)
{
    weft_view v;
    int64_t first;
    if (r->stopped || r->warned)
        return WEFT_OK;
    WEFT_TRY(weft_output(r->c->dg, r->s, "logits", -1, &v));
    int64_t bad = count_not_numbers(v.data, v.rows * v.width, &first);
    r->warned = bad > 0;
    if (bad > 0)
        weft_fail(r->c->dg, W1411, WEFT_NOWHERE,
                  "%s: %" PRId64 " of %" PRId64 " logits are not numbers", r->name, bad,
                  v.rows * v.width);
    return WEFT_OK;
}

/* ---- all of them ---- */

static void print_row(bench_run *r, const bench_row *t)
{
    strbuf out = {0};
    if (r->results.n == 0)
        bench_text_head(&r->about, r->o->markdown, &out);
    bench_text_row(&r->about, t, r->o->markdown, &out);
    cli_print_all(r->c, &out);
}

static weft_status run_test(bench_run *r, bench_row t)
{
    if (r->stopped || (t.n_prompt == 0 && t.n_gen == 0))
        return WEFT_OK;
    int64_t length = t.depth + (t.n_gen + 1) / 2; /* half of them are there on average */
    if (t.n_gen)
        t.call_bytes =
            bench_reads(api_file_of(r->m)->bound, t.n_seq, length, kpolicy_bytes(&r->kv, length)) +
            lora_reads(&r->adapters, r->s->plan.p, t.n_seq, lora_who_of(r->o));
    weft_status st = measure(r, &t);
    t.held = held_tiers_now(r->s);
    if (st == WEFT_OK)
        st = check_logits(r);
    if (st == WEFT_OK && !r->stopped && !r->c->common.json)
        print_row(r, &t);
    VEC_PUSH(&r->results, t); /* also when it failed: it owns memory */
    return st;
}

static weft_status run_tests(bench_run *r)
{
    for (int d = 0; d < r->depth.n; d++) {
        for (int i = 0; i < r->prompt.n; i++)
            WEFT_TRY(run_test(
                r, (bench_row){.n_prompt = r->prompt.at[i], .n_seq = 1, .depth = r->depth.at[d]}));
        for (int i = 0; i < r->gen.n; i++)
            for (int k = 0; k < r->seqs.n; k++)
                WEFT_TRY(run_test(r, (bench_row){.n_gen = r->gen.at[i],
                                                 .n_seq = r->seqs.at[k],
                                                 .depth = r->depth.at[d]}));
    }
    return WEFT_OK;
}

/* "CPU+CUDA" */
static void name_device(bench_run *r, const char *name)
{
    size_t n = 0;
    for (; name[n] && n + 1 < sizeof r->device; n++)
        r->device[n] = (char)toupper((unsigned char)name[n]);
    r->device[n] = 0;
    r->about.backend = r->device;
}

static weft_status run(bench_run *r)
{
    const bench_options *o = r->o;
    WEFT_TRY(read_flags(r));
    r->about.threads = o->open.threads ? o->open.threads : threads_default();
    r->about.backend = "CPU";
    if (largest(&r->gen) && !model_flags_device(&o->open)) /* while the memory is free */
        r->about.bandwidth = bandwidth_read((int)r->about.threads);
    uint64_t start = clock_ns();
    api_source from = model_flags_source(&o->open);
    WEFT_TRY(api_model_open(r->c->dg, &from, &r->m));
    name_model(r);
    WEFT_TRY(open_session(r));
    if (r->s->plan.dev) {
        device_rates card = device_rates_of(r->s->plan.dev);
        bool divided = r->s->plan.run.parts != NULL;
        name_device(r, divided ? r->s->plan.dev->kind->beside_cpu : r->s->plan.dev->kind->name);
        r->about.threads = divided ? r->about.threads : card.blocks;
        r->about.bandwidth = divided ? 0 : card.bandwidth;
    }
    cli_say_verbose(r->c, "%s: opened in %.2f s, %.1f MiB for the session", r->name,
                    clock_seconds(clock_ns() - start),
                    (double)weft_session_bytes(r->s) / (1 << 20));
    interrupt_hold(true);
    WEFT_TRY(run_tests(r));
    return weft_model_check(r->c->dg, r->m);
}

static void print_end(bench_run *r)
{
    strbuf out = {0};
    if (r->c->common.json)
        bench_json(&r->about, r->results.at, r->results.n, &out);
    else
        bench_text_foot(&r->about, r->o->markdown, &out);
    cli_print_all(r->c, &out);
}

int verb_bench(cli *c)
{
    bench_run r = {.c = c, .o = c->options, .random = 1};
    weft_status st = run(&r);
    if (st == WEFT_OK && !r.stopped)
        print_end(&r);
    c->common.json = false;
    for (size_t i = 0; i < r.results.n; i++)
        VEC_FREE(&r.results.at[i].rates);
    VEC_FREE(&r.results);
    free(r.rows);
    free(r.tokens);
    free(r.more);
    for (size_t i = 0; i < r.likeliest.n; i++)
        weft_sampler_destroy(r.likeliest.at[i]);
    VEC_FREE(&r.likeliest);
    weft_session_destroy(r.s);
    lora_close(&r.adapters);
    weft_model_close(r.m);
    return st == WEFT_OK && r.stopped ? CLI_INTERRUPTED : cli_exit_of(st);
}
