/* peaks.h - what this machine's arithmetic reaches at most, for comparing kernels with.
 *
 * One row is one instruction that multiplies and adds: on operands in registers, with enough sums in flight
 * that its throughput shows and not its delay. A row that the compiler cannot build is not there, one that
 * the processor lacks has a rate of 0. Rates are measured by all threads at once. */
#ifndef WEFT_KERNELS_PEAKS_H
#define WEFT_KERNELS_PEAKS_H

#include "kernels/kernels.h"

typedef enum { PEAK_F32, PEAK_BF16, PEAK_INT8, PEAK_KIND_COUNT } peak_kind;
enum { PEAKS_MAX = 16 };

typedef struct {
    const char *name; /* of the instruction */
    peak_kind kind;
    uint32_t needs;               /* CPU_ features */
    double ops;                   /* multiplications and additions of one step */
    double (*run)(int64_t steps); /* returns something that depends on all of it */
    bool (*allowed)(void);        /* asks the system for the registers; NULL: no need to */
} peak_row;

typedef struct {
    int n;
    const peak_row *row[PEAKS_MAX]; /* the first is portable C in F32 */
    double rate[PEAKS_MAX];         /* operations per second */
} peak_rates;

const char *peak_kind_name(peak_kind k); /* "f32" */

/* Takes some tenths of a second. */
void peaks_measure(int threads, peak_rates *out);

/* Which of them a kernel could reach at best: the fastest for what it multiplies, among the instructions that its variant
 * may use. What rounds or splits f32 by itself counts as bf16. Portable code is compared with the portable row, as is
 * NULL, a kernel that is not the CPU's. */
int peaks_of(const peak_rates *r, const kernel_row *row);

#endif
