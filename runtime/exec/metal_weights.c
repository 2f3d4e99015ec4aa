/* metal_weights.c - weights for a GPU that shares the host's memory: read where the checkpoint has them, or copied.
 *
 * What the CPU reads in place the GPU does too: the pages around it are wrapped as buffers, without a copy, those of neighbours
 * as one. Kernels find numbers at addresses that divide by a power of two (align_of); a weight at an odd place in its file is copied as
 * it is stored, and so is what has to be converted: into one block, behind which are tables of addresses. One function lays
 * that out; it is run to learn its size, and again to fill it. */
#include "runtime/exec/metal_impl.h"

#include "runtime/base/mem.h"
#include "runtime/exec/weight_rows.h"
#include <stdlib.h>

/* Where a weight is: at an offset in the block, or IN_PLACE. */
#define IN_PLACE SIZE_MAX
#define NO_TABLE SIZE_MAX

typedef struct {
    weights base;
    metal_block *block;
    metal_block **maps; /* [n_map]: wrapped pages, by their addresses */
    size_t n_map;
    size_t bytes, table_bytes; /* of the block */
    size_t mapped;             /* bytes in place, those that weights share counted once */
    size_t *in_block;          /* [n_weight] */
    size_t *table;             /* [n_weight]: of its table in the block, or NO_TABLE */
    uint64_t *at;              /* [n_weight]: what operands are given */
} metal_weights;

static const metal_weights *own_of(const weights *w)
{
    return (const metal_weights *)(const void *)w;
}

/* ---- layout ---- */

/* Where kernels read a weight it begins at whole ones of these: of the bytes of a block the largest power of two in them, 16 at
 * most; of rows of floats that are whole vectors, vectors. */
static uintptr_t align_of(const plan_weight *w)
{
    const dtype_row *t = dtype_row_of(w->type);
    const uintptr_t bytes = t->bytes, power = bytes & (~bytes + 1);
    if (t->elems == 1 && bytes == 2 &&
        (size_t)w->dim[w->rank - 1] * bytes % METAL_VECTOR_BYTES == 0)
        return METAL_VECTOR_BYTES;
    return power < 16 ? power : 16;
}

/* Where the checkpoint has piece i, which is not looked at; NULL: nowhere. */
static const char *piece_at(const plan_weight *w, int i, const weight_source *src)
{
    const size_t tensor = (size_t)w->piece[i].tensor;
    if (w->piece[i].tensor < 0 || tensor >= src->kind->count(src))
        return NULL;
    return (const char *)src->kind->tensor(src, tensor).data + w->piece[i].offset;
}

/* Can kernels read it where it is? src NULL: of a checkpoint that is not here they can. */
static bool stays_in_place(const plan_weight *w, const weight_source *src)
{
    bool stays = w->mode == WEIGHT_MAPPED;
    for (int i = 0; i < w->n_piece && stays && src; i++)
        stays = (uintptr_t)piece_at(w, i, src) % align_of(w) == 0;
    return stays;
}

/* Bytes that piece i of a weight takes when it is copied as stored. */
static size_t piece_bytes(const plan_weight *w, int i)
{
    size_t n = 0;
    if (!weight_reach(w, i, &n))
        n = 0; /* loading will say what is wrong with it */
    return metal_align_up(n);
}

