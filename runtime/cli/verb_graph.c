/* verb_graph.c - `weft graph`: a model file at one stage of its way to tokens. */
#include "compiler/plan_file.h"
#include "runtime/cli/inputs.h"
#include "runtime/cli/level_flags.h"
#include "runtime/api/api_device.h"
#include "runtime/cli/part_words.h"
#include "runtime/cli/planned.h"
#include "runtime/formats/out_file.h"
#include "runtime/jit/jit_library.h"
#include <inttypes.h>

enum {
    STAGE_AUTO,
    STAGE_AST,
    STAGE_GRAPH,
    STAGE_FUSED,
    STAGE_PLAN,
    STAGE_LLVM,
    STAGE_ASM,
    STAGE_OBJ
};
static const char *const stage_names[] = {"auto", "ast",  "graph", "fused",
                                          "plan", "llvm", "asm",   "obj"};
enum { FORMAT_TEXT, FORMAT_JSON, FORMAT_DOT, FORMAT_SVG, FORMAT_BINARY };

typedef struct {
    int stage, format;
    model_flags open;
    level_flags at;
    const char *entry, *out;
    int64_t sequences;
    bool full;
    flag_list skip;
    const char *dump_before, *dump_after;
    const char *outputs;
    int64_t bucket;
} graph_options;

/* clang-format off */
static const flag graph_flags[] = {
    MODEL_FLAG_ROW (graph_options, open, "the checkpoint; needed from stage graph on"),
    FLAG_ROW_CHOICE(graph_options, stage,   "stage",   NULL, "auto|ast|graph|fused|plan|llvm|asm|obj", "auto", "ast is the syntax tree, graph the bound graph, fused what the passes make of it for this processor, plan its steps, llvm, asm and obj the code for them; auto: graph with -m"),
    FLAG_ROW_CHOICE(graph_options, format,  "format",  NULL, "text|json|dot|svg|binary", "text", "how to show it; --json is --format json; binary: a plan as a file"),
    FLAG_ROW_STR   (graph_options, entry,   "entry",   NULL, "NAME", "decode", "the entry to show"),
    FLAG_ROW_INT   (graph_options, open.context, "ctx-size", "c", "N", "0", 0, 1 << 30, "the session's context; 0: the trained one"),
    BATCH_FLAG_ROW (graph_options, open, "512"),
    FLAG_ROW_INT   (graph_options, sequences, "parallel", "np", "N", "1", 1, 4096, "fused, plan: sequences"),
    FLAG_ROW_LIST  (graph_options, skip,    "skip-pass", NULL, "NAME", "fused: leave this pass out; several with commas between them"),
    FLAG_ROW_STR   (graph_options, dump_before, "dump-before", NULL, "NAME", NULL, "fused: show the graph as this pass finds it"),
    FLAG_ROW_STR   (graph_options, dump_after, "dump-after", NULL, "NAME", NULL, "fused: show the graph as this pass leaves it"),
    FLAG_ROW_BOOL  (graph_options, full,    "full",    NULL, "text: every layer, so that it can be read back"),
    KV_FLAG_ROW    (graph_options, open),
    ROUND_FLAG_ROW (graph_options, open),
    DEVICE_FLAG_ROWS(graph_options, open),
    LEVEL_FLAG_ROWS(graph_options, at),
    SLOT_FLAG_ROWS (graph_options, open),
    FLAG_ROW_STR   (graph_options, outputs, "outputs", NULL, "NAMES", "logits", "plan: which: logits,hidden,resid or resid.3"),
    FLAG_ROW_INT   (graph_options, bucket,  "bucket",  NULL, "N", "1", 1, 1 << 20, "plan as text, llvm, asm, obj: the steps for calls of N rows"),
    FLAG_ROW_STR   (graph_options, out,     "output",  "o", "FILE", NULL, "write there instead of to stdout"),
    FLAG_ROW_END   (graph_options),
};

