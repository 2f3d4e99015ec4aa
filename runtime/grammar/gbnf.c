/* gbnf.c - rules in the notation of llama.cpp.
 *
 *     root  ::= "yes" | "no" tail{1,3}     # a comment
 *     tail  ::= [ \t]+ [^\x00-\x1f]*
 *
 * "texts", [classes], . for any character, names of rules, (groups), |, and ? * + {m} {m,} {m,n} behind any of these. A rule
 * ends with its line; inside a group, and behind ::= or |, it goes on. `root` is where a text begins. */
#include "runtime/base/utf8.h"
#include "runtime/grammar/form.h"

typedef struct {
    weft_diag *dg;
    form *f;
    const source *src;
    str text;
    size_t at;
    int depth, depth_max;
} reader;

enum { CHAR_LAST = 0x10ffff, COUNT_MAX = 1 << 20, NAME_MAX_BYTES = 256 };

#define FAIL(r, code, from, ...) weft_fail((r)->dg, code, place(r, from), __VA_ARGS__)

static weft_loc place(const reader *r, size_t from)
{
    size_t to = r->at > from ? r->at : from + 1;
    return (weft_loc){r->src, (uint32_t)from, (uint32_t)to};
}

static int peek(const reader *r)
{
    return r->at < r->text.n ? (unsigned char)r->text.p[r->at] : -1;
}

static bool eat(reader *r, const char *z)
{
    size_t n = strlen(z);
    if (r->text.n - r->at < n || memcmp(r->text.p + r->at, z, n) != 0)
        return false;
    r->at += n;
    return true;
}

static void skip_space(reader *r, bool lines)
{
    for (int c;
         (c = peek(r)) == ' ' || c == '\t' || c == '#' || (lines && (c == '\n' || c == '\r'));) {
        r->at++;
        while (c == '#' && peek(r) >= 0 && peek(r) != '\n' && peek(r) != '\r')
            r->at++;
    }
}

static bool is_name(int c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_';
}

static str read_name(reader *r)
{
    size_t from = r->at;
    while (is_name(peek(r)))
        r->at++;
    return (str){r->text.p + from, r->at - from};
}

/* The rule of this name, which may be defined later. Names are few: a list is searched. */
static weft_status find_rule(reader *r, str name, size_t from, int32_t *out)
{
    for (size_t i = 0; i < r->f->rules.n; i++)
        if (str_eq(r->f->rules.at[i].name, name)) {
            *out = (int32_t)i;
            return WEFT_OK;
        }
    enum { RULES_MAX = 2000 };
    if (name.n > NAME_MAX_BYTES || r->f->rules.n >= RULES_MAX)
        return FAIL(r, W1803, from, "more than %d rules, or a name of more than %d bytes",
                    RULES_MAX, NAME_MAX_BYTES);
    *out = form_rule_add(r->f, name, place(r, from));
    return WEFT_OK;
}

