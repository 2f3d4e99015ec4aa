/* pack.h - bytes that repeat themselves in fewer bytes: plans, whose layers and buckets are alike, take a fifth.
 *
 *     number      how many bytes it stands for
 *     then, until those are there:
 *     number      n, and n bytes as they are
 *     number      m > 0 and a number d > 0: the m bytes that begin d bytes back, which may reach into themselves; left out where nothing is left
 *
 * Numbers have 7 bits a byte, the lowest first, bit 7 set in all but the last. */
#ifndef WEFT_RUNTIME_BASE_PACK_H
#define WEFT_RUNTIME_BASE_PACK_H

#include "runtime/base/str.h"

/* Added to out. The same bytes are packed the same. */
void bytes_pack(str bytes, strbuf *out);

/* Added to out; false, and out as it was, where it is damaged or would be more than n_max bytes. It may be anybody's. */
bool bytes_unpack(str packed, size_t n_max, strbuf *out);

#endif
