/* tok_gguf.c - loads the tokenizer that a GGUF file has among its keys.
 *
 * The keys are described in github.com/ggml-org/ggml, docs/gguf.md. They name a family and leave the
 * rest to the reader, so this file holds what each family means: tokenizer.ggml.model selects a
 * function below, tokenizer.ggml.pre a row of tok_gguf_pre.def. */
#include "runtime/text/tok_gguf.h"
#include "runtime/text/tok_post.h"
#include "runtime/text/tok_unicode.h"

/* Seconds of looking. A vocabulary of 256 000 common tokens costs 2^24. */
#define PAIR_COST_MAX (UINT64_C(1) << 34)

enum { CHARSMAP_MAX = 64 << 20 };

typedef struct {
    weft_diag *dg;
    tok *t;
    const model_file *mf;
    bool add_bos, add_eos;
    int32_t bos, eos;
    float *scores;      /* by id */
    uint64_t pair_cost; /* of looking for the halves of every text, in bytes */
} loader;

static const value *key(const loader *l, const char *name)
{
    char full[64];
    snprintf(full, sizeof full, "/tokenizer.%s", name);
    return model_file_key(l->mf, str_of(full));
}

static bool flag_of(const loader *l, const char *name, bool initial)
{
    bool x = initial;
    return value_bool(key(l, name), &x) ? x : initial;
}

static int32_t id_of(const loader *l, const char *name, int32_t initial)
{
    int64_t id;
    if (!value_int(key(l, name), &id))
        id = initial;
    return id >= 0 && (size_t)id < l->t->vocab.tokens.n ? (int32_t)id : TOK_NONE;
}

static uint32_t flags_of_type(int64_t type)
{
    switch (type) {
    case TYPE_UNKNOWN:
    case TYPE_CONTROL:
        return TOKEN_SPECIAL | TOKEN_ADDED;
    case TYPE_USER:
        return TOKEN_ADDED;
    case TYPE_UNUSED:
        return TOKEN_UNUSED;
    case TYPE_BYTE:
        return TOKEN_BYTE;
    default:
        return 0;
    }
}

static weft_status load_tokens(loader *l)
{
    const value *tokens = key(l, "ggml.tokens"), *types = key(l, "ggml.token_type"),
                *scores = key(l, "ggml.scores");
    const str *texts = value_strs(tokens);
    size_t n = value_count(tokens), bad;
    if (!texts || n == 0 || n > VOCAB_ID_MAX)
        return weft_fail(l->dg, W1203, WEFT_NOWHERE,
                         "tokenizer.ggml.tokens is not a list of 1 to %d texts", VOCAB_ID_MAX);
    if ((types && value_count(types) != n) || (scores && value_count(scores) != n))
        return weft_fail(l->dg, W1203, WEFT_NOWHERE, "%zu tokens, but %zu types and %zu scores", n,
                         value_count(types), value_count(scores));
    l->scores = ARENA_ARRAY(l->t->home, float, n);
    size_t left = VOCAB_TEXTS_MAX;
    for (size_t i = 0; i < n; i++) {
        if (texts[i].n > left)
            return weft_fail(l->dg, W1209, WEFT_NOWHERE,
                             "token %zu has %zu bytes, which makes more than %d in all tokens", i,
                             texts[i].n, VOCAB_TEXTS_MAX);
        left -= texts[i].n;
        if (texts[i].n > VOCAB_TEXT_MAX)
            return weft_fail(l->dg, W1209, WEFT_NOWHERE,
                             "token %zu has %zu bytes, at most %d are allowed", i, texts[i].n,
                             VOCAB_TEXT_MAX);
        l->pair_cost += (uint64_t)texts[i].n * texts[i].n;
        value type = {0}, score = {0};
        int64_t kind = TYPE_NORMAL;
        double x = 0;
        if (types && (type = value_at(types, i), !value_int(&type, &kind)))
            kind = TYPE_NORMAL;
        if (scores && (score = value_at(scores, i), value_float(&score, &x)))
            l->scores[i] = (float)x;
        if (!uni_check(texts[i], &bad))
            return weft_fail(l->dg, W1203, WEFT_NOWHERE, "token %zu is not UTF-8", i);
        vocab_put(&l->t->vocab, l->t->home, (int32_t)i, texts[i], flags_of_type(kind));
    }
    return WEFT_OK;
}

