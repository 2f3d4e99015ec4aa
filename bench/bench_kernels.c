/* bench_kernels.c - how fast is every kernel at the shapes of real models, and what share is that of what this
 * machine's memory and arithmetic allow?
 *
 *     bench_kernels [-t N] [--quick] [--model NAME] [--rows 1,256] [--shapes FOLDER] [--list] [PATTERN...]
 *
 * Every row of kernels.def but the reference that this processor can run and whose symbol contains one of the
 * patterns is measured for 1, 4, 16 and 256 rows, as far as it is meant for so many. Threads share the work as
 * those of a session do. */
#include "bench/bench.h"
#include "bench/kernel_case.h"
#include "kernels/peaks/peaks.h"
#include "runtime/base/bandwidth.h"
#include "runtime/base/clock.h"
#include "runtime/base/mem.h"
#include "runtime/base/threads.h"
#include "runtime/exec/pool.h"
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RUNS_MAX = 200, RUNS_LEAST = 5, RANGES_PER_SHARE = 8, ROWS_MAX = 16 };

typedef struct {
    int threads;
    bool quick, list;
    const char *model, *shapes;
    int64_t rows[ROWS_MAX];
    int n_rows;
    char *const *patterns;
    int n_pattern;
} options;

/* ---- one call, on all threads ---- */

typedef struct {
    _Alignas(64) atomic_int_least64_t next;
} cursor;

typedef struct {
    const kernel_row *row;
    const kargs *k;
    int64_t units;
    cursor *shares; /* [threads] */
    char *scratch;  /* [threads][scratch_bytes] */
    size_t scratch_bytes;
} call;

static int64_t share_begin(int64_t units, int i, int count)
{
    return units * i / count;
}

/* A thread's own share range by range, then those of the others. */
static void work(void *ctx, int index, int count)
{
    call *c = ctx;
    kthread t = {.index = index,
                 .count = count,
                 .scratch = c->scratch + (size_t)index * c->scratch_bytes,
                 .scratch_bytes = c->scratch_bytes};
    int64_t range = c->units / ((int64_t)count * RANGES_PER_SHARE);
    range = range < 1 ? 1 : range;
    for (int i = 0; i < count; i++) {
        int from = (index + i) % count;
        int64_t end = share_begin(c->units, from + 1, count);
        for (;;) {
            int64_t begin =
                atomic_fetch_add_explicit(&c->shares[from].next, range, memory_order_relaxed);
            if (begin >= end)
                break;
            c->row->fn(c->k, &t, begin, begin + range < end ? begin + range : end);
        }
    }
}

static uint64_t run_once(call *c, int threads)
{
    pool_gang gang;
    pool_gather(&gang, threads);
    for (int i = 0; i < gang.count; i++)
        atomic_store(&c->shares[i].next, share_begin(c->units, i, gang.count));
    uint64_t start = clock_ns();
    pool_go(&gang, work, c);
    return clock_ns() - start;
}

static bench_times measure(const options *o, const kernel_row *row, kernel_case *kc)
{
    static uint64_t ns[RUNS_MAX];
    const uint64_t enough_ns = o->quick ? 20000000 : 300000000;
    const int least = o->quick ? 3 : RUNS_LEAST;
    call c = {.row = row, .k = &kc->k, .units = kernel_units(row, &kc->k)};
    c.scratch_bytes = (kernel_scratch(row, &kc->k) + ACT_ALIGN - 1) / ACT_ALIGN * ACT_ALIGN;
    void *shares = NULL, *scratch = NULL;
    if (posix_memalign(&shares, 64, (size_t)o->threads * sizeof(cursor)) != 0 ||
        posix_memalign(&scratch, ACT_ALIGN, (size_t)o->threads * c.scratch_bytes + 1) != 0) {
        fprintf(stderr, "no memory for %s\n", row->symbol);
        exit(1);
    }
    c.shares = shares;
    c.scratch = scratch;
    uint64_t all = 0;
    int n = 0;
    run_once(&c, o->threads); /* warm up */
    while (n < RUNS_MAX && (n < least || all < enough_ns)) {
        kernel_case_turn(kc, n + 1);
        ns[n] = run_once(&c, o->threads);
        all += ns[n++];
    }
    free(shares);
    free(scratch);
    return bench_sum_up(ns, n);
}

/* ---- what the machine allows ---- */

typedef struct {
    double bandwidth; /* bytes per second */
    peak_rates peaks;
} limits;

