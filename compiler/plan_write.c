/* plan_write.c - a plan as a file: the head, then the fields of plan_fields.c, one behind the other (plan_file.h). */
#include "compiler/plan_file_impl.h"

#include "runtime/base/checksum.h"
#include <inttypes.h>
#include <math.h>

typedef struct {
    strbuf *out;
    const plan *p;
    plan_places places;
} writer;

static void put_fields(writer *w, const plan_record *rec, const void *base);

/* ---- values ---- */

static void put_int(writer *w, int64_t x)
{
    uint64_t left = (uint64_t)x << 1 ^ (x < 0 ? UINT64_MAX : 0);
    for (; left >= 0x80; left >>= 7)
        strbuf_putc(w->out, (char)((left & 0x7f) | 0x80));
    strbuf_putc(w->out, (char)left);
}

static void put_bits(writer *w, uint64_t x, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        strbuf_putc(w->out, (char)(x >> 8 * i & 0xff));
}

static void put_float(writer *w, const plan_field *f, const void *at)
{
    uint64_t bits = 0;
    uint32_t half;
    if (f->bytes == sizeof half) {
        memcpy(&half, at, sizeof half);
        bits = half;
    } else {
        memcpy(&bits, at, sizeof bits);
    }
    put_bits(w, bits, f->bytes);
}

static void put_value(writer *w, const plan_field *f, const void *at)
{
    const weft_loc *loc = at;
    str s;
    switch (f->kind) {
    case FIELD_FLOAT:
        put_float(w, f, at);
        return;
    case FIELD_TEXT:
        s = str_of(*(const char *const *)at);
        put_int(w, (int64_t)s.n);
        strbuf_put(w->out, s);
        return;
    case FIELD_PLACE:
        put_int(w, loc->src ? (int64_t)plan_place_of(&w->places, loc) + 1 : 0);
        return;
    default:
        put_int(w, plan_field_int(f->bytes, at));
    }
}

/* ---- lists ---- */

static bool is_default(const plan_field *f, const char *at)
{
    static const char zeros[sizeof(int64_t)];
    if (f->kind == FIELD_FLOAT)
        return memcmp(at, zeros, f->bytes) == 0;
    return plan_field_int(f->bytes, at) == f->otherwise;
}

/* Of an array inside a struct, or of the records there. */
static bool item_is_default(const plan_field *f, const char *at)
{
    if (!f->of)
        return is_default(f, at);
    for (const plan_field *g = f->of->field; g < f->of->field + f->of->n_field; g++)
        for (size_t i = 0; i < g->n; i++)
            if (!is_default(g, at + g->at + i * g->bytes))
                return false;
    return true;
}

/* How many items there are: as the count says, else all but the defaults at the end. */
static size_t count_items(const writer *w, const plan_field *f, const char *base)
{
    if (f->count_bytes)
        return (size_t)plan_field_int(f->count_bytes,
                                      (f->of_plan ? (const char *)w->p : base) + f->count);
    size_t n = f->n, bytes = f->of ? f->of->bytes : f->bytes;
    while (n > 0 && item_is_default(f, base + f->at + (n - 1) * bytes))
        n--;
    return n;
}

static void put_list(writer *w, const plan_field *f, const char *base)
{
    const char *at = base + f->at;
    if (f->kind == FIELD_LIST || f->kind == FIELD_BYTES)
        memcpy(&at, at, sizeof at);
    size_t n = at ? count_items(w, f, base) : 0;
    put_int(w, (int64_t)n);
    if (f->kind == FIELD_BYTES)
        strbuf_put(w->out, (str){at, n});
    for (size_t i = 0; i < n && f->kind != FIELD_BYTES; i++)
        if (f->of)
            put_fields(w, f->of, at + i * f->of->bytes);
        else
            put_value(w, f, at + i * f->bytes);
}

static void put_fields(writer *w, const plan_record *rec, const void *base)
{
    for (const plan_field *f = rec->field; f < rec->field + rec->n_field; f++) {
        const char *at = (const char *)base + f->at;
        if (plan_field_is_list(f))
            put_list(w, f, base);
        else
            put_value(w, f, at);
        if (rec->null && f == rec->field && plan_field_int(f->bytes, at) == 0)
            return;
    }
}

/* ---- the whole ---- */

void plan_write(const plan *p, model_hash model, strbuf *out)
{
    strbuf body = {0};
    writer w = {.out = &body, .p = p};
    char hash[PLAN_HASH_MAX];
    size_t begin = out->n;
    plan_file_tail tail;
    put_fields(&w, &plan_body_record, p); /* which finds the places that stand before it */
    plan_tail_make(p, &w.places, &tail);
    w.out = out;
    strbuf_put(out, STR(PLAN_FILE_MAGIC));
    put_bits(&w, PLAN_FILE_VERSION, 8);
    put_bits(&w, 0, 8); /* bytes and checksum, by plan_file_seal */
    put_bits(&w, 0, 8);
    put_bits(&w, plan_fields_sum(), 8);
    plan_file_head head = plan_head_of(p, model, hash);
    put_fields(&w, &plan_head_record, &head);
    put_fields(&w, &plan_tail_record, &tail);
    strbuf_put(out, strbuf_view(&body));
    bool sealed = plan_file_seal(out->p + begin, out->n - begin);
    WEFT_ASSERT(sealed);
    plan_tail_free(&tail);
    strbuf_free(&body);
    VEC_FREE(&w.places);
}

static void bits_to(char *to, uint64_t x)
{
    for (int i = 0; i < 8; i++)
        to[i] = (char)(x >> 8 * i & 0xff);
}

bool plan_file_seal(char *bytes, size_t n)
{
    if (n < PLAN_FILE_BODY || memcmp(bytes, PLAN_FILE_MAGIC, sizeof PLAN_FILE_MAGIC - 1) != 0)
        return false;
    bits_to(bytes + PLAN_FILE_LENGTH, n);
    bits_to(bytes + PLAN_FILE_SUM, checksum(bytes + PLAN_FILE_FIELDS, n - PLAN_FILE_FIELDS));
    return true;
}
