/* bench.h - the way of every benchmark: warm up, repeat, report median, min and spread on one line. */
#ifndef WEFT_BENCH_BENCH_H
#define WEFT_BENCH_BENCH_H

#include <stdint.h>

typedef struct {
    double median_ns, min_ns;
    double spread; /* of the middle half of the runs, as a share of the median */
} bench_times;

/* Sort ns[n] and sum it up; n > 0. */
bench_times bench_sum_up(uint64_t *ns, int n);

/* name, variant, shape, median, min, spread; and the share of a target, if there is one (0: none). */
void bench_print(const char *name, const char *variant, const char *shape, bench_times t,
                 double target_ns);
/* The same with a rate and what it is compared with, as text. */
void bench_print_rate(const char *name, const char *variant, const char *shape, bench_times t,
                      const char *rate);
void bench_print_heading(void);

#endif
