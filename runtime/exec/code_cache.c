#include "runtime/exec/code_cache.h"

#include "runtime/base/checksum.h"
#include "runtime/base/file.h"
#include "runtime/base/mem.h"
#include "runtime/base/vec.h"
#include "runtime/exec/cache_file.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define CODE_FILE_BYTES_MAX (UINT64_C(256) << 20)   /* of one */
#define CODE_FOLDER_BYTES_MAX (UINT64_C(256) << 20) /* of all */
enum { CODE_VERSION = 1, CODE_MODEL_MAX = 256 };
static const char magic[8] = "WEFTCODE";

/* In front of the object, in the byte order of the machine. */
typedef struct {
    char magic[8];
    uint32_t version, head_bytes;
    uint64_t lo, hi; /* its name */
    uint64_t bytes, sum;
    char model[CODE_MODEL_MAX];
    uint64_t head_sum; /* of all before */
} code_head;

_Static_assert(sizeof(code_head) == offsetof(code_head, head_sum) + sizeof(uint64_t),
               "a header has no gaps");

bool code_folder(const char *dir, strbuf *out)
{
    return cache_folder_named(dir, "code", out);
}

static void put_name(strbuf *path, code_name name)
{
    strbuf_add(path, "/%016" PRIx64 "%016" PRIx64 CACHE_CODE_SUFFIX, name.hi, name.lo);
}

/* ---- reading ---- */

static const char *head_fault(const code_head *h, uint64_t file_bytes)
{
    if (memcmp(h->magic, magic, sizeof magic) != 0)
        return "it has no header";
    if (h->version != CODE_VERSION)
        return "it is of another version";
    if (h->head_bytes != sizeof *h || h->head_sum != checksum(h, offsetof(code_head, head_sum)))
        return "its header has changed";
    if (h->bytes > CODE_FILE_BYTES_MAX || file_bytes != sizeof *h + h->bytes)
        return "its length is wrong";
    return NULL;
}

/* n bytes, through interruptions; false: there are fewer. */
static bool read_all(int fd, void *to, size_t n)
{
    for (char *at = to; n > 0;) {
        ssize_t got = read(fd, at, n);
        if (got == 0 || (got < 0 && errno != EINTR))
            return false;
        if (got > 0) {
            at += got;
            n -= (size_t)got;
        }
    }
    return true;
}

/* What is wrong with the open file; NULL: nothing, and its object is in `out`. */
static const char *read_object(int fd, const struct stat *st, code_head *h, strbuf *out)
{
    size_t before = out->n;
    if (!read_all(fd, h, sizeof *h))
        return "it has no header";
    const char *fault = head_fault(h, (uint64_t)st->st_size);
    if (fault)
        return fault;
    size_t bytes = (size_t)h->bytes;
    strbuf_fill(out, 0, bytes);
    if (!read_all(fd, out->p + before, bytes))
        fault = "it became shorter while it was read";
    else if (checksum(out->p + before, bytes) != h->sum)
        fault = "its checksum is not that of the code";
    if (fault)
        out->n = before;
    return fault;
}

/* The same of whatever has this path; `there` is false, with no fault, where nothing has. */
static const char *read_path(const char *path, code_head *h, strbuf *out, bool *there)
{
    struct stat st;
    *there = lstat(path, &st) == 0;
    if (!*there)
        return NULL;
    if (S_ISLNK(st.st_mode))
        return "it is a symbolic link";
    int fd = cache_file_open(path);
    if (fd < 0)
        return "it cannot be opened";
    file_hold(fd);
    const char *fault = NULL;
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
        fault = "it is no regular file";
    else if (!cache_file_is_ours(&st))
        fault = "somebody else can have written it";
    else
        fault = read_object(fd, &st, h, out);
    if (!fault)
        futimens(fd, NULL); /* used now */
    file_close(fd);
    return fault;
}

bool code_cache_get(weft_diag *dg, const char *dir, code_name name, strbuf *out)
{
    strbuf path = {0};
    code_head h;
    bool there = false;
    size_t before = out->n;
    if (!code_folder(dir, &path))
        return false;
    put_name(&path, name);
    const char *fault = read_path(path.p, &h, out, &there);
    if (there && !fault && (h.lo != name.lo || h.hi != name.hi)) {
        fault = "it holds other code";
        out->n = before;
    }
    if (fault)
        weft_warn(dg, W1509, WEFT_NOWHERE, "%s: generated code on disk is not used: %s", path.p,
                  fault);
    strbuf_free(&path);
    return there && !fault;
}

