/* tok.h - text to token ids and back, the same for tokenizer.json and for GGUF.
 *
 *     tok *t;
 *     WEFT_TRY(tok_open(dg, "tokenizer.json", &t));
 *     tok_ids ids = {0};
 *     WEFT_TRY(tok_encode(dg, t, STR("Hello"), TOK_ENCODE_DEFAULT, &ids));
 *     ...
 *     VEC_FREE(&ids);
 *     tok_close(t);
 *
 * A tokenizer.json that names a component Weft does not know is refused (W1202), never half read.
 * A tokenizer holds copies of all it needs. Encoding keeps scratch memory and a cache of words
 * behind a lock, so threads may share a tokenizer and take turns; so do decoders with a pattern. */
#ifndef WEFT_RUNTIME_TEXT_TOK_H
#define WEFT_RUNTIME_TEXT_TOK_H

#include "runtime/base/diag.h"
#include "runtime/base/vec.h"
#include "runtime/formats/model_file.h"

typedef struct tok tok;
typedef VEC(int32_t) tok_ids;

enum { TOK_NONE = -1 }; /* no such token */

/* path names a tokenizer.json, a GGUF file, or a folder with a tokenizer.json. */
weft_status tok_open(weft_diag *dg, const char *path, tok **out_tok) WEFT_MUST_USE;
/* The tokenizer of a checkpoint, which may be closed afterwards. */
weft_status tok_open_model(weft_diag *dg, const model_file *mf, tok **out_tok) WEFT_MUST_USE;
/* A tokenizer.json in memory; there is no tokenizer_config.json beside it. */
weft_status tok_open_text(weft_diag *dg, const char *name, str json, tok **out_tok) WEFT_MUST_USE;
void tok_close(tok *t); /* NULL is fine */

/* What a tokenizer can make of a text is bounded, whatever its file says. In one call of tok_encode the normalizers
 * make at most TOK_GROWTH_MAX times the bytes of the text, plus TOK_GROWTH_ROOM, and so does each pre_tokenizer;
 * W1214 names the step that would pass it. (U+FDFA, the worst of real texts, becomes eleven times as long.) Decoders
 * that could make a text more than TOK_GROWTH_MAX times as long are refused when the tokenizer is opened. */
enum {
    TOK_GROWTH_MAX = 64,
    TOK_GROWTH_ROOM = 1 << 20,
    TOK_TEXT_MAX = 1 << 30, /* bytes of a text to encode */
};

typedef struct {
    bool add_special;   /* put the template's tokens around the text: BOS and the like */
    bool parse_special; /* find special tokens written in the text */
} tok_encode_flags;

#define TOK_ENCODE_DEFAULT ((tok_encode_flags){.add_special = true, .parse_special = true})

/* Adds the ids of text to ids. W1209 where it has more than TOK_TEXT_MAX bytes, W1207 where the text is not UTF-8, W1205 where a pattern of the
 * tokenizer backtracks without end, W1208 where a character has no token and there is none for
 * unknown ones. On failure ids holds what it held before. */
weft_status tok_encode(weft_diag *dg, tok *t, str text, tok_encode_flags flags,
                       tok_ids *ids) WEFT_MUST_USE;

/* Adds the text of ids to out: well-formed UTF-8, whatever the ids. An id without a token adds
 * nothing. */
weft_status tok_decode(weft_diag *dg, tok *t, const int32_t *ids, size_t n, bool skip_special,
                       strbuf *out) WEFT_MUST_USE;

/* Decoding as ids come. A character appears with the token that completes it, never half of one; a
 * part that can no longer become one is U+FFFD, once for each maximal part. What a decoder does
 * with a whole text (a pattern across tokens) is done token by token here. */
typedef struct tok_stream tok_stream;
tok_stream *tok_stream_create(tok *t, bool skip_special); /* t must outlive it */
void tok_stream_destroy(tok_stream *s);                   /* NULL is fine */
void tok_stream_put(tok_stream *s, int32_t id, strbuf *out);
void tok_stream_reset(tok_stream *s); /* begin another text; what was not given yet is dropped */
void tok_stream_flush(tok_stream *s, strbuf *out); /* what is left; the stream can begin anew */
/* The bytes that a token stands for, which need not be whole characters: as the first of a text, or inside one. What the stream
 * was given before, and skip_special, make no difference. */
void tok_stream_bytes(tok_stream *s, int32_t id, bool first, strbuf *out);

int32_t tok_vocab_size(const tok *t);   /* one past the largest id */
bool tok_has(const tok *t, int32_t id); /* whether a token has this id: there are holes */
str tok_text(const tok *t, int32_t id); /* as the vocabulary writes it; empty: a hole */
bool tok_is_special(const tok *t, int32_t id);
int32_t tok_find(const tok *t, str text); /* the token written like this, or TOK_NONE */

/* TOK_NONE where there is none. */
int32_t tok_bos(const tok *t);
int32_t tok_eos(const tok *t);
bool tok_adds_bos(const tok *t); /* whether add_special puts BOS in front */
/* Every token that ends a generation: eos, eot, eom, the lists of generation_config.json. */
const int32_t *tok_ends(const tok *t, size_t *out_n);
bool tok_is_end(const tok *t, int32_t id);

/* From tokenizer_config.json, chat_template.jinja or tokenizer.chat_template; empty: none. */
str tok_chat_template(const tok *t);
/* The text of bos_token, eos_token, pad_token, unk_token as templates see it; empty: none. */
str tok_named_text(const tok *t, const char *name);

/* The keys that stand for t in a GGUF file, tokenizer.ggml.model and on, added to keys: for programs that read no
 * tokenizer.json. vocab: how many tokens the model has; 0: as many as t. NULL, or why GGUF has none for it; all
 * texts are in a. Ids of BOS and the like are not among them. */
typedef VEC(value_member) tok_keys;
const char *tok_gguf_keys(tok *t, arena *a, int64_t vocab, tok_keys *keys) WEFT_MUST_USE;

#endif
