/* ast_print.c - the tree as an indented listing and as JSON, both driven by ast.def. */
#include "dsl/ast.h"

#include "runtime/base/json_write.h"
#include <stdio.h>

static const char *const slot_names[] = {
#define AST(kind, printed, slots) slots,
#include "dsl/ast.def"
#undef AST
};

/* The name of child i, or an empty view inside a list. */
static str slot_name(ast_kind kind, uint32_t i)
{
    str name = word_at(slot_names[kind], (int)i);
    return str_eqz(name, "*") ? STR("") : name;
}

static void print(const ast *n, str slot, int depth, strbuf *out)
{
    strbuf_fill(out, ' ', (size_t)(2 * depth));
    if (slot.n)
        strbuf_add(out, STR_FMT ": ", STR_ARG(slot));
    if (!n) {
        strbuf_add(out, "-\n");
        return;
    }
    strbuf_add(out, "%s", ast_kind_name(n->kind));
    if (n->kind == AST_STRING || n->kind == AST_KEY || n->kind == AST_CHAT)
        strbuf_add(out, " \"" STR_FMT "\"", STR_ARG(n->name));
    else if (n->kind == AST_BOOL)
        strbuf_add(out, " %s", n->flag ? "true" : "false");
    else if (n->name.n)
        strbuf_add(out, " " STR_FMT, STR_ARG(n->name));
    if (n->flag && n->kind != AST_BOOL)
        strbuf_add(out, " ?");
    strbuf_putc(out, '\n');
    for (uint32_t i = 0; i < n->n_kid; i++)
        print(n->kid[i], slot_name(n->kind, i), depth + 1, out);
}

void ast_print(const ast *root, strbuf *out)
{
    print(root, (str){"", 0}, 0, out);
}

static void json(json_writer *w, const ast *n)
{
    if (!n) {
        json_null(w);
        return;
    }
    json_open(w, '{');
    json_key_str(w, "kind", str_of(ast_kind_name(n->kind)));
    if (n->name.n) {
        json_key_str(w, "name", n->name);
    }
    if (n->flag || n->kind == AST_BOOL) {
        json_key(w, n->kind == AST_BOOL ? "value" : "optional");
        json_bool(w, n->flag);
    }
    source_place at = source_find(n->loc.src, n->loc.begin);
    json_key_int(w, "line", at.line);
    json_key_int(w, "column", at.column);
    json_key_int(w, "begin", n->loc.begin);
    json_key_int(w, "end", n->loc.end);
    bool in_list = false;
    for (uint32_t i = 0; i < n->n_kid; i++) {
        str slot = slot_name(n->kind, i);
        if (slot.n) {
            char key[32];
            snprintf(key, sizeof key, STR_FMT, STR_ARG(slot));
            json_key(w, key);
        } else if (!in_list) {
            in_list = true;
            json_key_open(w, "items", '[');
        }
        json(w, n->kid[i]);
    }
    if (in_list)
        json_close(w, ']');
    json_close(w, '}');
}

void ast_json(const ast *root, strbuf *out)
{
    json_writer w = {.out = out};
    json(&w, root);
}