static size_t weight_bytes(const plan_weight *w)
{
    if (w->mode != WEIGHT_MAPPED)
        return metal_align_up(w->bytes);
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

/* Fills in_block and table, where they are not NULL. */
static void lay_out(const plan *p, const weight_source *src, metal_weights *w)
{
    for (int32_t i = 0; i < p->n_weight; i++) {
        const int32_t same = first_of(p, i);
        const bool stays = stays_in_place(&p->weight[i], src);
        if (w->in_block)
            w->in_block[i] = stays ? IN_PLACE : same < i ? w->in_block[same] : w->bytes;
        if (same == i && stays)
            w->mapped += p->weight[i].bytes;
        else if (same == i)
            w->bytes += weight_bytes(&p->weight[i]);
    }
    for (int32_t i = 0; i < p->n_weight; i++) {
        const size_t n = (size_t)p->weight[i].n_table * sizeof(uint64_t);
        if (w->table)
            w->table[i] = n ? w->bytes + w->table_bytes : NO_TABLE;
        w->table_bytes += metal_align_up(n);
    }
}

/* ---- pages ---- */

typedef struct {
    uintptr_t begin, end;
} page_range;

static int by_address(const void *a, const void *b)
{
    const page_range *x = a, *y = b;
    return x->begin != y->begin ? (x->begin < y->begin ? -1 : 1)
                                : (x->end > y->end) - (x->end < y->end);
}

/* Those that touch become one, as long as that is no longer than `most`; how many are left. */
static size_t join_ranges(page_range *r, size_t n, uint64_t most)
{
    size_t to = 0;
    for (size_t i = 1; i < n; i++) {
        const uintptr_t end = r[i].end > r[to].end ? r[i].end : r[to].end;
        if (r[i].begin <= r[to].end && end - r[to].begin <= most)
            r[to].end = end;
        else
            r[++to] = r[i];
    }
    return n ? to + 1 : 0;
}

/* The pages of all pieces that stay in place; returns how many ranges. */
static weft_status list_pages(weft_diag *dg, const metal_weights *w, const weight_source *src,
                              page_range *out, size_t *out_n)
{
    const plan *p = w->base.p;
    const uintptr_t page = metal_of(w->base.dev)->facts.page_bytes;
    size_t n = 0;
    for (int32_t i = 0; i < p->n_weight; i++)
        for (int k = 0; k < p->weight[i].n_piece && w->in_block[i] == IN_PLACE; k++) {
            weight_piece v;
            WEFT_TRY(weight_find(dg, &p->weight[i], k, src, &v));
            const uintptr_t at = (uintptr_t)v.data;
            out[n++] = (page_range){at / page * page, (at + v.bytes + page - 1) / page * page};
        }
    *out_n = n;
    return WEFT_OK;
}

static size_t pieces_count(const plan *p)
{
    size_t n = 0;
    for (int32_t i = 0; i < p->n_weight; i++)
        n += (size_t)p->weight[i].n_piece;
    return n;
}

static weft_status wrap_pages(weft_diag *dg, metal_weights *w, const weight_source *src)
{
    metal_device *d = metal_of(w->base.dev);
    page_range *r = mem_alloc(mem_product(pieces_count(w->base.p) + 1, sizeof *r));
    size_t n = 0;
    weft_status st = list_pages(dg, w, src, r, &n);
    if (st == WEFT_OK) {
        qsort(r, n, sizeof *r, by_address);
        n = join_ranges(r, n, d->facts.buffer_max);
        w->maps = mem_alloc(mem_product(n + 1, sizeof *w->maps));
    }
    for (size_t i = 0; i < n && st == WEFT_OK; i++) {
        st = metal_wrap(dg, d, (const void *)r[i].begin, r[i].end - r[i].begin, &w->maps[i]);
        w->n_map += st == WEFT_OK;
    }
    mem_free(r);
    return st;
}

/* What kernels see of bytes in place. */
static uint64_t mapped_at(const metal_weights *w, const char *p, size_t bytes)
{
    for (size_t i = 0; i < w->n_map; i++) {
        const metal_block *b = w->maps[i];
        if (p >= b->p && p + bytes <= b->p + b->bytes)
            return b->at + (uint64_t)(p - b->p);
    }
    WEFT_ASSERT(false && "its pages are wrapped");
    return 0;
}

/* ---- loading ---- */

typedef struct {
    metal_weights *w;
    const weight_source *src;
    const weights_options *opt;
    uint64_t done;
} loading;

static void report(loading *l, size_t n)
{
    l->done += n;
    if (l->opt->progress.report)
        l->opt->progress.report(l->opt->progress.ctx, l->done, l->w->bytes);
}

/* A weight that is copied: as stored, or its rows made. */
static weft_status copy_weight(weft_diag *dg, loading *l, const plan_weight *w, char *to)
{
    if (w->computed) {
        memcpy(to, w->computed, w->bytes);
        return WEFT_OK;
    }
    for (int i = 0; i < w->n_piece; i++) {
        weight_piece v;
        WEFT_TRY(weight_find(dg, w, i, l->src, &v));
        if (w->mode == WEIGHT_MAPPED)
            memcpy(to, v.data, v.bytes);
        else
            weight_make(&v, 0, v.rows, to, NULL);
        to += w->mode == WEIGHT_MAPPED ? piece_bytes(w, i) : (size_t)v.rows * v.row_bytes;
    }
    return WEFT_OK;
}

/* What operands are given: where the weight is, or a table of where each index of axis 0 is. */
static weft_status find_addresses(weft_diag *dg, loading *l, int32_t i)
{
    metal_weights *w = l->w;
    const plan_weight *pw = &w->base.p->weight[i];
    const bool stays = w->in_block[i] == IN_PLACE, stored = pw->mode == WEIGHT_MAPPED;
    uint64_t at = stays ? 0 : w->block->at + w->in_block[i];
    uint64_t *table = NULL;
    if (w->table[i] != NO_TABLE)
        table = (uint64_t *)(void *)(w->block->p + w->table[i]);
    w->at[i] = at;
    for (int64_t e = 0; e < pw->n_table && !stored; e++)
        *table++ = at + (uint64_t)e * (pw->bytes / (size_t)pw->n_table);
    for (int k = 0; k < pw->n_piece && stored; k++) {
        weight_piece v;
        WEFT_TRY(weight_find(dg, pw, k, l->src, &v));
        if (stays)
            at = mapped_at(w, v.data, v.bytes);
        if (k == 0)
            w->at[i] = at;
        for (int64_t e = 0; e < pw->piece[k].rows && table; e++)
            *table++ = at + (uint64_t)(e * pw->stride[0]);
        at += piece_bytes(pw, k);
    }
    if (w->table[i] != NO_TABLE)
        w->at[i] = w->block->at + w->table[i];
    return WEFT_OK;
}

static weft_status load_all(weft_diag *dg, loading *l)
{
    metal_weights *w = l->w;
    const plan *p = w->base.p;
    for (int32_t i = 0; i < p->n_weight; i++) {
        const plan_weight *pw = &p->weight[i];
        if (cancel_asked(l->opt->cancel))
            return weight_cancelled(dg);
        if (!pw->computed)
            WEFT_TRY(weight_check(dg, pw));
        if (w->in_block[i] == IN_PLACE || first_of(p, i) < i)
            continue;
        WEFT_TRY(copy_weight(dg, l, pw, w->block->p + w->in_block[i]));
        report(l, weight_bytes(pw));
    }
    WEFT_TRY(wrap_pages(dg, w, l->src));
    for (int32_t i = 0; i < p->n_weight; i++)
        WEFT_TRY(find_addresses(dg, l, i));
    return l->src->kind->check ? l->src->kind->check(dg, l->src) : WEFT_OK;
}

static size_t own_bytes(const plan *p)
{
    return sizeof(metal_weights) + (size_t)p->n_weight * (2 * sizeof(size_t) + sizeof(uint64_t));
}

static metal_weights *create(device *d, const plan *p, const weight_source *src)
{
    metal_weights *w = mem_alloc(own_bytes(p));
    *w = (metal_weights){.base = {.dev = d, .p = p}};
    w->in_block = (size_t *)(void *)(w + 1);
    w->table = w->in_block + p->n_weight;
    w->at = (uint64_t *)(void *)(w->table + p->n_weight);
    lay_out(p, src, w);
    return w;
}

weft_status metal_weights_load(weft_diag *dg, device *d, const plan *p, const weight_source *src,
                               const weights_options *opt, weights **out_w)
{
    metal_weights *w = create(d, p, src);
    loading l = {.w = w, .src = src, .opt = opt};
    weft_status st = metal_take(dg, metal_of(d), w->bytes + w->table_bytes, &w->block);
    if (st == WEFT_OK)
        st = load_all(dg, &l);
    if (st == WEFT_OK)
        *out_w = &w->base;
    else
        metal_weights_free(&w->base);
    return st;
}

void metal_weights_free(weights *base)
{
    metal_weights *w = (metal_weights *)(void *)base;
    metal_give(w->block);
    for (size_t i = 0; i < w->n_map; i++)
        metal_give(w->maps[i]);
    mem_free(w->maps);
    mem_free(w);
}

/* ---- what they take ---- */

static weights_memory memory_of(const metal_weights *w)
{
    return (weights_memory){.mapped = w->mapped,
                            .copied = w->bytes,
                            .tables = w->table_bytes,
                            .host = own_bytes(w->base.p)};
}

weights_memory metal_weights_need(device *d, const plan *p, const weight_source *src,
                                  const weights_options *opt)
{
    metal_weights w = {.base.p = p};
    (void)d, (void)opt;
    lay_out(p, src, &w);
    return memory_of(&w);
}

weights_memory metal_weights_bytes(const weights *w)
{
    return memory_of(own_of(w));
}

/* What becomes of the files that are mapped their source knows. */
weft_status metal_weights_check(weft_diag *dg, const weights *w)
{
    (void)dg, (void)w;
    return WEFT_OK;
}

const void *metal_weights_at(const weights *w, int32_t i)
{
    WEFT_ASSERT(i >= 0 && i < w->p->n_weight);
    return (const void *)(uintptr_t)own_of(w)->at[i];
}
