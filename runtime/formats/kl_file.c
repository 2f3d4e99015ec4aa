/* kl_file.c - writes and reads files of distributions, row by row. */
#include "runtime/formats/kl_file.h"

#include "runtime/base/file.h"
#include "runtime/base/mem.h"
#include "runtime/formats/out_file.h"
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#define MAGIC "WEFTKL\r\n" /* a transfer that changes line ends is seen at once */

enum { VERSION = 1, HEAD_BYTES = 96, ALIGN = 8 };

/* The header as it is stored. */
typedef struct {
    char magic[8];
    uint32_t version, head_bytes;
    uint64_t vocab, context, stride, chunks, n_token, n_row, model_lo, model_hi;
    int32_t bos;
    uint32_t steps;
    uint64_t zero;
} disk_head;

typedef struct {
    float logprob;
    uint32_t token, top;
    float log_sum;
} disk_row;

_Static_assert(sizeof(disk_head) == HEAD_BYTES, "the header has no gaps");
_Static_assert(sizeof(disk_row) == 16, "nor has a row");

static size_t aligned(size_t n)
{
    return (n + ALIGN - 1) / ALIGN * ALIGN;
}

static size_t row_bytes_of(int64_t vocab)
{
    return aligned(sizeof(disk_row) + (size_t)vocab * sizeof(uint16_t));
}

static size_t ids_bytes_of(int64_t n_token)
{
    return aligned((size_t)n_token * sizeof(int32_t));
}

void kl_weights(float table[65536])
{
    for (int i = 0; i < 65536; i++)
        table[i] = (float)exp(-(double)i / KL_STEPS);
}

/* ---- writing ---- */

struct kl_writer {
    out_file *f;
    kl_head head;
    int64_t n_put;
    unsigned char *row; /* as it is stored */
};

static weft_status put_head(weft_diag *dg, kl_writer *w, const int32_t *ids)
{
    const kl_head *h = &w->head;
    disk_head d = {.magic = MAGIC,
                   .version = VERSION,
                   .head_bytes = HEAD_BYTES,
                   .vocab = (uint64_t)h->vocab,
                   .context = (uint64_t)h->context,
                   .stride = (uint64_t)h->stride,
                   .chunks = (uint64_t)h->chunks,
                   .n_token = (uint64_t)h->n_token,
                   .n_row = (uint64_t)h->n_row,
                   .model_lo = h->model.lo,
                   .model_hi = h->model.hi,
                   .bos = h->bos,
                   .steps = KL_STEPS};
    WEFT_TRY(out_file_put(dg, w->f, &d, sizeof d));
    WEFT_TRY(out_file_put(dg, w->f, ids, (size_t)h->n_token * sizeof *ids));
    return out_file_pad(dg, w->f, ALIGN);
}

weft_status kl_writer_create(weft_diag *dg, const char *path, const kl_head *h, const int32_t *ids,
                             kl_writer **out_w)
{
    WEFT_ASSERT(h->vocab > 0 && h->n_token > 0 && h->n_row > 0);
    if (h->vocab > KL_VOCAB_MAX || h->n_token > KL_TOKENS_MAX)
        return weft_fail(dg, W1105, WEFT_NOWHERE,
                         "%s: %" PRId64 " tokens with a vocabulary of %" PRId64
                         " are more than such a file may hold, %d and %d",
                         path, h->n_token, h->vocab, KL_TOKENS_MAX, KL_VOCAB_MAX);
    out_file *f;
    WEFT_TRY(out_file_create(dg, path, &f));
    kl_writer *w = mem_alloc(sizeof *w);
    *w = (kl_writer){.f = f, .head = *h, .row = mem_alloc(row_bytes_of(h->vocab))};
    memset(w->row, 0, row_bytes_of(h->vocab));
    weft_status st = put_head(dg, w, ids);
    if (st == WEFT_OK)
        *out_w = w;
    else
        kl_writer_destroy(w);
    return st;
}

