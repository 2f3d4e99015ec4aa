/* job.c - keys and tensors gathered, and the type of each tensor chosen. */
#include "runtime/quant/job_impl.h"

#include "kernels/ref/dequant.h"
#include "runtime/quant/quant.h"
#include <stdlib.h>

enum { RANK_MAX = 4, NAME_MAX_BYTES = 65535 }; /* of GGUF */

void job_put_key(quant_job *j, str name, value v)
{
    value_member m = {arena_str(j->a, name), v};
    for (size_t i = 0; i < j->keys.n; i++)
        if (str_eq(j->keys.at[i].name, name)) {
            j->keys.at[i].v = v;
            return;
        }
    VEC_PUSH(&j->keys, m);
}

const value *job_key(const quant_job *j, const char *name)
{
    for (size_t i = 0; i < j->keys.n; i++)
        if (str_eqz(j->keys.at[i].name, name))
            return &j->keys.at[i].v;
    return NULL;
}

weft_status job_put_tensor(weft_diag *dg, quant_job *j, str name, dtype from, int rank,
                           const int64_t *shape, quant_source place)
{
    quant_tensor t = {.name = arena_str(j->a, name), .rank = rank, .from = from, .to = from};
    if (rank > RANK_MAX || name.n < 1 || name.n > NAME_MAX_BYTES)
        return weft_fail(dg, W1016, WEFT_NOWHERE,
                         STR_FMT " has %d dimensions, but GGUF has room for %d", STR_ARG(name),
                         rank, RANK_MAX);
    t.rows = t.columns = 1;
    for (int i = 0; i < rank; i++) {
        t.shape[i] = shape[i];
        if (i + 1 < rank)
            t.rows *= shape[i];
        else
            t.columns = shape[i];
    }
    quant_source *s = ARENA_NEW(j->a, quant_source);
    *s = place;
    t.source = s;
    VEC_PUSH(&j->tensors, t);
    return WEFT_OK;
}

/* A model in several files becomes one. */
static bool is_of_split(str key)
{
    return str_starts(key, STR("split."));
}

static weft_status from_gguf(weft_diag *dg, quant_job *j)
{
    const value *keys = model_file_keys(j->mf);
    for (size_t i = 0; i < value_count(keys); i++) {
        const value_member *m = &keys->as.object.members[i];
        if (!is_of_split(m->name))
            VEC_PUSH(&j->keys, *m);
    }
    for (size_t i = 0; i < model_file_tensor_count(j->mf); i++) {
        const model_tensor *t = model_file_tensor_at(j->mf, i);
        WEFT_TRY(job_put_tensor(dg, j, t->name, t->type, t->rank, t->shape,
                                (quant_source){.stored = t}));
    }
    return WEFT_OK;
}

weft_status quant_job_create(weft_diag *dg, const model_file *mf, const char *arch,
                             quant_job **out_j)
{
    arena *a = arena_create();
    quant_job *j = ARENA_NEW(a, quant_job);
    *j = (quant_job){.a = a, .mf = mf};
    weft_status st =
        model_file_format(mf) == MODEL_GGUF ? from_gguf(dg, j) : job_from_hf(dg, j, arch);
    if (st == WEFT_OK && j->tensors.n == 0)
        st = weft_fail(dg, W1016, WEFT_NOWHERE, "%s has no tensors", model_file_path(mf));
    *out_j = j;
    return st;
}

void quant_job_destroy(quant_job *j)
{
    if (!j)
        return;
    VEC_FREE(&j->keys);
    VEC_FREE(&j->tensors);
    bound_model_destroy(j->bm);
    arena_destroy(j->a);
}

static quant_tensor *find_tensor(const quant_job *j, str name)
{
    for (size_t i = 0; i < j->tensors.n; i++)
        if (str_eq(j->tensors.at[i].name, name))
            return &j->tensors.at[i];
    return NULL;
}

weft_status quant_job_change(weft_diag *dg, quant_job *j, str name, quant_change change,
                             bool *out_there)
{
    quant_tensor *t = find_tensor(j, name);
    *out_there = t != NULL;
    if (!t)
        return WEFT_OK;
    if (!(dequant_has(t->from) || t->from == DT_MXFP4_HF) || !quant_has(t->to))
        return weft_fail(dg, W1008, WEFT_NOWHERE,
                         "%s: " STR_FMT " is %s, which cannot be changed and written as %s",
                         model_file_path(j->mf), STR_ARG(name), dtype_row_of(t->from)->name,
                         dtype_row_of(t->to)->name);
    t->change = change;
    return WEFT_OK;
}

