/* object.c - a module as an object file, as assembly text or as LLVM's own text. */
#include "codegen/codegen_impl.h"

weft_status module_write(emitter *e, code_form form, strbuf *out)
{
    if (form == CODE_LLVM) {
        char *text = LLVMPrintModuleToString(e->m);
        codegen_host_now->put(out, str_of(text));
        LLVMDisposeMessage(text);
        return WEFT_OK;
    }
    LLVMMemoryBufferRef bytes;
    char *error = NULL;
    LLVMCodeGenFileType type = form == CODE_ASM ? LLVMAssemblyFile : LLVMObjectFile;
    if (LLVMTargetMachineEmitToMemoryBuffer(e->to.tm, e->m, type, &error, &bytes))
        return llvm_fail(e->dg, "no code for this plan", error);
    if (!e->heard.failed)
        codegen_host_now->put(out, (str){LLVMGetBufferStart(bytes), LLVMGetBufferSize(bytes)});
    LLVMDisposeMemoryBuffer(bytes);
    return e->heard.failed ? e->heard.status : WEFT_OK;
}
