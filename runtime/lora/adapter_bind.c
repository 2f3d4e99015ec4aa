/* adapter_bind.c - the pairs of a file to the weights of a model.
 *
 *   names    a weight line's names in the adapter's format find pairs (site_name, dsl/elaborate.h)
 *   factors  the line's transforms are replayed on them (factors.h), then rows go to the base's pair order
 *   sites    one for each expert or head, or for the weight */
#include "runtime/lora/adapter_bind.h"
#include "runtime/lora/factors.h"

#include "runtime/base/checksum.h"

#include <inttypes.h>
#include <stdlib.h>

typedef struct {
    str name;
    int id;
    bool taken;
} weight_place;

typedef struct {
    weft_diag *dg;
    const adapter_file *f;
    const bound_model *bm;
    arena *home; /* of the adapter */
    weight_place *weights;
    size_t n_weight;
    bool *reached;        /* for each pair */
    const float **a, **b; /* for each pair, once read */
    bool *full_reached;   /* for each whole weight */
    VEC(adapter_site) sites;
    VEC(adapter_full) fulls;
} binder;

static int by_name(const void *a, const void *b)
{
    return str_cmp(((const weight_place *)a)->name, ((const weight_place *)b)->name);
}

static void index_weights(binder *b)
{
    const graph *g = b->bm->graph;
    b->weights = ARENA_ARRAY(b->home, weight_place, g->weights.n + 1);
    for (size_t i = 0; i < g->weights.n; i++)
        if (g->weights.at[i].lora)
            b->weights[b->n_weight++] =
                (weight_place){arena_str(b->home, g->weights.at[i].name), (int)i, false};
    qsort(b->weights, b->n_weight, sizeof *b->weights, by_name);
}

static weight_place *find_weight(const binder *b, str name)
{
    weight_place want = {.name = name};
    return bsearch(&want, b->weights, b->n_weight, sizeof want, by_name);
}

/* ---- numbers ---- */

/* The pair's factors as f32, A as [rank, in], read once however many weights share them. */
static weft_status read_pair(binder *b, const adapter_pair *p, const float **out_a,
                             const float **out_b)
{
    size_t i = (size_t)(p - b->f->pairs.at);
    if (!b->a[i]) {
        float *xa = ARENA_ARRAY(b->home, float, (size_t)p->a->elems);
        float *xb = ARENA_ARRAY(b->home, float, (size_t)p->b->elems);
        WEFT_TRY(adapter_numbers(b->dg, b->f, p->a, xa));
        WEFT_TRY(adapter_numbers(b->dg, b->f, p->b, xb));
        b->a[i] = p->turned ? matrix_transposed(b->home, xa, p->in, p->rank) : xa;
        b->b[i] = xb;
    }
    *out_a = b->a[i];
    *out_b = b->b[i];
    return WEFT_OK;
}

/* ---- shapes ---- */

static str shape_text(arena *a, int rank, const int64_t *dim)
{
    strbuf b = {0};
    for (int i = 0; i < rank; i++)
        strbuf_add(&b, "%s%" PRId64, i ? ", " : "[", dim[i]);
    strbuf_add(&b, "]");
    str text = arena_str(a, strbuf_view(&b));
    strbuf_free(&b);
    return text;
}

static weft_status misfit(const binder *b, const adapter_pair *p, const gweight *w)
{
    int64_t stored[3] = {p->stacked, p->out, p->in};
    bool one = p->stacked == 0;
    weft_status st = weft_fail(
        b->dg, W0702, WEFT_NOWHERE,
        "%s: " STR_FMT " and its other half make " STR_FMT ", but " STR_FMT " of %s is " STR_FMT,
        b->f->path, STR_ARG(p->a->name), STR_ARG(shape_text(b->home, 3 - one, stored + one)),
        STR_ARG(w->name), model_file_path(b->bm->file),
        STR_ARG(shape_text(b->home, w->rank, w->dim)));
    if (b->f->base.n > 0)
        weft_note(b->dg, "the adapter was made for " STR_FMT, STR_ARG(b->f->base));
    return st;
}

