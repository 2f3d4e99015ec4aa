/* attend_neon.c - softmax attention; a unit is some query heads of a head of the cell (eight at most) in as many
 * rows as make about 64 queries.
 *
 * Positions are walked in blocks of 64 that begin at multiples of 64 and are merged one after the other, as
 * c/attend_c.c tells; what a row's bits depend on is its position and what it sees, not the pages, nor
 * which rows come with it: queries that see a block whole are multiplied in tiles, a row that sees some of it by
 * itself. Keys are never seen by a row before their time, so that what is not finite there stays out.
 *
 * Rows of a call that follow on each other and are of one sequence share the reading of keys and values, and their
 * conversion where these are 16 bits. What bounds it on Neoverse-V1: fused products, four of four lanes a cycle,
 * and 2.4 loads. Prefill reaches 42 % of a core's 83 GFLOP/s with heads of 64, 48 % with 128 (512 to 4096
 * positions, f16): a tile of 4 queries and 4 keys is 8 loads for 16 products, which alone gives 77 %; its ends and the
 * exponentials (a fifth) take the rest. Decode of four query heads to a head of the cell takes at least 2 conversions
 * and 8 products for 16 bytes of f16, 43 % of the bandwidth; it reaches 16 % at 4096 positions, two
 * threads. A cell with one head and few query heads is one unit: its keys are not shared out among threads. */
#include "kernels/kernel_decls.h"

#include <math.h>
#include "kernels/c/vec.h"
#include "kernels/c/vec_math.h"
#include "kernels/neon/attend_neon_tile.h"
#include "kernels/neon/vec_neon.h"
#include "kernels/ref/cell_place.h"

enum { KEYS = ATTEND_KEYS, QUERIES_MAX = ATTEND_QUERIES + ATTEND_HEADS, DIRECT_MAX = 4 };

/* Rows of one sequence, and some query heads of one head of the cell. */
typedef struct {
    const kargs *k;
    attend_neon_size size;
    const int32_t *pages, *pos; /* pos: of each row */
    int64_t head, first_head;   /* of the cell; of the query heads */
    int64_t rows, heads;        /* queries are [rows, heads] */
    dtype type;                 /* of the keys and values as the tiles read them */
    const float *q[QUERIES_MAX];
    float *p[QUERIES_MAX];   /* [KEYS]: logits, then weights */
    float *sum[QUERIES_MAX]; /* [v] */
    float *max, *total;      /* [queries] */
    float *key_mem, *value_mem;
    const char *key[KEYS], *value[KEYS];
} work;

static int64_t first_seen(const kargs *k, int64_t pos)
{
    int64_t window = k->n[2], chunk = k->n[3], first = 0;
    if (window > 0 && pos - window + 1 > first)
        first = pos - window + 1;
    if (chunk > 0 && pos / chunk * chunk > first)
        first = pos / chunk * chunk;
    return first;
}

/* ---- the tiles, for each stored type ---- */

/* Into the first cache: the keys of the tile after the next, the values of this one. */
NEON_INLINE void fetch_soon(const work *w, int64_t j, int64_t end, dtype type)
{
    const kcell *c = w->k->cell;
    int64_t each = type == DT_F32 ? 4 : 2;
    for (int64_t i = j; i < j + 4 && i < end; i++) {
        for (int64_t at = 0; at < c->k * each && i + 8 < end; at += NEON_LINE)
            __builtin_prefetch(w->key[i + 8] + at);
        for (int64_t at = 0; at < c->v * each; at += NEON_LINE)
            __builtin_prefetch(w->value[i] + at);
    }
}

/* Keys [begin, end) of a block, in tiles that may compute a few more; queries [from, to). */
NEON_INLINE void dots_of(const work *w, int64_t begin, int64_t end, int64_t from, int64_t to,
                         dtype type)
{
    int64_t width = w->k->cell->k, g = from;
    float scale = (float)w->k->f[0];
    for (; width % 8 != 0 && g < to; g++)
        for (int64_t j = begin; j < end; j++)
            w->p[g][j] = dot_ragged(w->q[g], w->key[j], type, width, scale);
    for (; g + 4 <= to; g += 4)
        for (int64_t j = begin / 4 * 4; j < end; j += 4) {
            if (g == from && to - from <= DIRECT_MAX)
                fetch_soon(w, j, end, type);
            float *const s[] = {w->p[g] + j, w->p[g + 1] + j, w->p[g + 2] + j, w->p[g + 3] + j};
            dot_tile(w->q + g, w->key + j, type, width, scale, s, 4, 4);
        }
    for (; g + 2 <= to; g += 2)
        for (int64_t j = begin / 8 * 8; j < end; j += 8) {
            float *const s[] = {w->p[g] + j, w->p[g + 1] + j};
            dot_tile(w->q + g, w->key + j, type, width, scale, s, 2, 8);
        }
    for (; g < to; g++)
        for (int64_t j = begin / 8 * 8; j < end; j += 8) {
            float *const s[] = {w->p[g] + j};
            dot_tile(w->q + g, w->key + j, type, width, scale, s, 1, 8);
        }
}

