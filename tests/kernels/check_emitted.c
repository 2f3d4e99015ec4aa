/* check_emitted.c - generated maps for check_jit_rows.c from an object that check_emit.c made on another machine. */
#include "tests/kernels/check_jit.h"

#include <stdio.h>
#include <stdlib.h>
#include "emitted_keys.h"
#include "runtime/exec/plan_code.h"

extern const plan_code code;

void jit_open(void)
{
}

kernel_fn *jit_function(const kargs *k, const jit_level *level)
{
    map_key key = map_key_of(k);
    uint64_t hash = map_key_hash(&key, level);
    for (size_t i = 0; i < sizeof emitted_keys / sizeof emitted_keys[0]; i++)
        if (emitted_keys[i] == hash)
            return code.bucket[0].map[i];
    fprintf(stderr, "check: a map that is not in the object\n");
    exit(2);
}