/* ---- one name ---- */

static const adapter_pair *first_pair(const binder *b, const site_name *s)
{
    const adapter_pair *p = NULL;
    for (size_t i = 0; i < s->n_tensor && !p; i++)
        p = adapter_file_find(b->f, s->tensor[i]);
    return p;
}

/* PEFT's A and B say what the module does; a module that keeps its weight as [in, out] has both transposed there. */
static bool is_turned(const binder *b, const site_name *s)
{
    int i = 0;
    while (i < s->n_step && s->step[i].code == TRANSFORM_pairs)
        i++;
    return b->f->fan_in_fan_out && i < s->n_step && s->step[i].code == TRANSFORM_transpose;
}

/* How many rows the tensor of a missing pair has: all are alike if they are stacked; otherwise the checkpoint may say. */
static bool rows_missing(const binder *b, const site_name *s, size_t i, const adapter_pair *like,
                         int64_t *out)
{
    if (s->stacked)
        *out = like->out;
    else {
        str name =
            arena_printf(b->home, STR_FMT "%s", STR_ARG(s->tensor[i]), s->raw ? "" : ".weight");
        const model_tensor *t = model_file_tensor(b->bm->file, name);
        *out = t && t->rank == 2 ? t->shape[0] : 0;
    }
    return *out > 0;
}

static weft_status add_tensor(binder *b, const site_name *s, const adapter_pair *p, factors *f)
{
    const float *xa, *xb;
    WEFT_TRY(read_pair(b, p, &xa, &xb));
    int64_t n = p->stacked ? p->stacked : 1, in = p->in, out = p->out;
    bool shared = p->stacked && p->a->shape[0] == 1;
    for (int64_t e = 0; e < n; e++) {
        factor_part part = {p->rank, in, xa + (shared ? 0 : e * p->rank * in), p->scale};
        const float *rows = xb + e * out * p->rank;
        factors one = {.home = f->home, .rank = 2, .dim = {out, in}};
        factors_add(&one, &part, rows, out);
        if (is_turned(b, s))
            factors_apply(&one, &(site_step){.code = TRANSFORM_transpose});
        size_t base = f->parts.n;
        for (size_t i = 0; i < one.parts.n; i++)
            VEC_PUSH(&f->parts, one.parts.at[i]);
        for (size_t i = 0; i < one.rows.n; i++)
            VEC_PUSH(&f->rows, ((factor_row){one.rows.at[i].part + (int)base, one.rows.at[i].b}));
        f->dim[f->rank - 2] = one.dim[0];
        f->dim[f->rank - 1] = one.dim[1];
        factors_free(&one);
    }
    return WEFT_OK;
}

/* All tensors of a name, one behind the other, as the file that has them would store them. */
static weft_status gather(binder *b, const site_name *s, const adapter_pair *like, const gweight *w,
                          factors *f)
{
    bool deep = s->stacked || like->stacked > 0;
    int64_t total = 0;
    f->rank = deep ? 3 : 2;
    for (size_t i = 0; i < s->n_tensor; i++) {
        const adapter_pair *p = adapter_file_find(b->f, s->tensor[i]);
        int64_t rows;
        if (!p) {
            if (!rows_missing(b, s, i, like, &rows))
                return weft_fail(b->dg, W0702, WEFT_NOWHERE,
                                 "%s: " STR_FMT " is joined with " STR_FMT " into " STR_FMT
                                 ", and the adapter has only one of them",
                                 b->f->path, STR_ARG(like->name), STR_ARG(s->tensor[i]),
                                 STR_ARG(w->name));
            factors_add(f, NULL, NULL, rows);
            total += rows;
            continue;
        }
        if (p->in != like->in || p->stacked != like->stacked || p->embedding ||
            (s->stacked && (p->out != like->out || p->stacked)))
            return misfit(b, p, w);
        b->reached[p - b->f->pairs.at] = true;
        WEFT_TRY(add_tensor(b, s, p, f));
        total += f->dim[f->rank - 2];
    }
    f->dim[0] = s->stacked ? (int64_t)s->n_tensor : deep ? like->stacked : total;
    return WEFT_OK;
}

