/* fmt.h - the parts of the formatter; private to dsl/.
 *
 * The formatter moves white space and nothing else: it prints the tokens of the source one by one,
 * in their order, and asks the tree only how to lay them out. On the way from text to text:
 *
 *   fmt_tokens.c  the tokens, and the comments between them
 *   fmt_stmt.c    statements as rows of cells, bodies in braces around them
 *   fmt_expr.c    what a cell holds as items: tokens, spaces, places where a line may break
 *   fmt_table.c   columns for neighbouring rows of one kind
 *   fmt_print.c   items into lines
 *   fmt_lines.c   lines, their trailing comments lined up, into text
 *
 * What comes out depends on nothing but the tokens, the comments, the blank lines between statements
 * and whether a short body stood on one line; since all of these survive, so does the layout. */
#ifndef WEFT_DSL_FMT_H
#define WEFT_DSL_FMT_H

#include "dsl/ast.h"
#include "runtime/base/vec.h"
#include <limits.h>

enum {
    FMT_INDENT = 2,         /* per level of braces */
    FMT_HANG = 4,           /* lines that continue a statement and have nothing to hang from */
    FMT_CODE_COLUMNS = 110, /* statements break to stay within */
    FMT_TABLE_COLUMNS = 120 /* rows of params and weights do */
};

typedef struct {
    str text;   /* from the # to the end of the line, without white space there */
    bool own;   /* alone on its line; otherwise it stands behind a token */
    bool blank; /* an empty line stands before it */
} fmt_comment;

typedef struct {
    int kind; /* as parser.tab.h has it */
    str text;
    uint32_t begin;                 /* offset in the source */
    uint32_t line;                  /* from 0 */
    uint32_t comment_at, n_comment; /* those between the token before and this one */
    bool blank;                     /* an empty line stands before it, after its comments */
    bool starts;                    /* the statement before it has ended */
} fmt_token;

typedef enum {
    ITEM_TEXT,  /* a token */
    ITEM_SPACE, /* spaces, not at the end of a line */
    ITEM_BREAK, /* the same, or a line end */
    ITEM_OPEN,  /* a group: kept on one line if it fits, else its own breaks are considered */
    ITEM_CLOSE,
    ITEM_TRAIL, /* a comment behind the text before it; a line ends here */
    ITEM_OWN    /* a comment on a line of its own */
} fmt_item_kind;

typedef struct {
    fmt_item_kind kind;
    bool together; /* OPEN: all of its breaks are line ends, or none is */
    int gap;       /* SPACE, BREAK: how many spaces */
    int shift;     /* OPEN: its lines begin so much left of where it opened.
                      BREAK: more spaces, if the group around its group does not fit */
    int at;        /* columns from the first item to this one, all on one line */
    int n_hard;    /* comments before it */
    int size;      /* TEXT: its width. OPEN, BREAK: columns to where the line may break next */
    str text;
} fmt_item;

typedef struct {
    uint32_t begin, end;            /* items */
    int column;                     /* of its table */
    uint32_t comment_at, n_comment; /* comments before its first token: it begins a line */
    int place;                      /* column of the page; FMT_DOWN, FMT_FLOW */
} fmt_cell;

enum { FMT_OUTER = INT_MAX }; /* a shift: its lines begin where those of the group around it do */
enum { FMT_DOWN = -1, FMT_FLOW = -2 }; /* on a line of its own; there or behind what is before it */

typedef enum {
    ROW_PLAIN, /* one cell, no table */
    ROW_LET,
    ROW_ASSIGN,
    ROW_OUTPUT,
    ROW_MATCH, /* match, tokenizer, chat */
    ROW_BLOCK, /* on one line */
    ROW_PARAM,
    ROW_WEIGHT,
    ROW_CELL,
    ROW_KIND_COUNT
} fmt_row_kind;

