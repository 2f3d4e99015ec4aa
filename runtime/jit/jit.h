/* jit.h - code for plans when sessions open: from disk, or from LLVM. The public header of runtime/jit.
 *
 * `--exec jit` gives a session this maker of code (plan_code.h). Code that an earlier process left in the cache
 * (code_cache.h) is linked here, without LLVM (elf_code.h); else libweft_llvm is loaded (jit_library.h), makes it and links
 * it, and the object goes to the cache. Nothing is compiled once a session is open. */
#ifndef WEFT_RUNTIME_JIT_JIT_H
#define WEFT_RUNTIME_JIT_JIT_H

#include "runtime/exec/plan_code.h"

/* make: W1606, W1607 when there is no code and none can be made. */
const code_maker *jit_maker(void);

#endif
