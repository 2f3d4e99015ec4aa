/* kernel_case.c - a function for each op turns the sizes of a line into arguments. */
#include "bench/kernel_case.h"

#include "kernels/ref/cell_tier.h"
#include "runtime/base/mem.h"
#include "runtime/formats/random_fill.h"
#include "runtime/kv/state.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    PATTERN_ROWS = 64,
    TILE_FEW = 32,
    TILE_MANY = 64
}; /* tiles as compiler/bucket_memory.c makes them */

typedef struct {
    const kernel_row *row;
    const int64_t *size;
    int64_t rows;
    const case_limits *limits;
} request;

/* ---- memory ---- */

static void *room(kernel_case *c, size_t bytes)
{
    void *p = NULL;
    WEFT_ASSERT(c->n_block < CASE_BLOCKS_MAX);
    if (posix_memalign(&p, ACT_ALIGN, bytes ? bytes : 1) != 0) {
        fprintf(stderr, "%zu bytes for %s cannot be allocated\n", bytes, c->shape);
        exit(1);
    }
    return c->block[c->n_block++] = p;
}

static float *numbers(kernel_case *c, int64_t n)
{
    float *x = room(c, (size_t)n * sizeof *x);
    random_blocks(DT_F32, 1.0, 7, (unsigned char *)x, (size_t)n * sizeof *x);
    return x;
}

static int32_t *ids(kernel_case *c, int64_t n, int64_t below)
{
    int32_t *x = room(c, (size_t)n * sizeof *x);
    uint32_t seed = 9;
    for (int64_t i = 0; i < n; i++, seed = seed * 1664525u + 1013904223u)
        x[i] = (int32_t)((seed >> 8) % (uint64_t)below);
    return x;
}

static void result(kernel_case *c, int i, int64_t rows, int64_t width)
{
    c->k.out[i] = room(c, (size_t)(rows * width) * sizeof(float));
    c->k.out_pitch[i] = width * (int64_t)sizeof(float);
}

/* Input 0 of plain numbers. */
static void input(kernel_case *c, int64_t rows, int64_t width)
{
    c->k.in[0] = numbers(c, rows * width);
    c->k.pitch[0] = width * (int64_t)sizeof(float);
}

#define SIZES(c, args, ...)                                                                        \
    (c)->k.size = (ksizes)                                                                         \
    {                                                                                              \
        .args = { __VA_ARGS__ }                                                                    \
    }

/* Bytes that are read and written where nothing is computed to speak of. */
static void moves(kernel_case *c, int64_t numbers_moved)
{
    c->bytes = 4.0 * (double)numbers_moved;
}

/* ---- contractions ---- */

/* The type of weights for rows that take any: those with kernels of their own have these. */
static dtype weight_type(const kernel_row *row)
{
    return row->type == DT_COUNT ? DT_F16 : row->type;
}

static int64_t row_bytes(dtype t, int64_t n)
{
    return n / dtype_row_of(t)->elems * (int64_t)dtype_row_of(t)->bytes;
}

static int64_t group_of(const kernel_row *row)
{
    return row->layout == LAYOUT_STORED ? 1 : LAYOUT_GROUP;
}

/* Rows of weights that are random for the first PATTERN_ROWS, then the same again. */
static void fill_rows(const kernel_row *row, dtype t, int64_t m, int64_t n, char *to)
{
    int64_t bytes = row_bytes(t, n), some = m < PATTERN_ROWS ? m : PATTERN_ROWS;
    unsigned char *rows = mem_alloc((size_t)(some * bytes));
    random_blocks(t, 1 / sqrt((double)n), 5, rows, (size_t)(some * bytes));
    if (row->layout == LAYOUT_STORED)
        memcpy(to, rows, (size_t)(some * bytes));
    for (int64_t g = 0; row->layout != LAYOUT_STORED && g < some / LAYOUT_GROUP; g++) {
        const void *at[LAYOUT_GROUP];
        for (int64_t i = 0; i < LAYOUT_GROUP; i++)
            at[i] = rows + (g * LAYOUT_GROUP + i) * bytes;
        layout_interleave(row->layout, t, at, n, to + g * LAYOUT_GROUP * bytes);
    }
    free(rows);
    for (int64_t i = some; i < m; i += some)
        memcpy(to + i * bytes, to, (size_t)((m - i < some ? m - i : some) * bytes));
}

