/* tok_norm.h - normalisers: steps that rewrite a text before it is split. Private to this folder. */
#ifndef WEFT_RUNTIME_TEXT_TOK_NORM_H
#define WEFT_RUNTIME_TEXT_TOK_NORM_H

#include "runtime/base/vec.h"
#include "runtime/text/tok_charsmap.h"
#include "runtime/text/tok_fields.h"
#include "runtime/text/tok_unicode.h"

typedef struct norm_step norm_step;
/* A step that can multiply a text looks at the bound as it goes; norm_run does after each step. */
typedef weft_status norm_fn(weft_diag *dg, const norm_step *s, str in, const tok_bound *b,
                            strbuf *out);

struct norm_step {
    norm_fn *apply;
    const char *what; /* for messages */
    tok_regex *re;    /* owned */
    str text;
    uni_form form;
    charsmap map;
    bool left, right;                                         /* Strip */
    bool clean, han, strip_accents, lowercase;                /* BertNormalizer */
    bool space_prefix, space_suffix, space_merge, space_mark; /* SentencePiece's own */
};

typedef VEC(norm_step) norm_list;

/* Adds the steps of a "normalizer" value, which may be null; texts are copied into a. */
weft_status norm_load(weft_diag *dg, arena *a, const value *v, norm_list *to) WEFT_MUST_USE;
void norm_free(norm_list *l);

/* The text after all steps: in itself, or what stands in *text. *spare is scratch. W1214 where a
 * step makes it longer than n_max bytes. */
weft_status norm_run(weft_diag *dg, const norm_list *l, str in, size_t n_max, strbuf *text,
                     strbuf *spare, str *out_text) WEFT_MUST_USE;

/* Steps for loaders that have no JSON. */
norm_step norm_step_form(uni_form form);
norm_step norm_step_prepend(str text); /* borrowed */
norm_step norm_step_replace(str from, str to);
norm_step norm_step_charsmap(charsmap map);
norm_step norm_step_bert(bool strip_accents, bool lowercase);
/* How SentencePiece treats spaces: a prefix or suffix of one, runs made one, U+2581 for each. */
norm_step norm_step_spaces(bool prefix, bool suffix, bool merge, bool mark);

/* Steps by number, from 1 on, for images of tokenizers: 0 and NULL where there is none such. */
int norm_number(norm_fn *apply);
norm_fn *norm_of_number(int number);
bool norm_needs_regex(norm_fn *apply);
bool norm_needs_tables(const norm_step *s); /* of Unicode: text_parts.h */

#endif
