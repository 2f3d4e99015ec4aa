/* tok_gguf_keys.c - a tokenizer as the keys of a GGUF file: tok_gguf.c the other way round.
 *
 * The keys name a family and leave the rest to the reader. So a tokenizer is put into the family it is closest to;
 * what it makes of a text is asked, not read from its parts. Whether the family then gives the same ids, the caller
 * can find out by loading the keys (runtime/quant/job_hf_text.c). */
#include "runtime/text/tok_gguf.h"

#include "runtime/base/mem_scope.h"
#include <stdlib.h>

typedef struct {
    tok *t;
    arena *a;
    size_t n; /* tokens to write */
    tok_keys *keys;
} maker;

static void put(maker *m, const char *name, value v)
{
    value_member key = {arena_printf(m->a, "tokenizer.ggml.%s", name), v};
    VEC_PUSH(m->keys, key);
}

static void put_text(maker *m, const char *name, const char *text)
{
    put(m, name, value_of_str(str_of(text)));
}

/* ---- tokens ---- */

/* Whether an id is the one its text is found by: holes are not, nor what another id has hidden. */
static bool is_found(const tok *t, size_t id)
{
    str text = id < t->vocab.tokens.n ? t->vocab.tokens.at[id].text : STR("");
    return text.n > 0 && vocab_find(&t->vocab, text) == (int32_t)id;
}

/* Every id needs a text, and readers want all of them different. */
static str filler(maker *m, size_t id)
{
    str text = arena_printf(m->a, "[PAD%zu]", id);
    while (vocab_find(&m->t->vocab, text) != VOCAB_NONE)
        text = arena_printf(m->a, STR_FMT "_", STR_ARG(text));
    return text;
}

static int32_t type_of(const tok *t, size_t id, int32_t unk, bool bytes)
{
    if (!is_found(t, id))
        return TYPE_UNUSED;
    const vocab_token *token = &t->vocab.tokens.at[id];
    bool user = (token->flags & TOKEN_ADDED) && !(token->flags & TOKEN_SPECIAL);
    if ((int32_t)id == unk && !user)
        return TYPE_UNKNOWN;
    if (token->flags & TOKEN_SPECIAL)
        return TYPE_CONTROL;
    if (user)
        return TYPE_USER;
    return bytes && vocab_byte_of(token->text) >= 0 ? TYPE_BYTE : TYPE_NORMAL;
}

static void put_tokens(maker *m, int32_t unk, bool bytes)
{
    str *texts = ARENA_ARRAY(m->a, str, m->n);
    int32_t *types = ARENA_ARRAY(m->a, int32_t, m->n);
    for (size_t id = 0; id < m->n; id++) {
        texts[id] =
            is_found(m->t, id) ? arena_str(m->a, m->t->vocab.tokens.at[id].text) : filler(m, id);
        types[id] = type_of(m->t, id, unk, bytes);
    }
    put(m, "tokens", value_of_array(VT_STR, texts, m->n));
    put(m, "token_type", value_of_array(VT_I32, types, m->n));
}

/* ---- what the stages before the model make of a text ---- */

static weft_status put_piece(void *to, str piece)
{
    strbuf_put(to, piece);
    return WEFT_OK;
}

static bool becomes(maker *m, str text, const char *start)
{
    tok *t = m->t;
    weft_diag *dg = diag_create();
    strbuf out = {0};
    pre_run r = {dg, &t->pres, put_piece, &out, tok_bound_of(text.n) * (t->pres.n + 1)};
    mem_lock(&t->lock);
    bool fine = norm_run(dg, &t->norms, text, tok_bound_of(text.n), &t->norm_text, &t->norm_spare,
                         &text) == WEFT_OK &&
                pre_split(&r, text, true) == WEFT_OK;
    mem_unlock(&t->lock);
    fine = fine && str_starts(strbuf_view(&out), str_of(start));
    strbuf_free(&out);
    diag_destroy(dg);
    return fine;
}

/* ---- families ---- */

static int by_rank(const void *pa, const void *pb)
{
    const bpe_pair *a = pa, *b = pb;
    return (a->rank > b->rank) - (a->rank < b->rank);
}

/* All pairs in the order of the merges; *out_n of them. */
static bpe_pair *pairs_in_order(maker *m, size_t *out_n)
{
    const bpe *b = &m->t->bpe;
    bpe_pair *pairs = ARENA_ARRAY(m->a, bpe_pair, b->n + 1);
    size_t n = 0;
    for (size_t i = 0; i < b->cap; i++)
        if (b->pairs[i].left != VOCAB_NONE)
            pairs[n++] = b->pairs[i];
    qsort(pairs, n, sizeof *pairs, by_rank);
    *out_n = n;
    return pairs;
}

/* A space stands between the halves. Byte-level texts have none of their own, and no text leads to others. */
static bool has_space(str s)
{
    return s.n == 0 || memchr(s.p, ' ', s.n);
}

