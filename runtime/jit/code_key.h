/* code_key.h - what generated code is named by: everything that decides its bytes. */
#ifndef WEFT_RUNTIME_JIT_CODE_KEY_H
#define WEFT_RUNTIME_JIT_CODE_KEY_H

#include "compiler/plan.h"

typedef struct {
    uint64_t lo, hi;
} code_key;

/* Of the steps and items of a plan; of `maker`, which names generator, its LLVM and the architecture; and of `how`, any
 * numbers that change the code. Names and lines of the model file count: they are in the debug information. */
code_key code_key_of(const plan *p, const char *maker, uint64_t how);

#endif
