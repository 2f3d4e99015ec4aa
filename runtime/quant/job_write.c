/* job_write.c - rows read, converted by all threads, and written in order. */
#include "runtime/quant/job_impl.h"

#include "runtime/base/mem.h"
#include "runtime/exec/pool.h"
#include "runtime/quant/job_write.h"
#include "runtime/quant/quant.h"
#include <stdatomic.h>
#include <stdlib.h>

enum {
    BATCH_BYTES = 8 << 20,   /* of output, between two looks at the disk */
    PIECE_NUMBERS = 1 << 14, /* a thread's share at a time */
};

/* One batch of rows of one tensor. */
typedef struct {
    const quant_job *j;
    const quant_tensor *t;
    int64_t first, rows, piece; /* rows; a thread takes `piece` at a time */
    size_t row_bytes;
    unsigned char *out;
    float *scratch; /* two rows for each thread */
    atomic_llong next;
} batch;

static const float *importance_of(const quant_tensor *t, int64_t row)
{
    const imatrix_entry *e = t->importance;
    return e ? e->sums + row / (t->rows / e->mats) * e->columns : NULL;
}

static void run_batch(void *ctx, int index, int count)
{
    batch *b = ctx;
    float *row = b->scratch + (int64_t)index * 2 * b->t->columns;
    (void)count;
    for (;;) {
        int64_t begin = atomic_fetch_add(&b->next, b->piece), end = begin + b->piece;
        end = end < b->rows ? end : b->rows;
        if (begin >= b->rows)
            return;
        for (int64_t i = begin; i < end; i++) {
            job_read_row(b->j, b->t, b->first + i, row, row + b->t->columns);
            quant_row(b->t->to, row, importance_of(b->t, b->first + i),
                      b->out + (size_t)i * b->row_bytes, b->t->columns);
        }
    }
}

static void tell(job_writing *w, uint64_t bytes)
{
    w->done += bytes;
    if (w->how->progress)
        w->how->progress(w->how->ctx, w->done);
}

static size_t row_bytes_of(dtype t, int64_t columns)
{
    size_t bytes = 0;
    bool fits = dtype_bytes(t, columns, &bytes);
    WEFT_ASSERT(fits);
    return bytes;
}

static weft_status convert(weft_diag *dg, gguf_sink *to, job_writing *w, const quant_tensor *t)
{
    size_t row_bytes = row_bytes_of(t->to, t->columns), from_bytes;
    int64_t most = (int64_t)(BATCH_BYTES / row_bytes) + 1;
    int threads = w->how->threads;
    batch b = {.j = w->j, .t = t, .row_bytes = row_bytes};
    most = most < t->rows ? most : t->rows;
    b.piece = PIECE_NUMBERS / t->columns + 1;
    b.out = mem_alloc((size_t)most * row_bytes);
    b.scratch = mem_alloc((size_t)threads * 2 * (size_t)t->columns * sizeof *b.scratch);
    from_bytes = dtype_bytes(t->from, t->columns, &from_bytes) ? from_bytes : row_bytes;
    weft_status st = WEFT_OK;
    for (b.first = 0; st == WEFT_OK && b.first < t->rows; b.first += b.rows) {
        pool_gang g;
        b.rows = t->rows - b.first < most ? t->rows - b.first : most;
        atomic_store(&b.next, 0);
        pool_gather(&g, threads);
        pool_go(&g, run_batch, &b);
        st = gguf_sink_put(dg, to, b.out, (size_t)b.rows * row_bytes);
        tell(w, (uint64_t)b.rows * from_bytes);
    }
    mem_free(b.out);
    mem_free(b.scratch);
    return st;
}

static weft_status copy(weft_diag *dg, gguf_sink *to, job_writing *w, const model_tensor *t)
{
    for (size_t at = 0, n; at < t->bytes; at += n) {
        n = t->bytes - at < BATCH_BYTES ? t->bytes - at : BATCH_BYTES;
        WEFT_TRY(gguf_sink_put(dg, to, (const char *)t->data + at, n));
        tell(w, n);
    }
    return WEFT_OK;
}

static weft_status fill(weft_diag *dg, gguf_sink *to, void *ctx)
{
    job_writing *w = ctx;
    const quant_tensor *t = &w->j->tensors.at[w->at++]; /* the writer keeps the order */
    if (t->source->stored && t->to == t->from)
        WEFT_TRY(copy(dg, to, w, t->source->stored));
    else
        WEFT_TRY(convert(dg, to, w, t));
    /* What was read from a file that shrank may be zeros. */
    return w->at == w->j->tensors.n ? model_file_check(dg, w->j->mf) : WEFT_OK;
}

gguf_writer *job_writer(quant_job *j, job_writing *w)
{
    gguf_writer *out = gguf_writer_create();
    for (size_t i = 0; i < j->keys.n; i++)
        (void)gguf_writer_key(out, j->keys.at[i].name, j->keys.at[i].v);
    for (size_t i = 0; i < j->tensors.n; i++) {
        const quant_tensor *t = &j->tensors.at[i];
        gguf_writer_tensor(out, t->name, t->to, t->rank, t->shape, fill, w);
    }
    return out;
}

uint64_t quant_job_bytes(const quant_job *j)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < j->tensors.n; i++) {
        const quant_tensor *t = &j->tensors.at[i];
        size_t n;
        if (dtype_bytes(t->from, t->columns, &n))
            sum += (uint64_t)t->rows * n;
    }
    return sum;
}

weft_status quant_job_write(weft_diag *dg, quant_job *j, const char *path,
                            const quant_write_options *how)
{
    WEFT_TRY(pool_acquire(dg, how->threads, false));
    job_writing w = {.j = j, .how = how};
    gguf_writer *out = job_writer(j, &w);
    gguf_writer_on_part(out, how->part);
    weft_status st = gguf_writer_write(dg, out, path);
    gguf_writer_destroy(out);
    pool_release();
    return st;
}
