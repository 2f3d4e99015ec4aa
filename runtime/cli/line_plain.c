/* line_plain.c - a line of standard input, as it comes. */
#include "runtime/cli/line_plain.h"

#include <stdio.h>
#include <unistd.h>

bool line_plain_read(const char *prompt, strbuf *out)
{
    int ch;
    bool any = false;
    if (isatty(STDIN_FILENO)) {
        fputs(prompt, stderr);
        fflush(stderr);
    }
    strbuf_reset(out);
    while ((ch = getchar()) != EOF && ch != '\n') {
        any = true;
        if (out->n < LINE_BYTES_MAX)
            strbuf_putc(out, (char)ch);
    }
    return any || ch == '\n';
}
