/* plan_read_fields.c - a plan file's JSON into structs, as the tables of plan_fields.c say, or what is wrong with it. */
#include "compiler/plan_file_impl.h"

#include <inttypes.h>
#include <math.h>

/* Of all lists together: a step takes hundreds of times the bytes of "{},". */
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

static weft_status wrong(plan_reader *r, const plan_field *f, const value *v)
{
    static const char *const wanted[] = {
        [FIELD_INT] = "a number in range",
        [FIELD_INDEX] = "a number in range",
        [FIELD_BOOL] = "true or false",
        [FIELD_FLOAT] = "a number",
        [FIELD_TEXT] = "a text",
        [FIELD_WORD] = "one of its words",
        [FIELD_TYPE] = "a storage type",
        [FIELD_PLACE] = "a number in range",
        [FIELD_HEX] = "bytes in hexadecimal",
        [FIELD_LIST] = "a list",
        [FIELD_RECORDS] = "a list",
    };
    return plan_damaged(r, v ? "`%s` is not %s" : "`%s`, %s, is missing", f->key, wanted[f->kind]);
}

/* ---- values ---- */

static bool int_in(const value *v, int64_t min, int64_t max, int64_t *out)
{
    return value_kind_of(v) == VALUE_INT && value_int(v, out) && *out >= min && *out <= max;
}

static bool word_of(const value *v, const char *const *words, int *out)
{
    str s;
    for (int i = 0; value_str(v, &s) && words[i]; i++)
        if (str_eqz(s, words[i])) {
            *out = i;
            return true;
        }
    return false;
}

static bool read_int(const plan_field *f, const value *v, int64_t min, int64_t max, void *to)
{
    int64_t x;
    if (!int_in(v, min - f->less, max - f->less, &x))
        return false;
    plan_field_set_int(f->bytes, to, x + f->less);
    return true;
}

/* Numbers that JSON does not have are written as words. */
static bool read_float(const plan_field *f, const value *v, void *to)
{
    static const char *const words[] = {"nan", "inf", "-inf", "-0", NULL};
    static const double means[] = {NAN, INFINITY, -INFINITY, -0.0};
    double x;
    int word;
    if (word_of(v, words, &word))
        x = means[word];
    else if (!value_float(v, &x))
        return false;
    if (f->bytes == sizeof(float))
        *(float *)to = (float)x;
    else
        *(double *)to = x;
    return true;
}

static bool read_value(plan_reader *r, const plan_field *f, const value *v, void *to)
{
    str s;
    int64_t place;
    switch (f->kind) {
    case FIELD_INT:
        return read_int(f, v, f->min, f->max, to);
    case FIELD_INDEX:
        return read_int(f, v, 0, plan_field_int(f->count_bytes, (char *)r->p + f->count) - 1, to);
    case FIELD_BOOL:
        return value_bool(v, to);
    case FIELD_FLOAT:
        return read_float(f, v, to);
    case FIELD_TEXT:
        if (!value_str(v, &s) || memchr(s.p, 0, s.n))
            return false;
        *(const char **)to = arena_str(r->a, s).p;
        return true;
    case FIELD_WORD:
        return word_of(v, f->words, to);
    case FIELD_TYPE:
        return value_str(v, &s) && dtype_from_name(s, to);
    case FIELD_PLACE:
        if (!int_in(v, 0, r->n_place - 1, &place))
            return false;
        *(weft_loc *)to = r->place[place];
        return true;
    default:
        return false;
    }
}

/* ---- lists ---- */

