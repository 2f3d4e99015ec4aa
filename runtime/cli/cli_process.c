/* cli_process.c - how a process of ours begins and ends: streams, signals, flags, the log. */
#include "runtime/cli/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include "runtime/base/file.h"
#include "runtime/base/mem.h"
#include "runtime/base/term.h"
#include "runtime/base/utf8.h"
#include "runtime/cli/interrupt.h"

/* A closed standard stream would hand its number to the next file opened, and output would land in
 * it. Something unusable takes the place, so that writing there still fails. */
static void fill_standard_streams(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) == -1 && errno == EBADF)
            (void)!open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

static void on_memory_short(size_t bytes)
{
    fprintf(stderr, "weft: out of memory: %zu bytes are not available\n", bytes);
    _Exit(1);
}

static bool want_colour(int mode)
{
    return mode == COLOR_ALWAYS || (mode == COLOR_AUTO && term_colour(stderr));
}

/* A FIFO that nobody reads is an error, not a place to wait at. */
static FILE *open_log(const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0666);
    if (fd < 0)
        return NULL;
    int flags = fcntl(fd, F_GETFL);
    FILE *log = NULL;
    if (flags >= 0 && fcntl(fd, F_SETFL, flags & ~O_NONBLOCK) == 0)
        log = fdopen(fd, "a");
    if (!log) {
        int error = errno;
        close(fd);
        errno = error;
    }
    return log;
}

static weft_status log_open(cli *c, int argc, char **argv)
{
    const char *path = c->common.log_file;
    if (!path)
        return WEFT_OK;
    c->log = open_log(path);
    if (!c->log)
        return weft_fail(c->dg, W1004, WEFT_NOWHERE, "%s cannot be opened for the log: %s", path,
                         file_reason_of(errno).text);
    char when[32] = "";
    time_t now = time(NULL);
    struct tm tm;
    if (gmtime_r(&now, &tm))
        strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%SZ", &tm);
    strbuf line = {0};
    strbuf_add(&line, "# %s weft", when);
    for (int i = 1; i < argc; i++) {
        strbuf_putc(&line, ' ');
        utf8_put_safe(&line, str_of(argv[i]));
    }
    fprintf(c->log, "%s\n", line.p);
    strbuf_free(&line);
    return WEFT_OK;
}

static weft_status operands_check(const cli *c)
{
    const verb *v = c->verb;
    const char *name = v->name;
    if (c->operand_n < v->least)
        return weft_fail(c->dg, W1904, WEFT_NOWHERE, "%s needs %s", name, v->operands);
    if (c->operand_n > v->most && v->most == 0)
        return weft_fail(c->dg, W1904, WEFT_NOWHERE, "%s takes no operands, but got '%s'", name,
                         c->operand[0]);
    if (c->operand_n > v->most)
        return weft_fail(c->dg, W1904, WEFT_NOWHERE,
                         "%s takes at most %d operand%s, but got '%s' too", name, v->most,
                         v->most == 1 ? "" : "s", c->operand[v->most]);
    return WEFT_OK;
}

void cli_begin(cli *c)
{
    mem_keep_freed();
    mem_on_exhausted(on_memory_short);
    fill_standard_streams();
    interrupt_init();
    *c = (cli){.dg = diag_create()};
    c->colour = want_colour(COLOR_AUTO);
}

weft_status cli_parse(cli *c, arena *a, flag_set *sets, int words, int argc, char **argv)
{
    const flag *rows = c->verb->page->flags;
    void *options = arena_alloc(a, flags_bytes(rows) + 1);
    c->options = options;
    sets[0] = (flag_set){rows, options};
    sets[1] = (flag_set){cli_common_flags, &c->common};
    flags_init(sets, 2);

    int n = argc > words ? argc - words : 0;
    c->operand = ARENA_ARRAY(a, char *, (size_t)n + 1);
    for (int i = 0; i < n; i++)
        c->operand[i] = argv[i + words];
    WEFT_TRY(flags_parse(c->dg, c->verb->name, sets, 2, n, c->operand, &c->operand_n));
    c->colour = want_colour(c->common.color);
    if (c->common.verbose && c->common.quiet)
        return weft_fail(c->dg, W1903, WEFT_NOWHERE, "%s: --verbose and --quiet exclude each other",
                         c->verb->name);
    if (!c->common.help)
        WEFT_TRY(operands_check(c));
    return log_open(c, argc, argv);
}

/* A result that did not arrive is a failure, whatever the verb returned. A closed pipe
 * (`weft ops | head`) is not an error. */
int cli_end(cli *c, int exit_status)
{
    cli_print(c, STR(""));
    if (c->out_error) {
        if (c->out_error != EPIPE)
            weft_fail(c->dg, W1004, WEFT_NOWHERE, "standard output cannot be written: %s",
                      file_reason_of(c->out_error).text);
        exit_status = exit_status == CLI_DONE ? CLI_FAILED : exit_status;
    }
    c->common.json = false; /* stdout is done: what is left to say goes to stderr */
    cli_report(c, c->dg);
    if (c->log && (fflush(c->log) != 0 || ferror(c->log))) {
        fprintf(stderr, "weft: the log file cannot be written\n");
        exit_status = exit_status == CLI_DONE ? CLI_FAILED : exit_status;
    }
    if (c->log)
        fclose(c->log);
    return exit_status;
}
