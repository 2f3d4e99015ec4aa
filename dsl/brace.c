/* brace.c - where a missing brace belongs.
 *
 * A parser notices a missing brace long after the place it was left out. People indent, though: the
 * first line that is not deeper than the line of the innermost open `{`, and does not close it, shows
 * where the `}` should have been; a `}` that is deeper than the line of the innermost open `{` belongs
 * to the line above it with its own indent, which lacks its `{`. Used only once the braces are known
 * not to balance. */
#include "dsl/parse.h"

typedef struct {
    uint32_t at;     /* of the `{` */
    uint32_t indent; /* of the line it stands on */
} open_brace;

typedef struct {
    const char *p;
    uint32_t i, n;
    uint32_t indent;   /* of the current line */
    uint32_t last_end; /* of the last thing that is neither white space nor comment */
    bool first;        /* nothing seen on this line yet */
} brace_scan;

/* The next character that is not inside a string or comment and not white space; 0 at the end. */
static char scan_next(brace_scan *s)
{
    while (s->i < s->n) {
        char c = s->p[s->i];
        if (c == '\n') {
            s->first = true;
            s->indent = 0;
            s->i++;
        } else if (c == ' ' || c == '\t' || c == '\r') {
            s->indent += s->first;
            s->i++;
        } else if (c == '#') {
            while (s->i < s->n && s->p[s->i] != '\n')
                s->i++;
        } else {
            return c;
        }
    }
    return 0;
}

static void scan_pass(brace_scan *s, char c)
{
    s->i++;
    if (c == '"') {
        while (s->i < s->n && s->p[s->i] != '"' && s->p[s->i] != '\n')
            s->i += s->p[s->i] == '\\' ? 2 : 1;
        s->i += s->i < s->n && s->p[s->i] == '"';
        if (s->i > s->n)
            s->i = s->n;
    }
    s->first = false;
    s->last_end = s->i;
}

enum { INDENT_MAX = 64 }; /* deeper lines are not looked at for a missing `{` */

/* A statement's line so far: it goes on while a ( or [ is open. */
typedef struct {
    uint32_t indent;
    int round;   /* open ( and [ */
    int n_open;  /* { less } on it */
    bool closes; /* it begins with a `}` */
    bool alone;  /* and has nothing else */
} brace_line;

brace_fault brace_find(const parse_state *ps)
{
    brace_scan s = {.p = ps->src->text.p, .n = (uint32_t)ps->src->text.n, .first = true};
    open_brace open[AST_BRACKETS_MAX];
    uint32_t header[INDENT_MAX] = {0}; /* end of the last line with each indent that may lack a { */
    brace_fault unclosed = {.kind = BRACE_FINE}, unopened = {.kind = BRACE_FINE};
    brace_line line = {.closes = true, .alone = true};
    int n_open = 0;
    bool blind = false; /* where a `{` is missing is known, or not to be found here */
    for (char c; (c = scan_next(&s)) != 0; scan_pass(&s, c)) {
        const open_brace *top = n_open > 0 ? &open[n_open - 1] : NULL;
        bool begins = s.first && line.round == 0;
        if (begins) {
            bool may_open = !line.alone && line.n_open <= 0 && s.indent > line.indent;
            if (line.indent < INDENT_MAX)
                header[line.indent] = may_open ? s.last_end : 0;
            line = (brace_line){.indent = s.indent, .closes = c == '}', .alone = c == '}'};
            if (top && unclosed.kind == BRACE_FINE &&
                (c == '}' ? s.indent < top->indent : s.indent <= top->indent))
                unclosed = (brace_fault){BRACE_UNCLOSED,
                                         {ps->src, s.last_end, s.last_end},
                                         {ps->src, top->at, top->at + 1}};
        } else {
            line.alone = false;
        }
        if (c == '}' && !begins && !line.closes && line.n_open == 0)
            blind = true; /* the parser sees that line for itself */
        if (c == '}' && begins && !blind && s.indent < INDENT_MAX && header[s.indent] &&
            (!top || s.indent > top->indent)) {
            unopened = (brace_fault){BRACE_UNOPENED,
                                     {ps->src, header[s.indent], header[s.indent]},
                                     {ps->src, s.i, s.i + 1}};
            blind = true;
        }
        line.round += c == '(' || c == '[';
        line.round -= (c == ')' || c == ']') && line.round > 0;
        line.n_open += (c == '{') - (c == '}' && !begins);
        if (c == '{' || c == '}')
            line.round = 0;
        if (c == '{' && n_open == AST_BRACKETS_MAX)
            return (brace_fault){.kind = BRACE_FINE};
        if (c == '{')
            open[n_open++] = (open_brace){s.i, line.indent};
        else if (c == '}' && n_open-- == 0)
            return unopened;
    }
    if (n_open > 0 && unclosed.kind == BRACE_FINE)
        unclosed = (brace_fault){BRACE_UNCLOSED,
                                 {ps->src, s.last_end, s.last_end},
                                 {ps->src, open[n_open - 1].at, open[n_open - 1].at + 1}};
    return n_open > 0 ? unclosed : (brace_fault){.kind = BRACE_FINE};
}
