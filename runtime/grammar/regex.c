/* regex.c - regular expressions into parts.
 *
 * The subset that describes a regular language: characters, ., classes, groups, |, ? * + {m,n}, ^ and $ at the ends. What needs
 * to look back or around (\1, (?=..), \b) is refused by name. Whether a quantifier is lazy makes no difference to what
 * matches. Matching is linear in the text whatever the expression, because the automaton never goes back. */
#include "runtime/base/utf8.h"
#include "runtime/grammar/form.h"

typedef struct {
    weft_diag *dg;
    form *f;
    const regex_source *src;
    str text;
    size_t at;
    int depth;
} reader;

enum {
    CHAR_LAST = 0x10ffff,
    COUNT_MAX = 1 << 20, /* of {m,n}; the limit on states comes first */
};

#define FAIL(r, code, from, ...) weft_fail((r)->dg, code, place(r, from), __VA_ARGS__)

static weft_loc place(const reader *r, size_t from)
{
    size_t to = r->at > from ? r->at : from + 1;
    if (!r->src->src)
        return WEFT_NOWHERE;
    return (weft_loc){r->src->src, r->src->at + (uint32_t)from, r->src->at + (uint32_t)to};
}

static bool more(const reader *r)
{
    return r->at < r->text.n;
}

static int peek(const reader *r)
{
    return more(r) ? (unsigned char)r->text.p[r->at] : -1;
}

static bool eat(reader *r, const char *z)
{
    size_t n = strlen(z);
    if (r->text.n - r->at < n || memcmp(r->text.p + r->at, z, n) != 0)
        return false;
    r->at += n;
    return true;
}

/* ---- characters ---- */

/* One of these, as it is written in the text or in a JSON string. */
static const part *chars(reader *r, const char_range *range, size_t n, bool invert)
{
    form *f = r->f;
    const part *set = part_set(f, range, n, invert);
    if (!r->src->json || set->kind == PART_NEVER)
        return set;
    range_vec plain = {0};
    part_vec way = {0};
    for (size_t i = 0; i < set->n; i++) {
        uint32_t lo = set->range[i].lo, hi = set->range[i].hi;
        for (uint32_t c = lo; c <= hi && c <= '\\'; c++) {
            static const char named[] = "\b\f\n\r\t\"\\", letter[] = "bfnrt\"\\";
            const char *k = c ? strchr(named, (int)c) : NULL;
            char escape[8] = {'\\', 'u', '0', '0', '0', '0', 0};
            if (k) {
                escape[1] = letter[k - named];
                escape[2] = 0;
            } else if (c < 0x20) {
                escape[4] = (char)('0' + (c >> 4));
                escape[5] = "0123456789abcdef"[c & 15];
            } else {
                continue;
            }
            VEC_PUSH(&way, part_text(f, escape));
        }
        static const char_range spared[] = {{0x20, 0x21}, {0x23, 0x5b}, {0x5d, CHAR_LAST}};
        for (size_t k = 0; k < sizeof spared / sizeof *spared; k++) {
            char_range x = {lo > spared[k].lo ? lo : spared[k].lo,
                            hi < spared[k].hi ? hi : spared[k].hi};
            if (x.lo <= x.hi)
                VEC_PUSH(&plain, x);
        }
    }
    if (plain.n)
        VEC_PUSH(&way, part_set(f, plain.at, plain.n, false));
    const part *p = part_list(f, PART_ALT, way.at, way.n);
    VEC_FREE(&plain);
    VEC_FREE(&way);
    return p;
}

static const char_range digit[] = {{'0', '9'}};
static const char_range word[] = {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
static const char_range space[] = {
    {9, 13},          {' ', ' '},       {0xa0, 0xa0},     {0x1680, 0x1680}, {0x2000, 0x200a},
    {0x2028, 0x2029}, {0x202f, 0x202f}, {0x205f, 0x205f}, {0x3000, 0x3000}, {0xfeff, 0xfeff}};
static const char_range line_end[] = {{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}};

static const struct {
    char letter;
    const char_range *range;
    size_t n;
} classes[] = {{'d', digit, 1}, {'w', word, 4}, {'s', space, 10}};

/* Adds \d and its like to `to`; false if c is no class. */
static bool put_class(form *f, int c, range_vec *to)
{
    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++) {
        bool invert = c == classes[i].letter - 'a' + 'A';
        if (c != classes[i].letter && !invert)
            continue;
        const part *set = part_set(f, classes[i].range, classes[i].n, invert);
        for (size_t k = 0; k < set->n; k++)
            VEC_PUSH(to, set->range[k]);
        return true;
    }
    return false;
}

