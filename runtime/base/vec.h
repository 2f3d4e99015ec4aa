/* vec.h - growable arrays: VEC(T) v = {0}; VEC_PUSH(&v, x); v.at[i], v.n; VEC_FREE(&v).
 *
 * Running out of memory does not return (mem.h). */
#ifndef WEFT_RUNTIME_BASE_VEC_H
#define WEFT_RUNTIME_BASE_VEC_H

#include "runtime/base/status.h"

#define VEC(T)                                                                                     \
    struct {                                                                                       \
        T *at;                                                                                     \
        size_t n, cap;                                                                             \
    }
#define VEC_PUSH(v, x)                                                                             \
    do {                                                                                           \
        if ((v)->n == (v)->cap)                                                                    \
            (v)->at = vec_grow((v)->at, &(v)->cap, sizeof *(v)->at);                               \
        (v)->at[(v)->n] = (x); /* x may look at n */                                               \
        (v)->n++;                                                                                  \
    } while (0)
/* The first block, for a vector of an object that outlives the call it grows in (mem_scope.h). */
#define VEC_START(v)                                                                               \
    ((v)->at ? (void)0 : (void)((v)->at = vec_grow(NULL, &(v)->cap, sizeof *(v)->at)))
#define VEC_FREE(v) (vec_release((v)->at), (v)->at = NULL, (v)->n = (v)->cap = 0)

void *vec_grow(void *at, size_t *cap, size_t item_bytes); /* at least doubles *cap */
void vec_release(void *at);

#endif
