/* job_hf.c - a Hugging Face checkpoint as GGUF would have it: names, keys and row orders from the model file. */
#include "runtime/quant/job_impl.h"

#include <math.h>
#include <stdlib.h>

static weft_status cannot(weft_diag *dg, const quant_job *j, str what, const char *why)
{
    return weft_fail(dg, W1016, WEFT_NOWHERE, "%s: " STR_FMT " %s", model_file_path(j->mf),
                     STR_ARG(what), why);
}

/* ---- settings ---- */

static str full_name(quant_job *j, str key)
{
    if (key.n > 0 && key.p[0] == '/')
        return (str){key.p + 1, key.n - 1};
    return arena_printf(j->a, STR_FMT "." STR_FMT, STR_ARG(j->bm->others.arch), STR_ARG(key));
}

/* As GGUF files write it. */
static value gguf_value(value v)
{
    if (v.type == VT_I64)
        return value_of_int(v.as.i >= 0 && v.as.i <= UINT32_MAX ? VT_U32 : VT_I64, v.as.i);
    return v.type == VT_F64 ? value_of_float(VT_F32, v.as.f) : v;
}

/* A setting of every layer: one value where all are equal numbers, else a list. Returns how many it took. */
static size_t put_list(quant_job *j, size_t first)
{
    const other_key *k = &j->bm->others.keys.at[first];
    size_t n = 1, left = j->bm->others.keys.n - first;
    bool equal = k->v.type == VT_I64;
    while (n < left && k[n].layer == (int64_t)n && str_eq(k[n].key, k->key)) {
        equal = equal && k[n].v.type == VT_I64 && k[n].v.as.i == k->v.as.i;
        n++;
    }
    value *items = ARENA_ARRAY(j->a, value, n);
    for (size_t i = 0; i < n; i++)
        items[i] = gguf_value(k[i].v);
    job_put_key(j, full_name(j, k->key), equal ? items[0] : value_of_array(VT_NULL, items, n));
    return n;
}

static void put_settings(quant_job *j)
{
    for (size_t i = 0; i < j->bm->others.keys.n;) {
        const other_key *k = &j->bm->others.keys.at[i];
        if (k->layer == 0) {
            i += put_list(j, i);
            continue;
        }
        job_put_key(j, full_name(j, k->key), gguf_value(k->v));
        i++;
    }
}

static const gconst *first_table(const quant_job *j)
{
    const graph *g = j->bm->graph;
    for (size_t i = 0; i < g->consts.n; i++)
        if (g->consts.at[i].table)
            return &g->consts.at[i];
    return NULL;
}

/* Latent attention is described as if all heads shared one key, which holds the value. */
static void put_latent_sizes(quant_job *j, const gcell *c)
{
    job_put_key(j, full_name(j, STR("attention.head_count_kv")), value_of_int(VT_U32, 1));
    job_put_key(j, full_name(j, STR("attention.key_length")), value_of_int(VT_U32, c->arg[0]));
    job_put_key(j, full_name(j, STR("attention.value_length")), value_of_int(VT_U32, c->arg[1]));
}

/* Sizes that model files work out and other readers of GGUF ask for. */
static void put_sizes(quant_job *j)
{
    const graph *g = j->bm->graph;
    for (size_t i = 0; i < g->cells.n; i++) {
        if (g->cells.at[i].kind == CELL_latent_cache) {
            put_latent_sizes(j, &g->cells.at[i]);
            break;
        }
        if (g->cells.at[i].kind == CELL_kv_cache) {
            job_put_key(j, full_name(j, STR("attention.key_length")),
                        value_of_int(VT_U32, g->cells.at[i].arg[1]));
            job_put_key(j, full_name(j, STR("attention.value_length")),
                        value_of_int(VT_U32, g->cells.at[i].arg[2]));
            break;
        }
    }
    const gconst *table = first_table(j);
    if (table)
        job_put_key(j, full_name(j, STR("rope.dimension_count")),
                    value_of_int(VT_U32, 2 * table->n));
}

/* ---- positions ---- */

static void drop_keys(quant_job *j, const char *prefix)
{
    str start = full_name(j, str_of(prefix));
    size_t n = 0;
    for (size_t i = 0; i < j->keys.n; i++)
        if (!str_starts(j->keys.at[i].name, start))
            j->keys.at[n++] = j->keys.at[i];
    j->keys.n = n;
}

