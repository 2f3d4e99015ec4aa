/* tok_lines.h - lines of JSON, for a million texts through one process.
 *
 * A line is an object; members are picked out by name and the others skipped. Unlike json_read this
 * takes NUL in a text, as any tokenizer does, and keeps no tree. A line that is not an object, or
 * whose member is of another type, is W1210. */
#ifndef WEFT_RUNTIME_TEXT_TOK_LINES_H
#define WEFT_RUNTIME_TEXT_TOK_LINES_H

#include "runtime/text/tok.h"

/* The raw text of a member's value; empty where there is none. */
weft_status tok_line_member(weft_diag *dg, str line, const char *name, str *out_raw) WEFT_MUST_USE;

/* Adds a member that is a text, or a list of ids. */
weft_status tok_line_text(weft_diag *dg, str line, const char *name, strbuf *out) WEFT_MUST_USE;
weft_status tok_line_ids(weft_diag *dg, str line, const char *name, tok_ids *out) WEFT_MUST_USE;

/* The first value at the beginning of *io_raw, which moves behind it and the comma after it; false
 * at the end of a list. For lists of texts: start behind the '['. */
bool tok_line_item(str *io_raw, str *out_item);
/* Adds the text that a raw string stands for; false if it is none. */
bool tok_line_string(str raw, strbuf *out);

#endif