/* ---- writing ---- */

/* All of it; 0, or an errno value. */
static int write_all(int fd, const void *data, size_t n)
{
    for (const char *at = data; n > 0;) {
        ssize_t done = write(fd, at, n);
        if (done < 0 && errno != EINTR)
            return errno;
        if (done > 0) {
            at += done;
            n -= (size_t)done;
        }
    }
    return 0;
}

/* A complete file under a name that no one has, then under its own. */
static int write_file(const char *folder, const char *path, const code_head *h, str object)
{
    strbuf temp = {0};
    strbuf_add(&temp, "%s/" CACHE_TEMP_NAME, folder);
    int fd = mkstemp(temp.p), error = fd < 0 ? errno : 0;
    if (fd >= 0) {
        fcntl(fd, F_SETFD, FD_CLOEXEC);
        error = write_all(fd, h, sizeof *h);
        if (!error)
            error = write_all(fd, object.p, object.n);
        if (!error && fsync(fd) != 0)
            error = errno;
        if (close(fd) != 0 && !error)
            error = errno;
        if (!error && rename(temp.p, path) != 0)
            error = errno;
        if (error)
            unlink(temp.p);
    }
    strbuf_free(&temp);
    return error;
}

/* Once: who starts many sessions knows it then. */
static void report_unkept(weft_diag *dg, const char *folder, const char *why)
{
    static atomic_bool said;
    if (!atomic_exchange(&said, true))
        weft_warn(dg, W1511, WEFT_NOWHERE, "%s: generated code cannot be kept: %s", folder, why);
}

void code_cache_put(weft_diag *dg, const char *dir, code_name name, const char *model, str object)
{
    strbuf folder = {0}, path = {0};
    code_head h = {.version = CODE_VERSION,
                   .head_bytes = sizeof h,
                   .lo = name.lo,
                   .hi = name.hi,
                   .bytes = object.n,
                   .sum = checksum(object.p, object.n)};
    memcpy(h.magic, magic, sizeof magic);
    snprintf(h.model, sizeof h.model, "%s", model);
    h.head_sum = checksum(&h, offsetof(code_head, head_sum));
    if (!code_folder(dir, &folder)) {
        report_unkept(dg, "no folder", "neither XDG_CACHE_HOME nor HOME names one");
        return;
    }
    int error = 0;
    if (object.n > CODE_FILE_BYTES_MAX)
        error = EFBIG;
    else if (!cache_make_folders(folder.p))
        error = errno;
    if (!error) {
        strbuf_put(&path, strbuf_view(&folder));
        put_name(&path, name);
        error = write_file(folder.p, path.p, &h, object);
    }
    if (error)
        report_unkept(dg, folder.p, file_reason_of(error).text);
    else
        code_cache_prune(folder.p, CODE_FOLDER_BYTES_MAX);
    strbuf_free(&folder);
    strbuf_free(&path);
}

/* ---- what is kept ---- */

static bool list_file(arena *a, const char *folder, const char *name, cache_file *out)
{
    struct stat st;
    code_head h = {0};
    if (cache_name_of(name) != CACHE_NAME_CODE)
        return false;
    int fd = cache_file_open(arena_printf(a, "%s/%s", folder, name).p);
    if (fd < 0)
        return false;
    bool fine = fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
    bool known = fine && pread(fd, &h, sizeof h, 0) == (ssize_t)sizeof h &&
                 memcmp(h.magic, magic, sizeof magic) == 0;
    bool other = known && h.version != CODE_VERSION;
    close(fd);
    if (fine)
        *out =
            (cache_file){.name = arena_printf(a, "%s", name).p,
                         .bytes = (uint64_t)st.st_size,
                         .used = (int64_t)st.st_mtime,
                         .other_version = other,
                         .model = !known  ? "damaged"
                                  : other ? "of another version"
                                          : arena_printf(a, "%.*s", CODE_MODEL_MAX - 1, h.model).p};
    return fine;
}

size_t code_cache_list(arena *a, const char *folder, cache_file **out_files)
{
    return cache_list_by(a, folder, list_file, out_files);
}

const char *code_cache_check(const char *path)
{
    strbuf object = {0};
    code_head h;
    bool there;
    const char *fault = read_path(path, &h, &object, &there);
    strbuf_free(&object);
    return there ? fault : "it is gone";
}

uint64_t code_cache_prune(const char *folder, uint64_t bytes_max)
{
    return cache_prune_by(folder, list_file, bytes_max);
}
