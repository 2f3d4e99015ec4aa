/* barrier.h - how threads wait for each other: awake for a short while, then asleep.
 *
 * A bell counts how often it was rung. Whoever waits for it says what count it heard last, so that a
 * ring between looking and waiting is not lost. A barrier lets `count` threads go on once all of them
 * have come. What a thread wrote before ringing or coming is seen by those that go on. */
#ifndef WEFT_RUNTIME_EXEC_BARRIER_H
#define WEFT_RUNTIME_EXEC_BARRIER_H

#include "runtime/base/status.h"
#include <pthread.h>
#include <stdatomic.h>

enum { CACHE_LINE = 64 }; /* bytes that threads should not share by accident */

typedef struct {
    _Alignas(CACHE_LINE) atomic_uint rung;
    atomic_int asleep; /* threads that wait below; changed with lock held */
    pthread_mutex_t lock;
    pthread_cond_t wake;
} bell;

#define BELL_INIT                                                                                  \
    {                                                                                              \
        .lock = PTHREAD_MUTEX_INITIALIZER, .wake = PTHREAD_COND_INITIALIZER                        \
    }
void bell_init(bell *b);
void bell_deinit(bell *b); /* nobody waits, and nobody is still ringing */

void bell_ring(bell *b);
unsigned bell_rung(bell *b);
/* Returns once it was rung more than `heard` times; awake for at most spin_ns. */
void bell_wait(bell *b, unsigned heard, uint64_t spin_ns);

typedef struct {
    _Alignas(CACHE_LINE) atomic_int missing;
    int count;        /* these two are set while nobody waits */
    uint64_t spin_ns; /* how long to stay awake */
    bell open;
} barrier;

void barrier_init(barrier *b);
void barrier_deinit(barrier *b);
/* For `count` threads from here on. */
void barrier_set(barrier *b, int count, uint64_t spin_ns);
void barrier_wait(barrier *b);

#endif
