/* progress.h - a bar on stderr for work that takes long.
 *
 *     progress p;
 *     progress_start(&p, "quantize", n_bytes, PROGRESS_BYTES);
 *     ... progress_update(&p, done); ...
 *     progress_end(&p);
 *
 * It shows only on a terminal and only once the work has lasted a second, redraws at most ten times
 * a second, and clears its line at the end. An update that draws nothing is one look at the clock.
 * Not thread-safe. Nothing to release. */
#ifndef WEFT_RUNTIME_BASE_PROGRESS_H
#define WEFT_RUNTIME_BASE_PROGRESS_H

#include "runtime/base/str.h"

typedef enum { PROGRESS_COUNT, PROGRESS_BYTES } progress_unit;

typedef struct {
    const char *label; /* must outlive the progress */
    uint64_t total;    /* 0: not known */
    progress_unit unit;
    bool enabled, drawn;
    uint64_t start_ns, next_ns;
} progress;

void progress_start(progress *p, const char *label, uint64_t total, progress_unit unit);
void progress_update(progress *p, uint64_t done);
void progress_end(progress *p);

/* The line itself, at most `width` cells: label, bar, share, done/total, rate, time left. */
void progress_format(strbuf *out, const progress *p, uint64_t done, uint64_t elapsed_ns, int width);

#endif
