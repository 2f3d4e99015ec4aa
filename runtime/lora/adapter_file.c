/* adapter_file.c - which format an adapter is in, and its halves put together. */
#include "runtime/lora/adapter_file.h"

#include "kernels/ref/dequant.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>

static int by_name(const void *a, const void *b)
{
    const adapter_entry *x = a, *y = b;
    int order = str_cmp(x->name, y->name);
    return order ? order : (int)x->half - (int)y->half;
}

/* "F32 [8, 64]", of a tensor. */
static const char *described(const adapter_file *f, const model_tensor *t)
{
    strbuf b = {0};
    model_tensor_describe(&b, t);
    str text = arena_str(f->home, strbuf_view(&b));
    strbuf_free(&b);
    return text.p;
}

static weft_status misfit(weft_diag *dg, const adapter_file *f, const adapter_pair *p,
                          const char *why)
{
    return weft_fail(dg, W0702, WEFT_NOWHERE, "%s: " STR_FMT " is %s and " STR_FMT " is %s: %s",
                     f->path, STR_ARG(p->a->name), described(f, p->a), STR_ARG(p->b->name),
                     described(f, p->b), why);
}

/* A is [rank, in] and B [out, rank], or both have an axis before: one pair for each expert or head, A perhaps the same
 * for all. */
static weft_status measure(weft_diag *dg, const adapter_file *f, adapter_pair *p)
{
    const model_tensor *a = p->a, *b = p->b;
    if (a->rank != b->rank || a->rank < 2 || a->rank > 3)
        return misfit(dg, f, p, "they have to be two matrices");
    if (a->elems < 1 || b->elems < 1)
        return misfit(dg, f, p, "they have no elements");
    int at = a->rank - 2;
    p->rank = b->shape[at + 1];
    p->out = b->shape[at];
    p->in = a->shape[at + !p->turned];
    if (a->shape[at + p->turned] != p->rank)
        return misfit(dg, f, p, "their ranks differ");
    p->stacked = a->rank == 3 ? b->shape[0] : 0;
    if (a->rank == 3 && a->shape[0] != 1 && a->shape[0] != b->shape[0])
        return misfit(dg, f, p, "their first axes differ");
    return WEFT_OK;
}

static weft_status half_missing(weft_diag *dg, const adapter_file *f, const adapter_entry *e)
{
    return weft_fail(dg, W0706, WEFT_NOWHERE, "%s: " STR_FMT " has no %s", f->path,
                     STR_ARG(e->t->name),
                     e->half == HALF_A ? "B that belongs to it" : "A that belongs to it");
}

static weft_status add_pair(weft_diag *dg, adapter_file *f, const adapter_entry *a,
                            const adapter_entry *b)
{
    if (a->embedding != b->embedding)
        return weft_fail(dg, W0706, WEFT_NOWHERE,
                         "%s: " STR_FMT " and " STR_FMT " are halves of different kinds", f->path,
                         STR_ARG(a->t->name), STR_ARG(b->t->name));
    adapter_pair p = {.name = a->name, .a = a->t, .b = b->t, .embedding = a->embedding};
    p.turned = p.embedding && f->gguf;
    WEFT_TRY(measure(dg, f, &p));
    VEC_PUSH(&f->pairs, p);
    return WEFT_OK;
}

weft_status adapter_pair_up(weft_diag *dg, adapter_file *f)
{
    const adapter_entry *e = f->entries.at;
    size_t n = f->entries.n;
    qsort(f->entries.at, n, sizeof *e, by_name);
    for (size_t i = 0; i < n; i++) {
        bool more = i + 1 < n && str_eq(e[i].name, e[i + 1].name);
        if (more && e[i].half == e[i + 1].half)
            return weft_fail(dg, W0706, WEFT_NOWHERE,
                             "%s: " STR_FMT " and " STR_FMT " are the same half twice", f->path,
                             STR_ARG(e[i].t->name), STR_ARG(e[i + 1].t->name));
        if (e[i].half == HALF_NONE) {
            VEC_PUSH(&f->wholes, ((adapter_whole){e[i].name, e[i].t}));
            continue;
        }
        if (e[i].half != HALF_A || !more || e[i + 1].half != HALF_B)
            return half_missing(dg, f, &e[i]);
        WEFT_TRY(add_pair(dg, f, &e[i], &e[i + 1]));
        i++;
    }
    if (f->pairs.n == 0 && f->wholes.n == 0)
        return weft_fail(dg, W0706, WEFT_NOWHERE, "%s: holds no tensor", f->path);
    return WEFT_OK;
}

