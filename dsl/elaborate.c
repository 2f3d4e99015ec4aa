/* elaborate.c - the checker run again with a checkpoint: matching, binding, the graph. */
#include "dsl/sema.h"

static void set_host(sema *s, const dsl_host *host, const dsl_sink *sink)
{
    s->host = host;
    s->sink = sink;
    s->claimed = ARENA_ARRAY(s->a, unsigned char, (size_t)host->n_tensor + 1);
    sym *y = scope_find_here(s->base, STR("source"));
    y->v = (val){.kind = VAL_STR, .known = true, .text = host->gguf ? STR("gguf") : STR("hf")};
    y = scope_find_here(s->base, STR("session"));
    s->session_context = scope_find_here(y->v.scope, STR("context"));
    if (host->context > 0)
        s->session_context->v =
            (val){.kind = VAL_INT, .known = true, .size = poly_int(s->pp, host->context)};
    s->has_origin[ORIGIN_GGUF] = host->gguf;
    s->has_origin[ORIGIN_HF] = !host->gguf;
}

/* ---- matching ---- */

static int match_rank(sema *s, const ast *model, str arch)
{
    const ast *body = model->kid[MODEL_BODY];
    int best = 0;
    for (uint32_t i = 0; i < body->n_kid; i++) {
        const ast *n = body->kid[i];
        if (n->kind != AST_MATCH || str_eq(n->name, STR("gguf")) != s->host->gguf)
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

weft_status dsl_match(weft_diag *dg, const source *src, const dsl_host *host, str arch,
                      int *out_rank, str *out_model)
{
    arena *a = arena_create();
    ast *file;
    weft_status st = dsl_parse(dg, a, src, &file);
    if (st == WEFT_OK) {
        sema s;
        sema_init(&s, dg, a);
        set_host(&s, host, NULL);
        int best = 0;
        for (uint32_t i = FILE_ITEMS; i < file->n_kid; i++) {
            int rank = file->kid[i]->kind == AST_MODEL ? match_rank(&s, file->kid[i], arch) : 0;
            if (rank > best)
                *out_model = file->kid[i]->name;
            best = rank > best ? rank : best;
        }
        *out_rank = best;
        sema_deinit(&s);
    }
    arena_destroy(a);
    return st;
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

static void elaborate_model(sema *s, const ast *model, scope *names, str entry_name)
{
    const ast *body = model->kid[MODEL_BODY];
    s->names = s->model_names = scope_create(s->a, names);
    s->sink->model(s->sink->ctx, model->name, entry_name);
    other_arch(s, body);
    sema_sections(s, body, false);
    const ast *entry = find_named(s->dg, body, 0, AST_ENTRY, entry_name);
    if (diag_failed(s->dg) == s->n_failed && !s->stopped)
        bind_coverage(s, model);
    if (!entry || diag_failed(s->dg) > s->n_failed || s->stopped)
        return;
    s->names = s->model_names;
    sema_entry(s, entry);
}

weft_status dsl_elaborate(weft_diag *dg, const source *src, const elaborate_options *opt,
                          const dsl_host *host, const dsl_sink *sink)
{
    size_t errors = diag_errors(dg), failed = diag_failed(dg);
    if (!opt->checked)
        WEFT_TRY(sema_check(dg, src, opt->std_only, true));
    arena *a = arena_create();
    ast *file;
    weft_status st = dsl_parse(dg, a, src, &file);
    const ast *model =
        st == WEFT_OK ? find_named(dg, file, FILE_ITEMS, AST_MODEL, opt->model) : NULL;
    if (model) {
        sema s;
        sema_init(&s, dg, a);
        s.std_only = opt->std_only;
        s.n_failed = failed;
        s.sources = opt->home;
        scope *names = module_scope(&s, file, src);
        set_host(&s, host, sink);
        elaborate_model(&s, model, names, opt->entry.n ? opt->entry : STR("decode"));
        sema_deinit(&s);
    }
    arena_destroy(a);
    if (st == WEFT_OK && diag_failed(dg) > failed)
        st = diag_status(dg, errors);
    return st;
}
