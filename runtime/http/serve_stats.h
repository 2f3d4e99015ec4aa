/* serve_stats.h - the scheduler's numbers for Prometheus, and for the page. */
#ifndef WEFT_RUNTIME_HTTP_SERVE_STATS_H
#define WEFT_RUNTIME_HTTP_SERVE_STATS_H

#include "runtime/http/form_cache.h"
#include "runtime/http/keys.h"
#include "runtime/serve/scheduler.h"

void stats_metrics(const sched_stats *s, const form_cache_counts *forms, strbuf *out);

typedef struct {
    const char *model;
    double uptime_s;
    int64_t queue;        /* requests that may wait */
    const api_keys *keys; /* key i has share i + 1; NULL: none */
    form_cache_counts forms;
} stats_about;
/* As runtime/page/README.md has it. */
void stats_state(const sched_stats *s, const sched_row *rows, int64_t n_row,
                 const stats_about *about, strbuf *out);

#endif
