/* text_parts.h - parts of this folder that a built program has only if its model needs them: Unicode's tables, and templates.
 *
 * `weft build` links uni_tables_whole where tok_needs_tables says so or the model has a template, jinja_whole where it has one. All
 * other programs have both (text_parts.c). */
#ifndef WEFT_RUNTIME_TEXT_TEXT_PARTS_H
#define WEFT_RUNTIME_TEXT_TEXT_PARTS_H

#include "runtime/text/jinja.h"
#include "runtime/text/uni_tables.h"

typedef struct {
    weft_status (*compile)(weft_diag *dg, arena *a, const char *name, str text,
                           const jinja **out_t);
    weft_status (*render)(weft_diag *dg, const jinja *t, const jinja_var *vars, size_t n_var,
                          const struct tm *now, const jinja_limits *limits, strbuf *out);
} jinja_engine;

extern const jinja_engine jinja_whole;

/* NULL: this program was built without. Who opens a tokenizer or a template looks first. */
const uni_tables *uni_tables_here(void);
const jinja_engine *jinja_here(void);

#endif
