/* tok_onig_class.c - escapes and bracket expressions of Oniguruma, rewritten for PCRE2.
 *
 * PCRE2 has neither [a[bc]] nor [a-z&&[^q]]. A nested class that is a plain list is written into
 * its parent; the rest becomes an alternation, and an intersection a lookahead for each of its
 * sides but the last, all of which look at the same one character. */
#include "runtime/text/tok_onig.h"

#include "runtime/text/tok_unicode.h"
#include <stdio.h>

/* clang-format off */
static const char space_items[] =
    "\\x{9}-\\x{d}\\x{20}\\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}"
    "\\x{205f}\\x{3000}";
static const char space_inverse[] =
    "\\x{0}-\\x{8}\\x{e}-\\x{1f}\\x{21}-\\x{84}\\x{86}-\\x{9f}\\x{a1}-\\x{167f}\\x{1681}-\\x{1fff}"
    "\\x{200b}-\\x{2027}\\x{202a}-\\x{202e}\\x{2030}-\\x{205e}\\x{2060}-\\x{2fff}\\x{3001}-\\x{10ffff}";
const char onig_word_items[] =
    "\\p{L}\\p{M}\\p{Nd}\\p{Nl}\\p{Pc}\\x{200c}\\x{200d}\\x{24b6}-\\x{24e9}\\x{1f130}-\\x{1f149}"
    "\\x{1f150}-\\x{1f169}\\x{1f170}-\\x{1f189}";

/* Properties that Oniguruma knows by a name PCRE2 has not or reads differently; the names of general
 * categories pass as they are, and any other name is that of a script. */
static const struct {
    const char *name; /* lower case, without spaces, '_' and '-' */
    onig_set set;
} properties[] = {
    {"space",                {space_items, space_inverse, false}},
    {"whitespace",           {space_items, space_inverse, false}},
    {"word",                 {onig_word_items, NULL, false}},
    {"alnum",                {"\\p{Alphabetic}\\p{Nd}", NULL, false}},
    {"alpha",                {"\\p{Alphabetic}", "\\P{Alphabetic}", false}},
    {"alphabetic",           {"\\p{Alphabetic}", "\\P{Alphabetic}", false}},
    {"upper",                {"\\p{Uppercase}", "\\P{Uppercase}", false}},
    {"uppercase",            {"\\p{Uppercase}", "\\P{Uppercase}", false}},
    {"lower",                {"\\p{Lowercase}", "\\P{Lowercase}", false}},
    {"lowercase",            {"\\p{Lowercase}", "\\P{Lowercase}", false}},
    {"digit",                {"\\p{Nd}", "\\P{Nd}", false}},
    {"cntrl",                {"\\p{Cc}", "\\P{Cc}", false}},
    {"xdigit",               {"0-9a-fA-F", NULL, false}},
    {"punct",                {"\\p{P}$+<=>\\^`|~", NULL, false}},
    {"ascii",                {"\\x{0}-\\x{7f}", "\\x{80}-\\x{10ffff}", false}},
    {"any",                  {"\\x{0}-\\x{10ffff}", NULL, false}},
    {"letter",               {"\\p{L}", "\\P{L}", false}},
    {"uppercaseletter",      {"\\p{Lu}", "\\P{Lu}", false}},
    {"lowercaseletter",      {"\\p{Ll}", "\\P{Ll}", false}},
    {"titlecaseletter",      {"\\p{Lt}", "\\P{Lt}", false}},
    {"modifierletter",       {"\\p{Lm}", "\\P{Lm}", false}},
    {"otherletter",          {"\\p{Lo}", "\\P{Lo}", false}},
    {"mark",                 {"\\p{M}", "\\P{M}", false}},
    {"number",               {"\\p{N}", "\\P{N}", false}},
    {"decimalnumber",        {"\\p{Nd}", "\\P{Nd}", false}},
    {"punctuation",          {"\\p{P}", "\\P{P}", false}},
    {"symbol",               {"\\p{S}", "\\P{S}", false}},
    {"separator",            {"\\p{Z}", "\\P{Z}", false}},
    {"other",                {"\\p{C}", "\\P{C}", false}},
};

