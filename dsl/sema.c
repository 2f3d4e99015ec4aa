/* sema.c - a whole file: its imports, blocks, fragments and models. */
#include "dsl/sema.h"

bool sema_step(sema *s, weft_loc at, int64_t cost)
{
    enum { SCANS_PER_STEP = 64, TERMS_PER_STEP = 16 }; /* what each costs, in rough measure */
    if (s->stopped)
        return false;
    s->n_step += cost < DSL_EXPAND_MAX ? cost : DSL_EXPAND_MAX + 1; /* n_step is below the limit */
    uint64_t beside = s->n_scan / SCANS_PER_STEP + poly_spent(s->pp) / TERMS_PER_STEP;
    if (s->n_step + (int64_t)beside > DSL_EXPAND_MAX) {
        weft_fail(s->dg, W1103, at,
                  "checking takes more than %d steps; blocks, fragments or sizes expand too far",
                  DSL_EXPAND_MAX);
        s->stopped = true;
    } else if (arena_bytes(s->a) + arena_bytes(s->file->a) > DSL_BYTES_MAX) {
        weft_fail(s->dg, W1103, at,
                  "checking takes more than %d MiB; blocks, fragments or sizes expand too far",
                  DSL_BYTES_MAX >> 20);
        s->stopped = true;
    } else if (s->depth > SEMA_DEPTH_MAX) {
        weft_fail(s->dg, W1102, at, "calls and expressions nest too deeply");
        s->stopped = true;
    }
    return !s->stopped;
}

static const poly *base_size(sema *s, const char *name)
{
    const poly *p = poly_symbol(s->pp, name, str_of(name));
    scope_add(s->base, str_of(name), SYM_BASE, (val){.kind = VAL_INT, .known = true, .size = p},
              WEFT_NOWHERE);
    return p;
}

void sema_init(sema *s, weft_diag *dg, dsl_file *f)
{
    arena *a = arena_create();
    *s = (sema){.dg = dg, .a = a, .file = f, .layer = -1};
    s->pp = poly_pool_create(a);
    s->cp = cond_pool_create(a, s->pp);
    s->base = s->names = scope_create(a, NULL);
    s->guard = cond_bool(s->cp, true);
    s->T = base_size(s, "T");
    s->R = base_size(s, "R");
    s->S = base_size(s, "S");
    val pi = {.kind = VAL_FLOAT, .known = true, .number = 3.14159265358979323846};
    scope_add(s->base, STR("pi"), SYM_BASE, pi, WEFT_NOWHERE);
    scope_add(s->base, STR("source"), SYM_BASE, (val){.kind = VAL_STR, .who = s}, WEFT_NOWHERE);
    scope *session = scope_create(a, NULL);
    const char *const knows[] = {"context", "rollback"};
    for (size_t i = 0; i < sizeof knows / sizeof *knows; i++) {
        const poly *p = poly_symbol(s->pp, knows[i], arena_printf(a, "session.%s", knows[i]));
        scope_add(session, str_of(knows[i]), SYM_BASE,
                  (val){.kind = VAL_INT, .known = true, .size = p}, WEFT_NOWHERE);
    }
    scope_add(s->base, STR("session"), SYM_BASE, (val){.kind = VAL_SCOPE, .scope = session},
              WEFT_NOWHERE);
}

void sema_deinit(sema *s)
{
    VEC_FREE(&s->known);
    VEC_FREE(&s->exact);
    VEC_FREE(&s->trail);
    VEC_FREE(&s->weights);
    VEC_FREE(&s->cells);
    arena_destroy(s->a);
}

/* The formats a model reads: those its match lines name, or else those its lines are bound to. */
static bool mentions(const ast *n, ast_kind kind, str origin_name)
{
    if (!n)
        return false;
    if (n->kind == kind && str_eq(n->name, origin_name))
        return true;
    for (uint32_t i = 0; i < n->n_kid; i++)
        if (mentions(n->kid[i], kind, origin_name))
            return true;
    return false;
}

static void find_origins(sema *s, const ast *model)
{
    static const char *const name[ORIGIN_COUNT] = {"gguf", "hf"};
    bool any = false;
    for (int o = 0; o < ORIGIN_COUNT; o++)
        any |= s->has_origin[o] = mentions(model, AST_MATCH, str_of(name[o]));
    for (int o = 0; o < ORIGIN_COUNT && !any; o++)
        s->has_origin[o] = mentions(model, AST_BINDING, str_of(name[o]));
}

/* Parameters and lets that nothing asks for; the trained context is for whoever opens the model, but among errors its
 * name may be what was misspelt. */
static void check_unused_names(sema *s, const ast *list, const scope *names)
{
    for (uint32_t i = 0; i < list->n_kid; i++) {
        const ast *n = list->kid[i];
        if (n->kind == AST_PARAMS)
            check_unused_names(s, n, names);
        const sym *y =
            n->kind == AST_PARAM || n->kind == AST_LET ? scope_find_here(names, n->name) : NULL;
        if (y && n->kind == AST_LET && s->in_fragment)
            continue; /* it is for who includes the fragment */
        if (y && !y->used && y->loc.begin == n->name_loc.begin &&
            (!param_is_context(n) || diag_errors(s->dg) > 0))
            weft_fail(s->dg, W0211, n->name_loc, "the %s " STR_FMT " is never used",
                      n->kind == AST_LET ? "let" : "parameter", STR_ARG(n->name));
    }
}

/* Looked up at least once, if only in an expression that failed. */
static bool named(const scope *names, str name)
{
    const sym *y = scope_find_here(names, name);
    return y && y->used;
}

