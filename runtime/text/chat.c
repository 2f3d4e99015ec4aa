/* chat.c - finding a model's chat template, and handing it what transformers would. */
#include "runtime/text/chat.h"

#include "runtime/base/vec.h"
#include "runtime/formats/json_read.h"
#include "runtime/text/chat_builtin.h"
#include "runtime/text/tok_unicode.h"

enum { SPECIALS_MAX = 8 };

struct chat_template {
    arena *home;
    const char *origin;
    const jinja *usual;
    const jinja *with_tools; /* NULL: the usual one does that too */
    jinja_var specials[SPECIALS_MAX];
    size_t n_special;
};

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

static void add_special(chat_template *ct, const char *variable, str text)
{
    value v = value_of_str(arena_str(ct->home, text));
    ct->specials[ct->n_special++] = (jinja_var){str_of(variable), v};
}

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
            add_special(ct, special_rows[i].variable, text);
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
            add_special(ct, special_rows[i].variable, text);
    }
}

/* ---- the model's own template ---- */

static weft_status compile(weft_diag *dg, chat_template *ct, const char *name, str text,
                           const jinja **out)
{
    return jinja_compile(dg, ct->home, name, text, out);
}

static weft_status gguf_template(weft_diag *dg, chat_template *ct, const model_file *mf)
{
    str text;
    ct->origin = arena_printf(ct->home, "%s: tokenizer.chat_template", model_file_path(mf)).p;
    if (value_str(model_file_key(mf, STR("/tokenizer.chat_template")), &text))
        WEFT_TRY(compile(dg, ct, ct->origin, text, &ct->usual));
    if (value_str(model_file_key(mf, STR("/tokenizer.chat_template.tool_use")), &text))
        WEFT_TRY(compile(dg, ct, ct->origin, text, &ct->with_tools));
    return WEFT_OK;
}

static weft_status compile_file(weft_diag *dg, chat_template *ct, const char *path,
                                const jinja **out)
{
    source *src;
    WEFT_TRY(source_open(dg, ct->home, path, JINJA_SOURCE_MAX, &src));
    return compile(dg, ct, src->name, src->text, out);
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
        return compile(dg, ct, name, text, &ct->usual);
    }
    for (size_t i = 0; value_kind_of(v) == VALUE_ARRAY && i < value_count(v); i++) {
        value one = value_at(v, i);
        if (value_kind_of(&one) != VALUE_OBJECT ||
            !value_str(value_get(&one, STR("name")), &kind) ||
            !value_str(value_get(&one, STR("template")), &text))
            continue;
        if (str_eqz(kind, "default"))
            WEFT_TRY(compile(dg, ct, name, text, &ct->usual));
        else if (str_eqz(kind, "tool_use"))
            WEFT_TRY(compile(dg, ct, name, text, &ct->with_tools));
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
        return compile_file(dg, ct, path, &ct->usual);
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
    if (!ct->usual)
        ct->usual = ct->with_tools;
    if (!ct->usual)
        return weft_fail(dg, W1305, WEFT_NOWHERE, "%s has no chat template", model_file_path(mf));
    return WEFT_OK;
}

/* ---- opening ---- */

static weft_status chosen_template(weft_diag *dg, chat_template *ct, const char *choice,
                                   bool file_only)
{
    const char *text = file_only ? NULL : chat_builtin_find(choice);
    if (text) {
        ct->origin = arena_printf(ct->home, "%s (built in)", choice).p;
        return compile(dg, ct, ct->origin, str_of(text), &ct->usual);
    }
    ct->origin = arena_str(ct->home, str_of(choice)).p;
    weft_status st = compile_file(dg, ct, choice, &ct->usual);
    if (st == WEFT_ERR_FILE && !file_only && !strchr(choice, '/')) {
        strbuf names = {0};
        for (size_t i = 0; i < chat_builtin_count(); i++)
            strbuf_add(&names, "%s%s", i ? ", " : "", chat_builtin_name(i));
        weft_note(dg, "the built-in templates are " STR_FMT, STR_ARG(names));
        strbuf_free(&names);
    }
    return st;
}

