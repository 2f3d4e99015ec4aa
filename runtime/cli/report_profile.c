/* report_profile.c - the model file with its time beside it, kernels, and the same as JSON. */
#include "runtime/cli/report_profile.h"

#include "runtime/base/vec.h"
#include "runtime/cli/part_words.h"
#include <inttypes.h>
#include <stdlib.h>

static str line_text(const source *src, uint32_t line)
{
    source_find(src, 0); /* lines are counted by the first search */
    return source_find(src, src->line_at[line - 1]).text;
}

str profile_line_text(const profile_line *l)
{
    str s = line_text(l->src, l->line);
    while (s.n && (s.p[0] == ' ' || s.p[0] == '\t'))
        s = (str){s.p + 1, s.n - 1};
    while (s.n && (s.p[s.n - 1] == ' ' || s.p[s.n - 1] == '\r'))
        s.n--;
    return s;
}

static const char *const part_name[PROFILE_PARTS] = {"decode", "prefill"};

static double percent(double part, double whole)
{
    return whole > 0 ? 100 * part / whole : 0;
}

static double rate(double amount, double seconds)
{
    return seconds > 0 ? amount / seconds / 1e9 : 0;
}

/* ---- the listing ---- */

static void put_bar(strbuf *out, double share)
{
    enum { CELLS = 10 };
    int n = (int)(share / 100 * CELLS + 0.5);
    for (int i = 0; i < CELLS; i++)
        strbuf_putc(out, i < n ? '#' : ' ');
}

/* Six columns for one part: time of a token, share, bar, rate, share of the roof. */
static void put_part(const profile *f, int part, const profile_sum *x, strbuf *out)
{
    const profile_run *run = &f->run[part];
    bool decode = part == PROFILE_DECODE;
    if (!x || x->seconds <= 0) {
        strbuf_add(out, decode ? "%8s %4s %10s %6s %4s |" : "%8s %4s %7s %4s |", "", "", "", "",
                   "");
        return;
    }
    double share = percent(x->seconds, run->timed_seconds);
    strbuf_add(out, "%8.4f %3.0f%% ", x->seconds * 1e3 / (double)run->n_tok, share);
    if (decode) {
        put_bar(out, share);
        strbuf_add(out, " %6.2f", rate(x->bytes, x->seconds));
    } else {
        strbuf_add(out, "%7.2f", rate(x->flops, x->seconds));
    }
    strbuf_add(out, " %3.0f%% |", percent(x->roof, x->seconds));
}

/* From the first line that takes time to the last: all of them, so that it can be read. */
static void put_file(const profile *f, int32_t first, int32_t end, strbuf *out)
{
    const source *src = f->line[first].src;
    strbuf_add(out, "\n%s\n%-37s| %-25s|\n", src->name, "decode", "prefill");
    strbuf_add(out, "%8s %4s %-10s %6s %4s |%8s %4s %7s %4s |%4s\n", "ms/token", "", "share",
               "GB/s", "roof", "ms/token", "", "GFLOP/s", "roof", "line");
    int32_t at = first;
    for (uint32_t line = f->line[first].line; line <= f->line[end - 1].line; line++) {
        const profile_line *l = f->line[at].line == line ? &f->line[at++] : NULL;
        put_part(f, PROFILE_DECODE, l ? &l->part[PROFILE_DECODE] : NULL, out);
        put_part(f, PROFILE_PREFILL, l ? &l->part[PROFILE_PREFILL] : NULL, out);
        strbuf_add(out, "%4u  " STR_FMT "\n", (unsigned)line, STR_ARG(line_text(src, line)));
    }
}

static void put_listing(const profile *f, strbuf *out)
{
    for (int32_t first = 0, end; first < f->n_line; first = end) {
        for (end = first + 1; end < f->n_line && f->line[end].src == f->line[first].src;)
            end++;
        put_file(f, first, end, out);
    }
}

/* ---- totals ---- */

