/* plan_json.c - a plan as a file.
 *
 *     {"weft_plan": 2, "checksum": "..",
 *      "weft": version, "arch", "backend", "level", "hash": of the checkpoint, "model", "entry", .. limits and sizes,
 *      "files": [name], "places": [[file, line, column]], "kernels": [name],
 *      "weights": [..], "cells": [..], "outputs": [..], "code": [[op, to, at, at, at, f, f]],
 *      "consts": hexadecimal bytes,
 *      "buckets": [{.., "items": [[first, steps, phase, per thread, grain]], "edges": [[from, to]], "outputs": [operand],
 *                   "steps": [{"kernel": its number, "in": [operand], "out": [operand], ..}]}]}
 *
 * An operand is [space, id, offset, type], or null. Numbers that are 0, lists that are empty and the zeros
 * at the end of lists are left out; so are -1 for cell and layer and 1 for per_row. */
#include "compiler/plan_file_impl.h"

#include "runtime/base/vec.h"
#include <inttypes.h>
#include <math.h>

typedef struct {
    json_writer j;
    const plan *p;
    VEC(weft_loc) places;
} writer;

/* ---- fields ---- */

static void key_int(writer *w, const char *key, int64_t x)
{
    json_key_int(&w->j, key, x);
}

/* Left out where it is the default. */
static void opt_int(writer *w, const char *key, int64_t x, int64_t otherwise)
{
    if (x != otherwise)
        key_int(w, key, x);
}

static void key_str(writer *w, const char *key, const char *s)
{
    json_key_text(&w->j, key, s);
}

static void opt_bool(writer *w, const char *key, bool x)
{
    if (!x)
        return;
    json_key_bool(&w->j, key, true);
}

static void put_ints(writer *w, const int64_t *x, int n)
{
    while (n > 0 && x[n - 1] == 0)
        n--;
    json_open(&w->j, '[');
    for (int i = 0; i < n; i++)
        json_int(&w->j, x[i]);
    json_close(&w->j, ']');
}

static bool all_zero(const int64_t *x, int n)
{
    for (int i = 0; i < n; i++)
        if (x[i] != 0)
            return false;
    return true;
}

static void opt_ints(writer *w, const char *key, const int64_t *x, int n)
{
    if (all_zero(x, n))
        return;
    json_key(&w->j, key);
    put_ints(w, x, n);
}

/* What JSON has no number for is a string: a reader must get the same bits. */
static void put_float(writer *w, double x)
{
    if (isfinite(x) && (x != 0 || !signbit(x)))
        json_double(&w->j, x);
    else
        json_str(&w->j, isnan(x) ? STR("nan")
                        : x == 0 ? STR("-0")
                        : x > 0  ? STR("inf")
                                 : STR("-inf"));
}

static void opt_floats(writer *w, const char *key, const double *x, int n)
{
    while (n > 0 && x[n - 1] == 0 && !signbit(x[n - 1]))
        n--;
    if (n == 0)
        return;
    json_key(&w->j, key);
    json_open(&w->j, '[');
    for (int i = 0; i < n; i++)
        put_float(w, x[i]);
    json_close(&w->j, ']');
}

static void key_hex(writer *w, const char *key, const void *data, size_t bytes)
{
    static const char digits[] = "0123456789abcdef";
    const unsigned char *p = data;
    strbuf hex = {0};
    for (size_t i = 0; i < bytes; i++) {
        strbuf_putc(&hex, digits[p[i] >> 4]);
        strbuf_putc(&hex, digits[p[i] & 15]);
    }
    json_key_str(&w->j, key, strbuf_view(&hex));
    strbuf_free(&hex);
}

static void line_end(writer *w)
{
    strbuf_putc(w->j.out, '\n');
}

/* ---- tables ---- */

static void put_pieces(writer *w, const char *key, const plan_piece *piece, int32_t n)
{
    json_key(&w->j, key);
    json_open(&w->j, '[');
    for (int32_t i = 0; i < n; i++)
        put_ints(w, (const int64_t[]){piece[i].rows, piece[i].offset, piece[i].tensor}, 3);
    json_close(&w->j, ']');
}

