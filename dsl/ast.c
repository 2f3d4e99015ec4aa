/* ast.c - building, comparing and naming syntax nodes. */
#include "dsl/parse.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>

const char *ast_kind_name(ast_kind kind)
{
    static const char *const name[] = {
#define AST(kind, printed, slots) printed,
#include "dsl/ast.def"
#undef AST
    };
    return name[kind];
}

str ast_spelt(const ast *n)
{
    return (str){n->loc.src->text.p + n->loc.begin, n->loc.end - n->loc.begin};
}

str parse_text(const parse_state *ps, parse_range at)
{
    return (str){ps->src->text.p + at.begin, at.end - at.begin};
}

weft_loc parse_loc(const parse_state *ps, parse_range at)
{
    return (weft_loc){ps->src, at.begin, at.end};
}

static void adopt(parse_state *ps, ast *parent, const ast *kid)
{
    if (!kid || kid->height < parent->height)
        return;
    parent->height = (uint16_t)(kid->height + 1);
    if (parent->height > AST_HEIGHT_MAX && !ps->stopped) {
        weft_fail(ps->dg, W1102, parent->loc, "an expression nests deeper than %d", AST_HEIGHT_MAX);
        ps->stopped = true;
    }
}

static ast *make(parse_state *ps, ast_kind kind, parse_range at, int n_kid, va_list kids)
{
    ast *n = ARENA_NEW(ps->a, ast);
    n->kind = kind;
    n->loc = n->name_loc = parse_loc(ps, at);
    n->height = 1;
    n->n_kid = n->cap_kid = (uint32_t)n_kid;
    n->kid = n_kid ? ARENA_ARRAY(ps->a, ast *, (size_t)n_kid) : NULL;
    for (int i = 0; i < n_kid; i++) {
        n->kid[i] = va_arg(kids, ast *);
        adopt(ps, n, n->kid[i]);
    }
    return n;
}

ast *ast_make(parse_state *ps, ast_kind kind, parse_range at, int n_kid, ...)
{
    va_list kids;
    va_start(kids, n_kid);
    ast *n = make(ps, kind, at, n_kid, kids);
    va_end(kids);
    return n;
}

ast *ast_named(parse_state *ps, ast_kind kind, parse_range at, parse_range name, int n_kid, ...)
{
    va_list kids;
    va_start(kids, n_kid);
    ast *n = make(ps, kind, at, n_kid, kids);
    va_end(kids);
    n->name = parse_text(ps, name);
    n->name_loc = parse_loc(ps, name);
    if (n->name.n > 0 && n->name.p[0] == '"') { /* a string: drop the quotes, keep the escapes */
        n->name.p++;
        n->name.n--;
        if (n->name.n > 0 && n->name.p[n->name.n - 1] == '"')
            n->name.n--;
    }
    return n;
}

ast *ast_list(parse_state *ps, parse_range at, ast *first)
{
    ast *list = ast_make(ps, AST_LIST, at, 0);
    return ast_add(ps, list, first);
}

ast *ast_add(parse_state *ps, ast *list, ast *item)
{
    if (!item)
        return list;
    if (list->n_kid == list->cap_kid) {
        uint32_t cap = list->cap_kid ? 2 * list->cap_kid : 4;
        ast **kid = ARENA_ARRAY(ps->a, ast *, cap);
        if (list->n_kid)
            memcpy(kid, list->kid, list->n_kid * sizeof *kid);
        list->kid = kid;
        list->cap_kid = cap;
    }
    list->kid[list->n_kid++] = item;
    if (item->loc.end > list->loc.end)
        list->loc.end = item->loc.end;
    adopt(ps, list, item);
    return list;
}

ast *ast_as(ast *list, ast_kind kind, parse_range at)
{
    list->kind = kind;
    list->loc.begin = at.begin;
    list->loc.end = at.end;
    return list;
}

ast *ast_path(parse_state *ps, parse_range at, const ast *head, parse_range last)
{
    str tail = parse_text(ps, last);
    ast *n = ast_make(ps, AST_NAME, at, 0);
    n->name = arena_printf(ps->a, STR_FMT "." STR_FMT, STR_ARG(head->name), STR_ARG(tail));
    return n;
}

ast *ast_number(parse_state *ps, ast_kind kind, parse_range at)
{
    ast *n = ast_named(ps, kind, at, at, 0);
    str text = arena_str(ps->a, n->name);
    errno = 0;
    if (kind == AST_INT) {
        n->integer = strtoll(text.p, NULL, 10);
        if (errno == ERANGE)
            weft_fail(ps->dg, W0004, n->loc, "this number does not fit 64 bits");
    } else {
        n->number = strtod(text.p, NULL);
        if (errno == ERANGE && (n->number > 1 || n->number == 0))
            weft_fail(ps->dg, W0004, n->loc, "this number does not fit a double");
    }
    return n;
}

bool ast_equal(const ast *a, const ast *b)
{
    if (!a || !b)
        return a == b;
    if (a->kind != b->kind || a->flag != b->flag || a->n_kid != b->n_kid ||
        !str_eq(a->name, b->name))
        return false;
    for (uint32_t i = 0; i < a->n_kid; i++)
        if (!ast_equal(a->kid[i], b->kid[i]))
            return false;
    return true;
}
