/* checksum.h - a sum of 64 bits that finds accidental changes, as fast as memory is read.
 *
 * The same on every machine: bytes are taken as little-endian words. Any change within one word gives
 * another sum; other changes, of the length too, go unnoticed once in 2^64. It does not withstand somebody who wants two
 * inputs with one sum. */
#ifndef WEFT_RUNTIME_BASE_CHECKSUM_H
#define WEFT_RUNTIME_BASE_CHECKSUM_H

#include <stddef.h>
#include <stdint.h>

uint64_t checksum(const void *data, size_t bytes);

#endif
