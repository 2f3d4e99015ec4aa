/* verb_help.c - `weft help`: the pages, made from the tables of verbs and flags. */
#include "runtime/base/json_write.h"
#include "runtime/cli/pages.h"

enum { HELP_COLUMNS = 90, COMMAND_WIDTH_MAX = 50 };

enum { SHELL_NONE, SHELL_BASH, SHELL_ZSH };

typedef struct {
    int completion;
    bool man;
} help_options;

/* clang-format off */
static const flag help_flags[] = {
    FLAG_ROW_CHOICE(help_options, completion, "completion", NULL, "none|bash|zsh", "none", "print the completion script of a shell"),
    FLAG_ROW_BOOL  (help_options, man,        "man",        NULL, "print the man page, for man(1) to show"),
    FLAG_ROW_END   (help_options),
};
/* clang-format on */

static const char *const examples[] = {
    "weft help",
    "the list of verbs",
    "weft help check",
    "one verb; `weft check --help` is the same",
    "weft help --json",
    "every verb and flag, for editors and shells",
    "weft help --completion bash >>~/.bashrc",
    "complete verbs, flags and files; an installed Weft does so by itself",
    "weft help check --man | man -l -",
    "the same page as man shows it",
    NULL,
};

const verb_page help_verb_page = {help_flags, NULL, examples};

static void put_rows(strbuf *out, const char *left, const char *right, size_t width)
{
    strbuf_add(out, "  %-*s  ", (int)width, left);
    flags_wrap(right, width + 4, width + 4, HELP_COLUMNS, out);
    strbuf_putc(out, '\n');
}

static void print_overview(strbuf *out)
{
    strbuf_add(out, "Weft compiles language models; a .weft file describes an architecture.\n\n");
    strbuf_add(out, "usage: weft VERB [FLAGS] [OPERANDS]\n\nverbs:\n");
    size_t width = 0;
    for (size_t i = 0; i < verb_n; i++)
        width = strlen(verbs[i].name) > width ? strlen(verbs[i].name) : width;
    for (size_t i = 0; i < verb_n; i++)
        put_rows(out, verbs[i].name, verbs[i].summary, width);
    strbuf_add(out, "\nflags of every verb:\n");
    flags_print(cli_common_flags, HELP_COLUMNS, out);
    strbuf_add(out, "\n`weft help VERB` explains a verb. Exit status: 0 done, 1 an error in the "
                    "work, 2 a mistake\non the command line, 130 interrupted.\n");
}

static void print_verb(strbuf *out, const verb *v)
{
    const verb_page *p = v->page;
    strbuf_add(out, "weft %s - %s\n\n", v->name, v->summary);
    strbuf_add(out, "usage: weft %s [FLAGS]%s%s\n", v->name, *v->operands ? " " : "", v->operands);
    if (p->about) {
        strbuf_putc(out, '\n');
        flags_wrap(p->about, 0, 0, HELP_COLUMNS, out);
        strbuf_putc(out, '\n');
    }
    if (p->flags->name) {
        strbuf_add(out, "\nflags:\n");
        flags_print(p->flags, HELP_COLUMNS, out);
    }
    strbuf_add(out, "\nflags of every verb:\n");
    flags_print(cli_common_flags, HELP_COLUMNS, out);
    strbuf_add(out, "\nexamples:\n");
    size_t width = 0;
    for (const char *const *e = p->examples; *e; e += 2)
        width = strlen(*e) > width ? strlen(*e) : width;
    for (const char *const *e = p->examples; *e; e += 2)
        if (width <= COMMAND_WIDTH_MAX)
            put_rows(out, e[0], e[1], width);
        else /* too long to stand beside its meaning */
            strbuf_add(out, "  %s\n      %s\n", e[0], e[1]);
}

static void json_flags(json_writer *w, const flag *rows)
{
    static const char *const kinds[] = {"bool", "int", "size", "float", "string", "choice", "list"};
    json_key_open(w, "flags", '[');
    for (const flag *r = rows; r->name; r++) {
        json_open(w, '{');
        json_key_text(w, "name", r->name);
        json_key_text(w, "brief", r->brief);
        json_key_text(w, "kind", kinds[r->kind]);
        json_key_text(w, "value", r->value);
        json_key_text(w, "default", r->initial);
        json_key_text(w, "help", r->help);
        json_close(w, '}');
    }
    json_close(w, ']');
}

/* Every verb, or the one asked for. */
static void print_json(strbuf *out, const verb *only)
{
    json_writer w = {.out = out};
    json_open(&w, '{');
    json_key_open(&w, "verbs", '[');
    for (size_t i = 0; i < verb_n; i++) {
        if (only && only != &verbs[i])
            continue;
        json_open(&w, '{');
        json_key_text(&w, "name", verbs[i].name);
        json_key_text(&w, "operands", verbs[i].operands);
        json_key_text(&w, "summary", verbs[i].summary);
        json_flags(&w, verbs[i].page->flags);
        json_close(&w, '}');
    }
    json_close(&w, ']');
    json_flags(&w, cli_common_flags);
    json_close(&w, '}');
    strbuf_putc(out, '\n');
}

int verb_help(cli *c)
{
    /* --help of another verb comes here too, with that verb's options */
    static const help_options none = {0};
    const help_options *o = c->verb->run == verb_help ? c->options : &none;
    const verb *v = NULL;
    if (o->completion && (o->man || c->operand_n || c->common.json))
        return cli_exit_of(weft_fail(c->dg, W1904, WEFT_NOWHERE,
                                     "help: --completion stands alone: it covers every verb"));
    if (o->man && c->common.json)
        return cli_exit_of(
            weft_fail(c->dg, W1904, WEFT_NOWHERE, "help: --man and --json exclude each other"));
    if (c->operand_n) {
        v = verb_find(str_of(c->operand[0]));
        if (!v)
            return cli_exit_of(verb_unknown(c->dg, c->operand[0]));
    }
    strbuf out = {0};
    if (o->completion == SHELL_BASH)
        complete_bash(&out);
    else if (o->completion == SHELL_ZSH)
        complete_zsh(&out);
    else if (o->man)
        man_page(&out, v);
    else if (c->common.json)
        print_json(&out, v);
    else if (v)
        print_verb(&out, v);
    else
        print_overview(&out);
    cli_print_all(c, &out);
    return CLI_DONE;
}
