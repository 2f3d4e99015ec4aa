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

void stats_metrics(const sched_stats *s, const form_cache_counts *forms, strbuf *out)
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
        {"weft_swapped_in_total", "counter", "Answers that went on with state they had left there.",
         (double)s->swapped_in},
        {"weft_adapter_loads_total", "counter", "Adapters copied into slots.",
         (double)s->adapter_loads},
        {"weft_prefix_lookups_total", "counter", "Texts that were looked for among kept ones.",
         (double)s->prefixes.lookups},
        {"weft_prefix_hits_total", "counter", "Texts of which a part was kept.",
         (double)s->prefixes.hits},
        {"weft_form_hits_total", "counter", "Forms of answers whose grammar was kept.",
         (double)forms->hits},
        {"weft_form_misses_total", "counter", "Forms of answers that were compiled.",
         (double)forms->misses},
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

/* ---- the page ---- */

static void times(json_writer *w, const char *name, const sched_histogram *h)
{
    json_key_open(w, name, '{');
    json_key_int(w, "n", (int64_t)h->n);
    json_key_double(w, "sum_s", h->sum_s);
    json_key_open(w, "at", '[');
    for (int i = 0; i < SCHED_BUCKETS; i++)
        json_int(w, (int64_t)h->at[i]);
    json_close(w, ']');
    json_close(w, '}');
}

static void slot(json_writer *w, const sched_row *r, const stats_about *about)
{
    static const char *const phases[] = {"waiting", "prompt", "decode", "preempted"};
    strbuf model = {0};
    strbuf_add(&model, r->adapter[0] ? "%s:%s" : "%s", about->model, r->adapter);
    json_open(w, '{');
    json_key_int(w, "id", (int64_t)r->id);
    json_key_int(w, "choice", r->choice);
    json_key_str(w, "model", strbuf_view(&model));
    json_key_text(w, "phase", phases[r->state]);
    json_key_text(w, "key",
                  about->keys && r->share > 0 && r->share <= about->keys->n
                      ? about->keys->at[r->share - 1].name
                      : NULL);
    json_key_int(w, "priority", r->priority);
    json_key_int(w, "prompt_tokens", r->n_prompt);
    json_key_int(w, "held_tokens", r->n_held);
    json_key_int(w, "generated", r->n_generated);
    json_key_int(w, "pages", r->pages);
    json_key_double(w, "age_s", (double)r->age_ns / 1e9);
    json_close(w, '}');
    strbuf_free(&model);
}

typedef struct {
    const char *name;
    uint64_t n;
} count_row;

static void counts(json_writer *w, const char *name, const count_row *rows, size_t n)
{
    json_key_open(w, name, '{');
    for (size_t i = 0; i < n; i++)
        json_key_int(w, rows[i].name, (int64_t)rows[i].n);
    json_close(w, '}');
}
#define COUNTS(w, name, rows) counts(w, name, rows, sizeof(rows) / sizeof *(rows))

static void write_requests(json_writer *w, const sched_stats *s)
{
    json_key_open(w, "requests", '{');
    json_key_int(w, "running", s->running);
    json_key_int(w, "waiting", s->waiting);
    json_key_int(w, "preempted", s->preempted);
    json_key_int(w, "jobs", (int64_t)s->jobs);
    json_key_int(w, "refused", (int64_t)s->refused);
    json_key_open(w, "ended", '{');
    for (int i = 1; i < SCHED_END_COUNT; i++)
        json_key_int(w, sched_end_name((sched_end)i), (int64_t)s->ended[i]);
    json_close(w, '}');
    json_close(w, '}');
}

static void write_times(json_writer *w, const sched_stats *s)
{
    json_key_open(w, "times", '{');
    json_key_open(w, "bucket_s", '[');
    for (int i = 0; i + 1 < SCHED_BUCKETS; i++)
        json_double(w, sched_bucket_s[i]);
    json_null(w); /* the last one has no bound */
    json_close(w, ']');
    times(w, "first_token", &s->first_token);
    times(w, "inter_token", &s->inter_token);
    json_close(w, '}');
}

