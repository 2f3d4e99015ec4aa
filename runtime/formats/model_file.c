/* model_file.c - opens, checks and hands out; the formats fill it in. */
#include "runtime/formats/model_file_impl.h"

#include "runtime/base/file.h"
#include "runtime/base/intmath.h"
#include "runtime/base/mem.h"
#include "runtime/formats/gguf_format.h"
#include "runtime/formats/map_guard.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* What name_index reads. */
_Static_assert(offsetof(model_tensor, name) == 0, "a tensor begins with its name");
_Static_assert(offsetof(value_member, name) == 0, "a member begins with its name");

static model_file *create(const char *path, const model_file_options *options)
{
    model_file *mf = mem_alloc(sizeof *mf);
    *mf = (model_file){.home = arena_create()};
    mf->path = arena_str(mf->home, str_of(path)).p;
    mf->keys = (value){.type = VT_OBJECT};
    if (options)
        mf->options = *options;
    return mf;
}

void model_drop_parts(model_file *mf)
{
    for (size_t i = 0; i < mf->parts.n; i++) {
        model_part_impl *p = &mf->parts.at[i];
        map_guard_remove(p->guard);
        fmap_close(p->map);
        file_close(p->fd);
    }
    mf->parts.n = 0;
    mf->tensors.n = 0;
}

void model_file_close(model_file *mf)
{
    if (!mf)
        return;
    model_drop_parts(mf);
    VEC_FREE(&mf->parts);
    VEC_FREE(&mf->tensors);
    arena_destroy(mf->home);
    mem_free(mf);
}

/* Add the file behind fd; keep_fd: so that it can be asked for its size later on, for a file that
 * has no path. */
static weft_status add_fd(weft_diag *dg, model_file *mf, int fd, const char *path, bool keep_fd)
{
    model_part_impl p = {.path = path, .fd = -1, .guard = -1};
    if (fstat(fd, &p.stamp) != 0)
        return weft_fail(dg, W1003, WEFT_NOWHERE, "cannot read %s: %s", path,
                         file_reason_of(errno).text);
    WEFT_TRY(fmap_open_fd(dg, fd, path, mf->options.no_mmap ? FMAP_COPIED : FMAP_MAPPED, &p.map));
    p.data = fmap_data(p.map);
    p.bytes = fmap_bytes(p.map);
    if (keep_fd)
        file_hold(p.fd = fcntl(fd, F_DUPFD_CLOEXEC, 0));
    if (mf->options.guard && !mf->options.no_mmap && p.bytes > 0)
        p.guard = map_guard_add(p.data, p.bytes);
    bool guarded = p.guard >= 0;
    VEC_PUSH(&mf->parts, p);

    if (mf->options.guard && !mf->options.no_mmap && p.bytes > 0 && !guarded)
        return weft_fail(dg, W1105, WEFT_NOWHERE, "%s: cannot be guarded, %d files are already",
                         path, MAP_GUARD_MAX);
    if (mf->options.mlock && p.bytes > 0 && mlock(p.data, p.bytes) != 0)
        return weft_fail(dg, W1013, WEFT_NOWHERE, "cannot lock the %zu bytes of %s in memory: %s",
                         p.bytes, path, file_reason_of(errno).text);
    return WEFT_OK;
}

weft_status model_add_part(weft_diag *dg, model_file *mf, const char *path)
{
    int fd;
    uint64_t bytes;
    WEFT_TRY(file_open(dg, path, &fd, &bytes));
    weft_status status = add_fd(dg, mf, fd, path, false);
    file_close(fd);
    return status;
}

void model_add_tensor(model_file *mf, const model_tensor *t)
{
    VEC_PUSH(&mf->tensors, *t);
}

