/* tok_fields.h - members of the objects in a tokenizer.json, with the messages they share. Private.
 *
 * `what` names the object for messages: "Split". A wrong or missing member is W1203. */
#ifndef WEFT_RUNTIME_TEXT_TOK_FIELDS_H
#define WEFT_RUNTIME_TEXT_TOK_FIELDS_H

#include "runtime/base/diag.h"
#include "runtime/formats/value.h"
#include "runtime/text/tok_regex.h"

enum {
    FIELDS_DEPTH_MAX = 16,  /* of Sequence in Sequence */
    FIELDS_STEPS_MAX = 64,  /* of one kind */
    FIELDS_TEXT_MAX = 4096, /* bytes that a step can put in at once: of Replace, Prepend, .. */
    FIELDS_AFFIX_MAX = 64,  /* bytes before or behind each symbol of a word: ##, </w> */
};

/* Absent or null: the default stays. */
weft_status field_bool(weft_diag *dg, const char *what, const value *v, const char *name,
                       bool *io_x) WEFT_MUST_USE;
weft_status field_int(weft_diag *dg, const char *what, const value *v, const char *name, int64_t lo,
                      int64_t hi, int64_t *io_x) WEFT_MUST_USE;
/* Must be there; lives as long as v. */
weft_status field_str(weft_diag *dg, const char *what, const value *v, const char *name,
                      str *out_s) WEFT_MUST_USE;
/* A string or null or absent, which is empty. */
weft_status field_str_or_none(weft_diag *dg, const char *what, const value *v, const char *name,
                              str *out_s) WEFT_MUST_USE;
/* Either of them with more than n_max bytes is W1209. */
weft_status field_text(weft_diag *dg, const char *what, const value *v, const char *name,
                       size_t n_max, str *out_s) WEFT_MUST_USE;
weft_status field_copy(weft_diag *dg, arena *a, const char *what, const value *v, const char *name,
                       size_t n_max, str *out_s) WEFT_MUST_USE; /* field_text, copied into a */
weft_status field_text_or_none(weft_diag *dg, const char *what, const value *v, const char *name,
                               size_t n_max, str *out_s) WEFT_MUST_USE;
weft_status field_list(weft_diag *dg, const char *what, const value *v, const char *name,
                       const value **out_list) WEFT_MUST_USE;
/* "pattern": {"String": ..} or {"Regex": ..}. The caller destroys it. */
weft_status field_pattern(weft_diag *dg, const char *what, const value *v,
                          tok_regex **out_re) WEFT_MUST_USE;

/* One kind of steps: normalizers, .. A value is null, an object whose "type" names a step, or a Sequence of values. */
typedef struct {
    const char *name; /* for messages: "normalizer" */
    const char *list; /* the member of a Sequence */
    /* One step of that type, texts copied into a; field_unknown if there is none such. */
    weft_status (*load)(weft_diag *dg, arena *a, const value *v, str type, void *to);
} step_kind;
weft_status field_steps(weft_diag *dg, arena *a, const step_kind *k, const value *v,
                        void *to) WEFT_MUST_USE;
/* W1209 if n steps are too many. */
weft_status field_steps_check(weft_diag *dg, const step_kind *k, size_t n) WEFT_MUST_USE;

/* W1202: a component of this kind has a name that Weft does not know. */
weft_status field_unknown(weft_diag *dg, const char *kind, str name);

#endif
