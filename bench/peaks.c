/* peaks.c - each instruction in short bursts, on all threads at once; of every thread the best burst counts.
 *
 * What disturbs a burst makes it slower, never faster, and a short one is often left alone even where others use the
 * machine too. */
#include "bench/peaks.h"

#include "runtime/base/clock.h"
#include "runtime/base/cpu.h"
#include "runtime/base/flop_rate.h"
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

enum { BURSTS = 40, THREADS_MAX = 256 };

static const double burst_seconds = 0.001;

static const peak_row *const tables[] = {
#if defined(PEAKS_AARCH64)
    peaks_aarch64,
#endif
#if defined(PEAKS_AVX2)
    peaks_avx2,
#endif
#if defined(PEAKS_AVX512)
    peaks_avx512,
#endif
#if defined(PEAKS_AMX)
    peaks_amx,
#endif
    NULL,
};

const char *peak_kind_name(peak_kind k)
{
    static const char *const names[PEAK_KIND_COUNT] = {"f32", "bf16", "int8"};
    return names[k];
}

typedef struct {
    const peak_row *row;
    int64_t steps; /* of a burst */
    pthread_t thread;
    bool started;
    double best;          /* seconds of a burst */
    volatile double sink; /* so that nothing is left out */
} worker;

static double burst(worker *w)
{
    uint64_t start = clock_ns();
    w->sink = w->row->run(w->steps);
    return clock_seconds(clock_ns() - start);
}

static void *work(void *ctx)
{
    worker *w = ctx;
    w->best = burst(w);
    for (int i = 1; i < BURSTS; i++) {
        double seconds = burst(w);
        w->best = seconds < w->best ? seconds : w->best;
    }
    return NULL;
}

static double measure(const peak_row *row, int threads)
{
    static worker w[THREADS_MAX];
    double rate = 0;
    w[0] = (worker){.row = row, .steps = 1000};
    while (burst(&w[0]) < burst_seconds && w[0].steps < INT64_C(1) << 40)
        w[0].steps *= 2;
    for (int i = 1; i < threads; i++) {
        w[i] = (worker){.row = row, .steps = w[0].steps};
        w[i].started = pthread_create(&w[i].thread, NULL, work, &w[i]) == 0;
    }
    work(&w[0]);
    for (int i = 0; i < threads; i++) {
        if (w[i].started)
            pthread_join(w[i].thread, NULL);
        if (i == 0 || w[i].started)
            rate += row->ops * (double)w[i].steps / w[i].best;
    }
    return rate;
}

void peaks_measure(int threads, void (*tell)(const peak_row *row, double rate),
                   double out_best[PEAK_KIND_COUNT])
{
    uint32_t has = cpu_features();
    threads = threads < 1 ? 1 : threads > THREADS_MAX ? THREADS_MAX : threads;
    for (int k = 0; k < PEAK_KIND_COUNT; k++)
        out_best[k] = 0;
    out_best[PEAK_F32] = flop_rate(threads);
    tell(&(peak_row){.name = "portable C", .kind = PEAK_F32}, out_best[PEAK_F32]);
    for (size_t t = 0; tables[t]; t++)
        for (const peak_row *row = tables[t]; row->name; row++) {
            bool runs = (has & row->needs) == row->needs && (!row->allowed || row->allowed());
            double rate = runs ? measure(row, threads) : 0;
            tell(row, rate);
            if (rate > out_best[row->kind])
                out_best[row->kind] = rate;
        }
}
