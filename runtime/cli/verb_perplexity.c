/* verb_perplexity.c - `weft perplexity`: how well a model predicts a text, and how far it is from another. */
#include "runtime/base/clock.h"
#include "runtime/base/json_write.h"
#include "runtime/cli/interrupt.h"
#include "runtime/cli/lora_flags.h"
#include "runtime/engine/perplexity.h"
#include "runtime/engine/score.h"
#include "runtime/formats/kl_file.h"
#include "runtime/quant/imatrix_collect.h"
#include "runtime/text/tok.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

enum { TEXT_BYTES_MAX = 1 << 30 };

typedef struct {
    model_flags open;
    const char *file, *kl_save, *kl_base, *imatrix_out;
    int64_t stride, chunks;
} perplexity_options;

/* clang-format off */
static const flag perplexity_flags[] = {
    MODEL_FLAG_ROW (perplexity_options, open, "the checkpoint"),
    FLAG_ROW_STR   (perplexity_options, file,    "file",     "f",  "FILE",  NULL, "the text"),
    FLAG_ROW_INT   (perplexity_options, open.context, "ctx-size", "c",  "N", "512", 4, 1 << 30, "tokens of a chunk"),
    FLAG_ROW_INT   (perplexity_options, stride,  "stride",   NULL, "N", "0", 0, 1 << 30, "chunks begin N tokens apart and their last N are scored; 0: the second half of each"),
    FLAG_ROW_INT   (perplexity_options, chunks,  "chunks",   NULL, "N", "0", 0, 1 << 30, "stop after N chunks; 0: all of them"),
    BATCH_FLAG_ROW (perplexity_options, open, "512"),
    FLAG_ROW_STR   (perplexity_options, kl_save, "kl-save",  NULL, "FILE",  NULL, "write the distribution at every scored token there"),
    FLAG_ROW_STR   (perplexity_options, kl_base, "kl-base",  NULL, "FILE",  NULL, "compare with those that --kl-save wrote"),
    FLAG_ROW_STR   (perplexity_options, imatrix_out, "imatrix-out", NULL, "FILE", NULL, "write what each column of each matrix is worth, for quantize --imatrix"),
    LORA_FLAG_ROWS (perplexity_options, open),
    SESSION_FLAG_ROWS(perplexity_options, open, "0"),
    FILE_FLAG_ROWS (perplexity_options, open),
    FLAG_ROW_END   (perplexity_options),
};

static const char *const examples[] = {
    "weft perplexity -m model.gguf -f wiki.test.raw",                     "the second half of each 512 tokens",
    "weft perplexity -m model-f16.gguf -f text.txt --kl-save base.kl",    "and keep its distributions",
    "weft perplexity -m model-q4.gguf -f text.txt --kl-base base.kl",     "what quantisation changed",
    NULL,
};
/* clang-format on */

const verb_page perplexity_verb_page = {
    perplexity_flags,
    "Perplexity is e to the mean of -log(probability) of each token given those before it: lower "
    "is "
    "better, and numbers compare only between models with one tokenizer, on one text, with one -c. "
    "Chunks, BOS and scored tokens are those of llama-perplexity.",
    examples,
};

typedef struct {
    cli *c;
    const perplexity_options *o;
    weft_model *m;
    lora adapters;
    weft_session *s;
    tok *text;
    tok_ids ids;
    ppl_options how;
    int64_t vocab;          /* how many logits a row has */
    int64_t chunks, n_span; /* n_span: tokens that take part */
    weft_row *rows;         /* of one call */
    kl_writer *save;
    kl_reader *base;
    imatrix *importance; /* with --imatrix-out */
    imatrix_collect *collect;
    float *weights; /* with --kl-base: those of kl_weights */
    mean_of nll;
    kl_stats kl;
    int64_t n_scored;
    progress bar;
    ppl_result result;
    uint64_t ns;
} perplexity_run;

/* ---- what a chunk calls ---- */