NEON_INLINE void add_columns(const work *w, int64_t begin, int64_t end, int64_t g, dtype type,
                             int n_q, int wide)
{
    int64_t width = w->k->cell->v, col = 0;
    const float *const *p = (const float *const *)(w->p + g);
    for (; col + 4 * wide <= width; col += 4 * wide)
        add_tile(p, w->value, type, begin, end, col, w->sum + g, n_q, wide);
    for (; col + 8 <= width; col += 8)
        add_tile(p, w->value, type, begin, end, col, w->sum + g, n_q, 2);
    if (col < width)
        add_rest(p, w->value, type, begin, end, col, width - col, w->sum + g, n_q);
}

/* The values of positions [begin, end) of a block to the sums of queries [from, to). */
NEON_INLINE void adds_of(const work *w, int64_t begin, int64_t end, int64_t from, int64_t to,
                         dtype type)
{
    int64_t g = from;
    for (; g + 4 <= to; g += 4)
        add_columns(w, begin, end, g, type, 4, 4);
    for (; g + 2 <= to; g += 2)
        add_columns(w, begin, end, g, type, 2, 8);
    for (; g < to; g++)
        add_columns(w, begin, end, g, type, 1, 8);
}

#define TILES(type)                                                                                \
    static void dots_##type(const work *w, int64_t begin, int64_t end, int64_t from, int64_t to)   \
    {                                                                                              \
        dots_of(w, begin, end, from, to, DT_##type);                                               \
    }                                                                                              \
    static void adds_##type(const work *w, int64_t begin, int64_t end, int64_t from, int64_t to)   \
    {                                                                                              \
        adds_of(w, begin, end, from, to, DT_##type);                                               \
    }
TILES(F32)
TILES(F16)
TILES(BF16)

typedef void tiles_fn(const work *w, int64_t begin, int64_t end, int64_t from, int64_t to);
static tiles_fn *const dots[DT_COUNT] = {
    [DT_F32] = dots_F32, [DT_F16] = dots_F16, [DT_BF16] = dots_BF16};
static tiles_fn *const adds[DT_COUNT] = {
    [DT_F32] = adds_F32, [DT_F16] = adds_F16, [DT_BF16] = adds_BF16};

/* ---- a block of keys and values ---- */

static void floats_from(const char *from, dtype type, int64_t n, float *to)
{
    int64_t i = 0;
    float32x4_t x[2];
    for (; i + 8 <= n; i += 8) {
        load8(from + i * 2, type, x);
        vst1q_f32(to + i, x[0]);
        vst1q_f32(to + i + 4, x[1]);
    }
    if (i < n) {
        float some[8];
        load_some(from + i * 2, type, n - i, x);
        vst1q_f32(some, x[0]);
        vst1q_f32(some + 4, x[1]);
        memcpy(to + i, some, (size_t)(n - i) * sizeof *to);
    }
}

/* n rows that follow on each other: where they are, or as floats in mem. */
static void rows_read(const work *w, const char *from, int64_t width, int64_t n, float *mem,
                      const char **to)
{
    dtype stored = w->k->cell->type;
    int64_t pitch = width * (w->type == DT_F32 ? 4 : 2);
    if (stored != w->type) {
        floats_from(from, stored, n * width, mem);
        from = (const char *)mem;
    }
    for (int64_t i = 0; i < n; i++)
        to[i] = from + i * pitch;
}

/* Positions [begin, end) of the block at `at`; those that no row sees stand for their neighbours. */
static void block_read(work *w, int64_t at, int64_t begin, int64_t end)
{
    const kcell *c = w->k->cell;
    for (int64_t i = begin; i < end;) {
        int64_t page_end = ((at + i) / c->page_tok + 1) * c->page_tok - at;
        int64_t n = (page_end < end ? page_end : end) - i;
        rows_read(w, cell_key(c, w->pages, at + i, w->head), c->k, n, w->key_mem + i * c->k,
                  w->key + i);
        if (!c->latent)
            rows_read(w, cell_value(c, w->pages, at + i, w->head), c->v, n, w->value_mem + i * c->v,
                      w->value + i);
        i += n;
    }
    for (int64_t i = 0; i < KEYS; i++) {
        w->key[i] = w->key[i < begin ? begin : i < end ? i : end - 1];
        if (c->latent)
            w->value[i] = w->key[i];
    }
}

/* Ask for what will be read some blocks later, where it lies in one page. */
static void hint_rows(const char *p, int64_t bytes)
{
    for (int64_t i = 0; i < bytes; i += NEON_LINE)
        __asm__ volatile("prfm pldl3keep, [%0]" ::"r"(p + i));
}

static void block_hint(const work *w, int64_t at, int64_t last)
{
    const kcell *c = w->k->cell;
    int64_t each = c->type == DT_F32 ? 4 : 2, block = KEYS * c->k * each;
    int64_t then = at + (NEON_AHEAD / block + 1) * KEYS;
    if (c->page_tok % KEYS != 0 || then + KEYS > last)
        return;
    hint_rows(cell_key(c, w->pages, then, w->head), block);
    if (!c->latent)
        hint_rows(cell_value(c, w->pages, then, w->head), KEYS * c->v * each);
}

/* ---- softmax ---- */

/* Softcap and slopes, of query i at position pos. */
static void logits(const work *w, int64_t i, int64_t at, float *s)
{
    const float *slopes = w->k->in[3]; /* [H] or NULL */
    float softcap = (float)w->k->f[1];
    if (softcap != 0)
        for (int64_t j = 0; j < KEYS; j++)
            s[j] = softcap * vec_tanh(s[j] / softcap);
    if (slopes) {
        float slope = slopes[w->first_head + i % w->heads];
        for (int64_t j = 0; j < KEYS; j++)
            s[j] += slope * (float)(at + j - w->pos[i / w->heads]);
    }
}

/* The products of query i with keys [begin, end) become weights; what it has so far is scaled to match. */
static void weigh(work *w, int64_t i, int64_t at, int64_t begin, int64_t end)
{
    float *p = w->p[i];
    if (w->k->f[1] != 0 || w->k->in[3])
        logits(w, i, at, p);
    for (int64_t j = 0; j < begin; j++)
        p[j] = -INFINITY;
    for (int64_t j = end; j < KEYS; j++)
        p[j] = -INFINITY;
    float32x4_t most[4]; /* a NaN is the largest */
    for (int l = 0; l < 4; l++)
        most[l] = vld1q_f32(p + 4 * l);
    for (int64_t j = 16; j < KEYS; j += 16)
        for (int l = 0; l < 4; l++)
            most[l] = vmaxq_f32(most[l], vld1q_f32(p + j + 4 * l));
    float here = vmaxvq_f32(vmaxq_f32(vmaxq_f32(most[0], most[1]), vmaxq_f32(most[2], most[3])));
    float old = w->max[i], max = here > old ? here : old;
    if (!(max > -INFINITY && max < INFINITY) || here != here) {
        w->total[i] = NAN; /* as everything that follows */
        return;
    }
    float32x4_t all = vdupq_n_f32(max), sum[4];
    for (int l = 0; l < 4; l++)
        sum[l] = vdupq_n_f32(0);
    for (int64_t j = 0; j < KEYS; j += 16)
        for (int l = 0; l < 4; l++) {
            float32x4_t e = neon_exp_below(vsubq_f32(vld1q_f32(p + j + 4 * l), all));
            vst1q_f32(p + j + 4 * l, e);
            sum[l] = vaddq_f32(sum[l], e);
        }

    float keep = max == old ? 1 : vec_exp(old - max);
    w->total[i] = w->total[i] * keep +
                  vaddvq_f32(vaddq_f32(vaddq_f32(sum[0], sum[1]), vaddq_f32(sum[2], sum[3])));
    w->max[i] = max;
    for (int64_t j = 0; keep != 1 && j < w->size.v; j += 4)
        vst1q_f32(w->sum[i] + j, vmulq_n_f32(vld1q_f32(w->sum[i] + j), keep));
}

/* Which positions of the block at `at` a row sees: [begin, end), none where end <= begin. */
typedef struct {
    int64_t begin, end;
} span;

static span seen_of(const work *w, int64_t row, int64_t at)
{
    int64_t begin = first_seen(w->k, w->pos[row]) - at, end = w->pos[row] + 1 - at;
    return (span){begin > 0 ? begin : 0, end < KEYS ? end : KEYS};
}

/* The block at `at`, of which rows [from, to) see something. */
static void block_merge(work *w, int64_t at, int64_t from, int64_t to)
{
    dots[w->type](w, seen_of(w, from, at).begin, seen_of(w, to - 1, at).end, from * w->heads,
                  to * w->heads);
    for (int64_t row = from; row < to;) {
        span s = seen_of(w, row, at);
        int64_t same = row;
        for (; same < to; same++) {
            span next = seen_of(w, same, at);
            if (next.begin != s.begin || next.end != s.end)
                break;
            for (int64_t h = 0; h < w->heads; h++)
                weigh(w, same * w->heads + h, at, s.begin, s.end);
        }
        adds[w->type](w, s.begin, s.end, row * w->heads, same * w->heads);
        row = same;
    }
}

/* ---- a unit ---- */

/* Before the first block: the sink, a logit without a value, has been seen. */
static void work_begin(work *w)
{
    const float *sinks = w->k->in[2]; /* [H] or NULL */
    for (int64_t i = 0; i < w->rows * w->heads; i++) {
        float sink = sinks ? sinks[w->first_head + i % w->heads] : -INFINITY;
        w->max[i] = sink;
        w->total[i] = sink == -INFINITY ? 0 : sink - sink + 1; /* NaN for what has no exp */
        memset(w->sum[i], 0, (size_t)w->size.v * sizeof(float));
        memset(w->p[i], 0, KEYS * sizeof(float)); /* so that softcap meets numbers */
    }
}

static void work_run(work *w)
{
    int64_t first = first_seen(w->k, w->pos[0]), last = w->pos[w->rows - 1], from = 0;
    work_begin(w);
    for (int64_t at = first / KEYS * KEYS; at <= last; at += KEYS) {
        int64_t to;
        while (from < w->rows && w->pos[from] < at)
            from++;
        for (to = from; to < w->rows && first_seen(w->k, w->pos[to]) < at + KEYS;)
            to++;
        if (from == to)
            continue;
        block_hint(w, at, last);
        block_read(w, at, seen_of(w, from, at).begin, seen_of(w, to - 1, at).end);
        block_merge(w, at, from, to);
    }
}

static void work_end(const work *w, int64_t row)
{
    int64_t width = w->k->cell->v;
    for (int64_t i = 0; i < w->rows * w->heads; i++) {
        float *out = row_out(w->k, 0, row + i / w->heads) + (w->first_head + i % w->heads) * width;
        for (int64_t j = 0; j < width; j++)
            out[j] = w->sum[i][j] / w->total[i];
    }
}

/* Rows [row, row + n), of one sequence. */
static void rows_run(work *w, int64_t row, int64_t n)
{
    const kargs *k = w->k;
    w->rows = n;
    w->pos = k->batch->pos + row;
    w->pages = kcell_pages(k->cell, k->batch, row);
    w->type = n * w->heads <= DIRECT_MAX ? k->cell->type : DT_F32;
    for (int64_t i = 0; i < n * w->heads; i++)
        w->q[i] = row_in(k, 0, row + i / w->heads) + (w->first_head + i % w->heads) * k->cell->k;
    work_run(w);
    work_end(w, row);
}

/* Scratch: what each query has, then room for a block. */
static void work_divide(work *w, float *mem)
{
    int64_t queries = w->size.rows * w->size.heads;
    for (int64_t i = 0; i < queries; i++) {
        w->p[i] = mem + i * KEYS;
        w->sum[i] = mem + queries * KEYS + i * w->size.v;
    }
    w->max = mem + queries * (KEYS + w->size.v);
    w->total = w->max + queries;
    w->key_mem = w->total + queries;
    w->value_mem = w->key_mem + KEYS * w->k->cell->k;
}

void k_attend_neon(const kargs *k, const kthread *t, int64_t begin, int64_t end)
{
    work w = {.k = k, .size = attend_neon_size_of(k)};
    work_divide(&w, t->scratch);
    for (int64_t i = begin; i < end; i++) {
        int64_t part = i % w.size.parts, block = i / w.size.parts / k->cell->heads;
        w.head = i / w.size.parts % k->cell->heads;
        int64_t first = part * w.size.heads, left = w.size.group - first;
        w.first_head = w.head * w.size.group + first;
        w.heads = left < w.size.heads ? left : w.size.heads;
        int64_t row = block * w.size.rows, row_end = row + w.size.rows;
        row_end = row_end < k->n[0] ? row_end : k->n[0];
        while (row < row_end && w.heads > 0) {
            int64_t same = row + 1;
            while (same < row_end && k->batch->seq[same] == k->batch->seq[row])
                same++;
            rows_run(&w, row, same - row);
            row = same;
        }
    }
}