weft_status kl_writer_put(weft_diag *dg, kl_writer *w, const kl_row *row, const float *logits,
                          float largest)
{
    WEFT_ASSERT(w->n_put < w->head.n_row);
    disk_row d = {row->logprob, row->token, row->top, row->log_sum};
    memcpy(w->row, &d, sizeof d);
    uint16_t *below = (uint16_t *)(void *)(w->row + sizeof d);
    for (int64_t i = 0; i < w->head.vocab; i++) {
        float x = (largest - logits[i]) * KL_STEPS + 0.5f;
        below[i] = x < 65535 ? (uint16_t)x : 65535;
    }
    w->n_put++;
    return out_file_put(dg, w->f, w->row, row_bytes_of(w->head.vocab));
}

const char *kl_writer_part(const kl_writer *w)
{
    return out_file_part(w->f);
}

weft_status kl_writer_finish(weft_diag *dg, kl_writer *w)
{
    WEFT_ASSERT(w->n_put == w->head.n_row);
    return out_file_finish(dg, w->f);
}

void kl_writer_destroy(kl_writer *w)
{
    if (!w)
        return;
    out_file_destroy(w->f);
    mem_free(w->row);
    mem_free(w);
}

/* ---- reading ---- */

struct kl_reader {
    int fd;
    char *path;
    kl_head head;
    int32_t *ids;
    int64_t n_got;
    unsigned char *row;
};

/* n bytes, all of them. */
static weft_status take(weft_diag *dg, const kl_reader *r, void *to, size_t n, const char *what)
{
    size_t got;
    WEFT_TRY(file_read(dg, r->fd, r->path, to, n, &got));
    if (got == n)
        return WEFT_OK;
    return weft_fail(dg, W1005, WEFT_NOWHERE,
                     "%s: %s takes %zu bytes, but the file has only %zu more", r->path, what, n,
                     got);
}

static weft_status check_magic(weft_diag *dg, const kl_reader *r, const disk_head *d)
{
    if (memcmp(d->magic, MAGIC, sizeof d->magic) != 0) {
        weft_status st =
            weft_fail(dg, W1006, WEFT_NOWHERE,
                      "%s: is not a file of distributions: it does not begin with WEFTKL", r->path);
        weft_note(dg, "`weft perplexity --kl-save FILE` writes one");
        return st;
    }
    if (d->version == VERSION && d->head_bytes == HEAD_BYTES && d->steps == KL_STEPS)
        return WEFT_OK;
    weft_status st =
        weft_fail(dg, W1007, WEFT_NOWHERE,
                  "%s: is of version %" PRIu32 " with a header of %" PRIu32 " bytes and %" PRIu32
                  " steps, expected %d, %d and %d",
                  r->path, d->version, d->head_bytes, d->steps, VERSION, HEAD_BYTES, KL_STEPS);
    weft_note(dg, "write it again with this Weft");
    return st;
}

/* Each count against its limit, so that sizes made from them fit, and the file against those sizes. */
static weft_status check_counts(weft_diag *dg, const kl_reader *r, const disk_head *d,
                                uint64_t bytes)
{
    const struct {
        const char *name;
        uint64_t n, least, most;
    } counts[] = {
        {"vocab", d->vocab, 1, KL_VOCAB_MAX},     {"context", d->context, 2, INT32_MAX},
        {"stride", d->stride, 0, INT32_MAX},      {"chunks", d->chunks, 1, KL_TOKENS_MAX},
        {"tokens", d->n_token, 1, KL_TOKENS_MAX}, {"rows", d->n_row, 1, KL_TOKENS_MAX},
    };
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        if (counts[i].n < counts[i].least || counts[i].n > counts[i].most)
            return weft_fail(dg, W1006, WEFT_NOWHERE,
                             "%s: the header names %" PRIu64 " %s, expected %" PRIu64
                             " to %" PRIu64,
                             r->path, counts[i].n, counts[i].name, counts[i].least, counts[i].most);
    if (d->bos < -1 || (d->bos >= 0 && (uint64_t)d->bos >= d->vocab) || d->zero != 0)
        return weft_fail(dg, W1006, WEFT_NOWHERE,
                         "%s: the header names token %" PRId32 " of %" PRIu64, r->path, d->bos,
                         d->vocab);
    /* At most 2^28 rows of under 2^26 bytes. */
    uint64_t want =
        HEAD_BYTES + ids_bytes_of((int64_t)d->n_token) + d->n_row * row_bytes_of((int64_t)d->vocab);
    if (want == bytes)
        return WEFT_OK;
    return weft_fail(dg, want > bytes ? W1005 : W1006, WEFT_NOWHERE,
                     "%s: its header makes %" PRIu64 " bytes, but the file has %" PRIu64, r->path,
                     want, bytes);
}

