/* jinja_lex.c - the two layers of a template: text between tags, and tokens inside them.
 *
 * White space follows Jinja's lexer with trim_blocks and lstrip_blocks on: a line end right after
 * %} or #} goes, blanks between the start of a line and {% or {# go, a - beside a bracket eats all
 * white space on its side and a + keeps it. */
#include "runtime/text/jinja_lex.h"

#include "runtime/base/utf8.h"
#include "runtime/text/jinja_chars.h"
#include <stdlib.h>

typedef struct {
    weft_diag *dg;
    arena *a;
    const source *src;
    str s;
    size_t at;
    bool line_start; /* what came before `at` ended a line */
    jtok_list *out;
    VEC(uint32_t) open; /* tokens that are brackets and wait for their match */
} lexer;

const char *jtok_text(jtok_kind kind)
{
    static const char *const text[] = {
#define JTOK(name, text) text,
#include "runtime/text/jinja_tokens.def"
#undef JTOK
    };
    return text[kind];
}

str jinja_normalize(arena *a, str text)
{
    char *to = arena_alloc(a, text.n + 1);
    size_t n = 0;
    for (size_t i = 0; i < text.n; i++) {
        bool cr = text.p[i] == '\r';
        to[n++] = cr ? '\n' : text.p[i];
        if (cr && i + 1 < text.n && text.p[i + 1] == '\n')
            i++;
    }
    if (n > 0 && to[n - 1] == '\n')
        n--;
    return (str){to, n};
}

static weft_status fail(const lexer *x, size_t begin, size_t end, const char *what)
{
    weft_loc loc = {x->src, (uint32_t)begin, (uint32_t)end};
    return weft_fail(x->dg, W1301, loc, "%s", what);
}

static jtok *push(lexer *x, jtok_kind kind, size_t begin, size_t end)
{
    VEC_PUSH(x->out, ((jtok){.kind = kind, .begin = (uint32_t)begin, .end = (uint32_t)end}));
    return &x->out->at[x->out->n - 1];
}

static bool looking_at(const lexer *x, size_t i, const char *z)
{
    size_t n = strlen(z);
    return x->s.n - i >= n && memcmp(x->s.p + i, z, n) == 0;
}

/* ---- text ---- */

/* The text in [begin, tag), less what the tag with this sign takes from its end. */
static void push_text(lexer *x, size_t begin, size_t tag, char sign, bool is_var)
{
    size_t end = tag;
    str before = {x->s.p + begin, tag - begin};
    if (sign == '-') {
        end = begin + char_trim_space(before, before.n);
    } else if (sign != '+' && !is_var) {
        size_t line = tag;
        while (line > begin && x->s.p[line - 1] != '\n')
            line--;
        if ((line > begin || x->line_start) && char_skip_space((str){x->s.p, tag}, line) == tag)
            end = line;
    }
    if (end > begin)
        push(x, JTOK_TEXT, begin, end)->as.s = (str){x->s.p + begin, end - begin};
}

/* Move past a closing bracket of two characters, which its sign may precede. */
static void close_tag(lexer *x, char sign, bool trims_line)
{
    x->at += sign ? 3 : 2;
    if (sign == '-')
        x->at = char_skip_space(x->s, x->at);
    else if (sign == 0 && trims_line && x->at < x->s.n && x->s.p[x->at] == '\n')
        x->at++;
    x->line_start = x->s.p[x->at - 1] == '\n';
}

static char sign_at(const lexer *x, size_t i)
{
    char c = i < x->s.n ? x->s.p[i] : 0;
    return c == '-' || c == '+' ? c : 0;
}

static weft_status lex_comment(lexer *x, size_t open)
{
    size_t begin = x->at;
    for (size_t i = begin; i + 1 < x->s.n; i++) {
        if (x->s.p[i] != '#' || x->s.p[i + 1] != '}')
            continue;
        char sign = i > begin ? sign_at(x, i - 1) : 0;
        x->at = i - (sign != 0);
        close_tag(x, sign, true);
        return WEFT_OK;
    }
    return fail(x, open, open + 2, "this comment does not end; #} ends it");
}