static bool is_phi3(const loader *l)
{
    enum { NAME_MAX_BYTES = 1024 };
    str name;
    if (!value_str(model_file_key(l->mf, STR("/general.name")), &name) || name.n > NAME_MAX_BYTES)
        return false;
    for (size_t i = 0; i + 4 <= name.n; i++) {
        bool phi = (name.p[i] | 0x20) == 'p' && (name.p[i + 1] | 0x20) == 'h' &&
                   (name.p[i + 2] | 0x20) == 'i';
        size_t at = i + 3 + (name.p[i + 3] == '-');
        if (phi && at < name.n && name.p[at] == '3')
            return true;
    }
    return false;
}

/* Phi-3's special tokens take the white space after them. Nothing in the file says so but its name;
 * these three do not. */
static bool takes_space(str token)
{
    return !str_eqz(token, "<unk>") && !str_eqz(token, "<s>") && !str_eqz(token, "<|endoftext|>");
}

static weft_status put_added(loader *l)
{
    bool phi3 = is_phi3(l);
    for (size_t i = 0; i < l->t->vocab.tokens.n; i++) {
        const vocab_token *token = &l->t->vocab.tokens.at[i];
        if (!(token->flags & TOKEN_ADDED))
            continue;
        added_token added = {.id = (int32_t)i};
        if (token->text.n > VOCAB_SOUGHT_MAX)
            return weft_fail(l->dg, W1209, WEFT_NOWHERE,
                             "added token %zu has %zu bytes, at most %d are allowed", i,
                             token->text.n, VOCAB_SOUGHT_MAX);
        if (token->flags & TOKEN_SPECIAL)
            added.flags |= ADDED_SPECIAL;
        if (phi3 && takes_space(token->text))
            added.flags |= ADDED_RSTRIP;
        added_put(&l->t->added, token->text, added);
    }
    return WEFT_OK;
}

static weft_status load_pre(loader *l)
{
    str name = STR("default");
    tok *t = l->t;
    value_str(key(l, "ggml.pre"), &name);
    const gguf_pre *pre = gguf_pre_named(name);
    if (!pre)
        return field_unknown(l->dg, "tokenizer.ggml.pre", name);
    if (pre->flags & NFC)
        VEC_PUSH(&t->norms, norm_step_form(UNI_NFC));
    t->bpe.ignore_merges = pre->flags & WHOLE;
    l->add_bos = pre->flags & BOS;
    WEFT_TRY(gguf_pre_add(l->dg, pre, &t->pres));
    pre_add_bytes(&t->pres);
    return WEFT_OK;
}

static weft_status load_merges(loader *l)
{
    const value *merges = key(l, "ggml.merges");
    const str *texts = value_strs(merges);
    strbuf text = {0};
    weft_status status = WEFT_OK;
    if (!texts)
        return weft_fail(l->dg, W1203, WEFT_NOWHERE,
                         "tokenizer.ggml.merges is not a list of texts");
    for (size_t i = 0; status == WEFT_OK && i < value_count(merges); i++) {
        str s = texts[i];
        bool fits = s.n > 1 && s.n <= 2 * l->t->vocab.text_max + 1;
        const char *space = fits ? memchr(s.p + 1, ' ', s.n - 1) : NULL;
        if (!space) {
            status = weft_fail(l->dg, W1203, WEFT_NOWHERE,
                               "merge %zu, '" STR_FMT "', is not a pair of tokens", i, STR_ARG(s));
            break;
        }
        str left = {s.p, (size_t)(space - s.p)};
        str right = {space + 1, (size_t)(s.p + s.n - space - 1)};
        status = tok_add_merge(l->dg, l->t, i, left, right, &text);
    }
    strbuf_free(&text);
    return status;
}

static weft_status load_gpt2(loader *l)
{
    l->t->model = TOK_BPE;
    WEFT_TRY(load_pre(l));
    WEFT_TRY(load_merges(l));
    VEC_PUSH(&l->t->decs, ((dec_step){.kind = DEC_BYTE_LEVEL}));
    return WEFT_OK;
}

