#include "bench/bench.h"

#include <stdio.h>
#include <stdlib.h>

static int order(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

bench_times bench_sum_up(uint64_t *ns, int n)
{
    qsort(ns, (size_t)n, sizeof *ns, order);
    double median = (double)ns[n / 2];
    double middle = (double)(ns[n - 1 - n / 4] - ns[n / 4]);
    return (bench_times){median, (double)ns[0], median > 0 ? middle / median : 0};
}

/* A time in the unit that a person would choose. */
static const char *text_of(double ns, char *buf, size_t size)
{
    if (ns < 1e4)
        snprintf(buf, size, "%.0f ns", ns);
    else if (ns < 1e7)
        snprintf(buf, size, "%.1f us", ns / 1e3);
    else
        snprintf(buf, size, "%.1f ms", ns / 1e6);
    return buf;
}

void bench_print_heading(void)
{
    printf("%-16s %-24s %-16s %12s %12s %8s\n", "name", "variant", "shape", "median", "min",
           "spread");
}

static void print_times(const char *name, const char *variant, const char *shape, bench_times t)
{
    char median[32], min[32];
    printf("%-16s %-24s %-16s %12s %12s %7.1f%%", name, variant, shape,
           text_of(t.median_ns, median, sizeof median), text_of(t.min_ns, min, sizeof min),
           100 * t.spread);
}

void bench_print_rate(const char *name, const char *variant, const char *shape, bench_times t,
                      const char *rate)
{
    print_times(name, variant, shape, t);
    printf("  %s\n", rate);
    fflush(stdout);
}

void bench_print(const char *name, const char *variant, const char *shape, bench_times t,
                 double target_ns)
{
    char target[32];
    print_times(name, variant, shape, t);
    if (target_ns > 0)
        printf("  %.2f of %s", t.median_ns / target_ns, text_of(target_ns, target, sizeof target));
    printf("\n");
    fflush(stdout);
}