static const char *put_gpt2(maker *m)
{
    const tok_vocab *v = &m->t->vocab;
    const gguf_pre *pre = gguf_pre_of(m->t);
    size_t n, kept = 0;
    if (!pre)
        return "no tokenizer.ggml.pre stands for the way it splits texts";
    bpe_pair *pairs = pairs_in_order(m, &n);
    str *merges = ARENA_ARRAY(m->a, str, n + 1);
    for (size_t i = 0; i < n; i++) {
        str left = v->tokens.at[pairs[i].left].text, right = v->tokens.at[pairs[i].right].text;
        if (!has_space(left) && !has_space(right))
            merges[kept++] = arena_printf(m->a, STR_FMT " " STR_FMT, STR_ARG(left), STR_ARG(right));
    }
    put_text(m, "model", "gpt2");
    put_text(m, "pre", pre->name);
    put_tokens(m, VOCAB_NONE, false);
    put(m, "merges", value_of_array(VT_STR, merges, kept));
    return NULL;
}

/* A merge follows from the score of what it makes: the earlier the first merge that makes a token, the higher. */
static void put_llama_scores(maker *m)
{
    size_t n;
    const bpe_pair *pairs = pairs_in_order(m, &n);
    float *scores = ARENA_ARRAY(m->a, float, m->n);
    float last = n ? -(float)pairs[n - 1].rank - 2 : -1;
    for (size_t id = 0; id < m->n; id++) {
        int32_t type = type_of(m->t, id, VOCAB_NONE, true);
        scores[id] = type == TYPE_NORMAL || type == TYPE_USER ? last : 0;
    }
    for (size_t i = n; i-- > 0;)
        scores[pairs[i].id] = -(float)pairs[i].rank - 1;
    put(m, "scores", value_of_array(VT_F32, scores, m->n));
}

static const char *put_llama(maker *m)
{
    const bpe *b = &m->t->bpe;
    if (!b->byte_fallback)
        return "its BPE is neither byte-level nor has it bytes for characters without token";
    put_text(m, "model", "llama");
    put_text(m, "pre", "default");
    put_tokens(m, b->unk, true);
    put_llama_scores(m);
    put(m, "add_space_prefix", value_of_bool(becomes(m, STR("a"), SPACE_MARK)));
    return NULL;
}

static void put_charsmap(maker *m)
{
    norm_step charsmap_step = norm_step_charsmap((charsmap){0});
    for (size_t i = 0; i < m->t->norms.n; i++) {
        const charsmap *map = &m->t->norms.at[i].map;
        uint32_t bytes = (uint32_t)(map->n_unit * 4);
        if (m->t->norms.at[i].apply != charsmap_step.apply || !map->n_unit)
            continue;
        unsigned char *blob = arena_alloc(m->a, 4 + bytes + map->texts.n);
        for (int k = 0; k < 4; k++)
            blob[k] = (unsigned char)(bytes >> (8 * k));
        memcpy(blob + 4, map->units, bytes);
        memcpy(blob + 4 + bytes, map->texts.p, map->texts.n);
        put(m, "precompiled_charsmap", value_of_array(VT_U8, blob, 4 + bytes + map->texts.n));
        return;
    }
}

static const char *put_t5(maker *m)
{
    const unigram *u = &m->t->unigram;
    if (u->byte_fallback)
        return "its Unigram has bytes for characters without token";
    float *scores = ARENA_ARRAY(m->a, float, m->n);
    for (size_t id = 0; id < u->scores.n && id < m->n; id++)
        scores[id] = (float)u->scores.at[id];
    put_text(m, "model", "t5");
    put_text(m, "pre", "default");
    put_tokens(m, u->unk, false);
    put(m, "scores", value_of_array(VT_F32, scores, m->n));
    put(m, "add_space_prefix", value_of_bool(becomes(m, STR("a"), SPACE_MARK)));
    put(m, "remove_extra_whitespaces",
        value_of_bool(!becomes(m, STR("  a"), SPACE_MARK SPACE_MARK)));
    put_charsmap(m);
    return NULL;
}

static bool is_byte_level(const tok *t)
{
    for (size_t i = 0; i < t->pres.n; i++)
        if (t->pres.at[i].maps_bytes)
            return true;
    return false;
}

const char *tok_gguf_keys(tok *t, arena *a, int64_t vocab, tok_keys *keys)
{
    size_t n = t->vocab.tokens.n;
    if (vocab < 0 || vocab > VOCAB_ID_MAX || (vocab > 0 && (size_t)vocab < n))
        return arena_printf(a, "it has %zu tokens, but the model has %lld", n, (long long)vocab).p;
    maker m = {t, a, vocab ? (size_t)vocab : n, keys};
    if (t->model == TOK_UNIGRAM)
        return put_t5(&m);
    if (t->model == TOK_WORDPIECE)
        return "it is a WordPiece";
    if (t->bpe.prefix.n || t->bpe.suffix.n)
        return "its BPE marks where words continue or end";
    return is_byte_level(t) ? put_gpt2(&m) : put_llama(&m);
}
