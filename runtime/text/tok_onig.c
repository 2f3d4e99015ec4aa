/* tok_onig.c - a pattern in Oniguruma's Ruby syntax, rewritten for PCRE2.
 *
 * Most of the two languages is the same. What differs and is rewritten here:
 *   \s \w \b \h \v   other sets of characters       written out
 *   \uXXXX           not in PCRE2                   \x{XXXX}
 *   \p{Han}          script extensions in PCRE2     \p{sc:Han}
 *   (?m)             dot matches newline            (?s); ^ and $ are always those of a line
 *   a{1,2}+ a{2}?    not possessive, not lazy       (?:a{1,2})+ (?:a{2})?
 *   [a[bc]&&[^d]]    nested and intersected         tok_onig_class.c
 * What is left is refused by name. Reference: Oniguruma's doc/RE, pcre2pattern(3). */
#include "runtime/text/tok_onig.h"

#include "runtime/base/vec.h"
#include "runtime/text/tok_unicode.h"

typedef struct {
    onig_text x;
    strbuf *out;
    size_t atom; /* where in out the last thing begins that can be repeated; SIZE_MAX: none */
    VEC(size_t) groups; /* where each open one begins */
} onig;

weft_status onig_refuse(onig_text *x, const char *what)
{
    return weft_fail(x->dg, W1204, WEFT_NOWHERE,
                     "pattern '" STR_FMT "' has %s at byte %zu, which is not supported",
                     STR_ARG(x->in), what, x->i);
}

static void insert(strbuf *out, size_t at, const char *text)
{
    size_t n = strlen(text), tail = out->n - at;
    strbuf_fill(out, ' ', n);
    memmove(out->p + at + n, out->p + at, tail);
    memcpy(out->p + at, text, n);
}

static void put_boundary(strbuf *out, bool at_edge)
{
    const char *w = onig_word_items;
    if (at_edge)
        strbuf_add(out, "(?:(?<=[%s])(?![%s])|(?<![%s])(?=[%s]))", w, w, w, w);
    else
        strbuf_add(out, "(?:(?<=[%s])(?=[%s])|(?<![%s])(?![%s]))", w, w, w, w);
}

static weft_status escape(onig *o)
{
    onig_set set;
    o->x.i++; /* the backslash */
    o->atom = o->out->n;
    WEFT_TRY(onig_set_escape(&o->x, &set));
    if (set.items) {
        strbuf_add(o->out, set.negated ? "[^%s]" : "[%s]", set.items);
        return WEFT_OK;
    }
    int c = onig_peek(&o->x, 0);
    if (c == 'b' || c == 'B') {
        put_boundary(o->out, c == 'b');
        o->x.i++;
    } else if (c > 0 && strchr("AzZGKRXN", c)) { /* the same in both */
        strbuf_add(o->out, "\\%c", c);
        o->x.i++;
    } else if (c == 'O') {
        strbuf_add(o->out, "(?s:.)");
        o->x.i++;
    } else if (c == 'k' || c == 'g' || (c >= '1' && c <= '9')) {
        strbuf_add(o->out, "\\%c", c);
        o->x.i++;
        while (c <= '9' && onig_peek(&o->x, 0) >= '0' && onig_peek(&o->x, 0) <= '9')
            strbuf_putc(o->out, o->x.in.p[o->x.i++]);
    } else {
        return onig_char_escape(&o->x, o->out);
    }
    return WEFT_OK;
}

/* After "(?": option letters up to ':' or ')'. */
static weft_status options(onig *o)
{
    for (;; o->x.i++) {
        int c = onig_peek(&o->x, 0);
        if (c == ':' || c == ')')
            return WEFT_OK;
        if (c == 'i' || c == '-')
            strbuf_putc(o->out, (char)c);
        else if (c == 'm')
            strbuf_putc(o->out, 's');
        else
            return onig_refuse(&o->x, "an option other than i or m");
    }
}

