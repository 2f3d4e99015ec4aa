/* line_edit.h - lines from a person: with editing and history on a terminal, plain otherwise. */
#ifndef WEFT_RUNTIME_CLI_LINE_EDIT_H
#define WEFT_RUNTIME_CLI_LINE_EDIT_H

#include "runtime/base/str.h"

/* history is a file that keeps lines from one run to the next; NULL: none. */
void line_edit_begin(const char *history);
void line_edit_end(void);

enum { LINE_BYTES_MAX = 16 << 20 };

typedef enum {
    LINE_END,  /* of the input */
    LINE_READ, /* out has the line */
    LINE_LONG, /* the line was read, but has more than LINE_BYTES_MAX; out has its last byte last, and is of no other use */
} line_status;

/* The next line, without its end, into out. The prompt shows only where a person sits. */
line_status line_edit_read(const char *prompt, strbuf *out);
/* line_plain.c: the same as it comes, for input that nobody edits and builds without libedit. */
line_status line_plain_read(const char *prompt, strbuf *out);

#endif
