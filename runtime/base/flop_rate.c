/* flop_rate.c - the inner loop of a matrix product, on operands that stay in registers: the products of
 * three vectors and four others are added to twelve sums.
 *
 * The vectors are as wide as every processor of the kind has them, so the rate is that of portable
 * code. */
#include "runtime/base/flop_rate.h"

#include "runtime/base/clock.h"
#include <pthread.h>
#include <stdbool.h>

enum { LANES = 4, SUMS = 12, STEPS = 100000, TRIES = 5, THREADS_MAX = 1024 };

typedef float lanes __attribute__((vector_size(LANES * sizeof(float))));

typedef struct {
    pthread_t thread;
    bool started;
    lanes sum; /* so that nothing is left out */
} worker;

static lanes lanes_of(float x)
{
    return (lanes){x, x, x, x};
}

static void *work(void *ctx)
{
    worker *w = ctx;
    volatile float one = 1; /* not known to the compiler */
    lanes a0 = lanes_of(one), a1 = a0 * 0.5f, a2 = a0 * 0.25f, a3 = a0 * 0.125f;
    lanes b0 = a0, b1 = a1, b2 = a2;
    lanes s[SUMS] = {0};
    lanes s0 = s[0], s1 = s[1], s2 = s[2], s3 = s[3], s4 = s[4], s5 = s[5], s6 = s[6], s7 = s[7],
          s8 = s[8], s9 = s[9], s10 = s[10], s11 = s[11];
    for (int i = 0; i < STEPS; i++) {
        s0 += a0 * b0, s1 += a1 * b0, s2 += a2 * b0, s3 += a3 * b0;
        s4 += a0 * b1, s5 += a1 * b1, s6 += a2 * b1, s7 += a3 * b1;
        s8 += a0 * b2, s9 += a1 * b2, s10 += a2 * b2, s11 += a3 * b2;
        b0 = -b0, b1 = -b1, b2 = -b2; /* or the products would be made once */
    }
    w->sum = ((s0 + s1) + (s2 + s3)) + ((s4 + s5) + (s6 + s7)) + ((s8 + s9) + (s10 + s11));
    return 0;
}

double flop_rate(int threads)
{
    static const double flops = 2.0 * SUMS * LANES * STEPS;
    worker w[THREADS_MAX];
    double best = 0;
    threads = threads < 1 ? 1 : threads > THREADS_MAX ? THREADS_MAX : threads;
    for (int t = 0; t < TRIES; t++) {
        uint64_t start = clock_ns();
        int n = 1;
        for (int i = 1; i < threads; i++) {
            w[i].started = pthread_create(&w[i].thread, 0, work, &w[i]) == 0;
            n += w[i].started;
        }
        work(&w[0]);
        for (int i = 1; i < threads; i++)
            if (w[i].started)
                pthread_join(w[i].thread, 0);
        double rate = n * flops / clock_seconds(clock_ns() - start);
        best = rate > best ? rate : best;
    }
    return best;
}