/* What each plan has of it, where there are several. */
static void put_plans(const profile *f, const profile_run *r, strbuf *out)
{
    for (int32_t i = 0; i < f->plans.n_part && f->plans.n_part > 1; i++) {
        const profile_sum *x = &r->each[i];
        strbuf name = {0};
        part_words(&f->plans, i, &name);
        strbuf_add(out,
                   "  %-22s %8.4f ms/token %3.0f %%: %.2f GB/s and %.2f GFLOP/s, %.0f %% of the "
                   "roof\n",
                   name.p, x->seconds * 1e3 / (double)r->n_tok,
                   percent(x->seconds, r->timed_seconds), rate(x->bytes, x->seconds),
                   rate(x->flops, x->seconds), percent(x->roof, x->seconds));
        strbuf_free(&name);
    }
}

static void put_total(const profile *f, int part, strbuf *out)
{
    const profile_run *r = &f->run[part];
    if (r->n_tok == 0)
        return;
    double n = (double)r->n_tok, other = r->timed_seconds - r->all.seconds - r->wait_seconds;
    strbuf_add(
        out, "%-8s %8.4f ms/token, %.2f tok/s: %.2f GB/s and %.2f GFLOP/s, %.0f %% of the roof\n",
        part_name[part], r->seconds * 1e3 / n, n / r->seconds, rate(r->all.bytes, r->seconds),
        rate(r->all.flops, r->seconds), percent(r->all.roof, r->seconds));
    strbuf_add(out,
               "  with steps timed %.4f ms/token: steps %.0f %%, waiting at %.0f barriers a call "
               "%.0f %%, the rest %.0f %%\n",
               r->timed_seconds * 1e3 / n, percent(r->all.seconds, r->timed_seconds), r->barriers,
               percent(r->wait_seconds, r->timed_seconds),
               percent(other > 0 ? other : 0, r->timed_seconds));
    put_plans(f, r, out);
}

typedef struct {
    const plan_kernel *row;
    int32_t n_step;
    profile_sum sum;
} kernel_sum;

static int by_time(const void *a, const void *b)
{
    const kernel_sum *x = a, *y = b;
    return (x->sum.seconds < y->sum.seconds) - (x->sum.seconds > y->sum.seconds);
}

static void put_kernels(const profile *f, int part, strbuf *out)
{
    const profile_run *r = &f->run[part];
    VEC(kernel_sum) sums = {0};
    for (int32_t i = 0; i < r->n_step; i++) {
        const profile_step *x = &r->step[i];
        const plan_kernel *row = profile_kernel_of(f, x);
        size_t k = 0;
        while (k < sums.n && strcmp(sums.at[k].row->name, row->name) != 0)
            k++;
        if (k == sums.n)
            VEC_PUSH(&sums, ((kernel_sum){.row = row}));
        sums.at[k].n_step++;
        profile_add(&sums.at[k].sum, &x->sum);
    }
    if (sums.n) {
        qsort(sums.at, sums.n, sizeof *sums.at, by_time);
        strbuf_add(out, "\n%-32s steps  ms/token share    GB/s GFLOP/s roof\n", part_name[part]);
    }
    for (size_t k = 0; k < sums.n; k++) {
        const profile_sum *x = &sums.at[k].sum;
        strbuf_add(out, "  %-30s %5d %9.4f %4.0f%% %7.2f %7.2f %3.0f%%\n", sums.at[k].row->name,
                   (int)sums.at[k].n_step, x->seconds * 1e3 / (double)r->n_tok,
                   percent(x->seconds, r->timed_seconds), rate(x->bytes, x->seconds),
                   rate(x->flops, x->seconds), percent(x->roof, x->seconds));
    }
    VEC_FREE(&sums);
}

/* The instructions that kernels of a plan which ran are compared with. */
static void put_peaks(const profile *f, int32_t of, strbuf *out)
{
    const peak_rates *peaks = &f->limits[of].peaks;
    bool used[PEAKS_MAX] = {false};
    const char *before = " ";
    for (int part = 0; part < PROFILE_PARTS; part++)
        for (int32_t i = 0; i < f->run[part].n_step; i++) {
            const profile_step *x = &f->run[part].step[i];
            if (x->plan == of)
                used[peaks_of(peaks, kernel_by_symbol(profile_kernel_of(f, x)->name))] = true;
        }
    for (int i = 0; i < peaks->n; i++)
        if (used[i]) {
            strbuf_add(out, "%s%s %.2f", before, peaks->row[i]->name, peaks->rate[i] / 1e9);
            before = ", ";
        }
    strbuf_add(out, "\n");
}

