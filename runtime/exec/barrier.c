/* barrier.c - a counter that is watched for a while, and a condition variable for those that gave up.
 *
 * Ringing and falling asleep are ordered by sequentially consistent accesses: either the one who rings
 * sees that somebody sleeps, or the sleeper sees that it was rung. So ringing takes the lock only when
 * somebody has to be woken. */
#include "runtime/exec/barrier.h"

#include "runtime/base/clock.h"

enum { LOOKS_PER_CLOCK = 32 }; /* reading the clock costs as much as some tens of looks */

void bell_init(bell *b)
{
    atomic_init(&b->rung, 0);
    atomic_init(&b->asleep, 0);
    pthread_mutex_init(&b->lock, NULL);
    pthread_cond_init(&b->wake, NULL);
}

void bell_deinit(bell *b)
{
    pthread_mutex_destroy(&b->lock);
    pthread_cond_destroy(&b->wake);
}

void bell_ring(bell *b)
{
    atomic_fetch_add(&b->rung, 1);
    if (atomic_load(&b->asleep) == 0)
        return;
    pthread_mutex_lock(&b->lock);
    pthread_cond_broadcast(&b->wake);
    pthread_mutex_unlock(&b->lock);
}

unsigned bell_rung(bell *b)
{
    return atomic_load_explicit(&b->rung, memory_order_acquire);
}

/* Tells the processor that this thread only waits. */
static inline void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Who waits awake does not yield: where other programs want the CPU that gives up the turn, and the thread comes back only
 * after all of them. One that sleeps runs soon after it is woken (bench/results/busy.md). */
static bool hear_awake(bell *b, unsigned heard, uint64_t spin_ns)
{
    if (bell_rung(b) != heard)
        return true;
    if (spin_ns == 0)
        return false;
    uint64_t start = clock_ns();
    for (;;) {
        for (int i = 0; i < LOOKS_PER_CLOCK; i++) {
            if (bell_rung(b) != heard)
                return true;
            relax();
        }
        if (clock_ns() - start >= spin_ns)
            return false;
    }
}

void bell_wait(bell *b, unsigned heard, uint64_t spin_ns)
{
    if (hear_awake(b, heard, spin_ns))
        return;
    pthread_mutex_lock(&b->lock);
    atomic_fetch_add(&b->asleep, 1);
    while (atomic_load(&b->rung) == heard)
        pthread_cond_wait(&b->wake, &b->lock);
    atomic_fetch_sub(&b->asleep, 1);
    pthread_mutex_unlock(&b->lock);
}

void barrier_init(barrier *b)
{
    bell_init(&b->open);
    barrier_set(b, 1, 0);
}

void barrier_deinit(barrier *b)
{
    bell_deinit(&b->open);
}

void barrier_set(barrier *b, int count, uint64_t spin_ns)
{
    b->count = count;
    b->spin_ns = spin_ns;
    atomic_store_explicit(&b->missing, count, memory_order_relaxed);
}

void barrier_wait(barrier *b)
{
    unsigned heard = bell_rung(&b->open); /* it cannot ring before this thread has come */
    if (atomic_fetch_sub_explicit(&b->missing, 1, memory_order_acq_rel) == 1) {
        atomic_store_explicit(&b->missing, b->count, memory_order_relaxed);
        bell_ring(&b->open);
    } else {
        bell_wait(&b->open, heard, b->spin_ns);
    }
}
