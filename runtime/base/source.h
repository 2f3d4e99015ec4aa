/* source.h - a text from outside, and places in it.
 *
 * A source is read whole before it is used, so a file that changes meanwhile cannot tear it. It
 * must outlive every weft_loc that points into it, but not the diagnostics, which copy what they show. Only regular files are opened: a directory, a
 * FIFO or a device is refused by name and never blocks. */
#ifndef WEFT_RUNTIME_BASE_SOURCE_H
#define WEFT_RUNTIME_BASE_SOURCE_H

#include "runtime/base/arena.h"

typedef struct weft_diag weft_diag;

typedef struct source {
    const char *name;  /* as the user wrote it; what diagnostics show */
    str text;          /* followed by one NUL that does not count */
    uint32_t *line_at; /* offsets of line starts, for source_find */
    uint32_t line_n;   /* at least 1: an empty text has one empty line */
    uint64_t serial;   /* no other source of this process has it */
    arena *home;
} source;

typedef struct {
    const source *src; /* NULL: nowhere in particular */
    uint32_t begin, end;
} weft_loc;

#define WEFT_NOWHERE ((weft_loc){NULL, 0, 0})

/* Read the file at path; a file over bytes_max is refused (W1101). The source lives in a. */
weft_status source_open(weft_diag *dg, arena *a, const char *path, size_t bytes_max,
                        source **out_src) WEFT_MUST_USE;
/* Read standard input to its end, or until bytes_max (W1101); its name is "<stdin>". */
weft_status source_read_stdin(weft_diag *dg, arena *a, size_t bytes_max,
                              source **out_src) WEFT_MUST_USE;
/* A source over a copy of text, which is shorter than 4 GiB; the copy and the name live in a. */
source *source_from_text(arena *a, const char *name, str text);

typedef struct {
    uint32_t line, column; /* from 1; a column is one character (code point) */
    str text;              /* the whole line, without its end */
    uint32_t at;           /* byte offset of the place within text */
} source_place;

/* An offset past the end is taken as the end. */
source_place source_find(const source *src, uint32_t offset);

#endif
