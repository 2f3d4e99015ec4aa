/* tok.c - the way of a text through the stages. */
#include "runtime/base/mem.h"
#include "runtime/base/mem_scope.h"
#include "runtime/text/tok_impl.h"
#include <stdlib.h>

tok *tok_create(void)
{
    tok *t = mem_alloc(sizeof *t);
    *t = (tok){.home = arena_create(), .cache.life = mem_life_now()};
    bpe_init(&t->bpe);
    t->unigram.unk = t->wordpiece.unk = VOCAB_NONE;
    for (int i = 0; i < TOK_NAMED_COUNT; i++)
        t->named[i] = TOK_NONE;
    pthread_mutex_init(&t->lock, NULL);
    return t;
}

void tok_close(tok *t)
{
    if (!t)
        return;
    vocab_free(&t->vocab);
    added_free(&t->added);
    added_free(&t->added_norm);
    norm_free(&t->norms);
    pre_free(&t->pres);
    bpe_deinit(&t->bpe);
    unigram_deinit(&t->unigram);
    wordpiece_deinit(&t->wordpiece);
    cut_deinit(&t->cut);
    VEC_FREE(&t->before);
    VEC_FREE(&t->after);
    dec_free(&t->decs);
    VEC_FREE(&t->ends);
    cache_free(&t->cache);
    bpe_scratch_free(&t->bpe_scratch);
    unigram_scratch_free(&t->unigram_scratch);
    strbuf_free(&t->norm_text);
    strbuf_free(&t->norm_spare);
    pthread_mutex_destroy(&t->lock);
    arena_destroy(t->home);
    mem_free(t);
}

weft_status tok_hand_over(weft_diag *dg, weft_status status, tok *t, tok **out_tok)
{
    if (status == WEFT_OK)
        status = tok_finish(dg, t);
    if (status == WEFT_OK)
        *out_tok = t;
    else
        tok_close(t);
    return status;
}

/* Whether a part of a piece has the tokens that it has as part of the piece. */
static bool can_cut(const tok *t)
{
    return t->model == TOK_UNIGRAM || (t->model == TOK_BPE && !t->bpe.bytes && !t->bpe.prefix.n &&
                                       !t->bpe.suffix.n && !bpe_merges_unknown(&t->bpe));
}

static void learn_cuts(tok *t)
{
    t->cut.forced = !can_cut(t);
    for (size_t i = 0; !t->cut.forced && t->model == TOK_BPE && i < t->bpe.cap; i++)
        if (t->bpe.pairs[i].left != VOCAB_NONE)
            cut_add(&t->cut, t->vocab.tokens.at[t->bpe.pairs[i].id].text);
    for (size_t i = 0; t->model == TOK_UNIGRAM && i < t->vocab.tokens.n; i++)
        cut_add(&t->cut, t->vocab.tokens.at[i].text);
}

/* What later calls grow is there from the beginning (runtime/base/mem_scope.h). */
static void start_scratch(tok *t)
{
    if (t->model == TOK_BPE)
        bpe_scratch_start(&t->bpe_scratch);
    if (t->model == TOK_UNIGRAM)
        unigram_scratch_start(&t->unigram_scratch);
    strbuf_start(&t->norm_text);
    strbuf_start(&t->norm_spare);
    for (size_t i = 0; i < t->pres.n; i++)
        strbuf_start(&t->pres.at[i].text);
}

weft_status tok_finish(weft_diag *dg, tok *t)
{
    if (!t->vocab.map.n && !t->vocab.placed)
        return weft_fail(dg, W1203, WEFT_NOWHERE, "a tokenizer without tokens");
    if (t->model == TOK_BPE && pre_ends_in_bytes(&t->pres) && !t->bpe.prefix.n &&
        !t->bpe.suffix.n) {
        bpe_use_bytes(&t->bpe, t->home, &t->vocab);
        pre_keep_bytes(&t->pres);
    }
    if (t->model == TOK_WORDPIECE)
        wordpiece_finish(&t->wordpiece, &t->vocab);
    learn_cuts(t);
    tok_ends_from_names(t);
    start_scratch(t);
    return WEFT_OK;
}

static weft_status run_model(tok_run *r, str part)
{
    tok *t = r->t;
    switch (t->model) {
    case TOK_BPE:
        bpe_encode(&t->bpe, &t->vocab, &t->bpe_scratch, part, r->ids);
        return WEFT_OK;
    case TOK_UNIGRAM:
        return unigram_encode(r->dg, &t->unigram, &t->vocab, &t->unigram_scratch, part, r->ids);
    case TOK_WORDPIECE:
        return wordpiece_encode(r->dg, &t->wordpiece, part, r->ids);
    }
    return WEFT_OK;
}