static const char *const examples[] = {
    "weft graph models/llama.weft --stage ast",         "one node per line, indented",
    "weft graph -m model.gguf",                         "the graph; equal layers are folded",
    "weft graph -m model.gguf --format svg -o g.svg",   "a picture of one layer",
    "weft graph my.weft -m model.gguf --format json",   "with a model file of your own",
    "weft graph -m model.gguf --stage fused -v",        "what is computed together, and how long each pass took",
    "weft graph -m model.gguf --stage plan",            "the steps of one token, phase by phase",
    "weft graph -m model.gguf --stage plan --format binary -o p.plan", "a file for `weft eval --plan`",
    "weft graph -m model.gguf --stage asm",             "the code that --exec jit runs for one token",
    NULL,
};
/* clang-format on */

const verb_page graph_verb_page = {
    graph_flags,
    "The syntax tree is shown as parsed, before names and shapes are checked. The graph is what a "
    "checkpoint makes of the file: loops unrolled, sizes known; FILE may then be left out where "
    "the library has one that fits. Passes then mark what is computed together: nodes of one map "
    "are "
    "one expression, nodes of one chain are computed tile by tile, and nodes marked "
    "recompute are computed by every thread that needs them."
    " The plan is what this machine would run. In binary it is a file that `weft eval --plan` "
    "runs, "
    "with the same checkpoint, kind of machine and build of Weft. Of layers on two devices (-ngl) "
    "each part has its own graph and plan, shown one after the other."
    " Code is what LLVM makes of the plan: its own text, assembly, or an object file, which needs "
    "-o.",
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
    cli_report(c, c->dg);
    arena_destroy(a);
    return st;
}

static void show(const graph *g, const graph_options *o, int format, strbuf *out)
{
    if (format == FORMAT_TEXT)
        graph_print(g, !o->full, out);
    else
        (format == FORMAT_JSON ? graph_json : format == FORMAT_DOT ? graph_dot : graph_svg)(g, out);
}

/* ---- passes ---- */

typedef struct {
    cli *c;
    const graph_options *o;
    strbuf *out;
} pass_show;

static void show_before(void *ctx, const pass_row *p, const graph *g)
{
    pass_show *s = ctx;
    if (!s->o->dump_before || strcmp(s->o->dump_before, p->name) != 0)
        return;
    strbuf_add(s->out, "; before %s\n", p->name);
    show(g, s->o, FORMAT_TEXT, s->out);
}

static void show_after(void *ctx, const pass_row *p, const graph *g, bool changed, uint64_t ns)
{
    pass_show *s = ctx;
    cli_say_verbose(s->c, "%-16s %7.3f ms%s", p->name, (double)ns / 1e6,
                    changed ? "" : "  changes nothing");
    if (!s->o->dump_after || strcmp(s->o->dump_after, p->name) != 0)
        return;
    strbuf_add(s->out, "; %s %s\n", changed ? "after" : "nothing is changed by", p->name);
    if (changed)
        show(g, s->o, FORMAT_TEXT, s->out);
}

/* A pass that is to be shown must run. */
static weft_status check_dump(weft_diag *dg, const char *which, const char *name, const target *t)
{
    if (name && !pass_find(name))
        return weft_fail(dg, W1903, WEFT_NOWHERE, "%s: there is no pass '%s'", which, name);
    for (int i = 0; name && i < t->n_skip; i++)
        if (strcmp(t->skip[i], name) == 0)
            return weft_fail(dg, W1903, WEFT_NOWHERE, "%s: %s is left out", which, name);
    return WEFT_OK;
}

static bool has_logits(const graph *g)
{
    for (size_t i = 0; i < g->outputs.n; i++)
        if (str_eqz(g->outputs.at[i].name, "logits"))
            return true;
    return false;
}

/* What the passes make of a graph for t. */
static weft_status show_passes(cli *c, const graph_options *o, const graph *before, const target *t,
                               int format, strbuf *out)
{
    pass_show s = {c, o, out};
    pass_watch watch = {show_before, show_after, &s};
    graph *g;
    WEFT_TRY(plan_graph(c->dg, before, t, &watch, &g));
    if (!o->dump_before && !o->dump_after)
        show(g, o, format, out);
    graph_destroy(g);
    return WEFT_OK;
}

