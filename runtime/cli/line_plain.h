/* line_plain.h - a line of standard input, as it comes. */
#ifndef WEFT_RUNTIME_CLI_LINE_PLAIN_H
#define WEFT_RUNTIME_CLI_LINE_PLAIN_H

#include "runtime/cli/line_edit.h"

/* As line_edit_read. */
line_status line_plain_read(const char *prompt, strbuf *out);

#endif