static void print_peak(const peak_row *row, double rate)
{
    if (rate > 0)
        printf("%-20s %8.1f G%s/s, %s\n", row->name, rate / 1e9,
               row->kind == PEAK_INT8 ? "OP" : "FLOP", peak_kind_name(row->kind));
    else
        printf("%-20s not on this processor\n", row->name);
}

static limits measure_limits(int threads)
{
    limits l = {.bandwidth = bandwidth_read(threads)};
    printf("%-20s %8.1f GB/s, %d thread%s\n", "reading memory", l.bandwidth / 1e9, threads,
           threads == 1 ? "" : "s");
    peaks_measure(threads, &l.peaks);
    for (int i = 0; i < l.peaks.n; i++)
        print_peak(l.peaks.row[i], l.peaks.rate[i]);
    printf("\n");
    return l;
}

static void print_case(const limits *l, const kernel_row *row, const shape_entry *s,
                       const kernel_case *c, int64_t rows, bench_times t)
{
    char name[32], variant[32], shape[96], rate[160];
    int peak = peaks_of(&l->peaks, row);
    double memory = l->bandwidth > 0 ? c->bytes / l->bandwidth : 0;
    double sums = c->flops / l->peaks.rate[peak], seconds = t.median_ns * 1e-9;
    bool bound_by_sums = sums > memory;
    snprintf(name, sizeof name, "%s%s%s", kop_name(row->op), row->type == DT_COUNT ? "" : " ",
             row->type == DT_COUNT ? "" : dtype_row_of(row->type)->name);
    snprintf(variant, sizeof variant, "%s%s%s", kvariant_name(row->variant),
             row->layout == LAYOUT_STORED ? "" : " ",
             row->layout == LAYOUT_STORED ? "" : layout_name(row->layout));
    snprintf(shape, sizeof shape, "%s, %lld row%s", c->shape, (long long)rows,
             rows == 1 ? "" : "s");
    snprintf(rate, sizeof rate, "%8.2f %s  %5.1f %% of %-10s  %s",
             bound_by_sums ? c->flops / seconds / 1e9 : c->bytes / seconds / 1e9,
             bound_by_sums ? "GFLOP/s" : "GB/s   ", 100 * (bound_by_sums ? sums : memory) / seconds,
             bound_by_sums ? l->peaks.row[peak]->name : "memory", s->models);
    bench_print_rate(name, variant, shape, t, rate);
}

/* ---- what to measure ---- */

static double work_of(const shape_entry *s)
{
    double all = (double)s->count;
    for (int i = 0; i < s->n_size; i++)
        all *= (double)(s->size[i] > 0 ? s->size[i] : 1);
    return all;
}

/* One shape of each op, that which a model spends most on. */
static void keep_largest(shape_list *list)
{
    size_t kept = 0;
    for (size_t i = 0; i < list->n; i++) {
        bool best = true;
        for (size_t j = 0; j < list->n; j++)
            if (strcmp(list->at[i].op, list->at[j].op) == 0 &&
                (work_of(&list->at[j]) > work_of(&list->at[i]) ||
                 (j < i && work_of(&list->at[j]) == work_of(&list->at[i]))))
                best = false;
        list->at[i].models[0] = best ? list->at[i].models[0] : 0;
    }
    for (size_t i = 0; i < list->n; i++)
        if (list->at[i].models[0])
            list->at[kept++] = list->at[i];
    list->n = kept;
}

static bool is_wanted(const options *o, const char *symbol)
{
    for (int i = 0; i < o->n_pattern; i++)
        if (strstr(symbol, o->patterns[i]))
            return true;
    return o->n_pattern == 0;
}

static bool has_shapes(const shape_list *shapes, const char *op)
{
    for (size_t i = 0; i < shapes->n; i++)
        if (strcmp(shapes->at[i].op, op) == 0)
            return true;
    return false;
}

static weft_status check_shapes(weft_diag *dg, const shape_list *shapes)
{
    for (size_t i = 0; i < shapes->n; i++)
        if (!kernel_case_knows(&shapes->at[i]))
            return weft_fail(dg, W1002, WEFT_NOWHERE, "%s: `%s` with %d sizes is no operator",
                             shapes->at[i].models, shapes->at[i].op, shapes->at[i].n_size);
    return WEFT_OK;
}

