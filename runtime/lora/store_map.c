/* store_map.c - a weight line's transforms run over row numbers instead of rows, and read backwards.
 *
 * The stored tensors of a name are numbered row by row; the transforms that make the weight then say which stored row
 * each of the weight's rows came from. A transpose at the end makes columns of rows, so those rows are flipped. */
#include "runtime/lora/store_map.h"
#include "runtime/lora/factors.h"

#include <stdlib.h>

typedef struct {
    weft_diag *dg;
    const bound_model *bm;
    const adapter_site *site;
    size_t n_site;
    bool gguf;
    arena *home;
    store_tensors *out;
} mapper;

static weft_status cannot(const mapper *m, str weight, const char *why)
{
    return weft_fail(m->dg, W0705, WEFT_NOWHERE, STR_FMT " cannot be written as %s stores it: %s",
                     STR_ARG(weight), m->gguf ? "GGUF" : "PEFT", why);
}

/* ---- which name ---- */

static bool is_there(const mapper *m, const site_name *s)
{
    static const char *const tails[] = {".weight", "", "_blocks"};
    bool found = false;
    arena *a = arena_create();
    for (size_t i = 0; i < sizeof tails / sizeof *tails && !found; i++)
        found = model_file_tensor(m->bm->file, arena_printf(a, STR_FMT "%s", STR_ARG(s->tensor[0]),
                                                            tails[i])) != NULL;
    arena_destroy(a);
    return found;
}

/* Names of one weight stand together, each format's in the order of the line. */
typedef struct {
    const site_name *first[2]; /* Hugging Face, GGUF */
    size_t n[2];
} name_set;

static name_set names_of(const mapper *m, size_t *at)
{
    const site_name *s = &m->bm->sites.at[*at];
    name_set set = {{NULL, NULL}, {0, 0}};
    for (; *at < m->bm->sites.n && str_eq(m->bm->sites.at[*at].weight, s->weight); ++*at) {
        const site_name *x = &m->bm->sites.at[*at];
        if (!set.first[x->gguf])
            set.first[x->gguf] = x;
        set.n[x->gguf]++;
    }
    return set;
}

/* The name that the checkpoint has, if it is of this format; else the one in the same place as that. */
static const site_name *choose(const mapper *m, const name_set *set)
{
    bool here = model_file_format(m->bm->file) == MODEL_GGUF;
    size_t k = 0;
    while (k < set->n[here] && !is_there(m, &set->first[here][k]))
        k++;
    bool usable = k < set->n[here] && (here == m->gguf || set->n[0] == set->n[1]);
    return set->n[m->gguf] > 0 ? &set->first[m->gguf][usable ? k : 0] : NULL;
}

/* ---- the shape of what is stored ---- */

typedef struct {
    const site_name *s;
    const gweight *w;
    int from, to; /* its steps that move rows; a transpose before and behind aside */
    bool turned, flip;
    int64_t stacked, out, in;
    size_t tensor; /* its first, in the list; stacked ones follow */
} plan_of_name;

static int next_step(const site_name *s, int i)
{
    while (i < s->n_step && s->step[i].code == TRANSFORM_pairs)
        i++;
    return i;
}

/* False: not a shape that can be told. A slice says only how many rows there are at least. */
static bool shape_of(const mapper *m, const site_name *s, const gweight *w, plan_of_name *p)
{
    *p = (plan_of_name){.s = s, .w = w, .to = s->n_step};
    int r = w->rank;
    p->out = w->dim[r - 2];
    p->in = w->dim[r - 1];
    p->stacked = r == 3 ? w->dim[0] : 0;
    if (s->kind == KIND_embed) {
        p->flip = true;
        return r == 2 && s->n_step == 0 && s->n_tensor == 1;
    }
    p->from = next_step(s, 0);
    if (p->from < s->n_step && s->step[p->from].code == TRANSFORM_transpose && !m->gguf) {
        p->turned = true;
        p->from = next_step(s, p->from + 1);
    }
    for (int i = p->from; i < s->n_step; i++)
        if (s->step[i].code == TRANSFORM_transpose) {
            p->flip = true;
            p->to = i;
            if (next_step(s, i + 1) < s->n_step)
                return false;
        }
    if (p->flip) {
        p->in = w->dim[r - 2];
        p->out = w->dim[r - 1];
    }
    if (s->n_tensor > 1 && !s->stacked) /* joined: the parts' sizes are in the checkpoint alone */
        return false;
    const site_step *first = p->from < p->to ? &s->step[p->from] : NULL;
    if (!first)
        return true;
    if (first->code == TRANSFORM_rows && first->n_arg >= 2)
        p->out = first->arg[1];
    else if (first->code == TRANSFORM_reshape && first->n_arg >= 2) {
        p->out = 1;
        p->stacked = 0;
        for (int i = 0; i + 1 < first->n_arg; i++)
            if (first->arg[i] < 1 || first->arg[i] > DSL_SIZE_MAX / p->out)
                return false;
            else
                p->out *= first->arg[i];
        p->in = first->arg[first->n_arg - 1];
    } else
        return false;
    return p->out > 0 && p->in > 0;
}

