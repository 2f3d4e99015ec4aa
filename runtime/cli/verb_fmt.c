/* verb_fmt.c - `weft fmt`: the one canonical layout of a model file. */
#include "dsl/dsl.h"
#include "runtime/cli/inputs.h"
#include "runtime/cli/replace_file.h"
#include "runtime/cli/report.h"

typedef struct {
    bool check, write;
} fmt_options;

/* clang-format off */
static const flag fmt_flags[] = {
    FLAG_ROW_BOOL(fmt_options, check, "check", NULL, "list the files that would change; exit 1 if there are any"),
    FLAG_ROW_BOOL(fmt_options, write, "write", "w",  "replace the files that change"),
    FLAG_ROW_END (fmt_options),
};

static const char *const examples[] = {
    "weft fmt my.weft",                "print the file, laid out",
    "weft fmt --check models/*.weft",  "for continuous integration",
    "weft fmt --write models/*.weft",  "in place; a file that is right already is not touched",
    "weft fmt - < in.weft > out.weft", "a filter, as editors use it",
    NULL,
};
/* clang-format on */

const verb_page fmt_verb_page = {
    fmt_flags,
    "Comments and meaning stay; spaces, line breaks and columns do not. A file with syntax errors "
    "is "
    "left as it is. Replacing is atomic: a reader sees the old text or the new one.",
    examples,
};

/* The laid-out text and whether it differs; with --write the file has it afterwards. */
static weft_status fmt_text(cli *c, arena *a, const char *operand, strbuf *out, bool *out_changed)
{
    const fmt_options *o = c->options;
    source *src;
    WEFT_TRY(input_open(c->dg, a, operand, &src));
    WEFT_TRY(dsl_fmt(c->dg, src, out));
    *out_changed = !str_eq(src->text, strbuf_view(out));
    if (o->write && *out_changed)
        WEFT_TRY(replace_file(c->dg, operand, strbuf_view(out)));
    return WEFT_OK;
}

/* Returns whether the file's layout differs. */
static bool fmt_file(cli *c, report *r, const char *operand)
{
    const fmt_options *o = c->options;
    const char *name = input_name(operand);
    arena *a = arena_create();
    strbuf text = {0};
    bool changed = false;
    weft_status st = fmt_text(c, a, operand, &text, &changed);
    bool ok = st == WEFT_OK;

    json_writer w = report_file(r, c, name, ok);
    json_key_bool(&w, "changed", changed);
    if (ok && !o->check && !o->write) {
        json_key_str(&w, "text", strbuf_view(&text));
        if (!c->common.json)
            cli_print(c, strbuf_view(&text));
    }
    report_file_end(&w);
    if (ok && o->check && changed && !c->common.json) {
        cli_print(c, str_of(name));
        cli_print(c, STR("\n"));
    }
    if (ok && o->write)
        cli_say_verbose(c, "%s: %s", name, changed ? "rewritten" : "unchanged");
    strbuf_free(&text);
    arena_destroy(a);
    return changed;
}

static weft_status options_check(const cli *c)
{
    const fmt_options *o = c->options;
    if (o->check && o->write)
        return weft_fail(c->dg, W1903, WEFT_NOWHERE, "fmt: --check and --write exclude each other");
    for (int i = 0; i < c->operand_n; i++)
        if (o->write && input_is_stdin(c->operand[i]))
            return weft_fail(c->dg, W1904, WEFT_NOWHERE,
                             "fmt: --write cannot replace standard input");
    return WEFT_OK;
}

int verb_fmt(cli *c)
{
    const fmt_options *o = c->options;
    weft_status st = options_check(c);
    if (st != WEFT_OK)
        return cli_exit_of(st);
    report r = {0};
    bool changed = false;
    for (int i = 0; i < c->operand_n; i++)
        changed |= fmt_file(c, &r, c->operand[i]);
    int exit_status = report_finish(&r, c);
    return exit_status == CLI_DONE && o->check && changed ? CLI_FAILED : exit_status;
}
