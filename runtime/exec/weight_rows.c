/* weight_rows.c - finding, bounds, and rows made one by one: gathered where the stored ones are scattered,
 * converted where kernels want f32, regrouped for MXFP4 in Hugging Face's two tensors, interleaved. */
#include "runtime/exec/weight_rows.h"

#include "kernels/ref/dequant.h"
#include "runtime/base/checksum.h"
#include "runtime/base/intmath.h"
#include "runtime/base/mem.h"

enum { HF_BLOCK_BYTES = 16, HF_BLOCK_ELEMS = 32 }; /* MXFP4_HF: and one byte of scale */

/* ---- finding and checking ---- */

weft_status weight_misfit(weft_diag *dg, const plan_weight *w, const char *why)
{
    return weft_fail(dg, W1501, WEFT_NOWHERE, "weight %s does not fit the checkpoint: %s", w->name,
                     why);
}

weft_status weight_cancelled(weft_diag *dg)
{
    return weft_fail(dg, W1412, WEFT_NOWHERE, "loading the weights was cancelled");
}

size_t weight_block_end(size_t at, size_t bytes)
{
    return (at + bytes + PLAN_ALIGN - 1) / PLAN_ALIGN * PLAN_ALIGN;
}

weft_status weight_check(weft_diag *dg, const plan_weight *w)
{
    int64_t rows = 0;
    for (int i = 0; i < w->n_piece; i++)
        if (w->piece[i].rows < 1 || !i64_add(rows, w->piece[i].rows, &rows))
            return weight_misfit(dg, w, "a piece has no rows");
    return rows == w->dim[0] ? WEFT_OK : weight_misfit(dg, w, "its pieces are not all of it");
}

/* Bytes of n elements along the last axis, in the tensor that holds the numbers themselves. */
static bool run_bytes(const plan_weight *w, int64_t n, size_t *out_bytes)
{
    if (w->stored != DT_MXFP4_HF)
        return dtype_bytes(w->stored, n, out_bytes);
    *out_bytes = (size_t)n / HF_BLOCK_ELEMS * HF_BLOCK_BYTES;
    return n >= 0 && n % HF_BLOCK_ELEMS == 0;
}

/* How far a piece reaches from its first byte, with all strides divided by `unit`. */
static bool piece_reach(const plan_weight *w, int64_t rows, int unit, size_t *out_bytes)
{
    size_t reach, more;
    int last = w->rank - 1;
    int64_t n_last = last == 0 ? rows : w->dim[last];
    bool blocks = dtype_row_of(w->stored)->elems > 1;
    int64_t step = w->stride[last];
    if (!run_bytes(w, blocks ? n_last : 1, &reach) || step < 0)
        return false;
    reach /= (size_t)unit;
    for (int i = 0; i <= last; i++) {
        int64_t n = i == 0 ? rows : w->dim[i];
        if (i == last && blocks)
            break;
        if (n < 1 || w->stride[i] < 0 || w->stride[i] % unit != 0)
            return false;
        if (!size_mul((size_t)(n - 1), (size_t)(w->stride[i] / unit), &more) ||
            !size_add(reach, more, &reach))
            return false;
    }
    *out_bytes = reach;
    return true;
}

bool weight_reach(const plan_weight *w, int i, size_t *out_bytes)
{
    return piece_reach(w, w->piece[i].rows, 1, out_bytes);
}

/* The bytes at a piece, after checking that all it reaches is inside its tensor. */
static weft_status find_bytes(weft_diag *dg, const plan_weight *w, const plan_piece *piece,
                              const weight_source *src, dtype type, int unit, const char **out_data,
                              size_t *out_bytes)
{
    if (piece->tensor < 0 || (size_t)piece->tensor >= src->kind->count(src))
        return weight_misfit(dg, w, "it has no such tensor");
    weight_tensor t = src->kind->tensor(src, (size_t)piece->tensor);
    size_t reach, end;
    if (t.type != type) {
        weft_status st = weight_misfit(dg, w, "a tensor is stored in another type");
        weft_note(dg, STR_FMT " is %s, the plan expects %s", STR_ARG(t.name),
                  dtype_row_of(t.type)->name, dtype_row_of(type)->name);
        return st;
    }
    if (piece->offset < 0 || piece->rows < 1 || !piece_reach(w, piece->rows, unit, &reach) ||
        !size_add((size_t)piece->offset, reach, &end) || end > t.bytes) {
        weft_status st = weight_misfit(dg, w, "it reaches past the end of a tensor");
        weft_note(dg, STR_FMT " has %zu bytes", STR_ARG(t.name), t.bytes);
        return st;
    }
    *out_data = (const char *)t.data + piece->offset;
    *out_bytes = reach;
    return WEFT_OK;
}

