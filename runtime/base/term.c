/* term.c - isatty, window size and the colour variables. */
#include "runtime/base/term.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

enum { WIDTH_DEFAULT = 80, WIDTH_MIN = 20, WIDTH_MAX = 1000 };

bool term_is_tty(FILE *f)
{
    return isatty(fileno(f)) == 1;
}

int term_width(FILE *f)
{
    struct winsize size;
    long width = 0;
    const char *columns = getenv("COLUMNS");
    if (ioctl(fileno(f), TIOCGWINSZ, &size) == 0)
        width = size.ws_col;
    if (width <= 0 && columns)
        width = strtol(columns, NULL, 10);
    if (width <= 0)
        width = WIDTH_DEFAULT;
    return (int)(width < WIDTH_MIN ? WIDTH_MIN : width > WIDTH_MAX ? WIDTH_MAX : width);
}

static bool is_set(const char *value)
{
    return value && value[0];
}

bool term_colour_rule(bool tty, const char *no_color, const char *force, const char *term)
{
    if (is_set(no_color))
        return false;
    if (is_set(force) && strcmp(force, "0") != 0)
        return true;
    return tty && is_set(term) && strcmp(term, "dumb") != 0;
}

bool term_colour(FILE *f)
{
    return term_colour_rule(term_is_tty(f), getenv("NO_COLOR"), getenv("CLICOLOR_FORCE"),
                            getenv("TERM"));
}
