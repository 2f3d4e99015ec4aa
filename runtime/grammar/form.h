/* form.h - the one small form that schemas, regular expressions and GBNF become: rules made of parts. Private.
 *
 * A part is plain data in the form's arena and may stand in several places. A form counts its parts: past the limit
 * every function gives a part all the same, and form_full says so; whoever builds looks at the end of each step. */
#ifndef WEFT_RUNTIME_GRAMMAR_FORM_H
#define WEFT_RUNTIME_GRAMMAR_FORM_H

#include "runtime/base/arena.h"
#include "runtime/base/vec.h"
#include "runtime/grammar/grammar.h"

typedef struct part part;

typedef enum {
    PART_NEVER,   /* no text */
    PART_BYTES,   /* this text; empty: the empty text */
    PART_SET,     /* one character of some ranges, in UTF-8 */
    PART_SEQ,     /* one after the other */
    PART_ALT,     /* one of several */
    PART_REPEAT,  /* item[0], from min to max times */
    PART_RULE,    /* what another rule is */
    PART_ORDERED, /* some of several in their order, with something between two that are there */
} part_kind;

typedef struct {
    uint32_t lo, hi;
} char_range;

enum { REPEAT_NO_END = -1 };

struct part {
    part_kind kind;
    str bytes;               /* BYTES */
    const char_range *range; /* SET: ascending, apart from each other */
    const part **item;       /* SEQ, ALT, ORDERED; REPEAT: one */
    const bool *optional;    /* ORDERED */
    /* ORDERED: stands between any two; what follows them as often as it likes, NULL: nothing */
    const part *between, *more;
    size_t n;         /* of range or item */
    int64_t min, max; /* REPEAT; REPEAT_NO_END. ORDERED: min 1: not none of them */
    int32_t rule;
};

typedef struct {
    str name;         /* for messages; empty: made by a compiler */
    const part *body; /* NULL: not defined yet */
    weft_loc loc;     /* where it is defined or first named */
} form_rule;

typedef struct {
    arena *a;
    VEC(form_rule) rules;
    int32_t root;
    size_t n_part, parts_max;
} form;

void form_init(form *f, size_t parts_max);
void form_deinit(form *f);
static inline bool form_full(const form *f)
{
    return f->n_part > f->parts_max;
}

int32_t form_rule_add(form *f, str name, weft_loc loc); /* without a body; the name is copied */

const part *part_never(form *f);
const part *part_empty(form *f);
const part *part_bytes(form *f, str s); /* copied */
const part *part_text(form *f, const char *z);
/* Ranges in any order; NEVER if there are none. invert: all other characters. Surrogates are never among them. */
const part *part_set(form *f, const char_range *r, size_t n, bool invert);
const part *part_char(form *f, uint32_t lo, uint32_t hi);
const part *part_rule(form *f, int32_t rule);
const part *part_repeat(form *f, const part *item, int64_t min, int64_t max);
const part *part_list(form *f, part_kind kind, const part *const *item, size_t n); /* SEQ, ALT */
const part *part_ordered(form *f, const part *const *item, const bool *optional, size_t n,
                         const part *between, const part *more, bool some);
/* PART_SEQ_OF(f, a, b, c), PART_ALT_OF(f, a, b) */
#define PART_SEQ_OF(f, ...) PART_LIST_OF(f, PART_SEQ, __VA_ARGS__)
#define PART_ALT_OF(f, ...) PART_LIST_OF(f, PART_ALT, __VA_ARGS__)
#define PART_LIST_OF(f, kind, ...)                                                                 \
    part_list(f, kind, (const part *const[]){__VA_ARGS__},                                         \
              sizeof((const part *const[]){__VA_ARGS__}) / sizeof(const part *))

/* Parts as they are collected. */
typedef VEC(const part *) part_vec;
typedef VEC(char_range) range_vec;

/* ---- the texts that forms are made from ---- */

/* What reads a regular expression into a part. json: the part is what stands between the quotes of a JSON string, so the
 * characters that JSON escapes are written as it does. search: the text may stand anywhere, as `pattern` of a schema means
 * it, unless ^ and $ say otherwise; else it is all of the text. */
typedef struct {
    const source *src; /* for places */
    str text;
    uint32_t at; /* of text in src */
    bool json, search;
    int depth_max;
} regex_source;
weft_status regex_part(weft_diag *dg, form *f, const regex_source *r,
                       const part **out_p) WEFT_MUST_USE;

weft_status gbnf_form(weft_diag *dg, form *f, const source *src, int depth_max) WEFT_MUST_USE;
weft_status schema_form(weft_diag *dg, form *f, const char *name, str text,
                        const grammar_limits *limits) WEFT_MUST_USE;
void json_object_form(form *f); /* any object */

#endif