static void put_weight(writer *w, const plan_weight *x)
{
    json_open(&w->j, '{');
    key_str(w, "name", x->name);
    key_str(w, "mode", plan_mode_names[x->mode]);
    key_str(w, "stored", dtype_row_of(x->stored)->name);
    key_str(w, "type", dtype_row_of(x->type)->name);
    opt_ints(w, "dim", x->dim, x->rank);
    opt_ints(w, "stride", x->stride, x->rank);
    key_int(w, "rows", x->rows);
    key_int(w, "pitch", x->pitch);
    opt_int(w, "layout", (int64_t)x->layout, 0);
    opt_int(w, "table", x->n_table, 0);
    key_int(w, "bytes", (int64_t)x->bytes);
    if (x->piece)
        put_pieces(w, "pieces", x->piece, x->n_piece);
    if (x->scales)
        put_pieces(w, "scales", x->scales, x->n_piece);
    if (x->computed)
        key_hex(w, "computed", x->computed, x->bytes);
    json_close(&w->j, '}');
    line_end(w);
}

static void put_cell(writer *w, const plan_cell *c)
{
    json_open(&w->j, '{');
    key_str(w, "name", c->name);
    opt_bool(w, "latent", c->latent);
    key_int(w, "heads", c->heads);
    key_int(w, "k", c->k);
    key_int(w, "v", c->v);
    opt_int(w, "window", c->window, 0);
    key_str(w, "layout", plan_layout_names[c->layout]);
    opt_int(w, "keep", c->keep, 0);
    json_close(&w->j, '}');
}

static void put_output(writer *w, const plan_output *o)
{
    json_open(&w->j, '{');
    key_str(w, "name", o->name);
    opt_int(w, "index", o->index, -1);
    key_str(w, "rows", plan_rows_names[o->rows]);
    key_int(w, "width", o->width);
    opt_int(w, "n_row", o->n_row, 0);
    json_close(&w->j, '}');
}

static void put_code(writer *w, const kinstr *c)
{
    json_open(&w->j, '[');
    json_int(&w->j, c->op);
    json_int(&w->j, c->to);
    for (int i = 0; i < 3; i++)
        json_int(&w->j, c->at[i]);
    put_float(w, (double)c->f[0]);
    put_float(w, (double)c->f[1]);
    json_close(&w->j, ']');
}

/* ---- steps ---- */

static size_t place_of(writer *w, weft_loc loc)
{
    size_t i = 0;
    while (i < w->places.n &&
           (w->places.at[i].src != loc.src || w->places.at[i].begin != loc.begin))
        i++;
    if (i == w->places.n)
        VEC_PUSH(&w->places, loc);
    return i;
}

static void put_operand(writer *w, const plan_operand *o)
{
    if (o->space == SPACE_NONE) {
        json_null(&w->j);
        return;
    }
    json_open(&w->j, '[');
    json_str(&w->j, str_of(plan_space_names[o->space]));
    json_int(&w->j, o->id);
    json_int(&w->j, o->offset);
    json_str(&w->j, str_of(dtype_row_of(o->type)->name));
    json_close(&w->j, ']');
}

static void put_operands(writer *w, const char *key, const plan_operand *o, int32_t n)
{
    if (n == 0)
        return;
    json_key(&w->j, key);
    json_open(&w->j, '[');
    for (int32_t i = 0; i < n; i++)
        put_operand(w, &o[i]);
    json_close(&w->j, ']');
}

static void put_strides(writer *w, const plan_step *s)
{
    int n = K_IN_MAX;
    while (n > 0 && all_zero(s->stride[n - 1], K_AXES_MAX))
        n--;
    if (n == 0)
        return;
    json_key(&w->j, "stride");
    json_open(&w->j, '[');
    for (int i = 0; i < n; i++)
        put_ints(w, s->stride[i], K_AXES_MAX);
    json_close(&w->j, ']');
}

