/* value.h - what a key of a model file holds: a number, a text, a list, or a tree of these.
 *
 * One type serves GGUF metadata and JSON. A value is plain data and never changes; its strings and
 * lists borrow from the mapped file or from an arena, which must outlive it (for the keys of a
 * model_file: the model_file). The readers below take NULL, an absent key, for an answer of "no",
 * so that look-up and conversion chain:
 *
 *     int64_t layers;
 *     if (!value_int(model_file_key(mf, STR("block_count")), &layers)) ...
 */
#ifndef WEFT_RUNTIME_FORMATS_VALUE_H
#define WEFT_RUNTIME_FORMATS_VALUE_H

#include "runtime/base/arena.h"
#include "runtime/base/json_write.h"

typedef enum {
#define VALUE_TYPE(name, gguf, bytes, kind, text) VT_##name,
#include "runtime/formats/value.def"
#undef VALUE_TYPE
    VT_COUNT
} value_type;

typedef enum {
    VALUE_NULL,
    VALUE_BOOL,
    VALUE_INT,
    VALUE_FLOAT,
    VALUE_STR,
    VALUE_ARRAY,
    VALUE_OBJECT,
} value_kind;

typedef struct {
    const char *text; /* "u32" */
    int gguf;         /* -1: no such type in GGUF */
    size_t bytes;     /* 0: not fixed */
    value_kind kind;
} value_type_row;

typedef struct value value;
typedef struct value_member value_member;
typedef struct name_index name_index;

struct value {
    value_type type;
    value_type item; /* of an array, see below */
    union {
        bool b;
        int64_t i;  /* every integer type but U64 */
        uint64_t u; /* U64 */
        double f;   /* F32, F64 */
        str s;
        /* data is, for item BOOL and the numbers: n of them as the file has them, little endian, at
         * any address; STR: str[n]; ARRAY: value[n]; NULL: value[n] of any types (see value_at). */
        struct {
            const void *data;
            size_t n;
        } array;
        struct {
            const value_member *members; /* in the order of the file */
            size_t n;
            const name_index *index; /* NULL where there are few */
        } object;
    } as;
};

struct value_member {
    str name;
    value v;
};

const value_type_row *value_type_row_of(value_type t);
value_kind value_kind_of(const value *v); /* NULL has kind VALUE_NULL */

/* True and the number if v is an integer in range, or a float without fraction below 2^53. */
bool value_int(const value *v, int64_t *out_x);
bool value_float(const value *v, double *out_x); /* any number */
bool value_bool(const value *v, bool *out_x);    /* a bool only */
bool value_str(const value *v, str *out_x);      /* a string only */

size_t value_count(const value *v);               /* of an array or object, else 0 */
value value_at(const value *v, size_t i);         /* item i < value_count(v) of an array */
const str *value_strs(const value *v);            /* all of an array of strings (GGUF), else NULL */
const value *value_get(const value *v, str name); /* member of an object; NULL: none such */
/* The same along a path with dots. Where the path runs into a null before its end, that null. */
const value *value_find(const value *v, str path);

/* As JSON. An array's items past items_max are left out; "... N more" stands in their place. */
void value_json(json_writer *w, const value *v, size_t items_max);

/* Values from C, for writers and tests; the array and object forms borrow their items. */
value value_of_int(value_type t, int64_t x);
value value_of_float(value_type t, double x);
value value_of_bool(bool x);
value value_of_str(str s);
value value_of_array(value_type item, const void *data, size_t n);
/* False, and the position of the second of two equal names, if a name stands twice. */
bool value_of_members(arena *a, const value_member *members, size_t n, value *out_v,
                      size_t *out_twice);

#endif
