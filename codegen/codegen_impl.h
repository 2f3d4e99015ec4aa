/* codegen_impl.h - what the files of codegen/ share: one module under way, and short names for what is said often. */
#ifndef WEFT_CODEGEN_CODEGEN_IMPL_H
#define WEFT_CODEGEN_CODEGEN_IMPL_H

#include "codegen/codegen.h"

#include <llvm-c/Core.h>
#include <llvm-c/Error.h>
#include <llvm-c/TargetMachine.h>

/* A processor to generate code for. */
typedef struct {
    LLVMTargetMachineRef tm;
    LLVMTargetDataRef layout;
    char *triple;
    int lanes; /* floats in a vector */
} machine;

typedef struct debug_info debug_info;

/* What LLVM found wrong while it was at work. */
typedef struct {
    weft_diag *dg;
    bool failed;
    weft_status status;
} llvm_heard;

/* One module. */
typedef struct {
    weft_diag *dg;
    const code_job *job;
    machine to;
    LLVMContextRef cx;
    LLVMModuleRef m;
    LLVMBuilderRef b;
    LLVMTypeRef f32, i1, i8, i32, i64, ptr, none;
    LLVMTypeRef kernel_type; /* kernel_fn */
    debug_info *debug;       /* NULL: without lines */
    llvm_heard heard;
} emitter;

/* ---- llvm_fail.c: what LLVM says as a diagnostic ---- */

extern const codegen_host *codegen_host_now; /* set once, by weft_codegen */
/* W1606 with this text of LLVM's, which is freed by LLVMDisposeMessage. */
weft_status llvm_fail(weft_diag *dg, const char *what, char *message);
weft_status llvm_fail_error(weft_diag *dg, const char *what, LLVMErrorRef error);

/* From here on errors of this context's go to h, which outlives it. */
void llvm_listen(LLVMContextRef cx, llvm_heard *h);

/* ---- machine.c ---- */

void machine_init(void); /* before anything of LLVM's targets is used */
weft_status machine_open(weft_diag *dg, const code_job *job, machine *out_to);
void machine_close(machine *to);

/* ---- module.c ---- */

/* An empty module for e->job; verified and written; gone. */
weft_status emitter_open(emitter *e);
weft_status emitter_write(emitter *e, code_form form, strbuf *out);
void emitter_close(emitter *e);
/* Data that does not change: with a name for others to see, or NULL. */
LLVMValueRef module_constant(const emitter *e, LLVMValueRef data, const char *name);

weft_status module_compile(weft_diag *dg, const code_job *job, code_form form, strbuf *out);

/* ---- object.c: a verified module as bytes ---- */

weft_status module_write(emitter *e, code_form form, strbuf *out);

/* ---- map_emit.c: a step as a function with the signature of a kernel ---- */

bool map_can_emit(const plan *p, const plan_step *s);
/* Do both steps need the same function? */
bool map_same(const plan *p, const plan_step *a, const plan_step *b);
LLVMValueRef map_emit(emitter *e, const plan_step *s, const char *name);

/* ---- math_emit.c: an instruction of a map ---- */

/* x, y and z are floats or vectors of them, those that the instruction has. */
LLVMValueRef math_emit(emitter *e, bool fused, const kinstr *c, LLVMValueRef x, LLVMValueRef y,
                       LLVMValueRef z);

/* ---- bucket_emit.c: a bucket as a function that runs it ---- */

/* The function of a step, where it is one of this module; NULL: the kernel. */
typedef LLVMValueRef kernel_code(void *ctx, int32_t bucket, int32_t step);
/* What buckets have in common; begin with NULL. */
typedef struct bucket_codes bucket_codes;
LLVMValueRef bucket_emit(emitter *e, bucket_codes **codes, int32_t bucket, kernel_code *step_fn,
                         void *ctx);
void bucket_codes_free(bucket_codes *codes);

/* ---- debug_emit.c: lines of the model file; nothing where the job asks for none ---- */

void debug_begin(emitter *e);
void debug_end(emitter *e);
/* A function at this place, into which code is put from here on; what follows comes from another place; it ends. */
void debug_function(emitter *e, LLVMValueRef fn, weft_loc loc);
void debug_line(emitter *e, weft_loc loc);
void debug_function_end(emitter *e);

/* ---- jit.c ---- */

weft_status jit_load(weft_diag *dg, const void *object, size_t n, const code_symbol *symbols,
                     size_t n_symbol, code **out_c);
weft_status jit_find(weft_diag *dg, code *c, const char *symbol, void **out_p);
void jit_unload(code *c);

/* ---- values ---- */

static inline LLVMValueRef ir_i64(const emitter *e, int64_t x)
{
    return LLVMConstInt(e->i64, (unsigned long long)x, 1);
}

/* The address `offset` bytes on: a value, or a number. */
static inline LLVMValueRef ir_at(const emitter *e, LLVMValueRef p, LLVMValueRef offset)
{
    return LLVMBuildGEP2(e->b, e->i8, p, &offset, 1, "");
}

static inline LLVMValueRef ir_field(const emitter *e, LLVMValueRef p, size_t offset)
{
    return offset ? ir_at(e, p, ir_i64(e, (int64_t)offset)) : p;
}

static inline LLVMValueRef ir_load(const emitter *e, LLVMTypeRef type, LLVMValueRef p,
                                   size_t offset)
{
    return LLVMBuildLoad2(e->b, type, ir_field(e, p, offset), "");
}

static inline LLVMValueRef ir_mul(const emitter *e, LLVMValueRef x, int64_t by)
{
    return by == 1 ? x : LLVMBuildMul(e->b, x, ir_i64(e, by), "");
}

static inline LLVMBasicBlockRef ir_block(const emitter *e, const char *name)
{
    return LLVMAppendBasicBlockInContext(e->cx, LLVMGetBasicBlockParent(LLVMGetInsertBlock(e->b)),
                                         name);
}

#endif
