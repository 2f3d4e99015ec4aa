/* verb_show.c - `weft show`: what a checkpoint is, without loading it. */
#include "compiler/compiler.h"
#include "runtime/base/json_write.h"
#include "runtime/base/utf8.h"
#include "runtime/cli/cli.h"

typedef struct {
    bool tensors, keys;
} show_options;

/* clang-format off */
static const flag show_flags[] = {
    FLAG_ROW_BOOL(show_options, tensors, "tensors", NULL, "list every tensor"),
    FLAG_ROW_BOOL(show_options, keys,    "keys",    NULL, "list every key"),
    FLAG_ROW_END (show_options),
};

static const char *const examples[] = {
    "weft show model.gguf",                  "architecture, sizes, bytes by type",
    "weft show Llama-3.2-1B/ --tensors",     "a Hugging Face folder, with its tensors",
    "weft show model.gguf --json | jq .params", "for programs",
    NULL,
};
/* clang-format on */

const verb_page show_verb_page = {
    show_flags,
    "Reads headers only. MODEL is a GGUF file (any part of a split one), a Hugging Face folder, or "
    "a "
    "file in that folder.",
    examples,
};

enum { ITEMS_MAX = 8 }; /* of a list among the keys */
enum { NAME_WIDTH = 44 };

typedef struct {
    size_t n;
    int64_t elems;
    size_t bytes;
} type_sum;

typedef struct {
    const model_file *mf;
    const bound_model *bm; /* NULL: no model file fits, or it does not bind */
    const source *arch;    /* the model file that fits, or NULL */
    str tokenizer;
    int64_t elems;
    size_t bytes;
    type_sum by_type[DT_COUNT];
} summary;

static str tokenizer_kind(const model_file *mf, arena *a)
{
    str model = {0}, pre = {0};
    if (model_file_format(mf) == MODEL_HF) {
        bool json = model_file_has_sibling(mf, "tokenizer.json");
        bool spm = model_file_has_sibling(mf, "tokenizer.model");
        return json ? STR("tokenizer.json") : spm ? STR("tokenizer.model") : STR("none");
    }
    if (!value_str(model_file_key(mf, STR("/tokenizer.ggml.model")), &model))
        return model_file_key(mf, STR("/tokenizer.huggingface.json"))
                   ? STR("tokenizer.json, inside")
                   : STR("none");
    if (value_str(model_file_key(mf, STR("/tokenizer.ggml.pre")), &pre))
        return arena_printf(a, STR_FMT " (" STR_FMT ")", STR_ARG(model), STR_ARG(pre));
    return model;
}

static void sum_up(summary *s)
{
    for (size_t i = 0; i < model_file_tensor_count(s->mf); i++) {
        const model_tensor *t = model_file_tensor_at(s->mf, i);
        type_sum *sum = &s->by_type[t->type];
        sum->n++;
        sum->elems += t->elems;
        sum->bytes += t->bytes;
        s->elems += t->elems;
        s->bytes += t->bytes;
    }
}

static void put_count(strbuf *out, double n)
{
    static const char *const unit[] = {"", " k", " M", " G", " T"};
    int u = 0;
    for (; n >= 1000 && u < 4; u++)
        n /= 1000;
    strbuf_add(out, u ? "%.2f%s" : "%.0f%s", n, unit[u]);
}

static void put_param(strbuf *out, const value *v)
{
    switch (value_kind_of(v)) {
    case VALUE_INT:
        strbuf_add(out, "%lld", (long long)v->as.i);
        break;
    case VALUE_FLOAT:
        strbuf_add(out, "%g", v->as.f);
        break;
    case VALUE_BOOL:
        strbuf_add(out, v->as.b ? "true" : "false");
        break;
    case VALUE_STR:
        utf8_put_safe(out, v->as.s);
        break;
    default:
        strbuf_add(out, "none");
    }
}

