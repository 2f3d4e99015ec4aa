/* cli.c - the only ways to print. */
#include "runtime/cli/cli.h"

#include <errno.h>

/* clang-format off */
const flag cli_common_flags[] = {
    FLAG_ROW_BOOL  (cli_common, verbose,  "verbose",  "v", "say more about what is done"),
    FLAG_ROW_BOOL  (cli_common, quiet,    "quiet",    "q", "say nothing but results and errors"),
    FLAG_ROW_BOOL  (cli_common, json,     "json",     NULL, "print the result as one JSON document"),
    FLAG_ROW_STR   (cli_common, log_file, "log-file", NULL, "FILE", NULL, "append messages to FILE too, without colour"),
    FLAG_ROW_CHOICE(cli_common, color,    "color",    NULL, "auto|always|never", "auto", "colour messages"),
    FLAG_ROW_BOOL  (cli_common, help,     "help",     "h", "explain this verb"),
    FLAG_ROW_END   (cli_common),
};
/* clang-format on */

void cli_print(cli *c, str text)
{
    if (c->out_error)
        return;
    errno = 0;
    if (fwrite(text.p, 1, text.n, stdout) != text.n || fflush(stdout) != 0)
        c->out_error = errno ? errno : EIO;
}

void cli_print_all(cli *c, strbuf *out)
{
    cli_print(c, strbuf_view(out));
    strbuf_free(out);
}

static void say(cli *c, bool show, const char *fmt, va_list ap)
{
    strbuf line = {0};
    strbuf_vadd(&line, fmt, ap);
    strbuf_putc(&line, '\n');
    if (show)
        fputs(line.p, stderr);
    if (c->log)
        fputs(line.p, c->log);
    strbuf_free(&line);
}

void cli_say(cli *c, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    say(c, !c->common.quiet, fmt, ap);
    va_end(ap);
}

void cli_say_verbose(cli *c, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    say(c, c->common.verbose, fmt, ap);
    va_end(ap);
}

void cli_report(cli *c, weft_diag *dg)
{
#define HINT(code, text) diag_note_code(dg, code, text);
#include "runtime/cli/hints.def"
#undef HINT
    if (!c->common.json)
        diag_print(dg, stderr, c->colour);
    if (c->log)
        diag_print(dg, c->log, false);
    diag_reset(dg);
}
