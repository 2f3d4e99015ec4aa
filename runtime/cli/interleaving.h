/* interleaving.h - the bar of a model that is used for the first time.
 *
 *     progress bar = {0};
 *     weft_session_options how = {..., .progress = interleaving_report, .progress_ctx = &bar};
 */
#ifndef WEFT_RUNTIME_CLI_INTERLEAVING_H
#define WEFT_RUNTIME_CLI_INTERLEAVING_H

#include <stdint.h>

/* ctx: a progress, all zeros before the first call. It ends with the last one, done == total. */
void interleaving_report(void *ctx, uint64_t done, uint64_t total);

#endif