/* The items of a list into these fields, one after the other. */
static weft_status read_values(plan_reader *r, const plan_field *field, size_t n_field,
                               const value *list, char *base)
{
    size_t n = value_count(list), k = 0;
    for (const plan_field *f = field; f < field + n_field; f++)
        for (size_t i = 0; i < f->n; i++, k++) {
            value v = k < n ? value_at(list, k) : (value){.type = VT_NULL};
            if ((k < n || f->must) && !read_value(r, f, &v, base + f->at + i * f->bytes))
                return wrong(r, f, k < n ? &v : NULL);
        }
    return n > k ? plan_damaged(r, "a list has more than %zu items", k) : WEFT_OK;
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* How many items there are, held against how many there may be, and kept. */
static weft_status read_count(plan_reader *r, const plan_field *f, size_t n, char *base)
{
    void *count = (f->of_plan ? (char *)r->p : base) + f->count;
    size_t known = f->known ? (size_t)plan_field_int(f->count_bytes, count) : n;
    if (n != known)
        return plan_damaged(r, "`%s` has %zu items instead of %zu", f->key, n, known);
    if (f->kind == FIELD_LIST && (n < (size_t)f->min || n > (size_t)f->max))
        return plan_damaged(r, "it has %zu %s", n, f->key);
    if (f->kind != FIELD_LIST && f->kind != FIELD_HEX && n > f->n)
        return plan_damaged(r, "`%s` has more than %zu items", f->key, f->n);
    if (f->count_bytes && !f->known)
        plan_field_set_int(f->count_bytes, count, (int64_t)n);
    return WEFT_OK;
}

/* ---- records ---- */

/* Item i of a list. */
static weft_status read_record(plan_reader *r, const plan_record *rec, const value *list, size_t i,
                               char *to)
{
    value v = value_at(list, i);
    value_kind kind = rec->form == FORM_ITEMS ? VALUE_ARRAY : VALUE_OBJECT;
    if (rec->form == FORM_VALUE)
        return read_value(r, rec->field, &v, to + rec->field->at) ? WEFT_OK
                                                                  : wrong(r, rec->field, &v);
    if (rec->null && value_kind_of(&v) == VALUE_NULL)
        return WEFT_OK; /* it is all zeros */
    if (value_kind_of(&v) != kind)
        return plan_damaged(r, "item %zu of a list is of another kind", i);
    return kind == VALUE_ARRAY ? read_values(r, rec->field, rec->n_field, &v, to)
                               : plan_read_fields(r, rec, &v, to);
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

static weft_status read_bytes(plan_reader *r, const plan_field *f, const value *v, char *base)
{
    str s;
    char *to;
    if (!value_str(v, &s) || s.n % 2 != 0)
        return wrong(r, f, v);
    WEFT_TRY(read_count(r, f, s.n / 2, base));
    WEFT_TRY(make_room(r, f, s.n / 2, base + f->at, &to));
    for (size_t i = 0; i < s.n; i += 2) {
        int high = hex_digit(s.p[i]), low = hex_digit(s.p[i + 1]);
        if (high < 0 || low < 0)
            return wrong(r, f, v);
        to[i / 2] = (char)(high << 4 | low);
    }
    return WEFT_OK;
}

static weft_status read_list(plan_reader *r, const plan_field *f, const value *v, char *base)
{
    size_t n = value_count(v);
    char *to = base + f->at;
    if (value_kind_of(v) != VALUE_ARRAY)
        return plan_damaged(r, "`%s` is not a list", f->key);
    WEFT_TRY(read_count(r, f, n, base));
    if (!f->of)
        return read_values(r, f, 1, v, base);
    if (f->kind == FIELD_LIST)
        WEFT_TRY(make_room(r, f, n, to, &to));
    int outer = r->n_part;
    r->n_part += f->of->name != NULL;
    r->part[outer].name = f->of->name;
    for (size_t i = 0; i < n; i++) {
        r->part[outer].index = i;
        WEFT_TRY(read_record(r, f->of, v, i, to + i * f->of->bytes));
    }
    r->n_part = outer;
    return WEFT_OK;
}

weft_status plan_read_fields(plan_reader *r, const plan_record *rec, const value *v, void *to)
{
    for (const plan_field *f = rec->field; f < rec->field + rec->n_field; f++) {
        const value *m = value_get(v, str_of(f->key));
        char *at = (char *)to + f->at;
        for (size_t i = 0; f->otherwise && i < f->n; i++)
            plan_field_set_int(f->bytes, at + i * f->bytes, f->otherwise);
        if (value_kind_of(m) == VALUE_NULL) {
            if (f->must)
                return wrong(r, f, NULL);
        } else if (f->kind == FIELD_HEX)
            WEFT_TRY(read_bytes(r, f, m, to));
        else if (plan_field_is_list(f))
            WEFT_TRY(read_list(r, f, m, to));
        else if (!read_value(r, f, m, at))
            return wrong(r, f, m);
    }
    return WEFT_OK;
}