/* SentencePiece's BPE: merges follow from scores, what has no token becomes bytes. */
static weft_status load_llama(loader *l)
{
    tok *t = l->t;
    bool prefix = flag_of(l, "ggml.add_space_prefix", true);
    if (l->pair_cost > PAIR_COST_MAX)
        return weft_fail(l->dg, W1209, WEFT_NOWHERE,
                         "the longest of %zu tokens has %zu bytes, too many to look for its halves",
                         t->vocab.tokens.n, t->vocab.text_max);
    t->model = TOK_BPE;
    l->add_bos = true;
    l->bos = 1;
    l->eos = 2;
    if (prefix)
        VEC_PUSH(&t->norms, norm_step_prepend(STR(SPACE_MARK)));
    VEC_PUSH(&t->norms, norm_step_replace(STR(" "), STR(SPACE_MARK)));
    t->bpe.byte_fallback = t->bpe.fuse_unk = true;
    t->bpe.unk = id_of(l, "ggml.unknown_token_id", 0);
    vocab_bytes(&t->vocab, t->bpe.fallback);
    bpe_pairs_from_scores(&t->bpe, &t->vocab, l->scores, TOKEN_SPECIAL | TOKEN_BYTE);
    VEC_PUSH(&t->decs, dec_step_replace(STR(SPACE_MARK), STR(" ")));
    VEC_PUSH(&t->decs, ((dec_step){.kind = DEC_BYTE_FALLBACK}));
    VEC_PUSH(&t->decs, ((dec_step){.kind = DEC_FUSE}));
    if (prefix)
        VEC_PUSH(&t->decs, ((dec_step){.kind = DEC_STRIP, .text = STR(" "), .start = 1}));
    return WEFT_OK;
}

static weft_status load_t5(loader *l)
{
    tok *t = l->t;
    const value *blob = key(l, "ggml.precompiled_charsmap");
    bool prefix = flag_of(l, "ggml.add_space_prefix", true);
    bool merge = flag_of(l, "ggml.remove_extra_whitespaces", false);
    t->model = TOK_UNIGRAM;
    l->add_eos = true;
    l->eos = 1;
    if (value_kind_of(blob) == VALUE_ARRAY && value_type_row_of(blob->item)->bytes == 1) {
        charsmap map;
        str bytes = {blob->as.array.data, blob->as.array.n};
        if (bytes.n > CHARSMAP_MAX)
            return weft_fail(l->dg, W1209, WEFT_NOWHERE,
                             "precompiled_charsmap has %zu bytes, the limit is %d", bytes.n,
                             CHARSMAP_MAX);
        WEFT_TRY(charsmap_view(l->dg, arena_str(t->home, bytes), &map));
        VEC_PUSH(&t->norms, norm_step_charsmap(map));
    }
    VEC_PUSH(&t->norms, norm_step_spaces(prefix, false, merge, true));
    for (size_t i = 0; i < t->vocab.tokens.n; i++) {
        if (t->vocab.tokens.at[i].text.n > VOCAB_SOUGHT_MAX)
            return weft_fail(l->dg, W1209, WEFT_NOWHERE,
                             "token %zu of a Unigram has %zu bytes, at most %d are allowed", i,
                             t->vocab.tokens.at[i].text.n, VOCAB_SOUGHT_MAX);
        VEC_PUSH(&t->unigram.scores,
                 t->vocab.tokens.at[i].flags & TOKEN_ADDED ? 0 : (double)l->scores[i]);
    }
    t->unigram.unk = id_of(l, "ggml.unknown_token_id", 2);
    unigram_finish(&t->unigram, &t->vocab, TOKEN_SPECIAL | TOKEN_BYTE);
    VEC_PUSH(&t->decs,
             ((dec_step){.kind = DEC_METASPACE, .text = STR(SPACE_MARK), .prefix = prefix}));
    return WEFT_OK;
}

/* The converter writes ▁word for a word and no sign for what continues one; back to ## for that. */
static void restore_wordpieces(loader *l)
{
    tok_vocab old = l->t->vocab;
    strbuf text = {0};
    l->t->vocab = (tok_vocab){0};
    for (size_t i = 0; i < old.tokens.n; i++) {
        str s = old.tokens.at[i].text;
        bool bracket = s.n && s.p[0] == '[' && s.p[s.n - 1] == ']';
        strbuf_reset(&text);
        if (old.tokens.at[i].flags & TOKEN_ADDED || bracket || !s.n)
            strbuf_put(&text, s);
        else if (str_starts(s, STR(SPACE_MARK)))
            strbuf_put(&text, (str){s.p + 3, s.n - 3});
        else
            strbuf_add(&text, "##" STR_FMT, STR_ARG(s));
        vocab_put(&l->t->vocab, l->t->home, (int32_t)i, strbuf_view(&text), old.tokens.at[i].flags);
    }
    strbuf_free(&text);
    vocab_free(&old);
}

