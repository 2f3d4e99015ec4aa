/* cuda_weights.c - weights on a card: one block of memory, filled once.
 *
 * What the CPU reads in place goes up as it is stored, gaps between its rows included, and what several weights share goes up
 * once. One function lays the block out; it is run to learn its size, and again to fill it. */
#include "runtime/exec/cuda_impl.h"

#include "runtime/base/mem.h"
#include "runtime/exec/weight_rows.h"

typedef struct {
    weights base;
    char *block; /* of the card: weights, then tables of addresses */
    size_t bytes, table_bytes;
    size_t *at;    /* [n_weight]: of each in the block */
    size_t *table; /* [n_weight]: of its table; NO_TABLE: it has none */
} cuda_weights;

#define NO_TABLE SIZE_MAX

static const cuda_weights *own_of(const weights *w)
{
    return (const cuda_weights *)(const void *)w;
}

static size_t align_up(size_t n)
{
    return (n + CUDA_ALIGN - 1) / CUDA_ALIGN * CUDA_ALIGN;
}

/* ---- layout ---- */

/* Bytes that piece i of a weight takes, from one whole CUDA_ALIGN to the next. */
static size_t piece_bytes(const plan_weight *w, int i)
{
    size_t n = 0;
    if (!weight_reach(w, i, &n))
        n = 0; /* loading will say what is wrong with it */
    return align_up(n);
}

static size_t weight_bytes(const plan_weight *w)
{
    if (w->mode != WEIGHT_MAPPED)
        return align_up(w->bytes);
    size_t n = 0;
    for (int i = 0; i < w->n_piece; i++)
        n += piece_bytes(w, i);
    return n;
}

/* The first weight in the same place of the checkpoint. */
static int32_t first_of(const plan *p, int32_t i)
{
    int32_t k = 0;
    while (k < i && !plan_weights_share(&p->weight[k], &p->weight[i]))
        k++;
    return k;
}

/* Fills at and table, where they are not NULL. */
static void lay_out(const plan *p, cuda_weights *w)
{
    for (int32_t i = 0; i < p->n_weight; i++) {
        int32_t same = first_of(p, i);
        if (w->at)
            w->at[i] = same < i ? w->at[same] : w->bytes;
        w->bytes += same < i ? 0 : weight_bytes(&p->weight[i]);
    }
    for (int32_t i = 0; i < p->n_weight; i++) {
        size_t n = (size_t)p->weight[i].n_table * sizeof(void *);
        if (w->table)
            w->table[i] = n ? w->bytes + w->table_bytes : NO_TABLE;
        w->table_bytes += align_up(n);
    }
}

/* ---- loading ---- */

typedef struct {
    cuda_weights *w;
    const weight_source *src;
    const weights_options *opt;
    cuda_upload *up;
    char *gather; /* for rows that are interleaved */
    uint64_t done;
} loading;

static void report(loading *l, size_t n)
{
    l->done += n;
    if (l->opt->progress.report)
        l->opt->progress.report(l->opt->progress.ctx, l->done, l->w->bytes);
}

static weft_status send_bytes(weft_diag *dg, loading *l, const char *from, char *to, size_t n)
{
    size_t most = cuda_upload_room(l->up);
    for (size_t at = 0, part; at < n; at += part) {
        char *room;
        part = n - at < most ? n - at : most;
        if (cancel_asked(l->opt->cancel))
            return weight_cancelled(dg);
        WEFT_TRY(cuda_upload_begin(dg, l->up, &room));
        memcpy(room, from + at, part);
        WEFT_TRY(cuda_upload_send(dg, l->up, to + at, part));
        report(l, part);
    }
    return WEFT_OK;
}

/* Rows that are made, not copied. */
static weft_status send_rows(weft_diag *dg, loading *l, const weight_piece *v, char *to)
{
    int64_t most = (int64_t)(cuda_upload_room(l->up) / v->row_bytes);
    for (int64_t at = 0, n; at < v->rows; at += n) {
        char *room;
        n = v->rows - at < most ? v->rows - at : most;
        if (cancel_asked(l->opt->cancel))
            return weight_cancelled(dg);
        WEFT_TRY(cuda_upload_begin(dg, l->up, &room));
        weight_make(v, at, n, room, l->gather);
        size_t bytes = (size_t)n * v->row_bytes;
        WEFT_TRY(cuda_upload_send(dg, l->up, to + (size_t)at * v->row_bytes, bytes));
        report(l, bytes);
    }
    return WEFT_OK;
}

static weft_status send_weight(weft_diag *dg, loading *l, const plan_weight *w, char *to)
{
    if (w->computed)
        return send_bytes(dg, l, (const char *)w->computed, to, w->bytes);
    WEFT_TRY(weight_check(dg, w));
    for (int i = 0; i < w->n_piece; i++) {
        weight_piece v;
        WEFT_TRY(weight_find(dg, w, i, l->src, &v));
        bool as_stored = w->mode == WEIGHT_MAPPED;
        WEFT_TRY(as_stored ? send_bytes(dg, l, v.data, to, v.bytes) : send_rows(dg, l, &v, to));
        to += as_stored ? piece_bytes(w, i) : (size_t)v.rows * v.row_bytes;
    }
    return WEFT_OK;
}

