/* bind.c - a checkpoint and its model file into a graph: the sink of the elaborator. */
#include "compiler/checkpoint.h"
#include "compiler/compiler.h"

static void *copy(arena *a, const void *from, size_t bytes)
{
    if (!from)
        return NULL;
    void *to = arena_alloc(a, bytes);
    memcpy(to, from, bytes);
    return to;
}

static void take_model(void *ctx, str name, str entry)
{
    graph *g = ((bound_model *)ctx)->graph;
    g->model = arena_str(g->a, name);
    g->entry = arena_str(g->a, entry);
}

static void take_param(void *ctx, str name, int64_t layer, const key_value *v)
{
    bound_model *bm = ctx;
    bound_param p = {.name = arena_str(bm->a, name), .layer = layer, .value = *v};
    p.value.text = arena_str(bm->a, v->text);
    VEC_PUSH(&bm->params, p);
}

static gweight copy_weight(arena *a, const dsl_weight *w)
{
    gweight out = *w;
    size_t n = 1;
    for (int i = 0; i < w->rank; i++)
        n *= (size_t)w->dim[i];
    out.name = arena_str(a, w->name);
    out.line = arena_str(a, w->line);
    out.piece = copy(a, w->piece, (size_t)w->n_piece * sizeof *w->piece);
    out.scales = copy(a, w->scales, (size_t)w->n_piece * sizeof *w->piece);
    out.computed = copy(a, w->computed, n * sizeof *w->computed);
    return out;
}

static int take_weight(void *ctx, const dsl_weight *w)
{
    graph *g = ((bound_model *)ctx)->graph;
    gweight out = copy_weight(g->a, w);
    VEC_PUSH(&g->weights, out);
    return (int)g->weights.n - 1;
}

static int take_constant(void *ctx, const dsl_const *c)
{
    graph *g = ((bound_model *)ctx)->graph;
    gconst out = *c;
    out.data = copy(g->a, c->data, (size_t)c->n * sizeof *c->data);
    VEC_PUSH(&g->consts, out);
    return (int)g->consts.n - 1;
}

static int take_cell(void *ctx, const dsl_cell *c)
{
    graph *g = ((bound_model *)ctx)->graph;
    gcell out = *c;
    out.name = arena_str(g->a, c->name);
    VEC_PUSH(&g->cells, out);
    return (int)g->cells.n - 1;
}

static int take_input(void *ctx, str name, const dsl_type *type)
{
    graph *g = ((bound_model *)ctx)->graph;
    ginput in = {arena_str(g->a, name), *type};
    VEC_PUSH(&g->inputs, in);
    return (int)g->inputs.n - 1;
}

static int take_node(void *ctx, const dsl_node *n, const dsl_type *types)
{
    graph *g = ((bound_model *)ctx)->graph;
    gnode out = *n;
    for (int i = 0; i < OP_ATTRS_MAX; i++)
        out.attr[i].word =
            n->attr[i].kind == GATTR_WORD ? arena_str(g->a, n->attr[i].word) : (str){0};
    return graph_add(g, &out, types, n->n_out);
}

static void take_output(void *ctx, const dsl_output *o)
{
    graph *g = ((bound_model *)ctx)->graph;
    goutput out = *o;
    out.name = arena_str(g->a, o->name);
    VEC_PUSH(&g->outputs, out);
}

static void take_other_arch(void *ctx, str arch)
{
    bound_model *bm = ctx;
    bm->other_arch = arena_str(bm->a, arch);
}

static void take_other_key(void *ctx, const dsl_other_key *k)
{
    bound_model *bm = ctx;
    dsl_other_key out = *k;
    out.key = arena_str(bm->a, k->key);
    out.value.text = arena_str(bm->a, k->value.text);
    VEC_PUSH(&bm->other_keys, out);
}

static void take_other_weight(void *ctx, const dsl_other_weight *w)
{
    bound_model *bm = ctx;
    dsl_other_weight out = *w;
    gweight *stored = ARENA_NEW(bm->a, gweight);
    *stored = copy_weight(bm->a, w->weight);
    out.weight = stored;
    out.name = arena_str(bm->a, w->name);
    VEC_PUSH(&bm->other_weights, out);
}

/* Retention follows use: a cell keeps the widest window of all that read it, or everything. */
static void find_windows(graph *g)
{
    int n_attr, window = -1;
    const attr_row *row = op_attrs(OP_attend, &n_attr);
    for (int i = 0; i < n_attr; i++)
        if (strcmp(row[i].name, "window") == 0)
            window = i;
    for (size_t pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < g->nodes.n; i++) {
            const gnode *n = &g->nodes.at[i];
            if (n->op != OP_attend)
                continue;
            gcell *c = &g->cells.at[graph_type(g, n->in[1])->cell];
            bool open = n->attr[window].kind == GATTR_NONE;
            if (pass == 1 && open)
                c->window = 0;
            else if (pass == 0 && !open && n->attr[window].integer > c->window)
                c->window = n->attr[window].integer;
        }
    }
}

