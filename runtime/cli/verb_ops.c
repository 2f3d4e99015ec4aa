/* verb_ops.c - `weft ops`: the operators, from the table the checker itself reads. */
#include "dsl/ops.h"
#include "runtime/base/json_write.h"
#include "runtime/cli/cli.h"

enum { NAME_WIDTH = 14, COLUMNS = 90 };

typedef struct {
    bool markdown;
} ops_options;

/* clang-format off */
static const flag ops_flags[] = {
    FLAG_ROW_BOOL(ops_options, markdown, "markdown", NULL, "print the whole reference page"),
    FLAG_ROW_END (ops_options),
};

static const char *const examples[] = {
    "weft ops",             "a line for each",
    "weft ops attend rope", "all about these two",
    "weft ops --markdown",  "the reference page, as dsl/OPS.md has it",
    NULL,
};
/* clang-format on */

const verb_page ops_verb_page = {
    ops_flags,
    "Knows the operators, what the library adds to them, and the kinds, transforms and built-in "
    "functions of the language.",
    examples,
};

static void put_entry(strbuf *out, const char *name, const char *meaning, const char *file,
                      bool runs)
{
    strbuf text = {0};
    strbuf_add(&text, "%s%s%s%s", runs ? "" : "(no kernel yet) ", meaning, file ? "; in std." : "",
               file ? file : "");
    strbuf_add(out, "%-*s  ", NAME_WIDTH, name);
    flags_wrap(text.p, NAME_WIDTH + 2, NAME_WIDTH + 2, COLUMNS, out);
    strbuf_putc(out, '\n');
    strbuf_free(&text);
}

static void print_list(strbuf *out)
{
    int lib_n;
    const lib_row *libs = lib_rows(&lib_n);
    for (int i = 0; i < OP_COUNT; i++)
        put_entry(out, op_row_of((op_code)i)->name, op_row_of((op_code)i)->meaning, NULL,
                  op_row_of((op_code)i)->runs != RUNS_NONE);
    for (int i = 0; i < lib_n; i++)
        put_entry(out, libs[i].name, libs[i].meaning, libs[i].file, true);
}

static void json_attr(json_writer *w, const attr_row *attr)
{
    static const char *const types[] = {
        [ATTR_INT] = "int",       [ATTR_FLOAT] = "float", [ATTR_BOOL] = "bool",
        [ATTR_VECTOR] = "vector", [ATTR_WORD] = "word",
    };
    json_open(w, '{');
    json_key_text(w, "name", attr->name);
    json_key_text(w, "type", types[attr->type]);
    json_key_text(w, "default", attr->otherwise);
    json_key_text(w, "words", attr->type == ATTR_WORD ? attr->words : NULL);
    json_key_text(w, "meaning", attr->meaning);
    json_close(w, '}');
}

static void json_op(json_writer *w, const op_row *op)
{
    json_open(w, '{');
    json_key_text(w, "name", op->name);
    json_key_int(w, "tier", op->tier);
    json_key_text(w, "operands", op->operands);
    json_key_text(w, "result", op->result);
    json_key_text(w, "meaning", op->meaning);
    json_key_bool(w, "runs", op->runs != RUNS_NONE);
    json_key_open(w, "attributes", '[');
    int n;
    const attr_row *attrs = op_attrs(op->code, &n);
    for (int i = 0; i < n; i++)
        json_attr(w, &attrs[i]);
    json_close(w, ']');
    json_close(w, '}');
}

static bool asked_for(const cli *c, const char *name)
{
    for (int i = 0; i < c->operand_n; i++)
        if (strcmp(c->operand[i], name) == 0)
            return true;
    return c->operand_n == 0;
}

/* One object; members are keys and texts in turn, up to a NULL key. */
static void json_row(json_writer *w, const char *const *members)
{
    json_open(w, '{');
    for (; *members; members += 2)
        json_key_text(w, members[0], members[1]);
    json_close(w, '}');
}

/* A table of ops.h as an array: what of it was asked for. */
#define JSON_TABLE(w, c, key, noun, ...)                                                           \
    do {                                                                                           \
        int n_;                                                                                    \
        const noun##_row *r = noun##_rows(&n_);                                                    \
        json_key(w, key);                                                                          \
        json_open(w, '[');                                                                         \
        for (; n_ > 0; n_--, r++)                                                                  \
            if (asked_for(c, r->name))                                                             \
                json_row(w, (const char *const[]){"name", r->name, __VA_ARGS__, NULL});            \
        json_close(w, ']');                                                                        \
    } while (0)

static void print_json(const cli *c, strbuf *out)
{
    json_writer w = {.out = out};
    json_open(&w, '{');
    json_key_open(&w, "ops", '[');
    for (int i = 0; i < OP_COUNT; i++)
        if (asked_for(c, op_row_of((op_code)i)->name))
            json_op(&w, op_row_of((op_code)i));
    json_close(&w, ']');
    /* clang-format off */
    JSON_TABLE(&w, c, "library",    lib,       "file", r->file, "operands", r->operands, "meaning", r->meaning);
    JSON_TABLE(&w, c, "kinds",      kind,      "stored", r->stored, "meaning", r->meaning);
    JSON_TABLE(&w, c, "cells",      cell,      "arguments", r->arguments, "holds", r->holds, "writer", r->writer, "reader", r->reader);
    JSON_TABLE(&w, c, "modifiers",  modifier,  "takes", r->takes, "meaning", r->meaning);
    JSON_TABLE(&w, c, "transforms", transform, "arguments", r->arguments, "meaning", r->meaning);
    JSON_TABLE(&w, c, "builtins",   builtin,   "meaning", r->meaning);
    /* clang-format on */
    json_close(&w, '}');
    strbuf_putc(out, '\n');
}

static weft_status fail_unknown(cli *c, const char *name)
{
    weft_status st = weft_fail(c->dg, W0203, WEFT_NOWHERE, "ops: no op is called '%s'", name);
    str_guess guess = {0};
    for (int i = 0; i < OP_COUNT; i++)
        str_guess_try(&guess, str_of(name), str_of(op_row_of((op_code)i)->name));
    int n;
    const lib_row *libs = lib_rows(&n);
    GUESS_ROWS(&guess, str_of(name), libs, n);
    weft_suggest(c->dg, &guess);
    return st;
}

/* What is said about each name asked for; the first unknown one stops it. */
static weft_status describe_all(cli *c, strbuf *out)
{
    for (int i = 0; i < c->operand_n; i++) {
        if (i)
            strbuf_putc(out, '\n');
        if (!ops_describe(str_of(c->operand[i]), out))
            return fail_unknown(c, c->operand[i]);
    }
    return WEFT_OK;
}

int verb_ops(cli *c)
{
    const ops_options *o = c->options;
    if (o->markdown && (c->operand_n || c->common.json))
        return cli_exit_of(weft_fail(c->dg, W1904, WEFT_NOWHERE,
                                     "ops: --markdown is the whole page, without names or --json"));
    strbuf out = {0};
    weft_status st = describe_all(c, &out);
    if (st == WEFT_OK && c->common.json) {
        strbuf_reset(&out);
        print_json(c, &out);
    } else if (o->markdown) {
        ops_page(&out);
    } else if (c->operand_n == 0) {
        print_list(&out);
    }
    if (st == WEFT_OK)
        cli_print_all(c, &out);
    return cli_exit_of(st);
}
