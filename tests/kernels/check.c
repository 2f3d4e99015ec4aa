/* check.c - every kernel of kernels.def against its reference, and how fast each is.
 *
 *   check [--list] [--bench] [--seed N] [PATTERN]      PATTERN: a part of a symbol, as linear_Q8_0_c
 *
 * Needs libc alone, so that it can be built for another machine and run there. */
#include "tests/kernels/check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "runtime/base/clock.h"

static const check_op *const groups[] = {check_ops_contract, check_ops_map, check_ops_rows,
                                         check_ops_cell, check_ops_lora};

enum { GUARD = 256, BLOCKS_MAX = 256, SKEW_MAX = 64, PATTERN = 4096 };

typedef struct {
    char *raw;
    size_t bytes, skew;
    bool *unused; /* [bytes]: is nobody's; NULL: none is */
} block;

/* What memory holds that nobody wrote: see check.h. Of f32, f16 and bf16 these are zero, a quiet NaN, a tiny number, a
 * signalling NaN (of f16 and bf16 another and an infinity), infinities of f16, and of bf16. */
static const uint32_t fills[] = {0, 0xffffffff, 0xaaaaaaaa, 0x7f800001, 0x7c007c00, 0xff80ff80};
enum { N_FILL = sizeof fills / sizeof fills[0], FILL_NOISE = N_FILL };

struct check {
    uint64_t state; /* of the random numbers */
    uint32_t seed;
    block blocks[BLOCKS_MAX];
    int n_block;
    int fill; /* an index of fills, or FILL_NOISE */
    const kernel_row *row;
    const check_case *now;
    int n_fail;
};

uint32_t check_rand(check *c)
{
    /* xorshift64*, Vigna, "An experimental exploration of Marsaglia's xorshift generators". */
    c->state ^= c->state >> 12;
    c->state ^= c->state << 25;
    c->state ^= c->state >> 27;
    return (uint32_t)(c->state * 0x2545f4914f6cdd1dull >> 32);
}

int64_t check_below(check *c, int64_t n)
{
    return (int64_t)(check_rand(c) % (uint32_t)n);
}

float check_number(check *c)
{
    return (float)((double)check_rand(c) / 2147483648.0 - 1);
}

static void seed(check *c, uint32_t s)
{
    c->seed = s;
    c->state = s * 0x9e3779b97f4a7c15ull + 1;
    for (int i = 0; i < 8; i++)
        check_rand(c);
}

/* ---- what memory holds before anybody writes ---- */

/* Every fill over and over; the one behind them is for guards where other memory is noise. All repeat after PATTERN bytes, so whole pieces of
 * them are copied and compared: byte by byte this would take most of the time. */
static char patterns[N_FILL + 1][PATTERN];
_Static_assert(PATTERN % GUARD == 0, "own bytes begin with a whole pattern");

static void patterns_make(void)
{
    for (size_t i = 0; i < PATTERN; i++) {
        for (int f = 0; f < N_FILL; f++)
            patterns[f][i] = (char)(fills[f] >> 8 * (i % 4));
        patterns[FILL_NOISE][i] = (char)(0xa5 ^ i * 7);
    }
}

/* A piece of the pattern for the bytes behind `from`, counted from where a block's guard begins; at most n of them. */
static size_t pattern_piece(const check *c, size_t from, size_t n, const char **out)
{
    size_t at = from % PATTERN;
    *out = patterns[c->fill] + at;
    return n < PATTERN - at ? n : PATTERN - at;
}

static void pattern_fill(const check *c, char *p, size_t from, size_t n)
{
    const char *piece;
    for (size_t k; n > 0; from += k, n -= k) {
        k = pattern_piece(c, from, n, &piece);
        memcpy(p + from, piece, k);
    }
}

static bool pattern_holds(const check *c, const char *p, size_t from, size_t n)
{
    const char *piece;
    for (size_t k; n > 0; from += k, n -= k) {
        k = pattern_piece(c, from, n, &piece);
        if (memcmp(p + from, piece, k) != 0)
            return false;
    }
    return true;
}