/* The same of each part, for the CPU and for the card. */
static weft_status show_parts(cli *c, const graph_options *o, const graph *before,
                              const target *cpu, const backend *card, int64_t layers, int format,
                              strbuf *out)
{
    graph_parts cut;
    weft_status st = WEFT_OK;
    if (format != FORMAT_TEXT)
        return weft_fail(c->dg, W1903, WEFT_NOWHERE,
                         "layers on two devices are several graphs, which are shown as text");
    WEFT_TRY(graph_cut(c->dg, before, cpu, layers, &cut));
    for (int i = 0; i < PLAN_PARTS_MAX && st == WEFT_OK; i++) {
        target t = *cpu;
        t.be = i == GRAPH_PART_CARD ? card : cpu->be;
        t.outputs = NULL; /* all that there are in the part */
        t.n_output = 0;
        if (!cut.part[i])
            continue;
        strbuf_add(out, "; for %s, %s\n", t.be->name, t.be->level);
        st = show_passes(c, o, cut.part[i], &t, format, out);
    }
    graph_parts_destroy(&cut);
    return st;
}

static weft_status show_fused(cli *c, const graph_options *o, const weft_model *m, arena *a,
                              int format, strbuf *out)
{
    const api_file *file = api_file_of(m);
    const graph *before = file->bound->graph;
    api_wanted w = {.how = model_flags_session(&o->open, NULL)};
    target t;
    w.how.sequences = o->sequences;
    w.how.context = file->bound_for ? file->bound_for : o->open.batch;
    w.skip = names_split(a, o->skip.at, o->skip.n, &w.n_skip);
    WEFT_TRY(level_flags_backend(c->dg, &o->at, &w.be));
    const backend *card = NULL;
    if (api_device_is_card(w.how.device) && w.how.device_layers >= 0) {
        if (w.be)
            return weft_fail(c->dg, W1904, WEFT_NOWHERE, "either --device or --target and --level");
        card = backend_card(w.how.device, api_rounding(&w.how));
        if (!card)
            return weft_fail(c->dg, W1603, WEFT_NOWHERE, "no kernels of %s round to bf16",
                             w.how.device);
    }
    const bool divided = card && api_device_divides(&w.how, graph_layers(before));
    w.be = card && !divided ? card : w.be;
    WEFT_TRY(api_target(c->dg, &w, &t));
    if (!has_logits(before)) /* what a session asks for; else all there are */
        t.outputs = NULL, t.n_output = 0;
    if (!t.be->fuses && (o->dump_before || o->dump_after))
        return weft_fail(c->dg, W1903, WEFT_NOWHERE, "WEFT_CPU=ref: no pass runs");
    WEFT_TRY(check_dump(c->dg, "--dump-before", o->dump_before, &t));
    WEFT_TRY(check_dump(c->dg, "--dump-after", o->dump_after, &t));
    return divided ? show_parts(c, o, before, &t, card, w.how.device_layers, format, out)
                   : show_passes(c, o, before, &t, format, out);
}

static weft_status show_graph(cli *c, const graph_options *o, int stage, int format, strbuf *out)
{
    api_source from = {.path = o->open.model,
                       .bind = {.arch = c->operand_n ? c->operand[0] : NULL,
                                .entry = o->entry,
                                .context = o->open.context}};
    weft_model *m = NULL;
    arena *a = arena_create();
    weft_status st = model_flags_check_kv(c->dg, &o->open);
    if (st == WEFT_OK)
        st = api_model_open(c->dg, &from, &m);
    if (st == WEFT_OK && stage == STAGE_FUSED)
        st = show_fused(c, o, m, a, format, out);
    else if (st == WEFT_OK)
        show(api_file_of(m)->bound->graph, o, format, out);
    cli_report(c, c->dg);
    arena_destroy(a);
    weft_model_close(m);
    return st;
}