/* As many columns of the result as the limits allow, a multiple of what a tile is. */
static int64_t cut_cols(const request *r, int64_t m, double bytes_each, double flops_each)
{
    double most =
        fmin((double)r->limits->cold_bytes / bytes_each, r->limits->flops_max / flops_each);
    int64_t cut = most < (double)m ? (int64_t)most / TILE_MANY * TILE_MANY : m;
    return cut < TILE_MANY && m >= TILE_MANY ? TILE_MANY : cut;
}

/* What takes input 0 as its kernel wants it: vectors of n numbers. */
static void give_quantized(kernel_case *c, kact act, int64_t vectors, int64_t n)
{
    int64_t group = act_group(act), n_group = (vectors + group - 1) / group;
    input(c, vectors, n);
    if (act == ACT_F32)
        return;
    char *to = room(c, (size_t)(n_group * group * act_row_bytes(act, n)));
    kargs k = {.in = {c->k.in[0]}, .out = {to}, .pitch = {n * 4}};
    k.out_pitch[0] = act_row_bytes(act, n);
    k.size.quantize.rows = vectors;
    k.size.quantize.width = n;
    k.choice.quantize.act = (int32_t)act;
    kernel_find(group == 1 ? KOP_quantize : KOP_quantize4, "ref")
        ->fn(&k, &(kthread){.count = 1}, 0, n_group);
    c->k.in[0] = to;
    c->k.pitch[0] = act_row_bytes(act, n);
}

static bool whole_blocks(const kernel_row *row, int64_t m, int64_t n)
{
    int64_t act = row->act == ACT_F32 ? 1 : act_block(row->act);
    return n % (int64_t)dtype_row_of(weight_type(row))->elems == 0 && n % act == 0 &&
           m % group_of(row) == 0;
}

static void set_tiles(kernel_case *c, const request *r, int64_t cols, int64_t grain)
{
    int64_t least = r->rows > K_ROWS_FEW ? TILE_MANY : TILE_FEW;
    c->k.cols = cols;
    c->k.tile = grain >= least ? grain : (least + grain - 1) / grain * grain;
}

static bool make_linear(const request *r, kernel_case *c)
{
    int64_t m = r->size[0], n = r->size[1];
    dtype t = weight_type(r->row);
    if (!whole_blocks(r->row, m, n))
        return false;
    int64_t each = row_bytes(t, n);
    m = cut_cols(r, m, (double)each, 2.0 * (double)(r->rows * n));
    size_t bytes = (size_t)(m * each);
    snprintf(c->shape, sizeof c->shape, "%lldx%lld", (long long)m, (long long)n);
    c->n_copy = (int)(r->limits->cold_bytes / bytes);
    c->n_copy = c->n_copy < 1 ? 1 : c->n_copy > CASE_COPIES_MAX ? CASE_COPIES_MAX : c->n_copy;
    char *all = room(c, bytes * (size_t)c->n_copy);
    fill_rows(r->row, t, m, n, all);
    for (int i = 0; i < c->n_copy; i++) {
        if (i)
            memcpy(all + (size_t)i * bytes, all, bytes);
        c->copy[i] = all + (size_t)i * bytes;
    }
    give_quantized(c, r->row->act, r->rows, n);
    c->k.in[1] = all;
    c->k.type[1] = t;
    c->k.pitch[1] = each * group_of(r->row);
    SIZES(c, linear, r->rows, m, n);
    result(c, 0, r->rows, m);
    set_tiles(c, r, m, group_of(r->row));
    c->bytes = (double)bytes + (double)(r->rows * (c->k.pitch[0] + m * 4));
    c->flops = 2.0 * (double)(r->rows * m) * (double)n;
    return true;
}

/* Addresses of `count` matrices [m, n]. */
static void give_table(kernel_case *c, const request *r, dtype t, int64_t count, int64_t m,
                       int64_t n)
{
    int64_t bytes = m * row_bytes(t, n);
    char *all = room(c, (size_t)(count * bytes));
    const void **table = room(c, (size_t)count * sizeof *table);
    fill_rows(r->row, t, m, n, all);
    for (int64_t i = 0; i < count; i++) {
        if (i)
            memcpy(all + i * bytes, all, (size_t)bytes);
        table[i] = all + i * bytes;
    }
    c->k.in[1] = table;
    c->k.type[1] = t;
    c->k.pitch[1] = row_bytes(t, n) * group_of(r->row);
}

