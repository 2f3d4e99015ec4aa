/* verb_lora_show.c - `weft lora show`: what an adapter holds, and where it goes. */
#include "runtime/base/json_write.h"
#include "runtime/base/mem.h"
#include "runtime/base/utf8.h"
#include "runtime/cli/verb_lora.h"
#include "runtime/lora/factors.h"

#include <inttypes.h>
#include <math.h>

typedef struct {
    const adapter_pair *pair;
    double norm;
    strbuf to; /* the weights that it reaches */
} shown;

typedef struct {
    lora_run *r;
    adapter_file *f;
    lora_model m;
    adapter *ad; /* with a model */
    shown *row;
    size_t n;
    int64_t rank_max;
    double norm; /* of all */
} showing;

/* Of all matrices of a stack together. */
static weft_status measure(showing *s, shown *row)
{
    const adapter_pair *p = row->pair;
    arena *a = arena_create();
    float *xa = ARENA_ARRAY(a, float, (size_t)p->a->elems);
    float *xb = ARENA_ARRAY(a, float, (size_t)p->b->elems);
    weft_status st = adapter_numbers(s->r->dg, s->f, p->a, xa);
    if (st == WEFT_OK)
        st = adapter_numbers(s->r->dg, s->f, p->b, xb);
    int64_t n = st != WEFT_OK ? 0 : p->stacked ? p->stacked : 1;
    const float *first = n && p->turned ? matrix_transposed(a, xa, p->in, p->rank) : xa;
    bool shared = p->stacked && p->a->shape[0] == 1;
    for (int64_t e = 0; e < n; e++) {
        adapter_site one = {.rank = p->rank,
                            .in = p->in,
                            .out = p->out,
                            .a = first + (shared ? 0 : e * p->rank * p->in),
                            .b = xb + e * p->out * p->rank,
                            .scale = p->scale};
        row->norm = hypot(row->norm, lora_norm(&one));
    }
    arena_destroy(a);
    return st;
}

/* The weights whose line names this pair. */
static void find_weights(showing *s, shown *row)
{
    const site_names *names = &s->m.bm->sites;
    for (size_t i = 0; i < names->n; i++) {
        const site_name *x = &names->at[i];
        bool there = false;
        for (size_t k = 0; x->gguf == s->f->gguf && k < x->n_tensor && !there; k++)
            if ((there = str_eq(x->tensor[k], row->pair->name)))
                strbuf_add(&row->to, x->stacked ? "%s" STR_FMT "[%zu]" : "%s" STR_FMT,
                           row->to.n ? ", " : "", STR_ARG(x->weight), k);
    }
}

static weft_status gather(showing *s)
{
    lora_run *r = s->r;
    WEFT_TRY(adapter_file_open(r->dg, r->path, true, &s->f));
    if (r->o->model) {
        WEFT_TRY(lora_model_open(r, r->o->model, r->o->arch, &s->m));
        WEFT_TRY(adapter_bind(r->dg, s->f, s->m.bm, true, &s->ad));
    }
    s->row = mem_alloc((s->f->pairs.n + 1) * sizeof *s->row);
    for (; s->n < s->f->pairs.n; s->n++) {
        shown *row = &s->row[s->n];
        *row = (shown){.pair = &s->f->pairs.at[s->n]};
        WEFT_TRY(measure(s, row));
        s->norm = hypot(s->norm, row->norm);
        s->rank_max = row->pair->rank > s->rank_max ? row->pair->rank : s->rank_max;
        if (s->ad)
            find_weights(s, row);
    }
    return model_file_check(r->dg, s->f->mf);
}

static uint64_t bytes_of(const showing *s)
{
    uint64_t n = 0;
    for (size_t i = 0; i < s->n; i++)
        n += s->row[i].pair->a->bytes + s->row[i].pair->b->bytes;
    return n;
}

