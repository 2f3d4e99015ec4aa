/* cancel.h - a flag by which one thread asks another to stop what it is doing.
 *
 * The owner of the flag sets and clears it from any thread. Whoever works looks at it between pieces of
 * work and returns WEFT_ERR_CANCELLED (W1412); a flag that is set when the work is all done changes
 * nothing. The flag orders no other memory. */
#ifndef WEFT_RUNTIME_BASE_CANCEL_H
#define WEFT_RUNTIME_BASE_CANCEL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct {
    atomic_int set; /* 1: stop; 0 when initialised with {0} */
} cancel_flag;

static inline void cancel_ask(cancel_flag *c, bool stop)
{
    atomic_store_explicit(&c->set, stop, memory_order_relaxed);
}

/* NULL is never set. */
static inline bool cancel_asked(const cancel_flag *c)
{
    return c && atomic_load_explicit(&c->set, memory_order_relaxed) != 0;
}

#endif