static int64_t count_used(const int32_t *id, int64_t n, int64_t experts)
{
    int64_t used = 0;
    for (int64_t e = 0; e < experts; e++)
        for (int64_t i = 0; i < n; i++)
            if (id[i] == e) {
                used++;
                break;
            }
    return used;
}

static bool make_experts(const request *r, kernel_case *c)
{
    int64_t m = r->size[0], n = r->size[1], experts = r->size[2], top = r->size[3];
    int64_t slots = r->rows * top, vectors = r->size[4] ? slots : r->rows;
    dtype t = weight_type(r->row);
    if (!whole_blocks(r->row, m, n) || experts < top || top < 1)
        return false;
    m = cut_cols(r, m, (double)(row_bytes(t, n) * experts), 2.0 * (double)(slots * n));
    snprintf(c->shape, sizeof c->shape, "%lldx%lld %lld of %lld", (long long)m, (long long)n,
             (long long)top, (long long)experts);
    give_quantized(c, r->row->act, vectors, n);
    give_table(c, r, t, experts, m, n);
    int32_t *id = ids(c, slots, experts);
    for (int64_t i = 0; i < slots; i++) /* those of a row differ */
        id[i] = (int32_t)((id[i / top * top] + i % top) % experts);
    c->k.in[2] = id;
    SIZES(c, experts, r->rows, top, m, n, r->size[4] ? top : 1, experts);
    result(c, 0, slots, m);
    set_tiles(c, r, m, group_of(r->row));
    c->bytes = (double)(count_used(id, slots, experts) * m * row_bytes(t, n)) +
               (double)(vectors * c->k.pitch[0] + slots * m * 4);
    c->flops = 2.0 * (double)(slots * m) * (double)n;
    return true;
}

static bool make_head_linear(const request *r, kernel_case *c)
{
    int64_t heads = r->size[0], m = r->size[1], n = r->size[2];
    dtype t = weight_type(r->row);
    if (!whole_blocks(r->row, m, n))
        return false;
    snprintf(c->shape, sizeof c->shape, "%lld heads %lldx%lld", (long long)heads, (long long)m,
             (long long)n);
    give_quantized(c, r->row->act, r->rows * heads, n);
    give_table(c, r, t, heads, m, n);
    SIZES(c, head_linear, r->rows, heads, m, n);
    result(c, 0, r->rows * heads, m);
    c->bytes = (double)(heads * m * row_bytes(t, n)) + 4.0 * (double)(r->rows * heads * (m + n));
    c->flops = 2.0 * (double)(r->rows * heads * m) * (double)n;
    return true;
}

/* quantize is asked for the first form of activations that it makes, quantize4 for that of four rows. */
static bool make_quantize(const request *r, kernel_case *c)
{
    bool four = r->row->op == KOP_quantize4;
    kact act = four ? ACT_Q8X4 : ACT_Q8;
    int64_t n = r->size[0], group = act_group(act), padded = (r->rows + group - 1) / group * group;
    snprintf(c->shape, sizeof c->shape, "%lld", (long long)n);
    input(c, r->rows, n);
    c->k.choice.quantize.act = (int32_t)act;
    c->k.out_pitch[0] = act_row_bytes(act, n);
    c->k.out[0] = room(c, (size_t)(padded * c->k.out_pitch[0]));
    SIZES(c, quantize, r->rows, n);
    c->bytes = (double)(r->rows * (n * 4 + c->k.out_pitch[0]));
    return n % 32 == 0;
}

/* ---- by rows ---- */

static bool make_norm(const request *r, kernel_case *c)
{
    int64_t vectors = r->size[0], width = r->size[1];
    snprintf(c->shape, sizeof c->shape, "%lldx%lld", (long long)vectors, (long long)width);
    input(c, r->rows, vectors * width);
    c->k.in[1] = numbers(c, width);
    c->k.type[1] = DT_F32;
    c->k.pitch[1] = width * 4;
    SIZES(c, norm, r->rows, vectors, width, 1);
    c->k.scalar.norm.eps = 1e-5;
    result(c, 0, r->rows, vectors * width);
    moves(c, 2 * r->rows * vectors * width);
    return true;
}

