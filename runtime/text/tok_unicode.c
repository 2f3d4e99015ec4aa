/* tok_unicode.c - character classes, case and normal forms, from utf8proc's tables. */
#include "runtime/text/tok_unicode.h"

#include "runtime/base/mem.h"
#include "runtime/base/utf8.h"
#include <stdlib.h>
#include <utf8proc.h>

typedef struct {
    uint32_t first, last;
} span;

static bool in_spans(const span *spans, size_t n, uint32_t cp)
{
    for (size_t i = 0; i < n; i++)
        if (cp >= spans[i].first && cp <= spans[i].last)
            return true;
    return false;
}

#define IN_SPANS(spans, cp) in_spans(spans, sizeof(spans) / sizeof *(spans), cp)

size_t uni_put(char to[4], uint32_t cp)
{
    return (size_t)utf8proc_encode_char((utf8proc_int32_t)cp, (utf8proc_uint8_t *)to);
}

void uni_add(strbuf *out, uint32_t cp)
{
    char bytes[4];
    strbuf_put(out, (str){bytes, uni_put(bytes, cp)});
}

bool uni_is_ascii(str s)
{
    uint64_t any = 0, word;
    size_t i = 0;
    for (; i + 8 <= s.n && !(any & UINT64_C(0x8080808080808080)); i += 8) {
        memcpy(&word, s.p + i, 8);
        any |= word;
    }
    for (; i < s.n; i++)
        any |= (unsigned char)s.p[i];
    return !(any & UINT64_C(0x8080808080808080));
}

bool uni_check(str s, size_t *out_bad)
{
    uint32_t cp;
    for (size_t i = 0; i < s.n;) {
        uint64_t word;
        if (i + 8 <= s.n && (memcpy(&word, s.p + i, 8), !(word & UINT64_C(0x8080808080808080)))) {
            i += 8;
            continue;
        }
        unsigned char c = (unsigned char)s.p[i];
        if (c < 0x80) {
            i++;
            continue;
        }
        if (c >= 0xc2 && c < 0xe0 && i + 1 < s.n && ((unsigned char)s.p[i + 1] & 0xc0) == 0x80) {
            i += 2; /* most of what byte-level vocabularies have beside ASCII */
            continue;
        }
        size_t n = utf8_decode((str){s.p + i, s.n - i}, &cp);
        if (!n) {
            *out_bad = i;
            return false;
        }
        i += n;
    }
    return true;
}

static utf8proc_category_t category(uint32_t cp)
{
    return utf8proc_category((utf8proc_int32_t)cp);
}

bool uni_is_space(uint32_t cp)
{
    static const span spaces[] = {
        {0x85, 0x85},     {0xa0, 0xa0},     {0x1680, 0x1680}, {0x2000, 0x200a},
        {0x2028, 0x2029}, {0x202f, 0x202f}, {0x205f, 0x205f}, {0x3000, 0x3000},
    };
    if (cp < 0x80)
        return cp == ' ' || (cp >= '\t' && cp <= '\r');
    return IN_SPANS(spaces, cp);
}

bool uni_is_numeric(uint32_t cp)
{
    if (cp < 0x80)
        return cp >= '0' && cp <= '9';
    utf8proc_category_t c = category(cp);
    return c == UTF8PROC_CATEGORY_ND || c == UTF8PROC_CATEGORY_NL || c == UTF8PROC_CATEGORY_NO;
}

bool uni_is_mark(uint32_t cp)
{
    utf8proc_category_t c = category(cp);
    return c == UTF8PROC_CATEGORY_MN || c == UTF8PROC_CATEGORY_MC || c == UTF8PROC_CATEGORY_ME;
}

bool uni_is_nonspacing(uint32_t cp)
{
    return category(cp) == UTF8PROC_CATEGORY_MN;
}

bool uni_is_word(uint32_t cp)
{
    /* Alphabetic although symbols, and the joiners. */
    static const span others[] = {
        {0x200c, 0x200d},   {0x24b6, 0x24e9},   {0x1f130, 0x1f149},
        {0x1f150, 0x1f169}, {0x1f170, 0x1f189},
    };
    utf8proc_category_t c = category(cp);
    return (c >= UTF8PROC_CATEGORY_LU && c <= UTF8PROC_CATEGORY_NL) || c == UTF8PROC_CATEGORY_PC ||
           IN_SPANS(others, cp);
}

bool uni_is_punct(uint32_t cp)
{
    if (cp < 0x80)
        return (cp >= '!' && cp <= '/') || (cp >= ':' && cp <= '@') || (cp >= '[' && cp <= '`') ||
               (cp >= '{' && cp <= '~');
    utf8proc_category_t c = category(cp);
    return c >= UTF8PROC_CATEGORY_PC && c <= UTF8PROC_CATEGORY_PO;
}

bool uni_is_other(uint32_t cp)
{
    utf8proc_category_t c = category(cp);
    return c == UTF8PROC_CATEGORY_CC || c == UTF8PROC_CATEGORY_CF || c == UTF8PROC_CATEGORY_CO;
}

bool uni_is_han(uint32_t cp)
{
    /* 0x2b920 is what Hugging Face has; the block begins at 0x2b820. */
    static const span han[] = {
        {0x3400, 0x4dbf},   {0x4e00, 0x9fff},   {0xf900, 0xfaff},   {0x20000, 0x2a6df},
        {0x2a700, 0x2b73f}, {0x2b740, 0x2b81f}, {0x2b920, 0x2ceaf}, {0x2f800, 0x2fa1f},
    };
    return IN_SPANS(han, cp);
}

void uni_add_lower(strbuf *out, uint32_t cp)
{
    if (cp == 0x130) /* the only character whose lower case is two */
        strbuf_put(out, STR("i\xcc\x87"));
    else
        uni_add(out, (uint32_t)utf8proc_tolower((utf8proc_int32_t)cp));
}

/* Letters that are their own NFC whatever stands before them, so that most text is only copied. */
static bool is_composed(uint32_t cp)
{
    static const span composed[] = {
        {0x00c0, 0x02ff}, {0x0400, 0x0482}, {0x048a, 0x052f}, {0x05d0, 0x05ea}, {0x0621, 0x063a},
        {0x0e01, 0x0e30}, {0x2010, 0x2027}, {0x3041, 0x3096}, {0x30a1, 0x30fa}, {0x3400, 0x4dbf},
        {0x4e00, 0x9fa5}, {0xac00, 0xd7a3}, {0xff01, 0xff60},
    };
    return IN_SPANS(composed, cp);
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
void uni_normalize(strbuf *out, str s, uni_form form)
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

/* GPT-2's map: printable Latin-1 stands for itself, the other 68 bytes follow from U+0100 on. */
static bool is_printable(unsigned byte)
{
    return (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
}

uint32_t uni_of_byte(unsigned char byte)
{
    if (is_printable(byte))
        return byte;
    uint32_t cp = 0x100;
    for (unsigned b = 0; b < byte; b++)
        cp += !is_printable(b);
    return cp;
}

int uni_to_byte(uint32_t cp)
{
    if (cp < 0x100)
        return is_printable(cp) ? (int)cp : -1;
    if (cp >= 0x100 + 68)
        return -1;
    uint32_t nth = cp - 0x100;
    for (unsigned b = 0; b < 0x100; b++)
        if (!is_printable(b) && nth-- == 0)
            return (int)b;
    return -1;
}
