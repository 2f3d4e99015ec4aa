/* gang_size.h - how many threads the next call should have, from what the last ones took.
 *
 * Threads wait for each other between phases. Where other programs have the CPUs, one that is waited for may not be running,
 * and a call by two threads can take twenty times as long as the same call by one. So a session that waits much tries
 * half as many threads for a few calls, keeps what is faster, and tries more again now and then: tries take one part in
 * TRY_SHARE of the time. Results do not depend on the number of threads. Not thread-safe: the caller's thread only. */
#ifndef WEFT_RUNTIME_EXEC_GANG_SIZE_H
#define WEFT_RUNTIME_EXEC_GANG_SIZE_H

#include <stdbool.h>
#include <stdint.h>

/* Of one bucket; zeros: nothing is known. */
typedef struct {
    int level;      /* threads are halved so often */
    bool tries;     /* a try runs: at `tried` */
    int tried, n;   /* calls of it so far */
    bool more;      /* the last try was with more threads */
    int known;      /* calls that the next two are of, so far as it matters */
    double ns;      /* of a row at `level`, smoothed */
    double waiting; /* part of that time in which the caller had no CPU, smoothed */
    double try_ns, try_rows;
    double rest_ns; /* until the next try */
} gang_size;

/* Threads for the next call, of at most `threads`; gang_size_learn must follow, with what the call took: by the clock, and
 * of the caller's CPU. */
int gang_size_next(gang_size *g, int threads);
void gang_size_learn(gang_size *g, int threads, int64_t rows, uint64_t wall_ns, uint64_t cpu_ns);

#endif