static void noise_fill(check *c, char *p, size_t n) /* n: a multiple of 4 */
{
    for (size_t i = 0; i < n; i += 4) {
        uint32_t word = check_rand(c);
        memcpy(p + i, &word, 4);
    }
}

static void guards_fill(const check *c, const block *b)
{
    char *p = b->raw + b->skew;
    pattern_fill(c, p, 0, GUARD);
    pattern_fill(c, p, GUARD + b->bytes, GUARD);
}

void *check_alloc(check *c, size_t bytes, size_t skew)
{
    if (c->n_block == BLOCKS_MAX || skew > SKEW_MAX) {
        fprintf(stderr, "check: a case asks for too many blocks\n");
        exit(2);
    }
    size_t all = (bytes + 2 * GUARD + SKEW_MAX + 63) / 64 * 64;
    char *raw = aligned_alloc(64, all);
    if (!raw) {
        fprintf(stderr, "check: out of memory\n");
        exit(2);
    }
    c->blocks[c->n_block++] = (block){raw, bytes, skew, NULL};
    if (c->fill == FILL_NOISE)
        noise_fill(c, raw, all);
    else {
        memset(raw, 0, skew);
        pattern_fill(c, raw + skew, 0, all - skew);
    }
    guards_fill(c, &c->blocks[c->n_block - 1]);
    return raw + skew + GUARD;
}

/* ---- memory that is nobody's ---- */

static void mark_unused(check *c, const void *p, size_t bytes)
{
    for (int b = 0; b < c->n_block; b++) {
        block *to = &c->blocks[b];
        const char *own = to->raw + to->skew + GUARD, *at = p;
        if (at < own || at + bytes > own + to->bytes)
            continue;
        if (!to->unused)
            to->unused = calloc(to->bytes, sizeof *to->unused);
        if (!to->unused) {
            fprintf(stderr, "check: out of memory\n");
            exit(2);
        }
        memset(to->unused + (at - own), true, bytes);
        return;
    }
    fprintf(stderr, "check: unused bytes that are in no block\n");
    exit(2);
}

void check_unused(check *c, const void *p, size_t bytes)
{
    mark_unused(c, p, bytes);
}

void check_unused_gaps(check *c, const void *p, int64_t rows, int64_t pitch, int64_t used)
{
    for (int64_t r = 0; r < rows && used < pitch; r++)
        mark_unused(c, (const char *)p + r * pitch + used, (size_t)(pitch - used));
}

/* Where bytes that are the same from i on end. */
static size_t same_end(const char *a, const char *b, size_t i, size_t bytes)
{
    enum { AT_ONCE = 64 };
    while (bytes - i >= AT_ONCE && memcmp(a + i, b + i, AT_ONCE) == 0)
        i += AT_ONCE;
    while (i < bytes && a[i] == b[i])
        i++;
    return i;
}

void check_unused_unwritten(check *c, const void *p, const void *again, size_t bytes)
{
    const char *a = p, *b = again;
    for (size_t i = 0, end; i < bytes; i = end) {
        i = same_end(a, b, i, bytes);
        for (end = i; end < bytes && a[end] != b[end];)
            end++;
        if (end > i)
            mark_unused(c, a + i, end - i);
    }
}

void *check_complement(check *c, const void *p, size_t bytes)
{
    const char *from = p;
    char *to = check_alloc(c, bytes, 0);
    size_t i = 0;
    for (uint64_t word; i + sizeof word <= bytes; i += sizeof word) {
        memcpy(&word, from + i, sizeof word);
        word = ~word;
        memcpy(to + i, &word, sizeof word);
    }
    for (; i < bytes; i++)
        to[i] = (char)~from[i];
    return to;
}

