#include "runtime/cli/bench_table.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

bench_rates bench_rates_of(const bench_row *r)
{
    bench_rates s = {0, 0, 0, 0};
    size_t n = r->rates.n;
    if (n == 0)
        return s;
    double *sorted = malloc(n * sizeof *sorted), squares = 0;
    if (!sorted)
        return s;
    memcpy(sorted, r->rates.at, n * sizeof *sorted);
    qsort(sorted, n, sizeof *sorted, by_value);
    for (size_t i = 0; i < n; i++)
        s.mean += sorted[i] / (double)n;
    for (size_t i = 0; i < n; i++)
        squares += (sorted[i] - s.mean) * (sorted[i] - s.mean);
    s.deviation = n > 1 ? sqrt(squares / (double)(n - 1)) : 0;
    s.median = (sorted[(n - 1) / 2] + sorted[n / 2]) / 2;
    s.least = sorted[0];
    free(sorted);
    return s;
}

double bench_share_of(const bench_about *a, const bench_row *r)
{
    double calls = bench_rates_of(r).median / (double)r->n_seq; /* a second */
    return a->bandwidth > 0 ? calls * r->call_bytes / a->bandwidth : 0;
}

void bench_test_name(const bench_row *r, strbuf *out)
{
    strbuf_add(out, r->n_prompt ? "pp%" PRId64 : "tg%" PRId64,
               r->n_prompt ? r->n_prompt : r->n_gen);
    if (r->n_seq > 1)
        strbuf_add(out, " x%" PRId64, r->n_seq);
    if (r->depth > 0)
        strbuf_add(out, " @ d%" PRId64, r->depth);
}

/* ---- text ---- */

/* The columns; a width below zero is aligned left. */
static const struct {
    const char *name;
    int width;
} columns[] = {
    {"model", -22}, {"size", 10},       {"params", 9},        {"backend", -7},
    {"threads", 7}, {"test", -15},      {"t/s", 18},          {"median", 9},
    {"least", 9},   {"read/token", 10}, {"of bandwidth", 12},
};
enum { COLUMNS = sizeof columns / sizeof *columns };

static void put_cells(strbuf *out, char cells[COLUMNS][64], bool markdown)
{
    for (int i = 0; i < COLUMNS; i++) {
        strbuf_add(out, "%s%*s", markdown ? "| " : i ? "  " : "", columns[i].width, cells[i]);
        if (markdown)
            strbuf_putc(out, ' ');
    }
    while (!markdown && out->n && out->p[out->n - 1] == ' ')
        out->p[--out->n] = 0;
    strbuf_add(out, "%s\n", markdown ? "|" : "");
}

void bench_text_head(const bench_about *a, bool markdown, strbuf *out)
{
    char cells[COLUMNS][64];
    (void)a;
    for (int i = 0; i < COLUMNS; i++)
        snprintf(cells[i], sizeof cells[i], "%s", columns[i].name);
    put_cells(out, cells, markdown);
    for (int i = 0; markdown && i < COLUMNS; i++) {
        strbuf_add(out, "| ");
        strbuf_fill(out, '-', (size_t)abs(columns[i].width) - (columns[i].width > 0));
        strbuf_add(out, columns[i].width > 0 ? ": " : " ");
    }
    if (markdown)
        strbuf_add(out, "|\n");
}

static void put_bytes(char *cell, size_t n, double bytes)
{
    bool large = bytes >= 1024.0 * 1024 * 1024;
    snprintf(cell, n, "%.2f %s", bytes / (1024.0 * 1024) / (large ? 1024 : 1),
             large ? "GiB" : "MiB");
}

void bench_text_row(const bench_about *a, const bench_row *r, bool markdown, strbuf *out)
{
    char cells[COLUMNS][64] = {{0}};
    strbuf test = {0};
    bench_rates s = bench_rates_of(r);
    double share = bench_share_of(a, r);
    int i = 0;
    bench_test_name(r, &test);
    snprintf(cells[i++], sizeof *cells, "%s", a->model);
    put_bytes(cells[i++], sizeof *cells, (double)a->bytes);
    snprintf(cells[i++], sizeof *cells, a->n_param >= 1000000000 ? "%.2f B" : "%.2f M",
             (double)a->n_param / (a->n_param >= 1000000000 ? 1e9 : 1e6));
    snprintf(cells[i++], sizeof *cells, "%s", a->backend);
    snprintf(cells[i++], sizeof *cells, "%" PRId64, a->threads);
    snprintf(cells[i++], sizeof *cells, "%s", test.p);
    snprintf(cells[i++], sizeof *cells, "%.2f +- %.2f", s.mean, s.deviation);
    snprintf(cells[i++], sizeof *cells, "%.2f", s.median);
    snprintf(cells[i++], sizeof *cells, "%.2f", s.least);
    if (r->n_gen)
        put_bytes(cells[i], sizeof *cells, r->call_bytes / (double)r->n_seq);
    if (r->n_gen && share > 0)
        snprintf(cells[i + 1], sizeof *cells, "%.1f %%", 100 * share);
    put_cells(out, cells, markdown);
    strbuf_free(&test);
}

void bench_text_foot(const bench_about *a, bool markdown, strbuf *out)
{
    if (a->bandwidth > 0)
        strbuf_add(out, "%sread bandwidth %.1f GB/s with %" PRId64 " %s%s\n", markdown ? "\n" : "",
                   a->bandwidth / 1e9, a->threads,
                   strcmp(a->backend, "CPU") == 0 ? "thread" : "block", a->threads == 1 ? "" : "s");
}

/* ---- JSON ---- */

static void json_row(json_writer *w, const bench_about *a, const bench_row *r)
{
    strbuf test = {0};
    bench_rates s = bench_rates_of(r);
    bench_test_name(r, &test);
    json_open(w, '{');
    json_key_text(w, "test", test.p);
    json_key_int(w, "n_prompt", r->n_prompt);
    json_key_int(w, "n_gen", r->n_gen);
    json_key_int(w, "sequences", r->n_seq);
    json_key_int(w, "depth", r->depth);
    json_key_double(w, "avg_ts", s.mean);
    json_key_double(w, "stddev_ts", s.deviation);
    json_key_double(w, "median_ts", s.median);
    json_key_double(w, "min_ts", s.least);
    json_key_open(w, "samples_ts", '[');
    for (size_t i = 0; i < r->rates.n; i++)
        json_double(w, r->rates.at[i]);
    json_close(w, ']');
    if (r->n_gen) {
        json_key_double(w, "bytes_per_token", r->call_bytes / (double)r->n_seq);
        json_key_double(w, "bandwidth_share", bench_share_of(a, r));
    }
    held_tiers_json(w, &r->held);
    json_close(w, '}');
    strbuf_free(&test);
}

void bench_json(const bench_about *a, const bench_row *rows, size_t n, strbuf *out)
{
    json_writer w = {.out = out};
    json_open(&w, '{');
    json_key_text(&w, "model", a->model);
    json_key_int(&w, "bytes", (int64_t)a->bytes);
    json_key_int(&w, "params", a->n_param);
    json_key_text(&w, "backend", a->backend);
    json_key_text(&w, "exec", a->exec);
    json_key_int(&w, "threads", a->threads);
    json_key_double(&w, "bandwidth", a->bandwidth);
    json_key_open(&w, "results", '[');
    for (size_t i = 0; i < n; i++)
        json_row(&w, a, &rows[i]);
    json_close(&w, ']');
    json_close(&w, '}');
    strbuf_putc(out, '\n');
}
