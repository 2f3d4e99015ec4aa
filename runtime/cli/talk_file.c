/* talk_file.c - `run` and `chat` of weft: a model from a checkpoint, with the adapters of --lora. */
#include "runtime/cli/talk.h"

#include "runtime/formats/json_read.h"

#include <sys/stat.h>
#include <unistd.h>

/* Beside the program where it was installed, where it was to be installed, or in the tree it was built in. */
static const char *find_demo(arena *a)
{
    const char *place[] = {NULL, WEFT_DEMO_INSTALLED, WEFT_DEMO_SOURCE};
    char self[4096];
    struct stat st;
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    if (n > 0) {
        self[n] = 0;
        place[0] = arena_printf(a, "%.*s/../share/weft/models/stories-7m",
                                (int)(strrchr(self, '/') - self), self)
                       .p;
    }
    for (size_t i = 0; i < sizeof place / sizeof *place; i++)
        if (place[i] && stat(place[i], &st) == 0)
            return place[i];
    return NULL;
}

/* ---- the kind ---- */

static weft_status file_open_model(talk *t)
{
    weft_diag *dg = t->c->dg;
    const model_flags *f = &t->f->open;
    WEFT_TRY(model_flags_check_kv(dg, f));
    api_source from = model_flags_source(f);
    if (!from.path && !(from.path = find_demo(t->a)))
        return weft_fail(dg, W1904, WEFT_NOWHERE,
                         "the demo model is not there; name a checkpoint with -m MODEL");
    t->from = from.path;
    WEFT_TRY(api_model_open(dg, &from, &t->m));
    return lora_open(dg, t->m, f, &t->adapters);
}

static weft_session_options file_session(talk *t, progress *bar)
{
    weft_session_options how = model_flags_session(&t->f->open, bar);
    lora_want(&t->adapters, &how);
    return how;
}

static weft_status file_ready(talk *t)
{
    return lora_load(t->c->dg, &t->adapters, t->s, LORA_MIX);
}

static void file_close_model(talk *t)
{
    weft_grammar_destroy(t->form); /* its generation is gone */
    lora_close(&t->adapters);
}

static weft_status file_variables(talk *t)
{
    value *v = ARENA_NEW(t->a, value);
    if (!t->f->template_kwargs)
        return WEFT_OK;
    WEFT_TRY(json_read(t->c->dg, t->a, "--template-kwargs", str_of(t->f->template_kwargs),
                       JSON_LIMITS_CONFIG, v));
    if (value_kind_of(v) != VALUE_OBJECT)
        return weft_fail(t->c->dg, W1903, WEFT_NOWHERE, "--template-kwargs takes a JSON object");
    t->variables = v;
    return WEFT_OK;
}

static weft_status file_messages(talk *t, const char *path, value *out_list)
{
    value doc;
    WEFT_TRY(json_read_file(t->c->dg, t->a, path, JSON_LIMITS_CONFIG, &doc));
    const value *list =
        value_kind_of(&doc) == VALUE_OBJECT ? value_get(&doc, STR("messages")) : &doc;
    if (!list || value_kind_of(list) != VALUE_ARRAY)
        return weft_fail(t->c->dg, W1306, WEFT_NOWHERE, "%s holds no list of messages", path);
    *out_list = *list;
    return WEFT_OK;
}

enum { GRAMMAR_BYTES_MAX = 1 << 20 };

static weft_status file_form(talk *t)
{
    const talk_flags *f = t->f;
    weft_diag *dg = t->c->dg;
    const char *path = f->json_schema ? f->json_schema : f->grammar;
    str text;
    if ((f->json_schema != NULL) + (f->grammar != NULL) + (f->regex != NULL) > 1)
        return weft_fail(dg, W1904, WEFT_NOWHERE,
                         "an answer has one form: --json-schema, --grammar or --regex");
    if (!path && !f->regex)
        return WEFT_OK;
    if (path) {
        source *src;
        WEFT_TRY(source_open(dg, t->a, path, GRAMMAR_BYTES_MAX, &src));
        text = src->text;
    } else {
        text = str_of(f->regex);
    }
    return weft_grammar_create(dg, t->s, t->text,
                               f->json_schema ? WEFT_GRAMMAR_JSON_SCHEMA
                               : f->grammar   ? WEFT_GRAMMAR_GBNF
                                              : WEFT_GRAMMAR_REGEX,
                               path ? path : "--regex", text.p, text.n, &t->form);
}

const talk_kind talk_kind_file = {file_open_model, file_session,  file_ready, file_close_model,
                                  file_variables,  file_messages, file_form};
