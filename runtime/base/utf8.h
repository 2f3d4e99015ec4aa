/* utf8.h - a strict UTF-8 decoder, and how much room a character takes on a terminal. */
#ifndef WEFT_RUNTIME_BASE_UTF8_H
#define WEFT_RUNTIME_BASE_UTF8_H

#include "runtime/base/str.h"

/* The first character of s: its length in bytes, or 0 where s is empty or does not begin with a
 * well-formed sequence (overlong forms, surrogates and values past U+10FFFF are not). */
size_t utf8_decode(str s, uint32_t *out_cp);

/* Characters in s; a byte that is not part of a well-formed sequence counts as one. */
size_t utf8_count(str s);

/* Terminal cells: 2 for wide and emoji characters, 0 for combining and joining ones, else 1. */
int utf8_cells(uint32_t cp);

/* Characters that steer a terminal or reorder text instead of showing: C0 and C1 controls, line
 * and paragraph separators, direction marks, tags. They are never printed as they are. */
bool utf8_is_control(uint32_t cp);

/* Add s to out so that it shows on a terminal and steers nothing: controls and stray bytes become
 * \xNN, byte by byte. */
void utf8_put_safe(strbuf *out, str s);

/* s as text of an XML document, which has no way to write control characters: they and stray bytes become
 * U+FFFD. */
void utf8_put_xml(strbuf *out, str s);

#endif
