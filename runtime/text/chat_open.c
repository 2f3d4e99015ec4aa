/* chat_open.c - finding a model's chat template, and the special tokens it may name. */
#include "runtime/formats/json_read.h"
#include "runtime/text/chat_impl.h"

/* ---- the special tokens a template may name ---- */

/* clang-format off */
static const struct { const char *variable, *gguf; } special_rows[] = {
    {"bos_token",  "/tokenizer.ggml.bos_token_id"},
    {"eos_token",  "/tokenizer.ggml.eos_token_id"},
    {"unk_token",  "/tokenizer.ggml.unknown_token_id"},
    {"sep_token",  "/tokenizer.ggml.seperator_token_id"}, /* as GGUF spells it */
    {"pad_token",  "/tokenizer.ggml.padding_token_id"},
    {"cls_token",  "/tokenizer.ggml.cls_token_id"},
    {"mask_token", "/tokenizer.ggml.mask_token_id"},
};
/* clang-format on */

static void gguf_specials(chat_template *ct, const model_file *mf)
{
    const value *tokens = model_file_key(mf, STR("/tokenizer.ggml.tokens"));
    for (size_t i = 0; i < sizeof special_rows / sizeof *special_rows; i++) {
        int64_t id;
        str text;
        if (!value_int(model_file_key(mf, str_of(special_rows[i].gguf)), &id) || id < 0 ||
            (uint64_t)id >= value_count(tokens))
            continue;
        value token = value_at(tokens, (size_t)id);
        if (value_str(&token, &text))
            chat_add_special(ct, str_of(special_rows[i].variable), text);
    }
}

/* In tokenizer_config.json a token is a string, or an object with its text as `content`. */
static void folder_specials(chat_template *ct, const value *config)
{
    for (size_t i = 0; i < sizeof special_rows / sizeof *special_rows; i++) {
        const value *v = value_get(config, str_of(special_rows[i].variable));
        str text;
        if (value_str(v, &text) ||
            (value_kind_of(v) == VALUE_OBJECT && value_str(value_get(v, STR("content")), &text)))
            chat_add_special(ct, str_of(special_rows[i].variable), text);
    }
}

/* ---- the model's own template ---- */

static weft_status gguf_template(weft_diag *dg, chat_template *ct, const model_file *mf)
{
    str text;
    ct->origin = arena_printf(ct->home, "%s: tokenizer.chat_template", model_file_path(mf)).p;
    if (value_str(model_file_key(mf, STR("/tokenizer.chat_template")), &text))
        WEFT_TRY(chat_compile(dg, ct, ct->origin, text, false));
    if (value_str(model_file_key(mf, STR("/tokenizer.chat_template.tool_use")), &text))
        WEFT_TRY(chat_compile(dg, ct, ct->origin, text, true));
    return WEFT_OK;
}

/* `chat_template` of a JSON file: a string, or a list of {name, template}. */
static weft_status config_template(weft_diag *dg, chat_template *ct, const char *path,
                                   const value *config)
{
    const value *v = value_get(config, STR("chat_template"));
    const char *name = arena_printf(ct->home, "%s: chat_template", path).p;
    str text, kind;
    if (value_str(v, &text)) {
        ct->origin = name;
        return chat_compile(dg, ct, name, text, false);
    }
    for (size_t i = 0; value_kind_of(v) == VALUE_ARRAY && i < value_count(v); i++) {
        value one = value_at(v, i);
        if (value_kind_of(&one) != VALUE_OBJECT ||
            !value_str(value_get(&one, STR("name")), &kind) ||
            !value_str(value_get(&one, STR("template")), &text))
            continue;
        if (str_eqz(kind, "default"))
            WEFT_TRY(chat_compile(dg, ct, name, text, false));
        else if (str_eqz(kind, "tool_use"))
            WEFT_TRY(chat_compile(dg, ct, name, text, true));
        ct->origin = name;
    }
    return WEFT_OK;
}

static weft_status folder_config(weft_diag *dg, chat_template *ct, const model_file *mf,
                                 const char *file, const char **out_path, value *out_v)
{
    WEFT_TRY(model_file_sibling(dg, mf, ct->home, file, out_path));
    return json_read_file(dg, ct->home, *out_path, JSON_LIMITS_CONFIG, out_v);
}

static weft_status folder_template(weft_diag *dg, chat_template *ct, const model_file *mf)
{
    const char *path;
    value config;
    if (model_file_has_sibling(mf, "chat_template.jinja")) {
        WEFT_TRY(model_file_sibling(dg, mf, ct->home, "chat_template.jinja", &path));
        ct->origin = path;
        return chat_compile_file(dg, ct, path, false);
    }
    static const char *const files[] = {"tokenizer_config.json", "chat_template.json"};
    for (size_t i = 0; i < 2 && !ct->usual && !ct->with_tools; i++) {
        if (!model_file_has_sibling(mf, files[i]))
            continue;
        WEFT_TRY(folder_config(dg, ct, mf, files[i], &path, &config));
        WEFT_TRY(config_template(dg, ct, path, &config));
    }
    return WEFT_OK;
}

static weft_status model_specials(weft_diag *dg, chat_template *ct, const model_file *mf)
{
    const char *path;
    value config;
    if (model_file_format(mf) == MODEL_GGUF) {
        gguf_specials(ct, mf);
    } else if (model_file_has_sibling(mf, "tokenizer_config.json")) {
        WEFT_TRY(folder_config(dg, ct, mf, "tokenizer_config.json", &path, &config));
        folder_specials(ct, &config);
    }
    return WEFT_OK;
}

static weft_status model_template(weft_diag *dg, chat_template *ct, const model_file *mf)
{
    if (model_file_format(mf) == MODEL_GGUF)
        WEFT_TRY(gguf_template(dg, ct, mf));
    else
        WEFT_TRY(folder_template(dg, ct, mf));
    if (!ct->usual) {
        ct->usual = ct->with_tools;
        ct->usual_text = ct->tools_text;
    }
    if (!ct->usual)
        return weft_fail(dg, W1305, WEFT_NOWHERE, "%s has no chat template", model_file_path(mf));
    return WEFT_OK;
}

/* ---- opening ---- */

static weft_status open_any(weft_diag *dg, const model_file *mf, const char *choice, bool file_only,
                            chat_template **out_ct)
{
    chat_template *ct = chat_create();
    weft_status st = mf ? model_specials(dg, ct, mf) : WEFT_OK;
    if (st == WEFT_OK && choice)
        st = chat_choose(dg, ct, choice, file_only);
    else if (st == WEFT_OK && mf)
        st = model_template(dg, ct, mf);
    else if (st == WEFT_OK)
        st = weft_fail(dg, W1305, WEFT_NOWHERE, "neither a model nor a template is given");
    if (st != WEFT_OK) {
        chat_close(ct);
        return st;
    }
    *out_ct = ct;
    return WEFT_OK;
}

weft_status chat_open(weft_diag *dg, const model_file *mf, const char *choice,
                      chat_template **out_ct)
{
    return open_any(dg, mf, choice, false, out_ct);
}

weft_status chat_open_file(weft_diag *dg, const model_file *mf, const char *path,
                           chat_template **out_ct)
{
    return open_any(dg, mf, path, true, out_ct);
}
