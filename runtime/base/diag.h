/* diag.h - diagnostics: what went wrong, where, and what to do about it.
 *
 * Every code a user can see is a row of diag.def. A weft_diag collects; only main files print. The
 * same code at the same place (or, without a place, the same code and message) is reported once; past
 * DIAG_ERRORS_MAX errors, or as many warnings, only the count goes on. Notes on a diagnostic that
 * was not kept are dropped with it. Very long messages lose their middle.
 * Not thread-safe: one collector per thread of work.
 * A collector owns all that it shows: what is quoted of a source is copied when it is recorded. */
#ifndef WEFT_RUNTIME_BASE_DIAG_H
#define WEFT_RUNTIME_BASE_DIAG_H

#include "runtime/base/source.h"
#include <stdio.h>

enum { DIAG_ERRORS_MAX = 50 };

typedef enum {
#define DIAG(code, status, severity, meaning, hint) code,
#include "runtime/base/diag.def"
#undef DIAG
    DIAG_CODE_COUNT
} weft_code;

typedef enum { DIAG_ERROR, DIAG_WARNING } diag_severity;

typedef struct {
    const char *name; /* "W0302" */
    weft_status status;
    diag_severity severity;
    const char *meaning;
    const char
        *hint; /* NULL, or what to do next; printed as a note unless the site added its own */
} diag_row;

const diag_row *diag_row_of(weft_code code);

weft_diag *diag_create(void);
void diag_destroy(weft_diag *dg); /* NULL is fine */
void diag_reset(weft_diag *dg);

/* Record a failure (or, where the row says so, a warning) and return the row's status, so that a
 * failure is one statement. */
weft_status weft_fail(weft_diag *dg, weft_code code, weft_loc loc, const char *fmt, ...)
    WEFT_PRINTF(4, 5);
/* Record as a warning what elsewhere is a failure. */
void weft_warn(weft_diag *dg, weft_code code, weft_loc loc, const char *fmt, ...) WEFT_PRINTF(4, 5);
/* W1110: that many bytes could not be had. Takes no memory; only the newest of these is kept. */
weft_status diag_fail_memory(weft_diag *dg, size_t bytes);
/* Add a line of context to the newest diagnostic; with a place, that line is quoted too. */
void weft_note(weft_diag *dg, const char *fmt, ...) WEFT_PRINTF(2, 3);
void weft_note_at(weft_diag *dg, weft_loc loc, const char *fmt, ...) WEFT_PRINTF(3, 4);

/* A note "did you mean `x`?", and true, if a name was near. SUGGEST_ROW looks for it among the rows of a table. */
bool weft_suggest(weft_diag *dg, const str_guess *best);
#define SUGGEST_ROW(dg, want, rows, n)                                                             \
    weft_suggest_from(dg, want, &(rows)->name, (size_t)(n), sizeof *(rows))
/* Among words with blanks between them. */
bool weft_suggest_word(weft_diag *dg, str want, const char *words);
bool weft_suggest_from(weft_diag *dg, str want, const char *const *name, size_t n, size_t stride);

/* Add a note without a place to every diagnostic of this code that was kept; then its row's hint is not printed. */
void diag_note_code(weft_diag *dg, weft_code code, const char *text);
/* Forget what was recorded after the first n that were kept: it turned out to be no fault. */
void diag_keep_first(weft_diag *dg, size_t n);

size_t diag_errors(const weft_diag *dg); /* counted past the limit too */
/* Errors recorded, repeated ones too: has this piece of work failed? */
size_t diag_failed(const weft_diag *dg);
size_t diag_warnings(const weft_diag *dg);

/* The status of the first error reported after the first `from` ones; WEFT_ERR_LIMIT if it was not kept. */
weft_status diag_status(const weft_diag *dg, size_t from);

typedef struct {
    weft_code code;
    diag_severity severity; /* the row's, unless it was recorded as a warning */
    weft_loc loc;           /* its source may be gone */
    str message;
} diag_entry;
size_t diag_count(const weft_diag *dg); /* kept ones, in the order they were recorded */
diag_entry diag_at(const weft_diag *dg, size_t i);

/* file:line:col: severity[code]: message, the line, a caret with tildes, notes; at the end a count
 * if some were not kept. Control characters and stray bytes are shown as \xNN, never sent on. */
void diag_text(const weft_diag *dg, strbuf *out, bool colour);
const char *diag_shown(weft_diag *dg); /* the same, without colour; until dg is used again */
void diag_print(const weft_diag *dg, FILE *to, bool colour);
/* A JSON array of the same: code, severity, message, file, line, column, end_line, end_column (one
 * past the last character), hint, notes; null where there is none. A note is an object too: message
 * and the same five of place. */
void diag_json(const weft_diag *dg, strbuf *out);
const char *diag_shown_json(weft_diag *dg); /* the same; until dg is used again */

#endif