static bool shape_fits(const factors *f, const gweight *w)
{
    bool fits = f->rank == w->rank;
    for (int i = 0; fits && i < f->rank; i++)
        fits = f->dim[i] == w->dim[i];
    return fits;
}

/* True if it fits the weight after all transforms, rows in the base's order. */
static bool replay(const site_name *s, const gweight *w, factors *f)
{
    const site_step *pairs = NULL;
    for (int i = 0; i < s->n_step; i++) {
        if (!factors_apply(f, &s->step[i]))
            return false;
        pairs = s->step[i].code == TRANSFORM_pairs ? &s->step[i] : pairs;
    }
    if (!shape_fits(f, w))
        return false;
    return !pairs || pairs->n_arg < 2 ||
           factors_turn(f, (int)pairs->arg[0], w->pairs, pairs->arg[1],
                        pairs->arg[pairs->n_arg > 2 ? 2 : 1]);
}

static void keep_site(binder *b, const weight_place *w, int32_t index, const factor_pair *m,
                      int64_t in, int64_t out)
{
    if (m->rank > 0)
        VEC_PUSH(&b->sites, ((adapter_site){.weight = w->id,
                                            .index = index,
                                            .rank = m->rank,
                                            .in = in,
                                            .out = out,
                                            .a = m->a,
                                            .b = m->b,
                                            .scale = m->scale,
                                            .name = w->name}));
}

static weft_status bind_matrix(binder *b, const site_name *s, const adapter_pair *p,
                               const weight_place *place)
{
    const gweight *w = &b->bm->graph->weights.at[place->id];
    factors f = {.home = b->home};
    weft_status st = gather(b, s, p, w, &f);
    if (st == WEFT_OK && !replay(s, w, &f))
        st = misfit(b, p, w);
    int64_t n = st != WEFT_OK ? 0 : w->rank == 3 ? w->dim[0] : 1;
    for (int64_t e = 0; e < n; e++) {
        factor_pair m = factors_matrix(&f, e);
        keep_site(b, place, w->rank == 3 ? (int32_t)e : -1, &m, f.dim[f.rank - 1],
                  f.dim[f.rank - 2]);
    }
    factors_free(&f);
    return st;
}

/* A table of rows: A's columns are looked up, so there is nothing to replay. */
static weft_status bind_table(binder *b, const site_name *s, const adapter_pair *p,
                              const weight_place *place)
{
    const gweight *w = &b->bm->graph->weights.at[place->id];
    factor_pair m = {.rank = p->rank, .scale = p->scale};
    b->reached[p - b->f->pairs.at] = true;
    if (!p->embedding || s->n_step > 0 || w->rank != 2 || p->stacked || p->in != w->dim[0] ||
        p->out != w->dim[1]) {
        adapter_pair shown = *p;
        shown.out = p->in;
        shown.in = p->out;
        return misfit(b, &shown, w);
    }
    WEFT_TRY(read_pair(b, p, &m.a, &m.b));
    keep_site(b, place, -1, &m, p->in, p->out);
    return WEFT_OK;
}

static weft_status bind_name(binder *b, const site_name *s)
{
    const adapter_pair *p = s->gguf == b->f->gguf ? first_pair(b, s) : NULL;
    weight_place *place = p ? find_weight(b, s->weight) : NULL;
    if (!place)
        return WEFT_OK;
    if (place->taken)
        return weft_fail(b->dg, W0706, WEFT_NOWHERE,
                         "%s: " STR_FMT " is adapted under two names, the second " STR_FMT,
                         b->f->path, STR_ARG(s->weight), STR_ARG(p->name));
    place->taken = true;
    if (s->mapped || b->bm->graph->weights.at[place->id].computed)
        return weft_fail(b->dg, W0703, WEFT_NOWHERE,
                         "%s: " STR_FMT " is for " STR_FMT
                         ", whose elements go through a map (=>): factors cannot follow it",
                         b->f->path, STR_ARG(p->a->name), STR_ARG(s->weight));
    return s->kind == KIND_embed ? bind_table(b, s, p, place) : bind_matrix(b, s, p, place);
}

