/* term.h - what is known about the terminal behind a stream. */
#ifndef WEFT_RUNTIME_BASE_TERM_H
#define WEFT_RUNTIME_BASE_TERM_H

#include "runtime/base/status.h"
#include <stdio.h>

bool term_is_tty(FILE *f);

/* Cells per line: the terminal's own word, else the COLUMNS variable, else 80. */
int term_width(FILE *f);

/* Whether colour is wanted: never with NO_COLOR (https://no-color.org), always with CLICOLOR_FORCE
 * (http://bixense.com/clicolors), else on a terminal that is not TERM=dumb. */
bool term_colour(FILE *f);

/* The rule of term_colour with its inputs as arguments; each string may be NULL, for unset. */
bool term_colour_rule(bool tty, const char *no_color, const char *force, const char *term);

#endif
