/* plan_read.c - a plan file into a plan: the head, whom it is for, the tables, then the proof.
 *
 * The head is looked at as text, before the rest is taken for JSON, so that damage is told as damage. */
#include "compiler/plan_file_impl.h"

#include "compiler/plan_check.h"
#include "compiler/target.h"
#include "runtime/formats/json_read.h"
#include <inttypes.h>
#include <stdlib.h>

/* What bounds the memory of reading, together with json_read's 200 bytes a value. */
enum {
    VALUES_MAX = 4 << 20,
    DEPTH_MAX = 16,
    KERNELS_MAX = 1 << 12,
    WEIGHTS_MAX = 1 << 14,
    CELLS_MAX = 1 << 16,
    OUTPUTS_MAX = 1 << 16,
    CODE_MAX = 1 << 20,
};

/* ---- the head ---- */

/* Where the digits of the checksum begin, and the version; false: this is no plan file. */
static bool find_head(str text, long *out_version, size_t *out_digits)
{
    str magic = STR(PLAN_FILE_MAGIC), sum = STR(PLAN_FILE_CHECKSUM);
    size_t at = magic.n;
    long version = 0;
    if (!str_starts(text, magic))
        return false;
    for (; at < text.n && text.p[at] >= '0' && text.p[at] <= '9' && version < 1000000; at++)
        version = version * 10 + (text.p[at] - '0');
    *out_version = version;
    *out_digits = at + sum.n;
    return at > magic.n && at <= text.n && str_starts((str){text.p + at, text.n - at}, sum) &&
           text.n - at - sum.n >= PLAN_FILE_DIGITS;
}

static void checksum_of(str text, size_t digits, char *out)
{
    size_t from = digits + PLAN_FILE_DIGITS;
    snprintf(out, PLAN_FILE_DIGITS + 1, "%016" PRIx64,
             str_hash((str){text.p + from, text.n - from}));
}

bool plan_file_seal(char *text, size_t n)
{
    long version;
    size_t digits;
    char sum[PLAN_FILE_DIGITS + 1];
    if (!find_head((str){text, n}, &version, &digits))
        return false;
    checksum_of((str){text, n}, digits, sum);
    memcpy(text + digits, sum, PLAN_FILE_DIGITS);
    return true;
}

static weft_status check_head(plan_reader *r, str text)
{
    long version = 0;
    size_t digits;
    char sum[PLAN_FILE_DIGITS + 1];
    bool whole = find_head(text, &version, &digits);
    if (!whole && !str_starts(text, STR(PLAN_FILE_MAGIC)))
        return weft_fail(r->dg, W1504, WEFT_NOWHERE, "%s is not a plan file", r->name);
    if (version != PLAN_FILE_VERSION)
        return weft_fail(r->dg, W1504, WEFT_NOWHERE,
                         "%s is a plan file of version %ld; this Weft reads version %d", r->name,
                         version, PLAN_FILE_VERSION);
    if (!whole)
        return plan_damaged(r, "it has no checksum");
    checksum_of(text, digits, sum);
    if (memcmp(sum, text.p + digits, PLAN_FILE_DIGITS) != 0)
        return plan_damaged(r, "its checksum is %.*s, its bytes give %s", PLAN_FILE_DIGITS,
                            text.p + digits, sum);
    return WEFT_OK;
}

/* The back end that it was made for, if this machine has it and WEFT_CPU allows it. */
static weft_status find_backend(plan_reader *r)
{
    const char *level = r->p->level, *cap = getenv("WEFT_CPU");
    int rank = backend_cpu_rank(level);
    if (strcmp(r->p->backend, backend_reference()->name) != 0 || rank < 0)
        return weft_fail(r->dg, W1506, WEFT_NOWHERE,
                         "%s was made for %s kernels of a %s, which this Weft does not know",
                         r->name, level, r->p->backend);
    const backend *best;
    WEFT_TRY(backend_cpu(r->dg, false, &best));
    if (cap && *cap && rank > backend_cpu_rank(best->level))
        return weft_fail(r->dg, W1506, WEFT_NOWHERE,
                         "%s was made for %s kernels; WEFT_CPU allows those up to %s", r->name,
                         level, best->level);
    r->be = backend_cpu_find(level);
    if (r->be)
        return WEFT_OK;
    strbuf lacks = {0};
    backend_cpu_lacks(level, &lacks);
    weft_status st =
        weft_fail(r->dg, W1506, WEFT_NOWHERE, "%s was made for %s kernels; this processor lacks %s",
                  r->name, level, lacks.p);
    strbuf_free(&lacks);
    return st;
}

