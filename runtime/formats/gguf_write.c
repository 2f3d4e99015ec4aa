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
    free(w);
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

static weft_status put_u32(weft_diag *dg, out_file *f, uint32_t x)
{
    return out_file_put(dg, f, &x, sizeof x);
}

static weft_status put_u64(weft_diag *dg, out_file *f, uint64_t x)
{
    return out_file_put(dg, f, &x, sizeof x);
}

static weft_status put_str(weft_diag *dg, out_file *f, str s)
{
    WEFT_TRY(put_u64(dg, f, s.n));
    return out_file_put(dg, f, s.p, s.n);
}

static weft_status put_number(weft_diag *dg, out_file *f, const value *v)
{
    if (v->type == VT_F32) {
        float x = (float)v->as.f;
        return out_file_put(dg, f, &x, sizeof x);
    }
    if (v->type == VT_BOOL)
        return out_file_put(dg, f, &(unsigned char){v->as.b}, 1);
    /* Little endian: the low bytes of a wider integer are the narrower one. */
    return out_file_put(dg, f, &v->as, value_type_row_of(v->type)->bytes);
}

static weft_status put_value(weft_diag *dg, out_file *f, const value *v)
{
    if (v->type == VT_STR)
        return put_str(dg, f, v->as.s);
    if (v->type != VT_ARRAY)
        return put_number(dg, f, v);
    size_t n = v->as.array.n, item_bytes = value_type_row_of(v->item)->bytes;
    WEFT_TRY(put_u32(dg, f, (uint32_t)value_type_row_of(item_type(v))->gguf));
    WEFT_TRY(put_u64(dg, f, n));
    if (item_bytes > 0)
        return out_file_put(dg, f, v->as.array.data, n * item_bytes);
    for (size_t i = 0; i < n; i++) {
        value item = value_at(v, i);
        WEFT_TRY(put_value(dg, f, &item));
    }
    return WEFT_OK;
}

static weft_status put_keys(weft_diag *dg, out_file *f, const gguf_writer *w)
{
    for (size_t i = 0; i < w->keys.n; i++) {
        const value_member *m = &w->keys.at[i];
        WEFT_TRY(put_str(dg, f, m->name));
        WEFT_TRY(put_u32(dg, f, (uint32_t)value_type_row_of(m->v.type)->gguf));
        WEFT_TRY(put_value(dg, f, &m->v));
    }
    return WEFT_OK;
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

static weft_status put_directory(weft_diag *dg, out_file *f, const gguf_writer *w,
                                 uint64_t alignment)
{
    uint64_t offset = 0;
    for (size_t i = 0; i < w->tensors.n; i++) {
        const tensor *t = &w->tensors.at[i];
        WEFT_TRY(put_str(dg, f, t->name));
        WEFT_TRY(put_u32(dg, f, (uint32_t)t->rank));
        for (int j = t->rank - 1; j >= 0; j--)
            WEFT_TRY(put_u64(dg, f, (uint64_t)t->shape[j]));
        WEFT_TRY(put_u32(dg, f, (uint32_t)dtype_row_of(t->type)->ggml));
        WEFT_TRY(put_u64(dg, f, offset));
        bool fits = u64_add(offset, t->bytes, &offset) && u64_align_up(offset, alignment, &offset);
        WEFT_ASSERT(fits);
    }
    return WEFT_OK;
}

weft_status gguf_sink_put(weft_diag *dg, gguf_sink *to, const void *data, size_t n)
{
    WEFT_ASSERT(n <= to->left);
    to->left -= n;
    return out_file_put(dg, to->f, data, n);
}

static weft_status put_data(weft_diag *dg, out_file *f, const gguf_writer *w, uint64_t alignment)
{
    WEFT_TRY(out_file_pad(dg, f, alignment));
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
    uint64_t alignment = alignment_of(w);
    WEFT_TRY(out_file_put(dg, f, GGUF_MAGIC, 4));
    WEFT_TRY(put_u32(dg, f, GGUF_VERSION));
    WEFT_TRY(put_u64(dg, f, w->tensors.n));
    WEFT_TRY(put_u64(dg, f, w->keys.n));
    WEFT_TRY(put_keys(dg, f, w));
    WEFT_TRY(put_directory(dg, f, w, alignment));
    WEFT_TRY(put_data(dg, f, w, alignment));
    return out_file_finish(dg, f);
}

weft_status gguf_writer_write(weft_diag *dg, gguf_writer *w, const char *path)
{
    out_file *f;
    WEFT_TRY(out_file_create(dg, path, &f));
    weft_status status = put_all(dg, f, w);
    out_file_destroy(f);
    return status;
}
