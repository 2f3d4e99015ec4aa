/* jinja_value.h - what a template computes with: Python's plain data, and a few things to call.
 *
 * Strings are well-formed UTF-8 and never change. Lists and dicts are shared by reference and never
 * change once a template sees them; only a namespace does. All live in the arena of one rendering.
 * Private to the engine. */
#ifndef WEFT_RUNTIME_TEXT_JINJA_VALUE_H
#define WEFT_RUNTIME_TEXT_JINJA_VALUE_H

#include "runtime/base/arena.h"
#include "runtime/formats/value.h"

typedef enum {
    JV_ABSENT, /* an argument that was not given, a variable without value; templates never see it */
    JV_UNDEFINED,
    JV_NONE,
    JV_BOOL,
    JV_INT,
    JV_FLOAT,
    JV_STR,
    JV_LIST, /* every sequence but a string: see jseq */
    JV_DICT,
    JV_NAMESPACE,
    JV_MACRO,
    JV_LOOP,
    JV_CYCLER,
    JV_BUILTIN, /* a global function, or a method with its object */
} jkind;

/* What Python would have: prints differ, and a generator gives its items once. */
typedef enum {
    JSEQ_LIST,
    JSEQ_TUPLE,
    JSEQ_RANGE,
    JSEQ_KEYS,
    JSEQ_VALUES,
    JSEQ_ITEMS,
    JSEQ_GENERATOR,
} jseq;

/* Why an undefined value is undefined, for the message when it is used. */
typedef enum {
    JWHY_TEXT, /* as.s says it */
    JWHY_NAME, /* as.s is a variable's name */
    JWHY_ATTR, /* as.s is the attribute, `of` the kind of what lacks it */
    JWHY_UNSAFE,
} jwhy;

typedef struct jinja_run jinja_run; /* jinja_run.h: gives memory and takes fuel for work done */
typedef struct jval jval;
typedef struct jlist jlist;
typedef struct jdict jdict;
typedef struct jmacro jmacro;
typedef struct jloop jloop;
typedef struct jcycler jcycler;
typedef struct jrow jrow;

struct jval {
    jkind kind;
    uint8_t why, of; /* of an undefined value: jwhy, jkind */
    union {
        bool b;
        int64_t i;
        double f;
        str s;
        jlist *list;
        jdict *dict; /* JV_DICT, JV_NAMESPACE */
        jmacro *macro;
        jloop *loop;
        jcycler *cycler;
        struct {
            const jrow *row;
            const jval *self; /* NULL: a global function */
        } fn;
    } as;
};

struct jlist {
    jval *at;
    size_t n, cap;
    jseq seq;
    bool spent; /* a generator whose items were taken */
};

typedef struct {
    jval key, v;
} jpair;

struct jdict {
    jpair *at; /* in the order of insertion */
    size_t n, cap;
    uint32_t *slot; /* open addressing, position + 1; NULL while there are few */
    size_t n_slot;  /* a power of two */
};

static inline jval jv_none(void)
{
    return (jval){.kind = JV_NONE};
}
static inline jval jv_bool(bool b)
{
    return (jval){.kind = JV_BOOL, .as.b = b};
}
static inline jval jv_int(int64_t i)
{
    return (jval){.kind = JV_INT, .as.i = i};
}
static inline jval jv_float(double f)
{
    return (jval){.kind = JV_FLOAT, .as.f = f};
}
static inline jval jv_str(str s)
{
    return (jval){.kind = JV_STR, .as.s = s};
}
static inline jval jv_list(jlist *l)
{
    return (jval){.kind = JV_LIST, .as.list = l};
}
static inline jval jv_dict(jdict *d)
{
    return (jval){.kind = JV_DICT, .as.dict = d};
}
static inline jval jv_undefined(jwhy why, str s)
{
    return (jval){.kind = JV_UNDEFINED, .why = (uint8_t)why, .as.s = s};
}
static inline bool jv_is_number(const jval *v) /* as in Python, a bool is one */
{
    return v->kind == JV_BOOL || v->kind == JV_INT || v->kind == JV_FLOAT;
}
static inline bool jv_is_seq(const jval *v, jseq seq)
{
    return v->kind == JV_LIST && v->as.list->seq == seq;
}
static inline bool jv_is_given(const jval *v) /* an argument that is there and not none */
{
    return v->kind != JV_ABSENT && v->kind != JV_NONE;
}

jlist *jlist_new(jinja_run *r, jseq seq, size_t cap);
void jlist_push(jinja_run *r, jlist *l, jval v);

jdict *jdict_new(jinja_run *r);
/* A key must be hashable: jv_hashable. Setting a key again keeps its place. */
void jdict_set(jinja_run *r, jdict *d, jval key, jval v);
void jdict_set_str(jinja_run *r, jdict *d, str key, jval v);
const jval *jdict_get(jinja_run *r, const jdict *d, const jval *key); /* NULL: none such */
const jval *jdict_get_str(jinja_run *r, const jdict *d, str key);
bool jv_hashable(jinja_run *r, const jval *v);

/* Python's bool(), ==, the name of a type. Lists may share items, so that comparing takes far longer
 * than building: once the fuel is spent everything differs, and the rendering fails soon after. */
bool jv_truth(const jval *v);
bool jv_equal(jinja_run *r, const jval *a, const jval *b);
const char *jv_type(const jval *v); /* "str" */
const char *jkind_name(jkind kind);

/* Numbers: of a bool, int or float; of a bool or int that the caller has checked. */
double jv_number(const jval *v);
int64_t jv_integer(const jval *v);
static inline bool jv_is_integer(const jval *v)
{
    return v->kind == JV_BOOL || v->kind == JV_INT;
}

/* Data from a file or request; its strings are borrowed unless they need repair: bytes that are not
 * UTF-8 become U+FFFD. NULL gives none. */
jval jv_from_value(jinja_run *r, const value *v);

#endif
