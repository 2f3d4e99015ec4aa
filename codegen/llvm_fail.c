/* llvm_fail.c - the one place where LLVM's errors become diagnostics. */
#include "codegen/codegen_impl.h"

const codegen_host *codegen_host_now;

weft_status llvm_fail(weft_diag *dg, const char *what, char *message)
{
    weft_status st = codegen_host_now->fail(dg, W1606, WEFT_NOWHERE, "%s: %s", what,
                                            message && *message ? message : "LLVM says nothing");
    LLVMDisposeMessage(message);
    return st;
}

weft_status llvm_fail_error(weft_diag *dg, const char *what, LLVMErrorRef error)
{
    char *text = LLVMGetErrorMessage(error);
    weft_status st = codegen_host_now->fail(dg, W1606, WEFT_NOWHERE, "%s: %s", what, text);
    LLVMDisposeErrorMessage(text);
    return st;
}

/* Without this LLVM prints what it finds while it generates code and ends the process. */
static void heard(LLVMDiagnosticInfoRef info, void *ctx)
{
    llvm_heard *h = ctx;
    if (h->failed || LLVMGetDiagInfoSeverity(info) != LLVMDSError)
        return;
    char *text = LLVMGetDiagInfoDescription(info);
    h->failed = true;
    h->status = codegen_host_now->fail(h->dg, W1606, WEFT_NOWHERE, "LLVM: %s", text);
    LLVMDisposeMessage(text);
}

void llvm_listen(LLVMContextRef cx, llvm_heard *h)
{
    LLVMContextSetDiagnosticHandler(cx, heard, h);
}