/* ---- tensors ---- */

static store_tensor *find_tensor(const mapper *m, str name)
{
    for (size_t i = m->out->n; i-- > 0;) /* those of one layer stand together */
        if (str_eq(m->out->at[i].name, name))
            return &m->out->at[i];
    return NULL;
}

/* Each tensor of a name, as large as the weights that it holds need it. */
static void grow_tensors(mapper *m, plan_of_name *p)
{
    p->tensor = m->out->n;
    for (size_t k = 0; k < p->s->n_tensor; k++) {
        store_tensor *t = p->s->stacked ? NULL : find_tensor(m, p->s->tensor[k]);
        if (t) {
            t->out = p->out > t->out ? p->out : t->out;
            p->tensor = (size_t)(t - m->out->at);
            continue;
        }
        VEC_PUSH(m->out, ((store_tensor){.name = p->s->tensor[k],
                                         .raw = p->s->raw,
                                         .embedding = p->s->kind == KIND_embed,
                                         .turned = p->turned,
                                         .stacked = p->s->stacked ? 0 : p->stacked,
                                         .out = p->s->kind == KIND_embed ? p->w->dim[0] : p->out,
                                         .in = p->s->kind == KIND_embed ? p->w->dim[1] : p->in}));
    }
}

static int32_t site_at(const mapper *m, int32_t weight, int32_t index)
{
    size_t low = 0, high = m->n_site;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        const adapter_site *s = &m->site[mid];
        if (s->weight < weight || (s->weight == weight && s->index < index))
            low = mid + 1;
        else
            high = mid;
    }
    bool found = low < m->n_site && m->site[low].weight == weight && m->site[low].index == index;
    return found ? (int32_t)low : -1;
}

static int32_t weight_id(const mapper *m, str name)
{
    const graph *g = m->bm->graph;
    for (size_t i = 0; i < g->weights.n; i++)
        if (str_eq(g->weights.at[i].name, name))
            return (int32_t)i;
    return -1;
}

/* ---- row numbers through the transforms ---- */

static weft_status run_steps(const mapper *m, const plan_of_name *p, factors *f)
{
    const site_name *s = p->s;
    const site_step *pairs = NULL;
    for (int i = 0; i < s->n_step; i++)
        pairs = s->step[i].code == TRANSFORM_pairs ? &s->step[i] : pairs;
    for (int i = p->from; i < p->to; i++)
        if (!factors_apply(f, &s->step[i]))
            return cannot(m, s->weight, "its transforms do not fit");
    int r = p->w->rank;
    bool fits = f->rank == r && f->dim[r - 2] == p->w->dim[r - 2 + p->flip] &&
                f->dim[r - 1] == p->w->dim[r - 1 - p->flip] && (r < 3 || f->dim[0] == p->w->dim[0]);
    if (!fits || (pairs && (p->flip || pairs->n_arg < 2) && p->w->pairs != (int)pairs->arg[0]))
        return cannot(m, s->weight, "its transforms give another shape");
    if (pairs && !p->flip &&
        !factors_turn(f, (int)pairs->arg[0], p->w->pairs, pairs->arg[1],
                      pairs->arg[pairs->n_arg > 2 ? 2 : 1]))
        return cannot(m, s->weight, "its pairs do not fit");
    return WEFT_OK;
}

/* The stored rows in order, all tensors of the name behind each other; `number` is where counting begins. */
static void number_rows(const mapper *m, const plan_of_name *p, const float *number, factors *f)
{
    const site_name *s = p->s;
    int64_t out = m->out->at[p->tensor].out, total = 0;
    for (size_t k = 0; k < s->n_tensor; k++) {
        factor_part part = {1, p->in, NULL, 1};
        int64_t n = out * (!s->stacked && p->stacked ? p->stacked : 1);
        factors_add(f, &part, number + total, n);
        total += n;
    }
    bool deep = s->stacked || p->stacked > 0;
    int64_t first = s->stacked ? (int64_t)s->n_tensor : p->stacked;
    f->rank = deep ? 3 : 2;
    f->dim[0] = deep ? first : out;
    f->dim[f->rank - 2] = out;
    f->dim[f->rank - 1] = p->in;
}

static void keep_rows(mapper *m, const plan_of_name *p, int32_t weight, const factors *f,
                      const float *number)
{
    int64_t lines = f->dim[f->rank - 2];
    for (int64_t i = 0; i < (int64_t)f->rows.n; i++) {
        int64_t stored = f->rows.at[i].b - number;
        int32_t index = p->w->rank == 3 ? (int32_t)(i / lines) : -1;
        const store_tensor *t = &m->out->at[p->tensor];
        if (p->s->stacked) {
            t += stored / p->out;
            stored %= p->out;
        }
        int32_t site = site_at(m, weight, index);
        if (site >= 0)
            t->row[stored] = (store_row){site, (int32_t)(i % lines), p->flip};
    }
}

