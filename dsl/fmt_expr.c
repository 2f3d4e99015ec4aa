/* fmt_expr.c - expressions as items.
 *
 * A line breaks behind a comma or in front of an operator, a `?` or a `:`; none of these places ends a
 * statement (lex_lines.c). Parentheses are in no tree, but a node's range covers them, so those that
 * were written are printed again. */
#include "dsl/fmt.h"

#include "parser.tab.h"

static void item_add(fmt *f, fmt_item it)
{
    it.at = f->at;
    it.n_hard = f->n_hard;
    f->at += it.kind == ITEM_TEXT ? it.size : it.gap;
    f->n_hard += it.kind == ITEM_TRAIL || it.kind == ITEM_OWN;
    VEC_PUSH(&f->items, it);
}

void fmt_space(fmt *f, int n)
{
    item_add(f, (fmt_item){.kind = ITEM_SPACE, .gap = n});
}

uint32_t fmt_break(fmt *f, int n)
{
    item_add(f, (fmt_item){.kind = ITEM_BREAK, .gap = n});
    return (uint32_t)f->items.n - 1;
}

void fmt_open(fmt *f, int shift, bool together)
{
    item_add(f, (fmt_item){.kind = ITEM_OPEN, .shift = shift, .together = together});
}

void fmt_close(fmt *f)
{
    item_add(f, (fmt_item){.kind = ITEM_CLOSE});
}

void fmt_put(fmt *f)
{
    WEFT_ASSERT(f->next + 1 < f->tokens.n);
    fmt_token *t = &f->tokens.at[f->next++];
    for (uint32_t i = 0; i < t->n_comment; i++) {
        const fmt_comment *c = &f->comments.at[t->comment_at + i];
        item_add(f, (fmt_item){.kind = c->own ? ITEM_OWN : ITEM_TRAIL, .text = c->text});
    }
    item_add(f, (fmt_item){.kind = ITEM_TEXT, .text = t->text, .size = fmt_width(t->text)});
}

void fmt_put_n(fmt *f, int n)
{
    for (int i = 0; i < n; i++) {
        if (i > 0)
            fmt_space(f, 1);
        fmt_put(f);
    }
}

static int next_kind(const fmt *f)
{
    return f->tokens.at[f->next].kind;
}

/* The operand or base that an expression begins with; NULL if it begins with a token of its own. */
static const ast *first_of(const ast *n)
{
    switch (n->kind) {
    case AST_BINARY:
    case AST_CHOICE:
    case AST_CALL:
    case AST_SUBSCRIPT:
    case AST_MEMBER:
        return n->kid[0];
    default:
        return NULL;
    }
}

static bool in_parens(const ast *n)
{
    const ast *first = first_of(n);
    return first && n->loc.begin < first->loc.begin;
}

static void put_arg(fmt *f, const ast *arg)
{
    if (arg->kind != AST_ARG) {
        fmt_expr(f, arg, 0);
        return;
    }
    if (arg->name.n > 0) {
        fmt_put_n(f, 2); /* name = */
        fmt_space(f, 1);
    }
    fmt_expr(f, arg->kid[ARG_VALUE], arg->name.n > 0 ? 3 : 0);
}

static void put_list(fmt *f, const ast *list, bool cells)
{
    for (uint32_t i = 0; i < list->n_kid; i++) {
        if (i > 0) {
            fmt_put(f); /* , */
            if (cells)
                fmt_cell_begin(f, (int)i + 1, 0);
            fmt_break(f, 1);
        }
        put_arg(f, list->kid[i]);
    }
}

void fmt_list(fmt *f, const ast *list)
{
    fmt_open(f, 0, false);
    put_list(f, list, false);
    fmt_close(f);
}

static void brackets(fmt *f, const ast *list, bool cells)
{
    fmt_put(f);
    fmt_open(f, 0, false);
    put_list(f, list, cells);
    fmt_put(f);
    fmt_close(f);
}

void fmt_brackets(fmt *f, const ast *list)
{
    brackets(f, list, false);
}

void fmt_type(fmt *f, const ast *type)
{
    fmt_put(f);
    if (type->kid[TYPE_DIMS])
        fmt_brackets(f, type->kid[TYPE_DIMS]);
    if (type->flag)
        fmt_put(f);
}

/* How tightly an operator binds. */
static int level_of(const ast *n)
{
    if (n->kind != AST_BINARY)
        return 0;
    switch (n->name.p[0]) {
    case '?':
        return 1;
    case '|':
        return 2;
    case '&':
        return 3;
    case '+':
    case '-':
        return 5;
    case '*':
    case '/':
    case '%':
        return 6;
    case '^':
        return 7;
    default:
        return 4; /* == != < <= > >= */
    }
}

static void operand(fmt *f, const ast *n, int level, int room);

