/* tok_json.c - loads a tokenizer.json: its model and its added tokens; the steps around the model
 * load themselves. */
#include "runtime/formats/json_read.h"
#include "runtime/text/tok_impl.h"
#include "runtime/text/tok_post.h"

/* Gemma 3 has 262 000 tokens and 515 000 merges, each of three values. */
#define LIMITS ((json_limits){.bytes_max = 256 << 20, .values_max = 6 << 20, .depth_max = 64})

static weft_status check_length(weft_diag *dg, const char *what, str token, size_t n_max)
{
    if (token.n <= n_max)
        return WEFT_OK;
    return weft_fail(dg, W1209, WEFT_NOWHERE, "%s: a token has %zu bytes, at most %zu are allowed",
                     what, token.n, n_max);
}

static weft_status load_vocab_object(weft_diag *dg, tok *t, const char *what, const value *vocab)
{
    if (value_kind_of(vocab) != VALUE_OBJECT)
        return weft_fail(dg, W1203, WEFT_NOWHERE, "%s: 'vocab' is missing or not an object", what);
    for (size_t i = 0; i < vocab->as.object.n; i++) {
        const value_member *m = &vocab->as.object.members[i];
        int64_t id;
        if (!value_int(&m->v, &id) || id < 0 || id > VOCAB_ID_MAX)
            return weft_fail(dg, W1203, WEFT_NOWHERE,
                             "%s: the id of token '" STR_FMT "' is not a number from 0 to %d", what,
                             STR_ARG(m->name), VOCAB_ID_MAX);
        WEFT_TRY(check_length(dg, what, m->name, VOCAB_TEXT_MAX));
        if (vocab_at(&t->vocab, (int32_t)id) && t->vocab.tokens.at[id].text.p)
            return weft_fail(dg, W1203, WEFT_NOWHERE,
                             "%s: tokens '" STR_FMT "' and '" STR_FMT "' have the same id %d", what,
                             STR_ARG(t->vocab.tokens.at[id].text), STR_ARG(m->name), (int)id);
        vocab_put(&t->vocab, t->home, (int32_t)id, m->name, 0);
    }
    return WEFT_OK;
}

/* The token called `name`, if there is such a member; VOCAB_NONE where it is null. */
static weft_status find_named(weft_diag *dg, tok *t, const char *what, const value *v,
                              const char *name, int32_t *out_id)
{
    str text;
    WEFT_TRY(field_str_or_none(dg, what, v, name, &text));
    *out_id = text.n ? vocab_find(&t->vocab, text) : VOCAB_NONE;
    if (text.n && *out_id == VOCAB_NONE)
        return weft_fail(dg, W1203, WEFT_NOWHERE, "%s: %s '" STR_FMT "' is not in the vocabulary",
                         what, name, STR_ARG(text));
    return WEFT_OK;
}

static bool split_merge(const value *v, str *out_left, str *out_right)
{
    str both;
    if (value_str(v, &both)) {
        const char *space = memchr(both.p, ' ', both.n);
        if (!space || memchr(space + 1, ' ', (size_t)(both.p + both.n - space - 1)))
            return false;
        *out_left = (str){both.p, (size_t)(space - both.p)};
        *out_right = (str){space + 1, (size_t)(both.p + both.n - space - 1)};
        return true;
    }
    if (value_kind_of(v) != VALUE_ARRAY || value_count(v) != 2)
        return false;
    value left = value_at(v, 0), right = value_at(v, 1);
    return value_str(&left, out_left) && value_str(&right, out_right);
}

