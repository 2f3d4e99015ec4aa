/* jit_library.h - libweft_llvm, found and loaded when somebody asks for it.
 *
 * It is looked for where $WEFT_LLVM says (a file), and where library_path.h has it. One that was made of other sources is refused by name. Once loaded it stays: LLVM
 * does not like to be unloaded. May be called from any thread. */
#ifndef WEFT_RUNTIME_JIT_JIT_LIBRARY_H
#define WEFT_RUNTIME_JIT_JIT_LIBRARY_H

#include "codegen/codegen.h"

/* W1607: it is not there, or not of this build. */
weft_status jit_library(weft_diag *dg, const codegen **out_c) WEFT_MUST_USE;
/* Its file, where it would be loaded from, without loading it; empty: there is none. */
void jit_library_path(strbuf *out);

#endif
