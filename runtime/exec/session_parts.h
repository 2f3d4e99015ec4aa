/* session_parts.h - what a session is made of, for the files that add to it. Private to runtime/exec. */
#ifndef WEFT_RUNTIME_EXEC_SESSION_PARTS_H
#define WEFT_RUNTIME_EXEC_SESSION_PARTS_H

#include "runtime/exec/session.h"
#include "runtime/kv/state_file.h"

typedef struct {
    const plan *p;
    const weight_source *src; /* NULL: the weights are the caller's */
    const session *of;
    state *st;
    prefix_cache *prefixes; /* NULL: none are kept */
} session_parts;

session_parts session_parts_of(session *s);
state_copies session_copies(const session_parts *s);         /* those of its devices */
device *session_device_at(const session *s, const void *at); /* whose memory of cells this is in */

#endif
