/* talk.c - opening a model for `run` and `chat`, and letting it speak. */
#include "runtime/cli/talk.h"

#include "runtime/base/clock.h"
#include "runtime/base/memory.h"
#include "runtime/base/progress.h"
#include "runtime/base/threads.h"
#include "runtime/cli/interrupt.h"
#include "runtime/cli/weaving.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { CONTEXT_DEFAULT = 8192 };

/* ---- the demo model ---- */

/* Beside the program where it was installed, where it was to be installed, or in the tree it was built in. */
static const char *find_demo(arena *a)
{
    const char *place[] = {NULL, WEFT_DEMO_INSTALLED, WEFT_DEMO_SOURCE};
    char self[4096];
    struct stat st;
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    if (n > 0) {
        self[n] = 0;
        place[0] = arena_printf(a, "%.*s/../share/weft/models/stories-7m",
                                (int)(strrchr(self, '/') - self), self)
                       .p;
    }
    for (size_t i = 0; i < sizeof place / sizeof *place; i++)
        if (place[i] && stat(place[i], &st) == 0)
            return place[i];
    return NULL;
}

/* ---- how long a context ---- */

static int64_t choose_context(talk *t)
{
    int64_t trained = CONTEXT_DEFAULT;
    weft_model_int(t->m, "ctx", &trained);
    if (t->f->context >= 0)
        return t->f->context > 0 ? t->f->context : trained;
    int64_t context = trained < CONTEXT_DEFAULT ? trained : CONTEXT_DEFAULT, wanted = context;
    uint64_t room = memory_available("").bytes / 2, per_token = weft_model_token_bytes(t->m);
    while (room > 0 && context > 256 && (uint64_t)context * per_token > room)
        context /= 2;
    if (context < wanted)
        cli_say(t->c, "memory is short: a context of %lld tokens instead of %lld (-c sets it)",
                (long long)context, (long long)wanted);
    return context;
}

/* ---- the sampler ---- */

static weft_status read_bias(talk *t, logit_bias **out)
{
    const flag_list *l = &t->f->bias;
    logit_bias *bias = ARENA_ARRAY(t->a, logit_bias, l->n + 1);
    for (size_t i = 0; i < l->n; i++) {
        char *end;
        errno = 0;
        long id = strtol(l->at[i], &end, 10);
        double x = *end == '=' ? strtod(end + 1, &end) : NAN;
        if (errno || isnan(x) || *end || id < 0 || id > INT32_MAX)
            return weft_fail(t->c->dg, W1903, WEFT_NOWHERE, "--logit-bias: `%s` is not ID=NUMBER",
                             l->at[i]);
        bias[i] = (logit_bias){(int32_t)id, (float)x};
    }
    *out = bias;
    return WEFT_OK;
}

/* Line breaks and quotes end a run for DRY, as they do for everybody who uses it. */
static void find_breakers(talk *t, sampler_options *o)
{
    static const char *const texts[] = {"\n", ":", "\"", "*"};
    int32_t *ids = ARENA_ARRAY(t->a, int32_t, sizeof texts / sizeof *texts);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        tok_ids one = {0};
        weft_diag *quiet = diag_create();
        if (tok_encode(quiet, t->text, str_of(texts[i]), (tok_encode_flags){0}, &one) == WEFT_OK &&
            one.n == 1)
            ids[o->n_breaker++] = one.at[0];
        diag_destroy(quiet);
        VEC_FREE(&one);
    }
    o->dry_breakers = ids;
}

static weft_status make_sampler(talk *t, int64_t vocab, int64_t context)
{
    const talk_flags *f = t->f;
    logit_bias *bias = NULL;
    WEFT_TRY(read_bias(t, &bias));
    t->seed = f->seed >= 0 ? (uint64_t)f->seed
                           : ((uint64_t)time(NULL) * 1000003u ^ (uint64_t)clock_ns()) & 0xffffffffu;
    sampler_options o = {.seed = t->seed,
                         .temp = f->temp,
                         .top_k = f->top_k,
                         .top_p = f->top_p,
                         .min_p = f->min_p,
                         .typical = f->typical,
                         .last_n = f->last_n,
                         .repeat = f->repeat,
                         .presence = f->presence,
                         .frequency = f->frequency,
                         .dry_multiplier = f->dry_multiplier,
                         .dry_base = f->dry_base,
                         .dry_allowed = f->dry_allowed,
                         .dry_last_n = f->dry_last_n,
                         .xtc_probability = f->xtc_probability,
                         .xtc_threshold = f->xtc_threshold,
                         .mirostat = (int)f->mirostat,
                         .mirostat_tau = f->tau,
                         .mirostat_eta = f->eta,
                         .bias = bias,
                         .n_bias = f->bias.n,
                         .samplers = f->samplers};
    find_breakers(t, &o);
    return sampler_create(t->c->dg, &o, vocab, context, &t->pick);
}

