/* test_progress.c - the suite of runtime/base/progress.c. */
#include "runtime/base/clock.h"
#include "runtime/base/progress.h"
#include "tests/base/suite.h"
#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <termios.h>

static void expect_line(const progress *p, uint64_t done, double seconds, int width,
                        const char *want)
{
    strbuf b = {0};
    progress_format(&b, p, done, (uint64_t)(seconds * 1e9), width);
    ck_assert_str_eq(b.p, want);
    strbuf_free(&b);
}

START_TEST(formats_bytes)
{
    progress p = {.label = "load", .total = 2700000000, .unit = PROGRESS_BYTES};
    expect_line(&p, 1350000000, 4.5, 79,
                "load  [===============                ]   50%  1.4 GB/2.7 GB  300 MB/s  5s left");
    expect_line(&p, 1350000000, 4.5, 40, "load   50%  1.4 GB/2.7 GB  300 MB/s  5s ");
    expect_line(&p, 0, 2, 100,
                "load  [                                        ]    0%  0 B/2.7 GB  0 B/s");
    expect_line(&p, UINT64_MAX, 1, 60,
                "load  [=====================]  100%  2.7 GB/2.7 GB  2.7 GB/s");
}
END_TEST

START_TEST(formats_counts_and_unknown_totals)
{
    progress p = {.label = "eval", .total = 1000, .unit = PROGRESS_COUNT};
    expect_line(&p, 10, 36, 20, "eval    1%  10/1000 ");
    expect_line(&p, 10, 36, 45, "eval    1%  10/1000  0.3/s  59m24s left");
    p.total = 0;
    expect_line(&p, 10, 4, 80, "eval  10  2.5/s");
    expect_line(&p, 10, 0, 80, "eval  10  0/s");
    expect_line(&p, 10, 4, 0, "");
    p.total = UINT64_MAX;
    expect_line(&p, 1, 1, 80,
                "eval  [                                     ]    0%  1/18446744073709551616  1/s");
}
END_TEST

START_TEST(a_pipe_shows_nothing)
{
    int ends[2], saved = dup(STDERR_FILENO);
    ck_assert_int_eq(pipe(ends), 0);
    dup2(ends[1], STDERR_FILENO);
    progress p;
    progress_start(&p, "quiet", 10, PROGRESS_COUNT);
    p.start_ns -= 5 * CLOCK_NS_PER_S;
    p.next_ns = p.start_ns;
    progress_update(&p, 5);
    progress_end(&p);
    dup2(saved, STDERR_FILENO);
    close(saved);
    close(ends[1]);
    char c;
    ck_assert_int_eq(read(ends[0], &c, 1), 0);
    close(ends[0]);
}
END_TEST

START_TEST(a_terminal_shows_it_after_a_second_and_clears_it)
{
    int master = posix_openpt(O_RDWR | O_NOCTTY);
    if (master < 0)
        return; /* no pseudo-terminals in this sandbox */
    ck_assert(grantpt(master) == 0 && unlockpt(master) == 0);
    int slave = open(ptsname(master), O_RDWR | O_NOCTTY), saved = dup(STDERR_FILENO);
    struct winsize size = {.ws_col = 61, .ws_row = 40};
    ck_assert_int_eq(ioctl(master, TIOCSWINSZ, &size), 0);
    setenv("TERM", "xterm", 1);
    fflush(stderr);
    dup2(slave, STDERR_FILENO);

    progress p;
    progress_start(&p, "work", 10, PROGRESS_COUNT);
    progress_update(&p, 1); /* too early */
    bool early = p.drawn;
    p.start_ns -= 2 * CLOCK_NS_PER_S;
    p.next_ns = p.start_ns;
    progress_update(&p, 5);
    bool drawn = p.drawn;
    progress_update(&p, 6); /* too soon after the first */
    progress_end(&p);
    progress_end(&p);

    dup2(saved, STDERR_FILENO);
    close(saved);
    char buf[1024];
    size_t n = 0;
    struct pollfd wait = {.fd = master, .events = POLLIN};
    while (n < sizeof buf - 1 &&
           poll(&wait, 1, 200) > 0) { /* a terminal hands its text on in parts */
        ssize_t got = read(master, buf + n, sizeof buf - 1 - n);
        ck_assert_int_gt(got, 0);
        n += (size_t)got;
    }
    close(slave);
    close(master);
    ck_assert(!early && drawn);
    ck_assert_uint_gt(n, 0);
    buf[n] = 0;
    ck_assert_ptr_nonnull(strstr(buf, "\rwork  ["));
    ck_assert_ptr_nonnull(strstr(buf, " 50%  5/10 "));
    ck_assert_ptr_null(strstr(buf, "6/10"));
    ck_assert(str_ends(str_of(buf), STR("\033[K\r\033[K")));
}
END_TEST

SUITE_MAIN("progress", formats_bytes, formats_counts_and_unknown_totals, a_pipe_shows_nothing,
           a_terminal_shows_it_after_a_second_and_clears_it)
