/* resident.c - resident COMMAND...: runs a command and prints the most bytes that it has in memory besides mapped weights, whenever
 * it writes to its standard output, which is dropped. Weights are the mappings of a file, for reading alone, of WEIGHTS_LEAST
 * bytes and more: those of a checkpoint, of the weight cache, and the image of a built program. Exit status 77: this system does
 * not say.
 *
 * The process is stopped by ptrace at each call of the system. Large pages that nobody asked for, as systems give them that
 * are set to `always`, are turned off: they round up what was touched. */
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WEIGHTS_LEAST = 8 << 20, EXIT_SKIPPED = 77 };

static void turn_large_pages_off(void)
{
    char line[200] = "";
    FILE *f = fopen("/sys/kernel/mm/transparent_hugepage/enabled", "re");
    if (f && fgets(line, sizeof line, f) && strstr(line, "[always]"))
        prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
    if (f)
        fclose(f);
}

static void start(char **command)
{
    turn_large_pages_off();
    dup2(open("/dev/null", O_WRONLY), STDOUT_FILENO);
    if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0)
        _exit(EXIT_SKIPPED);
    raise(SIGSTOP); /* for the parent to ask for a stop at the end */
    execvp(command[0], command);
    _exit(127);
}

static long long bytes_of(pid_t child)
{
    char path[64], line[4096], access[5] = "", file[2048];
    unsigned long long begin, end, inode, kib;
    long long sum = 0;
    bool is_weights = false;
    snprintf(path, sizeof path, "/proc/%d/smaps", (int)child);
    FILE *f = fopen(path, "re");
    while (f && fgets(line, sizeof line, f)) {
        if (sscanf(line, "%llx-%llx %4s %*s %*s %llu %2047s", &begin, &end, access, &inode, file) >=
            4)
            is_weights = inode && end - begin >= WEIGHTS_LEAST && strncmp(access, "r--", 3) == 0;
        else if (!is_weights && sscanf(line, "Rss: %llu", &kib) == 1)
            sum += (long long)kib * 1024;
    }
    if (f)
        fclose(f);
    return sum;
}

/* Is the child about to write to its standard output? */
static bool writes(pid_t child)
{
    struct __ptrace_syscall_info info = {0};
    return ptrace(PTRACE_GET_SYSCALL_INFO, child, sizeof info, &info) > 0 &&
           info.op == PTRACE_SYSCALL_INFO_ENTRY && info.entry.nr == SYS_write &&
           info.entry.args[0] == STDOUT_FILENO;
}

/* Until it ends: its status, and the most that it had. */
static int watch(pid_t child, long long *most)
{
    int status, sent = 0;
    for (;;) {
        ptrace(PTRACE_SYSCALL, child, NULL, (void *)(long)sent);
        if (waitpid(child, &status, 0) != child || !WIFSTOPPED(status))
            return status;
        bool call = WSTOPSIG(status) == (SIGTRAP | 0x80);
        sent = call || WSTOPSIG(status) == SIGTRAP ? 0 : WSTOPSIG(status);
        long long bytes = call && writes(child) ? bytes_of(child) : 0;
        *most = bytes > *most ? bytes : *most;
    }
}

int main(int argc, char **argv)
{
    long long most = 0;
    int status;
    pid_t child = argc > 1 ? fork() : -1;
    if (child == 0)
        start(argv + 1);
    if (child < 0 || waitpid(child, &status, 0) != child)
        return 2;
    if (!WIFSTOPPED(status) ||
        ptrace(PTRACE_SETOPTIONS, child, NULL, (void *)(long)PTRACE_O_TRACESYSGOOD) != 0) {
        kill(child, SIGKILL);
        fprintf(stderr, "resident: processes cannot be traced here\n");
        return EXIT_SKIPPED;
    }
    status = watch(child, &most);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        return 2;
    printf("%lld\n", most);
    return most > 0 ? 0 : EXIT_SKIPPED;
}
