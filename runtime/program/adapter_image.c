/* adapter_image.c - adapters as bytes, and back. */
#include "runtime/program/adapter_image.h"

#include "runtime/base/intmath.h"
#include "runtime/program/image_bytes.h"
#include <math.h>

enum { AT_SCALE = 0, AT_HASH = 8, AT_COUNT = 16, AT_NAMES = 24, HEAD_USED = 32 };
enum {
    ROW_NAME = 0,
    ROW_ZERO = 4,
    ROW_INDEX = 8,
    ROW_RANK = 16,
    ROW_IN = 24,
    ROW_OUT = 32,
    ROW_SCALE = 40,
    ROW_A = 48,
    ROW_B = 56
};
enum { RANK_MAX = 4096 };

static uint64_t bits_of(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static double double_at(const unsigned char *p)
{
    double x;
    memcpy(&x, p, sizeof x);
    return x;
}

/* ---- writing ---- */

static uint64_t put_numbers(strbuf *out, const float *x, int64_t n)
{
    strbuf_fill(out, 0, (IMAGE_ALIGN - out->n % IMAGE_ALIGN) % IMAGE_ALIGN);
    uint64_t at = out->n;
    strbuf_put(out, (str){(const char *)x, (size_t)n * sizeof *x});
    return at;
}

void adapter_image_write(const adapter_source *from, double scale, strbuf *out)
{
    size_t rows = ADAPTER_HEAD_BYTES + from->n_part * ADAPTER_ROW_BYTES;
    strbuf_reset(out);
    strbuf_fill(out, 0, rows);
    for (size_t i = 0; i < from->n_part; i++) {
        uint32_t at = (uint32_t)(out->n - rows);
        strbuf_put(out, (str){from->part[i].weight, strlen(from->part[i].weight) + 1});
        image_put32(out->p + ADAPTER_HEAD_BYTES + i * ADAPTER_ROW_BYTES + ROW_NAME, at);
    }
    image_put64(out->p + AT_SCALE, bits_of(scale));
    image_put64(out->p + AT_HASH, from->hash);
    image_put64(out->p + AT_COUNT, from->n_part);
    image_put64(out->p + AT_NAMES, out->n - rows);
    for (size_t i = 0; i < from->n_part; i++) {
        const adapter_part *p = &from->part[i];
        uint64_t a = put_numbers(out, p->a, p->rank * p->in),
                 b = put_numbers(out, p->b, p->out * p->rank);
        char *row = out->p + ADAPTER_HEAD_BYTES + i * ADAPTER_ROW_BYTES;
        image_put64(row + ROW_INDEX, (uint64_t)(int64_t)p->index);
        image_put64(row + ROW_RANK, (uint64_t)p->rank);
        image_put64(row + ROW_IN, (uint64_t)p->in);
        image_put64(row + ROW_OUT, (uint64_t)p->out);
        image_put64(row + ROW_SCALE, bits_of(p->scale));
        image_put64(row + ROW_A, a);
        image_put64(row + ROW_B, b);
    }
}

/* ---- reading ---- */

/* n * m numbers at an offset, all inside the part; NULL: they are not. */
static const float *numbers(const image_part *p, uint64_t at, int64_t n, int64_t m)
{
    int64_t all, bytes;
    if (n < 1 || m < 1 || !i64_mul(n, m, &all) || !i64_mul(all, (int64_t)sizeof(float), &bytes) ||
        at % IMAGE_ALIGN != 0 || at > p->bytes || (uint64_t)bytes > p->bytes - at)
        return NULL;
    return (const float *)(const void *)(p->data + at);
}

static bool read_site(const image_part *p, const unsigned char *row, const char *names,
                      uint64_t names_bytes, adapter_part *out)
{
    uint32_t name = image_get32(row + ROW_NAME);
    int64_t index = (int64_t)image_get64(row + ROW_INDEX);
    *out = (adapter_part){.weight = names + name,
                          .index = (int32_t)index,
                          .rank = (int64_t)image_get64(row + ROW_RANK),
                          .in = (int64_t)image_get64(row + ROW_IN),
                          .out = (int64_t)image_get64(row + ROW_OUT),
                          .scale = double_at(row + ROW_SCALE)};
    if (name >= names_bytes || image_get32(row + ROW_ZERO) != 0 || index < -1 ||
        index > INT32_MAX || out->rank > RANK_MAX || !isfinite(out->scale))
        return false;
    out->a = numbers(p, image_get64(row + ROW_A), out->rank, out->in);
    out->b = numbers(p, image_get64(row + ROW_B), out->out, out->rank);
    return out->a && out->b;
}

weft_status adapter_image_read(weft_diag *dg, const char *program, const image_part *p, arena *a,
                               adapter_source *out, float *out_scale)
{
    uint64_t n = 0, names_bytes = 0,
             room = p->bytes < ADAPTER_HEAD_BYTES ? 0 : p->bytes - ADAPTER_HEAD_BYTES;
    double scale = 0;
    bool fine = p->bytes >= ADAPTER_HEAD_BYTES;
    if (fine) {
        scale = double_at(p->data + AT_SCALE);
        n = image_get64(p->data + AT_COUNT);
        names_bytes = image_get64(p->data + AT_NAMES);
        fine = isfinite(scale) && n <= room / ADAPTER_ROW_BYTES &&
               names_bytes <= room - n * ADAPTER_ROW_BYTES &&
               image_all_zero(p->data + HEAD_USED, ADAPTER_HEAD_BYTES - HEAD_USED);
    }
    const unsigned char *names = fine ? p->data + ADAPTER_HEAD_BYTES + n * ADAPTER_ROW_BYTES : NULL;
    fine = fine && (n == 0 || (names_bytes > 0 && names[names_bytes - 1] == 0));
    adapter_part *part = fine ? ARENA_ARRAY(a, adapter_part, (size_t)n + 1) : NULL;
    for (uint64_t i = 0; fine && i < n; i++)
        fine = read_site(p, p->data + ADAPTER_HEAD_BYTES + i * ADAPTER_ROW_BYTES,
                         (const char *)names, names_bytes, &part[i]);
    if (!fine)
        return weft_fail(dg, W1701, WEFT_NOWHERE, "%s: its adapter '%s' is not well formed",
                         program, p->name);
    *out = (adapter_source){
        .name = p->name, .hash = image_get64(p->data + AT_HASH), .n_part = (size_t)n, .part = part};
    *out_scale = (float)scale;
    return WEFT_OK;
}