weft_status talk_resample(talk *t, const talk_flags *f)
{
    const talk_flags *was = t->f;
    sampler *old = t->pick;
    t->f = f;
    weft_status st = make_sampler(t, t->e.vocab, t->e.context);
    if (st != WEFT_OK) {
        t->f = was;
        return st;
    }
    sampler_destroy(old);
    t->e.pick = t->pick;
    return WEFT_OK;
}

/* ---- opening ---- */

weft_status talk_open(cli *c, const talk_flags *f, talk *t)
{
    uint64_t start = clock_ns();
    *t = (talk){.c = c, .f = f, .a = arena_create()};
    const char *path = f->model ? f->model : find_demo(t->a);
    if (!path)
        return weft_fail(c->dg, W1904, WEFT_NOWHERE,
                         "the demo model is not there; name a checkpoint with -m MODEL");
    weft_model_options open = {.size = sizeof open,
                               .arch = f->arch,
                               .no_mmap = f->no_mmap,
                               .mlock = f->mlock,
                               .guard = true};
    WEFT_TRY(weft_model_open(c->dg, path, &open, &t->m));
    WEFT_TRY(tok_open_model(c->dg, api_model_file(t->m), &t->text));
    int64_t context = choose_context(t), vocab = tok_vocab_size(t->text);
    weft_model_int(t->m, "vocab", &vocab);
    int64_t n_batch = f->batch < context ? f->batch : context;
    int64_t threads = f->threads ? f->threads : threads_default();
    progress bar = {0};
    weft_session_options how = {.size = sizeof how,
                                .context = context,
                                .batch = n_batch,
                                .threads = threads,
                                .wants = 1,
                                .exec = (weft_exec)f->exec,
                                .kv = (weft_kv)f->kv,
                                .deterministic = f->deterministic,
                                .round_bf16 = f->round_bf16,
                                .no_pack_cache = f->no_pack_cache,
                                .no_repack = f->no_repack,
                                .progress = weaving_tell,
                                .progress_ctx = &bar};
    WEFT_TRY(weft_session_create(c->dg, t->m, &how, &t->s));
    WEFT_TRY(make_sampler(t, vocab, context));
    engine_init(&t->e, api_session(t->s), t->text, t->pick, context, n_batch, vocab);
    t->open = true;
    t->load_ns = clock_ns() - start;
    cli_say_verbose(c, "%s (%s): context %lld, %lld threads, seed %llu, %.1f MiB for the session",
                    path, weft_model_name(t->m), (long long)context, (long long)threads,
                    (unsigned long long)t->seed, (double)weft_session_bytes(t->s) / (1 << 20));
    return WEFT_OK;
}

void talk_close(talk *t)
{
    if (t->open)
        engine_deinit(&t->e);
    chat_close(t->chat);
    sampler_destroy(t->pick);
    weft_session_destroy(t->s);
    tok_close(t->text);
    weft_model_close(t->m);
    arena_destroy(t->a);
}

/* ---- speaking ---- */

static void on_progress(void *ctx, int64_t done, int64_t total)
{
    (void)total;
    progress_update(ctx, (uint64_t)done);
}

weft_status talk_feed(talk *t, const tok_ids *ids, uint64_t *out_ns)
{
    uint64_t start = clock_ns();
    progress p;
    progress_start(&p, "reading the prompt", ids->n, PROGRESS_COUNT);
    weft_status st = engine_feed(t->c->dg, &t->e, ids->at, ids->n, on_progress, &p);
    progress_end(&p);
    *out_ns = clock_ns() - start;
    return st;
}

typedef struct {
    talk *t;
    strbuf *into;
    bool show;
} listener;

static bool on_text(void *ctx, str text)
{
    listener *l = ctx;
    if (l->into)
        strbuf_put(l->into, text);
    if (l->show)
        cli_print(l->t->c, text);
    return l->t->c->out_error == 0;
}

static void on_token(void *ctx, int32_t id, const float *logits, int64_t vocab)
{
    const listener *l = ctx;
    l->t->on_token(l->t->on_token_ctx, id, logits, vocab);
}

void talk_listen(talk *t, talk_listener *tell, void *ctx)
{
    t->on_token = tell;
    t->on_token_ctx = ctx;
}

weft_status talk_go_on(talk *t, strbuf *into, bool show, gen_result *out)
{
    listener l = {t, into, show};
    gen_options o = {.n_max = t->f->n,
                     .stops = t->f->stop.at,
                     .n_stop = t->f->stop.n,
                     .ignore_end = t->f->ignore_end,
                     .on_text = on_text,
                     .on_token = t->on_token ? on_token : NULL,
                     .ctx = &l,
                     .interrupted = interrupt_flag()};
    interrupt_hold(true);
    weft_status st = engine_generate(t->c->dg, &t->e, &o, out);
    if (st == WEFT_OK)
        st = weft_model_check(t->c->dg, t->m);
    return st;
}
