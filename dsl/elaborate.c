/* elaborate.c - the checker run again with a checkpoint: matching, binding, the graph. */
#include "dsl/bind_impl.h"

static void set_known(sym *y, val v)
{
    v.known = true;
    y->v = v;
}

void bind_init(binding *b, sema *s, checkpoint *cp)
{
    *b = (binding){.s = s,
                   .cp = cp,
                   .from = cp->gguf ? ORIGIN_GGUF : ORIGIN_HF,
                   .claimed =
                       ARENA_ARRAY(s->a, unsigned char, model_file_tensor_count(cp->file) + 1),
                   .rows_input = -1};
    set_known(scope_find_here(s->base, STR("source")),
              (val){.kind = VAL_STR, .text = cp->gguf ? STR("gguf") : STR("hf")});
    scope *session = scope_find_here(s->base, STR("session"))->v.scope;
    b->session_context = scope_find_here(session, STR("context"));
    s->has_origin[b->from] = true;
    s->bind = b;
}

void bind_deinit(binding *b)
{
    VEC_FREE(&b->ignores);
    VEC_FREE(&b->constants);
}

const char *bind_path(const binding *b)
{
    return b->cp->path;
}

void bind_table(binding *b, const ast *table)
{
    b->table = table;
}

/* ---- matching ---- */

static int match_rank(sema *s, const ast *model, str arch)
{
    const ast *body = model->kid[MODEL_BODY];
    int best = 0;
    for (uint32_t i = 0; i < body->n_kid; i++) {
        const ast *n = body->kid[i];
        if (n->kind != AST_MATCH || origin_of(n->name) != s->bind->from)
            continue;
        bool named = false;
        for (uint32_t k = 0; k < n->kid[MATCH_NAMES]->n_kid; k++)
            named |= str_eq(n->kid[MATCH_NAMES]->kid[k]->name, arch);
        if (!named)
            continue;
        const ast *condition = n->kid[MATCH_CONDITION];
        int holds =
            condition ? sema_known(s, sema_truth(s, condition, "the condition of a match")) : 1;
        int rank = holds != 1 ? 0 : condition ? 2 : 1;
        best = rank > best ? rank : best;
    }
    return best;
}

int dsl_match(weft_diag *dg, dsl_file *f, checkpoint *cp, str arch, str *out_model)
{
    sema s;
    binding b;
    sema_init(&s, dg, f);
    bind_init(&b, &s, cp);
    int best = 0;
    for (uint32_t i = FILE_ITEMS; i < f->tree->n_kid; i++) {
        const ast *n = f->tree->kid[i];
        int rank = n->kind == AST_MODEL ? match_rank(&s, n, arch) : 0;
        if (rank > best)
            *out_model = n->name;
        best = rank > best ? rank : best;
    }
    bind_deinit(&b);
    sema_deinit(&s);
    return best;
}

/* ---- elaborating ---- */

static const ast *find_named(weft_diag *dg, const ast *list, uint32_t first, ast_kind kind,
                             str name)
{
    const ast *only = NULL;
    int n = 0;
    for (uint32_t i = first; i < list->n_kid; i++) {
        if (list->kid[i]->kind != kind)
            continue;
        n++;
        only = list->kid[i];
        if (name.n && str_eq(only->name, name))
            return only;
    }
    const char *what = ast_kind_name(kind);
    if (name.n)
        weft_fail(dg, W0210, list->loc, "there is no %s `" STR_FMT "` here", what, STR_ARG(name));
    else if (n == 0)
        weft_fail(dg, W0210, list->loc, "there is no %s here", what);
    else if (n > 1)
        weft_fail(dg, W0210, list->loc, "there are %d %ss here, and the checkpoint fits none", n,
                  what);
    return name.n || n != 1 ? NULL : only;
}

static void elaborate_model(binding *b, const ast *model, scope *names, str entry_name)
{
    sema *s = b->s;
    const ast *body = model->kid[MODEL_BODY];
    s->names = b->model_names = scope_create(s->a, names);
    b->g->model = arena_str(b->g->a, model->name);
    b->g->entry = arena_str(b->g->a, entry_name);
    other_arch(b, body);
    sema_sections(s, body, false);
    const ast *entry = find_named(s->dg, body, 0, AST_ENTRY, entry_name);
    if (!bind_spoilt(b) && !s->stopped)
        bind_coverage(b, model);
    if (!entry || bind_spoilt(b) || s->stopped)
        return;
    s->names = b->model_names;
    sema_entry(s, entry);
}

weft_status dsl_elaborate(weft_diag *dg, dsl_file *f, const elaborate_options *opt, checkpoint *cp,
                          graph *g, model_settings *out_settings)
{
    size_t errors = diag_errors(dg), failed = diag_failed(dg);
    if (!opt->checked)
        WEFT_TRY(sema_check(dg, f, true));
    const ast *model = find_named(dg, f->tree, FILE_ITEMS, AST_MODEL, opt->model);
    if (model) {
        sema s;
        binding b;
        sema_init(&s, dg, f);
        scope *names = module_scope(&s, f->tree, f->src);
        bind_init(&b, &s, cp);
        b.g = g;
        b.settings = out_settings;
        b.others = opt->others;
        b.sites = opt->sites;
        b.home = opt->home;
        b.n_failed = failed;
        b.context = opt->context;
        if (b.context > 0)
            set_known(b.session_context, (val){.kind = VAL_INT, .size = poly_int(s.pp, b.context)});
        elaborate_model(&b, model, names, opt->entry.n ? opt->entry : STR("decode"));
        bind_deinit(&b);
        sema_deinit(&s);
    }
    return diag_failed(dg) > failed ? diag_status(dg, errors) : WEFT_OK;
}