static bool make_rope(const request *r, kernel_case *c)
{
    int64_t heads = r->size[0], dim = r->size[1];
    float *freqs = numbers(c, dim / 2);
    for (int64_t i = 0; i < dim / 2; i++)
        freqs[i] = (float)pow(10000, -2.0 * (double)i / (double)dim);
    snprintf(c->shape, sizeof c->shape, "%lldx%lld", (long long)heads, (long long)dim);
    input(c, r->rows, heads * dim);
    c->k.in[1] = ids(c, r->rows, 4096);
    c->k.in[2] = freqs;
    SIZES(c, rope, r->rows, heads, dim, dim / 2);
    c->k.scalar.rope.factor = 1;
    c->k.choice.rope.order = ROPE_HALF;
    result(c, 0, r->rows, heads * dim);
    moves(c, 2 * r->rows * heads * dim);
    return true;
}

static bool make_embed(const request *r, kernel_case *c)
{
    int64_t vocab = r->size[0], d = r->size[1];
    dtype t = weight_type(r->row);
    vocab = cut_cols(r, vocab, (double)row_bytes(t, d), 1);
    snprintf(c->shape, sizeof c->shape, "%lldx%lld", (long long)vocab, (long long)d);
    char *table = room(c, (size_t)(vocab * row_bytes(t, d)));
    fill_rows(r->row, t, vocab, d, table);
    c->k.in[0] = table;
    c->k.type[0] = t;
    c->k.pitch[0] = row_bytes(t, d);
    c->k.in[1] = ids(c, r->rows, vocab);
    SIZES(c, embed, r->rows, d, vocab);
    result(c, 0, r->rows, d);
    c->bytes = (double)(r->rows * (row_bytes(t, d) + d * 4));
    return true;
}

static bool make_split(const request *r, kernel_case *c)
{
    const int64_t *s = r->size; /* vectors, width, first, width of out */
    snprintf(c->shape, sizeof c->shape, "%lldx%lld of %lld", (long long)s[0], (long long)s[3],
             (long long)s[1]);
    if (s[2] + s[3] > s[1])
        return false;
    input(c, r->rows, s[0] * s[1]);
    SIZES(c, split, r->rows, s[0], s[1], s[2], s[3]);
    result(c, 0, r->rows, s[0] * s[3]);
    moves(c, 2 * r->rows * s[0] * s[3]);
    return true;
}

static bool make_concat(const request *r, kernel_case *c)
{
    const int64_t *s = r->size; /* vectors, width of x, width of y */
    snprintf(c->shape, sizeof c->shape, "%lldx(%lld, %lld)", (long long)s[0], (long long)s[1],
             (long long)s[2]);
    input(c, r->rows, s[0] * s[1]);
    c->k.in[1] = numbers(c, r->rows * s[0] * s[2]);
    c->k.pitch[1] = s[0] * s[2] * 4;
    SIZES(c, concat, r->rows, s[0], s[1], s[2]);
    result(c, 0, r->rows, s[0] * (s[1] + s[2]));
    moves(c, 2 * r->rows * s[0] * (s[1] + s[2]));
    return true;
}

static bool make_softmax(const request *r, kernel_case *c)
{
    int64_t vectors = r->size[0], width = r->size[1];
    snprintf(c->shape, sizeof c->shape, "%lldx%lld", (long long)vectors, (long long)width);
    input(c, r->rows, vectors * width);
    SIZES(c, softmax, r->rows, vectors, width);
    result(c, 0, r->rows, vectors * width);
    moves(c, 2 * r->rows * vectors * width);
    return true;
}

/* A batch with these counts and nothing else. */
static kbatch *batch_room(kernel_case *c, const kbatch *counts)
{
    size_t bytes = kbatch_bytes(counts);
    kbatch *b = room(c, bytes);
    memset(b, 0, bytes);
    *b = *counts;
    c->k.batch = b;
    return b;
}

static bool make_take_rows(const request *r, kernel_case *c)
{
    int64_t d = r->size[0];
    kbatch *b = batch_room(c, &(kbatch){.n_tok = r->rows, .n_out = r->rows});
    for (int64_t i = 0; i < r->rows; i++)
        kbatch_room(b, KBATCH_OUT)[i] = (int32_t)i;
    snprintf(c->shape, sizeof c->shape, "%lld", (long long)d);
    input(c, r->rows, d);
    SIZES(c, take_rows, r->rows, d);
    result(c, 0, r->rows, d);
    moves(c, 2 * r->rows * d);
    return true;
}