static weft_status on_eval(void *ctx, weft_diag *dg, const int32_t *ids, int64_t n, int64_t pos,
                           int64_t first, const float **out_logits)
{
    perplexity_run *r = ctx;
    weft_view v;
    if (pos == 0)
        WEFT_TRY(weft_truncate(dg, r->s, 0, 0));
    for (int64_t i = 0; i < n; i++)
        r->rows[i] = (weft_row){.token = ids[i], .pos = (int32_t)(pos + i), .want = i >= first};
    if (r->collect)
        imatrix_collect_rows(r->collect, n, n - first);
    WEFT_TRY(weft_eval(dg, r->s, r->rows, n));
    if (first == n)
        return WEFT_OK;
    WEFT_TRY(weft_output(dg, r->s, "logits", -1, &v));
    if (v.width != r->vocab || v.rows != n - first)
        return weft_fail(dg, W1406, WEFT_NOWHERE,
                         "the model gives %" PRId64 " logits in %" PRId64 " rows, expected %" PRId64
                         " in %" PRId64,
                         v.width, v.rows, r->vocab, n - first);
    *out_logits = v.data;
    return WEFT_OK;
}

static weft_status compare(perplexity_run *r, weft_diag *dg, const float *logits, const row_sum *s,
                           int32_t token)
{
    kl_row base;
    WEFT_TRY(kl_reader_next(dg, r->base, &base));
    if (base.token != (uint32_t)token)
        return weft_fail(dg, W1006, WEFT_NOWHERE,
                         "%s: row %" PRId64 " is of token %" PRIu32 ", expected %" PRId32,
                         r->o->kl_base, r->n_scored, base.token, token);
    double kl = kl_of_row(base.below, r->weights, KL_STEPS, logits, r->vocab, s);
    kl_stats_add(&r->kl, kl, row_logprob(logits, s, token), (double)base.logprob,
                 base.top == (uint32_t)s->top);
    return WEFT_OK;
}

static weft_status on_row(void *ctx, weft_diag *dg, const float *logits, int32_t token)
{
    perplexity_run *r = ctx;
    row_sum s;
    if (token >= r->vocab)
        return weft_fail(dg, W1405, WEFT_NOWHERE,
                         "%s: the text has token %" PRId32 ", the model has %" PRId64 " logits",
                         r->o->file, token, r->vocab);
    if (!row_sum_of(logits, r->vocab, &s))
        return weft_fail(dg, W1410, WEFT_NOWHERE,
                         "%s: scored token %" PRId64 " has a logit that is not a finite number",
                         r->o->open.model, r->n_scored);
    double logprob = row_logprob(logits, &s, token);
    mean_add(&r->nll, -logprob);
    if (r->base)
        WEFT_TRY(compare(r, dg, logits, &s, token));
    if (r->save) {
        kl_row row = {.logprob = fminf((float)logprob, 0),
                      .token = (uint32_t)token,
                      .top = (uint32_t)s.top,
                      .log_sum = (float)s.log_sum};
        WEFT_TRY(kl_writer_put(dg, r->save, &row, logits, s.largest));
    }
    r->n_scored++;
    return WEFT_OK;
}

static bool on_progress(void *ctx, int64_t n_done, int64_t n_total)
{
    perplexity_run *r = ctx;
    (void)n_total;
    progress_update(&r->bar, (uint64_t)n_done);
    return !*interrupt_flag();
}

/* ---- opening ---- */

static weft_status read_text(perplexity_run *r, arena *a)
{
    source *src;
    /* Special tokens written in the text are text here. */
    tok_encode_flags how = {.add_special = true};
    WEFT_TRY(source_open(r->c->dg, a, r->o->file, TEXT_BYTES_MAX, &src));
    WEFT_TRY(tok_encode(r->c->dg, r->text, src->text, how, &r->ids));
    if (tok_adds_bos(r->text))
        r->how.bos = tok_bos(r->text);
    r->chunks = ppl_chunks(&r->how, (int64_t)r->ids.n);
    if (r->chunks < 1) {
        weft_status st = weft_fail(r->c->dg, W1904, WEFT_NOWHERE,
                                   "%s: the text has %zu tokens, a chunk takes %" PRId64,
                                   r->o->file, r->ids.n, r->how.context + (r->how.stride > 0));
        weft_note(r->c->dg, "-c sets shorter chunks");
        return st;
    }
    r->n_span = r->how.context + (r->chunks - 1) * (r->how.stride ? r->how.stride : r->how.context);
    return WEFT_OK;
}

static weft_status open_model(perplexity_run *r)
{
    api_source from = model_flags_source(&r->o->open);
    WEFT_TRY(api_model_open(r->c->dg, &from, &r->m));
    return tok_open_model(r->c->dg, api_file_of(r->m)->file, &r->text);
}