weft_status tok_add_merge(weft_diag *dg, tok *t, size_t rank, str left, str right, strbuf *text)
{
    int32_t a = vocab_find(&t->vocab, left), b = vocab_find(&t->vocab, right);
    size_t skip = t->bpe.prefix.n && str_starts(right, t->bpe.prefix) ? t->bpe.prefix.n : 0;
    strbuf_reset(text);
    strbuf_put(text, left);
    strbuf_put(text, (str){right.p + skip, right.n - skip});
    int32_t both = vocab_find(&t->vocab, strbuf_view(text));
    if (a == VOCAB_NONE || b == VOCAB_NONE || both == VOCAB_NONE) {
        str missing = a == VOCAB_NONE ? left : b == VOCAB_NONE ? right : strbuf_view(text);
        return weft_fail(dg, W1206, WEFT_NOWHERE,
                         "merge %zu names '" STR_FMT "', which is not in the vocabulary", rank,
                         STR_ARG(missing));
    }
    bpe_add_pair(&t->bpe, a, b, (uint32_t)rank, both);
    return WEFT_OK;
}

static weft_status load_merges(weft_diag *dg, tok *t, const value *list)
{
    strbuf text = {0};
    weft_status status = WEFT_OK;
    /* A merge that stands twice counts where it stands last, and the first one added stays. */
    for (size_t i = value_count(list); status == WEFT_OK && i-- > 0;) {
        value v = value_at(list, i);
        str left, right;
        if (split_merge(&v, &left, &right))
            status = tok_add_merge(dg, t, i, left, right, &text);
        else
            status =
                weft_fail(dg, W1203, WEFT_NOWHERE, "BPE: merge %zu is not a pair of tokens", i);
    }
    strbuf_free(&text);
    return status;
}

static weft_status load_bpe(weft_diag *dg, tok *t, const value *v)
{
    const value *merges;
    bpe *b = &t->bpe;
    double dropout;
    str prefix, suffix;
    t->model = TOK_BPE;
    if (value_float(value_get(v, STR("dropout")), &dropout) && dropout != 0)
        return weft_fail(dg, W1202, WEFT_NOWHERE,
                         "BPE: dropout %g makes ids random; it is for "
                         "training only",
                         dropout);
    WEFT_TRY(load_vocab_object(dg, t, "BPE", value_get(v, STR("vocab"))));
    WEFT_TRY(
        field_text_or_none(dg, "BPE", v, "continuing_subword_prefix", FIELDS_AFFIX_MAX, &prefix));
    WEFT_TRY(field_text_or_none(dg, "BPE", v, "end_of_word_suffix", FIELDS_AFFIX_MAX, &suffix));
    b->prefix = arena_str(t->home, prefix);
    b->suffix = arena_str(t->home, suffix);
    WEFT_TRY(field_bool(dg, "BPE", v, "fuse_unk", &b->fuse_unk));
    WEFT_TRY(field_bool(dg, "BPE", v, "byte_fallback", &b->byte_fallback));
    WEFT_TRY(field_bool(dg, "BPE", v, "ignore_merges", &b->ignore_merges));
    WEFT_TRY(find_named(dg, t, "BPE", v, "unk_token", &b->unk));
    vocab_bytes(&t->vocab, b->fallback);
    WEFT_TRY(field_list(dg, "BPE", v, "merges", &merges));
    return load_merges(dg, t, merges);
}

static weft_status load_unigram(weft_diag *dg, tok *t, const value *v)
{
    const value *vocab;
    int64_t unk = VOCAB_NONE;
    t->model = TOK_UNIGRAM;
    WEFT_TRY(field_list(dg, "Unigram", v, "vocab", &vocab));
    for (size_t i = 0; i < value_count(vocab); i++) {
        value row = value_at(vocab, i), text = {0}, score = {0};
        str s;
        double x;
        if (value_kind_of(&row) == VALUE_ARRAY && value_count(&row) == 2) {
            text = value_at(&row, 0);
            score = value_at(&row, 1);
        }
        if (i > VOCAB_ID_MAX || !value_str(&text, &s) || !value_float(&score, &x) || x != x)
            return weft_fail(dg, W1203, WEFT_NOWHERE,
                             "Unigram: token %zu is not a text and a score", i);
        WEFT_TRY(check_length(dg, "Unigram", s, VOCAB_SOUGHT_MAX));
        vocab_put(&t->vocab, t->home, (int32_t)i, s, 0);
        VEC_PUSH(&t->unigram.scores, x);
    }
    WEFT_TRY(field_int(dg, "Unigram", v, "unk_id", 0, (int64_t)t->vocab.tokens.n - 1, &unk));
    WEFT_TRY(field_bool(dg, "Unigram", v, "byte_fallback", &t->unigram.byte_fallback));
    t->unigram.unk = (int32_t)unk;
    unigram_finish(&t->unigram, &t->vocab, 0);
    return WEFT_OK;
}

