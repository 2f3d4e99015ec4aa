/* weaving.c - begun by the first call, for nobody knows before whether there is anything to weave. */
#include "runtime/cli/weaving.h"

#include "runtime/base/progress.h"

void weaving_tell(void *ctx, uint64_t done, uint64_t total)
{
    progress *bar = ctx;
    if (!bar->label)
        progress_start(bar, "weaving weights", total, PROGRESS_BYTES);
    progress_update(bar, done);
    if (done == total)
        progress_end(bar);
}
