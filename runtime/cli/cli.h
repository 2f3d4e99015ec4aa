/* cli.h - what every verb works with: its parsed flags and operands, and the only ways to print.
 *
 * Results go to stdout through cli_print, which notices a full disk or a closed pipe; all else
 * goes to stderr and, with --log-file, to that file without colour. One cli per process. */
#ifndef WEFT_RUNTIME_CLI_CLI_H
#define WEFT_RUNTIME_CLI_CLI_H

#include "runtime/cli/flags.h"

/* Exit status of the process. */
enum { CLI_DONE = 0, CLI_FAILED = 1, CLI_USAGE = 2, CLI_INTERRUPTED = 130 };

enum { COLOR_AUTO, COLOR_ALWAYS, COLOR_NEVER };

typedef struct {
    bool verbose, quiet, json, help;
    const char *log_file;
    int color;
} cli_common;

extern const flag cli_common_flags[];

typedef struct cli cli;

typedef struct {
    const flag *flags;           /* FLAG_ROW_END gives the size of the options struct */
    const char *about;           /* a paragraph; NULL where the summary says it all */
    const char *const *examples; /* command, what it does, command, ..., NULL */
} verb_page;

typedef struct {
    const char *name;
    const char *operands;
    int least, most;
    const char *summary;
    const verb_page *page;
    int (*run)(cli *c); /* returns an exit status */
} verb;

struct cli {
    const verb *verb;
    cli_common common;
    const void *options; /* the verb's own struct, filled from its flags */
    char **operand;
    int operand_n;
    weft_diag *dg; /* for a verb that needs just one; main reports it when the verb returns */
    FILE *log;     /* NULL without --log-file */
    bool colour;   /* on stderr */
    int out_error; /* errno of the first failed write to stdout */
};

/* cli_process.c: a process begins; c->verb is set, and the flags behind the first `words` words are read (sets: two, for
 * flags_deinit); it ends, and what the streams say becomes a part of the exit status. */
void cli_begin(cli *c);
weft_status cli_parse(cli *c, arena *a, flag_set *sets, int words, int argc,
                      char **argv) WEFT_MUST_USE;
int cli_end(cli *c, int exit_status);

extern const verb verbs[];
extern const size_t verb_n;
const verb *verb_find(str name);                           /* NULL: no such verb */
weft_status verb_unknown(weft_diag *dg, const char *name); /* W1901 with a suggestion */

void cli_print(cli *c, str text);                                     /* the result, to stdout */
void cli_print_all(cli *c, strbuf *out);                              /* the same, and frees it */
void cli_say(cli *c, const char *fmt, ...) WEFT_PRINTF(2, 3);         /* a line, unless -q */
void cli_say_verbose(cli *c, const char *fmt, ...) WEFT_PRINTF(2, 3); /* a line, with -v */
/* What dg holds, then empties it. With --json the verb has put it into its document, and only the
 * log file gets it here. */
void cli_report(cli *c, weft_diag *dg);

static inline int cli_exit_of(weft_status st)
{
    return st == WEFT_OK ? CLI_DONE : st == WEFT_ERR_USAGE ? CLI_USAGE : CLI_FAILED;
}

#define ANY INT32_MAX
#define VERB(name, operands, least, most, summary)                                                 \
    int verb_##name(cli *c);                                                                       \
    extern const verb_page name##_verb_page;
#include "runtime/cli/verbs.def"
#undef VERB

#endif