static bool on_card(const plan *p)
{
    return strcmp(p->backend, "cpu") != 0;
}

static void put_size(const profile *f, int32_t i, strbuf *out)
{
    const int n = f->limits[i].threads;
    strbuf_add(out, "%d %s%s", n, on_card(f->plans.part[i].p) ? "block" : "thread",
               n == 1 ? "" : "s");
}

static void put_level(const profile *f, int32_t i, strbuf *out)
{
    const plan *p = f->plans.part[i].p;
    strbuf_add(out, "kernels up to %s%s\n", p->level,
               f->images && on_card(p) ? ", for few rows made for this plan" : "");
}

static void put_roof(const profile *f, int32_t i, strbuf *out)
{
    const double bandwidth = f->limits[i].bandwidth;
    const bool card = on_card(f->plans.part[i].p);
    if (card && bandwidth <= 0) {
        strbuf_add(out, "the roof is not known: the card does not say how fast its memory is\n");
    } else if (card) {
        strbuf_add(out, "the roof, by what the card is made of: %.2f GB/s\n", bandwidth / 1e9);
    } else {
        strbuf_add(out, "the roof, measured: %.2f GB/s; GFLOP/s by instruction:", bandwidth / 1e9);
        put_peaks(f, i, out);
    }
}

/* Of several plans each with its device. */
static void put_devices(const profile *f, strbuf *out)
{
    for (int32_t i = 0; i < f->plans.n_part; i++) {
        strbuf_put(out, STR("  "));
        part_words(&f->plans, i, out);
        strbuf_put(out, STR(": "));
        put_size(f, i, out);
        strbuf_put(out, STR(", "));
        put_level(f, i, out);
        strbuf_put(out, STR("    "));
        put_roof(f, i, out);
    }
}

void profile_as_text(const profile *f, strbuf *out)
{
    const char *kv = plan_kv_text(f->p, (char[KPOLICY_TEXT_MAX]){0});
    strbuf_add(out, "%s: ", f->p->model);
    if (f->plans.n_part > 1) {
        strbuf_add(out, "state in %s, the layers on two devices\n", kv);
        put_devices(f, out);
    } else {
        put_size(f, 0, out);
        strbuf_add(out, ", state in %s, ", kv);
        put_level(f, 0, out);
        put_roof(f, 0, out);
    }
    for (int part = 0; part < PROFILE_PARTS; part++)
        put_total(f, part, out);
    put_listing(f, out);
    for (int part = 0; part < PROFILE_PARTS; part++)
        put_kernels(f, part, out);
}

/* ---- for programs ---- */

static void json_sum(json_writer *w, const profile_sum *x)
{

    json_key_double(w, "seconds", x->seconds);
    json_key_double(w, "bytes", x->bytes);
    json_key_double(w, "flops", x->flops);
    json_key_double(w, "gb_per_s", rate(x->bytes, x->seconds));
    json_key_double(w, "gflop_per_s", rate(x->flops, x->seconds));
    json_key_double(w, "roof_share", x->seconds > 0 ? x->roof / x->seconds : 0);
}

static void json_place(json_writer *w, const source *src, uint32_t line)
{
    json_key_text(w, "file", src ? src->name : NULL);
    json_key_int(w, "line", line);
}

