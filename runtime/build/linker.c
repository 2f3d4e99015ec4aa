/* linker.c - runs ld.lld. */
#include "runtime/build/linker.h"

#include "runtime/base/file.h"
#include "runtime/base/vec.h"
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum { SAID_MAX = 2000 };

typedef VEC(const char *) arguments;

static void add(arguments *args, const char *word)
{
    VEC_PUSH(args, word);
}

static const char *need(const link_tools *t, const char *file)
{
    static const char *const names[] = {
#define NEED(name, place, program, lib, package, cross) name,
#include "runtime/build/link_needs.def"
#undef NEED
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i], file) == 0)
            return t->file[i];
    WEFT_ASSERT(!"a file that link_needs.def does not have");
    return NULL;
}

static void add_needs(arguments *args, const link_tools *t, const char *const *files)
{
    for (; *files; files++)
        if (need(t, *files))
            add(args, need(t, *files));
}

static void add_kind(arguments *args, const link_tools *t, arena *a, const link_job *job)
{
    if (!t->lib) {
        add(args, "-static");
        add(args, "-pie");
        add(args, "--no-dynamic-linker");
        return;
    }
    add(args, "-shared");
    add(args, "-Bsymbolic");
    if (job->name)
        add(args, arena_printf(a, "-soname=%s", job->name).p);
    add(args, arena_printf(a, "--version-script=%s", job->exports).p);
}

/* clang-format off */
static const char *const always[] = {
    "-z", "text", "-z", "now", "-z", "noexecstack", "--gc-sections", "--build-id=none",
    "--hash-style=gnu", "--no-undefined", NULL,
};
static const char *const first[] = {"rcrt1.o", "crti.o", "crtbeginS.o", NULL};
/* In this order: a program's own table of kernels comes before that of the runtime. */
static const char *const archives[] = {
    "libweft_program.a", "libweft_core.a", "libpcre2-8.a", "libutf8proc.a", "libm.a", "libc.a",
    "libm.so", "libc.so", "libgcc.a", "libgcc_eh.a", NULL,
};
static const char *const last[] = {"crtendS.o", "crtn.o", NULL};
/* clang-format on */

const char link_discard[] =
    "SECTIONS { /DISCARD/ : { *(.eh_frame) *(.gcc_except_table*) } } INSERT AFTER .text;\n";

static void fill(arguments *args, const link_tools *t, arena *a, const link_job *job)
{
    add(args, t->linker);
    add(args, "-m");
    add(args, t->to->emulation);
    if (t->sysroot)
        add(args, arena_printf(a, "--sysroot=%s", t->sysroot).p);
    add_kind(args, t, a, job);
    for (int i = 0; always[i]; i++)
        add(args, always[i]);
    if (job->strip)
        add(args, "--strip-all");
    if (job->discard)
        add(args, arena_printf(a, "--script=%s", job->discard).p);
    else
        add(args, "--eh-frame-hdr");
    for (int i = 0; i < job->n_alias; i++) {
        add(args, arena_printf(a, "--undefined=%s", job->alias[2 * i + 1]).p);
        add(args, arena_printf(a, "--defsym=%s=%s", job->alias[2 * i], job->alias[2 * i + 1]).p);
    }
    add(args, "-o");
    add(args, job->out);
    add_needs(args, t, first);
    for (int i = 0; i < job->n_object; i++)
        add(args, job->object[i]);
    add(args, "--start-group");
    add_needs(args, t, archives);
    add(args, "--end-group");
    add_needs(args, t, last);
    add(args, NULL);
}

/* What a child says, the first SAID_MAX bytes of it; all of it is read, so that it can end. */
static void hear(int fd, char *said)
{
    char rest[4096];
    size_t n = 0;
    for (;;) {
        bool full = n == SAID_MAX;
        ssize_t k = full ? read(fd, rest, sizeof rest) : read(fd, said + n, SAID_MAX - n);
        if (k < 0 && errno == EINTR)
            continue;
        if (k <= 0)
            break;
        n += full ? 0 : (size_t)k;
    }
    while (n > 0 && said[n - 1] == '\n')
        n--;
    said[n] = 0;
}

static weft_status run(weft_diag *dg, char *const *argv, char *said, int *out_status)
{
    int ends[2];
    pid_t child;
    posix_spawn_file_actions_t how;
    if (pipe2(ends, O_CLOEXEC) != 0)
        return weft_fail(dg, W1705, WEFT_NOWHERE, "%s cannot be started: %s", argv[0],
                         file_reason_of(errno).text);
    posix_spawn_file_actions_init(&how);
    posix_spawn_file_actions_adddup2(&how, ends[1], STDERR_FILENO);
    posix_spawn_file_actions_adddup2(&how, ends[1], STDOUT_FILENO);
    int error = posix_spawn(&child, argv[0], &how, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&how);
    close(ends[1]);
    if (error == 0)
        hear(ends[0], said);
    close(ends[0]);
    if (error != 0)
        return weft_fail(dg, W1705, WEFT_NOWHERE, "%s cannot be started: %s", argv[0],
                         file_reason_of(error).text);
    while (waitpid(child, out_status, 0) < 0)
        if (errno != EINTR)
            return weft_fail(dg, W1705, WEFT_NOWHERE, "%s: %s", argv[0],
                             file_reason_of(errno).text);
    return WEFT_OK;
}

weft_status link_run(weft_diag *dg, arena *a, const link_tools *tools, const link_job *job)
{
    arguments args = {0};
    char said[SAID_MAX + 1] = "";
    int status = 0;
    fill(&args, tools, a, job);
    weft_status st = run(dg, (char *const *)(const void *)args.at, said, &status);
    VEC_FREE(&args);
    if (st != WEFT_OK)
        return st;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return access(job->out, R_OK) == 0
                   ? WEFT_OK
                   : weft_fail(dg, W1705, WEFT_NOWHERE, "%s wrote nothing", tools->linker);
    st = weft_fail(dg, W1705, WEFT_NOWHERE, "%s failed with status %d", tools->linker,
                   WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
    for (char *line = strtok(said, "\n"); line; line = strtok(NULL, "\n"))
        weft_note(dg, "%s", line);
    return st;
}
