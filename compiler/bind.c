/* bind.c - a checkpoint and its model file into a graph. */
#include "compiler/compiler.h"
#include "compiler/unread.h"

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

static weft_status choose_text(weft_diag *dg, const bind_options *opt, bound_model *bm,
                               dsl_file **out_f)
{
    if (!opt->like)
        return arch_choose(dg, bm->file, opt->arch, bm->a, &bm->text, out_f);
    const source *src = opt->like->text.src; /* places in the graph may outlive it */
    const char *name = arena_str(bm->a, str_of(src->name)).p;
    bm->text = opt->like->text;
    bm->text.src = source_from_text(bm->a, name, arena_str(bm->a, src->text));
    bm->text.model = arena_str(bm->a, opt->like->text.model);
    return dsl_open(dg, bm->text.src, bm->text.std_only, bm->a, out_f);
}

weft_status model_bind(weft_diag *dg, const model_file *mf, const bind_options *opt,
                       bound_model **out_bm)
{
    static const bind_options plain = {0};
    arena *a = arena_create();
    bound_model *bm = ARENA_NEW(a, bound_model);
    checkpoint cp;
    dsl_file *f = NULL;
    opt = opt ? opt : &plain;
    *bm = (bound_model){.a = a, .file = mf, .graph = graph_create()};
    checkpoint_init(&cp, a, mf);
    weft_status st = choose_text(dg, opt, bm, &f);
    if (st == WEFT_OK) {
        elaborate_options how = {.model = bm->text.model,
                                 .entry = opt->entry ? str_of(opt->entry) : STR(""),
                                 .context = opt->context,
                                 .checked = bm->text.checked,
                                 .home = a,
                                 .others = opt->others ? &bm->others : NULL,
                                 .sites = opt->sites ? &bm->sites : NULL};
        st = dsl_elaborate(dg, f, &how, &cp, bm->graph, &bm->settings);
    }
    if (st == WEFT_OK) {
        bm->text.checked = true;
        find_windows(bm->graph);
        warn_unread(dg, &cp, bm->text.src->name, bm->graph);
        *out_bm = bm;
    }
    dsl_close(f);
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
    VEC_FREE(&bm->settings.params);
    VEC_FREE(&bm->others.keys);
    VEC_FREE(&bm->others.weights);
    VEC_FREE(&bm->sites);
    arena_destroy(bm->a);
}

bool bound_model_context(const bound_model *bm, int64_t *out)
{
    if (bm->settings.context > 0)
        *out = bm->settings.context;
    return bm->settings.context > 0;
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
    double trained = (double)bm->settings.context;
    double reached = first_key(bm->file, factors, 1) * first_key(bm->file, originals, trained);
    if (bm->settings.context == 0 || bm->settings.context_asked || (double)context <= trained ||
        (double)context <= reached)
        return;
    weft_fail(dg, W1413, WEFT_NOWHERE,
              "a context of %lld tokens, but " STR_FMT " was trained for %lld: beyond them its "
              "output may make no sense",
              (long long)context, STR_ARG(bm->graph->model), (long long)bm->settings.context);
}

bool bound_model_int(const bound_model *bm, const char *name, int64_t *out)
{
    const value *v = bound_model_param(bm, name);
    return value_kind_of(v) == VALUE_INT && value_int(v, out);
}

const value *bound_model_param(const bound_model *bm, const char *name)
{
    for (size_t i = 0; i < bm->settings.params.n; i++) {
        const model_param *p = &bm->settings.params.at[i];
        if (str_eqz(p->name, name) && p->layer < 0)
            return &p->v;
    }
    return NULL;
}
