/* plan_read_fields.c - the bytes of a plan file into structs, as the tables of plan_fields.c say, or what is wrong with them. */
#include "compiler/plan_file_impl.h"

#include <inttypes.h>

/* Of all lists together: a step takes hundreds of times the bytes that it may have in the file. */
enum { LISTS_BYTES_MAX = 256 << 20 };

weft_status plan_damaged(plan_reader *r, const char *fmt, ...)
{
    char what[200], where[96] = "";
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(what, sizeof what, fmt, ap);
    va_end(ap);
    for (int i = 0; i < r->n_part; i++) {
        size_t n = strlen(where);
        snprintf(where + n, sizeof where - n, "%s %zu%s", r->part[i].name, r->part[i].index,
                 i + 1 < r->n_part ? ", " : ": ");
    }
    return weft_fail(r->dg, W1507, WEFT_NOWHERE, "%s: %s%s", r->name, where, what);
}

static weft_status wrong(plan_reader *r, const plan_field *f)
{
    static const char *const wanted[] = {
        [FIELD_INT] = "a number in range", [FIELD_INDEX] = "a number in range",
        [FIELD_BOOL] = "true or false",    [FIELD_FLOAT] = "a number",
        [FIELD_TEXT] = "a text",           [FIELD_WORD] = "one of its words",
        [FIELD_TYPE] = "a storage type",   [FIELD_PLACE] = "a number in range",
        [FIELD_BYTES] = "a list of bytes", [FIELD_LIST] = "a list",
        [FIELD_RECORDS] = "a list",
    };
    return plan_damaged(r, "`%s` is not %s", f->key, wanted[f->kind]);
}

static weft_status ends(plan_reader *r, const plan_field *f)
{
    return plan_damaged(r, "it ends in `%s`", f->key);
}

/* ---- values ---- */

/* Every number has one form, the shortest, so that a plan has one file. */
static bool get_int(plan_reader *r, int64_t *out)
{
    uint64_t x = 0;
    for (int shift = 0; shift < 64; shift += 7) {
        if (r->at == r->end)
            return false;
        uint8_t byte = *r->at++;
        x |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            *out = (int64_t)(x >> 1 ^ (x & 1 ? UINT64_MAX : 0));
            return (byte > 0 || shift == 0) && (shift < 63 || byte == 1);
        }
    }
    return false;
}

uint64_t plan_get_bits(const uint8_t *at, size_t bytes)
{
    uint64_t x = 0;
    for (size_t i = 0; i < bytes; i++)
        x |= (uint64_t)at[i] << 8 * i;
    return x;
}

static size_t left(const plan_reader *r)
{
    return (size_t)(r->end - r->at);
}

static bool read_int(plan_reader *r, const plan_field *f, int64_t min, int64_t max, void *to)
{
    int64_t x;
    if (!get_int(r, &x) || x < min || x > max)
        return false;
    plan_field_set_int(f->bytes, to, x);
    return true;
}

static bool read_float(plan_reader *r, const plan_field *f, void *to)
{
    if (left(r) < f->bytes)
        return false;
    uint64_t bits = plan_get_bits(r->at, f->bytes);
    uint32_t half = (uint32_t)bits;
    memcpy(to, f->bytes == sizeof half ? (void *)&half : (void *)&bits, f->bytes);
    r->at += f->bytes;
    return true;
}

static bool read_text(plan_reader *r, void *to)
{
    int64_t n;
    if (!get_int(r, &n) || n < 0 || (uint64_t)n > left(r) || memchr(r->at, 0, (size_t)n))
        return false;
    *(const char **)to = arena_str(r->a, (str){(const char *)r->at, (size_t)n}).p;
    r->at += n;
    return true;
}

static int64_t words_of(const char *const *words)
{
    int64_t n = 0;
    while (words[n])
        n++;
    return n;
}

static bool read_value(plan_reader *r, const plan_field *f, void *to)
{
    int64_t place;
    switch (f->kind) {
    case FIELD_INT:
        return read_int(r, f, f->min, f->max, to);
    case FIELD_INDEX:
        return read_int(r, f, 0, plan_field_int(f->count_bytes, (char *)r->p + f->count) - 1, to);
    case FIELD_BOOL:
        return read_int(r, f, 0, 1, to);
    case FIELD_FLOAT:
        return read_float(r, f, to);
    case FIELD_TEXT:
        return read_text(r, to);
    case FIELD_WORD:
        return read_int(r, f, 0, words_of(f->words) - 1, to);
    case FIELD_TYPE:
        return read_int(r, f, 0, DT_COUNT - 1, to);
    case FIELD_PLACE:
        if (!get_int(r, &place) || place < 0 || place > r->n_place)
            return false;
        *(weft_loc *)to = place ? r->place[place - 1] : WEFT_NOWHERE;
        return true;
    default:
        return false;
    }
}

