/* parse.c - one file's text into a tree, and what a syntax error says. */
#include "dsl/parse.h"

#include "dsl/dsl.h"
#include "dsl/ops.h"
#include "parser.tab.h"
#include "runtime/base/utf8.h"

/* Tokens that begin an expression, and those that may follow one, are reported as one word. */
static bool is_one_of(const char *name, const char *const *set)
{
    for (; *set; set++)
        if (strcmp(name, *set) == 0)
            return true;
    return false;
}

static const char *const begins_expr[] = {
    "a number", "a decimal number", "a string", "true", "false", "none", "'-'", "'!'", "'('", "'['",
    NULL};
static const char *const follows_expr[] = {
    "??",  "||",  "&&",  "==",  "!=",  "<=",  ">=",  "'<'", "'>'", "'+'",
    "'-'", "'*'", "'/'", "'%'", "'^'", "'?'", "'('", "'['", "'.'", NULL};

/* Token names as a user reads them: words stay words, signs go in back quotes. */
static void put_name(strbuf *out, const char *name)
{
    if (strncmp(name, "a ", 2) == 0 || strncmp(name, "an ", 3) == 0 ||
        strncmp(name, "end ", 4) == 0)
        strbuf_add(out, "%s", name);
    else if (name[0] == '\'')
        strbuf_add(out, "`%c`", name[1]);
    else
        strbuf_add(out, "`%s`", name);
}

static void put_expected(strbuf *out, int n, const char *const *expected)
{
    bool expr = false, op = false;
    for (int i = 0; i < n; i++) {
        expr |= strcmp(expected[i], "a number") == 0;
        op |= strcmp(expected[i], "'*'") == 0;
    }
    const char *say[8];
    int n_say = 0;
    for (int i = 0; i < n; i++) {
        bool folded =
            (expr && (is_one_of(expected[i], begins_expr) || strcmp(expected[i], "a name") == 0)) ||
            (op && is_one_of(expected[i], follows_expr));
        if (!folded && n_say < 6)
            say[n_say++] = expected[i];
        else if (!folded)
            return; /* too many to help anybody */
    }
    if (expr)
        say[n_say++] = "an expression";
    if (op)
        say[n_say++] = "an operator";
    for (int i = 0; i < n_say; i++) {
        strbuf_add(out, i == 0 ? "expected " : i + 1 < n_say ? ", " : " or ");
        put_name(out, say[i]);
    }
}

/* The word that was meant by a name: one of those expected here, or one that begins a statement. */
static void note_meant(parse_state *ps, parse_range at, int n, const char *const *expected)
{
    static const char *const begin[] = {"repeat", "if",     "output", "let",     "require",
                                        "return", "import", "block",  "fragment"};
    str_guess best = {0};
    for (int i = 0; i < n; i++)
        if (expected[i][0] >= 'a' && expected[i][0] <= 'z' && !strchr(expected[i], ' '))
            str_guess_try(&best, parse_text(ps, at), str_of(expected[i]));
    if (!best.name.n && ps->begun.end > ps->begun.begin)
        for (size_t i = 0; i < sizeof begin / sizeof *begin; i++)
            str_guess_try(&best, parse_text(ps, ps->begun), str_of(begin[i]));
    weft_suggest(ps->dg, &best);
}

/* What a reader of the message may not know about the language. */
static void note_rule(parse_state *ps, const char *found, parse_range at, int n,
                      const char *const *expected)
{
    const char *text = ps->src->text.p;
    str word = parse_text(ps, ps->begun);
    uint32_t next = at.end;
    bool name = false, assigns = false, version = n == 1 && strcmp(expected[0], "weft") == 0;
    for (int i = 0; i < n; i++)
        name |= strcmp(expected[i], "a name") == 0, assigns |= strcmp(expected[i], "'='") == 0;
    while (next < ps->src->text.n && text[next] == ' ')
        next++;
    bool binds = next < ps->src->text.n && (text[next] == '=' || text[next] == ',');
    const char *advice = version ? NULL : habit_advice(ps, found, at, assigns);
    if (version)
        weft_note(ps->dg, "a model file begins with the line `weft 1`");
    else if (advice)
        weft_note(ps->dg, "%s", advice);
    else if (found[0] >= 'a' && !strchr(found, ' ') && name && (!ps->prev.first || binds))
        weft_note(ps->dg, "`%s` is a word of the language; it cannot be a name", found);
    else if (ps->before_token == ELSE && strcmp(found, "if") == 0)
        weft_note(ps->dg, "there is no `else if`; write else { if .. { .. } }");
    else if (word.n && transform_find(word) && word.p + word.n == text + ps->before)
        weft_note(ps->dg,
                  "a name at the beginning of a line begins a statement; a transform stands "
                  "on the line of its string");
    else
        note_meant(ps, at, n, expected);
}

/* The line ends where something was still to come: that is the place, not the next line. */
static bool dangles(const parse_state *ps, const char *found)
{
    bool begins = strncmp(found, "a ", 2) == 0 || (found[0] >= 'a' && found[0] <= 'z');
    bool pending = ps->before_token != 0 && ps->before_token != EOL && ps->before_token != '{';
    return ps->prev.first && begins && pending && ps->n_round == 0 && strcmp(found, "else") != 0;
}

