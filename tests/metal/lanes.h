/* lanes.h - runs kernels that metalc.py compiled: a fibre for each thread of a threadgroup, one threadgroup after another.
 *
 * No Objective-C is needed: a test opens a library, says what is bound, and calls lanes_run. In race mode (a library made with
 * --race) all memory that a kernel may touch beside its bindings must be named first with lanes_memory_add. One dispatch at a
 * time; calls from several threads wait for one another. */
#ifndef WEFT_TESTS_METAL_LANES_H
#define WEFT_TESTS_METAL_LANES_H

#include "tests/metal/shader.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    LANES_ERROR_MAX = 4096,
    LANES_THREADS_MAX = 1024,
    LANES_SHARED_MAX = 32768,
    LANES_GROUPS_MAX = 4095 /* of a dispatch: race mode counts no further */
};

typedef struct {
    void *base; /* NULL: not bound */
    size_t bytes;
} lanes_binding;

typedef struct {
    int index;
    size_t bytes;
    const void *value;
} lanes_constant;

typedef struct {
    const shader_library *library;
    const char *kernel;
    const lanes_constant *constant; /* [n_constant] */
    int n_constant;
    lanes_binding buffer[SHADER_BUFFERS];
    uint32_t shared_bytes[SHADER_BUFFERS]; /* of [[threadgroup(n)]] parameters */
    uint32_t groups[3], threads[3];        /* threadgroups, and threads of each; 0 is 1 */
    uint32_t grid[3]; /* threads in all where the last groups have less; 0: all have as many */
    fibre_order order;
} lanes_dispatch;

/* NULL: why not, in error [LANES_ERROR_MAX]. Libraries stay open. */
const shader_library *lanes_open(const char *path, char *error);
const shader_kernel *lanes_kernel(const shader_library *l,
                                  const char *name); /* NULL: there is none */

/* False: what was wrong, a line for each thing, in error [LANES_ERROR_MAX]. */
bool lanes_run(const lanes_dispatch *d, char *error);

/* ---- memory that is known, for bounds and races ---- */

void lanes_memory_add(void *base, size_t bytes, const char *name);
void lanes_memory_remove(void *base);
void lanes_memory_hide(void *base, bool hidden); /* it is there, and kernels may not use it */
/* What follows comes after all that was dispatched so far: for all memory, or for that of one base. Without it dispatches
 * of one mode are taken to run at the same time. lanes_run calls neither. */
void lanes_order_all(void);
void lanes_order(void *base);
/* Says what a bad address is, where the caller knows more: may be NULL; returns NULL where it does not. */
extern const char *(*lanes_explain)(const void *address);

#ifdef __cplusplus
}
#endif

#endif