static int hex_digit(int c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

static bool read_hex(reader *r, int digits, uint32_t *out)
{
    uint32_t x = 0;
    for (int i = 0; i < digits; i++) {
        int d = hex_digit(peek(r));
        if (d < 0)
            return false;
        x = x << 4 | (uint32_t)d;
        r->at++;
    }
    *out = x;
    return true;
}

static weft_status read_char(reader *r, uint32_t *out)
{
    size_t n = utf8_decode((str){r->text.p + r->at, r->text.n - r->at}, out);
    if (n == 0)
        return FAIL(r, W1801, r->at, "the expression is not UTF-8 here");
    r->at += n;
    return WEFT_OK;
}

/* Behind a backslash: one character. */
static weft_status read_escape(reader *r, uint32_t *out)
{
    static const char from[] = "nrtfv0", to[] = "\n\r\t\f\v";
    size_t start = r->at - 1;
    int c = peek(r);
    if (c < 0)
        return FAIL(r, W1801, start, "a backslash with nothing behind it");
    r->at++;
    const char *k = c > 0 ? strchr(from, c) : NULL;
    if (k && !(c == '0' && peek(r) >= '0' && peek(r) <= '9')) {
        *out = c == '0' ? 0 : (unsigned char)to[k - from];
        return WEFT_OK;
    }
    if (c == 'x' || c == 'u') {
        bool braces = c == 'u' && eat(r, "{");
        uint32_t x = 0, low;
        bool ok = true;
        if (braces) {
            int n = 0;
            for (int d; n < 6 && (d = hex_digit(peek(r))) >= 0; n++, r->at++)
                x = x << 4 | (uint32_t)d;
            ok = n > 0 && eat(r, "}");
        } else {
            ok = read_hex(r, c == 'x' ? 2 : 4, &x);
            if (ok && x >= 0xd800 && x < 0xdc00 && eat(r, "\\u") && read_hex(r, 4, &low) &&
                low >= 0xdc00 && low < 0xe000)
                x = 0x10000 + ((x - 0xd800) << 10 | (low - 0xdc00));
        }
        if (!ok || x > CHAR_LAST || (x >= 0xd800 && x < 0xe000))
            return FAIL(r, W1801, start, "\\%c is not followed by the number of a character", c);
        *out = x;
        return WEFT_OK;
    }
    bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (letter)
        return FAIL(r, W1802, start, "\\%c is not supported in a regular expression", c);
    r->at--;
    return read_char(r, out);
}

/* Behind [. */
static weft_status read_set(reader *r, const part **out)
{
    size_t start = r->at - 1;
    bool invert = eat(r, "^");
    range_vec set = {0};
    weft_status st = WEFT_OK;
    while (st == WEFT_OK && peek(r) != ']') {
        uint32_t lo = 0, hi;
        size_t from = r->at;
        if (!more(r)) {
            st = FAIL(r, W1801, start, "[ without its ]");
            break;
        }
        if (eat(r, "\\")) {
            if (put_class(r->f, peek(r), &set)) {
                r->at++;
                continue;
            }
            st = eat(r, "b") ? (lo = '\b', WEFT_OK) : read_escape(r, &lo);
        } else {
            st = read_char(r, &lo);
        }
        hi = lo;
        if (st == WEFT_OK && peek(r) == '-' && r->at + 1 < r->text.n &&
            r->text.p[r->at + 1] != ']') {
            r->at++;
            st = eat(r, "\\") ? read_escape(r, &hi) : read_char(r, &hi);
            if (st == WEFT_OK && hi < lo)
                st = FAIL(r, W1801, from, "a range of characters that ends before it begins");
        }
        if (st == WEFT_OK)
            VEC_PUSH(&set, ((char_range){lo, hi}));
    }
    if (st == WEFT_OK) {
        r->at++;
        *out = chars(r, set.at, set.n, invert);
    }
    VEC_FREE(&set);
    return st;
}

/* ---- the expression ---- */

static weft_status read_alternatives(reader *r, bool top, const part **out);

static weft_status read_group(reader *r, const part **out)
{
    size_t start = r->at - 1;
    if (eat(r, "?")) {
        bool named = peek(r) == '<' && r->at + 1 < r->text.n && r->text.p[r->at + 1] != '=' &&
                     r->text.p[r->at + 1] != '!';
        if (named) {
            while (more(r) && peek(r) != '>')
                r->at++;
            if (!eat(r, ">"))
                return FAIL(r, W1801, start, "(?< without its >");
        } else if (!eat(r, ":")) {
            r->at++;
            return FAIL(r, W1802, start,
                        "looking around and flags, (?" STR_FMT
                        ", are not supported in a regular expression",
                        STR_ARG(((str){r->text.p + start + 2, more(r) ? 1 : 0})));
        }
    }
    if (++r->depth > r->src->depth_max)
        return FAIL(r, W1803, start, "groups nest more than %d deep", r->src->depth_max);
    WEFT_TRY(read_alternatives(r, false, out));
    r->depth--;
    if (!eat(r, ")"))
        return FAIL(r, W1801, start, "( without its )");
    return WEFT_OK;
}

static weft_status read_atom(reader *r, const part **out)
{
    uint32_t c;
    range_vec set = {0};
    size_t start = r->at;
    if (eat(r, "("))
        return read_group(r, out);
    if (eat(r, "["))
        return read_set(r, out);
    if (eat(r, ".")) {
        *out = chars(r, line_end, 3, true);
        return WEFT_OK;
    }
    if (peek(r) == '^' || peek(r) == '$') {
        weft_status st =
            FAIL(r, W1802, start, "%c is only supported at the ends of the expression", peek(r));
        return st;
    }
    if (peek(r) == '*' || peek(r) == '+' || peek(r) == '?')
        return FAIL(r, W1801, start, "%c has nothing to repeat", peek(r));
    if (eat(r, "\\")) {
        if (put_class(r->f, peek(r), &set)) {
            r->at++;
            *out = chars(r, set.at, set.n, false);
            VEC_FREE(&set);
            return WEFT_OK;
        }
        WEFT_TRY(read_escape(r, &c));
    } else {
        WEFT_TRY(read_char(r, &c));
    }
    *out = chars(r, &(char_range){c, c}, 1, false);
    return WEFT_OK;
}

static bool read_count(reader *r, int64_t *out)
{
    int64_t x = 0;
    size_t from = r->at;
    for (int c; (c = peek(r)) >= '0' && c <= '9'; r->at++)
        x = x > COUNT_MAX ? x : x * 10 + (c - '0');
    *out = x;
    return r->at > from;
}

/* What stands behind an atom; {0, 0} with found false: nothing does. */
static weft_status read_quantifier(reader *r, bool *found, int64_t *min, int64_t *max)
{
    size_t start = r->at;
    *found = true;
    *min = 0;
    *max = REPEAT_NO_END;
    if (eat(r, "+")) {
        *min = 1;
    } else if (eat(r, "?")) {
        *max = 1;
    } else if (!eat(r, "*")) {
        *found = eat(r, "{");
        if (!*found)
            return WEFT_OK;
        bool ok = read_count(r, min);
        *max = *min;
        if (ok && eat(r, ","))
            *max = peek(r) == '}' ? REPEAT_NO_END : (ok = read_count(r, max), *max);
        if (!ok || !eat(r, "}"))
            return FAIL(r, W1801, start, "{ is not followed by a count and }; \\{ is a brace");
        if (*max != REPEAT_NO_END && *max < *min)
            return FAIL(r, W1801, start, "a count that ends before it begins");
        if (*min > COUNT_MAX || *max > COUNT_MAX)
            return FAIL(r, W1803, start, "a count of more than %d", COUNT_MAX);
    }
    eat(r, "?"); /* lazy: the same texts match */
    if (peek(r) == '+')
        return FAIL(r, W1802, start, "possessive quantifiers are not supported");
    return WEFT_OK;
}

static weft_status read_sequence(reader *r, bool top, const part **out)
{
    part_vec list = {0};
    weft_status st = WEFT_OK;
    bool begins = top && eat(r, "^"), ends = false;
    while (st == WEFT_OK && more(r) && peek(r) != '|' && peek(r) != ')') {
        const part *p = NULL;
        bool found;
        int64_t min, max;
        if (top && peek(r) == '$' && (r->at + 1 == r->text.n || r->text.p[r->at + 1] == '|')) {
            r->at++;
            ends = true;
            break;
        }
        st = read_atom(r, &p);
        if (st == WEFT_OK)
            st = read_quantifier(r, &found, &min, &max);
        if (st == WEFT_OK)
            VEC_PUSH(&list, found ? part_repeat(r->f, p, min, max) : p);
        if (form_full(r->f) && st == WEFT_OK)
            st = FAIL(r, W1803, r->at, "the expression has too many parts");
    }
    if (st == WEFT_OK) {
        const part *p = part_list(r->f, PART_SEQ, list.at, list.n);
        if (top && r->src->search && !(begins && ends)) {
            const part *any = part_repeat(r->f, chars(r, NULL, 0, true), 0, REPEAT_NO_END);
            p = begins ? PART_SEQ_OF(r->f, p, any)
                : ends ? PART_SEQ_OF(r->f, any, p)
                       : PART_SEQ_OF(r->f, any, p, any);
        }
        *out = p;
    }
    VEC_FREE(&list);
    return st;
}

static weft_status read_alternatives(reader *r, bool top, const part **out)
{
    part_vec list = {0};
    weft_status st = WEFT_OK;
    do {
        const part *p = NULL;
        st = read_sequence(r, top, &p);
        if (st == WEFT_OK)
            VEC_PUSH(&list, p);
    } while (st == WEFT_OK && eat(r, "|"));
    if (st == WEFT_OK)
        *out = part_list(r->f, PART_ALT, list.at, list.n);
    VEC_FREE(&list);
    return st;
}

weft_status regex_part(weft_diag *dg, form *f, const regex_source *src, const part **out_p)
{
    reader r = {.dg = dg, .f = f, .src = src, .text = src->text};
    const part *p;
    WEFT_TRY(read_alternatives(&r, true, &p));
    if (more(&r))
        return FAIL(&r, W1801, r.at, ") without its (");
    *out_p = p;
    return WEFT_OK;
}