static weft_status load_wordpiece(weft_diag *dg, tok *t, const value *v)
{
    enum { WORD_CHARS = 100, WORD_CHARS_MAX = 1 << 16 };
    int64_t chars = WORD_CHARS;
    str prefix = STR("##");
    t->model = TOK_WORDPIECE;
    WEFT_TRY(load_vocab_object(dg, t, "WordPiece", value_get(v, STR("vocab"))));
    if (value_get(v, STR("continuing_subword_prefix")))
        WEFT_TRY(
            field_text(dg, "WordPiece", v, "continuing_subword_prefix", FIELDS_AFFIX_MAX, &prefix));
    WEFT_TRY(field_int(dg, "WordPiece", v, "max_input_chars_per_word", 0, WORD_CHARS_MAX, &chars));
    WEFT_TRY(find_named(dg, t, "WordPiece", v, "unk_token", &t->wordpiece.unk));
    t->wordpiece.prefix = arena_str(t->home, prefix);
    t->wordpiece.chars_max = (size_t)chars;
    return WEFT_OK;
}

/* clang-format off */
static const struct {
    const char *name;
    weft_status (*load)(weft_diag *dg, tok *t, const value *v);
} models[] = {
    {"BPE",       load_bpe},
    {"Unigram",   load_unigram},
    {"WordPiece", load_wordpiece},
};
/* clang-format on */

static weft_status load_model(weft_diag *dg, tok *t, const value *v)
{
    str type;
    if (value_kind_of(v) != VALUE_OBJECT)
        return weft_fail(dg, W1203, WEFT_NOWHERE, "'model' is missing or not an object");
    if (!value_get(v, STR("type"))) /* older files leave it to the members */
        type = value_get(v, STR("merges"))                                ? STR("BPE")
               : value_kind_of(value_get(v, STR("vocab"))) == VALUE_ARRAY ? STR("Unigram")
                                                                          : STR("WordPiece");
    else
        WEFT_TRY(field_str(dg, "model", v, "type", &type));
    for (size_t k = 0; k < sizeof models / sizeof *models; k++)
        if (str_eqz(type, models[k].name))
            return models[k].load(dg, t, v);
    return field_unknown(dg, "model", type);
}

/* An added token takes the id it has in the vocabulary, else the one it asks for, else a new one. */
static weft_status place_added(weft_diag *dg, tok *t, str text, int64_t wanted, int32_t *out_id)
{
    *out_id = vocab_find(&t->vocab, text);
    if (*out_id != VOCAB_NONE)
        return WEFT_OK;
    const vocab_token *there = wanted >= 0 ? vocab_at(&t->vocab, (int32_t)wanted) : NULL;
    if (wanted < 0 || (there && there->text.p))
        wanted = (int64_t)t->vocab.tokens.n;
    if (wanted > VOCAB_ID_MAX)
        return weft_fail(dg, W1209, WEFT_NOWHERE, "more than %d tokens", VOCAB_ID_MAX);
    *out_id = (int32_t)wanted;
    vocab_put(&t->vocab, t->home, *out_id, text, 0);
    return WEFT_OK;
}

