/* str.c - string views, edit distance for suggestions, and the text buffer. */
#include "runtime/base/str.h"

#include "runtime/base/mem.h"
#include <stdio.h>
#include <stdlib.h>

enum {
    DISTANCE_LEN_MAX = 128, /* longer names are not worth a guess, and would cost time */
    STRBUF_FIRST = 64,
};

bool str_starts(str s, str prefix)
{
    return s.n >= prefix.n && str_eq((str){s.p, prefix.n}, prefix);
}

bool str_ends(str s, str suffix)
{
    return s.n >= suffix.n &&
           (suffix.n == 0 || str_eq((str){s.p + s.n - suffix.n, suffix.n}, suffix));
}

bool str_glob(str pattern, str name)
{
    size_t p = 0, n = 0, star = SIZE_MAX, mark = 0;
    while (n < name.n) {
        if (p < pattern.n && pattern.p[p] == '*') {
            star = p++;
            mark = n;
        } else if (p < pattern.n && (pattern.p[p] == '?' || pattern.p[p] == name.p[n])) {
            p++;
            n++;
        } else if (star != SIZE_MAX) {
            p = star + 1;
            n = ++mark;
        } else {
            return false;
        }
    }
    while (p < pattern.n && pattern.p[p] == '*')
        p++;
    return p == pattern.n;
}

int str_cmp(str a, str b)
{
    size_t n = a.n < b.n ? a.n : b.n;
    int order = n ? memcmp(a.p, b.p, n) : 0;
    return order ? order : (a.n > b.n) - (a.n < b.n);
}

uint64_t str_hash(str s)
{
    /* FNV-1a, 64 bits: http://www.isthe.com/chongo/tech/comp/fnv/ */
    uint64_t h = 0xcbf29ce484222325u;
    for (size_t i = 0; i < s.n; i++)
        h = (h ^ (unsigned char)s.p[i]) * 0x100000001b3u;
    return h;
}

str word_at(const char *words, int i)
{
    for (; i > 0 && *words; i--) {
        words += strcspn(words, " ");
        words += *words == ' ';
    }
    return (str){words, strcspn(words, " ")};
}

int word_find(const char *words, str word)
{
    for (int i = 0; *words; i++) {
        size_t n = strcspn(words, " ");
        if (str_eq((str){words, n}, word))
            return i;
        words += n;
        words += *words == ' ';
    }
    return -1;
}

static int int_min(int a, int b)
{
    return a < b ? a : b;
}

/* The restricted Damerau-Levenshtein distance ("optimal string alignment"), by rows: three rows
 * suffice because a swap looks two rows back. */
int str_distance(str a, str b, int cap)
{
    size_t gap = a.n > b.n ? a.n - b.n : b.n - a.n;
    if (cap <= 0 || str_eq(a, b))
        return 0;
    if (gap >= (size_t)cap || a.n > DISTANCE_LEN_MAX || b.n > DISTANCE_LEN_MAX)
        return cap;

    int rows[3][DISTANCE_LEN_MAX + 1];
    int *before = rows[0], *last = rows[1], *now = rows[2];
    for (size_t j = 0; j <= b.n; j++)
        last[j] = (int)j;
    for (size_t i = 1; i <= a.n; i++) {
        int row_min = now[0] = (int)i;
        for (size_t j = 1; j <= b.n; j++) {
            int d = last[j - 1] + (a.p[i - 1] != b.p[j - 1]);
            d = int_min(d, int_min(last[j], now[j - 1]) + 1);
            if (i > 1 && j > 1 && a.p[i - 1] == b.p[j - 2] && a.p[i - 2] == b.p[j - 1])
                d = int_min(d, before[j - 2] + 1);
            now[j] = d;
            row_min = int_min(row_min, d);
        }
        /* A swap can undercut a row's smallest value by nothing, so no later row gets below it. */
        if (row_min >= cap)
            return cap;
        int *spare = before;
        before = last;
        last = now;
        now = spare;
    }
    return int_min(last[b.n], cap);
}

void str_guess_try(str_guess *best, str want, str candidate)
{
    if (candidate.n > DISTANCE_LEN_MAX)
        return;
    int far = (int)(candidate.n / 3) + 1; /* the first distance that does not count */
    if (best->name.p && best->distance < far)
        far = best->distance;
    int d = str_distance(want, candidate, far);
    if (d < far)
        *best = (str_guess){candidate, d};
}

void str_guess_rows(str_guess *best, str want, const char *const *name, size_t n, size_t stride)
{
    for (size_t i = 0; i < n; i++)
        str_guess_try(best, want, str_of(*(const char *const *)((const char *)name + i * stride)));
}

/* Makes room for n more bytes and the NUL. */
static void strbuf_room(strbuf *b, size_t n)
{
    if (n > SIZE_MAX / 2 - b->n - 1)
        mem_exhausted(SIZE_MAX);
    size_t need = b->n + n + 1;
    if (need <= b->cap)
        return;
    size_t cap = b->cap ? b->cap * 2 : STRBUF_FIRST;
    if (cap < need)
        cap = need;
    b->p = mem_realloc(b->p, cap);
    b->cap = cap;
}

void strbuf_vadd(strbuf *b, const char *fmt, va_list ap)
{
    va_list again;
    va_copy(again, ap);
    strbuf_room(b, 0);
    int n = vsnprintf(b->p + b->n, b->cap - b->n, fmt, ap);
    WEFT_ASSERT(n >= 0);
    if ((size_t)n >= b->cap - b->n) {
        strbuf_room(b, (size_t)n);
        n = vsnprintf(b->p + b->n, b->cap - b->n, fmt, again);
        WEFT_ASSERT(n >= 0);
    }
    va_end(again);
    b->n += (size_t)n;
}

void strbuf_add(strbuf *b, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    strbuf_vadd(b, fmt, ap);
    va_end(ap);
}

void strbuf_put(strbuf *b, str s)
{
    strbuf_room(b, s.n);
    if (s.n)
        memcpy(b->p + b->n, s.p, s.n);
    b->n += s.n;
    b->p[b->n] = 0;
}

void strbuf_putc(strbuf *b, char c)
{
    strbuf_put(b, (str){&c, 1});
}

void strbuf_fill(strbuf *b, char c, size_t n)
{
    strbuf_room(b, n);
    memset(b->p + b->n, c, n);
    b->n += n;
    b->p[b->n] = 0;
}

void strbuf_reserve(strbuf *b, size_t n)
{
    strbuf_room(b, n);
    b->p[b->n] = 0;
}

void strbuf_start(strbuf *b)
{
    strbuf_fill(b, ' ', 0);
}

str strbuf_view(const strbuf *b)
{
    return (str){b->p ? b->p : "", b->n};
}

void strbuf_reset(strbuf *b)
{
    b->n = 0;
    if (b->p)
        b->p[0] = 0;
}

void strbuf_free(strbuf *b)
{
    mem_free(b->p);
    *b = (strbuf){0};
}
