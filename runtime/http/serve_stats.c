/* serve_stats.c - numbers as text. */
#include "runtime/http/serve_stats.h"

#include "runtime/base/json_write.h"
#include "runtime/weft.h"

/* ---- Prometheus ---- */

static void one(strbuf *out, const char *name, const char *type, const char *help, double x)
{
    strbuf_add(out, "# HELP %s %s\n# TYPE %s %s\n%s %.17g\n", name, help, name, type, name, x);
}

static void histogram(strbuf *out, const char *name, const char *help, const sched_histogram *h)
{
    strbuf_add(out, "# HELP %s %s\n# TYPE %s histogram\n", name, help, name);
    for (int i = 0; i + 1 < SCHED_BUCKETS; i++)
        strbuf_add(out, "%s_bucket{le=\"%g\"} %llu\n", name, sched_bucket_s[i],
                   (unsigned long long)h->at[i]);
    strbuf_add(out, "%s_bucket{le=\"+Inf\"} %llu\n%s_sum %.9g\n%s_count %llu\n", name,
               (unsigned long long)h->n, name, h->sum_s, name, (unsigned long long)h->n);
}

void stats_metrics(const sched_stats *s, strbuf *out)
{
    const struct {
        const char *name, *type, *help;
        double x;
    } rows[] = {
        {"weft_answers_waiting", "gauge", "Answers that have not begun.", (double)s->waiting},
        {"weft_answers_running", "gauge", "Answers that have a sequence.", (double)s->running},
        {"weft_answers_preempted", "gauge", "Answers that had a sequence and wait for one.",
         (double)s->preempted},
        {"weft_sequences", "gauge", "Sequences of the session.", (double)s->sequences},
        {"weft_pages", "gauge", "Pages of state.", (double)s->pages},
        {"weft_pages_free", "gauge", "Pages that nobody holds.", (double)s->pages_free},
        {"weft_pages_kept", "gauge", "Pages that only kept texts hold.", (double)s->pages_kept},
        {"weft_adapters_loaded", "gauge", "Adapters in slots.", (double)s->adapters_loaded},
        {"weft_jobs_total", "counter", "Jobs taken.", (double)s->jobs},
        {"weft_jobs_refused_total", "counter", "Jobs refused.", (double)s->refused},
        {"weft_steps_total", "counter", "Calls of the session.", (double)s->steps},
        {"weft_rows_prompt_total", "counter", "Rows of prompts evaluated.", (double)s->rows_prompt},
        {"weft_rows_decode_total", "counter", "Rows of answers evaluated.", (double)s->rows_decode},
        {"weft_tokens_prompt_total", "counter", "Tokens of prompts.", (double)s->tokens_prompt},
        {"weft_tokens_cached_total", "counter", "Tokens of prompts that were not evaluated again.",
         (double)s->tokens_cached},
        {"weft_tokens_generated_total", "counter", "Tokens of answers.",
         (double)s->tokens_generated},
        {"weft_preempted_recompute_total", "counter", "Answers preempted, to be computed again.",
         (double)s->preempted_recompute},
        {"weft_preempted_memory_total", "counter", "Answers preempted to memory.",
         (double)s->preempted_memory},
        {"weft_preempted_disk_total", "counter", "Answers preempted to disk.",
         (double)s->preempted_disk},
        {"weft_adapter_loads_total", "counter", "Adapters copied into slots.",
         (double)s->adapter_loads},
        {"weft_prefix_lookups_total", "counter", "Texts that were looked for among kept ones.",
         (double)s->prefixes.lookups},
        {"weft_prefix_hits_total", "counter", "Texts of which a part was kept.",
         (double)s->prefixes.hits},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        one(out, rows[i].name, rows[i].type, rows[i].help, rows[i].x);
    strbuf_put(out, STR("# HELP weft_answers_ended_total Answers by what ended them.\n# TYPE "
                        "weft_answers_ended_total counter\n"));
    for (int i = 1; i < SCHED_END_COUNT; i++)
        strbuf_add(out, "weft_answers_ended_total{end=\"%s\"} %llu\n", sched_end_name((sched_end)i),
                   (unsigned long long)s->ended[i]);
    histogram(out, "weft_first_token_seconds", "From arrival to the first token.", &s->first_token);
    histogram(out, "weft_inter_token_seconds", "Between two tokens of an answer.", &s->inter_token);
    histogram(out, "weft_queue_seconds", "From arrival to a sequence.", &s->queue);
    histogram(out, "weft_step_seconds", "One call of the session.", &s->step);
}

double stats_quantile(const sched_histogram *h, double q)
{
    double want = q * (double)h->n, before = 0, from = 0;
    for (int i = 0; i + 1 < SCHED_BUCKETS; i++) {
        double upto = (double)h->at[i];
        if (upto >= want && upto > before)
            return from + (sched_bucket_s[i] - from) * (want - before) / (upto - before);
        before = upto;
        from = sched_bucket_s[i];
    }
    return h->n ? from : 0;
}

/* ---- the page ---- */

static void times(json_writer *w, const char *name, const sched_histogram *h)
{
    json_key_open(w, name, '{');
    json_key_double(w, "p50", 1e3 * stats_quantile(h, 0.5));
    json_key_double(w, "p99", 1e3 * stats_quantile(h, 0.99));
    json_close(w, '}');
}

static void slot(json_writer *w, const sched_row *r, const stats_about *about)
{
    static const char *const phases[] = {"waiting", "prompt", "decode", "swapped"};
    strbuf model = {0};
    strbuf_add(&model, r->adapter[0] ? "%s:%s" : "%s", about->model, r->adapter);
    json_open(w, '{');
    json_key_int(w, "id", (int64_t)r->id);
    json_key_int(w, "choice", r->choice);
    json_key_str(w, "model", strbuf_view(&model));
    json_key_text(w, "phase", phases[r->state]);
    json_key_text(w, "key", about->share_name ? about->share_name(about->ctx, r->share) : "");
    json_key_int(w, "priority", r->priority);
    json_key_int(w, "prompt_tokens", r->n_prompt);
    json_key_int(w, "prompt_done", r->n_held < r->n_prompt ? r->n_held : r->n_prompt);
    json_key_int(w, "generated", r->n_generated);
    json_key_int(w, "pages", r->pages);
    json_key_double(w, "age_s", (double)r->age_ns / 1e9);
    json_close(w, '}');
    strbuf_free(&model);
}

void stats_state(const sched_stats *s, const sched_row *rows, int64_t n_row,
                 const stats_about *about, strbuf *out)
{
    json_writer w = {.out = out};
    uint64_t ended = 0;
    for (int i = 1; i < SCHED_END_COUNT; i++)
        ended += s->ended[i];
    json_open(&w, '{');
    json_key_text(&w, "version", weft_version());
    json_key_text(&w, "model", about->model);
    json_key_double(&w, "uptime_s", about->uptime_s);
    json_key_bool(&w, "draining", s->draining);
    json_key_open(&w, "limits", '{');
    json_key_int(&w, "batch_tokens", s->batch);
    json_key_int(&w, "sequences", s->sequences);
    json_key_int(&w, "context", s->context);
    json_close(&w, '}');
    json_key_open(&w, "batch", '{');
    json_key_int(&w, "decode_rows", s->running);
    json_key_int(&w, "prompt_rows", s->budget_rows);
    json_key_double(&w, "step_ms", s->step.n ? 1e3 * s->step.sum_s / (double)s->step.n : 0);
    json_key_int(&w, "steps", (int64_t)s->steps);
    json_close(&w, '}');
    json_key_open(&w, "requests", '{');
    json_key_int(&w, "running", s->running);
    json_key_int(&w, "waiting", s->waiting);
    json_key_int(&w, "swapped", s->preempted);
    json_key_int(&w, "done", (int64_t)(ended - s->ended[SCHED_END_CANCELLED]));
    json_key_int(&w, "cancelled", (int64_t)s->ended[SCHED_END_CANCELLED]);
    json_key_int(&w, "refused", (int64_t)s->refused);
    json_key_int(&w, "preempted",
                 (int64_t)(s->preempted_recompute + s->preempted_memory + s->preempted_disk));
    json_close(&w, '}');
    json_key_open(&w, "tokens", '{');
    json_key_int(&w, "prompt", (int64_t)s->tokens_prompt);
    json_key_int(&w, "cached", (int64_t)s->tokens_cached);
    json_key_int(&w, "generated", (int64_t)s->tokens_generated);
    json_close(&w, '}');
    json_key_open(&w, "time_ms", '{');
    times(&w, "first_token", &s->first_token);
    times(&w, "inter_token", &s->inter_token);
    json_close(&w, '}');
    json_key_open(&w, "state", '[');
    json_open(&w, '{');
    json_key_int(&w, "page_tokens", s->page_tok);
    json_key_int(&w, "pages", s->pages);
    json_key_int(&w, "pages_free", s->pages_free);
    json_key_int(&w, "pages_kept", s->pages_kept);
    json_close(&w, '}');
    json_close(&w, ']');
    json_key_open(&w, "prefixes", '{');
    json_key_int(&w, "most", s->prefixes.room);
    json_key_int(&w, "kept", s->prefixes.used);
    json_key_int(&w, "pages", s->prefixes.pages);
    json_key_int(&w, "bytes", (int64_t)s->prefixes.bytes);
    json_key_int(&w, "lookups", (int64_t)s->prefixes.lookups);
    json_key_int(&w, "hits", (int64_t)s->prefixes.hits);
    json_key_int(&w, "tokens", (int64_t)s->prefixes.tokens);
    json_key_int(&w, "tokens_reused", (int64_t)s->prefixes.tokens_saved);
    json_key_int(&w, "evicted", (int64_t)s->prefixes.evicted);
    json_close(&w, '}');
    json_key_open(&w, "slots", '[');
    for (int64_t i = 0; i < n_row; i++)
        slot(&w, &rows[i], about);
    json_close(&w, ']');
    json_close(&w, '}');
}
