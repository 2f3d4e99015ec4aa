/* jinja.h - templates: text with {{ expressions }} and {% statements %}, rendered over plain data.
 *
 * The dialect is Jinja2 as chat templates see it under transformers: trim_blocks, lstrip_blocks,
 * loop controls, the immutable sandbox, undefined names that print as nothing. A template reaches
 * data and nothing else: there are no objects behind the values, no files, no imports. Templates are
 * a stranger's text, so rendering is bounded in steps, depth, memory and output (W1304); every other
 * fault is W1301-W1303 at the place in the template.
 *
 * A template never changes once compiled: several threads may render it at once. */
#ifndef WEFT_RUNTIME_TEXT_JINJA_H
#define WEFT_RUNTIME_TEXT_JINJA_H

#include "runtime/base/diag.h"
#include "runtime/formats/value.h"
#include <time.h>

enum { JINJA_SOURCE_MAX = 1 << 20 }; /* bytes of template text */

typedef struct jinja jinja;

typedef struct {
    uint64_t
        steps_max;     /* nodes evaluated, and bytes and items that builtins look at, by sixteens */
    size_t memory_max; /* bytes of values made while rendering */
    size_t output_max; /* bytes of text */
    int depth_max;     /* statements, expressions and macro calls inside each other */
} jinja_limits;

#define JINJA_LIMITS                                                                               \
    ((jinja_limits){.steps_max = 50000000,                                                         \
                    .memory_max = (size_t)256 << 20,                                               \
                    .output_max = (size_t)64 << 20,                                                \
                    .depth_max = 1000})

/* Parse text, which is copied; name is for messages. The template lives in a, and so do the places
 * that diagnostics of compiling and rendering point at. W1301 where it is not well formed. */
weft_status jinja_compile(weft_diag *dg, arena *a, const char *name, str text,
                          const jinja **out_t) WEFT_MUST_USE;

typedef struct {
    str name;
    value v;
} jinja_var;

/* Render with these variables, the last of a name counting, and add the text to out, which a failure
 * leaves as it was. now is what strftime_now gives, a local time with its weekday. raise_exception is
 * W1302 with the template's own message. limits may be NULL for the usual ones. */
weft_status jinja_render(weft_diag *dg, const jinja *t, const jinja_var *vars, size_t n_var,
                         const struct tm *now, const jinja_limits *limits,
                         strbuf *out) WEFT_MUST_USE;

#endif
