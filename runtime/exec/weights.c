/* weights.c - views on the checkpoint's tensors, the copies, and rows interleaved for kernels that want them so.
 *
 * A copy is made row by row in the order of the loaded form: gathered where the stored rows are
 * scattered, converted where kernels want f32, regrouped for MXFP4 in Hugging Face's two tensors. */
#include "runtime/exec/weights_impl.h"

#include "kernels/ref/dequant.h"
#include "runtime/base/intmath.h"
#include "runtime/base/mem.h"
#include "runtime/base/memory.h"
#include "runtime/exec/weight_cache.h"
#include <inttypes.h>
#include <stdlib.h>

struct weights {
    const plan *p;
    char *copies;              /* p->copied_bytes */
    weight_cache *interleaved; /* NULL: none */
    const void **table;        /* p->table_bytes */
    const void *at[];          /* [n_weight] */
};

/* ---- finding and checking ---- */

weft_status weights_misfit(weft_diag *dg, const plan_weight *w, const char *why)
{
    return weft_fail(dg, W1501, WEFT_NOWHERE, "weight %s does not fit the checkpoint: %s", w->name,
                     why);
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

/* The bytes at a piece, after checking that all it reaches is inside its tensor. */
static weft_status find_bytes(weft_diag *dg, const plan_weight *w, const plan_piece *piece,
                              const model_file *mf, dtype type, int unit, const char **out_data)
{
    if (piece->tensor < 0 || (size_t)piece->tensor >= model_file_tensor_count(mf))
        return weights_misfit(dg, w, "it has no such tensor");
    const model_tensor *t = model_file_tensor_at(mf, (size_t)piece->tensor);
    size_t reach, end;
    if (t->type != type) {
        weft_status st = weights_misfit(dg, w, "a tensor is stored in another type");
        weft_note(dg, STR_FMT " is %s, the plan expects %s", STR_ARG(t->name),
                  dtype_row_of(t->type)->name, dtype_row_of(type)->name);
        return st;
    }
    if (piece->offset < 0 || piece->rows < 1 || !piece_reach(w, piece->rows, unit, &reach) ||
        !size_add((size_t)piece->offset, reach, &end) || end > t->bytes) {
        weft_status st = weights_misfit(dg, w, "it reaches past the end of a tensor");
        weft_note(dg, STR_FMT " has %zu bytes", STR_ARG(t->name), t->bytes);
        return st;
    }
    *out_data = (const char *)t->data + piece->offset;
    return WEFT_OK;
}

weft_status weights_find_piece(weft_diag *dg, const plan_weight *w, int i, const model_file *mf,
                               piece_view *out)
{
    bool hf = w->stored == DT_MXFP4_HF;
    piece_view v = {.w = w, .rows = w->piece[i].rows};
    WEFT_TRY(find_bytes(dg, w, &w->piece[i], mf, hf ? DT_U8 : w->stored, 1, &v.data));
    if (hf) {
        if (!w->scales || w->scales[i].rows != v.rows)
            return weights_misfit(dg, w, "its scales are missing");
        WEFT_TRY(find_bytes(dg, w, &w->scales[i], mf, DT_U8, HF_BLOCK_BYTES, &v.scales));
    }
    *out = v;
    return WEFT_OK;
}

weft_status weights_check_rows(weft_diag *dg, const plan_weight *w)
{
    int64_t rows = 0;
    for (int i = 0; i < w->n_piece; i++)
        if (w->piece[i].rows < 1 || !i64_add(rows, w->piece[i].rows, &rows))
            return weights_misfit(dg, w, "a piece has no rows");
    return rows == w->dim[0] ? WEFT_OK : weights_misfit(dg, w, "its pieces are not all of it");
}

/* ---- copying ---- */

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

void weights_copy_row(const plan_weight *w, const char *src, const char *scales, char *dst,
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

/* All rows of a piece, one after the other; returns the end of what was written. */
static char *copy_piece(const piece_view *v, char *dst)
{
    const plan_weight *w = v->w;
    int last = w->rank - 1;
    int64_t at[K_AXES_MAX] = {0}, n = last == 0 ? v->rows : w->dim[last];
    size_t row_bytes = 0;
    bool whole = dtype_bytes(w->type, n, &row_bytes);
    WEFT_ASSERT(whole); /* piece_reach found whole blocks */
    for (;;) {
        int64_t offset = 0;
        for (int i = 0; i < last; i++)
            offset += at[i] * w->stride[i];
        weights_copy_row(w, v->data + offset,
                         v->scales ? v->scales + offset / HF_BLOCK_BYTES : NULL, dst, n);
        dst += row_bytes;
        int axis = last - 1;
        while (axis >= 0 && ++at[axis] == (axis == 0 ? v->rows : w->dim[axis]))
            at[axis--] = 0;
        if (axis < 0)
            return dst;
    }
}

/* ---- loading ---- */

static weft_status load_copied(weft_diag *dg, const plan_weight *w, const model_file *mf, char *dst)
{
    if (w->computed) {
        memcpy(dst, w->computed, w->bytes);
        return WEFT_OK;
    }
    WEFT_TRY(weights_check_rows(dg, w));
    char *to = dst;
    for (int i = 0; i < w->n_piece; i++) {
        piece_view v;
        WEFT_TRY(weights_find_piece(dg, w, i, mf, &v));
        to = copy_piece(&v, to);
    }
    WEFT_ASSERT((size_t)(to - dst) == w->bytes);
    return WEFT_OK;
}

/* The address of each index of axis 0 of a weight that stays in place. */
static weft_status load_mapped_table(weft_diag *dg, const plan_weight *w, const model_file *mf,
                                     const void **table)
{
    WEFT_TRY(weights_check_rows(dg, w));
    for (int i = 0; i < w->n_piece; i++) {
        piece_view v;
        WEFT_TRY(weights_find_piece(dg, w, i, mf, &v));
        for (int64_t e = 0; e < v.rows; e++)
            *table++ = v.data + e * w->stride[0];
    }
    return WEFT_OK;
}

static weft_status load_mapped(weft_diag *dg, const plan_weight *w, const model_file *mf,
                               const void **out)
{
    piece_view v;
    WEFT_TRY(weights_check_rows(dg, w));
    WEFT_TRY(weights_find_piece(dg, w, 0, mf, &v));
    *out = v.data;
    return WEFT_OK;
}

size_t weights_block_end(size_t at, size_t bytes)
{
    return (at + bytes + PLAN_ALIGN - 1) / PLAN_ALIGN * PLAN_ALIGN;
}

weft_status weights_cancelled(weft_diag *dg)
{
    return weft_fail(dg, W1412, WEFT_NOWHERE, "loading the weights was cancelled");
}

static weft_status load_all(weft_diag *dg, weights *w, const model_file *mf,
                            const cancel_flag *cancel)
{
    size_t copied = 0, tabled = 0, interleaved = 0;
    for (int32_t i = 0; i < w->p->n_weight; i++) {
        if (cancel_asked(cancel))
            return weights_cancelled(dg);
        const plan_weight *pw = &w->p->weight[i];
        const void **table = pw->n_table ? w->table + tabled / sizeof *w->table : NULL;
        char *dst = NULL;
        if (pw->mode == WEIGHT_INTERLEAVED)
            dst = weight_cache_data(w->interleaved) + interleaved;
        else if (pw->mode == WEIGHT_COPIED)
            dst = w->copies + copied;
        tabled = weights_block_end(tabled, (size_t)pw->n_table * sizeof *w->table);
        if (pw->mode == WEIGHT_COPIED)
            copied = weights_block_end(copied, pw->bytes);
        if (pw->mode == WEIGHT_INTERLEAVED)
            interleaved = weights_block_end(interleaved, pw->bytes);
        WEFT_ASSERT(tabled <= w->p->table_bytes && copied <= w->p->copied_bytes &&
                    interleaved <= w->p->interleaved_bytes);

        if (pw->mode != WEIGHT_MAPPED) {
            if (pw->mode == WEIGHT_COPIED)
                WEFT_TRY(load_copied(dg, pw, mf, dst));
            w->at[i] = dst;
            for (int64_t e = 0; e < pw->n_table; e++)
                table[e] = dst + (size_t)e * (pw->bytes / (size_t)pw->n_table);
        } else if (pw->n_table) {
            WEFT_TRY(load_mapped_table(dg, pw, mf, table));
        } else {
            WEFT_TRY(load_mapped(dg, pw, mf, &w->at[i]));
        }
        if (pw->n_table)
            w->at[i] = table;
    }
    return WEFT_OK;
}

/* NULL for nothing. */
static bool alloc_block(size_t bytes, void **out_p)
{
    *out_p = bytes ? mem_try_aligned(PLAN_ALIGN, bytes) : NULL;
    return bytes == 0 || *out_p;
}

static size_t own_bytes(const plan *p)
{
    return sizeof(weights) + (size_t)p->n_weight * sizeof(void *);
}

int weights_threads(const weights_options *opt)
{
    return opt && opt->threads > 0 ? opt->threads : 1;
}

/* Interleaved weights, from the last time or made now. */
static weft_status load_interleaved(weft_diag *dg, weights *w, const model_file *mf,
                                    const weights_options *opt)
{
    bool filled;
    cache_options how = {.keep = false};
    if (opt)
        how = (cache_options){.keep = opt->use_cache,
                              .dir = opt->cache_dir,
                              .bytes_max = opt->cache_bytes_max,
                              .threads = weights_threads(opt),
                              .check_all = opt->check_cache,
                              .cancel = opt->cancel};
    WEFT_TRY(weight_cache_open(dg, w->p, mf, &how, &w->interleaved, &filled));
    if (opt && opt->interleaved_max && !weight_cache_is_file(w->interleaved) &&
        w->p->interleaved_bytes > opt->interleaved_max) {
        weft_status status =
            weft_fail(dg, W0902, WEFT_NOWHERE,
                      "repacked weights take %zu bytes of memory, since no file of the weight "
                      "cache holds them; there is room for %zu",
                      w->p->interleaved_bytes, opt->interleaved_max);
        weft_note(dg, "with no_repack weights are used as the model file has them");
        return status;
    }
    if (filled)
        return WEFT_OK;
    WEFT_TRY(weights_interleave(dg, w->p, mf, opt, weight_cache_data(w->interleaved)));
    return weight_cache_publish(dg, w->interleaved);
}

weft_status weights_create(weft_diag *dg, const plan *p, const model_file *mf,
                           const weights_options *opt, weights **out_w)
{
    weights *w = mem_alloc(own_bytes(p));
    void *copies, *table = NULL;
    bool fits = alloc_block(p->copied_bytes, &copies) && alloc_block(p->table_bytes, &table);
    w->p = p;
    w->copies = copies;
    w->interleaved = NULL;
    w->table = table;
    weft_status status = WEFT_OK;
    if (!fits) {
        memory_room room = memory_available("");
        status = weft_fail(dg, W0902, WEFT_NOWHERE,
                           "%zu bytes for copied weights cannot be allocated: %" PRIu64
                           " are available %s",
                           p->copied_bytes + p->table_bytes, room.bytes, room.within);
    }
    if (status == WEFT_OK && p->interleaved_bytes)
        status = load_interleaved(dg, w, mf, opt);
    if (status == WEFT_OK)
        status = load_all(dg, w, mf, opt ? opt->cancel : NULL);
    if (status == WEFT_OK && p->interleaved_bytes)
        model_file_let_go(mf); /* what was interleaved is not read in place any more */
    if (status == WEFT_OK)
        *out_w = w;
    else
        weights_destroy(w);
    return status;
}

void weights_destroy(weights *w)
{
    if (!w)
        return;
    mem_free(w->copies);
    weight_cache_close(w->interleaved);
    mem_free(w->table);
    mem_free(w);
}

weft_status weights_check(weft_diag *dg, const weights *w)
{
    return w->interleaved ? weight_cache_check(dg, w->interleaved) : WEFT_OK;
}

const void *weights_at(const weights *w, int32_t i)
{
    WEFT_ASSERT(i >= 0 && i < w->p->n_weight);
    return w->at[i];
}

bool weights_cache_mapped(const weights *w)
{
    return w->interleaved && weight_cache_is_file(w->interleaved);
}

size_t weights_table_bytes(const plan *p)
{
    return p->table_bytes + own_bytes(p);
}
