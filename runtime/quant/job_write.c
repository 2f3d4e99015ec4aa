/* job_write.c - rows read, converted by all threads, and written in order. */
#include "runtime/quant/job_impl.h"

#include "kernels/ref/dequant.h"
#include "runtime/base/mem.h"
#include "runtime/exec/pool.h"
#include "runtime/quant/job_write.h"
#include "runtime/quant/quant.h"
#include <inttypes.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum {
    BATCH_BYTES = 8 << 20,   /* of output, between two looks at the disk */
    PIECE_NUMBERS = 1 << 14, /* a thread's share at a time */
    LOOK_NUMBERS =
        1 << 12, /* the same where numbers are only looked at; whole blocks of any type */
};

#define F16_LARGEST 65504.0f

/* One batch of rows of one tensor. */
typedef struct {
    const quant_job *j;
    const quant_tensor *t;
    int64_t first, rows, piece; /* rows; a thread takes `piece` at a time */
    size_t row_bytes;
    unsigned char *out;
    float *scratch; /* two rows for each thread */
    bool any;       /* any number will do */
    atomic_llong next;
    atomic_llong
        fault; /* the first number of the tensor that is none or cannot be stored; NO_FAULT */
} batch;

#define NO_FAULT INT64_MAX

static const float *importance_of(const quant_tensor *t, int64_t row)
{
    const imatrix_entry *e = t->importance;
    return e ? e->sums + row / (t->rows / e->mats) * e->columns : NULL;
}

/* The first of n numbers that is not finite; n: none. */
static int64_t find_fault(const float *x, int64_t n)
{
    int64_t i = 0;
    while (i < n && isfinite(x[i]))
        i++;
    return i;
}

static int64_t largest(const float *x, int64_t n)
{
    int64_t at = 0;
    for (int64_t i = 1; i < n; i++)
        at = fabsf(x[i]) > fabsf(x[at]) ? i : at;
    return at;
}

static void put_fault(atomic_llong *to, long long fault)
{
    long long was = atomic_load(to);
    while (fault < was && !atomic_compare_exchange_weak(to, &was, fault))
        ;
}

/* Is the row of numbers, and is it still when read back? Most types have scales in F16, so only where a number is more
 * than that holds is it read back, and the largest is to blame. */
static void check_row(batch *b, int64_t row, const float *x, const unsigned char *stored,
                      float *scratch)
{
    int64_t n = b->t->columns, at = find_fault(x, n);
    if (at == n && fabsf(x[largest(x, n)]) > F16_LARGEST) {
        dequant_row(b->t->to, stored, scratch, n);
        at = find_fault(scratch, n) < n ? largest(x, n) : n;
    }
    if (at < n)
        put_fault(&b->fault, row * n + at);
}

static void run_batch(void *ctx, int index, int count)
{
    batch *b = ctx;
    float *row = b->scratch + (int64_t)index * 2 * b->t->columns, *scratch = row + b->t->columns;
    (void)count;
    for (;;) {
        int64_t begin = atomic_fetch_add(&b->next, b->piece), end = begin + b->piece;
        end = end < b->rows ? end : b->rows;
        if (begin >= b->rows)
            return;
        for (int64_t i = begin; i < end; i++) {
            unsigned char *to = b->out + (size_t)i * b->row_bytes;
            job_read_row(b->j, b->t, b->first + i, row, scratch);
            quant_row(b->t->to, row, importance_of(b->t, b->first + i), to, b->t->columns);
            if (!b->any)
                check_row(b, b->first + i, row, to, scratch);
        }
    }
}

/* W1018: where x, number `fault` of the tensor as it is written, stands. */
static weft_status fail_fault(weft_diag *dg, const quant_job *j, const quant_tensor *t,
                              int64_t fault, float x)
{
    const char *path = model_file_path(j->mf);
    int64_t index[sizeof t->shape / sizeof *t->shape];
    char at[128] = "";
    size_t n = 0;
    for (int k = t->rank - 1; k >= 0; k--) {
        index[k] = fault % t->shape[k];
        fault /= t->shape[k];
    }
    for (int k = 0; k < t->rank; k++)
        n += (size_t)snprintf(at + n, sizeof at - n, "%s%" PRId64, k ? ", " : "", index[k]);
    if (isfinite(x))
        return weft_fail(dg, W1018, WEFT_NOWHERE,
                         "%s: " STR_FMT "[%s] is %g, more than %s can hold", path, STR_ARG(t->name),
                         at, (double)x, dtype_row_of(t->to)->name);
    return weft_fail(dg, W1018, WEFT_NOWHERE, "%s: " STR_FMT "[%s] is %s", path, STR_ARG(t->name),
                     at,
                     isnan(x) ? "NaN"
                     : x > 0  ? "infinite"
                              : "minus infinite");
}