static void report(parse_state *ps, const char *found, parse_range at, int n_expected,
                   const char *const *expected)
{
    strbuf text = {0};
    parse_range line_end = {ps->before, ps->before};
    put_expected(&text, n_expected, expected);
    if (ps->prev.first && ps->n_round > 0 && ps->n_bracket > 0) {
        weft_fail(ps->dg, W0101, parse_loc(ps, line_end),
                  "%s%sa bracket is still open at the end of this line", text.n ? text.p : "",
                  text.n ? "; " : "");
        weft_note_at(ps->dg, parse_loc(ps, ps->open[ps->n_bracket - 1]), "opened here");
    } else if (text.n && dangles(ps, found)) {
        weft_fail(ps->dg, W0101, parse_loc(ps, line_end), "%s, found end of line", text.p);
    } else if (strcmp(found, "'}'") == 0 && ps->n_bracket == 0) {
        weft_fail(ps->dg, W0101, parse_loc(ps, at), "this `}` closes nothing");
    } else {
        strbuf_add(&text, text.n ? ", found " : "unexpected ");
        str spelt = parse_text(ps, at);
        bool quoted = strncmp(found, "a ", 2) == 0 && spelt.n <= 40;
        if (quoted)
            strbuf_add(&text, "`" STR_FMT "`", STR_ARG(spelt));
        else
            put_name(&text, found);
        weft_fail(ps->dg, W0101, parse_loc(ps, at), "%s", text.p);
        if (strcmp(found, "end of line") == 0 && ps->left.end > 0)
            weft_note_at(ps->dg, parse_loc(ps, ps->left), "this bracket is still open");
        else
            note_rule(ps, found, at, n_expected, expected);
    }
    strbuf_free(&text);
}

void parse_report(parse_state *ps, const char *found, parse_range at, int n_expected,
                  const char *const *expected)
{
    if (ps->stopped)
        return;
    if (!ps->brace_asked) /* it walks the whole text: once is enough */
        ps->brace = brace_find(ps);
    ps->brace_asked = true;
    if (ps->brace.kind != BRACE_FINE && ps->brace.at.begin <= at.end) {
        bool unclosed = ps->brace.kind == BRACE_UNCLOSED;
        weft_fail(ps->dg, W0101, ps->brace.at, "a `%c` is missing here", unclosed ? '}' : '{');
        weft_note_at(ps->dg, ps->brace.other,
                     unclosed ? "this `{` is not closed" : "this `}` has no `{`");
        ps->stopped = true;
        return;
    }
    str since = {ps->src->text.p + ps->bad_end,
                 at.begin > ps->bad_end ? at.begin - ps->bad_end : 0};
    if (ps->bad_end == 0 || memchr(since.p, '\n', since.n))
        report(ps, found, at, n_expected, expected);
    ps->left = (parse_range){0, 0};
    ps->n_bracket -= ps->n_round; /* so that recovery finds the next line end */
    ps->n_round = 0;
    ps->skipping = strcmp(found, "end of line") != 0;
    ps->skip_depth = strcmp(found, "'{'") == 0;
}

/* The language is UTF-8 text: anything else is refused before the scanner sees it. */
static weft_status check_encoding(weft_diag *dg, const source *src)
{
    for (size_t i = 0; i < src->text.n;) {
        uint32_t point;
        size_t n = utf8_decode((str){src->text.p + i, src->text.n - i}, &point);
        if (n == 0 || point == 0)
            return weft_fail(dg, W0001, (weft_loc){src, (uint32_t)i, (uint32_t)i + 1},
                             "byte 0x%02x: the file is not UTF-8 text",
                             (unsigned)(unsigned char)src->text.p[i]);
        i += n;
    }
    return WEFT_OK;
}

weft_status dsl_parse(weft_diag *dg, arena *a, const source *src, ast **out_file)
{
    if (src->text.n > DSL_SOURCE_MAX)
        return weft_fail(dg, W1101, (weft_loc){src, 0, 0},
                         "a model file may have %d bytes, this one has %zu", DSL_SOURCE_MAX,
                         src->text.n);
    WEFT_TRY(check_encoding(dg, src));
    size_t failed_before = diag_failed(dg);
    parse_state *ps = ARENA_NEW(a, parse_state);
    *ps = (parse_state){.dg = dg, .a = a, .src = src};
    lex_begin(ps);
    int failed = parse_parse(ps);
    lex_end(ps);
    if (!failed && ps->root->kid[FILE_VERSION]->integer != 1)
        weft_fail(dg, W0102, ps->root->kid[FILE_VERSION]->loc,
                  "language version " STR_FMT " is unknown",
                  STR_ARG(ps->root->kid[FILE_VERSION]->name));
    if (failed || diag_failed(dg) > failed_before)
        return WEFT_ERR_SYNTAX;
    *out_file = ps->root;
    return WEFT_OK;
}