/* Whether the tag at open is just that word, and where its end begins, at the sign if there is one. */
static bool tag_word(const lexer *x, size_t open, const char *word, size_t *out_close)
{
    size_t i = open + 2 + (sign_at(x, open + 2) != 0);
    i = char_skip_space(x->s, i);
    if (!looking_at(x, i, word))
        return false;
    i = char_skip_space(x->s, i + strlen(word));
    *out_close = i;
    i += sign_at(x, i) != 0;
    return looking_at(x, i, "%}");
}

static weft_status lex_raw(lexer *x, size_t open, size_t close)
{
    x->at = close;
    close_tag(x, sign_at(x, close), false);
    size_t begin = x->at;
    for (size_t i = begin; i + 1 < x->s.n; i++) {
        if (x->s.p[i] != '{' || x->s.p[i + 1] != '%' || !tag_word(x, i, "endraw", &close))
            continue;
        push_text(x, begin, i, sign_at(x, i + 2), false);
        x->at = close;
        close_tag(x, sign_at(x, close), true);
        return WEFT_OK;
    }
    return fail(x, open, open + 2, "raw text does not end; {% endraw %} ends it");
}

/* ---- tokens inside a tag ---- */

static int hex_of(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* One escape of a string, from its backslash at i < end; writes its bytes and returns its length.
 * As in Python, what is no escape stands for itself. */
static size_t escape(str s, size_t i, size_t end, char *to, size_t *n)
{
    static const char letters[] = "\\'\"abfnrtv", codes[] = "\\'\"\a\b\f\n\r\t\v";
    char c = i + 1 < end ? s.p[i + 1] : 0;
    const char *letter = c ? strchr(letters, c) : NULL;
    uint32_t cp = 0;
    size_t digits = 0, want = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
    if (letter) {
        to[(*n)++] = codes[letter - letters];
        return 2;
    }
    if (c == '\n')
        return 2;
    if (c >= '0' && c <= '7') {
        for (; digits < 3 && i + 1 + digits < end; digits++) {
            char d = s.p[i + 1 + digits];
            if (d < '0' || d > '7')
                break;
            cp = cp * 8 + (uint32_t)(d - '0');
        }
        *n += char_put(to + *n, cp);
        return 1 + digits;
    }
    for (; want && digits < want && i + 2 + digits < end; digits++) {
        int d = hex_of(s.p[i + 2 + digits]);
        if (d < 0)
            break;
        cp = cp * 16 + (uint32_t)d;
    }
    if (want && digits == want) {
        *n += char_put(to + *n, cp);
        return 2 + want;
    }
    to[(*n)++] = '\\';
    return 1;
}

static weft_status lex_string(lexer *x)
{
    size_t begin = x->at, i = begin + 1, n = 0;
    char quote = x->s.p[begin];
    bool plain = true;
    while (i < x->s.n && x->s.p[i] != quote) {
        plain = plain && x->s.p[i] != '\\';
        i += x->s.p[i] == '\\' ? 2 : 1;
    }
    if (i >= x->s.n)
        return fail(x, begin, begin + 1, "this string does not end");
    x->at = i + 1;
    jtok *t = push(x, JTOK_STR, begin, i + 1);
    t->as.s = (str){x->s.p + begin + 1, i - begin - 1};
    if (plain)
        return WEFT_OK;
    char *to = arena_alloc(x->a, t->as.s.n + 4); /* no escape is longer than what it stands for */
    for (size_t k = begin + 1; k < i;) {
        if (x->s.p[k] == '\\')
            k += escape(x->s, k, i, to, &n);
        else
            to[n++] = x->s.p[k++];
    }
    t->as.s = (str){to, n};
    return WEFT_OK;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Digits with single underscores between them; the position after them. */
static size_t skip_digits(const lexer *x, size_t i)
{
    while (i < x->s.n &&
           (is_digit(x->s.p[i]) || (x->s.p[i] == '_' && i + 1 < x->s.n && is_digit(x->s.p[i + 1]))))
        i++;
    return i;
}

static weft_status lex_radix(lexer *x, size_t begin, int radix)
{
    uint64_t v = 0;
    size_t i = begin + 2;
    for (; i < x->s.n; i++) {
        int d = hex_of(x->s.p[i]);
        if (x->s.p[i] == '_')
            continue;
        if (d < 0 || d >= radix)
            break;
        v = v * (uint64_t)radix + (uint64_t)d;
        if (v > INT64_MAX)
            return fail(x, begin, i + 1, "this integer does not fit into 64 bits");
    }
    if (i == begin + 2)
        return fail(x, begin, i, "digits are missing");
    push(x, JTOK_INT, begin, i)->as.i = (int64_t)v;
    x->at = i;
    return WEFT_OK;
}

static weft_status lex_number(lexer *x)
{
    size_t begin = x->at, i = skip_digits(x, begin), n = 0;
    char next = begin + 1 < x->s.n ? (char)(x->s.p[begin + 1] | 0x20) : 0;
    if (x->s.p[begin] == '0' && (next == 'x' || next == 'o' || next == 'b'))
        return lex_radix(x, begin, next == 'x' ? 16 : next == 'o' ? 8 : 2);
    bool is_float = false;
    bool after_dot = x->out->n > 0 && x->out->at[x->out->n - 1].kind == JTOK_DOT; /* a.0.1 */
    if (!after_dot && i + 1 < x->s.n && x->s.p[i] == '.' && is_digit(x->s.p[i + 1])) {
        is_float = true;
        i = skip_digits(x, i + 1);
    }
    if (!after_dot && i < x->s.n && (x->s.p[i] | 0x20) == 'e') {
        size_t e = i + 1 + (sign_at(x, i + 1) != 0);
        if (e < x->s.n && is_digit(x->s.p[e])) {
            is_float = true;
            i = skip_digits(x, e);
        }
    }
    char *digits = arena_alloc(x->a, i - begin + 1);
    for (size_t k = begin; k < i; k++)
        if (x->s.p[k] != '_')
            digits[n++] = x->s.p[k];
    x->at = i;
    jtok *t = push(x, is_float ? JTOK_FLOAT : JTOK_INT, begin, i);
    if (is_float) {
        t->as.f = strtod(digits, NULL);
        return WEFT_OK;
    }
    for (size_t k = 0; k < n; k++)
        if (__builtin_mul_overflow(t->as.i, 10, &t->as.i) ||
            __builtin_add_overflow(t->as.i, digits[k] - '0', &t->as.i))
            return fail(x, begin, i, "this integer does not fit into 64 bits");
    return WEFT_OK;
}

/* Brackets match inside a tag, which does not end before they do. */
static weft_status match_bracket(lexer *x, jtok_kind kind)
{
    if (kind == JTOK_LPAREN || kind == JTOK_LBRACKET || kind == JTOK_LBRACE)
        VEC_PUSH(&x->open, (uint32_t)x->out->n - 1);
    if (kind != JTOK_RPAREN && kind != JTOK_RBRACKET && kind != JTOK_RBRACE)
        return WEFT_OK;
    const jtok *t = &x->out->at[x->out->n - 1];
    if (x->open.n == 0)
        return fail(x, t->begin, t->end, "this bracket was not opened");
    const jtok *open = &x->out->at[x->open.at[--x->open.n]];
    if (open->kind + 1 == kind) /* a row of the table follows its match */
        return WEFT_OK;
    weft_status st = fail(x, t->begin, t->end, "this bracket closes one of another kind");
    weft_note_at(x->dg, (weft_loc){x->src, open->begin, open->end}, "which was opened here");
    return st;
}

static weft_status lex_operator(lexer *x)
{
    for (int k = JTOK_FLOORDIV; k < JTOK_COUNT; k++) {
        const char *text = jtok_text((jtok_kind)k);
        if (!looking_at(x, x->at, text))
            continue;
        push(x, (jtok_kind)k, x->at, x->at + strlen(text));
        x->at += strlen(text);
        return match_bracket(x, (jtok_kind)k);
    }
    uint32_t cp;
    size_t n = char_at(x->s, x->at, &cp);
    return fail(x, x->at, x->at + n, "this character has no place inside a tag");
}

static weft_status lex_token(lexer *x)
{
    uint32_t cp;
    size_t n = char_at(x->s, x->at, &cp), i = x->at;
    if (cp == '"' || cp == '\'')
        return lex_string(x);
    if (cp < 0x80 && is_digit((char)cp))
        return lex_number(x);
    if (!char_is(cp, CHAR_WORD))
        return lex_operator(x);
    for (; i < x->s.n && char_is(cp, CHAR_WORD); i += n, n = i < x->s.n ? char_at(x->s, i, &cp) : 0)
        ;
    push(x, JTOK_NAME, x->at, i)->as.s = (str){x->s.p + x->at, i - x->at};
    x->at = i;
    return WEFT_OK;
}

/* From after {{ or {% to after its end, which counts only outside brackets. */
static weft_status lex_tag(lexer *x, size_t open, bool is_var)
{
    const char *close = is_var ? "}}" : "%}";
    push(x, is_var ? JTOK_VAR_OPEN : JTOK_TAG_OPEN, open, x->at);
    for (;;) {
        x->at = char_skip_space(x->s, x->at);
        if (x->at == x->s.n)
            return fail(x, open, open + 2,
                        is_var ? "this expression does not end; }} ends it"
                               : "this tag does not end; %} ends it");
        char sign = sign_at(x, x->at);
        sign = is_var && sign == '+' ? 0 : sign;
        size_t bracket = x->at + (sign != 0);
        if (x->open.n == 0 && looking_at(x, bracket, close)) {
            push(x, is_var ? JTOK_VAR_CLOSE : JTOK_TAG_CLOSE, x->at, bracket + 2);
            close_tag(x, sign, !is_var);
            return WEFT_OK;
        }
        WEFT_TRY(lex_token(x));
    }
}

static weft_status check_utf8(const lexer *x)
{
    uint32_t cp;
    for (size_t i = 0, n; i < x->s.n; i += n)
        if ((n = utf8_decode((str){x->s.p + i, x->s.n - i}, &cp)) == 0)
            return fail(x, i, i + 1, "this byte is not part of UTF-8 text");
    return WEFT_OK;
}

static weft_status lex_all(lexer *x)
{
    WEFT_TRY(check_utf8(x));
    while (x->at < x->s.n) {
        size_t open = x->at, close;
        while (open + 1 < x->s.n &&
               !(x->s.p[open] == '{' && x->s.p[open + 1] && strchr("{%#", x->s.p[open + 1])))
            open++;
        if (open + 1 >= x->s.n) {
            push(x, JTOK_TEXT, x->at, x->s.n)->as.s = (str){x->s.p + x->at, x->s.n - x->at};
            break;
        }
        char kind = x->s.p[open + 1], sign = sign_at(x, open + 2);
        push_text(x, x->at, open, sign, kind == '{');
        x->at = open + (sign ? 3 : 2);
        if (kind == '#')
            WEFT_TRY(lex_comment(x, open));
        else if (kind == '%' && tag_word(x, open, "raw", &close))
            WEFT_TRY(lex_raw(x, open, close));
        else
            WEFT_TRY(lex_tag(x, open, kind == '{'));
    }
    push(x, JTOK_END, x->s.n, x->s.n);
    return WEFT_OK;
}

weft_status jinja_lex(weft_diag *dg, arena *a, const source *src, jtok_list *out_toks)
{
    lexer x = {.dg = dg, .a = a, .src = src, .s = src->text, .line_start = true, .out = out_toks};
    weft_status st = lex_all(&x);
    VEC_FREE(&x.open);
    return st;
}
