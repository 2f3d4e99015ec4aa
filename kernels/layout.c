/* layout.c - stored rows into groups of eight.
 *
 * Q8_0, eight rows of one block: 8 f16 scales, then for each step of 8 columns the bytes of rows 0 and 1, 2 and
 * 3, 4 and 5, 6 and 7: 16 + 4 * 64 bytes. */
#include "kernels/layout.h"

#include <string.h>

enum { G = LAYOUT_GROUP };

static void pack_Q8_0(const uint8_t *const rows[G], int64_t n, uint8_t *to)
{
    enum { BLOCK = 34 };
    for (int64_t b = 0; b < n / 32; b++) {
        for (int r = 0; r < G; r++, to += 2)
            memcpy(to, rows[r] + b * BLOCK, 2);
        for (int step = 0; step < 4; step++)
            for (int r = 0; r < G; r++, to += 8)
                memcpy(to, rows[r] + b * BLOCK + 2 + step * 8, 8);
    }
}

typedef void pack_fn(const uint8_t *const rows[G], int64_t n, uint8_t *to);

static pack_fn *const rows8_of[DT_COUNT] = {
    [DT_Q8_0] = pack_Q8_0,
};

bool layout_has(klayout l, dtype t)
{
    return l == LAYOUT_STORED || (l == LAYOUT_ROWS8 && rows8_of[t]);
}

const char *layout_name(klayout l)
{
    static const char *const names[LAYOUT_COUNT] = {"stored", "rows8"};
    return names[l];
}

void layout_pack(klayout l, dtype t, const void *const rows[G], int64_t n, void *to)
{
    WEFT_ASSERT(l == LAYOUT_ROWS8 && rows8_of[t]);
    const uint8_t *bytes[G];
    for (int r = 0; r < G; r++)
        bytes[r] = rows[r];
    rows8_of[t](bytes, n, to);
}