/* ---- whole weights ---- */

static const adapter_whole *find_whole(const binder *b, str name)
{
    size_t low = 0, high = b->f->wholes.n;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        int order = str_cmp(b->f->wholes.at[mid].name, name);
        if (order == 0)
            return &b->f->wholes.at[mid];
        if (order < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return NULL;
}

static weft_status whole_misfit(const binder *b, const adapter_whole *x, const gweight *w)
{
    return weft_fail(b->dg, W0702, WEFT_NOWHERE,
                     "%s: " STR_FMT " is " STR_FMT ", but " STR_FMT " of %s is " STR_FMT,
                     b->f->path, STR_ARG(x->t->name),
                     STR_ARG(shape_text(b->home, x->t->rank, x->t->shape)), STR_ARG(w->name),
                     model_file_path(b->bm->file), STR_ARG(shape_text(b->home, w->rank, w->dim)));
}

/* Its rows are moved as B's are: they are a B whose A changes nothing. */
static weft_status bind_whole(binder *b, const site_name *s, const adapter_whole *x, size_t k,
                              weight_place *place)
{
    const gweight *w = &b->bm->graph->weights.at[place->id];
    const model_tensor *t = x->t;
    bool stacked = s->stacked && w->rank == 3;
    if (t->rank != 2 || t->elems < 1 || s->mapped || w->computed ||
        (!stacked && (s->n_tensor != 1 || w->rank != 2)))
        return whole_misfit(b, x, w);
    float *data = ARENA_ARRAY(b->home, float, (size_t)t->elems);
    WEFT_TRY(adapter_numbers(b->dg, b->f, t, data));
    factors f = {.home = b->home, .rank = 2, .dim = {t->shape[0], t->shape[1]}};
    factors_add(&f, &(factor_part){t->shape[1], t->shape[1], NULL, 1}, data, t->shape[0]);
    gweight one = *w;
    if (stacked) { /* one of the stack */
        one.rank = 2;
        memcpy(one.dim, w->dim + 1, 2 * sizeof *one.dim);
    }
    bool fits = true;
    for (int i = 0; i < s->n_step; i++)
        fits &= s->step[i].code == TRANSFORM_pairs || s->step[i].code == TRANSFORM_rows;
    fits = fits && replay(s, &one, &f);
    if (fits) {
        const float **row = ARENA_ARRAY(b->home, const float *, f.rows.n);
        for (size_t i = 0; i < f.rows.n; i++)
            row[i] = f.rows.at[i].b;
        VEC_PUSH(&b->fulls, ((adapter_full){place->id, stacked ? (int32_t)k : -1, f.dim[1],
                                            f.dim[0], row, place->name}));
    }
    factors_free(&f);
    return fits ? WEFT_OK : whole_misfit(b, x, w);
}

static weft_status bind_wholes(binder *b, const site_name *s)
{
    for (size_t k = 0; s->gguf == b->f->gguf && k < s->n_tensor; k++) {
        const adapter_whole *x = find_whole(b, s->tensor[k]);
        weight_place *place = x ? find_weight(b, s->weight) : NULL;
        if (!place)
            continue;
        if (place->taken)
            return weft_fail(b->dg, W0706, WEFT_NOWHERE,
                             "%s: " STR_FMT " has factors and a whole weight, " STR_FMT, b->f->path,
                             STR_ARG(s->weight), STR_ARG(x->t->name));
        b->full_reached[x - b->f->wholes.at] = true;
        WEFT_TRY(bind_whole(b, s, x, k, place));
    }
    return WEFT_OK;
}

static weft_status check_wholes(const binder *b)
{
    for (size_t i = 0; i < b->f->wholes.n; i++)
        if (!b->full_reached[i])
            return weft_fail(b->dg, W0701, WEFT_NOWHERE,
                             "%s: " STR_FMT " reaches no weight of %s that can be adapted",
                             b->f->path, STR_ARG(b->f->wholes.at[i].t->name),
                             model_file_path(b->bm->file));
    return WEFT_OK;
}

/* ---- all of it ---- */

static weft_status check_reached(binder *b, const site_names *names)
{
    size_t first = 0, left = 0;
    for (size_t i = b->f->pairs.n; i-- > 0;)
        if (!b->reached[i]) {
            first = i;
            left++;
        }
    if (left == 0)
        return WEFT_OK;
    const adapter_pair *p = &b->f->pairs.at[first];
    str_guess best = {0};
    for (size_t i = 0; i < names->n; i++)
        for (size_t k = 0; names->at[i].gguf == b->f->gguf && k < names->at[i].n_tensor; k++)
            str_guess_try(&best, p->name, names->at[i].tensor[k]);
    weft_status st = weft_fail(b->dg, W0701, WEFT_NOWHERE,
                               "%s: " STR_FMT " reaches no weight of %s that can be adapted",
                               b->f->path, STR_ARG(p->a->name), model_file_path(b->bm->file));
    weft_suggest(b->dg, &best);
    if (left > 1)
        weft_note(b->dg, "%zu of its %zu pairs reach none", left, b->f->pairs.n);
    if (b->f->base.n > 0)
        weft_note(b->dg, "the adapter was made for " STR_FMT, STR_ARG(b->f->base));
    return st;
}

static int by_place(const void *a, const void *b)
{
    const adapter_site *x = a, *y = b;
    if (x->weight != y->weight)
        return x->weight < y->weight ? -1 : 1;
    return (x->index > y->index) - (x->index < y->index);
}

static uint64_t hash_of(const adapter_file *f)
{
    VEC(uint64_t) words = {0};
    for (size_t i = 0; i < model_file_part_count(f->mf); i++) {
        model_part part = model_file_part(f->mf, i);
        VEC_PUSH(&words, checksum(part.data, (size_t)part.bytes));
    }
    for (size_t i = 0; i < f->pairs.n; i++) {
        uint64_t bits;
        memcpy(&bits, &f->pairs.at[i].scale, sizeof bits);
        VEC_PUSH(&words, bits);
    }
    VEC_PUSH(&words, f->fan_in_fan_out);
    uint64_t sum = checksum(words.at, words.n * sizeof *words.at);
    VEC_FREE(&words);
    return sum;
}

static weft_status refuse_wholes(weft_diag *dg, const adapter_file *f)
{
    if (f->wholes.n == 0)
        return WEFT_OK;
    weft_status st = weft_fail(dg, W0705, WEFT_NOWHERE,
                               "%s: " STR_FMT " is a whole weight (modules_to_save), not a factor",
                               f->path, STR_ARG(f->wholes.at[0].t->name));
    weft_note(dg, "adapters are mixed and switched, a whole weight cannot be: `weft lora merge` "
                  "writes a model with it, which can be run");
    return st;
}

static weft_status bind_all(binder *b, const site_names *names, adapter *out)
{
    index_weights(b);
    for (size_t i = 0; i < names->n; i++)
        WEFT_TRY(bind_name(b, &names->at[i]));
    for (size_t i = 0; b->f->wholes.n && i < names->n; i++)
        WEFT_TRY(bind_wholes(b, &names->at[i]));
    WEFT_TRY(check_reached(b, names));
    WEFT_TRY(check_wholes(b));
    WEFT_TRY(model_file_check(b->dg, b->f->mf));
    adapter_site *site = ARENA_ARRAY(b->home, adapter_site, b->sites.n + 1);
    if (b->sites.n)
        memcpy(site, b->sites.at, b->sites.n * sizeof *site);
    qsort(site, b->sites.n, sizeof *site, by_place);
    out->path = arena_str(b->home, str_of(b->f->path)).p;
    out->hash = hash_of(b->f);
    out->n_site = b->sites.n;
    out->site = site;
    adapter_full *full = ARENA_ARRAY(b->home, adapter_full, b->fulls.n + 1);
    if (b->fulls.n)
        memcpy(full, b->fulls.at, b->fulls.n * sizeof *full);
    out->n_full = b->fulls.n;
    out->full = full;
    for (size_t i = 0; i < out->n_site; i++)
        out->rank_max = site[i].rank > out->rank_max ? site[i].rank : out->rank_max;
    return WEFT_OK;
}

/* The model with the names of its sites: bm itself if they were asked for, or bound once more. */
static weft_status with_sites(weft_diag *dg, const bound_model *bm, bound_model **out_own)
{
    *out_own = NULL;
    if (bm->sites.n > 0)
        return WEFT_OK;
    size_t said = diag_count(dg);
    bind_options how = {.like = bm, .sites = true, .others = true, .entry = bm->graph->entry.p};
    WEFT_TRY(model_bind(dg, bm->file, &how, out_own));
    diag_keep_first(dg, said); /* what it warns of was said when the model was bound */
    return WEFT_OK;
}

/* A GGUF adapter says for which architecture it is. Another one may have weights of the same names and shapes, and still other
 * rows in them. named: the model with its name in the other format. */
static weft_status check_arch(weft_diag *dg, const adapter_file *f, const bound_model *bm,
                              const bound_model *named)
{
    bool gguf = model_file_format(bm->file) == MODEL_GGUF && model_file_arch_count(bm->file) > 0;
    str is = gguf ? model_file_arch(bm->file, 0) : named->others.arch;
    if (f->arch.n == 0 || is.n == 0 || str_eq(f->arch, is))
        return WEFT_OK;
    return weft_fail(dg, W0702, WEFT_NOWHERE,
                     "%s is for the architecture \"" STR_FMT "\", but %s is \"" STR_FMT "\"",
                     f->path, STR_ARG(f->arch), model_file_path(bm->file), STR_ARG(is));
}

weft_status adapter_bind(weft_diag *dg, const adapter_file *f, const bound_model *bm, bool full,
                         adapter **out)
{
    bound_model *own = NULL;
    if (!full)
        WEFT_TRY(refuse_wholes(dg, f));
    WEFT_TRY(with_sites(dg, bm, &own));
    arena *home = arena_create();
    adapter *ad = ARENA_NEW(home, adapter);
    *ad = (adapter){.home = home};
    binder b = {.dg = dg, .f = f, .bm = bm, .home = home};
    b.reached = ARENA_ARRAY(home, bool, f->pairs.n + 1);
    b.full_reached = ARENA_ARRAY(home, bool, f->wholes.n + 1);
    b.a = ARENA_ARRAY(home, const float *, f->pairs.n + 1);
    b.b = ARENA_ARRAY(home, const float *, f->pairs.n + 1);
    weft_status st = check_arch(dg, f, bm, own ? own : bm);
    if (st == WEFT_OK)
        st = bind_all(&b, own ? &own->sites : &bm->sites, ad);
    VEC_FREE(&b.sites);
    VEC_FREE(&b.fulls);
    bound_model_destroy(own);
    if (st == WEFT_OK)
        *out = ad;
    else
        adapter_close(ad);
    return st;
}

weft_status adapter_open(weft_diag *dg, const char *path, const bound_model *bm, adapter **out)
{
    adapter_file *f;
    WEFT_TRY(adapter_file_open(dg, path, model_file_guarded(bm->file), &f));
    weft_status st = adapter_bind(dg, f, bm, false, out);
    adapter_file_close(f);
    return st;
}

void adapter_close(adapter *a)
{
    if (a)
        arena_destroy(a->home);
}
