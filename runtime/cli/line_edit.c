/* line_edit.c - lines with editing and history, through libedit. */
#include "runtime/cli/line_edit.h"

#include <editline/readline.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { HISTORY_LINES = 1000 };

static const char *kept; /* the history file, or NULL */
static bool person;      /* stdin and stdout are a terminal */

void line_edit_begin(const char *history)
{
    person = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
    if (!person)
        return;
    rl_readline_name = "weft";
    using_history();
    stifle_history(HISTORY_LINES);
    kept = history;
    if (kept)
        read_history(kept);
}

void line_edit_end(void)
{
    if (person && kept)
        write_history(kept);
}

line_status line_edit_read(const char *prompt, strbuf *out)
{
    if (!person)
        return line_plain_read(prompt, out);
    char *line = readline(prompt);
    if (!line)
        return LINE_END;
    str text = str_of(line);
    bool whole = text.n <= LINE_BYTES_MAX;
    strbuf_reset(out);
    strbuf_put(out, whole ? text : (str){text.p + text.n - 1, 1});
    if (text.n && whole)
        add_history(line);
    free(line);
    return whole ? LINE_READ : LINE_LONG;
}
