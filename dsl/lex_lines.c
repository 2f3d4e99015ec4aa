/* lex_lines.c - which line breaks end a statement.
 *
 * A break counts when the token before it can end a statement, no ( or [ is open, and the token after
 * it can begin one. A `}` and the end of the file also end the statement before them. The parser sees
 * the result as EOL tokens; everything it knows about lines is here.
 *
 * After a syntax error the open ( and [ are forgotten, so that recovery finds the next line end; a
 * `{` that follows on the same line is passed over with all it holds. A word that only ever begins a
 * statement ends one with open brackets, too: it cannot stand inside them. */
#include "dsl/parse.h"
#include "parser.tab.h"

static bool can_end(int token)
{
    switch (token) {
    case IDENT:
    case INT:
    case FLOAT:
    case STRING:
    case TRUE:
    case FALSE:
    case NONE:
    case ')':
    case ']':
    case '}':
    case '?':
        return true;
    }
    return false;
}

/* A word that begins a statement and can stand nowhere else. */
static bool only_begins(int token)
{
    switch (token) {
    case WEFT:
    case IMPORT:
    case FRAGMENT:
    case BLOCK:
    case MODEL:
    case MATCH:
    case TOKENIZER:
    case CHAT:
    case INCLUDE:
    case PARAMS:
    case WEIGHTS:
    case GROUP:
    case IGNORE:
    case STATE:
    case ENTRY:
    case REPEAT:
    case OUTPUT:
    case REQUIRE:
    case LET:
    case RETURN:
        return true;
    }
    return false;
}

static bool can_begin(int token)
{
    return token == IDENT || token == IF || only_begins(token);
}

static lex_token next_token(parse_state *ps)
{
    lex_token t = {0, {ps->scanned, ps->scanned}, ps->prev.token == 0};
    do {
        t.token = lex_raw(ps, &t.at);
        t.first |= t.token == NEWLINE;
        if (t.token == BAD)
            ps->bad_end = t.at.end;
    } while (t.token == NEWLINE || t.token == BAD);
    ps->scanned = t.at.end;
    return t;
}

static void track_brackets(parse_state *ps, const lex_token *t)
{
    switch (t->token) {
    case '(':
    case '[':
    case '{':
        if (ps->n_bracket == AST_BRACKETS_MAX) {
            weft_fail(ps->dg, W1102, parse_loc(ps, t->at), "brackets nest deeper than %d",
                      AST_BRACKETS_MAX);
            ps->stopped = true;
            return;
        }
        ps->open[ps->n_bracket++] = t->at;
        ps->n_round = t->token == '{' ? 0 : ps->n_round + 1;
        return;
    case ')':
    case ']':
        ps->n_round -= ps->n_round > 0;
        ps->n_bracket -= ps->n_bracket > 0;
        return;
    case '}':
        ps->n_bracket -= ps->n_round < ps->n_bracket ? ps->n_round : ps->n_bracket;
        ps->n_bracket -= ps->n_bracket > 0;
        ps->n_round = 0;
    }
}

/* After an error: is t inside (or the end of) a { } that opened behind it? The line end that is to
 * come after all of it ends the skipping. */
static bool skip(parse_state *ps, const lex_token *t)
{
    bool inside = ps->skip_depth > 0;
    if (t->token == '{')
        ps->skip_depth++;
    else if (t->token == '}' && inside)
        ps->skip_depth--;
    ps->skipping = inside || t->token == '{' || !(t->first || t->token == '}');
    return inside && t->token != END;
}

int parse_lex(PARSE_STYPE *value, parse_range *at, parse_state *ps)
{
    lex_token t = ps->holding ? ps->held : next_token(ps);
    if (!ps->holding && t.first && ps->n_round > 0 && only_begins(t.token)) {
        ps->left = ps->open[ps->n_bracket - 1];
        ps->n_bracket -= ps->n_round;
        ps->n_round = 0;
    }
    bool ended = ps->prev.token == 0 || ps->prev.token == EOL || ps->prev.token == '{';
    bool breaks = t.first && ps->n_round == 0 && can_end(ps->prev.token) && can_begin(t.token);
    bool ends = !ps->holding && !ended && (breaks || t.token == '}' || t.token == END);
    if (ps->skipping && skip(ps, &t))
        ends = false;
    if (ends) {
        ps->held = t;
        ps->holding = true;
        t = (lex_token){EOL, {ps->prev.at.end, ps->prev.at.end}, false};
    } else {
        ps->holding = false;
        track_brackets(ps, &t);
        if (t.first || ended)
            ps->begun = t.token == IDENT ? t.at : (parse_range){0, 0};
    }
    if (ps->stopped)
        t = (lex_token){END, t.at, false};
    ps->before_token = ps->prev.token;
    ps->before = ps->prev.at.end;
    ps->prev = t;
    *at = value->at = t.at;
    return t.token;
}