static weft_status open_session(perplexity_run *r)
{
    int64_t scored = ppl_chunk_rows(&r->how); /* of a chunk, and so of a call at most */
    progress bar = {0};
    weft_session_options how = model_flags_session(&r->o->open, &bar);
    how.context = r->how.context;
    how.batch = r->how.batch;
    how.wants = scored < r->how.batch ? scored : r->how.batch;
    r->rows = calloc((size_t)r->how.batch, sizeof *r->rows);
    if (!r->rows)
        return weft_fail(r->c->dg, W1406, WEFT_NOWHERE, "no memory for calls of %" PRId64 " rows",
                         r->how.batch);
    WEFT_TRY(lora_open(r->c->dg, r->m, &r->o->open, &r->adapters));
    lora_want(&r->adapters, &how);
    WEFT_TRY((r->o->imatrix_out ? api_session_create_watched : weft_session_create)(r->c->dg, r->m,
                                                                                    &how, &r->s));
    WEFT_TRY(lora_load(r->c->dg, &r->adapters, r->s, LORA_MIX));
    const plan_output *logits = plan_output_find(r->s->plan.p, "logits", -1);
    if (!logits)
        return weft_fail(r->c->dg, W1406, WEFT_NOWHERE, "%s: its logits have an index",
                         r->o->open.model);
    r->vocab = logits->width;
    if (!r->o->imatrix_out)
        return WEFT_OK;
    r->importance = imatrix_create();
    return imatrix_collect_begin(r->c->dg, r->importance, r->s->run, api_file_of(r->m)->file,
                                 &r->collect);
}

/* ---- files of distributions ---- */

static weft_status open_save(perplexity_run *r)
{
    kl_head h = {.vocab = r->vocab,
                 .context = r->how.context,
                 .stride = r->how.stride,
                 .chunks = r->chunks,
                 .n_token = r->n_span,
                 .n_row = r->chunks * ppl_chunk_rows(&r->how),
                 .model = model_file_hash(api_file_of(r->m)->file),
                 .bos = r->how.bos};
    interrupt_waits();
    weft_status st = kl_writer_create(r->c->dg, r->o->kl_save, &h, r->ids.at, &r->save);
    interrupt_removes(st == WEFT_OK ? kl_writer_part(r->save) : NULL);
    return st;
}

/* Is the file of the same text, cut in the same way, with the same vocabulary? */
static weft_status open_base(perplexity_run *r)
{
    weft_diag *dg = r->c->dg;
    WEFT_TRY(kl_reader_open(dg, r->o->kl_base, &r->base));
    const kl_head *h = kl_reader_head(r->base);
    const struct {
        const char *name;
        int64_t theirs, ours;
    } same[] = {
        {"a vocabulary of", h->vocab, r->vocab},
        {"a context of", h->context, r->how.context},
        {"a stride of", h->stride, r->how.stride},
        {"a count of chunks of", h->chunks, r->chunks},
        {"a first token of", h->bos, r->how.bos},
        {"a count of tokens of", h->n_token, r->n_span},
        {"a count of scored tokens of", h->n_row, r->chunks * ppl_chunk_rows(&r->how)},
    };
    for (size_t i = 0; i < sizeof same / sizeof *same; i++)
        if (same[i].theirs != same[i].ours)
            return weft_fail(dg, W1015, WEFT_NOWHERE,
                             "%s: was written with %s %" PRId64 ", here it is %" PRId64,
                             r->o->kl_base, same[i].name, same[i].theirs, same[i].ours);
    for (int64_t i = 0; i < h->n_token; i++)
        if (kl_reader_ids(r->base)[i] != r->ids.at[i])
            return weft_fail(dg, W1015, WEFT_NOWHERE,
                             "%s: token %" PRId64 " of its text is %" PRId32
                             ", here it is %" PRId32,
                             r->o->kl_base, i, kl_reader_ids(r->base)[i], r->ids.at[i]);
    r->weights = malloc(65536 * sizeof *r->weights);
    if (!r->weights)
        return weft_fail(dg, W1406, WEFT_NOWHERE, "no memory for a table of 65536 weights");
    kl_weights(r->weights);
    return WEFT_OK;
}

/* ---- printing ---- */