static void put_json(const showing *s, strbuf *out)
{
    json_writer w = {.out = out};
    json_open(&w, '{');
    json_key_text(&w, "file", s->f->path);
    json_key_text(&w, "format", s->f->gguf ? "gguf" : "peft");
    json_key_str(&w, "base", s->f->base);
    json_key_double(&w, "alpha", s->f->alpha);
    json_key_int(&w, "rank_max", s->rank_max);
    json_key_int(&w, "bytes", (int64_t)bytes_of(s));
    json_key_double(&w, "norm", s->norm);
    json_key_open(&w, "whole", '[');
    for (size_t i = 0; i < s->f->wholes.n; i++)
        json_str(&w, s->f->wholes.at[i].t->name);
    json_close(&w, ']');
    json_key_open(&w, "pairs", '[');
    for (size_t i = 0; i < s->n; i++) {
        const adapter_pair *p = s->row[i].pair;
        json_open(&w, '{');
        json_key_str(&w, "name", p->name);
        json_key_int(&w, "rank", p->rank);
        json_key_int(&w, "in", p->in);
        json_key_int(&w, "out", p->out);
        json_key_index(&w, "stacked", p->stacked ? p->stacked : -1);
        json_key_double(&w, "scale", p->scale);
        json_key_double(&w, "norm", s->row[i].norm);
        if (s->ad)
            json_key_str(&w, "weights", strbuf_view(&s->row[i].to));
        json_close(&w, '}');
    }
    json_close(&w, ']');
    json_close(&w, '}');
    strbuf_putc(out, '\n');
}

static void put_text(const showing *s, strbuf *out)
{
    int wide = 4;
    for (size_t i = 0; i < s->n; i++)
        wide = (int)s->row[i].pair->name.n > wide ? (int)s->row[i].pair->name.n : wide;
    wide = wide < 60 ? wide : 60;
    strbuf_add(out, "file   %s (%s)\n", s->f->path, s->f->gguf ? "GGUF" : "PEFT");
    strbuf_add(out, "base   ");
    utf8_put_safe(out, s->f->base.n ? s->f->base : STR("not said"));
    strbuf_add(out, "\nalpha  %g%s\n", s->f->alpha,
               s->f->rslora ? ", by the root of the rank" : "");
    strbuf_add(out, "rank   %" PRId64 " at most\n", s->rank_max);
    strbuf_add(out, "size   %zu pairs, %.1f MiB; all they add has a norm of %.4g\n", s->n,
               (double)bytes_of(s) / (1 << 20), s->norm);
    for (size_t i = 0; i < s->f->wholes.n; i++) {
        strbuf_add(out, "whole  ");
        utf8_put_safe(out, s->f->wholes.at[i].t->name);
        strbuf_putc(out, '\n');
    }
    strbuf_add(out, "\n%-*s  rank      in     out   scale      norm%s\n", wide, "name",
               s->ad ? "  weights" : "");
    for (size_t i = 0; i < s->n; i++) {
        const adapter_pair *p = s->row[i].pair;
        strbuf name = {0};
        utf8_put_safe(&name, p->name);
        strbuf_add(out, "%-*s  %4" PRId64 " %7" PRId64 " %7" PRId64 " %7.4g %9.4g", wide, name.p,
                   p->rank, p->in, p->out, p->scale, s->row[i].norm);
        if (s->ad)
            strbuf_add(out, "  %s", s->row[i].to.p ? s->row[i].to.p : "");
        strbuf_putc(out, '\n');
        strbuf_free(&name);
    }
}

weft_status lora_show(lora_run *r)
{
    showing s = {.r = r};
    strbuf out = {0};
    weft_status st = gather(&s);
    if (st == WEFT_OK) {
        (r->c->common.json ? put_json : put_text)(&s, &out);
        cli_print_all(r->c, &out);
    }
    for (size_t i = 0; i < s.n; i++)
        strbuf_free(&s.row[i].to);
    mem_free(s.row);
    adapter_close(s.ad);
    adapter_file_close(s.f);
    lora_model_close(&s.m);
    return st;
}
