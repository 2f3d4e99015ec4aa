/* gguf_write.c - collects keys and tensors, lays the file out, writes it from front to back. */
#include "runtime/formats/gguf_write.h"

#include "runtime/base/intmath.h"
#include "runtime/base/mem.h"
#include "runtime/base/vec.h"
#include "runtime/formats/gguf_format.h"
#include "runtime/formats/out_file.h"
#include <stdlib.h>

typedef struct {
    str name;
    dtype type;
    int rank;
    int64_t shape[GGUF_RANK_MAX];
    size_t bytes;
    gguf_fill *fill;
    void *ctx;
    const void *data; /* where there is no fill */
} tensor;

struct gguf_writer {
    VEC(value_member) keys;
    VEC(tensor) tensors;
    void (*part)(const char *path);
};

struct gguf_sink {
    out_file *f;
    size_t left;
};

gguf_writer *gguf_writer_create(void)
{
    gguf_writer *w = mem_alloc(sizeof *w);
    *w = (gguf_writer){0};
    return w;
}

void gguf_writer_destroy(gguf_writer *w)
{
    if (!w)
        return;
    VEC_FREE(&w->keys);
    VEC_FREE(&w->tensors);
    mem_free(w);
}

/* Arrays that came from JSON have items of any type; if they are all of one, GGUF can say so. */
static value_type item_type(const value *v)
{
    if (v->item != VT_NULL)
        return v->item;
    if (v->as.array.n == 0)
        return VT_I32;
    value_type t = value_at(v, 0).type;
    for (size_t i = 1; i < v->as.array.n; i++)
        if (value_at(v, i).type != t)
            return VT_NULL;
    return t;
}

/* depth: of v, if it is an array. */
static bool can_store(const value *v, int depth)
{
    if (v->type != VT_ARRAY)
        return value_type_row_of(v->type)->gguf >= 0;
    if (depth > GGUF_DEPTH_MAX)
        return false;
    value_type item = item_type(v);
    bool fits = value_type_row_of(item)->gguf >= 0;
    for (size_t i = 0; fits && item == VT_ARRAY && i < v->as.array.n; i++) {
        value inner = value_at(v, i);
        fits = can_store(&inner, depth + 1);
    }
    return fits;
}

bool gguf_writer_key(gguf_writer *w, str name, value v)
{
    WEFT_ASSERT(name.n > 0 && name.n <= GGUF_NAME_MAX);
    if (!can_store(&v, 1))
        return false;
    for (size_t i = 0; i < w->keys.n; i++)
        if (str_eq(w->keys.at[i].name, name)) {
            w->keys.at[i].v = v;
            return true;
        }
    value_member m = {name, v};
    VEC_PUSH(&w->keys, m);
    return true;
}

static void add_tensor(gguf_writer *w, const tensor *t, const int64_t *shape)
{
    WEFT_ASSERT(t->rank >= 0 && t->rank <= GGUF_RANK_MAX && t->name.n > 0 &&
                t->name.n <= GGUF_NAME_MAX && dtype_row_of(t->type)->ggml >= 0);
    tensor copy = *t;
    int64_t elems = 1;
    bool fits = true;
    for (int i = 0; i < t->rank; i++) {
        fits = fits && shape[i] > 0 && i64_mul(elems, shape[i], &elems);
        copy.shape[i] = shape[i];
    }
    fits = fits && (t->rank == 0 || shape[t->rank - 1] % dtype_row_of(t->type)->elems == 0) &&
           dtype_bytes(t->type, elems, &copy.bytes);
    WEFT_ASSERT(fits);
    VEC_PUSH(&w->tensors, copy);
}

void gguf_writer_tensor(gguf_writer *w, str name, dtype t, int rank, const int64_t *shape,
                        gguf_fill *fill, void *ctx)
{
    add_tensor(w, &(tensor){.name = name, .type = t, .rank = rank, .fill = fill, .ctx = ctx},
               shape);
}

void gguf_writer_tensor_data(gguf_writer *w, str name, dtype t, int rank, const int64_t *shape,
                             const void *data)
{
    add_tensor(w, &(tensor){.name = name, .type = t, .rank = rank, .data = data}, shape);
}

/* The header is made in memory: even with the vocabulary of a tokenizer it is a few megabytes. */
static void put(strbuf *out, const void *data, size_t n)
{
    strbuf_put(out, (str){data, n});
}

static void put_u32(strbuf *out, uint32_t x)
{
    put(out, &x, sizeof x);
}

static void put_u64(strbuf *out, uint64_t x)
{
    put(out, &x, sizeof x);
}

static void put_str(strbuf *out, str s)
{
    put_u64(out, s.n);
    strbuf_put(out, s);
}

static void put_number(strbuf *out, const value *v)
{
    if (v->type == VT_F32)
        put(out, &(float){(float)v->as.f}, sizeof(float));
    else if (v->type == VT_BOOL)
        put(out, &(unsigned char){v->as.b}, 1);
    else /* little endian: the low bytes of a wider integer are the narrower one */
        put(out, &v->as, value_type_row_of(v->type)->bytes);
}