static void put_step(writer *w, const plan_step *s)
{
    const plan_cost *c = &s->cost;
    int64_t word[K_WORDS_MAX], made[K_OUT_MAX];
    for (int i = 0; i < K_WORDS_MAX; i++)
        word[i] = s->word[i];
    for (int i = 0; i < K_OUT_MAX; i++)
        made[i] = s->value[i] + 1; /* so that none is left out */
    json_open(&w->j, '{');
    key_int(w, "kernel", s->kernel);
    put_operands(w, "in", s->in, s->n_in);
    put_operands(w, "out", s->out, s->n_out);
    key_str(w, "rows", plan_rows_names[s->rows]);
    opt_int(w, "per_row", s->per_row, 1);
    opt_ints(w, "pitch", s->pitch, K_IN_MAX);
    opt_ints(w, "out_pitch", s->out_pitch, K_OUT_MAX);
    put_strides(w, s);
    opt_ints(w, "n", s->n, K_SIZES_MAX);
    opt_floats(w, "f", s->f, K_SCALARS_MAX);
    opt_ints(w, "word", word, K_WORDS_MAX);
    opt_int(w, "cols", s->cols, 0);
    opt_int(w, "tile", s->tile, 0);
    opt_int(w, "code", s->code, 0);
    opt_int(w, "n_code", s->n_code, 0);
    opt_int(w, "cell", s->cell, -1);
    opt_int(w, "layer", s->layer, -1);
    key_int(w, "node", s->node);
    opt_ints(w, "value", made, K_OUT_MAX);
    opt_int(w, "prec_f32", s->prec_f32, 0);
    if (s->loc.src)
        key_int(w, "place", (int64_t)place_of(w, s->loc));
    opt_ints(
        w, "cost",
        (const int64_t[]){c->call_bytes, c->row_bytes, c->row_flops, c->key_bytes, c->key_flops},
        5);
    json_close(&w->j, '}');
    line_end(w);
}

static void put_bucket(writer *w, const plan_bucket *b)
{
    json_open(&w->j, '{');
    key_int(w, "n_tok_max", b->n_tok_max);
    key_int(w, "n_phase", b->n_phase);
    key_int(w, "arena_bytes", (int64_t)b->arena_bytes);
    opt_int(w, "local_bytes", (int64_t)b->local_bytes, 0);
    opt_int(w, "scratch_bytes", (int64_t)b->scratch_bytes, 0);
    put_operands(w, "outputs", b->output, w->p->n_output);
    json_key(&w->j, "items");
    json_open(&w->j, '[');
    for (int32_t i = 0; i < b->n_item; i++) {
        const plan_item *it = &b->item[i];
        put_ints(w, (const int64_t[]){it->first, it->n_step, it->phase, it->per_thread, it->grain},
                 5);
    }
    json_close(&w->j, ']');
    json_key(&w->j, "edges");
    json_open(&w->j, '[');
    for (int32_t i = 0; i < b->n_edge; i++)
        put_ints(w, (const int64_t[]){b->edge[i].from, b->edge[i].to}, 2);
    json_close(&w->j, ']');
    json_key(&w->j, "steps");
    json_open(&w->j, '[');
    for (int32_t i = 0; i < b->n_step; i++)
        put_step(w, &b->step[i]);
    json_close(&w->j, ']');
    json_close(&w->j, '}');
    line_end(w);
}

/* ---- the whole ---- */

static void put_limits(writer *w, model_hash model)
{
    const plan *p = w->p;
    char hash[40];
    snprintf(hash, sizeof hash, "%016" PRIx64 "%016" PRIx64, model.hi, model.lo);
    key_str(w, "weft", WEFT_VERSION);
    key_str(w, "arch", plan_arch());
    key_str(w, "backend", p->backend);
    key_str(w, "level", p->level);
    key_str(w, "hash", hash);
    key_str(w, "model", p->model);
    key_str(w, "entry", p->entry);
    key_str(w, "kv", dtype_row_of(p->kv)->name);
    opt_bool(w, "deterministic", p->deterministic);
    key_int(w, "n_tok_max", p->n_tok_max);
    key_int(w, "n_out_max", p->n_out_max);
    key_int(w, "n_seq_max", p->n_seq_max);
    opt_int(w, "n_ctx", p->n_ctx, 0);
    opt_int(w, "n_vocab", p->n_vocab, 0);
    opt_int(w, "n_pos", p->n_pos, 0);
    opt_int(w, "arena_bytes", (int64_t)p->arena_bytes, 0);
    opt_int(w, "local_bytes", (int64_t)p->local_bytes, 0);
    opt_int(w, "scratch_bytes", (int64_t)p->scratch_bytes, 0);
    opt_int(w, "copied_bytes", (int64_t)p->copied_bytes, 0);
    opt_int(w, "table_bytes", (int64_t)p->table_bytes, 0);
    opt_int(w, "interleaved_bytes", (int64_t)p->interleaved_bytes, 0);
    opt_int(w, "mapped_bytes", (int64_t)p->mapped_bytes, 0);
    line_end(w);
}