const adapter_pair *adapter_file_find(const adapter_file *f, str name)
{
    size_t low = 0, high = f->pairs.n;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        int order = str_cmp(f->pairs.at[mid].name, name);
        if (order == 0)
            return &f->pairs.at[mid];
        if (order < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return NULL;
}

/* ---- numbers ---- */

static weft_status not_finite(weft_diag *dg, const adapter_file *f, const model_tensor *t,
                              int64_t at, float x)
{
    int64_t place[MODEL_RANK_MAX];
    strbuf b = {0};
    for (int i = t->rank - 1; i >= 0; i--) {
        place[i] = at % t->shape[i];
        at /= t->shape[i];
    }
    for (int i = 0; i < t->rank; i++)
        strbuf_add(&b, "%s%" PRId64, i ? ", " : "", place[i]);
    weft_status st = weft_fail(dg, W0704, WEFT_NOWHERE, "%s: " STR_FMT "[%s] is %s", f->path,
                               STR_ARG(t->name), b.p, isnan(x) ? "not a number" : "infinite");
    strbuf_free(&b);
    return st;
}

weft_status adapter_numbers(weft_diag *dg, const adapter_file *f, const model_tensor *t, float *out)
{
    int64_t n = t->rank > 0 ? t->shape[t->rank - 1] : 1, rows = n > 0 ? t->elems / n : 0;
    if (!dequant_has(t->type))
        return weft_fail(dg, W1008, WEFT_NOWHERE, "%s: " STR_FMT " is %s, which Weft does not read",
                         f->path, STR_ARG(t->name), described(f, t));
    for (int64_t i = 0; i < rows; i++)
        dequant_row(t->type, (const char *)t->data + (size_t)i * (t->bytes / (size_t)rows),
                    out + i * n, n);
    for (int64_t i = 0; i < t->elems; i++)
        if (!isfinite(out[i]))
            return not_finite(dg, f, t, i, out[i]);
    return WEFT_OK;
}

/* ---- opening ---- */

static bool is_folder(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static const char *folder_of(arena *a, str path)
{
    while (path.n > 0 && path.p[path.n - 1] != '/')
        path.n--;
    return path.n == 0 ? "." : arena_str(a, (str){path.p, path.n > 1 ? path.n - 1 : 1}).p;
}

static str file_name(str path)
{
    size_t n = path.n;
    while (n > 0 && path.p[n - 1] != '/')
        n--;
    return (str){path.p + n, path.n - n};
}

/* A folder, or one of the two files that PEFT puts into it. */
static weft_status read_file(weft_diag *dg, adapter_file *f, const model_file_options *how)
{
    str path = str_of(f->path), name = file_name(path);
    if (is_folder(f->path))
        return adapter_read_peft(dg, f, f->path, how);
    if (str_eqz(name, "adapter_config.json") || str_starts(name, STR("adapter_model.")))
        return adapter_read_peft(dg, f, folder_of(f->home, path), how);
    if (str_ends(name, STR(".safetensors")) || str_ends(name, STR(".json")) ||
        str_ends(name, STR(".bin"))) {
        weft_status st =
            weft_fail(dg, W0706, WEFT_NOWHERE, "%s: is not a file of a PEFT adapter", f->path);
        weft_note(dg, "a PEFT adapter is a folder with adapter_config.json and "
                      "adapter_model.safetensors");
        return st;
    }
    return adapter_read_gguf(dg, f, how);
}

/* What multiplies B A has to be a number that f32 holds. */
static weft_status check_scales(weft_diag *dg, const adapter_file *f)
{
    for (size_t i = 0; i < f->pairs.n; i++)
        if (!isfinite((float)f->pairs.at[i].scale))
            return weft_fail(dg, W0706, WEFT_NOWHERE, "%s: the scale of " STR_FMT " is %g", f->path,
                             STR_ARG(f->pairs.at[i].name), f->pairs.at[i].scale);
    return WEFT_OK;
}

weft_status adapter_file_open(weft_diag *dg, const char *path, bool guard, adapter_file **out)
{
    arena *a = arena_create();
    adapter_file *f = ARENA_NEW(a, adapter_file);
    *f = (adapter_file){.home = a, .path = arena_str(a, str_of(path)).p};
    weft_status st = read_file(dg, f, &(model_file_options){.guard = guard});
    if (st == WEFT_OK)
        st = check_scales(dg, f);
    if (st == WEFT_OK)
        *out = f;
    else
        adapter_file_close(f);
    return st;
}

void adapter_file_close(adapter_file *f)
{
    if (!f)
        return;
    model_file_close(f->mf);
    VEC_FREE(&f->entries);
    VEC_FREE(&f->pairs);
    VEC_FREE(&f->wholes);
    arena_destroy(f->home);
}