/* The address of each index of axis 0: from those of the pieces, or equal parts of the whole. */
static void list_addresses(const plan_weight *w, const char *block, const char **to)
{
    for (int64_t e = 0; e < w->n_table && w->mode != WEIGHT_MAPPED; e++)
        *to++ = block + (size_t)e * (w->bytes / (size_t)w->n_table);
    for (int i = 0; i < w->n_piece && w->mode == WEIGHT_MAPPED; i++) {
        for (int64_t e = 0; e < w->piece[i].rows; e++)
            *to++ = block + e * w->stride[0];
        block += piece_bytes(w, i);
    }
}

static weft_status send_table(weft_diag *dg, loading *l, const plan_weight *w, int32_t i)
{
    size_t bytes = (size_t)w->n_table * sizeof(void *);
    const char **list = mem_alloc(bytes);
    list_addresses(w, l->w->block + l->w->at[i], list);
    weft_status st = send_bytes(dg, l, (const char *)list, l->w->block + l->w->table[i], bytes);
    l->done -= st == WEFT_OK ? bytes : 0; /* they are not among the bytes of weights */
    mem_free(list);
    return st;
}

static weft_status send_all(weft_diag *dg, loading *l)
{
    const plan *p = l->w->base.p;
    for (int32_t i = 0; i < p->n_weight; i++) {
        const plan_weight *w = &p->weight[i];
        if (first_of(p, i) == i)
            WEFT_TRY(send_weight(dg, l, w, l->w->block + l->w->at[i]));
        if (w->n_table)
            WEFT_TRY(send_table(dg, l, w, i));
    }
    WEFT_TRY(cuda_upload_wait(dg, l->up));
    if (l->opt->progress.report && l->done < l->w->bytes) /* without the gaps */
        l->opt->progress.report(l->opt->progress.ctx, l->w->bytes, l->w->bytes);
    return l->src->kind->check ? l->src->kind->check(dg, l->src) : WEFT_OK;
}

/* The longest of the rows that are made. */
static size_t longest_row(const plan *p)
{
    size_t most = 1;
    for (int32_t i = 0; i < p->n_weight; i++) {
        const plan_weight *w = &p->weight[i];
        size_t n = w->mode == WEIGHT_MAPPED || w->rows < 1 ? 0 : (size_t)w->pitch;
        most = n > most ? n : most;
    }
    return most;
}

static size_t own_bytes(const plan *p)
{
    return sizeof(cuda_weights) + 2 * (size_t)p->n_weight * sizeof(size_t);
}

static cuda_weights *create(device *d, const plan *p)
{
    cuda_weights *w = mem_alloc(own_bytes(p));
    *w = (cuda_weights){.base = {.dev = d, .p = p}};
    w->at = (size_t *)(void *)(w + 1);
    w->table = w->at + p->n_weight;
    lay_out(p, w);
    return w;
}

weft_status cuda_weights_load(weft_diag *dg, device *d, const plan *p, const weight_source *src,
                              const weights_options *opt, weights **out_w)
{
    cuda_weights *w = create(d, p);
    loading l = {.w = w, .src = src, .opt = opt, .gather = mem_alloc(longest_row(p))};
    void *block;
    weft_status st = cuda_take(dg, cuda_of(d), w->bytes + w->table_bytes, false, &block);
    w->block = block;
    if (st == WEFT_OK)
        st = cuda_upload_open(dg, cuda_of(d), longest_row(p), &l.up);
    if (st == WEFT_OK)
        st = send_all(dg, &l);
    cuda_upload_close(l.up);
    mem_free(l.gather);
    if (st == WEFT_OK && src->kind->let_go)
        src->kind->let_go(src);
    if (st == WEFT_OK)
        *out_w = &w->base;
    else
        cuda_weights_free(&w->base);
    return st;
}

void cuda_weights_free(weights *w)
{
    cuda_give(cuda_of(w->dev), own_of(w)->block);
    mem_free(w);
}

/* ---- what they take ---- */

static weights_memory memory_of(const cuda_weights *w)
{
    return (weights_memory){
        .copied = w->bytes, .tables = w->table_bytes, .host = own_bytes(w->base.p)};
}

weights_memory cuda_weights_need(device *d, const plan *p, const weight_source *src,
                                 const weights_options *opt)
{
    (void)d, (void)src, (void)opt;
    cuda_weights w = {.base.p = p};
    lay_out(p, &w);
    return memory_of(&w);
}

weights_memory cuda_weights_bytes(const weights *w)
{
    return memory_of(own_of(w));
}

/* Nothing is read from files any more. */
weft_status cuda_weights_check(weft_diag *dg, const weights *w)
{
    (void)dg, (void)w;
    return WEFT_OK;
}

const void *cuda_weights_at(const weights *w, int32_t i)
{
    const cuda_weights *c = own_of(w);
    WEFT_ASSERT(i >= 0 && i < w->p->n_weight);
    return c->block + (c->table[i] != NO_TABLE ? c->table[i] : c->at[i]);
}
