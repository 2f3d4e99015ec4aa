/* bandwidth.c - each thread adds up its part of a large block, one word of every cache line.
 *
 * Memory comes in whole lines, so touching a word of each moves them all, and adding costs nothing
 * beside it. */
#include "runtime/base/bandwidth.h"

#include "runtime/base/clock.h"
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { LINE = 64, TRIES = 5, THREADS_MAX = 1024 };
static const size_t block_bytes = (size_t)384 << 20;

typedef struct {
    pthread_t thread;
    bool started;
    const unsigned char *from;
    size_t bytes;
    uint64_t sum; /* so that nothing is left out */
} worker;

static void *work(void *ctx)
{
    worker *w = ctx;
    uint64_t a = 0, b = 0, c = 0, d = 0, x[4];
    for (size_t i = 0; i + 4 * LINE <= w->bytes; i += 4 * LINE) {
        for (size_t k = 0; k < 4; k++)
            memcpy(&x[k], w->from + i + k * LINE, sizeof x[k]);
        a += x[0], b += x[1], c += x[2], d += x[3];
    }
    w->sum = a + b + c + d;
    return NULL;
}

static double read_once(worker *w, int threads, const unsigned char *block)
{
    size_t part = block_bytes / (size_t)threads / (4 * LINE) * (4 * LINE), read = part;
    uint64_t start = clock_ns();
    for (int i = 0; i < threads; i++) {
        w[i].from = block + (size_t)i * part;
        w[i].bytes = part;
        w[i].started = i > 0 && pthread_create(&w[i].thread, NULL, work, &w[i]) == 0;
        read += w[i].started ? part : 0;
    }
    work(&w[0]);
    for (int i = 1; i < threads; i++)
        if (w[i].started)
            pthread_join(w[i].thread, NULL);
    return (double)read / clock_seconds(clock_ns() - start);
}

double bandwidth_read(int threads)
{
    worker w[THREADS_MAX];
    unsigned char *block = malloc(block_bytes);
    double best = 0;
    if (!block)
        return 0;
    memset(block, 1, block_bytes); /* pages of their own, not one of zeros */
    threads = threads < 1 ? 1 : threads > THREADS_MAX ? THREADS_MAX : threads;
    for (int t = 0; t < TRIES; t++) {
        double rate = read_once(w, threads, block);
        best = rate > best ? rate : best;
    }
    free(block);
    return best;
}