/* How many rows a piece is made into, and of what size. */
static weft_status size_rows(weft_diag *dg, int64_t axis_0, weight_piece *v)
{
    const plan_weight *w = v->w;
    int last = w->rank - 1;
    v->n = last == 0 ? axis_0 : w->dim[last];
    v->rows = last == 0 ? 1 : axis_0;
    for (int axis = 1; axis < last; axis++)
        v->rows *= w->dim[axis];
    bool whole = dtype_bytes(w->type, v->n, &v->row_bytes);
    WEFT_ASSERT(whole); /* piece_reach found whole blocks */
    if (w->layout == LAYOUT_STORED)
        return WEFT_OK;
    if (v->rows % LAYOUT_GROUP != 0) /* no group has rows of two pieces */
        return weight_misfit(dg, w, "its pieces are not groups of rows");
    v->rows /= LAYOUT_GROUP;
    v->row_bytes = (size_t)w->pitch;
    return WEFT_OK;
}

weft_status weight_find(weft_diag *dg, const plan_weight *w, int i, const weight_source *src,
                        weight_piece *out)
{
    bool hf = w->stored == DT_MXFP4_HF;
    int64_t rows = w->piece[i].rows;
    weight_piece v = {.w = w};
    size_t scales;
    WEFT_TRY(find_bytes(dg, w, &w->piece[i], src, hf ? DT_U8 : w->stored, 1, &v.data, &v.bytes));
    if (hf) {
        if (!w->scales || w->scales[i].rows != rows)
            return weight_misfit(dg, w, "its scales are missing");
        WEFT_TRY(find_bytes(dg, w, &w->scales[i], src, DT_U8, HF_BLOCK_BYTES, &v.scales, &scales));
    }
    WEFT_TRY(size_rows(dg, rows, &v));
    *out = v;
    return WEFT_OK;
}

/* ---- making rows ---- */

/* GGUF has number j of a block in the low half of byte j and number j + 16 in its high half; Hugging
 * Face has numbers 2j and 2j + 1 there. The codes and the scale mean the same. */
static void join_mxfp4(const uint8_t *blocks, const uint8_t *scales, uint8_t *dst, int64_t n)
{
    for (int64_t b = 0; b < n / HF_BLOCK_ELEMS; b++, blocks += HF_BLOCK_BYTES) {
        *dst++ = scales[b];
        for (int j = 0; j < HF_BLOCK_BYTES; j++) {
            int lo = blocks[j / 2] >> (j % 2 * 4) & 15;
            int hi = blocks[j / 2 + HF_BLOCK_BYTES / 2] >> (j % 2 * 4) & 15;
            *dst++ = (uint8_t)(lo | hi << 4);
        }
    }
}

/* One row of n numbers from src to dst, in the type that the plan wants. */
static void copy_row(const plan_weight *w, const char *src, const char *scales, char *dst,
                     int64_t n)
{
    const dtype_row *stored = dtype_row_of(w->stored);
    int64_t step = w->stride[w->rank - 1];
    size_t bytes;
    if (w->stored == DT_MXFP4_HF) {
        if (w->type == DT_F32)
            dequant_row_mxfp4_hf(src, scales, (float *)(void *)dst, n);
        else
            join_mxfp4((const uint8_t *)src, (const uint8_t *)scales, (uint8_t *)dst, n);
    } else if (stored->elems > 1 || step == (int64_t)stored->bytes) {
        if (w->type == w->stored && dtype_bytes(w->stored, n, &bytes))
            memcpy(dst, src, bytes);
        else
            dequant_row(w->stored, src, (float *)(void *)dst, n);
    } else {
        for (int64_t i = 0; i < n; i++, src += step)
            if (w->type == w->stored)
                memcpy(dst + (size_t)i * stored->bytes, src, stored->bytes);
            else
                dequant_row(w->stored, src, (float *)(void *)dst + i, 1);
    }
}

