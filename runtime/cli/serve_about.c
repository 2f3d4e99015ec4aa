/* serve_about.c - a model for people: numbers, settings, and the texts that describe it. */
#include "runtime/cli/serve_about.h"

#include "runtime/base/json_write.h"
#include "runtime/base/vec.h"

typedef VEC(const source *) source_list;

static void add_source(source_list *l, const source *src)
{
    for (size_t i = 0; i < l->n; i++)
        if (l->at[i] == src)
            return;
    if (src)
        VEC_PUSH(l, src);
}

/* The model's own text, then those whose lines have steps. */
static void write_files(json_writer *w, const bound_model *bm, const plan *p)
{
    source_list l = {0};
    add_source(&l, bm->text.src);
    for (int32_t b = 0; b < p->n_bucket; b++)
        for (int32_t i = 0; i < p->bucket[b].n_step; i++)
            add_source(&l, p->bucket[b].step[i].loc.src);
    json_key_open(w, "files", '[');
    for (size_t i = 0; i < l.n; i++) {
        json_open(w, '{');
        json_key_text(w, "name", l.at[i]->name);
        json_key_str(w, "text", l.at[i]->text);
        json_close(w, '}');
    }
    json_close(w, ']');
    VEC_FREE(&l);
}

/* Of a list by layers the first stands for all. */
static void write_params(json_writer *w, const bound_model *bm)
{
    json_key_open(w, "params", '{');
    for (size_t i = 0; i < bm->settings.params.n; i++) {
        const model_param *p = &bm->settings.params.at[i];
        char name[128];
        if (p->layer > 0)
            continue;
        snprintf(name, sizeof name, STR_FMT, STR_ARG(p->name));
        json_key(w, name);
        value_json(w, &p->v, 16);
    }
    json_close(w, '}');
}

static int64_t count_parameters(const model_file *mf)
{
    int64_t n = 0;
    for (size_t i = 0; i < model_file_tensor_count(mf); i++) {
        const model_tensor *t = model_file_tensor_at(mf, i);
        int64_t elems = 1;
        for (int k = 0; k < t->rank; k++)
            elems *= t->shape[k];
        n += elems;
    }
    return n;
}

void serve_about_json(const served_model *about, strbuf *out)
{
    const api_file *f = api_file_of(about->m);
    const plan *p = about->s->plan.p;
    json_writer w = {.out = out};
    json_open(&w, '{');
    json_key_text(&w, "id", about->name);
    json_key_text(&w, "family", weft_model_name(about->m));
    json_key_text(&w, "path", model_file_path(f->file));
    json_key_text(&w, "format", model_file_format(f->file) == MODEL_GGUF ? "GGUF" : "Hugging Face");
    json_key_int(&w, "parameters", count_parameters(f->file));
    json_key_int(&w, "bytes", (int64_t)weft_model_bytes(about->m));
    json_key_int(&w, "context", about->context);
    json_key_text(&w, "device", p->backend);
    json_key_int(&w, "threads", about->s->plan.run.threads);
    json_key_text(&w, "plan", p->level);
    write_params(&w, f->bound);
    write_files(&w, f->bound, p);
    json_close(&w, '}');
}