/* *io_room: bytes that the normal forms of these tokens may still have. */
static weft_status load_added_token(weft_diag *dg, tok *t, const value *v, size_t *io_room)
{
    static const char what[] = "added_tokens";
    static const struct {
        const char *name;
        uint32_t flag;
    } flags[] = {{"special", ADDED_SPECIAL},
                 {"lstrip", ADDED_LSTRIP},
                 {"rstrip", ADDED_RSTRIP},
                 {"single_word", ADDED_SINGLE_WORD}};
    str text;
    int64_t wanted = -1;
    added_token token = {0};
    WEFT_TRY(field_text(dg, what, v, "content", VOCAB_SOUGHT_MAX, &text));
    WEFT_TRY(field_int(dg, what, v, "id", 0, VOCAB_ID_MAX, &wanted));
    for (size_t k = 0; k < sizeof flags / sizeof *flags; k++) {
        bool on = false;
        WEFT_TRY(field_bool(dg, what, v, flags[k].name, &on));
        if (on)
            token.flags |= flags[k].flag;
    }
    bool normalized = !(token.flags & ADDED_SPECIAL);
    WEFT_TRY(field_bool(dg, what, v, "normalized", &normalized));
    if (!text.n)
        return WEFT_OK;
    WEFT_TRY(place_added(dg, t, text, wanted, &token.id));
    t->vocab.tokens.at[token.id].flags |=
        TOKEN_ADDED | (token.flags & ADDED_SPECIAL ? TOKEN_SPECIAL : 0);
    if (!normalized) {
        added_put(&t->added, text, token);
        return WEFT_OK;
    }
    size_t n_max = *io_room < VOCAB_SOUGHT_MAX ? *io_room : VOCAB_SOUGHT_MAX;
    WEFT_TRY(norm_run(dg, &t->norms, text, n_max, &t->norm_text, &t->norm_spare, &text));
    *io_room -= text.n < n_max ? text.n : n_max;
    t->vocab.tokens.at[token.id].shown = arena_str(t->home, text);
    added_put(&t->added_norm, text, token);
    return WEFT_OK;
}

/* A text that stands twice in a Unigram vocabulary is special in both places. */
static void spread_special(tok *t)
{
    for (size_t i = 0; t->model == TOK_UNIGRAM && i < t->vocab.tokens.n; i++) {
        vocab_token *token = &t->vocab.tokens.at[i];
        int32_t id = token->text.n ? vocab_find(&t->vocab, token->text) : VOCAB_NONE;
        if (id != VOCAB_NONE)
            token->flags |= t->vocab.tokens.at[id].flags & TOKEN_SPECIAL;
    }
}

static weft_status load_root(weft_diag *dg, tok *t, const value *root)
{
    const value *added = value_get(root, STR("added_tokens"));
    WEFT_TRY(load_model(dg, t, value_get(root, STR("model"))));
    WEFT_TRY(norm_load(dg, t->home, value_get(root, STR("normalizer")), &t->norms));
    WEFT_TRY(pre_load(dg, t->home, value_get(root, STR("pre_tokenizer")), &t->pres));
    WEFT_TRY(dec_load(dg, t->home, value_get(root, STR("decoder")), &t->decs));
    if (value_kind_of(added) != VALUE_NULL && value_kind_of(added) != VALUE_ARRAY)
        return weft_fail(dg, W1203, WEFT_NOWHERE, "'added_tokens' is not a list");
    size_t room = VOCAB_TEXTS_MAX;
    for (size_t i = 0; i < value_count(added); i++) {
        value v = value_at(added, i);
        WEFT_TRY(load_added_token(dg, t, &v, &room));
    }
    spread_special(t);
    return post_load(dg, t, value_get(root, STR("post_processor")));
}

weft_status tok_load_json(weft_diag *dg, tok *t, const char *name, str text)
{
    arena *a = arena_create();
    value root;
    weft_status status = json_read(dg, a, name, text, LIMITS, &root);
    if (status == WEFT_OK) {
        status = load_root(dg, t, &root);
        if (status != WEFT_OK)
            weft_note(dg, "in %s", name);
    }
    arena_destroy(a);
    return status;
}
