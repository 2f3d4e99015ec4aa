/* gang_size.h - how many threads the next call should have, and how they should wait, from what the last ones took.
 *
 * Threads wait for each other between phases, awake for a short while, because waking one takes longer than most waits. Where
 * other programs have the CPUs that is wrong twice: who is waited for may not be running, and who waits awake or yields
 * uses up the time that the system would give it. So a session that waits much tries for a few calls to sleep at once, then half
 * as many threads and so on, keeps what is faster, and tries the other way now and then: tries take one part in 16 of the time.
 * Results do not depend on it. Not thread-safe: the caller's thread only. */
#ifndef WEFT_RUNTIME_EXEC_GANG_SIZE_H
#define WEFT_RUNTIME_EXEC_GANG_SIZE_H

#include <stdbool.h>
#include <stdint.h>

/* Of one bucket; zeros: nothing is known. */
typedef struct {
    int level;    /* 0: all threads, awake; 1: all, asleep; then half of them, .. */
    bool tries;   /* a try runs: at `tried` */
    int tried, n; /* calls of it so far */
    bool more;    /* the last try was of more threads */
    bool far;     /* the next such is of level 0, which may be better where all between are worse */
    int known;    /* calls that the next two numbers are the mean of, 8 at most */
    double ns;    /* of a row at `level`, smoothed */
    double waiting; /* part of that time in which the caller had no CPU, smoothed */
    double try_ns, try_rows;
    double rest_ns;    /* until the next try */
    uint64_t ended_ns; /* the last call, by the clock; 0: there was none */
} gang_size;

typedef struct {
    int threads;
    bool awake; /* while they wait for each other */
} gang_choice;

/* For the next call, of at most `threads`. */
gang_choice gang_size_next(gang_size *g, int threads);
/* What that call took: from when to when by the clock, and of the caller's CPU. Not for a call that got other threads than
 * were chosen. */
void gang_size_learn(gang_size *g, int threads, int64_t rows, uint64_t began_ns, uint64_t ended_ns,
                     uint64_t cpu_ns);

#endif
