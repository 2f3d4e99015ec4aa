/* codegen.c - the one function that the library exports. */
#include "codegen/codegen_impl.h"

#include <llvm/Config/llvm-config.h>

static codegen the_table = {
    .llvm = LLVM_VERSION_STRING,
    .compile = module_compile,
    .load = jit_load,
    .find = jit_find,
    .unload = jit_unload,
};

__attribute__((visibility("default"))) const codegen *weft_codegen(const codegen_host *host)
{
    codegen_host_now = host;
    the_table.build = codegen_build_id();
    return &the_table;
}