static const struct {
    const char *name, *key;
    double share;
} percentiles[] = {
    {"median", "median", 0.5}, {"90 %", "p90", 0.9},       {"95 %", "p95", 0.95},
    {"99 %", "p99", 0.99},     {"99.9 %", "p99_9", 0.999}, {"largest", "max", 1},
};
enum { PERCENTILES = sizeof percentiles / sizeof *percentiles };

static double rms(const mean_of *squares)
{
    return sqrt(mean_value(squares));
}

static void text_kl(perplexity_run *r, strbuf *out)
{
    const kl_stats *k = &r->kl;
    double base = exp(mean_value(&k->nll_base)), ratio = exp(mean_value(&k->nll_change));
    strbuf_add(out, "base         %.4f +- %.4f\n", base, base * mean_error(&k->nll_base));
    strbuf_add(out, "ratio        %.6f +- %.6f of the base's perplexity\n", ratio,
               ratio * mean_error(&k->nll_change));
    strbuf_add(out, "divergence   %.6f +- %.6f nats a token\n", mean_value(&k->kl),
               mean_error(&k->kl));
    for (int i = 0; i < PERCENTILES; i++)
        strbuf_add(out, "  %-10s %.6f\n", percentiles[i].name,
                   kl_stats_percentile(k, percentiles[i].share));
    strbuf_add(out, "same top     %.3f +- %.3f %%\n", 100 * mean_value(&k->same_top),
               100 * mean_error(&k->same_top));
    strbuf_add(out, "probability  %+.3f +- %.3f %% of the true token, root mean square %.3f %%\n",
               100 * mean_value(&k->p_change), 100 * mean_error(&k->p_change),
               100 * rms(&k->p_change2));
}

static void as_text(perplexity_run *r, strbuf *out)
{
    double ppl = exp(mean_value(&r->nll)), seconds = clock_seconds(r->ns);
    strbuf_add(out, "perplexity   %.4f +- %.4f\n", ppl, ppl * mean_error(&r->nll));
    strbuf_add(out, "chunks       %" PRId64 " of %" PRId64 " tokens, %" PRId64 " tokens scored\n",
               r->result.chunks, r->how.context, r->n_scored);
    strbuf_add(out, "time         %.1f s, %.1f tokens a second\n", seconds,
               (double)r->result.n_token / (seconds > 0 ? seconds : 1));
    if (r->base)
        text_kl(r, out);
}

static void json_mean(json_writer *w, const char *name, const mean_of *m)
{
    char error[64];
    snprintf(error, sizeof error, "%s_error", name);
    json_key_double(w, name, mean_value(m));
    json_key_double(w, error, mean_error(m));
}

static void json_kl(json_writer *w, const perplexity_run *r)
{
    const kl_stats *k = &r->kl;
    model_hash here = model_file_hash(api_file_of(r->m)->file),
               there = kl_reader_head(r->base)->model;
    double base = exp(mean_value(&k->nll_base)), ratio = exp(mean_value(&k->nll_change));
    json_key_open(w, "kl", '{');
    json_mean(w, "mean", &k->kl);
    for (int i = 0; i < PERCENTILES; i++)
        json_key_double(w, percentiles[i].key, kl_stats_percentile(k, percentiles[i].share));
    json_mean(w, "same_top", &k->same_top);
    json_mean(w, "nll_change", &k->nll_change);
    json_mean(w, "p_change", &k->p_change);
    json_key_double(w, "p_change_rms", rms(&k->p_change2));
    json_key_double(w, "ppl_base", base);
    json_key_double(w, "ppl_base_error", base * mean_error(&k->nll_base));
    json_key_double(w, "ppl_ratio", ratio);
    json_key_double(w, "ppl_ratio_error", ratio * mean_error(&k->nll_change));
    json_key(w, "same_layout"); /* of keys and tensors: the same file, or another of its kind */
    json_bool(w, here.lo == there.lo && here.hi == there.hi);
    json_close(w, '}');
}