static weft_status open_any(weft_diag *dg, const model_file *mf, const char *choice, bool file_only,
                            chat_template **out_ct)
{
    arena *home = arena_create();
    chat_template *ct = ARENA_NEW(home, chat_template);
    ct->home = home;
    weft_status st = mf ? model_specials(dg, ct, mf) : WEFT_OK;
    if (st == WEFT_OK && choice)
        st = chosen_template(dg, ct, choice, file_only);
    else if (st == WEFT_OK && mf)
        st = model_template(dg, ct, mf);
    else if (st == WEFT_OK)
        st = weft_fail(dg, W1305, WEFT_NOWHERE, "neither a model nor a template is given");
    if (st != WEFT_OK) {
        arena_destroy(home);
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

void chat_close(chat_template *ct)
{
    if (ct)
        arena_destroy(ct->home);
}

const char *chat_origin(const chat_template *ct)
{
    return ct->origin;
}

/* ---- rendering ---- */

typedef VEC(jinja_var) var_list;

static void push(var_list *vars, str name, const value *v)
{
    VEC_PUSH(vars, ((jinja_var){name, v ? *v : (value){.type = VT_NULL}}));
}

static void push_all(var_list *vars, const value *object)
{
    for (size_t i = 0; value_kind_of(object) == VALUE_OBJECT && i < object->as.object.n; i++)
        push(vars, object->as.object.members[i].name, &object->as.object.members[i].v);
}

weft_status chat_check_text(weft_diag *dg, const char *what, str text)
{
    size_t bad;
    if (uni_check(text, &bad))
        return WEFT_OK;
    return weft_fail(dg, W1207, WEFT_NOWHERE, "%s is not UTF-8: byte 0x%02x at %zu", what,
                     (unsigned char)text.p[bad], bad);
}

/* All texts inside v; `what` names it. A value from JSON nests as deep as its reader allows. */
static weft_status check_texts(weft_diag *dg, const char *what, const value *v)
{
    str text;
    if (value_str(v, &text))
        return chat_check_text(dg, what, text);
    for (size_t i = 0; value_kind_of(v) == VALUE_ARRAY && i < value_count(v); i++) {
        value item = value_at(v, i);
        WEFT_TRY(check_texts(dg, what, &item));
    }
    for (size_t i = 0; value_kind_of(v) == VALUE_OBJECT && i < v->as.object.n; i++)
        WEFT_TRY(check_texts(dg, what, &v->as.object.members[i].v));
    return WEFT_OK;
}

static weft_status check_message(weft_diag *dg, size_t i, const value *m)
{
    if (value_kind_of(m) != VALUE_OBJECT)
        return weft_fail(dg, W1306, WEFT_NOWHERE, "message %zu is not an object", i);
    for (size_t k = 0; k < m->as.object.n; k++) {
        strbuf what = {0};
        strbuf_add(&what, "`" STR_FMT "` of message %zu", STR_ARG(m->as.object.members[k].name), i);
        weft_status st = check_texts(dg, what.p, &m->as.object.members[k].v);
        strbuf_free(&what);
        if (st != WEFT_OK)
            return st;
    }
    return WEFT_OK;
}

static weft_status check_messages(weft_diag *dg, const value *messages)
{
    if (value_kind_of(messages) != VALUE_ARRAY)
        return weft_fail(dg, W1306, WEFT_NOWHERE, "messages are a list");
    for (size_t i = 0; i < value_count(messages); i++) {
        value m = value_at(messages, i);
        WEFT_TRY(check_message(dg, i, &m));
    }
    return WEFT_OK;
}

weft_status chat_render(weft_diag *dg, const chat_template *ct, const chat_request *rq, strbuf *out)
{
    WEFT_TRY(check_messages(dg, rq->messages));
    struct tm now = {0};
    time_t clock = time(NULL);
    if (rq->now)
        now = *rq->now;
    else
        localtime_r(&clock, &now);
    var_list vars = {0};
    value generate = value_of_bool(rq->generate);
    for (size_t i = 0; i < ct->n_special; i++)
        VEC_PUSH(&vars, ct->specials[i]);
    push(&vars, STR("messages"), rq->messages);
    push(&vars, STR("tools"), rq->tools);
    push(&vars, STR("documents"), rq->documents);
    push_all(&vars, rq->variables);
    push(&vars, STR("add_generation_prompt"), &generate);
    push_all(&vars, rq->overrides);
    bool tools = value_kind_of(rq->tools) == VALUE_ARRAY;
    weft_status st = jinja_render(dg, tools && ct->with_tools ? ct->with_tools : ct->usual, vars.at,
                                  vars.n, &now, NULL, out);
    VEC_FREE(&vars);
    return st;
}

value chat_messages(arena *a, const chat_message *messages, size_t n)
{
    value *items = ARENA_ARRAY(a, value, n);
    for (size_t i = 0; i < n; i++) {
        value_member *m = ARENA_ARRAY(a, value_member, 2);
        size_t twice;
        m[0] = (value_member){STR("role"), value_of_str(messages[i].role)};
        m[1] = (value_member){STR("content"), value_of_str(messages[i].content)};
        value_of_members(a, m, 2, &items[i], &twice);
    }
    return value_of_array(VT_NULL, items, n);
}