/* Version, machine and model. */
static weft_status check_fit(plan_reader *r, const value *v, model_hash model)
{
    const char *weft, *arch, *hash;
    char want[40];
    WEFT_TRY(plan_get_str(r, v, "weft", &weft));
    WEFT_TRY(plan_get_str(r, v, "arch", &arch));
    WEFT_TRY(plan_get_str(r, v, "backend", &r->p->backend));
    WEFT_TRY(plan_get_str(r, v, "level", &r->p->level));
    WEFT_TRY(plan_get_str(r, v, "hash", &hash));
    WEFT_TRY(plan_get_str(r, v, "model", &r->p->model));
    WEFT_TRY(plan_get_str(r, v, "entry", &r->p->entry));
    if (strcmp(weft, WEFT_VERSION) != 0)
        return weft_fail(r->dg, W1504, WEFT_NOWHERE, "%s was made by Weft %s, this is %s", r->name,
                         weft, WEFT_VERSION);
    snprintf(want, sizeof want, "%016" PRIx64 "%016" PRIx64, model.hi, model.lo);
    if (strcmp(hash, want) != 0)
        return weft_fail(r->dg, W1505, WEFT_NOWHERE,
                         "%s was made for another checkpoint (a %s, %s) than this one (%s)",
                         r->name, r->p->model, hash, want);
    if (strcmp(arch, plan_arch()) != 0)
        return weft_fail(r->dg, W1506, WEFT_NOWHERE, "%s was made for %s, this machine is %s",
                         r->name, arch, plan_arch());
    return find_backend(r);
}

/* ---- tables ---- */

static weft_status read_limits(plan_reader *r, const value *v)
{
    plan *p = r->p;
    WEFT_TRY(plan_get_type(r, v, "kv", &p->kv));
    WEFT_TRY(plan_get_bool(r, v, "deterministic", &p->deterministic));
    WEFT_TRY(plan_get_int(r, v, "n_tok_max", 1, INT32_MAX, &p->n_tok_max));
    WEFT_TRY(plan_get_int(r, v, "n_out_max", 0, INT32_MAX, &p->n_out_max));
    WEFT_TRY(plan_get_int(r, v, "n_seq_max", 1, INT32_MAX, &p->n_seq_max));
    WEFT_TRY(plan_get_int_or(r, v, "n_ctx", 0, INT32_MAX, 0, &p->n_ctx));
    WEFT_TRY(plan_get_int_or(r, v, "n_vocab", 0, INT32_MAX, 0, &p->n_vocab));
    WEFT_TRY(plan_get_int_or(r, v, "n_pos", 0, INT32_MAX, 0, &p->n_pos));
    WEFT_TRY(plan_get_size(r, v, "arena_bytes", &p->arena_bytes));
    WEFT_TRY(plan_get_size(r, v, "local_bytes", &p->local_bytes));
    WEFT_TRY(plan_get_size(r, v, "scratch_bytes", &p->scratch_bytes));
    WEFT_TRY(plan_get_size(r, v, "copied_bytes", &p->copied_bytes));
    WEFT_TRY(plan_get_size(r, v, "table_bytes", &p->table_bytes));
    WEFT_TRY(plan_get_size(r, v, "interleaved_bytes", &p->interleaved_bytes));
    WEFT_TRY(plan_get_size(r, v, "mapped_bytes", &p->mapped_bytes));
    return plan_get_hex(r, v, "consts", &p->consts, &p->const_bytes);
}

static weft_status read_kernels(plan_reader *r, const value *v)
{
    const value *list;
    WEFT_TRY(plan_get_array(r, v, "kernels", &list));
    size_t n = value_count(list);
    if (n > KERNELS_MAX)
        return plan_damaged(r, "it names %zu kernels", n);
    plan_kernel *kernel = ARENA_ARRAY(r->a, plan_kernel, n);
    for (size_t i = 0; i < n; i++) {
        value name;
        WEFT_TRY(plan_item_of(r, list, i, VALUE_STR, &name));
        if (!r->be->find(r->be, arena_str(r->a, name.as.s).p, &kernel[i]))
            return weft_fail(r->dg, W1506, WEFT_NOWHERE,
                             "%s asks for a kernel " STR_FMT ", which %s kernels do not have",
                             r->name, STR_ARG(name.as.s), r->be->level);
    }
    r->p->kernel = kernel;
    r->p->n_kernel = (int32_t)n;
    return WEFT_OK;
}

