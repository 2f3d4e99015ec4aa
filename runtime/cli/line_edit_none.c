/* line_edit_none.c - lines as they come, for a build without libedit. */
#include "runtime/cli/line_edit.h"

void line_edit_begin(const char *history)
{
    (void)history;
}

void line_edit_end(void)
{
}

line_status line_edit_read(const char *prompt, strbuf *out)
{
    return line_plain_read(prompt, out);
}