weft_status model_place_tensor(weft_diag *dg, const model_file *mf, model_tensor *t,
                               uint64_t offset)
{
    const model_part_impl *p = &mf->parts.at[t->part];
    const dtype_row *row = dtype_row_of(t->type);
    int64_t elems = 1, row_elems = t->rank ? t->shape[t->rank - 1] : 1;
    bool fits = true;
    for (int i = 0; i < t->rank && fits; i++)
        fits = i64_mul(elems, t->shape[i], &elems);
    if (fits && row_elems % row->elems != 0)
        return weft_fail(dg, W1006, WEFT_NOWHERE,
                         "%s: tensor " STR_FMT ": rows of %" PRId64
                         " numbers are not whole blocks of %" PRId64 " (%s)",
                         p->path, STR_ARG(t->name), row_elems, row->elems, row->name);
    if (!fits || !dtype_bytes(t->type, elems, &t->bytes)) {
        strbuf text = {0};
        model_tensor_describe(&text, t);
        weft_status status = weft_fail(dg, W1006, WEFT_NOWHERE,
                                       "%s: tensor " STR_FMT ": its size overflows: " STR_FMT,
                                       p->path, STR_ARG(t->name), STR_ARG(strbuf_view(&text)));
        strbuf_free(&text);
        return status;
    }
    if (offset > p->bytes || t->bytes > p->bytes - offset)
        return weft_fail(dg, W1005, WEFT_NOWHERE,
                         "%s: tensor " STR_FMT ": its %zu bytes from byte %" PRIu64
                         " on reach past the end of the file at %zu",
                         p->path, STR_ARG(t->name), t->bytes, offset, p->bytes);
    t->elems = elems;
    t->offset = offset;
    t->data = p->data + offset;
    return WEFT_OK;
}

static int by_offset(const void *a, const void *b)
{
    const model_tensor *s = *(const model_tensor *const *)a, *t = *(const model_tensor *const *)b;
    return (s->offset > t->offset) - (s->offset < t->offset);
}

weft_status model_check_overlap(weft_diag *dg, const model_file *mf, size_t first)
{
    size_t n = 0;
    const model_tensor **order =
        mem_alloc(mem_product(mf->tensors.n - first, sizeof(const model_tensor *)));
    for (size_t i = first; i < mf->tensors.n; i++)
        if (mf->tensors.at[i].bytes > 0)
            order[n++] = &mf->tensors.at[i];
    qsort(order, n, sizeof *order, by_offset);
    weft_status status = WEFT_OK;
    for (size_t i = 1; i < n && status == WEFT_OK; i++) {
        const model_tensor *s = order[i - 1], *t = order[i];
        if (t->offset - s->offset < s->bytes)
            status = weft_fail(dg, W1006, WEFT_NOWHERE,
                               "%s: tensors " STR_FMT " and " STR_FMT
                               " overlap: the first ends at byte %" PRIu64
                               ", the second begins at %" PRIu64,
                               mf->parts.at[t->part].path, STR_ARG(s->name), STR_ARG(t->name),
                               s->offset + s->bytes, t->offset);
    }
    mem_free(order);
    return status;
}

weft_status model_index_tensors(weft_diag *dg, model_file *mf)
{
    if (mf->tensor_index)
        return WEFT_OK;
    size_t twice;
    mf->tensor_index =
        name_index_create(mf->home, mf->tensors.at, mf->tensors.n, sizeof *mf->tensors.at, &twice);
    if (mf->tensor_index)
        return WEFT_OK;
    const model_tensor *t = &mf->tensors.at[twice];
    return weft_fail(dg, W1010, WEFT_NOWHERE,
                     "%s: tensor " STR_FMT " stands twice; the second is tensor number %zu",
                     mf->parts.at[t->part].path, STR_ARG(t->name), twice);
}

/* Hands mf over if all went well, else closes it. */
static weft_status finish(weft_diag *dg, model_file *mf, weft_status status, model_file **out_mf)
{
    if (status == WEFT_OK)
        status = model_index_tensors(dg, mf);
    if (status == WEFT_OK)
        status = model_file_check(dg, mf);
    if (status == WEFT_OK) {
        model_source_init(mf);
        *out_mf = mf;
    } else {
        model_file_close(mf);
    }
    return status;
}