/* Where the bytes that are unused as the i-th is, or used as it is, end. */
static size_t run_end(const block *b, size_t i)
{
    const bool *other = memchr(b->unused + i, !b->unused[i], b->bytes - i);
    return other ? (size_t)(other - b->unused) : b->bytes;
}

/* From here on: guards and unused bytes at once, other memory when it is allocated. */
static void fill_set(check *c, int fill)
{
    c->fill = fill;
    for (int b = 0; b < c->n_block; b++) {
        block *at = &c->blocks[b];
        guards_fill(c, at);
        for (size_t i = 0, end; at->unused && i < at->bytes; i = end) {
            end = run_end(at, i);
            if (at->unused[i])
                pattern_fill(c, at->raw + at->skew, GUARD + i, end - i);
        }
    }
}

static bool guards_hold(const check *c)
{
    for (int b = 0; b < c->n_block; b++) {
        const char *p = c->blocks[b].raw + c->blocks[b].skew;
        if (!pattern_holds(c, p, 0, GUARD) ||
            !pattern_holds(c, p, GUARD + c->blocks[b].bytes, GUARD))
            return false;
    }
    return true;
}

static void release(check *c, int keep)
{
    while (c->n_block > keep) {
        c->n_block--;
        free(c->blocks[c->n_block].raw);
        free(c->blocks[c->n_block].unused);
    }
}

float *check_numbers(check *c, int64_t n)
{
    float *x = check_alloc(c, (size_t)n * sizeof *x, 0);
    for (int64_t i = 0; i < n; i++)
        x[i] = check_number(c);
    return x;
}

int32_t *check_ids(check *c, int64_t n, int64_t below)
{
    int32_t *x = check_alloc(c, (size_t)n * sizeof *x, 0);
    for (int64_t i = 0; i < n; i++)
        x[i] = (int32_t)check_below(c, below);
    return x;
}

kbatch *check_batch(check *c, const kbatch *counts)
{
    size_t bytes = kbatch_bytes(counts);
    kbatch *b = check_alloc(c, bytes, 0);
    memset(b, 0, bytes);
    *b = *counts;
    return b;
}

/* ---- running a case ---- */

static size_t elem_bytes(dtype t)
{
    return dtype_row_of(t)->bytes;
}

static void fail(check *c, const char *what)
{
    c->n_fail++;
    printf("FAIL %s (%s, %s) shape %s seed %u: %s\n", c->row->symbol, kop_name(c->row->op),
           kvariant_name(c->row->variant), c->now->shape, c->seed, what);
}

typedef struct {
    char *out[K_OUT_MAX];
    int64_t pitch[K_OUT_MAX];
    kcell cell;
} results;

/* What a result with a fixed pitch holds before a run: the same noise each time, so that what a kernel
 * leaves alone compares equal. */
static void results_fill(const check_case *k, const results *from, results *to)
{
    for (int i = 0; i < K_OUT_MAX; i++)
        if (k->out[i].width && k->out[i].fixed_pitch)
            memcpy(to->out[i], from->out[i], (size_t)(k->out[i].rows * from->pitch[i]));
}

/* How one run differs from another. */
typedef struct {
    int64_t tile; /* 0: by rows */
    bool pieces;  /* not in one go */
    bool gaps;    /* between rows of the result */
    bool inplace;
    int fill; /* of what nobody wrote */
    const char *name;
} manner;

static void results_make(check *c, const check_case *k, const kargs *args, bool gaps, results *r)
{
    memset(r, 0, sizeof *r);
    for (int i = 0; i < K_OUT_MAX; i++) {
        const check_out *o = &k->out[i];
        if (o->width == 0)
            continue;
        int64_t gap = gaps && !o->fixed_pitch ? 12 : 0;
        r->pitch[i] = o->width * (int64_t)elem_bytes(o->type) + gap;
        r->out[i] = check_alloc(c, (size_t)(o->rows * r->pitch[i]), 0);
    }
    if (k->cell_bytes > 0) {
        r->cell = *args->cell;
        r->cell.tier[k->cell_tier].base = check_alloc(c, k->cell_bytes, 0);
    }
}

