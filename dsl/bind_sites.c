/* bind_sites.c - what an adapter may call a weight, in either format.
 *
 * A weight line has names for GGUF and for Hugging Face, each with the transforms that make the weight of what is stored
 * there. An adapter names the same tensors, whether or not this checkpoint is of its format; so all names of a site are
 * listed here, and their transforms with the numbers filled in. runtime/lora replays them on the factors. */
#include "dsl/transform.h"

#include "dsl/bind_impl.h"

static void keep_argument(binding *b, const ast *arg, site_step *step)
{
    int64_t x = -1;
    const poly *p = sema_int(b->s, arg->kid[ARG_VALUE], "an argument");
    if (!p || !poly_value(p, &x))
        x = -1; /* reported where the line was bound, or refused where it is replayed */
    if (step->n_arg < GRAPH_RANK_MAX)
        step->arg[step->n_arg++] = x;
}

static site_step step_of(binding *b, const ast *n, const transform_row *row)
{
    site_step step = {.code = row->code};
    const ast *args = n->kid[TRANSFORM_ARGUMENTS];
    bool pairs = row->code == TRANSFORM_pairs;
    if (pairs)
        step.arg[step.n_arg++] = (int64_t)transform_order(b->s, n);
    for (uint32_t i = pairs; args && row->code != TRANSFORM_join && i < args->n_kid; i++)
        keep_argument(b, args->kid[i], &step);
    return step;
}

static void keep_steps(binding *b, const ast *key, site_name *out)
{
    site_step *steps = ARENA_ARRAY(b->home, site_step, key->n_kid + 1);
    for (uint32_t i = 0; i < key->n_kid; i++) {
        const ast *n = key->kid[i];
        const transform_row *row = n->kind == AST_TRANSFORM ? transform_find(n->name) : NULL;
        if (!row)
            out->mapped = true;
        else if (row->code == TRANSFORM_raw || row->code == TRANSFORM_mxfp4)
            out->raw = true;
        else
            steps[out->n_step++] = step_of(b, n, row);
    }
    out->step = steps;
}

static str full_name(binding *b, str prefix, const ast *key)
{
    return arena_printf(b->home, STR_FMT STR_FMT, STR_ARG(prefix), STR_ARG(bind_text(b->s, key)));
}

/* The tensors of one name: one for each index of the line, or those that are joined. */
static bool keep_tensors(binding *b, const weight *w, const ast *key, str prefix, site_name *out)
{
    sema *s = b->s;
    const ast *index = w->decl->kid[WEIGHT_INDEX], *join = transform_in(key, TRANSFORM_join);
    int64_t count = 1;
    out->stacked = index && weight_names_index(key, index);
    sym *y = out->stacked ? scope_find_here(s->names, index->name) : NULL;
    if (out->stacked && (!y || !poly_value(w->stored.dim[0], &count) || count < 1))
        return false;
    uint32_t n_join = join ? join->kid[TRANSFORM_ARGUMENTS]->n_kid : 0;
    str *names = ARENA_ARRAY(b->home, str, (size_t)count + n_join);
    const poly *was = y ? y->v.size : NULL;
    for (int64_t e = 0; e < count; e++) {
        if (y)
            y->v.size = poly_int(s->pp, e);
        names[out->n_tensor++] = full_name(b, prefix, key);
    }
    if (y)
        y->v.size = was;
    for (uint32_t i = 0; i < n_join; i++)
        names[out->n_tensor++] =
            full_name(b, prefix, join->kid[TRANSFORM_ARGUMENTS]->kid[i]->kid[ARG_VALUE]);
    out->tensor = names;
    return true;
}

static void keep_names(binding *b, const weight *w, origin o)
{
    const ast *keys = bind_lines(w->decl->kid[WEIGHT_BINDINGS], o);
    const ast *prefixes = w->group ? bind_lines(w->group->decl->kid[GROUP_PREFIXES], o) : NULL;
    uint32_t n_prefix = prefixes ? prefixes->n_kid : 1;
    for (uint32_t p = 0; keys && p < n_prefix; p++) {
        str prefix = prefixes ? bind_text(b->s, prefixes->kid[p]) : STR("");
        for (uint32_t k = 0; k < keys->n_kid; k++) {
            site_name name = {.gguf = o == ORIGIN_GGUF, .kind = w->kind->code};
            if (!keep_tensors(b, w, keys->kid[k], prefix, &name))
                continue;
            keep_steps(b, keys->kid[k], &name);
            name.weight = arena_str(b->home, w->bound->stored.name);
            VEC_PUSH(b->sites, name);
        }
    }
}

void bind_sites(binding *b, const weight *w)
{
    if (!b->sites || !w->bound->stored.lora)
        return;
    sema *s = b->s;
    weft_diag *outer = s->dg; /* a name of the other format may rest on what only that one has */
    s->dg = diag_create();
    for (int o = 0; o < ORIGIN_COUNT; o++)
        keep_names(b, w, (origin)o);
    diag_destroy(s->dg);
    s->dg = outer;
    if (s->stopped) { /* by a limit, which has to be reported here, too */
        s->stopped = false;
        sema_step(s, w->decl->name_loc, 0);
    }
}