static void take_context(void *ctx)
{
    ((bound_model *)ctx)->context_asked = true;
}

static void take_trained(void *ctx, int64_t context)
{
    bound_model *bm = ctx;
    if (bm->context == 0 && context > 0)
        bm->context = context;
}

static void free_lists(bound_model *bm)
{
    VEC_FREE(&bm->params);
    VEC_FREE(&bm->other_keys);
    VEC_FREE(&bm->other_weights);
}

static weft_status choose_text(weft_diag *dg, const bind_options *opt, bound_model *bm)
{
    if (!opt->like)
        return arch_choose(dg, bm->file, opt->arch, bm->a, &bm->text);
    const source *src = opt->like->text.src; /* messages may outlive it */
    const char *name = arena_str(bm->a, str_of(src->name)).p;
    bm->text = opt->like->text;
    bm->text.src = source_from_text(bm->a, name, arena_str(bm->a, src->text));
    bm->text.model = arena_str(bm->a, opt->like->text.model);
    return WEFT_OK;
}

weft_status model_bind(weft_diag *dg, const model_file *mf, const bind_options *opt,
                       bound_model **out_bm)
{
    static const bind_options plain = {0};
    arena *a = arena_create();
    bound_model *bm = ARENA_NEW(a, bound_model);
    elaborate_options how = {.home = a};
    checkpoint cp;
    opt = opt ? opt : &plain;
    *bm = (bound_model){.a = a, .file = mf};
    checkpoint_init(&cp, dg, a, mf, opt->context);
    weft_status st = choose_text(dg, opt, bm);
    if (st == WEFT_OK) {
        how.model = bm->text.model;
        how.std_only = bm->text.std_only;
        how.checked = bm->text.checked;
        bm->graph = graph_create();
        how.entry = opt->entry ? str_of(opt->entry) : STR("");
        dsl_sink sink = {.ctx = bm,
                         .model = take_model,
                         .param = take_param,
                         .weight = take_weight,
                         .constant = take_constant,
                         .cell = take_cell,
                         .input = take_input,
                         .node = take_node,
                         .output = take_output,
                         .context = take_context,
                         .trained = take_trained,
                         .other_arch = opt->others ? take_other_arch : NULL,
                         .other_key = opt->others ? take_other_key : NULL,
                         .other_weight = opt->others ? take_other_weight : NULL};
        st = dsl_elaborate(dg, bm->text.src, &how, &cp.host, &sink);
    }
    if (st == WEFT_OK) {
        bm->text.checked = true;
        find_windows(bm->graph);
        checkpoint_warn_unread(&cp, bm->text.src->name, bm->graph);
        *out_bm = bm;
    }
    checkpoint_deinit(&cp);
    if (st != WEFT_OK)
        bound_model_destroy(bm);
    return st;
}

void bound_model_destroy(bound_model *bm)
{
    if (!bm)
        return;
    graph_destroy(bm->graph);
    free_lists(bm);
    arena_destroy(bm->a);
}

bool bound_model_context(const bound_model *bm, int64_t *out)
{
    if (bm->context > 0)
        *out = bm->context;
    return bm->context > 0;
}

/* The first of these keys that is a number above 0; else `otherwise`. */
static double first_key(const model_file *mf, const char *const *keys, double otherwise)
{
    for (; *keys; keys++) {
        double number;
        int64_t whole;
        const value *v = model_file_key(mf, str_of(*keys));
        if (v && value_float(v, &number) && number > 0)
            return number;
        if (v && value_int(v, &whole) && whole > 0)
            return (double)whole;
    }
    return otherwise;
}

void bound_model_check_context(weft_diag *dg, const bound_model *bm, int64_t context)
{
    static const char *const factors[] = {"rope.scaling.factor",
                                          "rope.scale_linear",
                                          "rope_scaling.factor",
                                          "rope_parameters.factor",
                                          "rope_parameters.full_attention.factor",
                                          NULL};
    static const char *const originals[] = {
        "rope.scaling.original_context_length", "rope_scaling.original_max_position_embeddings",
        "original_max_position_embeddings", "rope_parameters.original_max_position_embeddings",
        NULL};
    double trained = (double)bm->context;
    double reached = first_key(bm->file, factors, 1) * first_key(bm->file, originals, trained);
    if (bm->context == 0 || bm->context_asked || (double)context <= trained ||
        (double)context <= reached)
        return;
    weft_fail(dg, W1413, WEFT_NOWHERE,
              "a context of %lld tokens, but " STR_FMT " was trained for %lld: beyond them its "
              "output may make no sense",
              (long long)context, STR_ARG(bm->graph->model), (long long)bm->context);
}

bool bound_model_int(const bound_model *bm, const char *name, int64_t *out)
{
    for (size_t i = 0; i < bm->params.n; i++) {
        const bound_param *p = &bm->params.at[i];
        if (str_eqz(p->name, name) && p->layer < 0 && p->value.kind == KEY_INT) {
            *out = p->value.integer;
            return true;
        }
    }
    return false;
}