static void *scratch_make(check *c, const kernel_row *row, const kargs *args, size_t *out_bytes)
{
    *out_bytes = kernel_scratch(row, args);
    return check_alloc(c, *out_bytes, 0);
}

/* Returns the time that the kernel took. */
static uint64_t run(check *c, const kernel_row *row, const check_case *k, const kargs *given,
                    const manner *m, results *r)
{
    kargs a = *given;
    kthread t = {.index = 0, .count = 1};
    for (int i = 0; i < K_OUT_MAX; i++) {
        a.out[i] = r->out[i];
        a.out_pitch[i] = r->pitch[i];
    }
    if (k->cell_bytes > 0)
        a.cell = &r->cell;
    if (m->inplace) {
        memcpy(r->out[0], a.in[0], (size_t)(k->out[0].rows * r->pitch[0]));
        a.in[0] = r->out[0];
    }
    a.tile = m->tile;
    a.cols = m->tile ? k->cols : 0;
    t.scratch = scratch_make(c, row, &a, &t.scratch_bytes);
    int64_t units = kernel_units(row, &a);
    uint64_t began = clock_ns();
    if (!m->pieces) {
        row->fn(&a, &t, 0, units);
        return clock_ns() - began;
    }
    for (int64_t end = units; end > 0;) { /* backwards, in pieces of several sizes */
        int64_t begin = end - 1 - check_below(c, end < 4 ? end : 4);
        begin = begin < 0 ? 0 : begin;
        row->fn(&a, &t, begin, end);
        end = begin;
    }
    return clock_ns() - began;
}

static double value_of(const check_out *o, const char *p)
{
    float f;
    int32_t i;
    switch (o->type) {
    case DT_F32:
        memcpy(&f, p, sizeof f);
        return (double)f;
    case DT_I32:
        memcpy(&i, p, sizeof i);
        return i;
    default:
        return *(const unsigned char *)p;
    }
}

/* How far an element is off, in units of what it may be. */
static double excess(const check_out *o, int64_t i, const char *want, const char *got)
{
    double a = value_of(o, want), b = value_of(o, got);
    if (!o->bound || o->type != DT_F32)
        return memcmp(want, got, elem_bytes(o->type)) == 0 ? 0 : INFINITY;
    if (o->strict && (isnan(a) != isnan(b) || (isinf(a) && a != b)))
        return INFINITY;
    if (!isfinite(a) || !isfinite(b))
        return isfinite(a) == isfinite(b) ? 0 : INFINITY;
    double off = fabs(a - b);
    return off == 0 ? 0 : off / (double)o->bound[i];
}

static void compare_out(check *c, const check_case *k, const results *ref, const results *got,
                        int which)
{
    const check_out *o = &k->out[which];
    size_t size = elem_bytes(o->type);
    double worst = 0;
    int64_t at = 0;
    for (int64_t i = 0; i < o->rows * o->width; i++) {
        int64_t row = i / o->width, col = i % o->width;
        double e = excess(o, i, ref->out[which] + row * ref->pitch[which] + col * (int64_t)size,
                          got->out[which] + row * got->pitch[which] + col * (int64_t)size);
        if (e > worst) {
            worst = e;
            at = i;
        }
    }
    if (!(worst > 1))
        return;
    int64_t row = at / o->width, col = at % o->width;
    char text[256];
    snprintf(text, sizeof text,
             "result %d [%lld, %lld] is %.9g, the reference %.9g, may be off by %.3g", which,
             (long long)row, (long long)col,
             value_of(o, got->out[which] + row * got->pitch[which] + col * (int64_t)size),
             value_of(o, ref->out[which] + row * ref->pitch[which] + col * (int64_t)size),
             o->bound ? (double)o->bound[at] : 0.0);
    fail(c, text);
}

