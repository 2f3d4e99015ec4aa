/* line_edit.h - lines from a person: with editing and history on a terminal, plain otherwise. */
#ifndef WEFT_RUNTIME_CLI_LINE_EDIT_H
#define WEFT_RUNTIME_CLI_LINE_EDIT_H

#include "runtime/base/str.h"

/* history is a file that keeps lines from one run to the next; NULL: none. */
void line_edit_begin(const char *history);
void line_edit_end(void);

/* The next line, without its end, into out; false at the end of the input. The prompt shows only where a
 * person sits. Lines over a megabyte are cut there. */
bool line_edit_read(const char *prompt, strbuf *out);

#endif
