/* verb_graph.c - `weft graph`: a model file at one stage of its way to tokens. */
#include "compiler/compiler.h"
#include "runtime/cli/cli.h"
#include "runtime/cli/inputs.h"
#include "runtime/formats/out_file.h"

enum { STAGE_AUTO, STAGE_AST, STAGE_GRAPH };
enum { FORMAT_TEXT, FORMAT_JSON, FORMAT_DOT, FORMAT_SVG };

typedef struct {
    int stage, format;
    const char *model, *entry, *out;
    int64_t context;
    bool full;
} graph_options;

/* clang-format off */
static const flag graph_flags[] = {
    FLAG_ROW_STR   (graph_options, model,   "model",   "m", "MODEL", NULL, "the checkpoint; needed from stage graph on"),
    FLAG_ROW_CHOICE(graph_options, stage,   "stage",   NULL, "auto|ast|graph", "auto", "ast is the syntax tree, graph the bound graph; auto: graph with -m"),
    FLAG_ROW_CHOICE(graph_options, format,  "format",  NULL, "text|json|dot|svg", "text", "how to show it; --json is --format json"),
    FLAG_ROW_STR   (graph_options, entry,   "entry",   NULL, "NAME", "decode", "the entry to show"),
    FLAG_ROW_INT   (graph_options, context, "context", "c", "N", "0", 0, 1 << 30, "the session's context; 0: the trained one"),
    FLAG_ROW_BOOL  (graph_options, full,    "full",    NULL, "text: every layer, so that it can be read back"),
    FLAG_ROW_STR   (graph_options, out,     "output",  "o", "FILE", NULL, "write there instead of to stdout"),
    FLAG_ROW_END   (graph_options),
};

static const char *const examples[] = {
    "weft graph models/llama.weft --stage ast",         "one node per line, indented",
    "weft graph -m model.gguf",                         "the graph; equal layers are folded",
    "weft graph -m model.gguf --format svg -o g.svg",   "a picture of one layer",
    "weft graph my.weft -m model.gguf --format json",   "with a model file of your own",
    NULL,
};
/* clang-format on */

const verb_page graph_verb_page = {
    graph_flags,
    "The syntax tree is shown as parsed, before names and shapes are checked. The graph is what a "
    "checkpoint makes of the file: loops unrolled, sizes known; FILE may then be left out where "
    "the "
    "library has one that fits.",
    examples,
};

static weft_status show_ast(cli *c, bool json, strbuf *out)
{
    arena *a = arena_create();
    source *src;
    ast *root;
    weft_status st = input_open(c->dg, a, c->operand[0], &src);
    if (st == WEFT_OK)
        st = dsl_parse(c->dg, a, src, &root);
    if (st == WEFT_OK)
        (json ? ast_json : ast_print)(root, out);
    cli_report(c, c->dg); /* while the text it quotes is there */
    arena_destroy(a);
    return st;
}

static weft_status show_graph(cli *c, const graph_options *o, int format, strbuf *out)
{
    bind_options how = {
        .arch = c->operand_n ? c->operand[0] : NULL, .entry = o->entry, .context = o->context};
    model_file *mf = NULL;
    bound_model *bm = NULL;
    weft_status st = model_file_open(c->dg, o->model, NULL, &mf);
    if (st == WEFT_OK)
        st = model_bind(c->dg, mf, &how, &bm);
    if (st == WEFT_OK) {
        if (format == FORMAT_TEXT)
            graph_print(bm->graph, !o->full, out);
        else
            (format == FORMAT_JSON  ? graph_json
             : format == FORMAT_DOT ? graph_dot
                                    : graph_svg)(bm->graph, out);
    }
    cli_report(c, c->dg);
    bound_model_destroy(bm);
    model_file_close(mf);
    return st;
}

static weft_status write_out(weft_diag *dg, const char *path, str text)
{
    out_file *f;
    WEFT_TRY(out_file_create(dg, path, &f));
    weft_status st = out_file_put(dg, f, text.p, text.n);
    if (st == WEFT_OK)
        st = out_file_finish(dg, f);
    out_file_destroy(f);
    return st;
}

int verb_graph(cli *c)
{
    const graph_options *o = c->options;
    int stage = o->stage != STAGE_AUTO ? o->stage : o->model ? STAGE_GRAPH : STAGE_AST;
    int format = c->common.json ? FORMAT_JSON : o->format;
    strbuf out = {0};
    weft_status st;
    c->common.json = false; /* the document is the graph: messages go to stderr */
    if (stage == STAGE_AST && c->operand_n == 0)
        st = weft_fail(c->dg, W1904, WEFT_NOWHERE, "graph takes a model file, or -m MODEL");
    else if (stage == STAGE_AST && format >= FORMAT_DOT)
        st = weft_fail(c->dg, W1903, WEFT_NOWHERE, "a syntax tree is shown as text or json");
    else if (stage == STAGE_GRAPH && !o->model)
        st = weft_fail(c->dg, W1903, WEFT_NOWHERE, "stage graph needs a checkpoint: -m MODEL");
    else
        st = stage == STAGE_AST ? show_ast(c, format == FORMAT_JSON, &out)
                                : show_graph(c, o, format, &out);
    if (st == WEFT_OK) {
        if (!str_ends(strbuf_view(&out), STR("\n")))
            strbuf_putc(&out, '\n');
        if (o->out)
            st = write_out(c->dg, o->out, strbuf_view(&out));
        else
            cli_print(c, strbuf_view(&out));
    }
    strbuf_free(&out);
    return cli_exit_of(st);
}