/* Where stored row r of a piece begins. */
static int64_t row_offset(const plan_weight *w, int64_t r)
{
    int64_t offset = 0;
    for (int axis = w->rank - 2; axis > 0; axis--) {
        offset += r % w->dim[axis] * w->stride[axis];
        r /= w->dim[axis];
    }
    return w->rank > 1 ? offset + r * w->stride[0] : 0;
}

static void make_row(const weight_piece *v, int64_t r, char *to)
{
    int64_t offset = row_offset(v->w, r);
    copy_row(v->w, v->data + offset, v->scales ? v->scales + offset / HF_BLOCK_BYTES : NULL, to,
             v->n);
}

static void make_group(const weight_piece *v, int64_t g, char *to, char *gather)
{
    const plan_weight *w = v->w;
    bool direct = w->stored == w->type && dtype_row_of(w->stored)->elems > 1;
    const void *rows[LAYOUT_GROUP];
    for (int i = 0; i < LAYOUT_GROUP; i++) {
        int64_t r = g * LAYOUT_GROUP + i;
        rows[i] = v->data + row_offset(w, r);
        if (direct)
            continue;
        char *row = gather + (size_t)i * (v->row_bytes / LAYOUT_GROUP);
        make_row(v, r, row);
        rows[i] = row;
    }
    layout_interleave(w->layout, w->type, rows, v->n, to);
}

void weight_make(const weight_piece *v, int64_t first, int64_t n, char *to, char *gather)
{
    for (int64_t r = first; r < first + n; r++, to += v->row_bytes)
        if (v->w->layout == LAYOUT_STORED)
            make_row(v, r, to);
        else
            make_group(v, r, to, gather);
}

/* ---- a sample ---- */

/* Two blocks of the largest type, and a step of four columns that is not whole. */
enum { SAMPLE_COLS = 512, SAMPLE_COLS_ODD = 11 };
enum { SAMPLE_BYTES = LAYOUT_GROUP * SAMPLE_COLS * sizeof(float) };

static void fill_sample(char *to, size_t bytes)
{
    uint32_t seed = 1;
    for (size_t i = 0; i < bytes; i++, seed = seed * 1664525u + 1013904223u)
        to[i] = (char)(seed >> 24);
}

uint64_t weight_make_sample(klayout l, dtype type, dtype stored)
{
    bool hf = stored == DT_MXFP4_HF && type == DT_MXFP4;
    if (l == LAYOUT_STORED || !layout_has(l, type) || (stored != type && !hf))
        return 0;
    bool blocks = dtype_row_of(type)->elems > 1;
    int64_t n = blocks ? SAMPLE_COLS : SAMPLE_COLS_ODD;
    size_t row = 0;
    bool whole = dtype_bytes(type, n, &row);
    WEFT_ASSERT(whole && row * LAYOUT_GROUP <= SAMPLE_BYTES);
    size_t stored_row = hf ? (size_t)n / HF_BLOCK_ELEMS * HF_BLOCK_BYTES : row;
    int64_t step = blocks ? 0 : (int64_t)dtype_row_of(stored)->bytes;
    const plan_weight w = {.layout = l,
                           .type = type,
                           .stored = stored,
                           .rank = 2,
                           .dim = {LAYOUT_GROUP, n},
                           .stride = {(int64_t)stored_row, step},
                           .pitch = (int64_t)(row * LAYOUT_GROUP)};
    char *data = mem_alloc(4 * SAMPLE_BYTES), *scales = data + SAMPLE_BYTES;
    char *gather = scales + SAMPLE_BYTES, *to = gather + SAMPLE_BYTES;
    fill_sample(data, 2 * SAMPLE_BYTES);
    weight_piece v = {.w = &w,
                      .data = data,
                      .scales = hf ? scales : NULL,
                      .n = n,
                      .rows = 1,
                      .row_bytes = (size_t)w.pitch};
    weight_make(&v, 0, 1, to, gather);
    uint64_t sum = checksum(to, row * LAYOUT_GROUP);
    mem_free(data);
    return sum;
}
