/* bench_table.h - the rows of `weft bench`, as a table for people, in Markdown, or as JSON. */
#ifndef WEFT_RUNTIME_CLI_BENCH_TABLE_H
#define WEFT_RUNTIME_CLI_BENCH_TABLE_H

#include "runtime/base/json_write.h"
#include "runtime/base/vec.h"
#include "runtime/cli/session_json.h"

/* What all rows have in common. */
typedef struct {
    const char *model, *backend, *exec;
    uint64_t bytes; /* of the tensors */
    int64_t n_param;
    int64_t threads;
    double bandwidth; /* bytes per second; 0: not measured */
} bench_about;

/* One test, repeated. */
typedef struct {
    int64_t n_prompt, n_gen; /* one of them is 0 */
    int64_t n_seq, depth;
    VEC(double) rates; /* tokens per second, of all sequences together, in the order measured */
    double call_bytes; /* n_gen: what one call reads */
    held_tiers held;   /* at its end */
} bench_row;

typedef struct {
    double mean, deviation, median, least;
} bench_rates;

bench_rates bench_rates_of(const bench_row *r); /* all 0 without any */
/* The share of bandwidth that reading call_bytes at the median rate is; 0: not known. */
double bench_share_of(const bench_about *a, const bench_row *r);
void bench_test_name(const bench_row *r, strbuf *out); /* "tg128 x8 @ d512" */

void bench_text_head(const bench_about *a, bool markdown, strbuf *out);
void bench_text_row(const bench_about *a, const bench_row *r, bool markdown, strbuf *out);
void bench_text_foot(const bench_about *a, bool markdown, strbuf *out);
void bench_json(const bench_about *a, const bench_row *rows, size_t n, strbuf *out);

#endif
