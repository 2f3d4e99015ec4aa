/* jinja_chars.h - characters as Python's str sees them. Private to the engine.
 *
 * Case mapping is one character to one, from utf8proc, but for the German sharp s. */
#ifndef WEFT_RUNTIME_TEXT_JINJA_CHARS_H
#define WEFT_RUNTIME_TEXT_JINJA_CHARS_H

#include "runtime/base/str.h"

typedef enum {
    CHAR_SPACE = 1 << 0,
    CHAR_ALPHA = 1 << 1,
    CHAR_DECIMAL = 1 << 2,
    CHAR_DIGIT = 1 << 3,
    CHAR_NUMERIC = 1 << 4,
    CHAR_LOWER = 1 << 5,
    CHAR_UPPER = 1 << 6, /* title case too */
    CHAR_PRINTABLE = 1 << 7,
    CHAR_WORD = 1 << 8, /* \w */
} char_class;

unsigned char_classes(uint32_t cp); /* an or of char_class */
static inline bool char_is(uint32_t cp, unsigned classes)
{
    return (char_classes(cp) & classes) != 0;
}

typedef enum { CASE_LOWER, CASE_UPPER, CASE_TITLE } char_case;
/* The character in that case, as UTF-8; its length. */
size_t char_put_case(char to[8], uint32_t cp, char_case to_case);
size_t char_put(char to[4], uint32_t cp); /* surrogates and what is past U+10FFFF become U+FFFD */

/* The character at byte i < s.n of well-formed s; a stray byte counts as U+FFFD. Returns its length. */
size_t char_at(str s, size_t i, uint32_t *out_cp);
/* Where the character begins that ends before byte i > 0. */
size_t char_before(str s, size_t i);
/* Where white space at the beginning ends, and where that at the end begins. */
size_t char_skip_space(str s, size_t i);
size_t char_trim_space(str s, size_t n);

#endif