static void text_params(const summary *s, strbuf *out)
{
    for (size_t i = 0; s->bm && i < s->bm->settings.params.n; i++) {
        const model_param *p = &s->bm->settings.params.at[i];
        if (p->layer > 0)
            continue; /* of a list the first stands for all */
        strbuf_add(out, "  %-14.*s ", STR_ARG(p->name));
        put_param(out, &p->v);
        strbuf_add(out, p->layer == 0 ? ", .. for each layer\n" : "\n");
    }
}

static void text_lists(const summary *s, const show_options *o, strbuf *out)
{
    const value *keys = model_file_keys(s->mf);
    if (o->keys)
        strbuf_add(out, "keys\n");
    for (size_t i = 0; o->keys && i < keys->as.object.n; i++) {
        const value_member *m = &keys->as.object.members[i];
        json_writer w = {.out = out};
        strbuf_put(out, STR("  "));
        utf8_put_safe(out, m->name);
        strbuf_put(out, STR(" = "));
        value_json(&w, &m->v, ITEMS_MAX);
        strbuf_putc(out, '\n');
    }
    if (o->tensors)
        strbuf_add(out, "tensors\n");
    for (size_t i = 0; o->tensors && i < model_file_tensor_count(s->mf); i++) {
        const model_tensor *t = model_file_tensor_at(s->mf, i);
        strbuf_put(out, STR("  "));
        size_t begin = out->n;
        utf8_put_safe(out, t->name);
        size_t n = out->n - begin;
        strbuf_fill(out, ' ', n < NAME_WIDTH ? NAME_WIDTH + 1 - n : 1);
        model_tensor_describe(out, t);
        strbuf_putc(out, '\n');
    }
}

static void as_text(const summary *s, const show_options *o, strbuf *out)
{
    bool gguf = model_file_format(s->mf) == MODEL_GGUF;
    strbuf_add(out, "file         %s (%s, %zu part%s)\n", model_file_path(s->mf),
               gguf ? "GGUF" : "Hugging Face", model_file_part_count(s->mf),
               model_file_part_count(s->mf) == 1 ? "" : "s");
    strbuf_add(out, "architecture");
    for (size_t i = 0; i < model_file_arch_count(s->mf); i++) {
        strbuf_putc(out, ' ');
        utf8_put_safe(out, model_file_arch(s->mf, i));
    }
    strbuf_add(out, "%s\nmodel file   ", model_file_arch_count(s->mf) ? "" : " none named");
    if (s->arch)
        strbuf_add(out, "%s\n", s->arch->name);
    else
        strbuf_add(out, "none in the library fits\n");
    strbuf_put(out, STR("tokenizer    "));
    utf8_put_safe(out, s->tokenizer);
    strbuf_put(out, STR("\nparameters   "));
    put_count(out, (double)s->elems);
    strbuf_add(out, " in %zu tensors, %.1f MiB\n", model_file_tensor_count(s->mf),
               (double)s->bytes / (1 << 20));
    for (int t = 0; t < DT_COUNT; t++)
        if (s->by_type[t].n)
            strbuf_add(out, "  %-8s %6zu tensors %12.1f MiB\n", dtype_row_of((dtype)t)->name,
                       s->by_type[t].n, (double)s->by_type[t].bytes / (1 << 20));
    if (s->bm)
        strbuf_add(out, "settings\n");
    text_params(s, out);
    text_lists(s, o, out);
}

static void json_params(json_writer *w, const bound_model *bm)
{
    json_key_open(w, "params", '{');
    for (size_t i = 0; bm && i < bm->settings.params.n; i++) {
        const model_param *p = &bm->settings.params.at[i];
        char name[128];
        if (p->layer <= 0) {
            snprintf(name, sizeof name, STR_FMT, STR_ARG(p->name));
            json_key(w, name);
        }
        if (p->layer == 0)
            json_open(w, '[');
        value_json(w, &p->v, 0);
        bool more = i + 1 < bm->settings.params.n && bm->settings.params.at[i + 1].layer > 0;
        if (p->layer >= 0 && !more)
            json_close(w, ']');
    }
    json_close(w, '}');
}

