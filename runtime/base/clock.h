/* clock.h - time that only goes forward, for measuring; it has no relation to the date. */
#ifndef WEFT_RUNTIME_BASE_CLOCK_H
#define WEFT_RUNTIME_BASE_CLOCK_H

#include <stdint.h>

#define CLOCK_NS_PER_S UINT64_C(1000000000)

uint64_t clock_ns(void);
uint64_t clock_cpu_ns(void); /* that the calling thread has had a CPU for */

static inline double clock_seconds(uint64_t ns)
{
    return (double)ns / (double)CLOCK_NS_PER_S;
}

#endif