/* The same bits in another run; returns the first row that differs, -1: none. Which bits a NaN has is
 * the machine's choice. */
static int64_t first_difference(const check_out *o, const results *a, const results *b, int which)
{
    int64_t size = (int64_t)elem_bytes(o->type);
    for (int64_t row = 0; row < o->rows; row++) {
        const char *p = a->out[which] + row * a->pitch[which];
        const char *q = b->out[which] + row * b->pitch[which];
        if (memcmp(p, q, (size_t)(o->width * size)) == 0)
            continue;
        for (int64_t col = 0; col < o->width; col++, p += size, q += size)
            if (memcmp(p, q, (size_t)size) != 0 &&
                !(isnan(value_of(o, p)) && isnan(value_of(o, q))))
                return row;
    }
    return -1;
}

static void compare_runs(check *c, const check_case *k, const results *a, const results *b,
                         const manner *m)
{
    char text[128];
    for (int i = 0; i < K_OUT_MAX; i++) {
        int64_t row = k->out[i].width ? first_difference(&k->out[i], a, b, i) : -1;
        if (row >= 0) {
            snprintf(text, sizeof text,
                     "%s (tile %lld, unused memory %08x): other bits in row %lld of result %d",
                     m->name, (long long)m->tile, (unsigned)fills[m->fill], (long long)row, i);
            fail(c, text);
        }
    }
    if (k->cell_bytes > 0 && memcmp(a->cell.tier[k->cell_tier].base,
                                    b->cell.tier[k->cell_tier].base, k->cell_bytes) != 0) {
        snprintf(text, sizeof text, "%s (unused memory %08x): other bits in the cell", m->name,
                 (unsigned)fills[m->fill]);
        fail(c, text);
    }
}

/* What lies between rows is not the kernel's: it is as it was before, a copy of which is `before`. */
static bool gaps_hold(const check_case *k, const results *r, char *const *before)
{
    for (int i = 0; i < K_OUT_MAX; i++) {
        int64_t used = k->out[i].width * (int64_t)elem_bytes(k->out[i].type);
        for (int64_t row = 0; row < k->out[i].rows && k->out[i].width; row++)
            if (memcmp(r->out[i] + row * r->pitch[i] + used, before[i] + row * r->pitch[i] + used,
                       (size_t)(r->pitch[i] - used)) != 0)
                return false;
    }
    return true;
}

static void run_manner(check *c, const check_case *k, const results *first, const manner *m,
                       const results *noise, const char *cell_before)
{
    results r;
    char *before[K_OUT_MAX] = {0};
    int keep = c->n_block;
    fill_set(c, m->fill);
    results_make(c, k, &k->k, m->gaps, &r);
    results_fill(k, noise, &r);
    if (k->cell_bytes > 0)
        memcpy(r.cell.tier[k->cell_tier].base, cell_before, k->cell_bytes);
    for (int i = 0; i < K_OUT_MAX; i++)
        if (k->out[i].width) {
            size_t bytes = (size_t)(k->out[i].rows * r.pitch[i]);
            before[i] = check_alloc(c, bytes, 0);
            memcpy(before[i], r.out[i], bytes);
        }
    run(c, c->row, k, &k->k, m, &r);
    compare_runs(c, k, first, &r, m);
    if (!m->inplace && !gaps_hold(k, &r, before))
        fail(c, "wrote between the rows of its result");
    if (!guards_hold(c))
        fail(c, "wrote outside its memory");
    release(c, keep);
}