static bool make_at_pos(const request *r, kernel_case *c)
{
    int64_t n = r->size[0];
    snprintf(c->shape, sizeof c->shape, "%lld", (long long)n);
    c->k.in[0] = numbers(c, n);
    c->k.in[1] = ids(c, r->rows, n);
    SIZES(c, at_pos, r->rows, n);
    result(c, 0, r->rows, 1);
    moves(c, 3 * r->rows);
    return true;
}

static bool make_route(const request *r, kernel_case *c)
{
    int64_t experts = r->size[0], top = r->size[1];
    snprintf(c->shape, sizeof c->shape, "%lld of %lld", (long long)top, (long long)experts);
    input(c, r->rows, experts);
    SIZES(c, route, r->rows, experts, top, 1, 1);
    c->k.scalar.route.scale = 1;
    result(c, 0, r->rows, top);
    result(c, 1, r->rows, top);
    moves(c, r->rows * (experts + 2 * top));
    return true;
}

static bool make_combine(const request *r, kernel_case *c)
{
    int64_t top = r->size[0], d = r->size[1];
    snprintf(c->shape, sizeof c->shape, "%lldx%lld", (long long)top, (long long)d);
    input(c, r->rows * top, d);
    c->k.in[1] = numbers(c, r->rows * top);
    c->k.pitch[1] = top * 4;
    SIZES(c, combine, r->rows, top, d);
    result(c, 0, r->rows, d);
    moves(c, r->rows * d * (top + 1));
    return true;
}

/* silu(x) * y, the heart of most feed-forward layers. */
static bool make_map(const request *r, kernel_case *c)
{
    static const kinstr code[] = {{.op = MAP_load, .to = 0, .at = {0}},
                                  {.op = MAP_load, .to = 1, .at = {1}},
                                  {.op = MAP_silu, .to = 0, .at = {0}},
                                  {.op = MAP_mul, .to = 0, .at = {0, 1}},
                                  {.op = MAP_store, .to = 0, .at = {0}}};
    int64_t n = r->size[0];
    snprintf(c->shape, sizeof c->shape, "silu(x) * y, %lld", (long long)n);
    input(c, r->rows, n);
    c->k.in[1] = numbers(c, r->rows * n);
    c->k.pitch[1] = n * 4;
    for (int i = 0; i < 2; i++) {
        c->k.stride[i][0] = n;
        c->k.stride[i][1] = 1;
    }
    c->k.code = code;
    c->k.n_code = (int64_t)(sizeof code / sizeof *code);
    c->k.choice.map.axes = 1;
    SIZES(c, map, r->rows, n, {n});
    result(c, 0, r->rows, n);
    moves(c, 3 * r->rows * n);
    return true;
}

/* ---- state ---- */

/* Pages of a tier, of the numbers that the tier before has. */
static void tier_make(const kcell *cell, int tier, int64_t n_page)
{
    for (int64_t i = 0; i < n_page * cell->heads; i++) {
        int32_t page = (int32_t)(i / cell->heads);
        int64_t h = i % cell->heads;
        page_part from = cell_key_part(cell, tier - 1), to = cell_key_part(cell, tier);
        page_convert(&to, cell_key_at(cell, tier, page, h), &from,
                     cell_key_at(cell, tier - 1, page, h));
        from = cell_value_part(cell, tier - 1);
        to = cell_value_part(cell, tier);
        page_convert(&to, cell_value_at(cell, tier, page, h), &from,
                     cell_value_at(cell, tier - 1, page, h));
    }
}

/* A cell of n_page pages: f16, and of full pages `form`. */
static kcell cell_make(kernel_case *c, kform form, int64_t heads, int64_t dim, int64_t n_page)
{
    const kform forms[] = {KFORM_F16, form};
    kcell cell = {.n_tier = form == KFORM_F16 ? 1 : 2,
                  .page_tok = STATE_PAGE_TOK,
                  .heads = heads,
                  .k = dim,
                  .v = dim};
    for (int i = 0; i < cell.n_tier; i++) {
        kcell_tier *t = &cell.tier[i];
        t->key = t->value = forms[i];
        t->page_bytes = cell_page_bytes(&cell, i);
        size_t bytes = (size_t)(n_page * t->page_bytes);
        t->base = room(c, bytes);
        if (i)
            tier_make(&cell, i, n_page);
        else
            random_blocks(DT_F16, 0.3, 3, (unsigned char *)t->base, bytes);
    }
    return cell;
}

