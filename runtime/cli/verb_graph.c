/* verb_graph.c - `weft graph`: a model file at one stage of its way to tokens. */
#include "dsl/dsl.h"
#include "runtime/cli/cli.h"
#include "runtime/cli/inputs.h"

enum { FORMAT_TEXT, FORMAT_JSON };

typedef struct {
    int stage, format;
} graph_options;

/* clang-format off */
static const flag graph_flags[] = {
    FLAG_ROW_CHOICE(graph_options, stage,  "stage",  NULL, "ast",       "ast",  "the stage; ast is the syntax tree"),
    FLAG_ROW_CHOICE(graph_options, format, "format", NULL, "text|json", "text", "how to show it; --json is --format json"),
    FLAG_ROW_END   (graph_options),
};

static const char *const examples[] = {
    "weft graph models/llama.weft --stage ast",        "one node per line, indented",
    "weft graph models/llama.weft --format json | jq", "with the place of every node",
    NULL,
};
/* clang-format on */

const verb_page graph_verb_page = {
    graph_flags,
    "The syntax tree is shown as parsed, before names and shapes are checked; a file with syntax "
    "errors has none.",
    examples,
};

int verb_graph(cli *c)
{
    const graph_options *o = c->options;
    arena *a = arena_create();
    strbuf out = {0};
    source *src;
    ast *root;
    weft_status st = input_open(c->dg, a, c->operand[0], &src);
    if (st == WEFT_OK)
        st = dsl_parse(c->dg, a, src, &root);
    if (st == WEFT_OK) {
        bool json = c->common.json || o->format == FORMAT_JSON;
        (json ? ast_json : ast_print)(root, &out);
        if (!str_ends(strbuf_view(&out), STR("\n")))
            strbuf_putc(&out, '\n');
        cli_print(c, strbuf_view(&out));
    }
    c->common.json = false; /* the document is the tree: messages go to stderr */
    cli_report(c, c->dg);
    strbuf_free(&out);
    arena_destroy(a);
    return cli_exit_of(st);
}
