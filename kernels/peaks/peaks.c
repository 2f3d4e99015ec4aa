/* peaks.c - each instruction in short bursts, on all threads at once; of every thread the best burst counts.
 *
 * What disturbs a burst makes it slower, never faster, and a short one is often left alone even where others use the
 * machine too. */
#include "kernels/peaks/peaks_impl.h"

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
#if defined(PEAKS_AVXVNNI)
    peaks_avxvnni,
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

void peaks_measure(int threads, peak_rates *out)
{
    static const peak_row portable = {.name = "portable C", .kind = PEAK_F32};
    uint32_t has = cpu_features();
    threads = threads < 1 ? 1 : threads > THREADS_MAX ? THREADS_MAX : threads;
    *out = (peak_rates){.n = 1, .row = {&portable}, .rate = {flop_rate(threads)}};
    for (size_t t = 0; tables[t]; t++)
        for (const peak_row *row = tables[t]; row->name; row++) {
            bool runs = (has & row->needs) == row->needs && (!row->allowed || row->allowed());
            WEFT_ASSERT(out->n < PEAKS_MAX);
            out->row[out->n] = row;
            out->rate[out->n++] = runs ? measure(row, threads) : 0;
        }
}

static bool multiplies(const kernel_row *k, peak_kind kind)
{
    if (k->act == ACT_F32)
        return kind == PEAK_F32 || kind == PEAK_BF16;
    return kind == (act_is_split(k->act) ? PEAK_BF16 : PEAK_INT8);
}

int peaks_of(const peak_rates *r, const kernel_row *row)
{
    uint32_t may = row ? kvariant_needs(row->variant) : 0;
    int best = 0;
    for (int i = 1; i < r->n && row; i++)
        if (multiplies(row, r->row[i]->kind) && (may & r->row[i]->needs) == r->row[i]->needs &&
            (best == 0 || r->rate[i] > r->rate[best]))
            best = i;
    return best;
}
