/* merge_folder.c - a merge as a Hugging Face folder: tensors changed row by row, everything else copied. */
#include "runtime/lora/adapter_merge_impl.h"

#include "kernels/ref/dequant.h"
#include "runtime/base/file.h"
#include "runtime/base/mem.h"
#include "runtime/formats/safetensors_write.h"
#include "runtime/quant/quant.h"

#include <errno.h>
#include <math.h>
#include <sys/stat.h>

enum { COPY_BYTES = 1 << 20 };

typedef struct {
    const adapter_merge *m;
    const model_file *mf;
    const merge_folder_options *how;
    const store_tensor **change; /* for each tensor; NULL: none */
    uint64_t done;
} folder_writing;

uint64_t merge_folder_bytes(const adapter_merge *m)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < model_file_tensor_count(m->bm->file); i++)
        sum += model_file_tensor_at(m->bm->file, i)->bytes;
    return sum;
}

/* ---- tensors ---- */

static weft_status fill(weft_diag *dg, out_file *to, size_t i, void *ctx)
{
    folder_writing *w = ctx;
    const model_tensor *t = model_file_tensor_at(w->mf, i);
    int64_t n = t->shape[t->rank - 1], rows = t->elems / n;
    size_t bytes = t->bytes / (size_t)rows;
    float *x = mem_alloc((size_t)n * sizeof *x);
    char *out = mem_alloc(bytes);
    weft_status st = WEFT_OK;
    for (int64_t r = 0; r < rows && st == WEFT_OK; r++) {
        int64_t bad = 0;
        dequant_row(t->type, (const char *)t->data + (size_t)r * bytes, x, n);
        merge_row(w->m, w->change[i], r, x, n);
        while (bad < n && isfinite(x[bad]))
            bad++;
        quant_row(t->type, x, NULL, out, n);
        st = bad == n ? out_file_put(dg, to, out, bytes)
                      : weft_fail(dg, W1018, WEFT_NOWHERE,
                                  STR_FMT "[%lld, %lld] is not a finite number once merged",
                                  STR_ARG(t->name), (long long)r, (long long)bad);
    }
    mem_free(x);
    mem_free(out);
    w->done += t->bytes;
    if (w->how->progress)
        w->how->progress(w->how->ctx, w->done);
    return st;
}

static weft_status find_changes(weft_diag *dg, folder_writing *w, arena *a)
{
    const store_tensors *all = &w->m->tensors;
    w->change = ARENA_ARRAY(a, const store_tensor *, model_file_tensor_count(w->mf) + 1);
    for (size_t i = 0; i < all->n; i++) {
        const store_tensor *t = &all->at[i];
        str name = arena_printf(a, STR_FMT "%s", STR_ARG(t->name), t->raw ? "" : ".weight");
        const model_tensor *x = model_file_tensor(w->mf, name);
        int64_t rows = t->turned ? t->in : t->out, columns = t->turned ? t->out : t->in;
        if (!x || x->rank != 2 || t->stacked || x->shape[0] != rows || x->shape[1] != columns)
            return weft_fail(dg, W0705, WEFT_NOWHERE,
                             STR_FMT " is adapted, but %s has no such tensor", STR_ARG(name),
                             model_file_path(w->mf));
        if (!dequant_has(x->type) || !quant_has(x->type))
            return weft_fail(dg, W1008, WEFT_NOWHERE,
                             "%s: " STR_FMT " is %s, which cannot be changed",
                             model_file_path(w->mf), STR_ARG(name), dtype_row_of(x->type)->name);
        for (size_t k = 0; k < model_file_tensor_count(w->mf); k++)
            if (model_file_tensor_at(w->mf, k) == x)
                w->change[k] = t;
    }
    return WEFT_OK;
}

static weft_status write_tensors(weft_diag *dg, folder_writing *w, const char *path, arena *a)
{
    size_t n = model_file_tensor_count(w->mf);
    safetensors_item *items = ARENA_ARRAY(a, safetensors_item, n + 1);
    value_member format = {STR("format"), value_of_str(STR("pt"))};
    value metadata;
    size_t twice;
    (void)value_of_members(a, &format, 1, &metadata, &twice);
    for (size_t i = 0; i < n; i++) {
        const model_tensor *t = model_file_tensor_at(w->mf, i);
        items[i] = (safetensors_item){arena_str(a, t->name).p, t->type, t->rank, t->shape,
                                      w->change[i] ? NULL : t->data};
        w->done += w->change[i] ? 0 : t->bytes;
    }
    return safetensors_write_with(dg, arena_printf(a, "%s/model.safetensors", path).p, items, n,
                                  &metadata, fill, w);
}

