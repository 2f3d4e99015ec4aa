/* value.c - reading values, whichever way the file stores them. */
#include "runtime/formats/value.h"

#include "runtime/formats/name_index.h"
#include <math.h>
#include <stdio.h>

/* Values and the interleaved items of arrays are used as they stand in the file. */
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "Weft runs on little-endian machines");

enum { MEMBERS_FEW = 8 }; /* up to this many are looked through one by one */

/* Below this every whole number is a double of its own. */
static const double float_int_max = 0x1p53;

const value_type_row *value_type_row_of(value_type t)
{
    static const value_type_row rows[VT_COUNT] = {
#define VALUE_TYPE(name, gguf, bytes, kind, text) [VT_##name] = {text, gguf, bytes, VALUE_##kind},
#include "runtime/formats/value.def"
#undef VALUE_TYPE
    };
    WEFT_ASSERT((unsigned)t < VT_COUNT);
    return &rows[t];
}

value_kind value_kind_of(const value *v)
{
    return v ? value_type_row_of(v->type)->kind : VALUE_NULL;
}

bool value_int(const value *v, int64_t *out_x)
{
    value_kind kind = value_kind_of(v);
    if (kind == VALUE_INT && v->type == VT_U64) {
        if (v->as.u > INT64_MAX)
            return false;
        *out_x = (int64_t)v->as.u;
        return true;
    }
    if (kind == VALUE_INT) {
        *out_x = v->as.i;
        return true;
    }
    if (kind == VALUE_FLOAT && fabs(v->as.f) < float_int_max && v->as.f == floor(v->as.f)) {
        *out_x = (int64_t)v->as.f;
        return true;
    }
    return false;
}

bool value_float(const value *v, double *out_x)
{
    value_kind kind = value_kind_of(v);
    if (kind != VALUE_FLOAT && kind != VALUE_INT)
        return false;
    *out_x = kind == VALUE_FLOAT ? v->as.f : v->type == VT_U64 ? (double)v->as.u : (double)v->as.i;
    return true;
}

bool value_bool(const value *v, bool *out_x)
{
    if (value_kind_of(v) != VALUE_BOOL)
        return false;
    *out_x = v->as.b;
    return true;
}

bool value_str(const value *v, str *out_x)
{
    if (value_kind_of(v) != VALUE_STR)
        return false;
    *out_x = v->as.s;
    return true;
}

size_t value_count(const value *v)
{
    value_kind kind = value_kind_of(v);
    return kind == VALUE_ARRAY ? v->as.array.n : kind == VALUE_OBJECT ? v->as.object.n : 0;
}

/* One number or bool as the file has it. */
static value unpack(value_type t, const unsigned char *p)
{
    value v = {.type = t};
    switch (t) {
#define UNPACK(name, T, field)                                                                     \
    case VT_##name: {                                                                              \
        T x;                                                                                       \
        memcpy(&x, p, sizeof x);                                                                   \
        v.as.field = x;                                                                            \
        break;                                                                                     \
    }
        UNPACK(U8, uint8_t, i)
        UNPACK(I8, int8_t, i)
        UNPACK(U16, uint16_t, i)
        UNPACK(I16, int16_t, i)
        UNPACK(U32, uint32_t, i)
        UNPACK(I32, int32_t, i)
        UNPACK(U64, uint64_t, u)
        UNPACK(I64, int64_t, i)
        UNPACK(F32, float, f)
        UNPACK(F64, double, f)
#undef UNPACK
    default:
        v.as.b = *p != 0;
        break;
    }
    return v;
}

value value_at(const value *v, size_t i)
{
    WEFT_ASSERT(value_kind_of(v) == VALUE_ARRAY && i < v->as.array.n);
    if (v->item == VT_STR)
        return value_of_str(((const str *)v->as.array.data)[i]);
    if (v->item == VT_ARRAY || v->item == VT_NULL)
        return ((const value *)v->as.array.data)[i];
    return unpack(v->item,
                  (const unsigned char *)v->as.array.data + i * value_type_row_of(v->item)->bytes);
}

