/* str.h - string views and a growable text buffer.
 *
 * A str borrows its bytes, which need not end in NUL; whoever made it says what must outlive it.
 * A strbuf owns its bytes; running out of memory does not return (mem.h). */
#ifndef WEFT_RUNTIME_BASE_STR_H
#define WEFT_RUNTIME_BASE_STR_H

#include "runtime/base/status.h"
#include <stdarg.h>
#include <string.h>

typedef struct {
    const char *p;
    size_t n;
} str;

#define STR(lit) ((str){("" lit), sizeof(lit) - 1})
#define STR_FMT "%.*s"
#define STR_ARG(s) (int)(s).n, (s).p

static inline str str_of(const char *z)
{
    return (str){z, strlen(z)};
}
static inline bool str_eq(str a, str b)
{
    return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}
static inline bool str_eqz(str a, const char *z)
{
    return str_eq(a, str_of(z));
}
bool str_starts(str s, str prefix);
bool str_ends(str s, str suffix);
/* In pattern * stands for any run of characters, dots too, and ? for any one. Takes at most pattern.n * name.n steps. */
bool str_glob(str pattern, str name);
int str_cmp(str a, str b); /* bytewise, like strcmp */
uint64_t str_hash(str s);  /* FNV-1a */

/* Of a list of words with a blank between them: word i, empty past the end; and which one it is, -1: none. */
str word_at(const char *words, int i);
int word_find(const char *words, str word);

/* How many single edits (insert, delete, replace, swap of neighbours) turn a into b, at most cap.
 */
int str_distance(str a, str b, int cap);
/* Keeps in *best the candidate nearest to `want`, for "did you mean"; start with {0}. A candidate
 * further off than a third of its length never counts. */
typedef struct {
    str name;
    int distance;
} str_guess;
void str_guess_try(str_guess *best, str want, str candidate);
/* The same with the names of n rows of a table, the first at *name and the next `stride` bytes on. */
void str_guess_rows(str_guess *best, str want, const char *const *name, size_t n, size_t stride);
#define GUESS_ROWS(best, want, rows, n)                                                            \
    str_guess_rows(best, want, &(rows)->name, (size_t)(n), sizeof *(rows))

typedef struct {
    char *p; /* always NUL-terminated once something was added */
    size_t n, cap;
} strbuf;

void strbuf_add(strbuf *b, const char *fmt, ...) WEFT_PRINTF(2, 3);
void strbuf_vadd(strbuf *b, const char *fmt, va_list ap);
void strbuf_put(strbuf *b, str s);
void strbuf_putc(strbuf *b, char c);
void strbuf_fill(strbuf *b, char c, size_t n); /* n times c */
str strbuf_view(const strbuf *b);              /* valid until the next change */
void strbuf_reset(strbuf *b);                  /* empties, keeps the memory */
void strbuf_free(strbuf *b);
/* Takes the first block, for a buffer of an object that outlives the call it grows in (mem_scope.h). */
void strbuf_start(strbuf *b);
void strbuf_reserve(strbuf *b, size_t n); /* adding n bytes will take no memory */

#endif