static void run_case(check *c, const check_case *k)
{
    const kernel_row *ref = kernel_find(c->row->op, "ref");
    const manner whole = {.name = "whole"};
    results noise, want, first;
    int fails = c->n_fail;
    results_make(c, k, &k->ref, false, &noise);
    results_make(c, k, &k->ref, false, &want);
    results_make(c, k, &k->k, false, &first);
    results_fill(k, &noise, &want);
    results_fill(k, &noise, &first);
    char *cell_before = k->cell_bytes ? check_alloc(c, k->cell_bytes, 0) : NULL;
    if (cell_before) {
        memcpy(want.cell.tier[k->cell_tier].base, cell_before, k->cell_bytes);
        memcpy(first.cell.tier[k->cell_tier].base, cell_before, k->cell_bytes);
    }
    run(c, ref, k, &k->ref, &whole, &want);
    run(c, c->row, k, &k->k, &whole, &first);
    for (int i = 0; i < K_OUT_MAX; i++)
        if (k->out[i].width)
            compare_out(c, k, &want, &first, i);
    if (k->cell_bytes && memcmp(want.cell.tier[k->cell_tier].base,
                                first.cell.tier[k->cell_tier].base, k->cell_bytes) != 0)
        fail(c, "the cell differs from the reference's");
    if (!guards_hold(c))
        fail(c, "wrote outside its memory");
    if (c->n_fail > fails)
        return;                         /* the other manners would show the same */
    int fill = (int)(c->seed % N_FILL); /* half of them with each case, all with the next */
    for (int i = 0; i < N_FILL / 2; i++, fill = (fill + 2) % N_FILL)
        run_manner(c, k, &first, &(manner){.fill = fill, .name = "whole"}, &noise, cell_before);
    run_manner(c, k, &first,
               &(manner){.pieces = true, .gaps = true, .fill = fill, .name = "in pieces"}, &noise,
               cell_before);
    if (k->inplace)
        run_manner(c, k, &first,
                   &(manner){.inplace = true, .pieces = true, .fill = fill, .name = "in place"},
                   &noise, cell_before);
    bool by_columns = k->cols && !kunit_is_square(c->row->unit);
    for (int64_t tiles = 1; by_columns && tiles <= 16; tiles *= 4) {
        fill = (fill + 1) % N_FILL;
        manner m = {
            .tile = tiles * k->grain, .gaps = tiles == 4, .fill = fill, .name = "by columns"};
        run_manner(c, k, &first, &m, &noise, cell_before);
        m.pieces = true;
        m.name = "by columns in pieces";
        run_manner(c, k, &first, &m, &noise, cell_before);
    }
}

/* Returns how many cases were run. */
static int check_row(check *c, const check_op *op, uint32_t first_seed)
{
    int done = 0;
    for (int n = 0;; n++) {
        check_case k = {0};
        fill_set(c, FILL_NOISE);
        seed(c, first_seed + (uint32_t)n);
        if (!op->make(c, c->row, n, &k))
            break;
        c->now = &k;
        if (!check_leaves_out(c->row, &k)) {
            run_case(c, &k);
            done++;
        }
        release(c, 0);
    }
    release(c, 0);
    return done;
}

/* ---- timing ---- */

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void bench_row(check *c, const check_op *op)
{
    enum { RUNS = 15 };
    for (int n = 0; op->bench; n++) {
        check_case k = {0};
        results r;
        double ns[RUNS];
        fill_set(c, FILL_NOISE);
        seed(c, 1);
        if (!op->bench(c, c->row, n, &k))
            break;
        results_make(c, &k, &k.k, false, &r);
        manner m = {.tile = k.cols ? k.grain * 32 : 0, .name = "bench"};
        for (int i = 0; i < RUNS; i++) {
            int keep = c->n_block;
            ns[i] = (double)run(c, c->row, &k, &k.k, &m, &r);
            release(c, keep);
        }
        qsort(ns, RUNS, sizeof *ns, by_value);
        double mid = ns[RUNS / 2];
        printf("%-22s %-28s median %10.1f us  min %10.1f us  spread %4.1f %%  %7.2f GB/s  %8.2f "
               "GFLOP/s\n",
               c->row->symbol + 2, k.shape, mid * 1e-3, ns[0] * 1e-3,
               100 * (ns[RUNS * 3 / 4] - ns[RUNS / 4]) / mid, k.bytes / mid, k.flops / mid);
        release(c, 0);
    }
    release(c, 0);
}

