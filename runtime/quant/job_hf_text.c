/* job_hf_text.c - the tokenizer of a Hugging Face folder among the keys of a GGUF file.
 *
 * tokenizer.json goes in as it is, under the key that the format has for it (github.com/ggml-org/ggml, docs/gguf.md:
 * tokenizer.huggingface.json): nothing of it is lost, and Weft reads that. For all other programs the usual keys are
 * made of it, where they can say the same. */
#include "runtime/quant/job_impl.h"

enum { TOKENIZER_BYTES_MAX = 256 << 20 };

static void put_id(quant_job *j, const char *key, int32_t id)
{
    if (id != TOK_NONE)
        job_put_key(j, str_of(key), value_of_int(VT_U32, id));
}

/* GGUF has three places for tokens that end a text: eos, eot, eom. */
static void put_ends(quant_job *j, const tok *t, int32_t eos)
{
    static const char *const keys[] = {"tokenizer.ggml.eot_token_id",
                                       "tokenizer.ggml.eom_token_id"};
    size_t n, used = 0;
    const int32_t *ends = tok_ends(t, &n);
    for (size_t i = 0; i < n && used < 2; i++)
        if (ends[i] != eos)
            put_id(j, keys[used++], ends[i]);
}

/* BOS and EOS, and whether they are put around a text: as the template does, which may know more than the names. */
static weft_status put_around(weft_diag *dg, quant_job *j, tok *t)
{
    tok_ids ids = {0};
    size_t n_end;
    const int32_t *ends = tok_ends(t, &n_end);
    int32_t bos = tok_bos(t), eos = tok_eos(t);
    weft_status st = tok_encode(dg, t, STR(""), TOK_ENCODE_DEFAULT, &ids);
    int32_t first = ids.n > 0 ? ids.at[0] : TOK_NONE,
            last = ids.n > 0 ? ids.at[ids.n - 1] : TOK_NONE;
    if (eos == TOK_NONE)
        eos = ids.n > 1 ? last : n_end > 0 ? ends[0] : TOK_NONE;
    if (bos == TOK_NONE && first != eos)
        bos = first;
    bool adds_bos = first != TOK_NONE && first == bos;
    bool adds_eos = last != TOK_NONE && last == eos && ids.n > (size_t)adds_bos;
    put_id(j, "tokenizer.ggml.bos_token_id", bos);
    put_id(j, "tokenizer.ggml.eos_token_id", eos);
    job_put_key(j, STR("tokenizer.ggml.add_bos_token"), value_of_bool(adds_bos));
    job_put_key(j, STR("tokenizer.ggml.add_eos_token"), value_of_bool(adds_eos));
    put_ends(j, t, eos);
    VEC_FREE(&ids);
    return st;
}

static int64_t model_tokens(const quant_job *j)
{
    for (size_t i = 0; i < j->tensors.n; i++)
        if (str_eqz(j->tensors.at[i].name, "token_embd.weight"))
            return j->tensors.at[i].shape[0];
    return 0;
}

/* The keys that other programs read, or a warning that they cannot. */
static void put_usual_keys(weft_diag *dg, quant_job *j, tok *t)
{
    tok_keys keys = {0};
    const char *why = tok_gguf_keys(t, j->a, model_tokens(j), &keys);
    if (!why && job_text_same(dg, j, t, &keys, &why))
        for (size_t i = 0; i < keys.n; i++)
            job_put_key(j, keys.at[i].name, keys.at[i].v);
    if (why) {
        weft_fail(dg, W1211, WEFT_NOWHERE,
                  "%s: the usual keys of GGUF cannot hold its tokenizer: %s",
                  model_file_path(j->mf), why);
        weft_note(dg, "it is written as tokenizer.huggingface.json, which Weft reads");
    }
    VEC_FREE(&keys);
}

static weft_status put_all(weft_diag *dg, quant_job *j, tok *t)
{
    WEFT_TRY(put_around(dg, j, t));
    put_id(j, "tokenizer.ggml.padding_token_id", tok_find(t, tok_named_text(t, "pad_token")));
    put_id(j, "tokenizer.ggml.unknown_token_id", tok_find(t, tok_named_text(t, "unk_token")));
    if (tok_chat_template(t).n > 0)
        job_put_key(j, STR("tokenizer.chat_template"),
                    value_of_str(arena_str(j->a, tok_chat_template(t))));
    put_usual_keys(dg, j, t);
    return WEFT_OK;
}

weft_status job_put_tokenizer(weft_diag *dg, quant_job *j)
{
    const char *path;
    source *src;
    tok *t;
    if (!model_file_folder(j->mf) || !model_file_has_sibling(j->mf, "tokenizer.json")) {
        weft_fail(dg, W1211, WEFT_NOWHERE,
                  "%s: there is no tokenizer.json, so the file gets no tokenizer",
                  model_file_path(j->mf));
        return WEFT_OK;
    }
    WEFT_TRY(model_file_sibling(dg, j->mf, j->a, "tokenizer.json", &path));
    WEFT_TRY(source_open(dg, j->a, path, TOKENIZER_BYTES_MAX, &src));
    WEFT_TRY(tok_open_model(dg, j->mf, &t));
    weft_status st = put_all(dg, j, t);
    tok_close(t);
    job_put_key(j, STR("tokenizer.huggingface.json"), value_of_str(src->text));
    return st;
}
