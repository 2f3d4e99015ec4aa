/* peaks.h - what this machine's arithmetic reaches at most, for comparing kernels with.
 *
 * One row is one instruction that multiplies and adds: on operands in registers, with enough sums in flight
 * that its throughput shows and not its delay. A row that the compiler cannot build is not there, one that
 * the processor lacks is 0. */
#ifndef WEFT_BENCH_PEAKS_H
#define WEFT_BENCH_PEAKS_H

#include <stdbool.h>
#include <stdint.h>

typedef enum { PEAK_F32, PEAK_BF16, PEAK_INT8, PEAK_KIND_COUNT } peak_kind;

typedef struct {
    const char *name; /* of the instruction */
    peak_kind kind;
    uint32_t needs;               /* CPU_ features */
    double ops;                   /* multiplications and additions of one step */
    double (*run)(int64_t steps); /* returns something that depends on all of it */
    bool (*allowed)(void);        /* asks the system for the registers; NULL: no need to */
} peak_row;

/* The rows of one file, ended by a name NULL. */
extern const peak_row peaks_aarch64[], peaks_avx2[], peaks_avx512[], peaks_amx[];

const char *peak_kind_name(peak_kind k); /* "f32" */

/* Operations per second of all rows with `threads` threads, told by `tell` one by one; out_best has the best of each
 * kind, of F32 that of portable C at least, and 0 for a kind that the processor has no instruction for. */
void peaks_measure(int threads, void (*tell)(const peak_row *row, double rate),
                   double out_best[PEAK_KIND_COUNT]);

#endif
