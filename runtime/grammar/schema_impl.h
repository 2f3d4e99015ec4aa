/* schema_impl.h - what the files that read JSON schemas share. Private. */
#ifndef WEFT_RUNTIME_GRAMMAR_SCHEMA_IMPL_H
#define WEFT_RUNTIME_GRAMMAR_SCHEMA_IMPL_H

#include "runtime/formats/json_read.h"
#include "runtime/grammar/form.h"

/* A place in the schema, for messages: #/properties/name. Frames lie on the C stack. */
typedef struct schema_at schema_at;
struct schema_at {
    const schema_at *up; /* NULL: `key` is the whole path so far */
    str key;
    int depth;
};
#define SCHEMA_AT(up_, key_) (&(schema_at){(up_), (key_), (up_)->depth + 1})

enum {
    SCHEMA_DEPTH_MAX = 128,     /* of references, nested schemas and merges */
    SCHEMA_STEPS_MAX = 100000,  /* schemas that are looked at, each time one is */
    SCHEMA_COUNT_CAP = 1 << 16, /* a longer text or array than this is never made */
};

enum { /* types, as bits */
       TYPE_NULL = 1,
       TYPE_BOOL = 2,
       TYPE_INTEGER = 4,
       TYPE_NUMBER = 8,
       TYPE_STRING = 16,
       TYPE_ARRAY = 32,
       TYPE_OBJECT = 64,
       TYPE_ALL = 127,
};

typedef struct {
    const value *v;
    int32_t rule;
} schema_rule;

typedef struct {
    const value *list, *made;
} schema_made;

typedef struct {
    weft_diag *dg;
    form *f;
    const char *name;
    const value *root;
    int depth_max;
    size_t steps;
    int32_t ws, value, string, object; /* rules of any JSON */
    const part *text_char;  /* one character of a string; shared by those with a length */
    VEC(schema_rule) rules; /* of references */
    VEC(schema_made) apart; /* lists of oneOf, and what tells theirs apart */
} schema;

/* schema.c */
weft_status schema_part(schema *s, const schema_at *at, const value *v,
                        const part **out) WEFT_MUST_USE;
weft_status schema_fail(schema *s, weft_code code, const schema_at *at, const char *fmt, ...)
    WEFT_PRINTF(4, 5);
void schema_path(strbuf *b, const schema_at *at); /* #/properties/name */
bool schema_is_note(str keyword);                 /* it constrains nothing */
const value *schema_item(schema *s, const value *array, size_t i);
weft_status schema_types(schema *s, const schema_at *at, const value *v,
                         unsigned *out) WEFT_MUST_USE;
bool schema_is_of_type(const value *v, unsigned types);
/* What a "$ref" names. */
weft_status schema_target(schema *s, const schema_at *at, const value *ref,
                          const value **out) WEFT_MUST_USE;
/* A count that is not negative; otherwise `usual`. */
weft_status schema_count(schema *s, const schema_at *at, const value *v, const char *keyword,
                         int64_t usual, int64_t *out) WEFT_MUST_USE;
str schema_text(schema *s, const value *v); /* as JSON, in the form's arena */

/* schema_merge.c: a schema that holds exactly where both do. */
weft_status schema_merge(schema *s, const schema_at *at, const value *a, const value *b,
                         const value **out) WEFT_MUST_USE;
const value *schema_without(schema *s, const value *v, const char *keyword);
const value *schema_object_of(schema *s, const value_member *members, size_t n);
/* Whether no text can satisfy both, as far as types and constants tell. */
bool schema_apart(schema *s, const schema_at *at, const value *a, const value *b);

/* The same as far as the constants of one property tell, were it required in both. */
bool schema_apart_at(schema *s, const schema_at *at, const value *a, const value *b, str name);
const value *schema_followed(schema *s, const schema_at *at, const value *v); /* past $ref */

/* schema_json.c: any JSON, and its strings */
void json_rules_add(schema *s);
const part *json_string_char(form *f); /* one character, escaped or not */
const part *json_key_except(form *f, const str *names,
                            size_t n); /* a string that is none of these */

/* schema_length.c: what of a part has from min to max characters, or some of that; NULL: it is not known. Only for parts that
 * regex_part makes of JSON strings. */
const part *part_of_length(form *f, const part *p, int64_t min, int64_t max);

/* schema_number.c, schema_string.c, schema_object.c */
weft_status schema_number(schema *s, const schema_at *at, const value *v, bool integer,
                          const part **out) WEFT_MUST_USE;
const part *json_number(form *f, bool integer);
weft_status schema_string(schema *s, const schema_at *at, const value *v,
                          const part **out) WEFT_MUST_USE;
weft_status schema_array(schema *s, const schema_at *at, const value *v,
                         const part **out) WEFT_MUST_USE;
weft_status schema_object(schema *s, const schema_at *at, const value *v,
                          const part **out) WEFT_MUST_USE;

#endif