/* The steps for calls of that many rows as code. */
static weft_status show_code(cli *c, const graph_options *o, int stage, const plan *p, strbuf *out)
{
    static const code_form forms[] = {
        [STAGE_LLVM] = CODE_LLVM, [STAGE_ASM] = CODE_ASM, [STAGE_OBJ] = CODE_OBJECT};
    const codegen *gen;
    if (o->bucket > p->n_tok_max)
        return weft_fail(c->dg, W1903, WEFT_NOWHERE,
                         "--bucket: the plan is for calls of up to %" PRId64 " rows", p->n_tok_max);
    code_job job = {.p = p,
                    .bucket = (int32_t)(plan_bucket_for(p, o->bucket) - p->bucket),
                    .pic = true,
                    .debug = true};
    WEFT_TRY(jit_library(c->dg, &gen));
    return gen->compile(c->dg, &job, forms[stage], out);
}

/* ---- plans ---- */

/* Where a part finds what earlier ones give. */
static void text_inputs(const plan_parts *parts, int32_t i, strbuf *out)
{
    for (int32_t k = 0; k < parts->part[i].n_in; k++) {
        const plan_input *in = &parts->part[i].in[k];
        const plan_output *o = &parts->part[in->part].p->output[in->output];
        strbuf_add(out, "given %s[%d] at arena+%" PRId64 "\n", o->name, (int)o->index, in->offset);
    }
}

static void text_plans(const plan_parts *parts, const graph_options *o, strbuf *out)
{
    for (int32_t i = 0; i < parts->n_part; i++) {
        strbuf_add(out, "%spart %d of %d: ", i ? "\n" : "", (int)i + 1, (int)parts->n_part);
        part_words(parts, i, out);
        strbuf_putc(out, '\n');
        text_inputs(parts, i, out);
        plan_text(parts->part[i].p, o->bucket, o->full, out);
    }
}

static void json_plans(const plan_parts *parts, model_hash hash, strbuf *out)
{
    json_writer w = {.out = out};
    json_open(&w, '{');
    json_key_open(&w, "parts", '[');
    for (int32_t i = 0; i < parts->n_part; i++) {
        const plan_part *x = &parts->part[i];
        json_open(&w, '{');
        part_keys(&w, x->p);
        json_key_open(&w, "inputs", '[');
        for (int32_t k = 0; k < x->n_in; k++) {
            json_open(&w, '{');
            json_key_int(&w, "part", x->in[k].part);
            json_key_int(&w, "output", x->in[k].output);
            json_key_int(&w, "offset", x->in[k].offset);
            json_close(&w, '}');
        }
        json_close(&w, ']');
        json_key(&w, "plan");
        plan_json(x->p, hash, out);
        json_close(&w, '}');
    }
    json_close(&w, ']');
    json_close(&w, '}');
    strbuf_putc(out, '\n');
}

/* Of layers on two devices: the plan of each part. */
static weft_status show_plans(weft_diag *dg, const graph_options *o, int stage, int format,
                              const planned *pl, strbuf *out)
{
    const plan_parts *parts = pl->made.run.parts;
    if (stage >= STAGE_LLVM || format == FORMAT_BINARY)
        return weft_fail(dg, W1611, WEFT_NOWHERE, "%s is for one device: %s has layers on two",
                         stage >= STAGE_LLVM ? "code" : "a plan file", pl->m->name);
    if (format == FORMAT_JSON)
        json_plans(parts, model_file_hash(api_file_of(pl->m)->file), out);
    else
        text_plans(parts, o, out);
    return WEFT_OK;
}