static weft_status read_head(weft_diag *dg, kl_reader *r, uint64_t bytes)
{
    disk_head d;
    WEFT_TRY(take(dg, r, &d, sizeof d, "the header"));
    WEFT_TRY(check_magic(dg, r, &d));
    WEFT_TRY(check_counts(dg, r, &d, bytes));
    r->head = (kl_head){.vocab = (int64_t)d.vocab,
                        .context = (int64_t)d.context,
                        .stride = (int64_t)d.stride,
                        .chunks = (int64_t)d.chunks,
                        .n_token = (int64_t)d.n_token,
                        .n_row = (int64_t)d.n_row,
                        .model = {d.model_lo, d.model_hi},
                        .bos = d.bos};
    r->ids = mem_alloc(ids_bytes_of(r->head.n_token));
    WEFT_TRY(take(dg, r, r->ids, ids_bytes_of(r->head.n_token), "the text"));
    for (int64_t i = 0; i < r->head.n_token; i++)
        if (r->ids[i] < 0 || r->ids[i] >= r->head.vocab)
            return weft_fail(dg, W1006, WEFT_NOWHERE,
                             "%s: token %" PRId64 " of the text is %" PRId32
                             ", expected 0 to %" PRId64,
                             r->path, i, r->ids[i], r->head.vocab - 1);
    r->row = mem_alloc(row_bytes_of(r->head.vocab));
    return WEFT_OK;
}

weft_status kl_reader_open(weft_diag *dg, const char *path, kl_reader **out_r)
{
    int fd;
    uint64_t bytes;
    WEFT_TRY(file_open(dg, path, &fd, &bytes));
    size_t n = strlen(path) + 1;
    kl_reader *r = mem_alloc(sizeof *r);
    *r = (kl_reader){.fd = fd, .path = mem_alloc(n)};
    memcpy(r->path, path, n);
    weft_status st = read_head(dg, r, bytes);
    if (st == WEFT_OK)
        *out_r = r;
    else
        kl_reader_close(r);
    return st;
}

const kl_head *kl_reader_head(const kl_reader *r)
{
    return &r->head;
}

const int32_t *kl_reader_ids(const kl_reader *r)
{
    return r->ids;
}

weft_status kl_reader_next(weft_diag *dg, kl_reader *r, kl_row *out_row)
{
    WEFT_ASSERT(r->n_got < r->head.n_row);
    disk_row d;
    WEFT_TRY(take(dg, r, r->row, row_bytes_of(r->head.vocab), "a row"));
    memcpy(&d, r->row, sizeof d);
    const uint16_t *below = (const uint16_t *)(const void *)(r->row + sizeof d);
    /* The likeliest token stands at 0, which also makes the sum of all weights at least 1. */
    if (d.token >= r->head.vocab || d.top >= r->head.vocab || below[d.top] != 0 ||
        !isfinite(d.logprob) || d.logprob > 0 || !isfinite(d.log_sum))
        return weft_fail(dg, W1006, WEFT_NOWHERE, "%s: row %" PRId64 " is damaged", r->path,
                         r->n_got);
    r->n_got++;
    *out_row = (kl_row){d.logprob, d.token, d.top, d.log_sum, below};
    return WEFT_OK;
}

void kl_reader_close(kl_reader *r)
{
    if (!r)
        return;
    file_close(r->fd);
    mem_free(r->path);
    mem_free(r->ids);
    mem_free(r->row);
    mem_free(r);
}