static void put_value(strbuf *out, const value *v)
{
    if (v->type == VT_STR) {
        put_str(out, v->as.s);
        return;
    }
    if (v->type != VT_ARRAY) {
        put_number(out, v);
        return;
    }
    size_t n = v->as.array.n, item_bytes = value_type_row_of(v->item)->bytes;
    put_u32(out, (uint32_t)value_type_row_of(item_type(v))->gguf);
    put_u64(out, n);
    if (item_bytes > 0) {
        put(out, v->as.array.data, n * item_bytes);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        value item = value_at(v, i);
        put_value(out, &item);
    }
}

static void put_keys(strbuf *out, const gguf_writer *w)
{
    for (size_t i = 0; i < w->keys.n; i++) {
        const value_member *m = &w->keys.at[i];
        put_str(out, m->name);
        put_u32(out, (uint32_t)value_type_row_of(m->v.type)->gguf);
        put_value(out, &m->v);
    }
}

static uint64_t alignment_of(const gguf_writer *w)
{
    int64_t x = GGUF_ALIGNMENT;
    for (size_t i = 0; i < w->keys.n; i++)
        if (str_eqz(w->keys.at[i].name, GGUF_KEY_ALIGNMENT)) {
            WEFT_ASSERT(w->keys.at[i].v.type == VT_U32);
            x = w->keys.at[i].v.as.i;
        }
    WEFT_ASSERT(x > 0 && x <= GGUF_ALIGNMENT_MAX && (x & (x - 1)) == 0);
    return (uint64_t)x;
}

/* Returns the bytes of all tensors, with the gaps between them. */
static uint64_t put_directory(strbuf *out, const gguf_writer *w, uint64_t alignment)
{
    uint64_t offset = 0;
    for (size_t i = 0; i < w->tensors.n; i++) {
        const tensor *t = &w->tensors.at[i];
        put_str(out, t->name);
        put_u32(out, (uint32_t)t->rank);
        for (int j = t->rank - 1; j >= 0; j--)
            put_u64(out, (uint64_t)t->shape[j]);
        put_u32(out, (uint32_t)dtype_row_of(t->type)->ggml);
        put_u64(out, offset);
        bool fits = u64_add(offset, t->bytes, &offset) && u64_align_up(offset, alignment, &offset);
        WEFT_ASSERT(fits);
    }
    return offset;
}

uint64_t gguf_writer_head(const gguf_writer *w, strbuf *out)
{
    uint64_t alignment = alignment_of(w), end;
    put(out, GGUF_MAGIC, 4);
    put_u32(out, GGUF_VERSION);
    put_u64(out, w->tensors.n);
    put_u64(out, w->keys.n);
    put_keys(out, w);
    uint64_t data_bytes = put_directory(out, w, alignment);
    bool fits = u64_align_up(out->n, alignment, &end);
    WEFT_ASSERT(fits);
    strbuf_fill(out, '\0', (size_t)end - out->n);
    return data_bytes;
}

weft_status gguf_sink_put(weft_diag *dg, gguf_sink *to, const void *data, size_t n)
{
    WEFT_ASSERT(n <= to->left);
    to->left -= n;
    return out_file_put(dg, to->f, data, n);
}

static weft_status put_data(weft_diag *dg, out_file *f, const gguf_writer *w, uint64_t alignment)
{
    for (size_t i = 0; i < w->tensors.n; i++) {
        const tensor *t = &w->tensors.at[i];
        gguf_sink sink = {f, t->bytes};
        if (t->fill)
            WEFT_TRY(t->fill(dg, &sink, t->ctx));
        else
            WEFT_TRY(gguf_sink_put(dg, &sink, t->data, t->bytes));
        WEFT_ASSERT(sink.left == 0);
        WEFT_TRY(out_file_pad(dg, f, alignment));
    }
    return WEFT_OK;
}

static weft_status put_all(weft_diag *dg, out_file *f, const gguf_writer *w)
{
    strbuf head = {0};
    gguf_writer_head(w, &head);
    weft_status status = out_file_put(dg, f, head.p, head.n);
    strbuf_free(&head);
    if (status == WEFT_OK)
        status = put_data(dg, f, w, alignment_of(w));
    return status == WEFT_OK ? out_file_finish(dg, f) : status;
}

void gguf_writer_on_part(gguf_writer *w, void (*report)(const char *path))
{
    w->part = report;
}

weft_status gguf_writer_write(weft_diag *dg, gguf_writer *w, const char *path)
{
    out_file *f;
    WEFT_TRY(out_file_create(dg, path, &f));
    if (w->part)
        w->part(out_file_part(f));
    weft_status status = put_all(dg, f, w);
    if (w->part)
        w->part(NULL);
    out_file_destroy(f);
    return status;
}
