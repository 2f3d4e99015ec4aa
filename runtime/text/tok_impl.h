/* tok_impl.h - the inside of a tokenizer, shared by the files of this folder.
 *
 * Text goes through five stages, each a list of steps that the loaders fill in:
 *
 *     added tokens -> normalisers -> pre-tokenisers -> model -> template
 *
 * and ids back through a list of decoders. After loading nothing changes but tok_scratch. */
#ifndef WEFT_RUNTIME_TEXT_TOK_IMPL_H
#define WEFT_RUNTIME_TEXT_TOK_IMPL_H

#include "runtime/text/tok.h"
#include "runtime/text/tok_added.h"
#include "runtime/text/tok_bpe.h"
#include "runtime/text/tok_cache.h"
#include "runtime/text/tok_cut.h"
#include "runtime/text/tok_decode.h"
#include "runtime/text/tok_norm.h"
#include "runtime/text/tok_pre.h"
#include "runtime/text/tok_unigram.h"
#include "runtime/text/tok_vocab.h"
#include "runtime/text/tok_wordpiece.h"
#include <pthread.h>

typedef enum { TOK_BPE, TOK_UNIGRAM, TOK_WORDPIECE } tok_model;

enum { TOK_NAMED_COUNT = 4 }; /* rows of named_rows in tok_special.c */

struct tok {
    arena *home;
    tok_vocab vocab;

    tok_added added;      /* found in the text as it is */
    tok_added added_norm; /* found in the normalised text */
    norm_list norms;
    pre_list pres;
    tok_model model;
    bpe bpe;
    unigram unigram;
    wordpiece wordpiece;
    tok_cut cut;
    tok_ids before, after; /* the template */
    dec_list decs;

    int32_t named[TOK_NAMED_COUNT];
    tok_ids ends;
    str chat_template;

    pthread_mutex_t lock; /* guards what follows, and the patterns of the steps */
    tok_cache cache;
    bpe_scratch bpe_scratch;
    unigram_scratch unigram_scratch;
    strbuf norm_text, norm_spare;
};

/* What one call of tok_encode carries along. */
typedef struct {
    weft_diag *dg;
    tok *t;
    tok_encode_flags flags;
    tok_ids *ids;
    size_t norm_room; /* bytes that normalizers may still make of the text */
    size_t pre_room;  /* and pre_tokenizers, all steps together */
} tok_run;

/* The most that a step may make of n bytes. */
static inline size_t tok_bound_of(size_t n)
{
    return n * TOK_GROWTH_MAX + TOK_GROWTH_ROOM;
}

/* Empty; tok_close closes it. */
tok *tok_create(void);
/* The end of every way to open one: tok_finish if st is WEFT_OK; t goes to out_tok, or is closed. */
weft_status tok_hand_over(weft_diag *dg, weft_status st, tok *t, tok **out_tok) WEFT_MUST_USE;
/* Loaders: fill an empty tokenizer. On failure the caller closes it. */
weft_status tok_load_json(weft_diag *dg, tok *t, const char *name, str text) WEFT_MUST_USE;
/* A tokenizer.json with what stands beside it: tokenizer_config.json and its like. mf is the
 * checkpoint that the folder is, or NULL. */
weft_status tok_load_folder(weft_diag *dg, tok *t, const char *path,
                            const model_file *mf) WEFT_MUST_USE;
weft_status tok_load_gguf(weft_diag *dg, tok *t, const model_file *mf) WEFT_MUST_USE;
/* The last step of every loader: tables that follow from the parts above. */
weft_status tok_finish(weft_diag *dg, tok *t) WEFT_MUST_USE;

/* tok_special.c */
void tok_named_set(tok *t, const char *name, int32_t id);
void tok_ends_add(tok *t, int32_t id);
void tok_ends_from_names(tok *t);

#endif
