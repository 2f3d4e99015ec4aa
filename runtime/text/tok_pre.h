/* tok_pre.h - pre-tokenisers: steps that split a normalised text into pieces. Private.
 *
 * Steps run depth first: each hands its pieces to the next one as it finds them, the last to the
 * model, so a text of any length is never kept as a list of pieces. */
#ifndef WEFT_RUNTIME_TEXT_TOK_PRE_H
#define WEFT_RUNTIME_TEXT_TOK_PRE_H

#include "runtime/base/vec.h"
#include "runtime/text/tok_fields.h"

/* What becomes of the text that a step looked for. */
typedef enum {
    SPLIT_REMOVED,
    SPLIT_ISOLATED,
    SPLIT_CONTIGUOUS, /* neighbours together */
    SPLIT_MERGED_WITH_PREVIOUS,
    SPLIT_MERGED_WITH_NEXT,
} split_behavior;

typedef enum { PREPEND_NEVER, PREPEND_ALWAYS, PREPEND_FIRST } prepend_scheme;

typedef struct pre_step pre_step;
typedef struct pre_run pre_run;
typedef weft_status pre_fn(pre_run *r, size_t step, str piece, bool at_start);

struct pre_step {
    pre_fn *apply;
    tok_regex *re; /* owned */
    bool (*is_match)(uint32_t cp);
    split_behavior behavior;
    bool invert;
    bool cuts;       /* digits by threes: see digit_groups in tok_pre.c */
    bool maps_bytes; /* ByteLevel: the pieces it leaves are byte-level text */
    prepend_scheme prepend;
    bool split;
    str mark; /* Metaspace: what stands for a space */
    strbuf text;
};

typedef VEC(pre_step) pre_list;

/* Adds the steps of a "pre_tokenizer" value, which may be null; texts are copied into a. */
weft_status pre_load(weft_diag *dg, arena *a, const value *v, pre_list *to) WEFT_MUST_USE;
void pre_free(pre_list *l);

/* Steps for loaders that have no JSON. */
weft_status pre_add_regex(weft_diag *dg, const char *pattern, pre_list *to) WEFT_MUST_USE;
void pre_add_bytes(pre_list *to); /* ByteLevel without its pattern */
void pre_add_bert(pre_list *to);

/* Whether the last step is a ByteLevel and the only one: then the model can work on bytes, and the
 * step is set to leave the text as it is. */
bool pre_ends_in_bytes(const pre_list *l);
void pre_keep_bytes(pre_list *l);

/* For images of tokenizers, steps by number from 1 on: what s was before pre_keep_bytes. And back: s, whose other fields are
 * set, becomes such a step; NULL, or what it lacks. The same for is_match, which may be NULL: 0. */
int pre_number(const pre_step *s);
const char *pre_set_number(pre_step *s, int number);
int pre_match_number(bool (*is_match)(uint32_t cp));
bool (*pre_match_of_number(int number))(uint32_t cp);
bool pre_needs_tables(const pre_step *s); /* of Unicode: text_parts.h */

struct pre_run {
    weft_diag *dg;
    pre_list *steps;
    weft_status (*piece)(void *to, str piece); /* called for every piece that is not empty */
    void *to;
    size_t room; /* bytes that may still be handed from step to step, see tok_bound_of */
};

/* at_start: the text begins where the whole text does. */
weft_status pre_split(pre_run *r, str text, bool at_start) WEFT_MUST_USE;

#endif