bool quant_job_repeat(quant_job *j, str name, str as)
{
    const quant_tensor *t = find_tensor(j, name);
    if (!t || find_tensor(j, as))
        return false;
    quant_tensor copy = *t;
    copy.name = arena_str(j->a, as);
    VEC_PUSH(&j->tensors, copy);
    return true;
}

size_t quant_job_count(const quant_job *j)
{
    return j->tensors.n;
}

const quant_tensor *quant_job_tensor(const quant_job *j, size_t i)
{
    return &j->tensors.at[i];
}

/* ---- choosing ---- */

static int64_t arch_number(const quant_job *j, const char *name)
{
    str arch;
    int64_t n = 0;
    if (!value_str(job_key(j, "general.architecture"), &arch))
        return 0;
    strbuf full = {0};
    strbuf_add(&full, STR_FMT ".%s", STR_ARG(arch), name);
    if (!value_int(job_key(j, full.p), &n))
        n = 0;
    strbuf_free(&full);
    return n;
}

static bool has_tensor(const quant_job *j, const char *name)
{
    for (size_t i = 0; i < j->tensors.n; i++)
        if (str_eqz(j->tensors.at[i].name, name))
            return true;
    return false;
}

static bool readable(dtype t)
{
    return dequant_has(t) || t == DT_MXFP4_HF;
}

static weft_status choose_type(weft_diag *dg, const quant_job *j, const mix_model *m,
                               quant_tensor *t)
{
    mix_choice c = mix_choose(m, t->name, t->rank, t->columns);
    bool number = dtype_row_of(t->from)->elems == 1 && !readable(t->from); /* integers and such */
    bool stays = t->source->stored && !c.ruled && (c.keep || number);
    t->to = stays ? t->from : c.type;
    t->wanted = stays ? t->from : c.wanted;
    t->ruled = c.ruled;
    if (t->to == t->from || readable(t->from))
        return WEFT_OK;
    return weft_fail(dg, W1008, WEFT_NOWHERE, "%s: " STR_FMT " is %s, which cannot be made into %s",
                     model_file_path(j->mf), STR_ARG(t->name), dtype_row_of(t->from)->name,
                     dtype_row_of(t->to)->name);
}

static weft_status attach(weft_diag *dg, quant_tensor *t, const imatrix *im)
{
    const imatrix_entry *e = im ? imatrix_find(im, t->name) : NULL;
    if (!e)
        return WEFT_OK;
    if (e->columns != t->columns || t->rows % e->mats != 0)
        return weft_fail(dg, W1017, WEFT_NOWHERE,
                         STR_FMT " has rows of %lld in the model, but of %lld in the importance "
                                 "file",
                         STR_ARG(t->name), (long long)t->columns, (long long)e->columns);
    t->importance = e;
    return WEFT_OK;
}

static weft_status check_rules(weft_diag *dg, const quant_job *j, const mix_rules *rules)
{
    for (size_t r = 0; rules && r < rules->n; r++) {
        bool used = false;
        for (size_t i = 0; i < j->tensors.n && !used; i++)
            used = str_glob(rules->at[r].pattern, j->tensors.at[i].name);
        if (!used)
            return weft_fail(dg, W1903, WEFT_NOWHERE, "no tensor has a name like '" STR_FMT "'",
                             STR_ARG(rules->at[r].pattern));
    }
    return WEFT_OK;
}

weft_status quant_job_choose(weft_diag *dg, quant_job *j, const mix_preset *preset,
                             const mix_rules *rules, const imatrix *im)
{
    mix_model m = {.preset = preset,
                   .rules = rules,
                   .layers = arch_number(j, "block_count"),
                   .experts = arch_number(j, "expert_count"),
                   .tied = !has_tensor(j, "output.weight")};
    size_t attached = 0;
    bool blocks = false;
    WEFT_TRY(check_rules(dg, j, rules));
    for (size_t i = 0; i < j->tensors.n; i++) {
        quant_tensor *t = &j->tensors.at[i];
        WEFT_TRY(choose_type(dg, j, &m, t));
        WEFT_TRY(attach(dg, t, im));
        attached += t->importance != NULL;
        blocks |= dtype_row_of(t->to)->elems > 1;
    }
    if (im && attached == 0)
        return weft_fail(dg, W1017, WEFT_NOWHERE,
                         "the importance file has none of the model's tensors");
    job_put_key(j, STR("general.file_type"), value_of_int(VT_U32, preset->file_type));
    if (blocks)
        job_put_key(j, STR("general.quantization_version"), value_of_int(VT_U32, 2));
    return WEFT_OK;
}
