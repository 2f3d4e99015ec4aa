/* sched_stats.c - names and histograms. */
#include "runtime/base/clock.h"
#include "runtime/serve/sched_impl.h"

const char *sched_end_name(sched_end end)
{
    static const char *const name[] = {
#define SCHEDEND(name, text, meaning) [SCHED_END_##name] = text,
#include "runtime/serve/sched_end.def"
#undef SCHEDEND
    };
    return name[end];
}

_Static_assert((int)SCHED_END_FAILED == (int)GEN_FAILED &&
                   (int)SCHED_END_LENGTH == (int)GEN_LENGTH &&
                   (int)SCHED_END_CONTEXT == (int)GEN_CONTEXT,
               "sched_end.def begins with the rows of gen_end.def");

/* From a fast step to a long wait. The last one takes all. */
const double sched_bucket_s[SCHED_BUCKETS] = {0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2,
                                              0.5,   1,     2,     5,    10,   30,   60,  1e300};

void histogram_add(sched_histogram *h, uint64_t ns)
{
    double seconds = clock_seconds(ns);
    h->n++;
    h->sum_s += seconds;
    for (int i = 0; i < SCHED_BUCKETS; i++)
        h->at[i] += seconds <= sched_bucket_s[i];
}