static weft_status read_pieces(plan_reader *r, const value *v, const char *key,
                               const plan_piece **out, size_t *out_n)
{
    const value *list;
    WEFT_TRY(plan_get_array(r, v, key, &list));
    size_t n = value_count(list);
    *out_n = n;
    if (n == 0)
        return WEFT_OK;
    plan_piece *piece = ARENA_ARRAY(r->a, plan_piece, n);
    for (size_t i = 0; i < n; i++) {
        int64_t x[3] = {0};
        value item;
        WEFT_TRY(plan_item_of(r, list, i, VALUE_ARRAY, &item));
        for (size_t k = 0; k < value_count(&item) && k < 3; k++)
            WEFT_TRY(plan_item_int(r, &item, k, 0, k == 2 ? INT32_MAX : INT64_MAX, &x[k]));
        piece[i] = (plan_piece){.rows = x[0], .offset = x[1], .tensor = (int32_t)x[2]};
    }
    *out = piece;
    return WEFT_OK;
}

static weft_status read_weight(plan_reader *r, const value *v, plan_weight *w)
{
    const value *dims;
    const void *computed;
    int64_t layout;
    int mode;
    size_t n_piece, n_scale, computed_bytes;
    WEFT_TRY(plan_get_str(r, v, "name", &w->name));
    WEFT_TRY(plan_get_word(r, v, "mode", plan_mode_names, &mode));
    WEFT_TRY(plan_get_type(r, v, "stored", &w->stored));
    WEFT_TRY(plan_get_type(r, v, "type", &w->type));
    WEFT_TRY(plan_get_array(r, v, "dim", &dims));
    WEFT_TRY(plan_get_ints(r, v, "dim", w->dim, K_AXES_MAX));
    WEFT_TRY(plan_get_ints(r, v, "stride", w->stride, K_AXES_MAX));
    WEFT_TRY(plan_get_int(r, v, "rows", 1, INT64_MAX, &w->rows));
    WEFT_TRY(plan_get_int(r, v, "pitch", 0, INT64_MAX, &w->pitch));
    WEFT_TRY(plan_get_int_or(r, v, "layout", 0, LAYOUT_COUNT - 1, 0, &layout));
    WEFT_TRY(plan_get_int_or(r, v, "table", 0, INT32_MAX, 0, &w->n_table));
    WEFT_TRY(plan_get_size(r, v, "bytes", &w->bytes));
    WEFT_TRY(read_pieces(r, v, "pieces", &w->piece, &n_piece));
    WEFT_TRY(read_pieces(r, v, "scales", &w->scales, &n_scale));
    WEFT_TRY(plan_get_hex(r, v, "computed", &computed, &computed_bytes));
    if (n_scale != 0 && n_scale != n_piece)
        return plan_damaged(r, "it has %zu pieces and %zu scales", n_piece, n_scale);
    if (computed && computed_bytes != w->bytes)
        return plan_damaged(r, "it has %zu bytes of values instead of %zu", computed_bytes,
                            w->bytes);
    w->mode = (plan_weight_mode)mode;
    w->layout = (klayout)layout;
    w->rank = (int32_t)value_count(dims);
    w->n_piece = (int32_t)n_piece;
    w->computed = computed; /* an arena aligns for any type */
    return WEFT_OK;
}

static weft_status read_cell(plan_reader *r, const value *v, plan_cell *c)
{
    int layout;
    WEFT_TRY(plan_get_str(r, v, "name", &c->name));
    WEFT_TRY(plan_get_bool(r, v, "latent", &c->latent));
    WEFT_TRY(plan_get_int(r, v, "heads", 1, INT32_MAX, &c->heads));
    WEFT_TRY(plan_get_int(r, v, "k", 1, INT32_MAX, &c->k));
    WEFT_TRY(plan_get_int(r, v, "v", 1, INT32_MAX, &c->v));
    WEFT_TRY(plan_get_int_or(r, v, "window", 0, INT32_MAX, 0, &c->window));
    WEFT_TRY(plan_get_word(r, v, "layout", plan_layout_names, &layout));
    c->layout = (plan_cell_layout)layout;
    return plan_get_int_or(r, v, "keep", 0, INT32_MAX, 0, &c->keep);
}

static weft_status read_output(plan_reader *r, const value *v, plan_output *o)
{
    int64_t index;
    int rows;
    WEFT_TRY(plan_get_str(r, v, "name", &o->name));
    WEFT_TRY(plan_get_int_or(r, v, "index", -1, INT32_MAX, -1, &index));
    WEFT_TRY(plan_get_word(r, v, "rows", plan_rows_names, &rows));
    WEFT_TRY(plan_get_int(r, v, "width", 1, INT32_MAX, &o->width));
    o->index = (int32_t)index;
    o->rows = (plan_rows)rows;
    return plan_get_int_or(r, v, "n_row", 0, INT32_MAX, 0, &o->n_row);
}

