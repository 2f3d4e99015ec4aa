/* interleaving.c - begun by the first call, for nobody knows before whether there is anything to interleave. */
#include "runtime/cli/interleaving.h"

#include "runtime/base/progress.h"

void interleaving_report(void *ctx, uint64_t done, uint64_t total)
{
    progress *bar = ctx;
    if (!bar->label)
        progress_start(bar, "interleaving weights", total, PROGRESS_BYTES);
    progress_update(bar, done);
    if (done == total)
        progress_end(bar);
}
