/* line_plain.c - a line of standard input, as it comes. */
#include "runtime/cli/line_edit.h"

#include <stdio.h>
#include <unistd.h>

line_status line_plain_read(const char *prompt, strbuf *out)
{
    int ch;
    bool any = false, whole = true;
    if (isatty(STDIN_FILENO)) {
        fputs(prompt, stderr);
        fflush(stderr);
    }
    strbuf_reset(out);
    while ((ch = getchar()) != EOF && ch != '\n') {
        any = true;
        whole = out->n < LINE_BYTES_MAX;
        if (whole)
            strbuf_putc(out, (char)ch);
        else
            out->p[out->n - 1] = (char)ch;
    }
    if (!any && ch != '\n')
        return LINE_END;
    return whole ? LINE_READ : LINE_LONG;
}