static weft_status encode_part(tok_run *r, str part)
{
    bool hit;
    if (part.n > CACHE_KEY_MAX)
        return run_model(r, part);
    cache_word *w = cache_find(&r->t->cache, part, &hit);
    if (hit) {
        for (size_t i = 0; i < w->n_id; i++)
            VEC_PUSH(r->ids, w->ids[i]);
        return WEFT_OK;
    }
    size_t n = r->ids->n;
    WEFT_TRY(run_model(r, part));
    cache_keep(w, part, r->ids->n > n ? r->ids->at + n : w->ids, r->ids->n - n);
    return WEFT_OK;
}

static weft_status encode_piece(void *to, str piece)
{
    tok_run *r = to;
    tok *t = r->t;
    if (t->bpe.ignore_merges) {
        int32_t id = bpe_whole(&t->bpe, &t->vocab, piece);
        if (id != VOCAB_NONE) {
            VEC_PUSH(r->ids, id);
            return WEFT_OK;
        }
    }
    if (t->model == TOK_WORDPIECE || (t->cut.forced && piece.n <= CUT_FORCED_BYTES))
        return encode_part(r, piece);
    for (size_t at = 0, end; at < piece.n; at = end) {
        end = cut_next(&t->cut, &t->vocab, piece, at);
        WEFT_TRY(encode_part(r, (str){piece.p + at, end - at}));
    }
    return WEFT_OK;
}

/* A stretch between tokens that were found in the raw text. */
static weft_status encode_raw(tok_run *r, str raw, bool at_start)
{
    tok *t = r->t;
    pre_run pre = {r->dg, &t->pres, encode_piece, r, r->pre_room};
    str text;
    size_t done = 0, begin, end;
    int32_t id;
    WEFT_TRY(norm_run(r->dg, &t->norms, raw, r->norm_room, &t->norm_text, &t->norm_spare, &text));
    r->norm_room -= text.n;
    added_scan scan = {.a = &t->added_norm, .text = text, .parse_special = r->flags.parse_special};
    while (added_next(&scan, &begin, &end, &id)) {
        WEFT_TRY(pre_split(&pre, (str){text.p + done, begin - done}, at_start && !done));
        VEC_PUSH(r->ids, id);
        done = end;
    }
    WEFT_TRY(pre_split(&pre, (str){text.p + done, text.n - done}, at_start && !done));
    r->pre_room = pre.room;
    return WEFT_OK;
}

static weft_status encode_text(tok_run *r, str text)
{
    added_scan scan = {.a = &r->t->added, .text = text, .parse_special = r->flags.parse_special};
    size_t done = 0, begin, end;
    int32_t id;
    while (added_next(&scan, &begin, &end, &id)) {
        if (begin > done)
            WEFT_TRY(encode_raw(r, (str){text.p + done, begin - done}, !done));
        VEC_PUSH(r->ids, id);
        done = end;
    }
    if (done < text.n)
        WEFT_TRY(encode_raw(r, (str){text.p + done, text.n - done}, !done));
    return WEFT_OK;
}

static void put_all(tok_ids *to, const tok_ids *from)
{
    for (size_t i = 0; i < from->n; i++)
        VEC_PUSH(to, from->at[i]);
}

weft_status tok_encode(weft_diag *dg, tok *t, str text, tok_encode_flags flags, tok_ids *ids)
{
    size_t n = ids->n, bad;
    if (text.n > TOK_TEXT_MAX)
        return weft_fail(dg, W1209, WEFT_NOWHERE, "the text has %zu bytes, at most %d are allowed",
                         text.n, TOK_TEXT_MAX);
    tok_run r = {dg, t, flags, ids, tok_bound_of(text.n), tok_bound_of(text.n) * (t->pres.n + 1)};
    if (!uni_check(text, &bad))
        return weft_fail(dg, W1207, WEFT_NOWHERE, "the text is not UTF-8: byte 0x%02x at %zu",
                         (unsigned char)text.p[bad], bad);
    if (flags.add_special)
        put_all(ids, &t->before);
    mem_lock(&t->lock);
    weft_status status = encode_text(&r, text);
    mem_unlock(&t->lock);
    if (status != WEFT_OK)
        ids->n = n;
    else if (flags.add_special)
        put_all(ids, &t->after);
    return status;
}

weft_status tok_decode(weft_diag *dg, tok *t, const int32_t *ids, size_t n, bool skip_special,
                       strbuf *out)
{
    dec_texts texts = {0};
    for (size_t i = 0; i < n; i++) {
        const vocab_token *token = vocab_at(&t->vocab, ids[i]);
        if (!token || !token->text.p || (skip_special && (token->flags & TOKEN_SPECIAL)))
            continue;
        if (texts.ends.n && !t->decs.n)
            strbuf_putc(&texts.text, ' ');
        dec_texts_put(&texts, token->shown);
    }
    mem_lock(&t->lock);
    weft_status status = dec_run(dg, &t->decs, &texts);
    mem_unlock(&t->lock);
    if (status == WEFT_OK)
        strbuf_put(out, strbuf_view(&texts.text));
    dec_texts_free(&texts);
    return status;
}