static void json_steps(json_writer *w, const profile *f, const profile_run *r)
{
    json_key_open(w, "nodes", '[');
    for (int32_t i = 0; i < r->n_step; i++) {
        const profile_step *x = &r->step[i];
        const plan_step *s = profile_step_of(f, x);
        json_open(w, '{');
        if (f->plans.n_part > 1)
            json_key_int(w, "part", x->plan);
        json_key_int(w, "bucket", f->plans.part[x->plan].p->bucket[x->bucket].n_tok_max);
        json_key_int(w, "step", x->step);
        json_key_int(w, "node", s->node);
        json_key_int(w, "layer", s->layer);
        json_key_text(w, "op", kop_name(profile_kernel_of(f, x)->op));
        json_key_text(w, "kernel", profile_kernel_of(f, x)->name);
        json_place(w, s->loc.src, s->loc.src ? source_find(s->loc.src, s->loc.begin).line : 0);
        json_sum(w, &x->sum);
        json_close(w, '}');
    }
    json_close(w, ']');
}

/* What each part has of the steps. */
static void json_each(json_writer *w, const profile *f, const profile_run *r)
{
    json_key_open(w, "parts", '[');
    for (int32_t i = 0; i < f->plans.n_part; i++) {
        json_open(w, '{');
        json_sum(w, &r->each[i]);
        json_close(w, '}');
    }
    json_close(w, ']');
}

static void json_run(json_writer *w, const profile *f, int part)
{
    const profile_run *r = &f->run[part];
    json_key(w, part_name[part]);
    if (r->n_tok == 0) {
        json_null(w);
        return;
    }
    json_open(w, '{');
    json_key_int(w, "tokens", r->n_tok);
    json_key_int(w, "calls", r->n_call);
    json_key_double(w, "tok_per_s", (double)r->n_tok / r->seconds);
    json_key_double(w, "untimed_seconds", r->seconds);
    json_key_double(w, "timed_seconds", r->timed_seconds);
    json_key_double(w, "wait_seconds", r->wait_seconds);
    json_key_double(w, "barriers_per_call", r->barriers);
    json_key_open(w, "steps", '{');
    json_sum(w, &r->all);
    json_close(w, '}');
    if (f->plans.n_part > 1)
        json_each(w, f, r);
    json_steps(w, f, r);
    json_close(w, '}');
}

static void json_lines(json_writer *w, const profile *f)
{
    json_key_open(w, "lines", '[');
    for (int32_t i = 0; i < f->n_line; i++) {
        const profile_line *l = &f->line[i];
        json_open(w, '{');
        json_place(w, l->src, l->line);
        json_key_str(w, "text", profile_line_text(l));
        for (int part = 0; part < PROFILE_PARTS; part++) {
            json_key_open(w, part_name[part], '{');
            json_sum(w, &l->part[part]);
            json_close(w, '}');
        }
        json_close(w, '}');
    }
    json_close(w, ']');
}

static void json_limits(json_writer *w, const profile_limits *x)
{
    json_key_double(w, "bandwidth", x->bandwidth);
    json_key_open(w, "flop_rates", '{');
    for (int i = 0; i < x->peaks.n; i++)
        if (x->peaks.rate[i] > 0)
            json_key_double(w, x->peaks.row[i]->name, x->peaks.rate[i]);
    json_close(w, '}');
}

static void json_parts(json_writer *w, const profile *f)
{
    json_key_open(w, "parts", '[');
    for (int32_t i = 0; i < f->plans.n_part; i++) {
        json_open(w, '{');
        part_keys(w, f->plans.part[i].p);
        json_key_int(w, "threads", f->limits[i].threads);
        json_limits(w, &f->limits[i]);
        json_close(w, '}');
    }
    json_close(w, ']');
}

void profile_as_json(const profile *f, strbuf *out)
{
    const bool whole = f->plans.n_part == 1;
    json_writer w = {.out = out};
    json_open(&w, '{');
    json_key_text(&w, "model", f->p->model);
    if (whole)
        json_key_int(&w, "threads", f->limits->threads);
    json_key_text(&w, "kv", plan_kv_text(f->p, (char[KPOLICY_TEXT_MAX]){0}));
    if (whole)
        json_key_text(&w, "variant", f->p->level);
    json_key_int(&w, "images", f->images);
    if (whole)
        json_limits(&w, f->limits);
    else
        json_parts(&w, f);
    for (int part = 0; part < PROFILE_PARTS; part++)
        json_run(&w, f, part);
    json_lines(&w, f);
    json_close(&w, '}');
    strbuf_putc(out, '\n');
}