static void as_json(perplexity_run *r, strbuf *out)
{
    json_writer w = {.out = out};
    double ppl = exp(mean_value(&r->nll)), seconds = clock_seconds(r->ns);
    const struct {
        const char *name;
        int64_t n;
    } counts[] = {{"context", r->how.context},      {"stride", r->how.stride},
                  {"chunks", r->result.chunks},     {"tokens", (int64_t)r->ids.n},
                  {"evaluated", r->result.n_token}, {"scored", r->n_scored}};
    json_open(&w, '{');
    json_key_text(&w, "model", r->o->open.model);
    json_key_text(&w, "file", r->o->file);
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        json_key_int(&w, counts[i].name, counts[i].n);
    json_key_double(&w, "ppl", ppl);
    json_key_double(&w, "ppl_error", ppl * mean_error(&r->nll));
    json_mean(&w, "nll", &r->nll);
    json_key_double(&w, "seconds", seconds);
    json_key_double(&w, "tokens_per_second", seconds > 0 ? (double)r->result.n_token / seconds : 0);
    if (r->base)
        json_kl(&w, r);
    json_close(&w, '}');
    strbuf_putc(out, '\n');
}

static void print_result(perplexity_run *r)
{
    strbuf out = {0};
    kl_stats_sort(&r->kl);
    (r->c->common.json ? as_json : as_text)(r, &out);
    cli_print_all(r->c, &out);
}

/* ---- the verb ---- */

static weft_status check_flags(cli *c, const perplexity_options *o)
{
    WEFT_TRY(model_flags_check(c->dg, &o->open));
    if (!o->file)
        return weft_fail(c->dg, W1904, WEFT_NOWHERE, "perplexity needs a text: -f FILE");
    if (o->stride >= o->open.context)
        return weft_fail(c->dg, W1903, WEFT_NOWHERE,
                         "--stride takes a number under that of -c, %" PRId64 ", not %" PRId64,
                         o->open.context, o->stride);
    return WEFT_OK;
}

static weft_status run(perplexity_run *r, arena *a)
{
    weft_diag *dg = r->c->dg;
    const perplexity_options *o = r->o;
    ppl_calls calls = {.eval = on_eval, .row = on_row, .progress = on_progress, .ctx = r};
    r->how =
        (ppl_options){.context = o->open.context,
                      .stride = o->stride,
                      .chunks_max = o->chunks,
                      .batch = o->open.batch < o->open.context ? o->open.batch : o->open.context,
                      .bos = TOK_NONE};
    WEFT_TRY(open_model(r));
    WEFT_TRY(read_text(r, a));
    WEFT_TRY(open_session(r));
    if (o->kl_base)
        WEFT_TRY(open_base(r));
    if (o->kl_save)
        WEFT_TRY(open_save(r));
    cli_say_verbose(r->c, "%zu tokens, %" PRId64 " chunks of %" PRId64 ", %.1f MiB for the session",
                    r->ids.n, r->chunks, o->open.context,
                    (double)weft_session_bytes(r->s) / (1 << 20));
    calls.vocab = r->vocab;
    interrupt_hold(true);
    progress_start(&r->bar, "perplexity", (uint64_t)(r->chunks * (o->open.context - 1)),
                   PROGRESS_COUNT);
    uint64_t start = clock_ns();
    weft_status st = ppl_run(dg, &r->how, r->ids.at, (int64_t)r->ids.n, &calls, &r->result);
    r->ns = clock_ns() - start;
    progress_end(&r->bar);
    if (st != WEFT_OK || r->result.stopped)
        return st;
    WEFT_TRY(weft_model_check(dg, r->m));
    if (r->importance)
        WEFT_TRY(imatrix_write(dg, r->importance, o->imatrix_out, o->file, r->result.chunks,
                               o->open.context));
    return r->save ? kl_writer_finish(dg, r->save) : WEFT_OK;
}

int verb_perplexity(cli *c)
{
    perplexity_run r = {.c = c, .o = c->options};
    arena *a = arena_create();
    weft_status st = check_flags(c, r.o);
    if (st == WEFT_OK)
        st = run(&r, a);
    if (st == WEFT_OK && !r.result.stopped)
        print_result(&r);
    c->common.json = false;
    imatrix_collect_end(r.collect);
    imatrix_destroy(r.importance);
    interrupt_removes(NULL);
    kl_writer_destroy(r.save);
    kl_reader_close(r.base);
    free(r.weights);
    free(r.rows);
    kl_stats_free(&r.kl);
    VEC_FREE(&r.ids);
    weft_session_destroy(r.s);
    lora_close(&r.adapters);
    tok_close(r.text);
    weft_model_close(r.m);
    arena_destroy(a);
    return st == WEFT_OK && r.result.stopped ? CLI_INTERRUPTED : cli_exit_of(st);
}