/* eval keeps every row, so a plan gives outputs of all. */
static weft_status show_steps(cli *c, const graph_options *o, int stage, int format, strbuf *out)
{
    model_flags f = o->open;
    arena *a = arena_create();
    planned_options want = {
        .entry = o->entry, .sequences = o->sequences, .wants = o->open.batch, .purpose = API_PLANS};
    planned pl = {0};
    weft_status st = WEFT_OK;
    f.arch = c->operand_n ? c->operand[0] : NULL;
    want.skip = names_split(a, o->skip.at, o->skip.n, &want.n_skip);
    want.outputs = names_split(a, &o->outputs, 1, &want.n_output);
    if (!want.n_output)
        st = weft_fail(c->dg, W1903, WEFT_NOWHERE, "--outputs names none");
    if (st == WEFT_OK)
        st = level_flags_backend(c->dg, &o->at, &want.be);
    if (st == WEFT_OK)
        st = planned_open(c->dg, &f, &want, &pl);
    if (st == WEFT_OK && pl.made.run.parts)
        st = show_plans(c->dg, o, stage, format, &pl, out);
    else if (st == WEFT_OK && stage >= STAGE_LLVM)
        st = show_code(c, o, stage, pl.made.p, out);
    else if (st == WEFT_OK && format == FORMAT_JSON)
        plan_json(pl.made.p, model_file_hash(api_file_of(pl.m)->file), out);
    else if (st == WEFT_OK && format == FORMAT_BINARY)
        plan_write(pl.made.p, model_file_hash(api_file_of(pl.m)->file), out);
    else if (st == WEFT_OK)
        plan_text(pl.made.p, o->bucket, o->full, out);
    planned_close(&pl);
    arena_destroy(a);
    return st;
}

int verb_graph(cli *c)
{
    const graph_options *o = c->options;
    bool dumps = o->dump_before || o->dump_after, passes = dumps || o->skip.n > 0;
    int stage = o->stage != STAGE_AUTO ? o->stage
                : passes               ? STAGE_FUSED
                : o->open.model        ? STAGE_GRAPH
                                       : STAGE_AST;
    int format = c->common.json ? FORMAT_JSON : o->format;
    strbuf out = {0};
    weft_status st;
    c->common.json = false; /* the document is the graph: messages go to stderr */
    if (stage == STAGE_AST && c->operand_n == 0)
        st = weft_fail(c->dg, W1904, WEFT_NOWHERE, "graph takes a model file, or -m MODEL");
    else if (stage == STAGE_AST && format >= FORMAT_DOT)
        st = weft_fail(c->dg, W1903, WEFT_NOWHERE, "a syntax tree is shown as text or json");
    else if (stage != STAGE_AST && !o->open.model)
        st = weft_fail(c->dg, W1903, WEFT_NOWHERE, "stage %s needs a checkpoint: -m MODEL",
                       stage_names[stage]);
    else if ((dumps && stage != STAGE_FUSED) || (passes && stage < STAGE_FUSED))
        st = weft_fail(c->dg, W1903, WEFT_NOWHERE, "passes run after stage graph: --stage fused");
    else if (dumps && format != FORMAT_TEXT)
        st = weft_fail(c->dg, W1903, WEFT_NOWHERE, "--dump-before and --dump-after show text");
    else if (stage == STAGE_PLAN && (format == FORMAT_DOT || format == FORMAT_SVG))
        st = weft_fail(c->dg, W1903, WEFT_NOWHERE, "a plan is shown as text, json or binary");
    else if (stage < STAGE_PLAN && format == FORMAT_BINARY)
        st = weft_fail(c->dg, W1903, WEFT_NOWHERE, "only a plan has a binary form: --stage plan");
    else if (stage >= STAGE_LLVM && format != FORMAT_TEXT)
        st = weft_fail(c->dg, W1903, WEFT_NOWHERE, "code is shown as text");
    else if (stage >= STAGE_LLVM && (o->at.target || o->at.level))
        st = weft_fail(c->dg, W1903, WEFT_NOWHERE, "code is shown for this processor");
    else if (stage == STAGE_OBJ && !o->out)
        st = weft_fail(c->dg, W1903, WEFT_NOWHERE, "an object is no text: it needs -o FILE");
    else if (stage >= STAGE_PLAN)
        st = show_steps(c, o, stage, format, &out);
    else
        st = stage == STAGE_AST ? show_ast(c, format == FORMAT_JSON, &out)
                                : show_graph(c, o, stage, format, &out);
    if (st == WEFT_OK) {
        bool text = stage != STAGE_OBJ && format != FORMAT_BINARY;
        if (text && !str_ends(strbuf_view(&out), STR("\n")))
            strbuf_putc(&out, '\n');
        if (o->out)
            st = out_file_write(c->dg, o->out, strbuf_view(&out));
        else
            cli_print(c, strbuf_view(&out));
    }
    strbuf_free(&out);
    return cli_exit_of(st);
}