static int hex_digit(int c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* A character of a text or class, which may be escaped. */
static weft_status read_char(reader *r, uint32_t *out)
{
    static const char from[] = "nrt\\\"[]-^", to[] = "\n\r\t\\\"[]-^";
    size_t start = r->at;
    if (!eat(r, "\\")) {
        size_t n = utf8_decode((str){r->text.p + r->at, r->text.n - r->at}, out);
        r->at += n;
        return n ? WEFT_OK : FAIL(r, W1801, start, "the text ends here, or is not UTF-8");
    }
    int c = peek(r), digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
    if (c >= 0)
        r->at++;
    const char *k = c > 0 ? strchr(from, c) : NULL;
    if (k) {
        *out = (unsigned char)to[k - from];
        return WEFT_OK;
    }
    uint64_t x = 0;
    bool ok = digits > 0;
    for (int i = 0; i < digits && ok; i++, r->at++) {
        int d = hex_digit(peek(r));
        ok = d >= 0;
        x = x << 4 | (uint64_t)(d & 15);
    }
    if (!ok || x > CHAR_LAST || (x >= 0xd800 && x < 0xe000))
        return FAIL(r, W1801, start,
                    "the escapes are \\n \\r \\t \\\\ \\\" \\[ \\] \\xNN \\uNNNN \\UNNNNNNNN");
    *out = (uint32_t)x;
    return WEFT_OK;
}

static void put_utf8(strbuf *b, uint32_t c)
{
    if (c < 0x80) {
        strbuf_putc(b, (char)c);
        return;
    }
    int more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    static const unsigned lead[] = {0, 0xc0, 0xe0, 0xf0};
    strbuf_putc(b, (char)(lead[more] | c >> (6 * more)));
    while (more-- > 0)
        strbuf_putc(b, (char)(0x80 | (c >> (6 * more) & 0x3f)));
}

/* Behind ". */
static weft_status read_text(reader *r, const part **out)
{
    size_t start = r->at - 1;
    strbuf b = {0};
    weft_status st = WEFT_OK;
    while (st == WEFT_OK && peek(r) != '"') {
        uint32_t c = 0;
        if (peek(r) < 0 || peek(r) == '\n')
            st = FAIL(r, W1801, start, "a text without its closing \"");
        else
            st = read_char(r, &c);
        if (st == WEFT_OK)
            put_utf8(&b, c);
    }
    if (st == WEFT_OK) {
        r->at++;
        *out = b.n ? part_bytes(r->f, strbuf_view(&b)) : part_empty(r->f);
    }
    strbuf_free(&b);
    return st;
}

/* Behind [. */
static weft_status read_set(reader *r, const part **out)
{
    size_t start = r->at - 1;
    range_vec set = {0};
    weft_status st = WEFT_OK;
    bool invert = eat(r, "^");
    while (st == WEFT_OK && peek(r) != ']') {
        uint32_t lo = 0, hi;
        if (peek(r) < 0 || peek(r) == '\n') {
            st = FAIL(r, W1801, start, "[ without its ]");
            break;
        }
        st = read_char(r, &lo);
        hi = lo;
        if (st == WEFT_OK && peek(r) == '-' && r->at + 1 < r->text.n &&
            r->text.p[r->at + 1] != ']') {
            r->at++;
            st = read_char(r, &hi);
            if (st == WEFT_OK && hi < lo)
                st = FAIL(r, W1801, start, "a range of characters that ends before it begins");
        }
        if (st == WEFT_OK)
            VEC_PUSH(&set, ((char_range){lo, hi}));
    }
    if (st == WEFT_OK) {
        r->at++;
        *out = part_set(r->f, set.at, set.n, invert);
    }
    VEC_FREE(&set);
    return st;
}

static weft_status read_alternatives(reader *r, const part **out);

static weft_status read_atom(reader *r, const part **out)
{
    size_t start = r->at;
    if (eat(r, "\""))
        return read_text(r, out);
    if (eat(r, "["))
        return read_set(r, out);
    if (eat(r, ".")) {
        *out = part_set(r->f, NULL, 0, true);
        return WEFT_OK;
    }
    if (eat(r, "(")) {
        if (++r->depth > r->depth_max)
            return FAIL(r, W1803, start, "groups nest more than %d deep", r->depth_max);
        WEFT_TRY(read_alternatives(r, out));
        skip_space(r, true);
        r->depth--;
        return eat(r, ")") ? WEFT_OK : FAIL(r, W1801, start, "( without its )");
    }
    str name = read_name(r);
    int32_t rule;
    if (name.n == 0) {
        if (peek(r) == '<' || peek(r) == '!')
            return FAIL(r, W1802, start, "tokens by name or number are not supported");
        return FAIL(r, W1801, start, "expected a text, a class, a rule or a group");
    }
    WEFT_TRY(find_rule(r, name, start, &rule));
    *out = part_rule(r->f, rule);
    return WEFT_OK;
}

static bool read_count(reader *r, int64_t *out)
{
    size_t from = r->at;
    *out = 0;
    for (int c; (c = peek(r)) >= '0' && c <= '9'; r->at++)
        *out = *out > COUNT_MAX ? *out : *out * 10 + (c - '0');
    return r->at > from;
}

static weft_status read_repeated(reader *r, const part **out)
{
    const part *p;
    WEFT_TRY(read_atom(r, &p));
    for (;;) {
        size_t start = r->at;
        int64_t min = 0, max = REPEAT_NO_END;
        if (eat(r, "+")) {
            min = 1;
        } else if (eat(r, "?")) {
            max = 1;
        } else if (eat(r, "{")) {
            bool ok = read_count(r, &min);
            max = min;
            if (eat(r, ",") && !read_count(r, &max))
                max = REPEAT_NO_END;
            if (!ok || !eat(r, "}") || (max != REPEAT_NO_END && max < min))
                return FAIL(r, W1801, start, "counts are {m}, {m,} or {m,n}");
            if (min > COUNT_MAX || max > COUNT_MAX)
                return FAIL(r, W1803, start, "a count of more than %d", COUNT_MAX);
        } else if (!eat(r, "*")) {
            break;
        }
        if (++r->f->n_part > r->f->parts_max)
            return FAIL(r, W1803, start, "the grammar has too many parts");
        p = part_repeat(r->f, p, min, max);
    }
    *out = p;
    return WEFT_OK;
}

static bool sequence_ends(reader *r)
{
    skip_space(r, r->depth > 0);
    int c = peek(r);
    return c < 0 || c == '|' || c == ')' || c == '\n' || c == '\r';
}

static weft_status read_sequence(reader *r, const part **out)
{
    part_vec list = {0};
    weft_status st = WEFT_OK;
    while (st == WEFT_OK && !sequence_ends(r)) {
        const part *p = NULL;
        st = read_repeated(r, &p);
        if (st == WEFT_OK)
            VEC_PUSH(&list, p);
        if (st == WEFT_OK && form_full(r->f))
            st = FAIL(r, W1803, r->at, "the grammar has too many parts");
    }
    if (st == WEFT_OK)
        *out = part_list(r->f, PART_SEQ, list.at, list.n);
    VEC_FREE(&list);
    return st;
}

static weft_status read_alternatives(reader *r, const part **out)
{
    part_vec list = {0};
    weft_status st;
    do {
        const part *p = NULL;
        skip_space(r, true);
        st = read_sequence(r, &p);
        if (st == WEFT_OK)
            VEC_PUSH(&list, p);
    } while (st == WEFT_OK && eat(r, "|"));
    if (st == WEFT_OK)
        *out = part_list(r->f, PART_ALT, list.at, list.n);
    VEC_FREE(&list);
    return st;
}

static weft_status read_rule(reader *r)
{
    size_t start = r->at;
    str name = read_name(r);
    int32_t rule;
    const part *body;
    skip_space(r, false);
    if (name.n == 0 || !eat(r, "::="))
        return FAIL(r, W1801, start, "expected a rule: name ::= ...");
    WEFT_TRY(find_rule(r, name, start, &rule));
    if (r->f->rules.at[rule].body)
        return FAIL(r, W1801, start, "rule `" STR_FMT "` is defined twice", STR_ARG(name));
    WEFT_TRY(read_alternatives(r, &body));
    r->f->rules.at[rule].body = body;
    int c = peek(r);
    if (c >= 0 && c != '\n' && c != '\r')
        return FAIL(r, W1801, r->at, "`%c` is not expected here", c >= 32 && c < 127 ? c : '?');
    return WEFT_OK;
}

weft_status gbnf_form(weft_diag *dg, form *f, const source *src, int depth_max)
{
    reader r = {.dg = dg, .f = f, .src = src, .text = src->text, .depth_max = depth_max};
    for (skip_space(&r, true); peek(&r) >= 0; skip_space(&r, true))
        WEFT_TRY(read_rule(&r));
    f->root = -1;
    for (size_t i = 0; i < f->rules.n; i++) {
        const form_rule *x = &f->rules.at[i];
        if (!x->body)
            return weft_fail(dg, W1801, x->loc, "rule `" STR_FMT "` is not defined",
                             STR_ARG(x->name));
        if (str_eqz(x->name, "root"))
            f->root = (int32_t)i;
    }
    if (f->root == -1)
        return weft_fail(dg, W1801, WEFT_NOWHERE, "%s: there is no rule `root`", src->name);
    return WEFT_OK;
}
