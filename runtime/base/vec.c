/* vec.c - growth of the arrays of vec.h. */
#include "runtime/base/vec.h"

#include "runtime/base/mem.h"
#include <stdlib.h>

enum { VEC_FIRST = 8 };

void *vec_grow(void *at, size_t *cap, size_t item_bytes)
{
    size_t n = *cap ? mem_product(*cap, 2) : VEC_FIRST;
    at = mem_realloc(at, mem_product(n, item_bytes));
    *cap = n;
    return at;
}

void vec_release(void *at)
{
    mem_free(at);
}
