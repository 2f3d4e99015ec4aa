/* uni_tables.c - Unicode's tables, from utf8proc; normal forms, which need most of them. */
#include "runtime/text/uni_tables.h"

#include "runtime/base/mem.h"
#include <stdlib.h>

static utf8proc_category_t category(uint32_t cp)
{
    return utf8proc_category((utf8proc_int32_t)cp);
}

static uint32_t lower(uint32_t cp)
{
    return (uint32_t)utf8proc_tolower((utf8proc_int32_t)cp);
}

static uint32_t upper(uint32_t cp)
{
    return (uint32_t)utf8proc_toupper((utf8proc_int32_t)cp);
}

static uint32_t title(uint32_t cp)
{
    return (uint32_t)utf8proc_totitle((utf8proc_int32_t)cp);
}

/* ---- normal forms ---- */

/* Letters that are their own NFC whatever stands before them, so that most text is only copied. */
static bool is_composed(uint32_t cp)
{
    static const uni_span composed[] = {
        {0x00c0, 0x02ff}, {0x0400, 0x0482}, {0x048a, 0x052f}, {0x05d0, 0x05ea}, {0x0621, 0x063a},
        {0x0e01, 0x0e30}, {0x2010, 0x2027}, {0x3041, 0x3096}, {0x30a1, 0x30fa}, {0x3400, 0x4dbf},
        {0x4e00, 0x9fa5}, {0xac00, 0xd7a3}, {0xff01, 0xff60},
    };
    return UNI_IN(composed, cp);
}

static bool is_all_composed(str s)
{
    uint32_t cp;
    for (size_t i = 0; i < s.n;) {
        i += uni_next(s.p + i, &cp);
        if (cp >= 0x80 && !is_composed(cp))
            return false;
    }
    return true;
}

/* Code points on their way through a normal form. */
typedef struct {
    utf8proc_int32_t *at, *spare; /* cap of each */
    size_t n, cap;
} points;

static void points_reserve(points *p, size_t n)
{
    if (n <= p->cap)
        return;
    p->cap = n + n / 2 + 64;
    p->at = mem_realloc(p->at, mem_product(p->cap, sizeof *p->at));
    p->spare = mem_realloc(p->spare, mem_product(p->cap, sizeof *p->spare));
}

static unsigned combining_class(utf8proc_int32_t cp)
{
    return (unsigned)utf8proc_get_property(cp)->combining_class;
}

static void points_decompose(points *p, str run, utf8proc_option_t options)
{
    enum { DECOMPOSED_MAX = 18 }; /* U+FDFA has the longest decomposition (UAX #15) */
    p->n = 0;
    for (size_t i = 0; i < run.n;) {
        uint32_t cp;
        int last_boundclass = 0;
        i += uni_next(run.p + i, &cp);
        points_reserve(p, p->n + DECOMPOSED_MAX);
        utf8proc_ssize_t room = (utf8proc_ssize_t)(p->cap - p->n);
        utf8proc_ssize_t n = utf8proc_decompose_char((utf8proc_int32_t)cp, p->at + p->n, room,
                                                     options, &last_boundclass);
        if (n > room) { /* a longer one in tables that are newer */
            points_reserve(p, p->n + (size_t)n);
            n = utf8proc_decompose_char((utf8proc_int32_t)cp, p->at + p->n, n, options,
                                        &last_boundclass);
        }
        if (n < 0) /* not a code point: cannot come out of checked text */
            p->at[p->n++] = (utf8proc_int32_t)cp;
        else
            p->n += (size_t)n;
    }
}

/* Sorts n marks by combining class and keeps the order of equals: by insertion where there are few,
 * by counting where a text has thousands in a row. */
static void sort_marks(utf8proc_int32_t *at, utf8proc_int32_t *spare, size_t n)
{
    enum { FEW = 16, CLASSES = 256 };
    if (n <= FEW) {
        for (size_t i = 1; i < n; i++) {
            utf8proc_int32_t cp = at[i];
            unsigned class = combining_class(cp);
            size_t k = i;
            for (; k > 0 && combining_class(at[k - 1]) > class; k--)
                at[k] = at[k - 1];
            at[k] = cp;
        }
        return;
    }
    size_t begin[CLASSES] = {0}, sum = 0;
    for (size_t i = 0; i < n; i++)
        begin[combining_class(at[i])]++;
    for (size_t c = 0; c < CLASSES; c++) {
        size_t count = begin[c];
        begin[c] = sum;
        sum += count;
    }
    memcpy(spare, at, n * sizeof *at);
    for (size_t i = 0; i < n; i++)
        at[begin[combining_class(spare[i])]++] = spare[i];
}

static void points_order(points *p)
{
    for (size_t i = 0; i < p->n; i++) {
        size_t begin = i;
        while (i < p->n && combining_class(p->at[i]))
            i++;
        if (i - begin > 1)
            sort_marks(p->at + begin, p->spare, i - begin);
    }
}

/* No composition has an ASCII character in second place, so each run of other characters can be
 * treated alone, together with the one ASCII character before it. The ordering of marks is not left
 * to utf8proc, which takes time that grows with the square of their number. */
static void normalize(strbuf *out, str s, uni_form form)
{
    static const utf8proc_option_t options[] = {
        [UNI_NFC] = UTF8PROC_STABLE | UTF8PROC_COMPOSE,
        [UNI_NFD] = UTF8PROC_STABLE | UTF8PROC_DECOMPOSE,
        [UNI_NFKC] = UTF8PROC_STABLE | UTF8PROC_COMPOSE | UTF8PROC_COMPAT,
        [UNI_NFKD] = UTF8PROC_STABLE | UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT,
    };
    points p = {0};
    size_t done = 0;
    for (size_t i = 0; i < s.n;) {
        if (!((unsigned char)s.p[i] & 0x80)) {
            i++;
            continue;
        }
        size_t begin = i > done ? i - 1 : i, end = i;
        while (end < s.n && ((unsigned char)s.p[end] & 0x80))
            end++;
        i = end;
        str run = {s.p + begin, end - begin};
        if (form == UNI_NFC && is_all_composed(run))
            continue;
        strbuf_put(out, (str){s.p + done, begin - done});
        done = end;
        points_decompose(&p, run, options[form]);
        points_order(&p);
        utf8proc_ssize_t n = utf8proc_normalize_utf32(p.at, (utf8proc_ssize_t)p.n, options[form]);
        for (utf8proc_ssize_t k = 0; k < n; k++)
            uni_add(out, (uint32_t)p.at[k]);
    }
    strbuf_put(out, (str){s.p + done, s.n - done});
    mem_free(p.at);
    mem_free(p.spare);
}

const uni_tables uni_tables_whole = {category, lower, upper, title, normalize};
