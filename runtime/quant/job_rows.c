/* job_rows.c - one row of a tensor as f32, wherever it comes from. */
#include "kernels/ref/dequant.h"
#include "runtime/quant/job_impl.h"
#include "runtime/quant/job_rows.h"
#include <string.h>

enum { HF_BLOCK_BYTES = 16 }; /* of MXFP4_HF, whose scales are apart */

/* Where row i of the other format lies in this one. Order `half` has all first elements of the pairs before all
 * second ones, `interleaved` has pair after pair. */
static int64_t turned_row(const other_weight *o, int64_t i)
{
    enum { HALF = 1, INTERLEAVED = 2 };
    int here = o->weight->pairs, there = o->pairs;
    if (here == there || here == 0 || there == 0 || o->run <= 0)
        return i;
    int64_t at = i % o->run, half = o->turned / 2;
    if (at >= o->turned)
        return i;
    int64_t from = there == INTERLEAVED ? at % 2 * half + at / 2
                   : at < half          ? 2 * at
                                        : 2 * (at - half) + 1;
    return i - at + from;
}

typedef struct {
    const unsigned char *data, *scales;
    int64_t rest; /* the index within the piece */
} piece_place;

static piece_place find_piece(const model_file *mf, const gweight *w, int64_t i)
{
    int p = 0;
    while (p + 1 < w->n_piece && i >= w->piece[p].rows)
        i -= w->piece[p++].rows;
    const model_tensor *t = model_file_tensor_at(mf, (size_t)w->piece[p].tensor);
    piece_place out = {(const unsigned char *)t->data + w->piece[p].offset, NULL, i};
    if (w->scales) {
        const model_tensor *s = model_file_tensor_at(mf, (size_t)w->scales[p].tensor);
        out.scales = (const unsigned char *)s->data + w->scales[p].offset;
    }
    return out;
}

/* n numbers that lie `stride` bytes apart; 0: in blocks, one behind the other. */
static void read_run(dtype t, const unsigned char *p, const unsigned char *scales, int64_t stride,
                     float *dst, int64_t n)
{
    if (t == DT_MXFP4_HF)
        dequant_row_mxfp4_hf(p, scales, dst, n);
    else if (stride == 0 || stride == (int64_t)dtype_row_of(t)->bytes)
        dequant_row(t, p, dst, n);
    else
        for (int64_t k = 0; k < n; k++)
            dequant_row(t, p + k * stride, dst + k, 1);
}

static void read_vector(const model_file *mf, const other_weight *o, float *dst, float *scratch)
{
    const gweight *w = o->weight;
    int64_t n = w->dim[0];
    for (int64_t i = 0, take; i < n; i += take) {
        piece_place at = find_piece(mf, w, i);
        int64_t held = w->n_piece > 1 ? 1 : n;
        take = held < n - i ? held : n - i;
        read_run(w->type, at.data + at.rest * w->stride[0], at.scales, w->stride[0], scratch + i,
                 take);
    }
    for (int64_t i = 0; i < n; i++)
        dst[i] = scratch[turned_row(o, i)];
}

/* The bias of several weights that GGUF keeps in one tensor. */
static void read_vectors(const model_file *mf, const quant_source *s, float *dst, float *scratch)
{
    for (; s; dst += s->bound->weight->dim[0], s = s->next)
        read_vector(mf, s->bound, dst, scratch);
}

void job_weight_row(const model_file *mf, const other_weight *o, int64_t i, float *dst)
{
    const gweight *w = o->weight;
    int64_t index[GRAPH_RANK_MAX];
    for (int k = w->rank - 2; k >= 0; k--) {
        index[k] = i % w->dim[k];
        i /= w->dim[k];
    }
    index[w->rank - 2] = turned_row(o, index[w->rank - 2]);
    piece_place at = find_piece(mf, w, index[0]);
    int64_t offset = at.rest * w->stride[0];
    for (int k = 1; k < w->rank - 1; k++)
        offset += index[k] * w->stride[k];
    read_run(w->type, at.data + offset, at.scales ? at.scales + offset / HF_BLOCK_BYTES : NULL,
             w->stride[w->rank - 1], dst, w->dim[w->rank - 1]);
}

void job_read_row(const quant_job *j, const quant_tensor *t, int64_t row, float *dst,
                  float *scratch)
{
    const quant_source *s = t->source;
    int64_t n = t->columns, i = row;
    if (s->stored) {
        size_t row_bytes = s->stored->bytes / (size_t)t->rows;
        dequant_row(t->from, (const char *)s->stored->data + (size_t)i * row_bytes, dst, n);
    } else if (s->values) {
        memcpy(dst, s->values + i * n, (size_t)n * sizeof *dst);
    } else if (s->bound->weight->computed) {
        memcpy(dst, s->bound->weight->computed + i * n, (size_t)n * sizeof *dst);
    } else if (s->bound->weight->rank < 2) {
        read_vectors(j->mf, s, dst, scratch);
    } else {
        for (; s->next && i >= s->bound->weight->dim[0]; s = s->next)
            i -= s->bound->weight->dim[0];
        job_weight_row(j->mf, s->bound, i, dst);
    }
    if (t->change.apply)
        t->change.apply(t->change.ctx, row, dst, n);
}
