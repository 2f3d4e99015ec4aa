/* tensors.c - the table of an image's tensors: read, checked, written. */
#include "runtime/program/tensors.h"

#include "runtime/base/checksum.h"
#include "runtime/formats/map_guard.h"
#include "runtime/program/image_bytes.h"
#include <inttypes.h>

enum { AT_IDENTITY = 8, HEAD_USED = 24 };
enum {
    ROW_TYPE = 0,
    ROW_NAME_BYTES = 4,
    ROW_NAME = 8,
    ROW_OFFSET = 16,
    ROW_BYTES = 24,
    ROW_SUM = 32,
    ROW_USED = 40
};

static const unsigned char *row_of(const image_source *s, uint64_t i)
{
    return s->table + TENSORS_HEAD_BYTES + i * TENSORS_ROW_BYTES;
}

image_tensor image_source_tensor(const image_source *s, uint64_t i)
{
    const unsigned char *row = row_of(s, i);
    const char *names = (const char *)row_of(s, s->n);
    return (image_tensor){
        .name = {names + image_get64(row + ROW_NAME), image_get32(row + ROW_NAME_BYTES)},
        .type = (dtype)image_get32(row + ROW_TYPE),
        .offset = image_get64(row + ROW_OFFSET),
        .bytes = image_get64(row + ROW_BYTES),
        .sum = image_get64(row + ROW_SUM)};
}

uint64_t image_tensor_place(uint64_t at)
{
    return at > UINT64_MAX - IMAGE_ALIGN ? UINT64_MAX
                                         : (at + IMAGE_ALIGN - 1) / IMAGE_ALIGN * IMAGE_ALIGN;
}

/* ---- a source ---- */

static const image_source *own_of(const weight_source *s)
{
    return (const image_source *)(const void *)s;
}

static size_t source_count(const weight_source *s)
{
    return own_of(s)->n;
}

static weight_tensor source_tensor(const weight_source *base, size_t i)
{
    const image_source *s = own_of(base);
    image_tensor t = image_source_tensor(s, i);
    return (weight_tensor){
        .name = t.name, .type = t.type, .bytes = t.bytes, .data = s->weights + t.offset};
}

static model_hash source_identity(const weight_source *s)
{
    return own_of(s)->identity;
}

static weft_status source_check(weft_diag *dg, const weight_source *base)
{
    const image_source *s = own_of(base);
    size_t at;
    if (!map_guard_tripped(s->guard, &at))
        return WEFT_OK;
    return weft_fail(dg, W1012, WEFT_NOWHERE,
                     "%s: the file became shorter; its byte %zu of weights is gone", s->name, at);
}

/* No stamp: everything is as kernels read it, so nothing is made of it and kept. */
static const weight_source_kind kind_image = {.count = source_count,
                                              .tensor = source_tensor,
                                              .identity = source_identity,
                                              .check = source_check};

static bool row_fine(const image_source *s, uint64_t i, uint64_t names_bytes, uint64_t *at)
{
    const unsigned char *row = row_of(s, i);
    uint64_t name = image_get64(row + ROW_NAME), name_bytes = image_get32(row + ROW_NAME_BYTES);
    uint64_t offset = image_get64(row + ROW_OFFSET), bytes = image_get64(row + ROW_BYTES);
    if (image_get32(row + ROW_TYPE) >= DT_COUNT || name > names_bytes ||
        name_bytes > names_bytes - name || offset != image_tensor_place(*at) ||
        offset > s->weights_bytes || bytes > s->weights_bytes - offset ||
        !image_all_zero(row + ROW_USED, TENSORS_ROW_BYTES - ROW_USED))
        return false;
    *at = offset + bytes;
    return true;
}

weft_status image_source_open(weft_diag *dg, const char *name, const image_part *table,
                              const void *weights, uint64_t weights_bytes, image_source *out)
{
    image_source s = {.base = {.kind = &kind_image, .path = name, .guarded = true},
                      .name = name,
                      .table = table->data,
                      .weights = weights,
                      .weights_bytes = weights_bytes,
                      .guard = -1};
    uint64_t most = table->bytes < TENSORS_HEAD_BYTES
                        ? 0
                        : (table->bytes - TENSORS_HEAD_BYTES) / TENSORS_ROW_BYTES;
    if (table->bytes < TENSORS_HEAD_BYTES || (s.n = image_get64(s.table)) > most ||
        s.n > TENSORS_MAX || !image_all_zero(s.table + HEAD_USED, TENSORS_HEAD_BYTES - HEAD_USED))
        return weft_fail(dg, W1701, WEFT_NOWHERE, "%s: its table of tensors is not well formed",
                         name);
    s.identity =
        (model_hash){image_get64(s.table + AT_IDENTITY), image_get64(s.table + AT_IDENTITY + 8)};
    uint64_t names = table->bytes - TENSORS_HEAD_BYTES - s.n * TENSORS_ROW_BYTES, at = 0;
    for (uint64_t i = 0; i < s.n; i++)
        if (!row_fine(&s, i, names, &at))
            return weft_fail(dg, W1701, WEFT_NOWHERE,
                             "%s: tensor %" PRIu64 " of %" PRIu64 " is not where it can be", name,
                             i, s.n);
    if (image_tensor_place(at) != weights_bytes)
        return weft_fail(dg, W1701, WEFT_NOWHERE,
                         "%s: its weights are %" PRIu64 " bytes, its tensors take %" PRIu64, name,
                         weights_bytes, at);
    *out = s;
    return WEFT_OK;
}

weft_status image_source_check(weft_diag *dg, const image_source *s)
{
    uint64_t at = 0;
    for (uint64_t i = 0; i <= s->n; i++) {
        image_tensor t = {.offset = s->weights_bytes};
        if (i < s->n)
            t = image_source_tensor(s, i);
        if (!image_all_zero(s->weights + at, t.offset - at))
            return weft_fail(dg, W1701, WEFT_NOWHERE,
                             "%s: bytes between its weights have been changed", s->name);
        if (i < s->n && checksum(s->weights + t.offset, t.bytes) != t.sum) {
            weft_status st =
                weft_fail(dg, W1701, WEFT_NOWHERE, "%s: its weight '" STR_FMT "' has been changed",
                          s->name, STR_ARG(t.name));
            weft_note(dg, "the file has to be copied or built again");
            return st;
        }
        at = t.offset + t.bytes;
    }
    return WEFT_OK;
}

/* ---- writing ---- */

void image_tensors_write(const image_tensor *tensors, uint64_t n, model_hash identity, strbuf *out)
{
    size_t rows = TENSORS_HEAD_BYTES + (size_t)n * TENSORS_ROW_BYTES;
    strbuf_reset(out);
    strbuf_fill(out, 0, rows);
    image_put64(out->p, n);
    image_put64(out->p + AT_IDENTITY, identity.lo);
    image_put64(out->p + AT_IDENTITY + 8, identity.hi);
    for (uint64_t i = 0; i < n; i++) {
        const image_tensor *t = &tensors[i];
        char *row = out->p + TENSORS_HEAD_BYTES + (size_t)i * TENSORS_ROW_BYTES;
        image_put32(row + ROW_TYPE, t->type);
        image_put32(row + ROW_NAME_BYTES, (uint32_t)t->name.n);
        image_put64(row + ROW_NAME, out->n - rows);
        image_put64(row + ROW_OFFSET, t->offset);
        image_put64(row + ROW_BYTES, t->bytes);
        image_put64(row + ROW_SUM, t->sum);
        strbuf_put(out, t->name);
    }
}
