#include "runtime/text/jinja_chars.h"

#include "runtime/base/utf8.h"
#include "runtime/text/uni_tables.h"

/* str.isspace(): the bidirectional types WS, B and S, and category Zs. */
static bool is_space(uint32_t cp)
{
    return (cp >= 9 && cp <= 13) || (cp >= 0x1c && cp <= 0x20) || cp == 0x85 || cp == 0xa0 ||
           cp == 0x1680 || (cp >= 0x2000 && cp <= 0x200a) || cp == 0x2028 || cp == 0x2029 ||
           cp == 0x202f || cp == 0x205f || cp == 0x3000;
}

/* The digits that are not decimal: superscripts, subscripts and those in circles. */
static bool is_other_digit(uint32_t cp)
{
    return cp == 0xb2 || cp == 0xb3 || cp == 0xb9 || cp == 0x2070 ||
           (cp >= 0x2074 && cp <= 0x2079) || (cp >= 0x2080 && cp <= 0x2089) ||
           (cp >= 0x2460 && cp <= 0x2468);
}

static unsigned ascii_classes(uint32_t cp)
{
    if (cp >= 'a' && cp <= 'z')
        return CHAR_ALPHA | CHAR_LOWER | CHAR_PRINTABLE | CHAR_WORD;
    if (cp >= 'A' && cp <= 'Z')
        return CHAR_ALPHA | CHAR_UPPER | CHAR_PRINTABLE | CHAR_WORD;
    if (cp >= '0' && cp <= '9')
        return CHAR_DECIMAL | CHAR_DIGIT | CHAR_NUMERIC | CHAR_PRINTABLE | CHAR_WORD;
    return (is_space(cp) ? CHAR_SPACE : 0u) | (cp >= ' ' && cp < 0x7f ? CHAR_PRINTABLE : 0u) |
           (cp == '_' ? CHAR_WORD : 0u);
}

unsigned char_classes(uint32_t cp)
{
    if (cp < 0x80)
        return ascii_classes(cp);
    unsigned is = is_space(cp) ? CHAR_SPACE : 0;
    switch (uni_tables_whole.category(cp)) {
    case UTF8PROC_CATEGORY_LL:
        return is | CHAR_ALPHA | CHAR_LOWER | CHAR_PRINTABLE | CHAR_WORD;
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LT:
        return is | CHAR_ALPHA | CHAR_UPPER | CHAR_PRINTABLE | CHAR_WORD;
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
        return is | CHAR_ALPHA | CHAR_PRINTABLE | CHAR_WORD;
    case UTF8PROC_CATEGORY_ND:
        return is | CHAR_DECIMAL | CHAR_DIGIT | CHAR_NUMERIC | CHAR_PRINTABLE | CHAR_WORD;
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_NO:
        is |= is_other_digit(cp) ? CHAR_DIGIT : 0;
        return is | CHAR_NUMERIC | CHAR_PRINTABLE | CHAR_WORD;
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
        return is;
    case UTF8PROC_CATEGORY_ZS:
        return is | (cp == ' ' ? CHAR_PRINTABLE : 0);
    default:
        return is | CHAR_PRINTABLE | (cp == '_' ? CHAR_WORD : 0);
    }
}

size_t char_put(char to[4], uint32_t cp)
{
    if (cp > 0x10ffff || (cp >= 0xd800 && cp < 0xe000))
        cp = 0xfffd;
    return uni_put(to, cp);
}

size_t char_put_case(char to[8], uint32_t cp, char_case to_case)
{
    if (cp < 0x80) {
        unsigned is = ascii_classes(cp);
        bool turn = (is & (to_case == CASE_LOWER ? CHAR_UPPER : CHAR_LOWER)) != 0;
        to[0] = (char)(turn ? cp ^ 0x20 : cp);
        return 1;
    }
    if (cp == 0xdf && to_case != CASE_LOWER) {
        memcpy(to, to_case == CASE_UPPER ? "SS" : "Ss", 2);
        return 2;
    }
    return char_put(to, to_case == CASE_LOWER   ? uni_tables_whole.lower(cp)
                        : to_case == CASE_UPPER ? uni_tables_whole.upper(cp)
                                                : uni_tables_whole.title(cp));
}

size_t char_at(str s, size_t i, uint32_t *out_cp)
{
    unsigned char c = (unsigned char)s.p[i];
    if (c < 0x80) {
        *out_cp = c;
        return 1;
    }
    size_t n = utf8_decode((str){s.p + i, s.n - i}, out_cp);
    if (n == 0)
        *out_cp = 0xfffd;
    return n ? n : 1;
}

size_t char_before(str s, size_t i)
{
    do
        i--;
    while (i > 0 && ((unsigned char)s.p[i] & 0xc0) == 0x80);
    return i;
}

size_t char_skip_space(str s, size_t i)
{
    uint32_t cp;
    while (i < s.n) {
        size_t n = char_at(s, i, &cp);
        if (!is_space(cp))
            break;
        i += n;
    }
    return i;
}

size_t char_trim_space(str s, size_t n)
{
    uint32_t cp;
    while (n > 0) {
        size_t i = char_before(s, n);
        char_at(s, i, &cp);
        if (!is_space(cp))
            break;
        n = i;
    }
    return n;
}