static weft_status load_bert(loader *l)
{
    tok *t = l->t;
    bool lowercase = flag_of(l, "ggml.normalizer.lowercase", true);
    t->model = TOK_WORDPIECE;
    restore_wordpieces(l);
    VEC_PUSH(&t->norms,
             norm_step_bert(flag_of(l, "ggml.normalizer.strip_accents", lowercase), lowercase));
    pre_add_bert(&t->pres);
    t->wordpiece = (wordpiece){.prefix = STR("##"), .chars_max = 100};
    t->wordpiece.unk = id_of(l, "ggml.unknown_token_id", 100);
    VEC_PUSH(&t->decs, ((dec_step){.kind = DEC_WORDPIECE, .text = STR("##"), .cleanup = true}));
    l->add_bos = l->add_eos = true;
    l->bos = id_of(l, "ggml.cls_token_id", 101);
    l->eos = id_of(l, "ggml.seperator_token_id", 102); /* spelled so in the format */
    return WEFT_OK;
}

/* clang-format off */
static const struct {
    const char *name;
    weft_status (*load)(loader *l);
} models[] = {
    {"gpt2",  load_gpt2},
    {"llama", load_llama},
    {"t5",    load_t5},
    {"bert",  load_bert},
};
/* clang-format on */

static void set_names(loader *l)
{
    static const char *const ends[] = {"ggml.eot_token_id", "ggml.eom_token_id"};
    tok *t = l->t;
    str text;
    l->bos = id_of(l, "ggml.bos_token_id", l->bos);
    l->eos = id_of(l, "ggml.eos_token_id", l->eos);
    tok_named_set(t, "bos_token", l->bos);
    tok_named_set(t, "eos_token", l->eos);
    tok_named_set(t, "pad_token", id_of(l, "ggml.padding_token_id", TOK_NONE));
    tok_named_set(t, "unk_token", id_of(l, "ggml.unknown_token_id", TOK_NONE));
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        tok_ends_add(t, id_of(l, ends[i], TOK_NONE));
    if (value_str(key(l, "chat_template"), &text))
        t->chat_template = arena_str(t->home, text);
}

static void set_around(loader *l)
{
    tok *t = l->t;
    if (flag_of(l, "ggml.add_bos_token", l->add_bos) && l->bos != TOK_NONE)
        VEC_PUSH(&t->before, l->bos);
    if (flag_of(l, "ggml.add_eos_token", l->add_eos) && l->eos != TOK_NONE)
        VEC_PUSH(&t->after, l->eos);
}

/* A file that was made from a Hugging Face folder holds its tokenizer.json whole: it says more than the other keys,
 * which stand there for other programs. */
static weft_status load_json(loader *l, str json)
{
    WEFT_TRY(tok_load_json(l->dg, l->t, model_file_path(l->mf), json));
    set_names(l);
    return WEFT_OK;
}

weft_status tok_load_gguf(weft_diag *dg, tok *t, const model_file *mf)
{
    loader l = {.dg = dg, .t = t, .mf = mf, .bos = TOK_NONE, .eos = TOK_NONE};
    str model, json;
    if (value_str(key(&l, "huggingface.json"), &json))
        return load_json(&l, json);
    if (!value_str(key(&l, "ggml.model"), &model))
        return weft_fail(dg, W1201, WEFT_NOWHERE,
                         "%s has no tokenizer: tokenizer.ggml.model is "
                         "missing",
                         model_file_path(mf));
    for (size_t k = 0; k < sizeof models / sizeof *models; k++) {
        if (!str_eqz(model, models[k].name))
            continue;
        WEFT_TRY(load_tokens(&l));
        WEFT_TRY(models[k].load(&l));
        WEFT_TRY(put_added(&l));
        set_names(&l);
        set_around(&l);
        return WEFT_OK;
    }
    return field_unknown(dg, "tokenizer.ggml.model", model);
}