/* ---- the other files ---- */

static bool is_weights(str name)
{
    static const char *const tails[] = {".safetensors", ".safetensors.index.json",
                                        ".bin",         ".bin.index.json",
                                        ".gguf",        ".pth",
                                        ".pt",          ".h5",
                                        ".msgpack"};
    bool found = name.p[0] == '.';
    for (size_t i = 0; i < sizeof tails / sizeof *tails; i++)
        found |= str_ends(name, str_of(tails[i]));
    return found;
}

static weft_status copy_file(weft_diag *dg, const char *from, const char *to)
{
    int fd = -1;
    uint64_t bytes;
    out_file *f = NULL;
    WEFT_TRY(file_open(dg, from, &fd, &bytes));
    char *buffer = mem_alloc(COPY_BYTES);
    weft_status st = out_file_create(dg, to, &f);
    for (size_t n = COPY_BYTES; st == WEFT_OK && n == COPY_BYTES;) {
        st = file_read(dg, fd, from, buffer, COPY_BYTES, &n);
        if (st == WEFT_OK)
            st = out_file_put(dg, f, buffer, n);
    }
    if (st == WEFT_OK)
        st = out_file_finish(dg, f);
    out_file_destroy(f);
    mem_free(buffer);
    file_close(fd);
    return st;
}

static weft_status copy_files(weft_diag *dg, const model_file *mf, const char *to, arena *a)
{
    const char *folder = model_file_folder(mf);
    DIR *dir = file_open_dir(folder);
    weft_status st = WEFT_OK;
    if (!dir)
        return weft_fail(dg, W1001, WEFT_NOWHERE, "cannot open %s: %s", folder,
                         file_reason_of(errno).text);
    for (struct dirent *e; st == WEFT_OK && (e = readdir(dir));) {
        struct stat at;
        const char *from = NULL, *path = arena_printf(a, "%s/%s", folder, e->d_name).p;
        if (is_weights(str_of(e->d_name)) || stat(path, &at) != 0 || !S_ISREG(at.st_mode))
            continue;
        st = model_file_sibling(dg, mf, a, e->d_name, &from);
        if (st == WEFT_OK)
            st = copy_file(dg, from, arena_printf(a, "%s/%s", to, e->d_name).p);
    }
    file_close_dir(dir);
    return st;
}

/* ---- the folder ---- */

static weft_status make_folder(weft_diag *dg, const model_file *mf, const char *path)
{
    struct stat in, out;
    if (mkdir(path, 0777) != 0 && errno != EEXIST)
        return weft_fail(dg, W1004, WEFT_NOWHERE, "cannot make %s: %s", path,
                         file_reason_of(errno).text);
    if (stat(model_file_folder(mf), &in) == 0 && stat(path, &out) == 0 && in.st_dev == out.st_dev &&
        in.st_ino == out.st_ino)
        return weft_fail(dg, W1904, WEFT_NOWHERE, "%s is read and written at once", path);
    return WEFT_OK;
}

weft_status merge_folder_write(weft_diag *dg, const adapter_merge *m, const char *path,
                               const merge_folder_options *how)
{
    const gweight *table, *head;
    folder_writing w = {.m = m, .mf = m->bm->file, .how = how};
    if (!model_file_folder(w.mf))
        return weft_fail(dg, W0705, WEFT_NOWHERE,
                         "%s is no Hugging Face folder: with it a merge is written as GGUF",
                         model_file_path(w.mf));
    if (merge_unties(m, &table, &head))
        return weft_fail(dg, W0705, WEFT_NOWHERE,
                         "%s: one table is " STR_FMT " and " STR_FMT
                         ", and only one of them changes: write a GGUF file, which can part them",
                         model_file_path(w.mf), STR_ARG(table->name), STR_ARG(head->name));
    arena *a = arena_create();
    weft_status st = find_changes(dg, &w, a);
    if (st == WEFT_OK)
        st = make_folder(dg, w.mf, path);
    if (st == WEFT_OK)
        st = write_tensors(dg, &w, path, a);
    if (st == WEFT_OK)
        st = copy_files(dg, w.mf, path, a);
    if (st == WEFT_OK)
        st = model_file_check(dg, w.mf);
    arena_destroy(a);
    return st;
}