/* A list of n things, each written by `put`. */
#define PUT_LIST(w, key, n, put, at)                                                               \
    do {                                                                                           \
        json_key(&(w)->j, key);                                                                    \
        json_open(&(w)->j, '[');                                                                   \
        for (int32_t i_ = 0; i_ < (n); i_++)                                                       \
            put(w, &(at)[i_]);                                                                     \
        json_close(&(w)->j, ']');                                                                  \
        line_end(w);                                                                               \
    } while (0)

/* Files and places are known when the steps are written, so they stand behind them. */
static void put_names(writer *w)
{
    VEC(const source *) files = {0};
    VEC(size_t) file_of = {0};
    for (size_t i = 0; i < w->places.n; i++) {
        size_t f = 0;
        while (f < files.n && files.at[f] != w->places.at[i].src)
            f++;
        if (f == files.n)
            VEC_PUSH(&files, w->places.at[i].src);
        VEC_PUSH(&file_of, f);
    }
    json_key(&w->j, "files");
    json_open(&w->j, '[');
    for (size_t i = 0; i < files.n; i++)
        json_str(&w->j, str_of(files.at[i]->name));
    json_close(&w->j, ']');
    json_key(&w->j, "places");
    json_open(&w->j, '[');
    for (size_t i = 0; i < w->places.n; i++) {
        source_place at = source_find(w->places.at[i].src, w->places.at[i].begin);
        json_open(&w->j, '[');
        json_int(&w->j, (int64_t)file_of.at[i]);
        json_int(&w->j, at.line);
        json_int(&w->j, at.column);
        json_close(&w->j, ']');
    }
    json_close(&w->j, ']');
    json_key(&w->j, "kernels");
    json_open(&w->j, '[');
    for (int32_t i = 0; i < w->p->n_kernel; i++)
        json_str(&w->j, str_of(w->p->kernel[i].name));
    json_close(&w->j, ']');
    VEC_FREE(&files);
    VEC_FREE(&file_of);
}

void plan_json(const plan *p, model_hash model, strbuf *out)
{
    writer w = {.j = {.out = out}, .p = p};
    size_t begin = out->n;
    strbuf_add(out, PLAN_FILE_MAGIC "%d" PLAN_FILE_CHECKSUM, PLAN_FILE_VERSION);
    strbuf_fill(out, '0', PLAN_FILE_DIGITS);
    strbuf_put(out, STR("\",\n"));
    w.j.depth = 1; /* the bracket of the head */
    put_limits(&w, model);
    PUT_LIST(&w, "weights", p->n_weight, put_weight, p->weight);
    PUT_LIST(&w, "cells", p->n_cell, put_cell, p->cell);
    PUT_LIST(&w, "outputs", p->n_output, put_output, p->output);
    PUT_LIST(&w, "code", p->n_code, put_code, p->code);
    if (p->const_bytes) {
        key_hex(&w, "consts", p->consts, p->const_bytes);
        line_end(&w);
    }
    PUT_LIST(&w, "buckets", p->n_bucket, put_bucket, p->bucket);
    put_names(&w);
    json_close(&w.j, '}');
    line_end(&w);
    bool sealed = plan_file_seal(out->p + begin, out->n - begin);
    WEFT_ASSERT(sealed);
    VEC_FREE(&w.places);
}