/* GGUF knows llama3's stretching only as the divisor of each frequency. */
static weft_status put_divisors(weft_diag *dg, quant_job *j)
{
    const gconst *table = first_table(j);
    double theta = 0;
    if (!table || !value_float(job_key(j, full_name(j, STR("rope.freq_base")).p), &theta))
        return cannot(dg, j, STR("llama3"), "stretches positions of which there are none");
    float *divisor = ARENA_ARRAY(j->a, float, (size_t)table->n);
    for (int64_t i = 0; i < table->n; i++)
        divisor[i] = (float)(pow(theta, -(double)i / (double)table->n) / table->data[i]);
    return job_put_tensor(dg, j, STR("rope_freqs.weight"), DT_F32, 1, &table->n,
                          (quant_source){.values = divisor});
}

static const value *config_list(const quant_job *j, const char *name)
{
    static const char *const places[] = {"rope_scaling", "rope_parameters"};
    const value *v = NULL;
    for (size_t i = 0; i < sizeof places / sizeof *places && !v; i++)
        v = model_file_key(j->mf, arena_printf(j->a, "%s.%s", places[i], name));
    return value_kind_of(v) == VALUE_ARRAY ? v : NULL;
}

/* longrope: two lists of divisors, one for short texts. */
static weft_status put_factors(weft_diag *dg, quant_job *j, const char *from, const char *name)
{
    const value *list = config_list(j, from);
    int64_t n = (int64_t)value_count(list);
    if (n == 0)
        return WEFT_OK;
    float *x = ARENA_ARRAY(j->a, float, (size_t)n);
    for (int64_t i = 0; i < n; i++) {
        value item = value_at(list, (size_t)i);
        double number;
        if (!value_float(&item, &number))
            return cannot(dg, j, str_of(from), "is not a list of numbers");
        x[i] = (float)number;
    }
    return job_put_tensor(dg, j, str_of(name), DT_F32, 1, &n, (quant_source){.values = x});
}

static weft_status put_positions(weft_diag *dg, quant_job *j)
{
    str kind = STR("default");
    str type_key = full_name(j, STR("rope.scaling.type"));
    value_str(job_key(j, type_key.p), &kind);
    WEFT_TRY(put_factors(dg, j, "short_factor", "rope_factors_short.weight"));
    WEFT_TRY(put_factors(dg, j, "long_factor", "rope_factors_long.weight"));
    if (str_eqz(kind, "llama3"))
        WEFT_TRY(put_divisors(dg, j));
    if (str_eqz(kind, "llama3") || str_eqz(kind, "default") || str_eqz(kind, "none"))
        drop_keys(j, "rope.scaling.");
    else if (!str_eqz(kind, "yarn"))
        drop_keys(j, "rope.scaling.yarn_");
    if (str_eqz(kind, "su") || str_eqz(kind, "longrope")) {
        const gconst *table = first_table(j);
        job_put_key(j, type_key, value_of_str(STR("longrope")));
        if (table) /* others do not work it out */
            job_put_key(j, full_name(j, STR("rope.scaling.attn_factor")),
                        value_of_float(VT_F32, table->factor));
    }
    if (str_eqz(kind, "dynamic"))
        weft_fail(dg, W1211, WEFT_NOWHERE,
                  "%s: its positions are stretched as the context grows (dynamic), which only Weft "
                  "knows of in GGUF",
                  model_file_path(j->mf));
    return WEFT_OK;
}

/* ---- weights ---- */

/* The weight whose rows begin at this one of the tensor; NULL: none. */
static const other_weight *part_at(const quant_job *j, str name, int64_t first)
{
    for (size_t i = 0; i < j->bm->others.weights.n; i++) {
        const other_weight *o = &j->bm->others.weights.at[i];
        if (o->rows > 0 && o->first == first && str_eq(o->name, name))
            return o;
    }
    return NULL;
}

static bool fits(const other_weight *p, const other_weight *first)
{
    const gweight *w = p->weight, *f = first->weight;
    return !w->computed && w->rank == f->rank && w->dim[0] == p->rows &&
           (w->rank < 2 || w->dim[1] == f->dim[1]);
}

