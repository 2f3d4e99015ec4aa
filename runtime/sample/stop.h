/* stop.h - stop strings in a stream of text, which may straddle tokens.
 *
 * Text goes in as it is decoded; what comes out can no longer be part of a stop string. The stop string
 * itself, and what follows it, never comes out. */
#ifndef WEFT_RUNTIME_SAMPLE_STOP_H
#define WEFT_RUNTIME_SAMPLE_STOP_H

#include "runtime/base/str.h"

typedef struct stop_string stop_string;

typedef struct {
    stop_string *strings;
    size_t n;
    strbuf held;  /* from `begin` on: could still begin a stop string */
    size_t begin; /* what lies before came out */
    int found;    /* -1, or which one was met */
} stop_watch;

/* strings are borrowed; empty ones do not count. */
void stop_init(stop_watch *w, const char *const *strings, size_t n);
void stop_deinit(stop_watch *w);
void stop_reset(stop_watch *w); /* for another text */

/* Add text; what is safe to show is appended to out. True once a stop string was met; then nothing more
 * comes out. */
bool stop_put(stop_watch *w, str text, strbuf *out);
/* The stream is over: what was held comes out, unless a stop string was met. */
void stop_flush(stop_watch *w, strbuf *out);

#endif
