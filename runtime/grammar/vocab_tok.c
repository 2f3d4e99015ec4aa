/* vocab_tok.c - the vocabulary of a tokenizer. */
#include "runtime/base/mem.h"
#include "runtime/grammar/token_trie.h"
#include "runtime/text/tok.h"

/* The bytes of all tokens, inside a text or as its first. */
static void read_tokens(tok *t, bool first, int64_t n_token, strbuf *all, size_t *at)
{
    tok_stream *s = tok_stream_create(t, false);
    for (int64_t i = 0; i < n_token; i++) {
        int32_t id = (int32_t)i;
        at[i] = all->n;
        if (i < tok_vocab_size(t) && tok_has(t, id) && !tok_is_special(t, id) && !tok_is_end(t, id))
            tok_stream_bytes(s, id, first, all);
    }
    at[n_token] = all->n;
    tok_stream_destroy(s);
}

static void trie_of(token_trie *to, const strbuf *all, const size_t *at, int64_t n_token)
{
    str *text = mem_alloc(mem_product((size_t)n_token + 1, sizeof *text));
    for (int64_t i = 0; i < n_token; i++)
        text[i] = (str){all->p + at[i], at[i + 1] - at[i]};
    token_trie_init(to, text, n_token);
    mem_free(text);
}

weft_status grammar_vocab_create(weft_diag *dg, tok *t, int64_t n_token, grammar_vocab **out_v)
{
    enum { TEXTS_MAX = 1 << 30 };
    strbuf mid = {0}, first = {0};
    size_t *mid_at = mem_alloc(mem_product((size_t)n_token + 1, sizeof *mid_at));
    size_t *first_at = mem_alloc(mem_product((size_t)n_token + 1, sizeof *first_at));
    weft_status st = WEFT_OK;
    read_tokens(t, false, n_token, &mid, mid_at);
    read_tokens(t, true, n_token, &first, first_at);
    if (mid.n > TEXTS_MAX || first.n > TEXTS_MAX) {
        st = weft_fail(dg, W1803, WEFT_NOWHERE, "the tokens have %zu bytes, at most %d are allowed",
                       mid.n, TEXTS_MAX);
    } else {
        grammar_vocab *v = vocab_new(n_token);
        size_t n_end;
        const int32_t *ends = tok_ends(t, &n_end);
        for (size_t i = 0; i < n_end; i++)
            if (ends[i] >= 0 && ends[i] < n_token)
                mask_set(v->ends, ends[i]);
        v->differs = !str_eq(strbuf_view(&mid), strbuf_view(&first)) ||
                     memcmp(mid_at, first_at, (size_t)n_token * sizeof *mid_at) != 0;
        trie_of(&v->mid, &mid, mid_at, n_token);
        if (v->differs)
            trie_of(&v->first, &first, first_at, n_token);
        vocab_finish(v);
        *out_v = v;
    }
    strbuf_free(&mid);
    strbuf_free(&first);
    mem_free(mid_at);
    mem_free(first_at);
    return st;
}
