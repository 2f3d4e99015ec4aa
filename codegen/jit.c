/* jit.c - an object linked into this process by ORC.
 *
 * The object may refer to the symbols that come with it and to nothing else: no name is looked up in the process, so
 * that an object from a cache cannot reach for more than the plan's kernels and the runtime's helpers. */
#include "codegen/codegen_impl.h"

#include <dlfcn.h>
#include <llvm-c/LLJIT.h>
#include <llvm-c/LLJITUtils.h>
#include <llvm-c/Orc.h>
#include <stdlib.h>

struct code {
    LLVMOrcLLJITRef jit;
};

/* Lookups return their errors, too; ORC would print them. */
static void keep_silent(void *ctx, LLVMErrorRef error)
{
    (void)ctx;
    LLVMConsumeError(error);
}

static LLVMErrorRef define_symbols(LLVMOrcLLJITRef jit, const code_symbol *symbols, size_t n)
{
    if (n == 0)
        return NULL;
    LLVMOrcCSymbolMapPair *pairs = calloc(n, sizeof *pairs);
    if (!pairs)
        abort(); /* as LLVM does without memory */
    for (size_t i = 0; i < n; i++) {
        pairs[i].Name = LLVMOrcLLJITMangleAndIntern(jit, symbols[i].name);
        pairs[i].Sym.Address = (LLVMOrcExecutorAddress)(uintptr_t)symbols[i].address;
        pairs[i].Sym.Flags.GenericFlags = LLVMJITSymbolGenericFlagsExported;
    }
    LLVMErrorRef error =
        LLVMOrcJITDylibDefine(LLVMOrcLLJITGetMainJITDylib(jit), LLVMOrcAbsoluteSymbols(pairs, n));
    free(pairs);
    return error;
}

static LLVMErrorRef add_object(LLVMOrcLLJITRef jit, const void *object, size_t n,
                               const code_symbol *symbols, size_t n_symbol)
{
    LLVMErrorRef error = define_symbols(jit, symbols, n_symbol);
    if (error)
        return error;
    LLVMMemoryBufferRef bytes = LLVMCreateMemoryBufferWithMemoryRangeCopy(object, n, "plan");
    return LLVMOrcLLJITAddObjectFile(jit, LLVMOrcLLJITGetMainJITDylib(jit), bytes);
}

/* With WEFT_DEBUG_CODE in the environment gdb learns of the code. LLVM looks for its part of gdb's interface among the
 * process's global symbols, which those of a library that was loaded on demand are not: make them. */
static LLVMErrorRef show_debugger(LLVMOrcLLJITRef jit)
{
    Dl_info llvm;
    if (!getenv("WEFT_DEBUG_CODE") || !dladdr((void *)LLVMOrcCreateLLJIT, &llvm) ||
        !dlopen(llvm.dli_fname, RTLD_NOW | RTLD_GLOBAL | RTLD_NOLOAD))
        return NULL;
    return LLVMOrcLLJITEnableDebugSupport(jit);
}

weft_status jit_load(weft_diag *dg, const void *object, size_t n, const code_symbol *symbols,
                     size_t n_symbol, code **out_c)
{
    LLVMOrcLLJITRef jit;
    machine_init();
    LLVMErrorRef error = LLVMOrcCreateLLJIT(&jit, NULL);
    if (error)
        return llvm_fail_error(dg, "code cannot be run", error);
    LLVMOrcExecutionSessionSetErrorReporter(LLVMOrcLLJITGetExecutionSession(jit), keep_silent,
                                            NULL);
    error = show_debugger(jit);
    if (!error)
        error = add_object(jit, object, n, symbols, n_symbol);
    code *c = error ? NULL : calloc(1, sizeof *c);
    if (!c) {
        LLVMErrorRef closing = LLVMOrcDisposeLLJIT(jit);
        LLVMConsumeError(closing);
        return error ? llvm_fail_error(dg, "code cannot be loaded", error)
                     : llvm_fail(dg, "code cannot be loaded", LLVMCreateMessage("out of memory"));
    }
    c->jit = jit;
    *out_c = c;
    return WEFT_OK;
}

weft_status jit_find(weft_diag *dg, code *c, const char *symbol, void **out_p)
{
    LLVMOrcExecutorAddress at = 0;
    LLVMErrorRef error = LLVMOrcLLJITLookup(c->jit, &at, symbol);
    if (error)
        return llvm_fail_error(dg, "code cannot be linked", error);
    *out_p = (void *)(uintptr_t)at;
    return WEFT_OK;
}

void jit_unload(code *c)
{
    if (!c)
        return;
    LLVMConsumeError(LLVMOrcDisposeLLJIT(c->jit));
    free(c);
}