/* One sequence of `len` positions, the last `rows` of which are in the call; copies of its cell. */
static kbatch *give_cells(kernel_case *c, const request *r, kform form, int64_t heads, int64_t dim,
                          int64_t len)
{
    int64_t n_page = (len + STATE_PAGE_TOK - 1) / STATE_PAGE_TOK;
    kbatch *b =
        batch_room(c, &(kbatch){.n_tok = r->rows, .n_seq = 1, .n_table = 2, .n_page = n_page});
    kcell cell = cell_make(c, form, heads, dim, n_page);
    kcell_tier *last = &cell.tier[cell.n_tier - 1];
    size_t bytes = (size_t)(n_page * last->page_bytes);
    c->n_copy = (int)(r->limits->cold_bytes / bytes);
    c->n_copy = c->n_copy < 1 ? 1 : c->n_copy > 256 ? 256 : c->n_copy;
    char *first = last->base, *others = room(c, bytes * (size_t)c->n_copy);
    for (int i = 0; i < c->n_copy; i++) {
        last->base = i ? others + (size_t)i * bytes : first;
        if (i)
            memcpy(last->base, first, bytes);
        c->cell[i] = cell;
    }
    kbatch_pages_clear(b);
    b->data[kbatch_last_at(b, 0)] = 0;
    for (int64_t i = 0; i < 2 * n_page; i++)
        kbatch_pages_room(b, i / n_page, 0)[i % n_page] = (int32_t)(i % n_page);
    for (int64_t i = 0; i < r->rows; i++)
        kbatch_room(b, KBATCH_POS)[i] = (int32_t)(len - r->rows + i);
    kbatch_room(b, KBATCH_LAST)[0] = (int32_t)(r->rows - 1);
    c->k.cell = &c->cell[0];
    return b;
}

/* Bits of a number of a state: 16, or 8 or 4 for the forms that quantise. */
static kform form_of_bits(int64_t bits)
{
    return bits == 8 ? KFORM_Q8 : bits == 4 ? KFORM_Q4 : KFORM_F16;
}

static bool make_attend(const request *r, kernel_case *c)
{
    int64_t heads = r->size[0], kv = r->size[1], dim = r->size[2], len = r->size[3];
    int64_t window = r->size[4];
    kform form = form_of_bits(r->size[5]);
    double seen = 0;
    if (kv < 1 || heads % kv != 0 || len < r->rows)
        return false;
    snprintf(c->shape, sizeof c->shape, "%lld/%lldx%lld at %lld%s%s%s", (long long)heads,
             (long long)kv, (long long)dim, (long long)len, window ? " w" : "",
             form == KFORM_F16 ? "" : " ", form == KFORM_F16 ? "" : kform_name(form));
    give_cells(c, r, form, kv, dim, len);
    input(c, r->rows, heads * dim);
    SIZES(c, attend, r->rows, heads, window, 0);
    c->k.scalar.attend.scale = 1 / sqrt((double)dim);
    result(c, 0, r->rows, heads * dim);
    for (int64_t i = len - r->rows; i < len; i++)
        seen += (double)(window && i + 1 > window ? window : i + 1);
    int64_t read = window && window + r->rows < len ? window + r->rows : len;
    const kcell *cell = &c->cell[0];
    c->bytes = (double)read / STATE_PAGE_TOK * (double)cell->tier[cell->n_tier - 1].page_bytes +
               8.0 * (double)(r->rows * heads * dim);
    c->flops = 4.0 * seen * (double)(heads * dim);
    return true;
}

static bool make_append(const request *r, kernel_case *c)
{
    int64_t heads = r->size[0], dim = r->size[1];
    snprintf(c->shape, sizeof c->shape, "%lldx%lld", (long long)heads, (long long)dim);
    give_cells(c, r, KFORM_F16, heads, dim, 512);
    input(c, r->rows, heads * dim);
    c->k.in[1] = numbers(c, r->rows * heads * dim);
    c->k.pitch[1] = heads * dim * 4;
    SIZES(c, append, r->rows);
    c->bytes = 12.0 * (double)(r->rows * heads * dim);
    return true;
}

