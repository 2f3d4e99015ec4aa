/* verb_check.c - `weft check`: is a model file right, for every size a model may have, or for one
 * checkpoint in particular? */
#include "runtime/api/api_open.h"
#include "runtime/cli/inputs.h"
#include "runtime/cli/report.h"

typedef struct {
    const char *model;
    int64_t context;
} check_options;

/* clang-format off */
static const flag check_flags[] = {
    FLAG_ROW_STR(check_options, model,   "model",   "m", "MODEL", NULL, "bind the file to this checkpoint too"),
    FLAG_ROW_INT(check_options, context, "ctx-size", "c", "N", "0", 0, 1 << 30, "with -m: the session's context; 0: the trained one"),
    FLAG_ROW_END(check_options),
};

static const char *const examples[] = {
    "weft check models/llama.weft",          "silent when the file is right",
    "weft check -v models/*.weft",           "a line for each file",
    "weft check --json - < my.weft | jq",    "standard input; messages as JSON",
    "weft check my.weft -m model.gguf",      "every parameter read, every tensor claimed",
    "weft check -m model.gguf --json | jq",  "the library's file for it; every shape",
    NULL,
};
/* clang-format on */

const verb_page check_verb_page = {
    check_flags,
    "Checks names, types and shapes without any model: parameters stay symbols, so a file that "
    "passes is right for every size. All errors of a file are reported, up to 50. `-` reads "
    "standard "
    "input. With -m the file is bound to a checkpoint: parameters become numbers, every tensor "
    "must "
    "be claimed and fit; no weights are read.",
    examples,
};

static void check_file(cli *c, report *r, const char *operand)
{
    arena *a = arena_create();
    source *src;
    weft_status st = input_open(c->dg, a, operand, &src);
    if (st == WEFT_OK)
        st = dsl_check(c->dg, src, false);
    const char *name = input_name(operand);
    json_writer w = report_file(r, c, name, st == WEFT_OK);
    report_file_end(&w);
    cli_say_verbose(c, "%s: %s", name, st == WEFT_OK ? "ok" : "has errors");
    arena_destroy(a);
}

/* ---- with a checkpoint ---- */

static void json_shape(json_writer *w, int rank, const int64_t *dim)
{
    static const char *const symbol[] = {"T", "R", "S"};
    json_key_open(w, "shape", '[');
    for (int i = 0; i < rank; i++) {
        if (dim[i] >= 0)
            json_int(w, dim[i]);
        else
            json_str(w, str_of(symbol[-1 - dim[i]]));
    }
    json_close(w, ']');
}

static void json_weights(json_writer *w, const bound_model *bm)
{
    json_key_open(w, "weights", '[');
    for (size_t i = 0; i < bm->graph->weights.n; i++) {
        const gweight *g = &bm->graph->weights.at[i];
        json_open(w, '{');
        json_key_str(w, "name", g->name);
        json_key_text(w, "type", dtype_row_of(g->type)->name);
        json_shape(w, g->rank, g->dim);
        json_key_open(w, "tensors", '[');
        for (int k = 0; k < g->n_piece; k++)
            json_str(w, model_file_tensor_at(bm->file, (size_t)g->piece[k].tensor)->name);
        json_close(w, ']');
        json_close(w, '}');
    }
    json_close(w, ']');
}

static void json_values(json_writer *w, const graph *g)
{
    json_key_open(w, "values", '[');
    for (size_t i = 0; i < g->nodes.n; i++) {
        const gnode *n = &g->nodes.at[i];
        for (int k = 0; k < n->n_out; k++) {
            const gtype *t = &g->values.at[n->first + k].type;
            json_open(w, '{');
            json_key_text(w, "op", op_row_of(n->op)->name);
            json_key_int(w, "line", source_find(n->loc.src, n->loc.begin).line);
            json_key_int(w, "layer", n->layer);
            json_key_str(w, "dtype", t->cell >= 0 ? STR("cell") : t->ids ? STR("i32") : STR("f"));
            json_shape(w, t->rank, t->dim);
            json_close(w, '}');
        }
    }
    json_close(w, ']');
}

static int check_bound(cli *c, const check_options *o)
{
    report r = {0};
    weft_model *m = NULL;
    const char *arch = c->operand_n ? c->operand[0] : NULL;
    api_source from = {.path = o->model, .bind = {.arch = arch, .context = o->context}};
    weft_status st = api_model_open(c->dg, &from, &m);
    const char *name = arch            ? arch
                       : st == WEFT_OK ? api_file_of(m)->bound->text.src->name
                                       : o->model;
    json_writer w = report_file(&r, c, name, st == WEFT_OK);
    if (st == WEFT_OK) {
        json_key_text(&w, "model", o->model);
        const graph *g = api_file_of(m)->bound->graph;
        json_weights(&w, api_file_of(m)->bound);
        json_values(&w, g);
        cli_say_verbose(c, "%s: binds %s: %zu tensors, %zu weights, %zu nodes", name, o->model,
                        model_file_tensor_count(api_file_of(m)->file), g->weights.n, g->nodes.n);
    }
    report_file_end(&w);
    weft_model_close(m);
    return report_finish(&r, c);
}

int verb_check(cli *c)
{
    const check_options *o = c->options;
    report r = {0};
    if (c->operand_n == 0 && !o->model)
        return cli_exit_of(
            weft_fail(c->dg, W1904, WEFT_NOWHERE, "check takes a model file, or -m MODEL"));
    if (c->operand_n > 1 && o->model)
        return cli_exit_of(
            weft_fail(c->dg, W1904, WEFT_NOWHERE, "with -m check takes one model file"));
    if (o->model)
        return check_bound(c, o);
    for (int i = 0; i < c->operand_n; i++)
        check_file(c, &r, c->operand[i]);
    return report_finish(&r, c);
}