/* a + b - c is one group, as is a ?? b ?? c, which leans the other way. */
static void chain(fmt *f, const ast *n, int room)
{
    int level = level_of(n);
    operand(f, n->kid[BINARY_LEFT], level, room);
    fmt_break(f, 1);
    fmt_put(f);
    fmt_space(f, 1);
    operand(f, n->kid[BINARY_RIGHT], level, (int)n->name.n + 1);
}

static void operand(fmt *f, const ast *n, int level, int room)
{
    if (level_of(n) == level && !in_parens(n))
        chain(f, n, room);
    else
        fmt_expr(f, n, room);
}

static void put_binary(fmt *f, const ast *n, int room)
{
    int hang = (int)n->name.n + 1;
    if (n->name.p[0] == '^') {
        fmt_expr(f, n->kid[BINARY_LEFT], 0);
        fmt_space(f, 1);
        fmt_put(f);
        fmt_space(f, 1);
        fmt_expr(f, n->kid[BINARY_RIGHT], 0);
        return;
    }
    fmt_open(f, room >= hang ? hang : 0, false);
    chain(f, n, room);
    fmt_close(f);
}

enum { CHOICE_QUARTERS = 3, CHOICE_REACH = 10, CHOICE_PAD_MAX = 16 };

/* Line up the `?` of a chain of choices; mark holds the break in front of each, and the item its
 * condition begins with is the first of its group. */
static void align_choices(fmt *f, const uint32_t *open, const uint32_t *mark, size_t n)
{
    VEC(int) place = {0};
    bool plain = n > 1;
    for (size_t i = 0; i < n && plain; i++) {
        const fmt_item *a = &f->items.at[open[i]], *b = &f->items.at[mark[i]];
        plain = a->n_hard == b->n_hard;
        VEC_PUSH(&place, b->at - a->at);
    }
    if (plain) {
        fmt_align(f, place.at, n, CHOICE_QUARTERS, CHOICE_REACH);
        for (size_t i = 0; i < n; i++) {
            int pad = place.at[i] - (f->items.at[mark[i]].at - f->items.at[open[i]].at);
            f->items.at[mark[i]].shift = pad <= CHOICE_PAD_MAX ? pad : 0;
        }
    }
    VEC_FREE(&place);
}

/* c1 ? a : c2 ? b : c, on one line or with a line for each choice. */
static void put_choice(fmt *f, const ast *n, int room)
{
    VEC(uint32_t) open = {0}, mark = {0};
    fmt_open(f, room >= 2 ? 2 : 0, true);
    for (int inner = room;; inner = 2) {
        VEC_PUSH(&open, (uint32_t)f->items.n);
        fmt_open(f, FMT_OUTER, true);
        fmt_expr(f, n->kid[CHOICE_CONDITION], inner);
        VEC_PUSH(&mark, fmt_break(f, 1));
        fmt_put(f); /* ? */
        fmt_space(f, 1);
        fmt_expr(f, n->kid[CHOICE_THEN], 2);
        fmt_close(f);
        fmt_break(f, 1);
        fmt_put(f); /* : */
        fmt_space(f, 1);
        n = n->kid[CHOICE_ELSE];
        if (n->kind != AST_CHOICE || in_parens(n))
            break;
    }
    fmt_expr(f, n, 2);
    fmt_close(f);
    align_choices(f, open.at, mark.at, open.n);
    VEC_FREE(&open);
    VEC_FREE(&mark);
}

void fmt_expr(fmt *f, const ast *n, int room)
{
    const ast *first = first_of(n);
    int n_paren = 0;
    while (next_kind(f) == '(' && (!first || f->tokens.at[f->next].begin < first->loc.begin)) {
        fmt_put(f);
        fmt_open(f, 0, false);
        n_paren++;
        room = 0;
    }
    switch (n->kind) {
    case AST_BINARY:
        put_binary(f, n, room);
        break;
    case AST_CHOICE:
        put_choice(f, n, room);
        break;
    case AST_UNARY:
        fmt_put(f);
        fmt_expr(f, n->kid[UNARY_OPERAND], 0);
        break;
    case AST_CALL:
        fmt_expr(f, n->kid[CALL_CALLEE], 0);
        fmt_brackets(f, n->kid[CALL_ARGUMENTS]);
        break;
    case AST_SUBSCRIPT:
        fmt_expr(f, n->kid[SUBSCRIPT_BASE], 0);
        fmt_brackets(f, n->kid[SUBSCRIPT_INDICES]);
        break;
    case AST_MEMBER:
        fmt_expr(f, n->kid[MEMBER_BASE], 0);
        fmt_put(f);
        fmt_put(f);
        break;
    case AST_LIST:
        fmt_brackets(f, n);
        break;
    default:
        fmt_put(f);
        break;
    }
    for (; n_paren > 0; n_paren--) {
        fmt_put(f);
        fmt_close(f);
    }
}

void fmt_call_cells(fmt *f, const ast *call)
{
    fmt_expr(f, call->kid[CALL_CALLEE], 0);
    brackets(f, call->kid[CALL_ARGUMENTS], true);
}
