/* brace.c - where a missing `}` belongs.
 *
 * A parser notices a missing brace long after the place it was left out. People indent, though: the
 * first line that is not deeper than the line of the innermost open `{`, and does not close it, shows
 * where the `}` should have been. Used only once the braces are known not to balance. */
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

bool brace_find_missing(const parse_state *ps, weft_loc *out_at, weft_loc *out_open)
{
    brace_scan s = {ps->src->text.p, 0, (uint32_t)ps->src->text.n, 0, 0, true};
    open_brace open[AST_BRACKETS_MAX];
    int n_open = 0;
    bool found = false;
    for (char c; (c = scan_next(&s)) != 0; scan_pass(&s, c)) {
        if (s.first && n_open > 0 && !found) {
            const open_brace *top = &open[n_open - 1];
            if (c == '}' ? s.indent < top->indent : s.indent <= top->indent) {
                found = true;
                *out_at = (weft_loc){ps->src, s.last_end, s.last_end};
                *out_open = (weft_loc){ps->src, top->at, top->at + 1};
            }
        }
        if (c == '{' && n_open == AST_BRACKETS_MAX)
            return false;
        if (c == '{')
            open[n_open++] = (open_brace){s.i, s.indent};
        else if (c == '}' && n_open-- == 0)
            return false;
    }
    if (n_open > 0 && !found) {
        *out_at = (weft_loc){ps->src, s.last_end, s.last_end};
        *out_open = (weft_loc){ps->src, open[n_open - 1].at, open[n_open - 1].at + 1};
    }
    return n_open > 0;
}