/* What was declared and never served: the mistake is more often in the graph than in the table. An
 * error may well be the reason, so it is reported only without one, or where names were not found: what
 * is never used may be what was meant. */
static void check_unused(sema *s, const ast *model, const scope *names, size_t errors)
{
    for (size_t i = 0; i < s->cells.n; i++) {
        const cell *cl = s->cells.at[i];
        if (cl->read && !cl->written)
            weft_fail(s->dg, W0603, cl->read_at,
                      STR_FMT " is read here, but nothing is ever appended to it",
                      STR_ARG(cl->name));
    }
    bool failed = diag_errors(s->dg) > errors;
    if (failed && s->n_unknown == 0)
        return;
    for (size_t i = 0; i < s->weights.n; i++) {
        const weight *w = s->weights.at[i];
        if (failed && named(w->group ? w->group->names : names, w->name))
            continue;
        if (!*w->used && !w->optional && !w->in_fragment)
            weft_fail(s->dg, W0211, w->decl->name_loc, "the weight " STR_FMT " is never used",
                      STR_ARG(w->name));
    }
    for (size_t i = 0; i < s->cells.n; i++)
        if (!s->cells.at[i]->read && !(failed && named(names, s->cells.at[i]->name)))
            weft_fail(s->dg, W0211, s->cells.at[i]->decl->name_loc,
                      "the cell " STR_FMT " is never read", STR_ARG(s->cells.at[i]->name));
    check_unused_names(s, model->kid[MODEL_BODY], names);
}

static void check_model(sema *s, const ast *model, scope *file)
{
    const ast *body = model->kid[MODEL_BODY];
    size_t errors = diag_errors(s->dg);
    scope *names = scope_create(s->a, file), *entries = scope_create(s->a, NULL);
    s->names = names;
    s->weights.n = s->cells.n = s->exact.n = 0;
    s->n_unknown = 0;
    find_origins(s, model);
    sema_sections(s, body, false);
    int n_entry = 0;
    for (uint32_t i = 0; i < body->n_kid && !s->stopped; i++) {
        const ast *n = body->kid[i];
        s->names = names;
        if (n->kind == AST_ENTRY) {
            n_entry++;
            sema_declare(s, entries, n->name, SYM_ENTRY, val_unknown(), n->name_loc);
            sema_entry(s, n);
        }
    }
    for (uint32_t i = 0; i < body->n_kid && !s->stopped; i++)
        if (body->kid[i]->kind == AST_BLOCK)
            sema_block_alone(s, body->kid[i], names);
    if (n_entry == 0)
        weft_fail(s->dg, W0210, model->name_loc, "the model " STR_FMT " has no entry",
                  STR_ARG(model->name));
    if (!s->stopped)
        check_unused(s, model, names, errors);
    s->has_origin[ORIGIN_GGUF] = s->has_origin[ORIGIN_HF] = false;
}

/* A fragment on its own: its formals are symbols of their type. */
static void check_fragment(sema *s, const ast *n, scope *file)
{
    const ast *formals = n->kid[FRAGMENT_FORMALS];
    s->names = scope_create(s->a, file);
    for (uint32_t i = 0; i < formals->n_kid; i++) {
        const ast *formal = formals->kid[i], *type = formal->kid[FORMAL_TYPE];
        val v = type ? sema_typed(s, type, formal, formal->name) : val_unknown();
        if (formal->kid[FORMAL_DEFAULT])
            sema_argument(s, type, formal->kid[FORMAL_DEFAULT]);
        sema_declare(s, s->names, formal->name, SYM_FORMAL, v, formal->name_loc);
    }
    s->in_fragment = true;
    s->n_unknown = 0;
    scope *names = s->names;
    sema_sections(s, n->kid[FRAGMENT_BODY], true);
    for (uint32_t i = 0; i < n->kid[FRAGMENT_BODY]->n_kid && !s->stopped; i++)
        if (n->kid[FRAGMENT_BODY]->kid[i]->kind == AST_BLOCK)
            sema_block_alone(s, n->kid[FRAGMENT_BODY]->kid[i], names);
    if (s->n_unknown > 0)
        check_unused_names(s, n->kid[FRAGMENT_BODY], names);
    s->in_fragment = false;
}

weft_status sema_check(weft_diag *dg, dsl_file *f, bool binds)
{
    size_t errors = diag_errors(dg), failed = diag_failed(dg);
    const ast *file = f->tree;
    sema s;
    sema_init(&s, dg, f);
    s.binds = binds;
    scope *names = module_scope(&s, file, f->src);
    scope *models = scope_create(s.a, NULL);
    for (uint32_t i = FILE_ITEMS; i < file->n_kid && !s.stopped; i++) {
        const ast *n = file->kid[i];
        s.names = names;
        if (n->kind == AST_MODEL) {
            sema_declare(&s, models, n->name, SYM_MODEL, val_unknown(), n->name_loc);
            check_model(&s, n, names);
        } else if (n->kind == AST_FRAGMENT) {
            check_fragment(&s, n, names);
        } else if (n->kind == AST_BLOCK) {
            sema_block_alone(&s, n, names);
        }
    }
    sema_deinit(&s);
    return diag_failed(dg) > failed ? diag_status(dg, errors) : WEFT_OK;
}

weft_status dsl_check(weft_diag *dg, const source *src, bool std_only)
{
    dsl_file *f;
    WEFT_TRY(dsl_open(dg, src, std_only, NULL, &f));
    weft_status st = sema_check(dg, f, false);
    dsl_close(f);
    return st;
}