static int bench_row(const options *o, const limits *l, const kernel_row *row,
                     const shape_list *shapes)
{
    static kernel_case c;
    const case_limits within = {.cold_bytes = (size_t)(o->quick ? 48 : 192) << 20,
                                .flops_max = o->quick ? 5e8 : 2e10};
    int n = 0;
    for (size_t i = 0; i < shapes->n; i++)
        for (int r = 0; r < o->n_rows; r++)
            if (kernel_case_make(row, &shapes->at[i], o->rows[r], &within, &c)) {
                bench_times t = measure(o, row, &c);
                print_case(l, row, &shapes->at[i], &c, o->rows[r], t);
                kernel_case_free(&c);
                n++;
            }
    return n;
}

static int bench_rows(const options *o, const shape_list *shapes)
{
    int n_row, measured = 0, absent = 0;
    const kernel_row *rows = kernel_rows(&n_row);
    limits l = {.bandwidth = 0};
    if (!o->list) {
        l = measure_limits(o->threads);
        bench_print_heading();
    }
    for (int i = 0; i < n_row; i++) {
        /* What adapters take depends on who uses which: `weft bench` measures it in whole plans. */
        bool adapters = rows[i].op == KOP_lora_down || rows[i].op == KOP_lora_up;
        bool foreign = !rows[i].fn;
        if (foreign || rows[i].variant == VARIANT_ref || adapters || !is_wanted(o, rows[i].symbol))
            continue;
        if (o->list) {
            printf("%-28s %s\n", rows[i].symbol,
                   !has_shapes(shapes, kop_name(rows[i].op)) ? "no shapes"
                   : !kvariant_runs(rows[i].variant)         ? "not on this processor"
                                                             : "");
            measured++;
        } else if (!kvariant_runs(rows[i].variant)) {
            absent++;
        } else {
            measured += bench_row(o, &l, &rows[i], shapes);
        }
    }
    if (!o->list)
        printf("%d measured; %d kernels need another processor\n", measured, absent);
    return measured > 0 || absent > 0 ? 0 : 1;
}

/* ---- the program ---- */

static bool read_rows(const char *text, options *o)
{
    o->n_rows = 0;
    for (const char *p = text;; p++) {
        char *end;
        long x = strtol(p, &end, 10);
        if (end == p || x < 1 || x > 4096 || (*end && *end != ',') || o->n_rows == ROWS_MAX)
            return false;
        o->rows[o->n_rows++] = x;
        p = end;
        if (!*p)
            return true;
    }
}

static bool read_threads(const char *text, options *o)
{
    char *end;
    long x = strtol(text, &end, 10);
    o->threads = (int)x;
    return end != text && !*end && x >= 1 && x <= 256;
}

/* Flags first, then patterns. */
static bool read_options(int argc, char **argv, options *o)
{
    int i = 1;
    *o = (options){.threads = threads_default(),
                   .model = "",
                   .shapes = WEFT_SOURCE_DIR "/bench/shapes",
                   .rows = {1, 4, 16, 256},
                   .n_rows = 4};
    for (; i < argc && argv[i][0] == '-'; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (strcmp(argv[i], "--quick") == 0) {
            o->quick = true;
            continue;
        }
        if (strcmp(argv[i], "--list") == 0) {
            o->list = true;
            continue;
        }
        if (!value)
            return false;
        if (strcmp(argv[i], "-t") == 0) {
            if (!read_threads(value, o))
                return false;
        } else if (strcmp(argv[i], "--rows") == 0) {
            if (!read_rows(value, o))
                return false;
        } else if (strcmp(argv[i], "--model") == 0) {
            o->model = value;
        } else if (strcmp(argv[i], "--shapes") == 0) {
            o->shapes = value;
        } else {
            return false;
        }
        i++;
    }
    o->patterns = argv + i;
    o->n_pattern = argc - i;
    return true;
}

int main(int argc, char **argv)
{
    options o;
    if (!read_options(argc, argv, &o)) {
        fprintf(stderr, "usage: bench_kernels [-t 1..256] [--quick] [--model NAME] [--rows N,..]\n"
                        "                     [--shapes FOLDER] [--list] [PATTERN...]\n");
        return 2;
    }
    weft_diag *dg = diag_create();
    shape_list shapes = {0};
    int rc = 1;
    weft_status st = shape_list_read(dg, o.shapes, o.model, &shapes);
    if (st == WEFT_OK)
        st = check_shapes(dg, &shapes);
    if (st == WEFT_OK)
        st = pool_acquire(dg, o.threads, false);
    if (st == WEFT_OK) {
        if (o.quick)
            keep_largest(&shapes);
        rc = bench_rows(&o, &shapes);
        pool_release();
    }
    diag_print(dg, stderr, false);
    VEC_FREE(&shapes);
    diag_destroy(dg);
    return rc;
}
