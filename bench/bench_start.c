/* bench_start.c - how long does a program take from its start to the last byte it prints, and how long would one that
 * only reads a file's pages?
 *
 *     bench_start [-t THREADS] [-r ROUNDS] FILE COMMAND...      each command is one word: sh splits it
 *
 * The reader is a process of its own, which maps the file in pages as large as the system gives, all at once, and touches
 * every line of it with as many threads, with hints far ahead. It and the commands take turns. bench/start.sh says what to
 * compare. */
#include "bench/bench.h"
#include "runtime/base/clock.h"
#include "runtime/base/mem.h"
#include "runtime/base/prefault.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS_MAX = 64, ROUNDS_MAX = 1000, COMMANDS_MAX = 16, LINE = 64, AHEAD = 32 << 10 };

typedef struct {
    const unsigned char *from;
    size_t bytes;
    pthread_t thread;
    uint64_t sum; /* so that nothing is left out */
} part;

/* ---- the reader ---- */

/* As runtime/base/bandwidth.c does. */
static void *read_part(void *ctx)
{
    part *p = ctx;
    uint64_t sum = 0;
    for (size_t i = 0; i + 4 * LINE <= p->bytes; i += 4 * LINE)
        for (size_t k = 0; k < 4; k++) {
            uint64_t x;
            __builtin_prefetch(p->from + i + k * LINE + AHEAD, 0, 1); /* may name any address */
            memcpy(&x, p->from + i + k * LINE, sizeof x);
            sum += x;
        }
    p->sum = sum;
    return NULL;
}

static int read_file(const char *path, int threads)
{
    part parts[THREADS_MAX];
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) != 0 || st.st_size <= 0)
        return 1;
    size_t bytes = (size_t)st.st_size;
    unsigned char *map = mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED)
        return 1;
    mem_want_large(map, bytes);
    prefault(map, bytes, threads);
    size_t each = bytes / (size_t)threads / LINE * LINE;
    for (int i = 0; i < threads; i++) {
        size_t begin = each * (size_t)i;
        parts[i] = (part){.from = map + begin, .bytes = i + 1 < threads ? each : bytes - begin};
        if (i > 0 && pthread_create(&parts[i].thread, NULL, read_part, &parts[i]) != 0)
            return 1;
    }
    read_part(&parts[0]);
    uint64_t sum = parts[0].sum;
    for (int i = 1; i < threads; i++) {
        pthread_join(parts[i].thread, NULL);
        sum += parts[i].sum;
    }
    printf("%llu\n", (unsigned long long)sum);
    fflush(stdout);
    return 0;
}

/* ---- processes ---- */

/* Nanoseconds from the start of a process to the last byte it prints; 0: it failed. */
static uint64_t time_process(char *const *argv)
{
    char bytes[4096];
    int status = 0, pipes[2];
    if (pipe(pipes) != 0)
        return 0;
    uint64_t start = clock_ns(), last = 0;
    pid_t pid = fork();
    if (pid == 0) {
        int null = open("/dev/null", O_WRONLY);
        dup2(pipes[1], STDOUT_FILENO);
        dup2(null, STDERR_FILENO);
        close(pipes[0]);
        close(pipes[1]);
        execvp(argv[0], argv);
        _exit(127);
    }
    close(pipes[1]);
    while (pid > 0 && read(pipes[0], bytes, sizeof bytes) > 0)
        last = clock_ns();
    close(pipes[0]);
    if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status) || WEXITSTATUS(status))
        return 0;
    return last ? last - start : 0;
}

/* `exec`, so that no shell waits for its end. */
static uint64_t time_command(const char *command)
{
    size_t n = strlen(command) + sizeof "exec ";
    char *text = mem_alloc(n), sh[] = "sh", c[] = "-c";
    snprintf(text, n, "exec %s", command);
    uint64_t ns = time_process((char *[]){sh, c, text, NULL});
    free(text);
    return ns;
}

static uint64_t time_reader(char *self, char *file, char *threads)
{
    char flag[] = "--read";
    return time_process((char *[]){self, flag, file, threads, NULL});
}

/* ---- the whole ---- */

static void print(const char *what, uint64_t *ns, int rounds, double reader_ns)
{
    char share[64] = "";
    bench_times t = bench_sum_up(ns, rounds);
    if (reader_ns > 0)
        snprintf(share, sizeof share, "%.2f x the reader", t.median_ns / reader_ns);
    bench_print_rate("start", "", what, t, share);
}

static int usage(void)
{
    puts("bench_start [-t THREADS] [-r ROUNDS] FILE COMMAND...: nothing to start (see "
         "bench/start.sh)");
    return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
    static uint64_t ns[COMMANDS_MAX + 1][ROUNDS_MAX];
    char *threads = (char[]){"2"}, *self = argv[0];
    int rounds = 9, option;
    if (argc == 4 && strcmp(argv[1], "--read") == 0)
        return read_file(argv[2], atoi(argv[3]));
    while ((option = getopt(argc, argv, "t:r:")) != -1) {
        if (option == 't')
            threads = optarg;
        else if (option == 'r')
            rounds = atoi(optarg);
        else
            return EXIT_FAILURE;
    }
    int n = argc - optind - 1, t = atoi(threads);
    if (n < 1)
        return usage();
    if (n > COMMANDS_MAX || rounds < 1 || rounds > ROUNDS_MAX || t < 1 || t > THREADS_MAX) {
        fputs("bench_start: too many commands, rounds or threads\n", stderr);
        return EXIT_FAILURE;
    }
    for (int r = -1; r < rounds; r++) /* the first is to warm up */
        for (int i = 0; i <= n; i++) {
            const char *what = argv[optind + i];
            uint64_t took = i ? time_command(what) : time_reader(self, argv[optind], threads);
            if (took == 0) {
                fprintf(stderr, "bench_start: %s failed\n", what);
                return EXIT_FAILURE;
            }
            if (r >= 0)
                ns[i][r] = took;
        }
    bench_print_heading();
    bench_times reader = bench_sum_up(ns[0], rounds);
    print("reading the pages alone", ns[0], rounds, 0);
    for (int i = 1; i <= n; i++)
        print(argv[optind + i], ns[i], rounds, reader.median_ns);
    return EXIT_SUCCESS;
}
