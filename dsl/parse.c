/* parse.c - one file's text into a tree, and what a syntax error says. */
#include "dsl/parse.h"

#include "dsl/dsl.h"
#include "parser.tab.h"
#include "runtime/base/utf8.h"

/* Tokens that begin an expression, and those that may follow one, are told as one word each. */
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

void parse_report(parse_state *ps, const char *found, parse_range at, int n_expected,
                  const char *const *expected)
{
    if (ps->stopped)
        return;
    if (ps->brace_missing < 0) /* it walks the whole text: once is enough */
        ps->brace_missing = brace_find_missing(ps, &ps->brace_place, &ps->brace_open);
    if (ps->brace_missing && ps->brace_place.begin <= at.end) {
        weft_fail(ps->dg, W0101, ps->brace_place, "a `}` is missing here");
        weft_note_at(ps->dg, ps->brace_open, "this `{` is not closed");
        ps->stopped = true;
        return;
    }
    strbuf text = {0};
    put_expected(&text, n_expected, expected);
    bool unclosed = ps->prev.first && ps->n_round > 0 && ps->n_bracket > 0;
    if (unclosed) {
        parse_range line_end = {ps->before, ps->before};
        weft_fail(ps->dg, W0101, parse_loc(ps, line_end),
                  "%s%sa bracket is still open at the end of this line", text.n ? text.p : "",
                  text.n ? "; " : "");
        weft_note_at(ps->dg, parse_loc(ps, ps->open[ps->n_bracket - 1]), "opened here");
    } else {
        strbuf_add(&text, text.n ? ", found " : "unexpected ");
        put_name(&text, found);
        str spelt = parse_text(ps, at);
        if (strncmp(found, "a ", 2) == 0 && spelt.n <= 40)
            strbuf_add(&text, " `" STR_FMT "`", STR_ARG(spelt));
        weft_fail(ps->dg, W0101, parse_loc(ps, at), "%s", text.p);
    }
    strbuf_free(&text);
    ps->n_bracket -= ps->n_round; /* so that recovery finds the next line end */
    ps->n_round = 0;
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
    size_t errors = diag_errors(dg);
    parse_state *ps = ARENA_NEW(a, parse_state);
    *ps = (parse_state){.dg = dg, .a = a, .src = src, .brace_missing = -1};
    lex_begin(ps);
    int failed = parse_parse(ps);
    lex_end(ps);
    if (!failed && ps->root->kid[FILE_VERSION]->integer != 1)
        weft_fail(dg, W0102, ps->root->kid[FILE_VERSION]->loc,
                  "language version " STR_FMT " is unknown",
                  STR_ARG(ps->root->kid[FILE_VERSION]->name));
    if (failed || diag_errors(dg) > errors)
        return WEFT_ERR_SYNTAX;
    *out_file = ps->root;
    return WEFT_OK;
}
