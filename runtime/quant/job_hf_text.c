/* job_hf_text.c - the tokenizer of a Hugging Face folder among the keys of a GGUF file.
 *
 * tokenizer.json goes in as it is, under the key that the format has for it (github.com/ggml-org/ggml, docs/gguf.md:
 * tokenizer.huggingface.json): nothing of it is lost. What stands beside it gets the usual keys. */
#include "runtime/quant/job_impl.h"

#include "runtime/base/file.h"
#include "runtime/text/tok.h"
#include <unistd.h>

enum { TOKENIZER_BYTES_MAX = 256 << 20 };

static weft_status read_text(weft_diag *dg, arena *a, const char *path, str *out_text)
{
    int fd;
    uint64_t bytes;
    size_t n = 0;
    WEFT_TRY(file_open(dg, path, &fd, &bytes));
    weft_status st = WEFT_OK;
    char *p = NULL;
    if (bytes > TOKENIZER_BYTES_MAX) {
        st = weft_fail(dg, W1101, WEFT_NOWHERE, "%s is larger than %d MiB", path,
                       TOKENIZER_BYTES_MAX >> 20);
    } else {
        p = arena_alloc(a, (size_t)bytes + 1);
        st = file_read(dg, fd, path, p, (size_t)bytes, &n);
    }
    close(fd);
    *out_text = (str){p, n};
    return st;
}

static void put_id(quant_job *j, const char *key, int32_t id)
{
    if (id != TOK_NONE)
        job_put_key(j, str_of(key), value_of_int(VT_U32, id));
}

/* GGUF has three places for tokens that end a text: eos, eot, eom. */
static void put_ends(quant_job *j, const tok *t)
{
    static const char *const keys[] = {"tokenizer.ggml.eot_token_id",
                                       "tokenizer.ggml.eom_token_id"};
    size_t n, used = 0;
    const int32_t *ends = tok_ends(t, &n);
    for (size_t i = 0; i < n && used < 2; i++)
        if (ends[i] != tok_eos(t))
            put_id(j, keys[used++], ends[i]);
}

weft_status job_put_tokenizer(weft_diag *dg, quant_job *j)
{
    const char *path;
    str text;
    tok *t;
    if (!model_file_folder(j->mf) || !model_file_has_sibling(j->mf, "tokenizer.json"))
        return WEFT_OK;
    WEFT_TRY(model_file_sibling(dg, j->mf, j->a, "tokenizer.json", &path));
    WEFT_TRY(read_text(dg, j->a, path, &text));
    WEFT_TRY(tok_open_model(dg, j->mf, &t));
    job_put_key(j, STR("tokenizer.huggingface.json"), value_of_str(text));
    put_id(j, "tokenizer.ggml.bos_token_id", tok_bos(t));
    put_id(j, "tokenizer.ggml.eos_token_id", tok_eos(t));
    put_id(j, "tokenizer.ggml.padding_token_id", tok_find(t, tok_named_text(t, "pad_token")));
    put_id(j, "tokenizer.ggml.unknown_token_id", tok_find(t, tok_named_text(t, "unk_token")));
    put_ends(j, t);
    job_put_key(j, STR("tokenizer.ggml.add_bos_token"), value_of_bool(tok_adds_bos(t)));
    if (tok_chat_template(t).n > 0)
        job_put_key(j, STR("tokenizer.chat_template"),
                    value_of_str(arena_str(j->a, tok_chat_template(t))));
    tok_close(t);
    return WEFT_OK;
}
