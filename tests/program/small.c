/* small.c - a program with an image: opens it, sums up its weights. Both for stamp.sh, on every architecture. */
#include "runtime/program/stamp.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int zeros[100000]; /* in front of the image: has to be zeros all the same */

__attribute__((visibility("default"))) int small_run(void);

int small_run(void)
{
    const void *data;
    size_t bytes, w = 0;
    uint64_t sum;
    char *heap = malloc(3 << 20);
    if (!heap || !stamp_image(&data, &bytes, &sum)) {
        puts("no image");
        return 1;
    }
    memset(heap, 1, 3 << 20);
    for (size_t i = 0; i < sizeof zeros / sizeof *zeros; i++)
        if (zeros[i]++)
            return 2;
    for (size_t i = 65536; i < bytes && ((const char *)data)[i] == 'w'; i++)
        w++;
    printf("%.7s %s %zu %.15s\n", (const char *)data, (const char *)data + 192, w >> 20,
           (const char *)data + bytes - 16);
    free(heap);
    return 0;
}

#ifdef SMALL_MAIN
int main(void)
{
    return small_run();
}
#endif
