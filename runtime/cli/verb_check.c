/* verb_check.c - `weft check`: is a model file right, for every size a model may have? */
#include "dsl/dsl.h"
#include "runtime/cli/inputs.h"
#include "runtime/cli/report.h"

typedef struct {
    char none;
} check_options;

static const flag check_flags[] = {FLAG_ROW_END(check_options)};

/* clang-format off */
static const char *const examples[] = {
    "weft check models/llama.weft",          "silent when the file is right",
    "weft check -v models/*.weft",           "a line for each file",
    "weft check --json - < my.weft | jq",    "standard input; messages as JSON",
    NULL,
};
/* clang-format on */

const verb_page check_verb_page = {
    check_flags,
    "Checks names, types and shapes without any model: parameters stay symbols, so a file that "
    "passes is right for every size. All errors of a file are told, up to 50. `-` reads standard "
    "input.",
    examples,
};

static void check_file(cli *c, report *r, const char *operand)
{
    arena *a = arena_create();
    source *src;
    weft_status st = input_open(c->dg, a, operand, &src);
    if (st == WEFT_OK)
        st = dsl_check(c->dg, src);
    const char *name = input_name(operand);
    json_writer w = report_file(r, c, name, st == WEFT_OK); /* while the text it quotes is there */
    report_file_end(&w);
    cli_say_verbose(c, "%s: %s", name, st == WEFT_OK ? "ok" : "has errors");
    arena_destroy(a);
}

int verb_check(cli *c)
{
    report r = {0};
    for (int i = 0; i < c->operand_n; i++)
        check_file(c, &r, c->operand[i]);
    return report_finish(&r, c);
}