const str *value_strs(const value *v)
{
    return value_kind_of(v) == VALUE_ARRAY && v->item == VT_STR ? v->as.array.data : NULL;
}

const value *value_get(const value *v, str name)
{
    if (value_kind_of(v) != VALUE_OBJECT)
        return NULL;
    const value_member *m = v->as.object.members;
    size_t i = 0, n = v->as.object.n;
    if (v->as.object.index)
        return name_index_find(v->as.object.index, name, (str){0}, &i) ? &m[i].v : NULL;
    while (i < n && !str_eq(m[i].name, name))
        i++;
    return i < n ? &m[i].v : NULL;
}

const value *value_find(const value *v, str path)
{
    for (;;) {
        const char *dot = path.n ? memchr(path.p, '.', path.n) : NULL;
        size_t n = dot ? (size_t)(dot - path.p) : path.n;
        v = value_get(v, (str){path.p, n});
        if (!v || !dot || v->type == VT_NULL)
            return v;
        path = (str){path.p + n + 1, path.n - n - 1};
    }
}

static void json_name(json_writer *w, str name)
{
    strbuf z = {0};
    strbuf_put(&z, name);
    strbuf_putc(&z, 0);
    json_key(w, z.p);
    strbuf_free(&z);
}

void value_json(json_writer *w, const value *v, size_t items_max)
{
    size_t n = value_count(v), n_show = n < items_max ? n : items_max;
    switch (value_kind_of(v)) {
    case VALUE_NULL:
        json_null(w);
        break;
    case VALUE_BOOL:
        json_bool(w, v->as.b);
        break;
    case VALUE_INT:
        if (v->type == VT_U64 && v->as.u > INT64_MAX)
            json_double(w, (double)v->as.u);
        else
            json_int(w, v->as.i);
        break;
    case VALUE_FLOAT:
        json_double(w, v->as.f);
        break;
    case VALUE_STR:
        json_str(w, v->as.s);
        break;
    case VALUE_ARRAY:
        json_open(w, '[');
        for (size_t i = 0; i < n_show; i++) {
            value item = value_at(v, i);
            value_json(w, &item, items_max);
        }
        if (n_show < n) {
            char more[48];
            snprintf(more, sizeof more, "... %zu more", n - n_show);
            json_str(w, str_of(more));
        }
        json_close(w, ']');
        break;
    case VALUE_OBJECT:
        json_open(w, '{');
        for (size_t i = 0; i < n; i++) {
            json_name(w, v->as.object.members[i].name);
            value_json(w, &v->as.object.members[i].v, items_max);
        }
        json_close(w, '}');
        break;
    }
}

value value_of_int(value_type t, int64_t x)
{
    WEFT_ASSERT(value_type_row_of(t)->kind == VALUE_INT && (t != VT_U64 || x >= 0));
    value v = {.type = t};
    if (t == VT_U64)
        v.as.u = (uint64_t)x;
    else
        v.as.i = x;
    return v;
}

value value_of_float(value_type t, double x)
{
    WEFT_ASSERT(value_type_row_of(t)->kind == VALUE_FLOAT);
    return (value){.type = t, .as.f = x};
}

value value_of_bool(bool x)
{
    return (value){.type = VT_BOOL, .as.b = x};
}

value value_of_str(str s)
{
    return (value){.type = VT_STR, .as.s = s};
}

value value_of_array(value_type item, const void *data, size_t n)
{
    WEFT_ASSERT(item != VT_OBJECT);
    return (value){.type = VT_ARRAY, .item = item, .as.array = {data, n}};
}

bool value_of_members(arena *a, const value_member *members, size_t n, value *out_v,
                      size_t *out_twice)
{
    const name_index *ix = NULL;
    if (n > MEMBERS_FEW) {
        ix = name_index_create(a, members, n, sizeof *members, out_twice);
        if (!ix)
            return false;
    }
    for (size_t i = 0; !ix && i < n; i++)
        for (size_t j = 0; j < i; j++)
            if (str_eq(members[i].name, members[j].name)) {
                *out_twice = i;
                return false;
            }
    *out_v = (value){.type = VT_OBJECT, .as.object = {members, n, ix}};
    return true;
}