/* The pages that as many rows fill become quantised. */
static bool make_convert(const request *r, kernel_case *c)
{
    int64_t heads = r->size[0], dim = r->size[1];
    kform form = form_of_bits(r->size[2]);
    int64_t n_page = (r->rows + STATE_PAGE_TOK - 1) / STATE_PAGE_TOK;
    if (form == KFORM_F16)
        return false;
    snprintf(c->shape, sizeof c->shape, "%lldx%lld %s", (long long)heads, (long long)dim,
             kform_name(form));
    kbatch *b = give_cells(c, r, form, heads, dim, n_page * STATE_PAGE_TOK);
    kbatch_pages_room(b, 1, 0)[-1] = (int32_t)n_page; /* the end of what is to be converted */
    SIZES(c, convert, r->rows, 1);
    const kcell *cell = &c->cell[0];
    c->bytes = (double)n_page * (double)(cell->tier[0].page_bytes + cell->tier[1].page_bytes);
    return true;
}

/* ---- the table ---- */

/* clang-format off */
static const struct {
    const char *op;
    int least, most; /* sizes of a line */
    bool (*make)(const request *r, kernel_case *c);
} makers[] = {
    {"linear",      2, 2, make_linear},      /* out, in */
    {"experts",     4, 5, make_experts},     /* out, in, experts, chosen, 1: each has its own x */
    {"head_linear", 3, 3, make_head_linear}, /* heads, out, in */
    {"embed",       2, 2, make_embed},       /* vocabulary, width */
    {"rms_norm",    2, 2, make_norm},        /* vectors of a row, width */
    {"layer_norm",  2, 2, make_norm},
    {"rope",        2, 2, make_rope},        /* heads, width */
    {"append",      2, 2, make_append},      /* heads of the cell, width */
    {"convert",     3, 3, make_convert},     /* heads of the cell, width, bits */
    {"attend",      4, 6, make_attend},      /* heads, heads of the cell, width, context, window, bits */
    {"map",         1, 1, make_map},         /* elements of a row */
    {"quantize",        1, 1, make_quantize},
    {"quantize4",       1, 1, make_quantize},
    {"split",       4, 4, make_split},       /* vectors, width, first, width of the part */
    {"concat",      3, 3, make_concat},      /* vectors, width, width of the other */
    {"softmax",     2, 2, make_softmax},     /* vectors, width */
    {"take_rows",   1, 1, make_take_rows},
    {"at_pos",      1, 1, make_at_pos},
    {"route",       2, 2, make_route},       /* experts, chosen */
    {"combine",     2, 2, make_combine},     /* chosen, width */
};
/* clang-format on */
enum { MAKERS = sizeof makers / sizeof makers[0] };

static int maker_of(const shape_entry *s)
{
    for (int i = 0; i < MAKERS; i++)
        if (strcmp(makers[i].op, s->op) == 0 && s->n_size >= makers[i].least &&
            s->n_size <= makers[i].most)
            return i;
    return -1;
}

bool kernel_case_knows(const shape_entry *s)
{
    return maker_of(s) >= 0;
}

bool kernel_case_make(const kernel_row *row, const shape_entry *s, int64_t rows,
                      const case_limits *limits, kernel_case *out)
{
    const request r = {.row = row, .size = s->size, .rows = rows, .limits = limits};
    int maker = maker_of(s);
    if (maker < 0 || strcmp(kop_name(row->op), s->op) != 0 || !kernel_takes(row, rows))
        return false;
    memset(out, 0, sizeof *out);
    bool made = makers[maker].make(&r, out);
    if (!made)
        kernel_case_free(out);
    return made;
}

void kernel_case_turn(kernel_case *c, int i)
{
    if (c->n_copy == 0)
        return;
    if (c->k.cell)
        c->k.cell = &c->cell[i % c->n_copy];
    else
        c->k.in[1] = c->copy[i % c->n_copy];
}

void kernel_case_free(kernel_case *c)
{
    for (int i = 0; i < c->n_block; i++)
        free(c->block[i]);
    c->n_block = 0;
}
