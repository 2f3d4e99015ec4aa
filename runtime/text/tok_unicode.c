/* tok_unicode.c - UTF-8, and character classes; what they take of Unicode's tables comes from uni_tables.h. */
#include "runtime/text/tok_unicode.h"

#include "runtime/base/utf8.h"
#include "runtime/text/text_parts.h"
#include <utf8proc.h>

size_t uni_put(char to[4], uint32_t cp)
{
    if (cp < 0x80) {
        to[0] = (char)cp;
        return 1;
    }
    size_t n = cp < 0x800 ? 2 : cp < 0x10000 ? 3 : 4;
    for (size_t i = n - 1; i > 0; i--, cp >>= 6)
        to[i] = (char)(0x80 | (cp & 0x3f));
    to[0] = (char)(0xf00 >> n | cp); /* as many ones as there are bytes, then a zero */
    return n;
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
    return uni_tables_here()->category(cp);
}

bool uni_is_space(uint32_t cp)
{
    static const uni_span spaces[] = {
        {0x85, 0x85},     {0xa0, 0xa0},     {0x1680, 0x1680}, {0x2000, 0x200a},
        {0x2028, 0x2029}, {0x202f, 0x202f}, {0x205f, 0x205f}, {0x3000, 0x3000},
    };
    if (cp < 0x80)
        return cp == ' ' || (cp >= '\t' && cp <= '\r');
    return UNI_IN(spaces, cp);
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
    static const uni_span others[] = {
        {0x200c, 0x200d},   {0x24b6, 0x24e9},   {0x1f130, 0x1f149},
        {0x1f150, 0x1f169}, {0x1f170, 0x1f189},
    };
    utf8proc_category_t c = category(cp);
    return (c >= UTF8PROC_CATEGORY_LU && c <= UTF8PROC_CATEGORY_NL) || c == UTF8PROC_CATEGORY_PC ||
           UNI_IN(others, cp);
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
    static const uni_span han[] = {
        {0x3400, 0x4dbf},   {0x4e00, 0x9fff},   {0xf900, 0xfaff},   {0x20000, 0x2a6df},
        {0x2a700, 0x2b73f}, {0x2b740, 0x2b81f}, {0x2b920, 0x2ceaf}, {0x2f800, 0x2fa1f},
    };
    return UNI_IN(han, cp);
}

void uni_add_lower(strbuf *out, uint32_t cp)
{
    if (cp == 0x130) /* the only character whose lower case is two */
        strbuf_put(out, STR("i\xcc\x87"));
    else
        uni_add(out, uni_tables_here()->lower(cp));
}

void uni_normalize(strbuf *out, str s, uni_form form)
{
    uni_tables_here()->normalize(out, s, form);
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
