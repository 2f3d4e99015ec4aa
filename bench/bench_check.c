/* bench_check.c - how long does checking a model file take, and does that grow with its length alone?
 *
 * Processor time of dsl_check on text that is in memory: every file of the library (compiled in, as a
 * user's imports find them), then generated files of 1 000 to 16 000 lines. Targets: 5 ms for a library
 * file, 150 ms for 10 000 lines, and the same time per line at every length. */
#include "bench/bench.h"
#include "dsl/builtin_library.h"
#include "dsl/dsl.h"
#include "runtime/base/clock.h"
#include "tests/dsl/big_model.h"

#include <stdlib.h>

enum { WARM_UP = 2, RUNS = 15 };

static uint64_t check_once(const char *name, str text)
{
    arena *a = arena_create();
    weft_diag *dg = diag_create();
    source *src = source_from_text(a, name, text);
    uint64_t begin = clock_cpu_ns();
    weft_status st = dsl_check(dg, src, true);
    uint64_t ns = clock_cpu_ns() - begin;
    if (st != WEFT_OK || diag_count(dg) > 0) {
        diag_print(dg, stderr, false);
        exit(EXIT_FAILURE); /* the time of a failure would be no time at all */
    }
    diag_destroy(dg);
    arena_destroy(a);
    return ns;
}

static bench_times check(const char *variant, const char *name, str text, double target_ns)
{
    uint64_t ns[RUNS];
    char shape[32];
    size_t lines = 0;
    for (size_t i = 0; i < text.n; i++)
        lines += text.p[i] == '\n';
    for (int i = 0; i < WARM_UP; i++)
        check_once(name, text);
    for (int i = 0; i < RUNS; i++)
        ns[i] = check_once(name, text);
    bench_times t = bench_sum_up(ns, RUNS);
    snprintf(shape, sizeof shape, "%zu lines", lines);
    bench_print("check", variant, shape, t, target_ns);
    return t;
}

static void check_lengths(big_kind kind, const char *variant)
{
    static const size_t lines[] = {1000, 2000, 4000, 8000, 10000, 16000};
    double first = 0, last = 0;
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        strbuf text = {0};
        big_model(&text, kind, lines[i]);
        bench_times t =
            check(variant, "big.weft", strbuf_view(&text), lines[i] == 10000 ? 150e6 : 0);
        last = t.median_ns / (double)big_lines(&text);
        first = i == 0 ? last : first;
        strbuf_free(&text);
    }
    printf("%-16s %-24s %.0f ns a line at 1000 lines, %.0f at 16000: grown by %.2f\n", "check",
           variant, first, last, last / first);
}

int main(void)
{
    bench_print_heading();
    for (size_t i = 0; i < builtin_file_n; i++) {
        const builtin_file *f = &builtin_files[i];
        check(f->name, f->name, (str){f->text, f->size}, 5e6);
    }
    check_lengths(BIG_MANY, "many models");
    check_lengths(BIG_LONG, "one long model");
    return 0;
}