static const struct {
    char letter;
    onig_set set;
} letters[] = {
    {'s', {space_items, space_inverse, false}},
    {'S', {space_items, space_inverse, true}},
    {'w', {onig_word_items, NULL, false}},
    {'W', {onig_word_items, NULL, true}},
    {'d', {"\\p{Nd}", "\\P{Nd}", false}},
    {'D', {"\\p{Nd}", "\\P{Nd}", true}},
    {'h', {"0-9a-fA-F", NULL, false}},
    {'H', {"0-9a-fA-F", NULL, true}},
};
/* clang-format on */

static bool find_property(str name, onig_set *out_set)
{
    for (size_t k = 0; k < sizeof properties / sizeof *properties; k++)
        if (str_eqz(name, properties[k].name)) {
            *out_set = properties[k].set;
            return true;
        }
    return false;
}

/* Long enough for every script's name; what is longer is none. */
enum { PROPERTY_NAME_MAX = 40 };

/* At the 'p' or 'P'. */
static weft_status property(onig_text *x, onig_set *out_set)
{
    bool negated = onig_peek(x, 0) == 'P';
    char name[PROPERTY_NAME_MAX], lower[PROPERTY_NAME_MAX];
    size_t n = 0, n_lower = 0;
    x->i++;
    if (onig_peek(x, 0) != '{')
        return onig_refuse(x, "\\p without braces");
    x->i++;
    if (onig_peek(x, 0) == '^') {
        negated = !negated;
        x->i++;
    }
    for (; onig_peek(x, 0) != '}'; x->i++) {
        int c = onig_peek(x, 0);
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        if (c < 0 || n + 1 >= sizeof name || (!letter && c != '_' && c != ' ' && c != '-'))
            return onig_refuse(x, "a property of this form");
        name[n++] = (char)c;
        if (letter)
            lower[n_lower++] = (char)(c | 0x20);
    }
    x->i++;
    name[n] = '\0';
    if (!find_property((str){lower, n_lower}, out_set)) {
        const char *kind = n <= 2 ? "" : "sc:";
        snprintf(x->room[0], sizeof x->room[0], "\\p{%s%s}", kind, name);
        snprintf(x->room[1], sizeof x->room[1], "\\P{%s%s}", kind, name);
        *out_set = (onig_set){x->room[0], x->room[1], false};
    }
    out_set->negated = negated;
    return WEFT_OK;
}

weft_status onig_set_escape(onig_text *x, onig_set *out_set)
{
    int c = onig_peek(x, 0);
    *out_set = (onig_set){0};
    if (c == 'p' || c == 'P')
        return property(x, out_set);
    for (size_t k = 0; k < sizeof letters / sizeof *letters; k++)
        if (c == letters[k].letter) {
            *out_set = letters[k].set;
            x->i++;
            break;
        }
    return WEFT_OK;
}