/* Weights that GGUF keeps in one tensor, one behind the other: q, k and v, most often. */
static weft_status put_parts(weft_diag *dg, quant_job *j, const other_weight *o)
{
    quant_source head = {.bound = o}, *last = &head;
    int64_t shape[GRAPH_RANK_MAX] = {0};
    for (int k = 1; k < o->weight->rank; k++)
        shape[k] = o->weight->dim[k];
    for (const other_weight *p = o; p; p = part_at(j, o->name, shape[0])) {
        shape[0] += p->rows;
        if (!fits(p, o))
            return cannot(dg, j, p->weight->name, "does not fit the GGUF tensor it is a part of");
        if (p == o)
            continue;
        quant_source *next = ARENA_NEW(j->a, quant_source);
        *next = (quant_source){.bound = p};
        last->next = next;
        last = next;
    }
    return job_put_tensor(dg, j, o->name, o->weight->type, o->weight->rank, shape, head);
}

static weft_status put_weights(weft_diag *dg, quant_job *j)
{
    for (size_t i = 0; i < j->bm->others.weights.n; i++) {
        const other_weight *o = &j->bm->others.weights.at[i];
        const gweight *w = o->weight;
        if (o->rows > 0 && o->first > 0) /* with the first part; a gap is found by job_check_same */
            continue;
        if (o->rows > 0) {
            WEFT_TRY(put_parts(dg, j, o));
            continue;
        }
        if (o->name.n == 0)
            return cannot(dg, j, w->name, "has no GGUF tensor of its own in the model file");
        if (o->pairs != w->pairs && o->run > 0 && o->turned % 2 != 0)
            return cannot(dg, j, w->name, "has pairs of an odd number of rows");
        WEFT_TRY(
            job_put_tensor(dg, j, o->name, w->type, w->rank, w->dim, (quant_source){.bound = o}));
    }
    return WEFT_OK;
}

static int by_name(const void *a, const void *b)
{
    str x = *(const str *)a, y = *(const str *)b;
    int order = memcmp(x.p, y.p, x.n < y.n ? x.n : y.n);
    return order ? order : (x.n > y.n) - (x.n < y.n);
}

static weft_status check_names(weft_diag *dg, quant_job *j)
{
    str *names = ARENA_ARRAY(j->a, str, j->tensors.n + 1);
    for (size_t i = 0; i < j->tensors.n; i++)
        names[i] = j->tensors.at[i].name;
    qsort(names, j->tensors.n, sizeof *names, by_name);
    for (size_t i = 1; i < j->tensors.n; i++)
        if (str_eq(names[i - 1], names[i]))
            return cannot(dg, j, names[i], "is the GGUF name of two weights");
    return WEFT_OK;
}

/* The last part of the path, less what no name is. */
static str folder_name(const quant_job *j)
{
    const char *folder = model_file_folder(j->mf);
    str s = folder ? str_of(folder) : STR("");
    while (s.n > 0 && s.p[s.n - 1] == '/')
        s.n--;
    size_t at = s.n;
    while (at > 0 && s.p[at - 1] != '/')
        at--;
    return (str){s.p + at, s.n - at};
}

weft_status job_from_hf(weft_diag *dg, quant_job *j, const char *arch)
{
    bind_options how = {.arch = arch, .others = true};
    WEFT_TRY(model_bind(dg, j->mf, &how, &j->bm));
    if (j->bm->others.arch.n == 0)
        return cannot(dg, j, j->bm->graph->model, "has no name among GGUF's architectures");
    str name = folder_name(j);
    job_put_key(j, STR("general.architecture"), value_of_str(j->bm->others.arch));
    job_put_key(j, STR("general.type"), value_of_str(STR("model")));
    if (name.n > 0 && !str_eqz(name, "."))
        job_put_key(j, STR("general.name"), value_of_str(arena_str(j->a, name)));
    put_settings(j);
    put_sizes(j);
    WEFT_TRY(put_weights(dg, j));
    WEFT_TRY(put_positions(dg, j));
    WEFT_TRY(check_names(dg, j));
    WEFT_TRY(job_check_same(dg, j, arch));
    return job_put_tokenizer(dg, j);
}
