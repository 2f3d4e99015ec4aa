/* bandwidth.h - how fast this machine reads memory, for comparing with. */
#ifndef WEFT_RUNTIME_BASE_BANDWIDTH_H
#define WEFT_RUNTIME_BASE_BANDWIDTH_H

/* Bytes per second that `threads` threads, 1 to 1024, read together from a block that no cache holds;
 * the best of several times. 0 if there is no memory for it. Takes about a second
 * and is measured anew by each call. */
double bandwidth_read(int threads);

#endif
