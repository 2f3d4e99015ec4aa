/* tok_stream.c - decoding one token at a time.
 *
 * Steps before a Fuse (or a ByteLevel, which fuses too) see the text of one token; those after it
 * see the text as it grows, of which only the beginning and the end matter: a Strip cuts at the
 * very first characters and holds back what it may have to cut at the very end. */
#include "runtime/base/mem.h"
#include "runtime/base/mem_scope.h"
#include "runtime/text/tok_impl.h"
#include <stdlib.h>

struct tok_stream {
    tok *t;
    bool skip_special;
    bool begun;     /* a token was seen */
    strbuf pending; /* bytes that are not a character yet */
    size_t cut;     /* characters that the Strip at the beginning has cut */
    bool cut_done;  /* something else came */
    strbuf held;    /* what a Strip at the end may still cut */
    strbuf a, b;
    weft_diag *dg; /* of patterns; never shown */
};

tok_stream *tok_stream_create(tok *t, bool skip_special)
{
    tok_stream *s = mem_alloc(sizeof *s);
    *s = (tok_stream){.t = t, .skip_special = skip_special, .dg = diag_create()};
    strbuf_start(&s->pending);
    strbuf_start(&s->held);
    strbuf_start(&s->a);
    strbuf_start(&s->b);
    return s;
}

void tok_stream_destroy(tok_stream *s)
{
    if (!s)
        return;
    strbuf_free(&s->pending);
    strbuf_free(&s->held);
    strbuf_free(&s->a);
    strbuf_free(&s->b);
    diag_destroy(s->dg);
    mem_free(s);
}

/* The Strip that works on the fused text, if there is one. */
static const dec_step *final_strip(const tok *t)
{
    bool fused = false;
    for (size_t i = 0; i < t->decs.n; i++) {
        const dec_step *d = &t->decs.at[i];
        fused |= d->kind == DEC_FUSE || d->kind == DEC_BYTE_LEVEL;
        if (fused && d->kind == DEC_STRIP)
            return d;
    }
    return NULL;
}

static void drop(strbuf *b, size_t n)
{
    if (!n)
        return;
    b->n -= n;
    memmove(b->p, b->p + n, b->n);
}

/* Settled text, on its way out. */
static void put_settled(tok_stream *s, str text, strbuf *out)
{
    const dec_step *strip = final_strip(s->t);
    if (!strip) {
        strbuf_put(out, text);
        return;
    }
    while (!s->cut_done && text.n) {
        s->cut_done = s->cut == strip->start || !str_starts(text, strip->text);
        if (s->cut_done)
            break;
        text = (str){text.p + strip->text.n, text.n - strip->text.n};
        s->cut++;
    }
    strbuf_put(&s->held, text);
    str all = strbuf_view(&s->held);
    str sure = dec_strip_stop(strip, all, strip->stop);
    strbuf_put(out, sure);
    drop(&s->held, sure.n);
}

/* Memory for all that n more bytes can lead to: from here on nothing fails, so a token is put whole or not at all. */
static void reserve(tok_stream *s, size_t n, strbuf *out)
{
    enum { PER_BYTE = 3 }; /* each may become U+FFFD */
    size_t most = (s->pending.n + n) * PER_BYTE;
    strbuf_reserve(&s->pending, n);
    strbuf_reserve(&s->b, most);
    strbuf_reserve(&s->held, most);
    strbuf_reserve(out, s->held.n + most);
}

static void put_bytes(tok_stream *s, str bytes, strbuf *out)
{
    strbuf_put(&s->pending, bytes);
    strbuf_reset(&s->b);
    size_t n = dec_put_utf8(&s->b, strbuf_view(&s->pending));
    drop(&s->pending, n);
    put_settled(s, strbuf_view(&s->b), out);
}

