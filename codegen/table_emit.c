/* table_emit.c - the table of kernels of a program that has only those its plans use: what kernels/kernel_rows.c defines,
 * under the same names. */
#include "codegen/codegen_impl.h"

#include <stdlib.h>

_Static_assert(sizeof(kernel_row) == 64 && offsetof(kernel_row, least) == 16 &&
                   offsetof(kernel_row, symbol) == 32 && offsetof(kernel_row, variant) == 48,
               "a kernel_row is written field by field");

static LLVMValueRef word(const emitter *e, int x)
{
    return LLVMConstInt(e->i32, (unsigned long long)x, 1);
}

static LLVMValueRef text(const emitter *e, const char *s)
{
    LLVMValueRef data = LLVMConstStringInContext(e->cx, s, (unsigned)strlen(s), 0);
    return module_constant(e, data, NULL);
}

static LLVMValueRef row_value(const emitter *e, const kernel_row *r)
{
    LLVMValueRef fields[] = {
        word(e, (int)r->op),      word(e, (int)r->type),
        word(e, (int)r->layout),  word(e, (int)r->act),
        ir_i64(e, r->least),      ir_i64(e, r->most),
        text(e, r->symbol),       LLVMAddFunction(e->m, r->symbol, e->kernel_type),
        word(e, (int)r->variant), word(e, (int)r->unit),
        word(e, (int)r->scratch)};
    return LLVMConstStructInContext(e->cx, fields, sizeof fields / sizeof fields[0], 0);
}

weft_status table_compile(weft_diag *dg, const kernel_row *const *rows, size_t n,
                          const char *triple, strbuf *out)
{
    const code_job job = {.triple = triple, .pic = true};
    emitter e = {.dg = dg, .job = &job};
    WEFT_TRY(emitter_open(&e));
    LLVMValueRef *values = calloc(n + 1, sizeof *values);
    if (!values)
        abort(); /* as LLVM does without memory */
    for (size_t i = 0; i < n; i++)
        values[i] = row_value(&e, rows[i]);
    LLVMTypeRef types[] = {e.i32, e.i32, e.i32, e.i32, e.i64, e.i64,
                           e.ptr, e.ptr, e.i32, e.i32, e.i32};
    LLVMTypeRef type = LLVMStructTypeInContext(e.cx, types, sizeof types / sizeof types[0], 0);
    module_constant(&e, LLVMConstArray2(type, values, n), "kernel_row_table");
    module_constant(&e, word(&e, (int)n), "kernel_row_count");
    free(values);
    weft_status st = emitter_write(&e, CODE_OBJECT, out);
    emitter_close(&e);
    return st;
}
