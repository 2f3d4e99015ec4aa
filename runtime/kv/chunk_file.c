/* chunk_file.c - chunks through a buffer, in both directions. */
#include "runtime/kv/chunk_file.h"

#include "runtime/base/checksum.h"
#include "runtime/base/file.h"
#include "runtime/base/mem.h"
#include "runtime/formats/out_file.h"
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

typedef struct {
    char magic[8];
    uint32_t version, chunk_bytes;
    uint64_t bytes, sum;
} disk_head;

_Static_assert(sizeof(disk_head) == CHUNK_HEAD_BYTES, "the header has no gaps");

/* Of chunk i: two that change places are noticed. */
static uint64_t chunk_sum(const unsigned char *data, size_t n, uint64_t i)
{
    return checksum(data, n) ^ (i + 1) * UINT64_C(0x9e3779b97f4a7c15);
}

static disk_head head_of(const chunk_kind *kind, uint64_t bytes)
{
    disk_head h = {.version = kind->version, .chunk_bytes = CHUNK_BYTES, .bytes = bytes};
    memcpy(h.magic, kind->magic, sizeof h.magic);
    h.sum = checksum(&h, offsetof(disk_head, sum));
    return h;
}

/* ---- writing ---- */

struct chunk_writer {
    out_file *f;
    uint64_t left, index; /* bytes that are still to come, and the number of this chunk */
    size_t n;             /* in buffer */
    unsigned char buffer[CHUNK_BYTES];
};

weft_status chunk_writer_create(weft_diag *dg, const char *path, const chunk_kind *kind,
                                uint64_t bytes, chunk_writer **out_w)
{
    out_file *f;
    WEFT_TRY(out_file_create(dg, path, &f));
    chunk_writer *w = mem_alloc(sizeof *w);
    w->f = f;
    w->left = bytes;
    w->index = w->n = 0;
    disk_head h = head_of(kind, bytes);
    weft_status st = out_file_put(dg, f, &h, sizeof h);
    if (st == WEFT_OK)
        *out_w = w;
    else
        chunk_writer_destroy(w);
    return st;
}

void chunk_writer_destroy(chunk_writer *w)
{
    if (!w)
        return;
    out_file_destroy(w->f);
    mem_free(w);
}

static weft_status put_chunk(weft_diag *dg, chunk_writer *w)
{
    uint64_t sum = chunk_sum(w->buffer, w->n, w->index++);
    WEFT_TRY(out_file_put(dg, w->f, w->buffer, w->n));
    w->n = 0;
    return out_file_put(dg, w->f, &sum, sizeof sum);
}

weft_status chunk_writer_put(weft_diag *dg, chunk_writer *w, const void *data, size_t n)
{
    const unsigned char *p = data;
    WEFT_ASSERT(n <= w->left);
    w->left -= n;
    while (n > 0) {
        size_t room = sizeof w->buffer - w->n, part = n < room ? n : room;
        memcpy(w->buffer + w->n, p, part);
        w->n += part;
        p += part;
        n -= part;
        if (w->n == sizeof w->buffer)
            WEFT_TRY(put_chunk(dg, w));
    }
    return WEFT_OK;
}

weft_status chunk_writer_finish(weft_diag *dg, chunk_writer *w)
{
    WEFT_ASSERT(w->left == 0);
    if (w->n > 0)
        WEFT_TRY(put_chunk(dg, w));
    return out_file_finish(dg, w->f);
}

/* ---- reading ---- */

struct chunk_reader {
    int fd;
    const chunk_kind *kind;
    arena *home;
    const char *path;
    uint64_t bytes;       /* of all chunks */
    uint64_t left, index; /* of those behind the buffer, and the number of the next one */
    size_t at, n;         /* what was taken of the buffer, and what it holds */
    unsigned char buffer[CHUNK_BYTES + sizeof(uint64_t)];
};

static weft_status damaged(weft_diag *dg, const chunk_reader *r, const char *why)
{
    return weft_fail(dg, W1006, WEFT_NOWHERE, "%s: %s", r->path, why);
}

