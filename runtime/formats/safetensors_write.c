/* safetensors_write.c - the header as JSON, then the data without gaps. */
#include "runtime/formats/safetensors_write.h"

#include "runtime/base/intmath.h"
#include "runtime/formats/out_file.h"

static size_t item_bytes(const safetensors_item *t)
{
    int64_t elems = 1;
    size_t bytes = 0;
    bool fits = true;
    for (int i = 0; i < t->rank; i++)
        fits = fits && t->shape[i] >= 0 && i64_mul(elems, t->shape[i], &elems);
    fits = fits && dtype_row_of(t->type)->hf && dtype_bytes(t->type, elems, &bytes);
    WEFT_ASSERT(fits);
    return bytes;
}

static void header_entry(json_writer *w, const safetensors_item *t, uint64_t at)
{
    json_key_open(w, t->name, '{');
    json_key_text(w, "dtype", dtype_row_of(t->type)->hf);
    json_key_open(w, "shape", '[');
    for (int i = 0; i < t->rank; i++)
        json_int(w, t->shape[i]);
    json_close(w, ']');
    json_key_open(w, "data_offsets", '[');
    json_int(w, (int64_t)at);
    json_int(w, (int64_t)(at + item_bytes(t)));
    json_close(w, ']');
    json_close(w, '}');
}

/* Types have 8, 4, 2 or 1 bytes. */
static void header(strbuf *out, const safetensors_item *items, size_t n, const value *metadata)
{
    json_writer w = {.out = out};
    uint64_t at = 0;
    json_open(&w, '{');
    if (value_count(metadata) > 0) {
        json_key(&w, "__metadata__");
        value_json(&w, metadata, SIZE_MAX);
    }
    for (size_t width = 8; width > 0; width /= 2)
        for (size_t i = 0; i < n; i++)
            if (dtype_row_of(items[i].type)->bytes == width) {
                header_entry(&w, &items[i], at);
                at += item_bytes(&items[i]);
            }
    json_close(&w, '}');
    /* Blanks up to where the data is aligned for any type. */
    strbuf_fill(out, ' ', (8 - out->n % 8) % 8);
}

static weft_status put_all(weft_diag *dg, out_file *f, const strbuf *head,
                           const safetensors_item *items, size_t n, safetensors_fill *fill,
                           void *ctx)
{
    uint64_t head_n = head->n;
    WEFT_TRY(out_file_put(dg, f, &head_n, sizeof head_n));
    WEFT_TRY(out_file_put(dg, f, head->p, head->n));
    for (size_t width = 8; width > 0; width /= 2)
        for (size_t i = 0; i < n; i++)
            if (dtype_row_of(items[i].type)->bytes == width)
                WEFT_TRY(items[i].data || !fill
                             ? out_file_put(dg, f, items[i].data, item_bytes(&items[i]))
                             : fill(dg, f, i, ctx));
    return out_file_finish(dg, f);
}

weft_status safetensors_write_with(weft_diag *dg, const char *path, const safetensors_item *items,
                                   size_t n, const value *metadata, safetensors_fill *fill,
                                   void *ctx)
{
    out_file *f;
    strbuf head = {0};
    WEFT_TRY(out_file_create(dg, path, &f));
    header(&head, items, n, metadata);
    weft_status status = put_all(dg, f, &head, items, n, fill, ctx);
    strbuf_free(&head);
    out_file_destroy(f);
    return status;
}

weft_status safetensors_write(weft_diag *dg, const char *path, const safetensors_item *items,
                              size_t n, const value *metadata)
{
    return safetensors_write_with(dg, path, items, n, metadata, NULL, NULL);
}
