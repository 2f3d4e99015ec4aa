/* tok_open.c - tokenizers from files: a tokenizer.json, a folder, a GGUF file. */
#include "runtime/text/tok_impl.h"
#include <sys/stat.h>

weft_status tok_open_text(weft_diag *dg, const char *name, str json, tok **out_tok)
{
    tok *t = tok_create();
    return tok_hand_over(dg, tok_load_json(dg, t, name, json), t, out_tok);
}

weft_status tok_open_model(weft_diag *dg, const model_file *mf, tok **out_tok)
{
    const char *path;
    tok *t = tok_create();
    weft_status status;
    if (model_file_format(mf) == MODEL_GGUF)
        status = tok_load_gguf(dg, t, mf);
    else if ((status = model_file_sibling(dg, mf, t->home, "tokenizer.json", &path)) == WEFT_OK)
        status = tok_load_folder(dg, t, path, mf);
    return tok_hand_over(dg, status, t, out_tok);
}

static bool is_folder(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

weft_status tok_open(weft_diag *dg, const char *path, tok **out_tok)
{
    bool folder = is_folder(path);
    if (folder || str_ends(str_of(path), STR(".json"))) {
        tok *t = tok_create();
        if (folder)
            path = arena_printf(t->home, "%s/tokenizer.json", path).p;
        return tok_hand_over(dg, tok_load_folder(dg, t, path, NULL), t, out_tok);
    }
    model_file *mf;
    WEFT_TRY(model_file_open(dg, path, NULL, &mf));
    weft_status status = tok_open_model(dg, mf, out_tok);
    model_file_close(mf);
    return status;
}
