/* parse.h - what lexer, parser and tree building share; private to dsl/. */
#ifndef WEFT_DSL_PARSE_H
#define WEFT_DSL_PARSE_H

#include "dsl/ast.h"
#include "runtime/base/diag.h"

typedef struct {
    uint32_t begin, end;
} parse_range;

typedef struct {
    int token;
    parse_range at;
    bool first; /* nothing but white space before it on its line */
} lex_token;

/* Where braces do not balance, by indentation. */
typedef struct {
    enum {
        BRACE_FINE,
        BRACE_UNCLOSED, /* a `}` is missing at `at`; other is the `{` */
        BRACE_UNOPENED, /* a `{` is missing at `at`; other is the `}` */
    } kind;
    weft_loc at, other;
} brace_fault;

/* One parse. The line-end rule (lex_lines.c) keeps its state here. */
typedef struct {
    weft_diag *dg;
    arena *a;
    const source *src;
    void *scanner;
    ast *root;            /* the result */
    bool stopped;         /* a limit was passed: no more tokens, no more reports */
    lex_token prev, held; /* the token handed out last; one that waits behind an EOL */
    int before_token;     /* the one before prev, and where it ended */
    uint32_t before;
    bool holding;
    uint32_t scanned; /* how far the scanner has read */
    int n_round;      /* open ( and [ */
    int n_bracket;    /* open brackets of any kind */
    parse_range open[AST_BRACKETS_MAX];
    parse_range begun; /* the statement's first token, if that is a name */
    parse_range left;  /* the bracket still open where a line end closed the statement */
    uint32_t bad_end;  /* of the newest bad character: what follows on its line is its fault */
    bool skipping;     /* after an error: on to the line end, past whole { } */
    int skip_depth;
    bool brace_asked;
    brace_fault brace;
} parse_state;

/* The raw scanner: tokens and a NEWLINE for every line break. */
int lex_raw(parse_state *ps, parse_range *at);
void lex_begin(parse_state *ps);
void lex_end(parse_state *ps);

str parse_text(const parse_state *ps, parse_range at);
weft_loc parse_loc(const parse_state *ps, parse_range at);

/* Tree building, for parser.y. Kids may be NULL. */
ast *ast_make(parse_state *ps, ast_kind kind, parse_range at, int n_kid, ...);
ast *ast_named(parse_state *ps, ast_kind kind, parse_range at, parse_range name, int n_kid, ...);
ast *ast_list(parse_state *ps, parse_range at, ast *first); /* first may be NULL: an empty list */
ast *ast_add(parse_state *ps, ast *list, ast *item);        /* NULL items are passed over */
ast *ast_as(ast *list, ast_kind kind, parse_range at); /* the list becomes a node of that kind */
ast *ast_number(parse_state *ps, ast_kind kind, parse_range at);
ast *ast_path(parse_state *ps, parse_range at, const ast *head, parse_range last); /* head.last */

/* Say what is wrong at the newest token; expected holds the names of what would have been right. */
void parse_report(parse_state *ps, const char *found, parse_range at, int n_expected,
                  const char *const *expected);
brace_fault brace_find(const parse_state *ps);
/* What the language has instead of what another would write here; NULL: nothing comes to mind. binds: a `=`
 * would have been right. */
const char *habit_advice(const parse_state *ps, const char *found, parse_range at, bool binds);

#endif
