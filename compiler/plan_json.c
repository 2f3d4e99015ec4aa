/* plan_json.c - a plan as JSON, to be looked at: what the tables of plan_fields.c say. Plan files are plan_write.c's.
 *
 *     {"weft_plan": version of plan files,
 *      "weft": version, "arch", "backend", "level", "hash": of the checkpoint, "model", "entry", .. limits and sizes,
 *      "weights": [..], "cells": [..], "outputs": [..], "code": [[op, to, at, at, at, f, f]],
 *      "consts": hexadecimal bytes,
 *      "buckets": [{.., "outputs": [operand], "items": [[first, steps, phase, per thread, grain]], "edges": [[from, to]],
 *                   "steps": [{"kernel": its number, "in": [operand], "out": [operand], ..}]}],
 *      "files": [name], "places": [[file, line, column]], "kernels": [name]}
 *
 * An operand is [space, id, offset, type], or null. What is the default is left out, also at the end of a list. */
#include "compiler/plan_file_impl.h"

#include "runtime/base/vec.h"
#include <inttypes.h>
#include <math.h>

typedef struct {
    json_writer j;
    const plan *p;
    plan_places places;
} writer;

static void put_record(writer *w, const plan_record *rec, const char *base);

/* ---- values ---- */

/* What JSON has no number for is a string. */
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

static double float_of(const plan_field *f, const void *at)
{
    return f->bytes == sizeof(float) ? (double)*(const float *)at : *(const double *)at;
}

static void put_value(writer *w, const plan_field *f, const void *at)
{
    if (f->kind == FIELD_BOOL)
        json_bool(&w->j, *(const bool *)at);
    else if (f->kind == FIELD_FLOAT)
        put_float(w, float_of(f, at));
    else if (f->kind == FIELD_TEXT)
        json_str(&w->j, str_of(*(const char *const *)at));
    else if (f->kind == FIELD_WORD)
        json_str(&w->j, str_of(f->words[plan_field_int(f->bytes, at)]));
    else if (f->kind == FIELD_TYPE)
        json_str(&w->j, str_of(dtype_row_of(*(const dtype *)at)->name));
    else if (f->kind == FIELD_PLACE)
        json_int(&w->j, (int64_t)plan_place_of(&w->places, at));
    else
        json_int(&w->j, plan_field_int(f->bytes, at) - f->less);
}

/* May it be left out? */
static bool is_default(const plan_field *f, const void *at)
{
    if (f->must)
        return false;
    if (f->kind == FIELD_FLOAT)
        return float_of(f, at) == 0 && !signbit(float_of(f, at));
    if (f->kind == FIELD_PLACE)
        return !((const weft_loc *)at)->src;
    return plan_field_int(f->bytes, at) == f->otherwise;
}

/* ---- lists ---- */

/* How many values these fields have, without the defaults at their end. */
static size_t count_values(const plan_field *field, size_t n_field, const char *base)
{
    size_t n = 0, end = 0;
    for (const plan_field *f = field; f < field + n_field; f++)
        for (size_t i = 0; i < f->n; i++) {
            n++;
            if (!is_default(f, base + f->at + i * f->bytes))
                end = n;
        }
    return end;
}

static void put_values(writer *w, const plan_field *f, size_t n, const char *base)
{
    json_open(&w->j, '[');
    for (; n > 0; f++)
        for (size_t i = 0; i < f->n && n > 0; i++, n--)
            put_value(w, f, base + f->at + i * f->bytes);
    json_close(&w->j, ']');
}

/* How many items a field has that is a list of records, of bytes or of numbers. */
static size_t count_items(writer *w, const plan_field *f, const char *base)
{
    if (f->kind == FIELD_INT || f->kind == FIELD_FLOAT)
        return count_values(f, 1, base);
    if (f->count_bytes)
        return (size_t)plan_field_int(f->count_bytes,
                                      (f->of_plan ? (const char *)w->p : base) + f->count);
    size_t n = f->n;
    while (n > 0 &&
           count_values(f->of->field, f->of->n_field, base + f->at + (n - 1) * f->of->bytes) == 0)
        n--;
    return n;
}

static void put_hex(writer *w, const unsigned char *p, size_t n)
{
    static const char digits[] = "0123456789abcdef";
    strbuf hex = {0};
    for (size_t i = 0; i < n; i++) {
        strbuf_putc(&hex, digits[p[i] >> 4]);
        strbuf_putc(&hex, digits[p[i] & 15]);
    }
    json_str(&w->j, strbuf_view(&hex));
    strbuf_free(&hex);
}

/* ---- records ---- */

static void put_field(writer *w, const plan_field *f, const char *base)
{
    bool one = !plan_field_is_list(f), apart = f->kind == FIELD_LIST || f->kind == FIELD_BYTES;
    const char *at = base + f->at;
    size_t n = one ? 1 : count_items(w, f, base);
    if (apart)
        memcpy(&at, at, sizeof at);
    if (one ? is_default(f, at) : !f->must && (n == 0 || !at))
        return;
    if (apart && base == (const char *)w->p)
        strbuf_putc(w->j.out, '\n'); /* the lists of the plan itself begin a line */
    json_key(&w->j, f->key);
    if (one)
        put_value(w, f, at);
    else if (f->kind == FIELD_BYTES)
        put_hex(w, (const unsigned char *)at, n);
    else if (!f->of)
        put_values(w, f, n, base);
    else {
        json_open(&w->j, '[');
        for (size_t i = 0; i < n; i++)
            put_record(w, f->of, at + i * f->of->bytes);
        json_close(&w->j, ']');
    }
}

static void put_fields(writer *w, const plan_record *rec, const void *base)
{
    for (size_t i = 0; i < rec->n_field; i++)
        put_field(w, &rec->field[i], base);
}

static void put_record(writer *w, const plan_record *rec, const char *base)
{
    const plan_field *first = rec->field;
    if (rec->form == FORM_VALUE)
        put_value(w, first, base + first->at);
    else if (rec->null && plan_field_int(first->bytes, base + first->at) == 0)
        json_null(&w->j);
    else if (rec->form == FORM_ITEMS)
        put_values(w, first, count_values(first, rec->n_field, base), base);
    else {
        json_open(&w->j, '{');
        put_fields(w, rec, base);
        json_close(&w->j, '}');
    }
    if (rec->line)
        strbuf_putc(w->j.out, '\n');
}

/* ---- the whole ---- */

void plan_json(const plan *p, model_hash model, strbuf *out)
{
    writer w = {.j = {.out = out}, .p = p};
    char hash[PLAN_HASH_MAX];
    plan_file_head head = plan_head_of(p, model, hash);
    plan_file_tail tail;
    json_open(&w.j, '{');
    json_key_int(&w.j, "weft_plan", PLAN_FILE_VERSION);
    put_fields(&w, &plan_head_record, &head);
    put_fields(&w, &plan_body_record, p);
    strbuf_putc(out, '\n');
    /* Files and places are known when the steps are written, so they stand behind them. */
    plan_tail_make(p, &w.places, &tail);
    put_fields(&w, &plan_tail_record, &tail);
    plan_tail_free(&tail);
    json_close(&w.j, '}');
    strbuf_putc(out, '\n');
    VEC_FREE(&w.places);
}