typedef struct {
    uint32_t cell_at, n_cell;
    uint32_t token_at, token_end;
    int hang;       /* columns that continuation lines are to the right of its indentation */
    str trail;      /* the comment behind it */
    uint32_t loose; /* columns it does not line up with, as bits */
} fmt_row;

typedef struct {
    uint32_t begin, end; /* bytes of fmt.text */
    int width;
    str comment; /* behind the text */
} fmt_line;

typedef struct {
    int indent;
    bool broken, together;
} fmt_frame;

typedef struct {
    const source *src;
    VEC(fmt_token) tokens; /* the last stands for the end of the file */
    VEC(fmt_comment) comments;
    uint32_t next; /* the token to print next */

    fmt_row_kind kind; /* of all rows */
    VEC(fmt_row) rows;
    VEC(fmt_cell) cells;
    VEC(fmt_item) items;
    int at, n_hard; /* at the end of the items */
    int flat;       /* in a body on one line: cells are not told apart */

    int indent;
    VEC(fmt_frame) frames;
    VEC(fmt_line) lines;
    strbuf text;
    fmt_line line; /* the newest, which is being written while `open` */
    bool open;
    bool full; /* the text is longer than a source may be */

    VEC(int) columns; /* scratch of fmt_align */
} fmt;

/* fmt.c: the new text, as yet unproven; false if it is longer than a source may be. */
bool fmt_layout(weft_diag *dg, arena *a, const source *src, const ast *file, strbuf *out);

/* fmt_tokens.c */
void fmt_tokens_read(fmt *f, weft_diag *dg, arena *a, const source *src);
uint32_t fmt_token_find(const fmt *f, uint32_t offset); /* the first that begins there or later */
int fmt_width(str text);                                /* in columns */

/* fmt_expr.c: items */
void fmt_put(fmt *f);          /* the next token, its comments before it */
void fmt_put_n(fmt *f, int n); /* n tokens with a space between two */
void fmt_space(fmt *f, int n);
uint32_t fmt_break(fmt *f, int n);
void fmt_open(fmt *f, int shift, bool together);
void fmt_close(fmt *f);
/* room: columns to the left of the expression that its operators may hang into. */
void fmt_expr(fmt *f, const ast *n, int room);
void fmt_type(fmt *f, const ast *type);
void fmt_list(fmt *f, const ast *list);       /* a, b, c */
void fmt_brackets(fmt *f, const ast *list);   /* the same in its brackets */
void fmt_call_cells(fmt *f, const ast *call); /* each argument from the second on begins a cell */

/* fmt_stmt.c */
void fmt_file(fmt *f, const ast *file);

/* fmt_table.c */
void fmt_row_begin(fmt *f);
/* gap: the spaces before the cell where nothing lines up. */
void fmt_cell_begin(fmt *f, int column, int gap);
void fmt_row_end(fmt *f);
/* Of the newest row, once it has ended: forget it; its width on one line, INT_MAX with comments inside;
 * take the comment behind it. */
void fmt_row_undo(fmt *f);
int fmt_row_width(const fmt *f);
void fmt_row_take_comment(fmt *f);
void fmt_rows_print(fmt *f);

/* One column for n neighbours that could begin at place[i], which becomes where they do begin: as far
 * right as the furthest needs, but at most `reach` beyond what this many quarters of them need. Those
 * further out line up among themselves where they are neighbours. */
void fmt_align(fmt *f, int *place, size_t n, int quarters, int reach);

/* fmt_print.c */
void fmt_print(fmt *f, uint32_t begin, uint32_t end, int columns, int indent, bool flat);

/* fmt_lines.c */
void fmt_line_begin(fmt *f, int indent);
void fmt_line_put(fmt *f, str text, int width);
void fmt_line_fill(fmt *f, int n);
void fmt_line_note(fmt *f, int indent, str comment); /* a comment on its own line */
void fmt_line_trail(fmt *f, str comment);
void fmt_line_blank(fmt *f);
void fmt_lines_write(fmt *f, strbuf *out);

#endif