static weft_status map_name(mapper *m, const plan_of_name *p, int32_t weight)
{
    if (p->s->kind == KIND_embed) {
        const store_tensor *t = &m->out->at[p->tensor];
        int32_t site = site_at(m, weight, -1);
        for (int64_t i = 0; i < t->out; i++)
            t->row[i] = (store_row){site, (int32_t)i, true};
        return WEFT_OK;
    }
    factors f = {.home = m->home};
    size_t rows = 0;
    for (size_t k = 0; k < p->s->n_tensor; k++) {
        const store_tensor *t = &m->out->at[p->tensor + k];
        rows += (size_t)(t->out * (t->stacked ? t->stacked : 1));
    }
    const float *number = ARENA_ARRAY(m->home, float, rows + 1); /* only its places are used */
    number_rows(m, p, number, &f);
    weft_status st = run_steps(m, p, &f);
    if (st == WEFT_OK)
        keep_rows(m, p, weight, &f, number);
    factors_free(&f);
    return st;
}

static bool has_site(const mapper *m, int32_t weight)
{
    for (size_t i = 0; i < m->n_site; i++)
        if (m->site[i].weight == weight)
            return true;
    return false;
}

/* Tensors that hold no adapted row are not wanted. */
static void drop_empty(store_tensors *all)
{
    size_t n = 0;
    for (size_t i = 0; i < all->n; i++) {
        const store_tensor *t = &all->at[i];
        int64_t rows = t->out * (t->stacked ? t->stacked : 1), k = 0;
        while (k < rows && t->row[k].site < 0)
            k++;
        if (k < rows)
            all->at[n++] = *t;
    }
    all->n = n;
}

weft_status store_map(weft_diag *dg, const bound_model *bm, const adapter_site *site, size_t n_site,
                      bool gguf, arena *home, store_tensors *out)
{
    mapper m = {dg, bm, site, n_site, gguf, home, out};
    VEC(plan_of_name) plans = {0};
    VEC(int32_t) ids = {0};
    weft_status st = WEFT_OK;
    for (size_t i = 0; i < bm->sites.n && st == WEFT_OK;) {
        str weight = bm->sites.at[i].weight;
        name_set set = names_of(&m, &i);
        const site_name *s = choose(&m, &set);
        int32_t id = weight_id(&m, weight);
        plan_of_name p;
        bool told = id >= 0 && s && shape_of(&m, s, &bm->graph->weights.at[id], &p);
        if (told) { /* also without a site: a fused tensor is as large as all its weights */
            grow_tensors(&m, &p);
            VEC_PUSH(&plans, p);
            VEC_PUSH(&ids, id);
        } else if (id >= 0 && has_site(&m, id))
            st = cannot(&m, weight, s ? "its rows cannot be traced back" : "it has no name there");
    }
    for (size_t i = 0; i < out->n; i++) {
        store_tensor *t = &out->at[i];
        size_t rows = (size_t)(t->out * (t->stacked ? t->stacked : 1));
        t->row = ARENA_ARRAY(home, store_row, rows);
        for (size_t k = 0; k < rows; k++)
            t->row[k].site = -1;
    }
    for (size_t i = 0; i < plans.n && st == WEFT_OK; i++)
        if (has_site(&m, ids.at[i]))
            st = map_name(&m, &plans.at[i], ids.at[i]);
    if (st == WEFT_OK)
        drop_empty(out);
    VEC_FREE(&plans);
    VEC_FREE(&ids);
    return st;
}

/* ---- factors ---- */

/* A row's part: which of the matrices met so far is this site's A, or with flip its B, transposed. */
static size_t part_of(factors *f, const adapter_site *s, bool flip, const float *const *turned)
{
    int64_t in = flip ? s->out : s->in;
    const float *a = flip ? *turned : s->a;
    for (size_t i = f->parts.n; i-- > 0;) {
        const factor_part *p = &f->parts.at[i];
        if (p->rank == s->rank && p->in == in && p->scale == s->scale &&
            (p->a == a || memcmp(p->a, a, (size_t)(p->rank * in) * sizeof *a) == 0))
            return i;
    }
    factor_part part = {s->rank, in, a, s->scale};
    VEC_PUSH(&f->parts, part);
    return f->parts.n - 1;
}

store_pair store_pair_of(const store_tensor *t, int64_t index, const adapter_site *site,
                         arena *home)
{
    factors f = {.home = home, .rank = 2, .dim = {t->out, t->in}};
    int32_t last = -1;
    size_t part = 0;
    const float *b = NULL;
    for (int64_t i = 0; i < t->out; i++) {
        store_row row = t->row[index * t->out + i];
        if (row.site < 0) {
            VEC_PUSH(&f.rows, ((factor_row){-1, NULL}));
            continue;
        }
        const adapter_site *s = &site[row.site];
        if (row.site != last) {
            const float *turned = row.flip ? matrix_transposed(home, s->b, s->out, s->rank) : NULL;
            b = row.flip ? matrix_transposed(home, s->a, s->rank, s->in) : s->b;
            part = part_of(&f, s, row.flip, &turned);
            last = row.site;
        }
        VEC_PUSH(&f.rows, ((factor_row){(int)part, b + row.at * s->rank}));
    }
    factor_pair m = factors_matrix(&f, 0);
    factors_free(&f);
    return (store_pair){m.rank, m.a, m.b, m.scale};
}
