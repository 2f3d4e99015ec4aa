/* tok_folder.c - what the files beside a tokenizer.json add: named tokens, ends, the template. */
#include "runtime/base/map.h"
#include "runtime/formats/json_read.h"
#include "runtime/text/tok_impl.h"
#include <unistd.h>

enum { TEMPLATE_BYTES_MAX = 4 << 20 };

typedef struct {
    tok *t;
    const model_file *mf; /* NULL: any file in folder */
    str folder;           /* with its last '/'; empty: the working folder */
} place;

/* *out_path is NULL where there is no such file. */
static weft_status find(weft_diag *dg, const place *p, const char *name, const char **out_path)
{
    *out_path = NULL;
    if (p->mf && !model_file_has_sibling(p->mf, name))
        return WEFT_OK;
    if (p->mf)
        return model_file_sibling(dg, p->mf, p->t->home, name, out_path);
    const char *path = arena_printf(p->t->home, STR_FMT "%s", STR_ARG(p->folder), name).p;
    if (access(path, F_OK) == 0)
        *out_path = path;
    return WEFT_OK;
}

/* A token is written as its text or as an object with its content. */
static int32_t token_of(const tok *t, const value *v)
{
    str text;
    if (value_str(v, &text) || value_str(value_get(v, STR("content")), &text))
        return tok_find(t, text);
    return TOK_NONE;
}

static void take_template(tok *t, const value *v)
{
    str text, name;
    if (value_str(v, &text)) {
        t->chat_template = arena_str(t->home, text);
        return;
    }
    if (value_kind_of(v) != VALUE_ARRAY)
        return;
    for (size_t i = value_count(v); i-- > 0;) {
        value item = value_at(v, i);
        if (value_str(value_get(&item, STR("template")), &text) &&
            value_str(value_get(&item, STR("name")), &name) &&
            (i == 0 || str_eqz(name, "default") || !t->chat_template.n)) {
            t->chat_template = arena_str(t->home, text);
            if (str_eqz(name, "default"))
                return;
        }
    }
}

static void take_tokens(tok *t, const value *root)
{
    static const char *const names[] = {"bos_token", "eos_token", "pad_token", "unk_token"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        tok_named_set(t, names[i], token_of(t, value_get(root, str_of(names[i]))));
    take_template(t, value_get(root, STR("chat_template")));
}

/* eos_token_id: a number or a list of them. */
static void take_ends(tok *t, const value *root)
{
    const value *ends = value_get(root, STR("eos_token_id"));
    int64_t id;
    if (value_int(ends, &id) && id >= 0 && id <= VOCAB_ID_MAX)
        tok_ends_add(t, (int32_t)id);
    for (size_t i = 0; value_kind_of(ends) == VALUE_ARRAY && i < value_count(ends); i++) {
        value v = value_at(ends, i);
        if (value_int(&v, &id) && id >= 0 && id <= VOCAB_ID_MAX)
            tok_ends_add(t, (int32_t)id);
    }
}

/* clang-format off */
static const struct {
    const char *name;
    void (*take)(tok *t, const value *root);
} files[] = {
    {"special_tokens_map.json", take_tokens},
    {"tokenizer_config.json",   take_tokens}, /* has the last word */
    {"generation_config.json",  take_ends},
    {"config.json",             take_ends},
};
/* clang-format on */

static weft_status load_beside(weft_diag *dg, const place *p)
{
    arena *a = arena_create();
    const char *path;
    value root;
    weft_status status = WEFT_OK;
    for (size_t i = 0; status == WEFT_OK && i < sizeof files / sizeof *files; i++) {
        status = find(dg, p, files[i].name, &path);
        if (status != WEFT_OK || !path)
            continue;
        status = json_read_file(dg, a, path, JSON_LIMITS_CONFIG, &root);
        if (status == WEFT_OK)
            files[i].take(p->t, &root);
    }
    if (status == WEFT_OK)
        status = find(dg, p, "chat_template.jinja", &path);
    if (status == WEFT_OK && path) {
        source *src;
        status = source_open(dg, a, path, TEMPLATE_BYTES_MAX, &src);
        if (status == WEFT_OK)
            p->t->chat_template = arena_str(p->t->home, src->text);
    }
    arena_destroy(a);
    return status;
}

weft_status tok_load_folder(weft_diag *dg, tok *t, const char *path, const model_file *mf)
{
    const char *slash = strrchr(path, '/');
    place p = {t, mf, {path, slash ? (size_t)(slash - path) + 1 : 0}};
    fmap *map;
    WEFT_TRY(fmap_open(dg, path, FMAP_COPIED, &map));
    str text = {(const char *)fmap_data(map), fmap_bytes(map)};
    weft_status status = tok_load_json(dg, t, path, text);
    fmap_close(map);
    return status == WEFT_OK ? load_beside(dg, &p) : status;
}