/* A text that the pattern cannot deal with within its limits stays as it is. */
static void replace(tok_stream *s, const dec_step *d, str text)
{
    const tok_bound unbounded = {"decoder Replace", SIZE_MAX}; /* dec_load has looked at it */
    mem_lock(&s->t->lock);
    if (tok_regex_replace(s->dg, d->re, text, d->text, &unbounded, &s->b) != WEFT_OK) {
        diag_reset(s->dg);
        strbuf_reset(&s->b);
        strbuf_put(&s->b, text);
    }
    mem_unlock(&s->t->lock);
}

/* One step on the text of one token, which is s->a. */
static void step_token(tok_stream *s, const dec_step *d, bool first)
{
    str text = strbuf_view(&s->a);
    int byte = vocab_byte_of(text);
    strbuf_reset(&s->b);
    switch (d->kind) {
    case DEC_BYTE_LEVEL:
        dec_put_byte_level(&s->b, text);
        break;
    case DEC_BYTE_FALLBACK:
        if (byte >= 0)
            strbuf_putc(&s->b, (char)byte);
        else
            strbuf_put(&s->b, text);
        break;
    case DEC_FUSE:
        strbuf_put(&s->b, text);
        break;
    case DEC_REPLACE:
        replace(s, d, text);
        break;
    case DEC_STRIP:
        text = dec_strip_start(d, text, d->start);
        strbuf_put(&s->b, dec_strip_stop(d, text, d->stop));
        break;
    case DEC_METASPACE:
        dec_put_metaspace(d, text, first, &s->b);
        break;
    case DEC_WORDPIECE:
        dec_put_wordpiece(d, text, first, &s->b);
        break;
    case DEC_BPE:
        dec_put_suffixed(d, text, false, &s->b);
        break;
    }
    strbuf swap = s->a;
    s->a = s->b;
    s->b = swap;
}

/* The bytes of one token, to s->a: all steps but a Strip of the fused text. */
static void decode_token(tok_stream *s, const vocab_token *token, bool first)
{
    bool fused = false;
    strbuf_reset(&s->a);
    if (!first && !s->t->decs.n)
        strbuf_putc(&s->a, ' ');
    strbuf_put(&s->a, token->shown);
    for (size_t i = 0; i < s->t->decs.n; i++) {
        const dec_step *d = &s->t->decs.at[i];
        if (!(fused && d->kind == DEC_STRIP))
            step_token(s, d, first);
        fused |= d->kind == DEC_FUSE || d->kind == DEC_BYTE_LEVEL;
    }
    strbuf_reset(&s->b);
}

void tok_stream_bytes(tok_stream *s, int32_t id, bool first, strbuf *out)
{
    const vocab_token *token = vocab_at(&s->t->vocab, id);
    const dec_step *strip = final_strip(s->t);
    if (!token || !token->text.p)
        return;
    decode_token(s, token, first);
    str text = strbuf_view(&s->a);
    if (first && strip)
        text = dec_strip_start(strip, text, strip->start);
    strbuf_put(out, text);
}

void tok_stream_put(tok_stream *s, int32_t id, strbuf *out)
{
    const vocab_token *token = vocab_at(&s->t->vocab, id);
    if (!token || !token->text.p || (s->skip_special && (token->flags & TOKEN_SPECIAL)))
        return;
    decode_token(s, token, !s->begun);
    reserve(s, s->a.n, out);
    s->begun = true;
    put_bytes(s, strbuf_view(&s->a), out);
}

void tok_stream_reset(tok_stream *s)
{
    strbuf_reset(&s->pending);
    strbuf_reset(&s->held);
    s->begun = s->cut_done = false;
    s->cut = 0;
}

void tok_stream_flush(tok_stream *s, strbuf *out)
{
    if (s->pending.n) {
        reserve(s, 1, out);
        put_settled(s, STR("\xef\xbf\xbd"), out);
    }
    tok_stream_reset(s); /* what is held are the characters that a Strip cuts at the end */
}