static weft_status read_code(plan_reader *r, const value *v, kinstr *c)
{
    uint8_t *const to[] = {&c->op, &c->to, &c->at[0], &c->at[1], &c->at[2]};
    double f[2];
    int64_t x;
    for (size_t i = 0; i < 5; i++) {
        WEFT_TRY(plan_item_int(r, v, i, 0, UINT8_MAX, &x));
        *to[i] = (uint8_t)x;
    }
    for (size_t i = 0; i < 2; i++) {
        WEFT_TRY(plan_item_float(r, v, 5 + i, &f[i]));
        c->f[i] = (float)f[i];
    }
    return WEFT_OK;
}

/* A table of the plan: a list of objects (of arrays: code), each read by `read`. */
#define READ_LIST(r, v, key, kind, max, T, read, out, out_n)                                       \
    do {                                                                                           \
        const value *list_;                                                                        \
        WEFT_TRY(plan_get_array(r, v, key, &list_));                                               \
        size_t n_ = value_count(list_);                                                            \
        if (n_ > (max))                                                                            \
            return plan_damaged(r, "`%s` has %zu items", key, n_);                                 \
        T *at_ = ARENA_ARRAY((r)->a, T, n_);                                                       \
        (r)->part = key;                                                                           \
        for (size_t i_ = 0; i_ < n_; i_++) {                                                       \
            value item_;                                                                           \
            (r)->index = (int64_t)i_;                                                              \
            WEFT_TRY(plan_item_of(r, list_, i_, kind, &item_));                                    \
            WEFT_TRY(read(r, &item_, &at_[i_]));                                                   \
        }                                                                                          \
        (r)->part = NULL;                                                                          \
        *(out) = at_;                                                                              \
        *(out_n) = (int32_t)n_;                                                                    \
    } while (0)

static weft_status read_tables(plan_reader *r, const value *v)
{
    plan *p = r->p;
    READ_LIST(r, v, "weights", VALUE_OBJECT, WEIGHTS_MAX, plan_weight, read_weight, &p->weight,
              &p->n_weight);
    READ_LIST(r, v, "cells", VALUE_OBJECT, CELLS_MAX, plan_cell, read_cell, &p->cell, &p->n_cell);
    READ_LIST(r, v, "outputs", VALUE_OBJECT, OUTPUTS_MAX, plan_output, read_output, &p->output,
              &p->n_output);
    READ_LIST(r, v, "code", VALUE_ARRAY, CODE_MAX, kinstr, read_code, &p->code, &p->n_code);
    return WEFT_OK;
}

/* ---- the whole ---- */

static weft_status read_plan(plan_reader *r, const value *v, model_hash model)
{
    if (value_kind_of(v) != VALUE_OBJECT)
        return plan_damaged(r, "it is not an object");
    WEFT_TRY(check_fit(r, v, model));
    WEFT_TRY(read_limits(r, v));
    WEFT_TRY(read_kernels(r, v));
    WEFT_TRY(plan_read_places(r, v));
    WEFT_TRY(read_tables(r, v));
    return plan_read_buckets(r, v);
}

weft_status plan_read(weft_diag *dg, const char *name, str text, model_hash model, arena *a,
                      plan **out_p)
{
    plan_reader r = {.dg = dg, .name = name, .a = a, .p = ARENA_NEW(a, plan), .outer = -1};
    json_limits limits = {.bytes_max = PLAN_FILE_BYTES_MAX,
                          .values_max = VALUES_MAX,
                          .depth_max = DEPTH_MAX,
                          .exact = true};
    value v;
    WEFT_TRY(check_head(&r, text));
    arena *scratch = arena_create();
    weft_status status = json_read(dg, scratch, name, text, limits, &v);
    if (status == WEFT_OK)
        status = read_plan(&r, &v, model);
    arena_destroy(scratch);
    WEFT_TRY(status);
    status = plan_check(dg, r.be, r.p);
    if (status != WEFT_OK) {
        weft_note(dg, "the plan is that of %s", name);
        return status;
    }
    *out_p = r.p;
    return WEFT_OK;
}

weft_status plan_read_file(weft_diag *dg, const char *path, model_hash model, arena *a,
                           plan **out_p)
{
    arena *scratch = arena_create();
    source *src;
    weft_status status = source_open(dg, scratch, path, PLAN_FILE_BYTES_MAX, &src);
    if (status == WEFT_OK)
        status = plan_read(dg, path, src->text, model, a, out_p);
    arena_destroy(scratch);
    return status;
}