/* What the first bytes of a file that is not a model say it is. */
static const char *foreign_kind(str head)
{
    static const struct {
        const char *magic;
        const char *kind;
    } known[] = {
        {"PK\3\4", "a zip archive (a PyTorch checkpoint?)"},
        {"\x80\2", "a Python pickle (a PyTorch checkpoint?)"},
        {"tjgg", "a GGJT file, the predecessor of GGUF"},
        {"fmgg", "a GGMF file, the predecessor of GGUF"},
        {"lmgg", "a GGML file, the predecessor of GGUF"},
        {"\x89HDF", "an HDF5 file"},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (str_starts(head, str_of(known[i].magic)))
            return known[i].kind;
    return head.n ? "neither GGUF nor safetensors" : "empty";
}

static bool looks_like_safetensors(str begin)
{
    return begin.n > 8 && begin.p[8] == '{';
}

static weft_status open_path(weft_diag *dg, model_file *mf)
{
    struct stat st;
    if (stat(mf->path, &st) == 0 && S_ISDIR(st.st_mode))
        return hf_open_folder(dg, mf, mf->path);
    int fd;
    uint64_t bytes;
    char head[16];
    size_t n = 0;
    WEFT_TRY(file_open(dg, mf->path, &fd, &bytes));
    weft_status status = file_read(dg, fd, mf->path, head, sizeof head, &n);
    file_close(fd);
    WEFT_TRY(status);

    str path = str_of(mf->path), begin = {head, n};
    if (str_starts(begin, STR(GGUF_MAGIC)) || (str_ends(path, STR(".gguf")) && n < 4))
        return gguf_open(dg, mf);
    if (str_ends(path, STR(".json")) || str_ends(path, STR(".safetensors")) ||
        looks_like_safetensors(begin))
        return hf_open_file(dg, mf);
    return weft_fail(dg, W1011, WEFT_NOWHERE, "%s: is %s", mf->path, foreign_kind(begin));
}

weft_status model_file_open(weft_diag *dg, const char *path, const model_file_options *options,
                            model_file **out_mf)
{
    model_file *mf = create(path, options);
    return finish(dg, mf, open_path(dg, mf), out_mf);
}

/* What has no path is one file, of either format. */
static weft_status open_only_part(weft_diag *dg, model_file *mf)
{
    const model_part_impl *p = &mf->parts.at[0];
    str begin = {(const char *)p->data, p->bytes};
    bool is_gguf = str_starts(begin, STR(GGUF_MAGIC)) || !looks_like_safetensors(begin);
    return is_gguf ? gguf_open_single(dg, mf) : hf_open_single(dg, mf);
}

weft_status model_file_open_fd(weft_diag *dg, int fd, const char *name,
                               const model_file_options *options, model_file **out_mf)
{
    model_file *mf = create(name, options);
    weft_status status = add_fd(dg, mf, fd, mf->path, true);
    if (status == WEFT_OK)
        status = open_only_part(dg, mf);
    return finish(dg, mf, status, out_mf);
}

weft_status model_file_open_memory(weft_diag *dg, const void *data, size_t bytes, const char *name,
                                   model_file **out_mf)
{
    model_file *mf = create(name, NULL);
    model_part_impl p = {.path = mf->path, .data = data, .bytes = bytes, .fd = -1, .guard = -1};
    VEC_PUSH(&mf->parts, p);
    return finish(dg, mf, open_only_part(dg, mf), out_mf);
}

weft_status model_file_check(weft_diag *dg, const model_file *mf)
{
    for (size_t i = 0; i < mf->parts.n; i++) {
        const model_part_impl *p = &mf->parts.at[i];
        struct stat now;
        size_t at;
        if (map_guard_tripped(p->guard, &at))
            return weft_fail(dg, W1012, WEFT_NOWHERE,
                             "%s: byte %zu could not be read any more; the file had %zu bytes",
                             p->path, at, p->bytes);
        if (!p->map || mf->options.no_mmap)
            continue;
        if ((p->fd >= 0 ? fstat(p->fd, &now) : stat(p->path, &now)) != 0)
            continue; /* removed: what is mapped stays */
        if (now.st_dev == p->stamp.st_dev && now.st_ino == p->stamp.st_ino &&
            (uint64_t)now.st_size < p->bytes)
            return weft_fail(dg, W1012, WEFT_NOWHERE, "%s: had %zu bytes and now has %" PRIu64,
                             p->path, p->bytes, (uint64_t)now.st_size);
    }
    return WEFT_OK;
}

bool model_file_guarded(const model_file *mf)
{
    return mf->options.guard;
}

void model_file_let_go(const model_file *mf)
{
#ifdef MADV_DONTNEED
    for (size_t i = 0; i < mf->parts.n; i++) {
        const model_part_impl *p = &mf->parts.at[i];
        if (p->map && !mf->options.no_mmap &&
            !mf->options.mlock) /* ours would lose what it holds */
            (void)madvise((void *)(uintptr_t)p->data, p->bytes, MADV_DONTNEED);
    }
#else
    (void)mf;
#endif
}

model_format model_file_format(const model_file *mf)
{
    return mf->format;
}

const char *model_file_path(const model_file *mf)
{
    return mf->path;
}

size_t model_file_arch_count(const model_file *mf)
{
    return mf->arch_n;
}

str model_file_arch(const model_file *mf, size_t i)
{
    WEFT_ASSERT(i < mf->arch_n);
    return mf->archs[i];
}

/* GGUF: one flat list, so the prefix and the name are looked up as one. */
static const value *gguf_key(const model_file *mf, str prefix, str name)
{
    size_t i;
    if (!name_index_find(mf->keys.as.object.index, prefix, name, &i))
        return NULL;
    return &mf->keys.as.object.members[i].v;
}

const value *model_file_key(const model_file *mf, str name)
{
    bool absolute = name.n > 0 && name.p[0] == '/';
    if (absolute)
        name = (str){name.p + 1, name.n - 1};
    if (mf->format == MODEL_HF) {
        const value *v = absolute ? NULL : value_find(mf->text_config, name);
        return v ? v : value_find(&mf->keys, name);
    }
    if (absolute)
        return gguf_key(mf, (str){"", 0}, name);
    if (mf->arch_n == 0)
        return NULL;
    char dotted[256]; /* an architecture's name is short; a longer one has no keys */
    str arch = mf->archs[0];
    if (arch.n >= sizeof dotted)
        return NULL;
    memcpy(dotted, arch.p, arch.n);
    dotted[arch.n] = '.';
    return gguf_key(mf, (str){dotted, arch.n + 1}, name);
}

const value *model_file_keys(const model_file *mf)
{
    return &mf->keys;
}

size_t model_file_tensor_count(const model_file *mf)
{
    return mf->tensors.n;
}

const model_tensor *model_file_tensor_at(const model_file *mf, size_t i)
{
    WEFT_ASSERT(i < mf->tensors.n);
    return &mf->tensors.at[i];
}

const model_tensor *model_file_tensor(const model_file *mf, str name)
{
    size_t i;
    return name_index_find(mf->tensor_index, name, (str){0}, &i) ? &mf->tensors.at[i] : NULL;
}

void model_tensor_describe(strbuf *out, const model_tensor *t)
{
    strbuf_add(out, "%s [", dtype_row_of(t->type)->name);
    for (int i = 0; i < t->rank; i++)
        strbuf_add(out, "%s%" PRId64, i ? ", " : "", t->shape[i]);
    strbuf_putc(out, ']');
}

size_t model_file_part_count(const model_file *mf)
{
    return mf->parts.n;
}

model_part model_file_part(const model_file *mf, size_t i)
{
    WEFT_ASSERT(i < mf->parts.n);
    const model_part_impl *p = &mf->parts.at[i];
    return (model_part){p->path, p->bytes, p->data};
}

weft_status model_file_spare(weft_diag *dg, const model_file *mf, const char *path)
{
    struct stat out, in;
    if (stat(path, &out) != 0)
        return WEFT_OK;
    for (size_t i = 0; i < mf->parts.n; i++)
        if (stat(mf->parts.at[i].path, &in) == 0 && in.st_dev == out.st_dev &&
            in.st_ino == out.st_ino)
            return weft_fail(dg, W1904, WEFT_NOWHERE, "%s is read and written at once", path);
    return WEFT_OK;
}

const char *model_file_folder(const model_file *mf)
{
    return mf->folder;
}

bool model_file_has_sibling(const model_file *mf, const char *name)
{
    return mf->folder && hf_exists(mf->folder, name);
}

weft_status model_file_sibling(weft_diag *dg, const model_file *mf, arena *a, const char *name,
                               const char **out_path)
{
    if (!mf->folder)
        return weft_fail(dg, W1001, WEFT_NOWHERE, "cannot open %s: %s is not a folder", name,
                         mf->path);
    return hf_sibling(dg, a, mf->folder, str_of(name), out_path);
}
