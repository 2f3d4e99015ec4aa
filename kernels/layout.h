/* layout.h - how the rows of a weight lie in memory: as the checkpoint stores them, or interleaved.
 *
 * LAYOUT_ROWS8: eight rows are one group, block by block: for each block of 32 (or 256) columns first the
 * scales of the eight rows, then their quants interleaved so that a vector holds eight columns of two rows. The
 * bytes are as many as stored (BF16 has no scales, and four columns to a vector); layout.c has their order for each
 * type. The number of rows is a multiple of 8, and a group begins every 8 * row bytes. A quantised row is not addressable
 * by itself. */
#ifndef WEFT_KERNELS_LAYOUT_H
#define WEFT_KERNELS_LAYOUT_H

#include "runtime/base/dtype.h"

typedef enum { LAYOUT_STORED, LAYOUT_ROWS8, LAYOUT_COUNT } klayout;

enum { LAYOUT_GROUP = 8 }; /* rows of a group, other than as stored */

/* Can rows of this type be quantised so? */
bool layout_has(klayout l, dtype t);
const char *layout_name(klayout l); /* "rows8" */

/* Interleave one group: rows[i], stored, each of n elements at any byte, to 8 * row bytes at `to`. */
void layout_interleave(klayout l, dtype t, const void *const rows[LAYOUT_GROUP], int64_t n,
                       void *to);

#endif