static int hex_value(int c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* At the digits: n_min to n_max of them. */
static weft_status hex(onig_text *x, int n_min, int n_max, uint32_t *out_cp)
{
    uint32_t cp = 0;
    int n = 0;
    for (; n < n_max && hex_value(onig_peek(x, 0)) >= 0; n++, x->i++)
        cp = cp << 4 | (uint32_t)hex_value(onig_peek(x, 0));
    if (n < n_min || cp > 0x10ffff || (cp >= 0xd800 && cp < 0xe000))
        return onig_refuse(x, "a code that is no character");
    *out_cp = cp;
    return WEFT_OK;
}

weft_status onig_char_escape(onig_text *x, strbuf *out)
{
    static const char plain[] = "tnrfae", codes[] = "\t\n\r\f\a\x1b";
    int c = onig_peek(x, 0);
    uint32_t cp;
    if (c < 0)
        return onig_refuse(x, "a backslash at its end");
    const char *at = strchr(plain, c);
    if (at) {
        cp = (unsigned char)codes[at - plain];
        x->i++;
    } else if (c == 'v') {
        cp = 0x0b;
        x->i++;
    } else if (c == 'u') {
        x->i++;
        WEFT_TRY(hex(x, 4, 4, &cp));
    } else if (c == 'x') {
        x->i++;
        bool braces = onig_peek(x, 0) == '{';
        x->i += braces;
        WEFT_TRY(hex(x, 1, braces ? 6 : 2, &cp));
        if (braces && onig_peek(x, 0) != '}')
            return onig_refuse(x, "\\x{ without its end");
        x->i += braces;
        if (!braces && cp > 0x7f)
            return onig_refuse(x, "a byte written as \\x, which is no character");
    } else if (c < 0x80 && ((c | 0x20) < 'a' || (c | 0x20) > 'z') && (c < '0' || c > '9')) {
        cp = (uint32_t)c; /* punctuation stands for itself */
        x->i++;
    } else if (c >= 0x80) {
        x->i += uni_next(x->in.p + x->i, &cp);
    } else {
        char what[32];
        snprintf(what, sizeof what, "the escape \\%c", c);
        return onig_refuse(x, what);
    }
    strbuf_add(out, "\\x{%x}", (unsigned)cp);
    return WEFT_OK;
}

/* One side of an intersection. */
typedef struct {
    strbuf items;  /* the inside of a bracket */
    strbuf others; /* further expressions of one character, each after a '|' */
} side;

typedef struct {
    strbuf expr;
    strbuf items; /* of a plain list */
    bool plain;   /* not negated, nothing but items */
} class;

static weft_status class_read(onig_text *x, class *out);

static void side_expr(const side *s, strbuf *out)
{
    if (!s->others.n)
        strbuf_add(out, "[%s]", s->items.p);
    else if (!s->items.n)
        strbuf_add(out, "(?:%s)", s->others.p + 1);
    else
        strbuf_add(out, "(?:[%s]%s)", s->items.p, s->others.p);
}

static weft_status nested(onig_text *x, side *s)
{
    class inner = {0};
    weft_status status = class_read(x, &inner);
    if (status == WEFT_OK && inner.plain) {
        strbuf_put(&s->items, strbuf_view(&inner.items));
    } else if (status == WEFT_OK) {
        strbuf_putc(&s->others, '|');
        strbuf_put(&s->others, strbuf_view(&inner.expr));
    }
    strbuf_free(&inner.expr);
    strbuf_free(&inner.items);
    return status;
}

/* At "[:": a POSIX class, which is a property under another spelling. */
static weft_status posix(onig_text *x, side *s)
{
    size_t begin = x->i + 2, end = begin;
    bool negated = begin < x->in.n && x->in.p[begin] == '^';
    onig_set set;
    begin += negated;
    for (end = begin; end < x->in.n && x->in.p[end] >= 'a' && x->in.p[end] <= 'z';)
        end++;
    if (!find_property((str){x->in.p + begin, end - begin}, &set) || (negated && !set.inverse))
        return onig_refuse(x, "this POSIX class");
    x->i = end;
    if (!onig_sees(x, ":]"))
        return onig_refuse(x, "this POSIX class");
    x->i += 2;
    strbuf_add(&s->items, "%s", negated ? set.inverse : set.items);
    return WEFT_OK;
}

typedef enum { LAST_NONE, LAST_CHAR, LAST_SET } last_item;

static weft_status class_escape(onig_text *x, side *s, last_item *last)
{
    onig_set set;
    x->i++;
    WEFT_TRY(onig_set_escape(x, &set));
    if (set.items) {
        const char *items = set.negated ? set.inverse : set.items;
        if (!items)
            return onig_refuse(x, "\\W, \\H or a negated property inside a bracket");
        strbuf_add(&s->items, "%s", items);
        *last = LAST_SET;
        return WEFT_OK;
    }
    *last = LAST_CHAR;
    if (onig_peek(x, 0) == 'b') {
        x->i++;
        strbuf_add(&s->items, "\\x{8}");
        return WEFT_OK;
    }
    return onig_char_escape(x, &s->items);
}

/* A '-' is a range only between two characters. */
static bool is_range(const onig_text *x, last_item last)
{
    int next = onig_peek(x, 1), then = onig_peek(x, 2);
    if (last != LAST_CHAR || next == ']' || next == '[' || next < 0)
        return false;
    if (next == '&' && then == '&')
        return false;
    return next != '\\' || then < 0 || !strchr("sSwWdDhHpP", then);
}

static weft_status side_read(onig_text *x, side *s, bool first)
{
    last_item last = LAST_NONE;
    bool open = false; /* a range whose end comes next */
    for (;; first = false) {
        int c = onig_peek(x, 0);
        uint32_t cp;
        if (c < 0)
            return onig_refuse(x, "a bracket without its end");
        if ((c == ']' && !first) || onig_sees(x, "&&"))
            return WEFT_OK;
        if (onig_sees(x, "[:")) {
            WEFT_TRY(posix(x, s));
            last = LAST_SET;
        } else if (c == '[') {
            x->i++;
            WEFT_TRY(nested(x, s));
            last = LAST_SET;
        } else if (c == '\\') {
            WEFT_TRY(class_escape(x, s, &last));
        } else if (c == '-' && is_range(x, last)) {
            x->i++;
            strbuf_putc(&s->items, '-');
            open = true;
            continue;
        } else {
            x->i += uni_next(x->in.p + x->i, &cp);
            strbuf_add(&s->items, "\\x{%x}", (unsigned)cp);
            last = LAST_CHAR;
        }
        if (open)
            last = LAST_NONE;
        open = false;
    }
}

static weft_status class_read(onig_text *x, class *out)
{
    bool negated = onig_peek(x, 0) == '^';
    strbuf both = {0};
    side s = {0};
    int n_side = 0;
    weft_status status = WEFT_OK;
    if (++x->depth > ONIG_DEPTH_MAX)
        return onig_refuse(x, "brackets nested too deeply");
    x->i += negated;
    for (;; n_side++) {
        status = side_read(x, &s, n_side == 0);
        if (status == WEFT_OK && !s.items.n && !s.others.n)
            status = onig_refuse(x, "an empty bracket");
        if (status != WEFT_OK || !onig_sees(x, "&&"))
            break;
        x->i += 2;
        strbuf_put(&both, STR("(?="));
        side_expr(&s, &both);
        strbuf_putc(&both, ')');
        strbuf_reset(&s.items);
        strbuf_reset(&s.others);
    }
    if (status == WEFT_OK) {
        x->i++; /* the ']' */
        x->depth--;
        out->plain = !negated && !n_side && !s.others.n;
        if (out->plain)
            strbuf_put(&out->items, strbuf_view(&s.items));
        if (negated && !n_side && !s.others.n) {
            strbuf_add(&out->expr, "[^%s]", s.items.p);
        } else {
            strbuf_put(&out->expr, negated ? STR("(?:(?!") : STR("(?:"));
            strbuf_put(&out->expr, strbuf_view(&both));
            side_expr(&s, &out->expr);
            strbuf_put(&out->expr, negated ? STR(")(?s:.))") : STR(")"));
        }
    }
    strbuf_free(&both);
    strbuf_free(&s.items);
    strbuf_free(&s.others);
    return status;
}

weft_status onig_class(onig_text *x, strbuf *out)
{
    class c = {0};
    weft_status status = class_read(x, &c);
    if (status == WEFT_OK && c.plain)
        strbuf_add(out, "[%s]", c.items.p);
    else if (status == WEFT_OK)
        strbuf_put(out, strbuf_view(&c.expr));
    strbuf_free(&c.expr);
    strbuf_free(&c.items);
    return status;
}