static weft_status check_head(weft_diag *dg, chunk_reader *r, uint64_t file_bytes)
{
    disk_head h, want;
    size_t n;
    WEFT_TRY(file_read(dg, r->fd, r->path, &h, sizeof h, &n));
    if (n < sizeof h.magic || memcmp(h.magic, r->kind->magic, sizeof h.magic) != 0)
        return weft_fail(dg, W1006, WEFT_NOWHERE, "%s is not %s", r->path, r->kind->what);
    if (n < sizeof h)
        return weft_fail(dg, W1005, WEFT_NOWHERE, "%s ends within its first %zu bytes", r->path,
                         sizeof h);
    if (h.sum != checksum(&h, offsetof(disk_head, sum)))
        return damaged(dg, r, "its first bytes were changed");
    if (h.version != r->kind->version)
        return weft_fail(dg, W1007, WEFT_NOWHERE,
                         "%s is %s of version %" PRIu32 "; this program reads version %" PRIu32,
                         r->path, r->kind->what, h.version, r->kind->version);
    want = head_of(r->kind, h.bytes);
    if (memcmp(&h, &want, sizeof h) != 0)
        return damaged(dg, r, "its chunks have another size than this version has");
    uint64_t n_chunk = h.bytes / CHUNK_BYTES + (h.bytes % CHUNK_BYTES != 0);
    uint64_t is = file_bytes - sizeof h;
    if (h.bytes > is || n_chunk * sizeof h.sum > is - h.bytes)
        return weft_fail(dg, W1005, WEFT_NOWHERE,
                         "%s says it holds %" PRIu64 " bytes and their checksums; it has %" PRIu64
                         " behind its header",
                         r->path, h.bytes, is);
    if (n_chunk * sizeof h.sum < is - h.bytes)
        return damaged(dg, r, "there are bytes behind its end");
    r->bytes = h.bytes;
    return WEFT_OK;
}

static weft_status next_chunk(weft_diag *dg, chunk_reader *r)
{
    uint64_t sum;
    size_t want = r->left < CHUNK_BYTES ? (size_t)r->left : CHUNK_BYTES, n;
    WEFT_TRY(file_read(dg, r->fd, r->path, r->buffer, want + sizeof sum, &n));
    if (n < want + sizeof sum)
        return weft_fail(dg, W1005, WEFT_NOWHERE, "%s ends within chunk %" PRIu64, r->path,
                         r->index);
    memcpy(&sum, r->buffer + want, sizeof sum);
    if (sum != chunk_sum(r->buffer, want, r->index))
        return weft_fail(dg, W1006, WEFT_NOWHERE,
                         "%s: bytes of chunk %" PRIu64 ", from byte %" PRIu64 " on, were changed",
                         r->path, r->index,
                         CHUNK_HEAD_BYTES + r->index * (CHUNK_BYTES + sizeof sum));
    r->left -= want;
    r->index++;
    r->at = 0;
    r->n = want;
    return WEFT_OK;
}

weft_status chunk_reader_rewind(weft_diag *dg, chunk_reader *r)
{
    if (lseek(r->fd, CHUNK_HEAD_BYTES, SEEK_SET) < 0)
        return weft_fail(dg, W1003, WEFT_NOWHERE, "cannot read %s again", r->path);
    r->left = r->bytes;
    r->index = r->at = r->n = 0;
    return WEFT_OK;
}

static weft_status check_all(weft_diag *dg, chunk_reader *r)
{
    WEFT_TRY(chunk_reader_rewind(dg, r));
    while (r->left > 0)
        WEFT_TRY(next_chunk(dg, r));
    return chunk_reader_rewind(dg, r);
}

weft_status chunk_reader_open(weft_diag *dg, const char *path, const chunk_kind *kind,
                              chunk_reader **out_r)
{
    int fd;
    uint64_t file_bytes;
    WEFT_TRY(file_open(dg, path, &fd, &file_bytes));
    chunk_reader *r = mem_alloc(sizeof *r);
    r->fd = fd;
    r->kind = kind;
    r->home = arena_create();
    r->path = arena_str(r->home, str_of(path)).p;
    weft_status st = check_head(dg, r, file_bytes);
    if (st == WEFT_OK)
        st = check_all(dg, r);
    if (st == WEFT_OK)
        *out_r = r;
    else
        chunk_reader_close(r);
    return st;
}

void chunk_reader_close(chunk_reader *r)
{
    if (!r)
        return;
    file_close(r->fd);
    arena_destroy(r->home);
    mem_free(r);
}

uint64_t chunk_reader_left(const chunk_reader *r)
{
    return r->left + r->n - r->at;
}

weft_status chunk_reader_get(weft_diag *dg, chunk_reader *r, void *to, size_t n)
{
    unsigned char *p = to;
    if (n > chunk_reader_left(r))
        return weft_fail(dg, W1006, WEFT_NOWHERE,
                         "%s: %zu more bytes are expected where %" PRIu64 " are left", r->path, n,
                         chunk_reader_left(r));
    while (n > 0) {
        if (r->at == r->n)
            WEFT_TRY(next_chunk(dg, r));
        size_t part = n < r->n - r->at ? n : r->n - r->at;
        memcpy(p, r->buffer + r->at, part);
        r->at += part;
        p += part;
        n -= part;
    }
    return WEFT_OK;
}

const char *chunk_reader_path(const chunk_reader *r)
{
    return r->path;
}
