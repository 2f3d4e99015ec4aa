/* serve_stats.h - the scheduler's numbers for Prometheus, and for the page. */
#ifndef WEFT_RUNTIME_HTTP_SERVE_STATS_H
#define WEFT_RUNTIME_HTTP_SERVE_STATS_H

#include "runtime/base/str.h"
#include "runtime/serve/scheduler.h"

void stats_metrics(const sched_stats *s, strbuf *out);

typedef struct {
    const char *model;
    double uptime_s;
    /* The name of a share; "" for anybody. */
    const char *(*share_name)(void *ctx, uint32_t share);
    void *ctx;
} stats_about;
void stats_state(const sched_stats *s, const sched_row *rows, int64_t n_row,
                 const stats_about *about, strbuf *out);
/* Seconds that share q of what a histogram counted took at most, by its buckets; 0 where it is empty. */
double stats_quantile(const sched_histogram *h, double q);

#endif