static weft_status group(onig *o)
{
    static const char *const kinds[] = {":", "=", "!", ">", "<=", "<!"};
    if (o->groups.n >= ONIG_DEPTH_MAX)
        return onig_refuse(&o->x, "groups nested too deeply");
    if (onig_sees(&o->x, "(*"))
        return onig_refuse(&o->x, "a (*VERB)");
    VEC_PUSH(&o->groups, o->out->n);
    o->atom = SIZE_MAX;
    o->x.i++;
    strbuf_putc(o->out, '(');
    if (onig_peek(&o->x, 0) != '?')
        return WEFT_OK;
    o->x.i++;
    strbuf_putc(o->out, '?');
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        if (onig_sees(&o->x, kinds[k])) {
            strbuf_add(o->out, "%s", kinds[k]);
            o->x.i += strlen(kinds[k]);
            return WEFT_OK;
        }
    int c = onig_peek(&o->x, 0);
    if (c == '<') { /* a name */
        do
            strbuf_putc(o->out, o->x.in.p[o->x.i++]);
        while (o->x.i < o->x.in.n && o->x.in.p[o->x.i - 1] != '>');
        return WEFT_OK;
    }
    if (c != 'i' && c != 'm' && c != '-')
        return onig_refuse(&o->x, c == '~' ? "an absent operator (?~" : "a group of this kind");
    WEFT_TRY(options(o));
    if (onig_peek(&o->x, 0) == ':') {
        strbuf_putc(o->out, ':');
        o->x.i++;
    }
    return WEFT_OK;
}

static bool number(const onig_text *x, size_t *at)
{
    size_t begin = *at;
    while (*at < x->in.n && x->in.p[*at] >= '0' && x->in.p[*at] <= '9')
        ++*at;
    return *at > begin;
}

/* At a '{': an interval and what follows it, or a plain brace. */
static void interval(onig *o)
{
    size_t at = o->x.i + 1;
    bool low = number(&o->x, &at), comma = at < o->x.in.n && o->x.in.p[at] == ',', high = false;
    if (comma) {
        at++;
        high = number(&o->x, &at);
    }
    bool closed = at < o->x.in.n && o->x.in.p[at] == '}';
    if (!closed || !(low || high) || o->atom == SIZE_MAX) {
        o->atom = o->out->n;
        strbuf_put(o->out, STR("\\{"));
        o->x.i++;
        return;
    }
    strbuf_put(o->out, low ? STR("{") : STR("{0"));
    strbuf_put(o->out, (str){o->x.in.p + o->x.i + 1, at - o->x.i});
    o->x.i = at + 1;
    int next = onig_peek(&o->x, 0);
    if (next == '?' && comma) {
        strbuf_putc(o->out, '?');
        o->x.i++;
    } else if (next == '+' || next == '?' || next == '*') {
        insert(o->out, o->atom, "(?:");
        strbuf_putc(o->out, ')');
    }
}

static weft_status one(onig *o)
{
    int c = onig_peek(&o->x, 0);
    switch (c) {
    case '\\':
        return escape(o);
    case '[':
        o->atom = o->out->n;
        o->x.i++;
        return onig_class(&o->x, o->out);
    case '(':
        return group(o);
    case ')':
        o->atom = SIZE_MAX;
        if (o->groups.n)
            o->atom = o->groups.at[--o->groups.n];
        break;
    case '{':
        interval(o);
        return WEFT_OK;
    case '|':
        o->atom = SIZE_MAX;
        break;
    case '*':
    case '+':
    case '?':
        break;
    default:
        o->atom = o->out->n;
    }
    size_t n = uni_len((char)c);
    strbuf_put(o->out, (str){o->x.in.p + o->x.i, n});
    o->x.i += n;
    return WEFT_OK;
}

weft_status tok_onig_translate(weft_diag *dg, str pattern, strbuf *out)
{
    size_t bad;
    onig o = {.x = {.dg = dg, .in = pattern}, .out = out, .atom = SIZE_MAX};
    if (!uni_check(pattern, &bad))
        return weft_fail(dg, W1204, WEFT_NOWHERE, "a pattern is not UTF-8 at byte %zu", bad);
    weft_status status = WEFT_OK;
    while (status == WEFT_OK && o.x.i < pattern.n)
        status = one(&o);
    VEC_FREE(&o.groups);
    return status;
}