static void json_tensors(json_writer *w, const model_file *mf)
{
    json_key_open(w, "tensors", '[');
    for (size_t i = 0; i < model_file_tensor_count(mf); i++) {
        const model_tensor *t = model_file_tensor_at(mf, i);
        json_open(w, '{');
        json_key_str(w, "name", t->name);
        json_key_text(w, "type", dtype_row_of(t->type)->name);
        json_key_open(w, "shape", '[');
        for (int k = 0; k < t->rank; k++)
            json_int(w, t->shape[k]);
        json_close(w, ']');
        json_key_int(w, "part", t->part);
        json_key_int(w, "offset", (int64_t)t->offset);
        json_key_int(w, "bytes", (int64_t)t->bytes);
        json_close(w, '}');
    }
    json_close(w, ']');
}

static void as_json(const summary *s, const show_options *o, strbuf *out)
{
    json_writer w = {.out = out};
    json_open(&w, '{');
    json_key_text(&w, "file", model_file_path(s->mf));
    json_key_str(&w, "format", model_file_format(s->mf) == MODEL_GGUF ? STR("gguf") : STR("hf"));
    json_key_open(&w, "architectures", '[');
    for (size_t i = 0; i < model_file_arch_count(s->mf); i++)
        json_str(&w, model_file_arch(s->mf, i));
    json_close(&w, ']');
    json_key_text(&w, "model_file", s->arch ? s->arch->name : NULL);
    json_key_str(&w, "tokenizer", s->tokenizer);
    json_key_int(&w, "parameters", s->elems);
    json_key_int(&w, "bytes", (int64_t)s->bytes);
    json_key_open(&w, "types", '{');
    for (int t = 0; t < DT_COUNT; t++) {
        if (!s->by_type[t].n)
            continue;
        json_key_open(&w, dtype_row_of((dtype)t)->name, '{');
        json_key_int(&w, "tensors", (int64_t)s->by_type[t].n);
        json_key_int(&w, "bytes", (int64_t)s->by_type[t].bytes);
        json_close(&w, '}');
    }
    json_close(&w, '}');
    json_params(&w, s->bm);
    if (o->keys) {
        json_key(&w, "keys");
        value_json(&w, model_file_keys(s->mf), SIZE_MAX);
    }
    if (o->tensors)
        json_tensors(&w, s->mf);
    json_close(&w, '}');
    strbuf_putc(out, '\n');
}

int verb_show(cli *c)
{
    const show_options *o = c->options;
    model_file *mf;
    bound_model *bm = NULL;
    weft_status st = model_file_open(c->dg, c->operand[0], NULL, &mf);
    if (st == WEFT_OK) {
        arena *a = arena_create();
        weft_diag *quiet = diag_create(); /* a file that no model fits can still be shown */
        arch_text text = {0};
        dsl_file *f;
        summary s = {.mf = mf, .tokenizer = tokenizer_kind(mf, a)};
        strbuf out = {0};
        if (model_bind(quiet, mf, NULL, &bm) == WEFT_OK)
            text = bm->text;
        else if (arch_choose(quiet, mf, NULL, a, &text, &f) == WEFT_OK)
            dsl_close(f);
        s.bm = bm;
        s.arch = text.src;
        sum_up(&s);
        (c->common.json ? as_json : as_text)(&s, o, &out);
        cli_print(c, strbuf_view(&out));
        if (!s.bm && !c->common.json)
            cli_say(c, "%s",
                    s.arch ? "it does not bind: `weft check -m` says why"
                           : "--arch FILE.weft names a model file");
        bound_model_destroy(bm);
        strbuf_free(&out);
        diag_destroy(quiet);
        arena_destroy(a);
        model_file_close(mf);
    }
    c->common.json = false; /* the document is written: messages go to stderr */
    return cli_exit_of(st);
}