static const check_op *op_find(kop name)
{
    for (size_t g = 0; g < sizeof groups / sizeof groups[0]; g++)
        for (const check_op *op = groups[g]; op->make; op++)
            if (op->op == name)
                return op;
    return NULL;
}

/* ---- the program ---- */

typedef struct {
    bool list, bench;
    uint32_t seed;
    const char *pattern, *without; /* in the name of a kernel; at its end */
} options;

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), n_end = strlen(end);
    return n_end > 0 && n >= n_end && strcmp(text + n - n_end, end) == 0;
}

static bool options_read(int argc, char **argv, options *o)
{
    *o = (options){.seed = 1, .pattern = "", .without = ""};
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--list") == 0)
            o->list = true;
        else if (strcmp(argv[i], "--bench") == 0)
            o->bench = true;
        else if (strcmp(argv[i], "--seed") == 0 && i + 1 < argc)
            o->seed = (uint32_t)strtoul(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--without") == 0 && i + 1 < argc)
            o->without = argv[++i];
        else if (argv[i][0] != '-')
            o->pattern = argv[i];
        else
            return false;
    }
    return true;
}

static check the_check = {.fill = FILL_NOISE};
static bool timing;

bool check_times(void)
{
    return timing;
}

void check_fail(const char *what)
{
    fail(&the_check, what);
}

/* Overridden by programs that have more of them (check_jit.c). */
__attribute__((weak)) const kernel_row *check_more_rows(int *out_n)
{
    *out_n = 0;
    return NULL;
}

/* And by those whose kernels need it (check_cuda.c). */
__attribute__((weak)) bool check_packs(void)
{
    return false;
}
__attribute__((weak)) bool check_leaves_out(const kernel_row *row, const check_case *k)
{
    (void)row;
    (void)k;
    return false;
}

typedef struct {
    int done, cases, skipped;
} totals;

static void check_rows(const options *o, const kernel_row *rows, int n_row, totals *sum)
{
    check *c = &the_check;
    for (int i = 0; i < n_row; i++) {
        bool foreign = !rows[i].fn; /* cross.sh checks those */
        if (foreign || rows[i].variant == VARIANT_ref || !strstr(rows[i].symbol, o->pattern) ||
            ends_with(rows[i].symbol, o->without))
            continue;
        if (o->list) {
            printf("%s\n", rows[i].symbol);
            continue;
        }
        if (!kvariant_runs(rows[i].variant)) {
            printf("untested %s: this processor lacks what it needs\n", rows[i].symbol);
            sum->skipped++;
            continue;
        }
        const check_op *op = op_find(rows[i].op);
        c->row = &rows[i];
        int n = 0;
        if (op && o->bench)
            bench_row(c, op);
        else if (op)
            n = check_row(c, op, o->seed);
        if (n == 0 && !o->bench) {
            printf("FAIL %s: no cases\n", rows[i].symbol);
            c->n_fail++;
        }
        sum->done++;
        sum->cases += n;
    }
}

int main(int argc, char **argv)
{
    options o;
    if (!options_read(argc, argv, &o)) {
        fprintf(stderr, "usage: check [--list] [--bench] [--seed N] [--without END] [PATTERN]\n");
        return 2;
    }
    int n_row, n_more;
    const kernel_row *rows = kernel_rows(&n_row), *more = check_more_rows(&n_more);
    totals sum = {0};
    patterns_make();
    timing = o.bench;
    check_rows(&o, rows, n_row, &sum);
    check_rows(&o, more, n_more, &sum);
    if (!o.list && !o.bench)
        printf("%d kernels, %d cases, %d failures, %d kernels untested\n", sum.done, sum.cases,
               the_check.n_fail, sum.skipped);
    return the_check.n_fail > 0 || (sum.done == 0 && !o.list && sum.skipped == 0);
}
