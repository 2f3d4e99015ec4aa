/* status.c - the names of statuses, and the end of the road for bugs. */
#include "runtime/base/status.h"

#include <stdio.h>
#include <stdlib.h>

void weft_bug(const char *file, int line, const char *what)
{
    fprintf(stderr, "weft: bug: %s:%d: %s does not hold\n", file, line, what);
    abort();
}

const char *weft_status_text(weft_status st)
{
    static const char *const text[WEFT_STATUS_COUNT] = {
        [WEFT_OK] = "ok",
#define STATUS(name, meaning) [WEFT_ERR_##name] = meaning,
#include "runtime/base/status.def"
#undef STATUS
    };
    WEFT_ASSERT((unsigned)st < WEFT_STATUS_COUNT);
    return text[st];
}