static void report(job_writing *w, uint64_t bytes)
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
    batch b = {
        .j = w->j, .t = t, .row_bytes = row_bytes, .any = w->how->allow_nan, .fault = NO_FAULT};
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
        int64_t fault = atomic_load(&b.fault);
        if (fault != NO_FAULT) {
            job_read_row(b.j, t, fault / t->columns, b.scratch, b.scratch + t->columns);
            st = fail_fault(dg, b.j, t, fault, b.scratch[fault % t->columns]);
        } else {
            st = gguf_sink_put(dg, to, b.out, (size_t)b.rows * row_bytes);
        }
        report(w, (uint64_t)b.rows * from_bytes);
    }
    mem_free(b.out);
    mem_free(b.scratch);
    return st;
}

/* ---- as they are ---- */

/* Numbers that are copied, looked at by all threads. */
typedef struct {
    const quant_tensor *t;
    int64_t end; /* of the tensor's numbers */
    atomic_llong next, fault;
} look;

static const float *stored_numbers(const quant_tensor *t, int64_t at, int64_t n, float *dst)
{
    const dtype_row *type = dtype_row_of(t->from);
    const char *from = t->source->stored->data;
    dequant_row(t->from, from + (size_t)(at / type->elems) * type->bytes, dst, n);
    return dst;
}

static void run_look(void *ctx, int index, int count)
{
    look *l = ctx;
    float x[LOOK_NUMBERS];
    (void)index;
    (void)count;
    for (;;) {
        int64_t at = atomic_fetch_add(&l->next, LOOK_NUMBERS);
        if (at >= l->end)
            return;
        int64_t n = l->end - at < LOOK_NUMBERS ? l->end - at : LOOK_NUMBERS;
        int64_t fault = find_fault(stored_numbers(l->t, at, n, x), n);
        if (fault < n)
            put_fault(&l->fault, at + fault);
    }
}

static weft_status check_stored(weft_diag *dg, job_writing *w, const quant_tensor *t, int64_t begin,
                                int64_t end)
{
    pool_gang g;
    look l = {.t = t, .end = end, .next = begin, .fault = NO_FAULT};
    if (w->how->allow_nan || !dequant_has(t->from))
        return WEFT_OK;
    pool_gather(&g, w->how->threads);
    pool_go(&g, run_look, &l);
    int64_t fault = atomic_load(&l.fault), block = dtype_row_of(t->from)->elems;
    float x[LOOK_NUMBERS];
    if (fault == NO_FAULT)
        return WEFT_OK;
    stored_numbers(t, fault - fault % block, block, x);
    return fail_fault(dg, w->j, t, fault, x[fault % block]);
}

static weft_status copy(weft_diag *dg, gguf_sink *to, job_writing *w, const quant_tensor *t)
{
    const model_tensor *from = t->source->stored;
    const dtype_row *type = dtype_row_of(t->from);
    int64_t most = (int64_t)(BATCH_BYTES / type->bytes) * type->elems;
    for (int64_t at = 0, n; at < from->elems; at += n) {
        n = from->elems - at < most ? from->elems - at : most;
        size_t begin = (size_t)(at / type->elems) * type->bytes;
        size_t bytes = (size_t)(n / type->elems) * type->bytes;
        WEFT_TRY(check_stored(dg, w, t, at, at + n));
        WEFT_TRY(gguf_sink_put(dg, to, (const char *)from->data + begin, bytes));
        report(w, bytes);
    }
    return WEFT_OK;
}

static weft_status fill(weft_diag *dg, gguf_sink *to, void *ctx)
{
    job_writing *w = ctx;
    const quant_tensor *t = &w->j->tensors.at[w->at++]; /* the writer keeps the order */
    if (t->source->stored && t->to == t->from && !t->change.apply)
        WEFT_TRY(copy(dg, to, w, t));
    else if (t->rows > 0 && t->columns > 0)
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