/* ---- lists ---- */

/* How many items there are, held against how many there may be, and kept. Each takes a byte at least, so that the file bounds
 * them too. */
static weft_status read_count(plan_reader *r, const plan_field *f, char *base, size_t *out_n)
{
    int64_t n;
    if (!get_int(r, &n) || n < 0 || (uint64_t)n > left(r))
        return r->at == r->end ? ends(r, f) : wrong(r, f);
    void *count = (f->of_plan ? (char *)r->p : base) + f->count;
    int64_t known = f->known ? plan_field_int(f->count_bytes, count) : n;
    bool absent = n == 0 && f->known && !f->must;
    if (n != known && !absent)
        return plan_damaged(r, "`%s` has %" PRId64 " items instead of %" PRId64, f->key, n, known);
    if (f->kind == FIELD_LIST && (n < f->min || n > f->max))
        return plan_damaged(r, "it has %" PRId64 " %s", n, f->key);
    if (f->kind != FIELD_LIST && f->kind != FIELD_BYTES && (uint64_t)n > f->n)
        return plan_damaged(r, "`%s` has more than %zu items", f->key, f->n);
    if (f->count_bytes && !f->known)
        plan_field_set_int(f->count_bytes, count, n);
    *out_n = (size_t)n;
    return WEFT_OK;
}

/* Memory for n items that stand apart from their struct, whose pointer is at `at`. */
static weft_status make_room(plan_reader *r, const plan_field *f, size_t n, char *at, char **out)
{
    size_t bytes = f->of ? f->of->bytes : 1;
    r->bytes += n * bytes; /* n is less than the bytes of the file */
    if (r->bytes > LISTS_BYTES_MAX)
        return plan_damaged(r, "`%s` makes it too large", f->key);
    *out = n ? arena_alloc_array(r->a, n, bytes) : NULL;
    memcpy(at, out, sizeof *out);
    return WEFT_OK;
}

static weft_status read_records(plan_reader *r, const plan_field *f, size_t n, char *to)
{
    int outer = r->n_part;
    r->n_part += f->of->name != NULL;
    r->part[outer].name = f->of->name;
    for (size_t i = 0; i < n; i++) {
        r->part[outer].index = i;
        WEFT_TRY(plan_read_fields(r, f->of, to + i * f->of->bytes));
    }
    r->n_part = outer;
    return WEFT_OK;
}

static weft_status read_list(plan_reader *r, const plan_field *f, char *base)
{
    char *to = base + f->at;
    size_t n = 0;
    WEFT_TRY(read_count(r, f, base, &n));
    if (f->kind == FIELD_LIST || f->kind == FIELD_BYTES)
        WEFT_TRY(make_room(r, f, n, to, &to));
    if (f->kind == FIELD_BYTES) {
        if (n)
            memcpy(to, r->at, n);
        r->at += n;
        return WEFT_OK;
    }
    if (f->of)
        return read_records(r, f, n, to);
    for (size_t i = 0; i < f->n; i++)
        if (i >= n)
            plan_field_set_int(f->bytes, to + i * f->bytes, f->otherwise);
        else if (!read_value(r, f, to + i * f->bytes))
            return r->at == r->end ? ends(r, f) : wrong(r, f);
    return WEFT_OK;
}

weft_status plan_read_fields(plan_reader *r, const plan_record *rec, void *to)
{
    for (const plan_field *f = rec->field; f < rec->field + rec->n_field; f++) {
        char *at = (char *)to + f->at;
        if (plan_field_is_list(f))
            WEFT_TRY(read_list(r, f, to));
        else if (!read_value(r, f, at))
            return r->at == r->end ? ends(r, f) : wrong(r, f);
        if (rec->null && f == rec->field && plan_field_int(f->bytes, at) == 0)
            return WEFT_OK; /* the rest is zeros */
    }
    return WEFT_OK;
}
