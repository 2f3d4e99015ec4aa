/* golden_text.h - how the case files of golden tests are cut: lines, and bodies between `====` and `----`. */
#ifndef WEFT_TESTS_BASE_GOLDEN_TEXT_H
#define WEFT_TESTS_BASE_GOLDEN_TEXT_H

#include "runtime/base/str.h"

/* The next line, its end included. */
static inline str next_line(str *rest)
{
    const char *end = memchr(rest->p, '\n', rest->n);
    size_t n = end ? (size_t)(end - rest->p) + 1 : rest->n;
    str line = {rest->p, n};
    rest->p += n;
    rest->n -= n;
    return line;
}

/* A line without its first `skip` characters and without blanks at its end. */
static inline str trimmed(str line, size_t skip)
{
    str s = {line.p + skip, line.n - skip};
    while (s.n && (s.p[s.n - 1] == '\n' || s.p[s.n - 1] == ' '))
        s.n--;
    return s;
}

/* Lines up to the next separator. */
static inline str read_body(str *rest)
{
    str body = {rest->p, 0};
    while (rest->n && !str_starts(*rest, STR("====")) && !str_starts(*rest, STR("----")))
        body.n += next_line(rest).n;
    return body;
}

#endif
