/* line_plain.h - a line of standard input, as it comes. */
#ifndef WEFT_RUNTIME_CLI_LINE_PLAIN_H
#define WEFT_RUNTIME_CLI_LINE_PLAIN_H

#include "runtime/base/str.h"

enum { LINE_BYTES_MAX = 1 << 20 };

/* As line_edit_read. */
bool line_plain_read(const char *prompt, strbuf *out);

#endif
