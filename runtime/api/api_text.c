/* api_text.c - the public interface: tokenizers, decoders, chat templates. */
#include "runtime/api/api_impl.h"

#include "runtime/base/mem.h"

/* ---- tokenizers ---- */

weft_status api_tokenizer_made(weft_status st, tok *text, weft_tokenizer **out_tokenizer)
{
    if (st != WEFT_OK)
        return st;
    weft_tokenizer *t = mem_alloc(sizeof *t);
    *t = (weft_tokenizer){text};
    *out_tokenizer = t;
    return WEFT_OK;
}

weft_status weft_tokenizer_of_model(weft_diag *dg, const weft_model *m,
                                    weft_tokenizer **out_tokenizer)
{
    API_SCOPE(dg);
    if (!dg || !m || !out_tokenizer)
        return api_lacks(dg, "weft_tokenizer_of_model", "a model");
    tok *text = NULL;
    weft_status st = m->kind->tokenizer(dg, m, &text);
    return api_tokenizer_made(st, text, out_tokenizer);
}

void weft_tokenizer_close(weft_tokenizer *t)
{
    if (!t)
        return;
    tok_close(t->text);
    mem_free(t);
}

weft_status api_give_text(weft_status st, strbuf *text, char **out_text, size_t *out_bytes)
{
    if (st != WEFT_OK) {
        strbuf_free(text);
        return st;
    }
    strbuf_start(text); /* not NULL, even if it is empty */
    *out_bytes = text->n;
    *out_text = text->p;
    return WEFT_OK;
}

weft_status weft_encode(weft_diag *dg, weft_tokenizer *t, const char *text, size_t bytes,
                        unsigned flags, int32_t **out_ids, size_t *out_n)
{
    API_SCOPE(dg);
    if (!dg || !t || (!text && bytes) || !out_ids || !out_n)
        return api_lacks(dg, "weft_encode", "a tokenizer or a text");
    tok_ids ids = {0};
    tok_encode_flags how = {.add_special = flags & WEFT_ADD_SPECIAL,
                            .parse_special = flags & WEFT_PARSE_SPECIAL};
    weft_status st = tok_encode(dg, t->text, (str){text ? text : "", bytes}, how, &ids);
    if (st != WEFT_OK) {
        VEC_FREE(&ids);
        return st;
    }
    VEC_START(&ids); /* not NULL, even if there are none; the caller releases it with weft_free */
    *out_n = ids.n;
    *out_ids = ids.at;
    return WEFT_OK;
}

weft_status weft_decode(weft_diag *dg, weft_tokenizer *t, const int32_t *ids, size_t n,
                        bool skip_special, char **out_text, size_t *out_bytes)
{
    API_SCOPE(dg);
    if (!dg || !t || (!ids && n) || !out_text || !out_bytes)
        return api_lacks(dg, "weft_decode", "a tokenizer or ids");
    strbuf text = {0};
    weft_status st = tok_decode(dg, t->text, ids, n, skip_special, &text);
    return api_give_text(st, &text, out_text, out_bytes);
}

int32_t weft_tokenizer_size(const weft_tokenizer *t)
{
    return tok_vocab_size(t->text);
}

int32_t weft_token_bos(const weft_tokenizer *t)
{
    return tok_bos(t->text);
}

int32_t weft_token_eos(const weft_tokenizer *t)
{
    return tok_eos(t->text);
}

bool weft_token_ends(const weft_tokenizer *t, int32_t id)
{
    return tok_is_end(t->text, id);
}

bool weft_token_special(const weft_tokenizer *t, int32_t id)
{
    return tok_is_special(t->text, id);
}

int32_t weft_token_find(const weft_tokenizer *t, const char *text)
{
    return text ? tok_find(t->text, str_of(text)) : TOK_NONE;
}

const char *weft_token_text(const weft_tokenizer *t, int32_t id, size_t *out_bytes)
{
    str text = tok_text(t->text, id);
    *out_bytes = text.n;
    return text.n ? text.p : "";
}

/* ---- decoders ---- */

weft_status weft_decoder_create(weft_diag *dg, weft_tokenizer *t, bool skip_special,
                                weft_decoder **out_decoder)
{
    API_SCOPE(dg);
    if (!dg || !t || !out_decoder)
        return api_lacks(dg, "weft_decoder_create", "a tokenizer");
    weft_decoder *d = mem_alloc(sizeof *d);
    *d = (weft_decoder){.stream = tok_stream_create(t->text, skip_special), .text = t->text};
    strbuf_start(&d->out);
    *out_decoder = d;
    return WEFT_OK;
}

void weft_decoder_destroy(weft_decoder *d)
{
    if (!d)
        return;
    tok_stream_destroy(d->stream);
    strbuf_free(&d->out);
    mem_free(d);
}

static weft_status decoder_take(weft_decoder *d, int32_t id, const char **out_text,
                                size_t *out_bytes)
{
    strbuf_reset(&d->out);
    if (id == TOK_NONE)
        tok_stream_flush(d->stream, &d->out);
    else
        tok_stream_put(d->stream, id, &d->out);
    *out_bytes = d->out.n;
    *out_text = d->out.n ? d->out.p : "";
    return WEFT_OK;
}

weft_status weft_decoder_put(weft_diag *dg, weft_decoder *d, int32_t id, const char **out_text,
                             size_t *out_bytes)
{
    API_SCOPE(dg);
    if (!dg || !d || !out_text || !out_bytes)
        return api_lacks(dg, "weft_decoder_put", "a decoder");
    if (id < 0 || id >= tok_vocab_size(d->text))
        return weft_fail(dg, W1405, WEFT_NOWHERE, "there is no token %d", (int)id);
    return decoder_take(d, id, out_text, out_bytes);
}

weft_status weft_decoder_end(weft_diag *dg, weft_decoder *d, const char **out_text,
                             size_t *out_bytes)
{
    API_SCOPE(dg);
    if (!dg || !d || !out_text || !out_bytes)
        return api_lacks(dg, "weft_decoder_end", "a decoder");
    return decoder_take(d, TOK_NONE, out_text, out_bytes);
}

/* ---- chat templates ---- */

weft_status weft_template_open(weft_diag *dg, const weft_model *m, const char *choice,
                               weft_template **out_template)
{
    API_SCOPE(dg);
    if (!dg || !m || !out_template)
        return api_lacks(dg, "weft_template_open", "a model");
    chat_template *chat = NULL;
    WEFT_TRY(m->kind->chat(dg, m, choice, &chat));
    weft_template *t = mem_alloc(sizeof *t);
    *t = (weft_template){chat};
    *out_template = t;
    return WEFT_OK;
}

void weft_template_close(weft_template *t)
{
    if (!t)
        return;
    chat_close(t->chat);
    mem_free(t);
}

const char *weft_template_origin(const weft_template *t)
{
    return chat_origin(t->chat);
}