static void write_tiers(json_writer *w, const sched_stats *s)
{
    json_key_open(w, "state", '[');
    for (int32_t i = 0; i < s->n_tier; i++) {
        const session_tier *t = &s->tiers[i];
        json_open(w, '{');
        json_key_text(w, "keys", kform_name(t->tier.key));
        json_key_text(w, "values", kform_name(t->tier.value));
        if (t->tier.last != KPOLICY_REST)
            json_key_int(w, "last", t->tier.last);
        json_key_int(w, "page_tokens", t->page_tok);
        json_key_int(w, "pages", t->pages);
        json_key_int(w, "pages_free", t->pages_free);
        json_key_int(w, "bytes", t->pages * (int64_t)t->page_bytes);
        json_key_int(w, "bytes_used", (t->pages - t->pages_free) * (int64_t)t->page_bytes);
        json_close(w, '}');
    }
    json_close(w, ']');
}

void stats_state(const sched_stats *s, const sched_row *rows, int64_t n_row,
                 const stats_about *about, strbuf *out)
{
    const prefix_stats *p = &s->prefixes;
    /* clang-format off */
    const count_row limits[] = {
        {"batch", (uint64_t)s->batch}, {"sequences", (uint64_t)s->sequences}, {"queue", (uint64_t)about->queue}, {"context", (uint64_t)s->context}};
    const count_row counters[] = {
        {"steps", s->steps}, {"rows_prompt", s->rows_prompt}, {"rows_decode", s->rows_decode}, {"tokens_prompt", s->tokens_prompt},
        {"tokens_cached", s->tokens_cached}, {"tokens_generated", s->tokens_generated}, {"preempted_recompute", s->preempted_recompute},
        {"preempted_memory", s->preempted_memory}, {"preempted_disk", s->preempted_disk}, {"swapped_in", s->swapped_in}};
    const count_row pages[] = {
        {"pages", (uint64_t)s->pages}, {"pages_free", (uint64_t)s->pages_free}, {"pages_kept", (uint64_t)s->pages_kept}, {"page_tokens", (uint64_t)s->page_tok}};
    const count_row prefixes[] = {
        {"most", (uint64_t)p->room}, {"kept", (uint64_t)p->used}, {"pages", (uint64_t)p->pages}, {"bytes", (uint64_t)p->bytes}, {"lookups", p->lookups},
        {"hits", p->hits}, {"tokens", p->tokens}, {"tokens_reused", p->tokens_saved}, {"evicted", p->evicted}};
    const count_row swap[] = {{"memory_bytes", (uint64_t)s->swap_memory_bytes}, {"disk_bytes", (uint64_t)s->swap_disk_bytes}};
    const count_row loaded[] = {{"loaded", (uint64_t)s->adapters_loaded}, {"slots", (uint64_t)s->adapter_slots}};
    const count_row forms[] = {{"kept", about->forms.kept}, {"hits", about->forms.hits}, {"misses", about->forms.misses}};
    /* clang-format on */
    json_writer w = {.out = out};
    json_open(&w, '{');
    json_key_text(&w, "version", weft_version());
    json_key_text(&w, "model", about->model);
    json_key_double(&w, "uptime_s", about->uptime_s);
    json_key_bool(&w, "draining", s->draining);
    COUNTS(&w, "limits", limits);
    write_requests(&w, s);
    COUNTS(&w, "counters", counters);
    write_times(&w, s);
    COUNTS(&w, "pages", pages);
    if (s->n_tier > 0)
        write_tiers(&w, s);
    COUNTS(&w, "prefixes", prefixes);
    COUNTS(&w, "swap", swap);
    COUNTS(&w, "adapters", loaded);
    COUNTS(&w, "forms", forms);
    json_key_open(&w, "slots", '[');
    for (int64_t i = 0; i < n_row; i++)
        slot(&w, &rows[i], about);
    json_close(&w, ']');
    json_close(&w, '}');
}
