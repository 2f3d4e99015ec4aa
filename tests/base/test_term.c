/* test_term.c - the suite of runtime/base/term.c. */
#include "runtime/base/term.h"
#include "tests/base/suite.h"
#include <fcntl.h>
#include <sys/ioctl.h>
#include <termios.h>

START_TEST(the_colour_rule)
{
    static const struct {
        bool tty;
        const char *no_color, *force, *term;
        bool want;
    } rows[] = {
        {true, NULL, NULL, "xterm", true}, {false, NULL, NULL, "xterm", false},
        {true, NULL, NULL, "dumb", false}, {true, NULL, NULL, NULL, false},
        {true, "1", NULL, "xterm", false}, {true, "", NULL, "xterm", true},
        {false, NULL, "1", NULL, true},    {false, NULL, "0", "xterm", false},
        {false, NULL, "", "xterm", false}, {true, "1", "1", "xterm", false},
        {true, NULL, "0", "xterm", true},  {false, NULL, "1", "dumb", true},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        if (term_colour_rule(rows[i].tty, rows[i].no_color, rows[i].force, rows[i].term) !=
            rows[i].want)
            ck_abort_msg("row %zu of the table", i);
}
END_TEST

START_TEST(a_file_is_no_terminal)
{
    FILE *f = fopen("/dev/null", "w");
    ck_assert_ptr_nonnull(f);
    ck_assert(!term_is_tty(f));
    unsetenv("NO_COLOR");
    unsetenv("CLICOLOR_FORCE");
    ck_assert(!term_colour(f));
    setenv("CLICOLOR_FORCE", "1", 1);
    ck_assert(term_colour(f));
    unsetenv("COLUMNS");
    ck_assert_int_eq(term_width(f), 80);
    setenv("COLUMNS", "132", 1);
    ck_assert_int_eq(term_width(f), 132);
    setenv("COLUMNS", "-5", 1);
    ck_assert_int_eq(term_width(f), 80);
    setenv("COLUMNS", "99999999999999999999", 1);
    ck_assert_int_le(term_width(f), 1000);
    fclose(f);
}
END_TEST

START_TEST(a_terminal_tells_its_width)
{
    int master = posix_openpt(O_RDWR | O_NOCTTY);
    if (master < 0)
        return; /* no pseudo-terminals in this sandbox */
    ck_assert(grantpt(master) == 0 && unlockpt(master) == 0);
    FILE *f = fopen(ptsname(master), "w");
    ck_assert_ptr_nonnull(f);
    struct winsize size = {.ws_col = 123, .ws_row = 40};
    ck_assert_int_eq(ioctl(master, TIOCSWINSZ, &size), 0);
    ck_assert(term_is_tty(f));
    ck_assert_int_eq(term_width(f), 123);
    unsetenv("NO_COLOR");
    unsetenv("CLICOLOR_FORCE");
    setenv("TERM", "xterm", 1);
    ck_assert(term_colour(f));
    fclose(f);
    close(master);
}
END_TEST

SUITE_MAIN("term", the_colour_rule, a_file_is_no_terminal, a_terminal_tells_its_width)
