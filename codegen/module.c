/* module.c - a job as a module: the functions of its buckets, and the table that names them. */
#include "codegen/codegen_impl.h"

#include <llvm-c/Analysis.h>
#include <llvm-c/Transforms/PassBuilder.h>
#include <stdio.h>
#include <stdlib.h>

enum { NAME_MAX_ = 96 };

static void emitter_init(emitter *e)
{
    e->cx = LLVMContextCreate();
    e->m = LLVMModuleCreateWithNameInContext("plan", e->cx);
    e->b = LLVMCreateBuilderInContext(e->cx);
    LLVMSetTarget(e->m, e->to.triple);
    LLVMSetModuleDataLayout(e->m, e->to.layout);
    e->f32 = LLVMFloatTypeInContext(e->cx);
    e->i1 = LLVMInt1TypeInContext(e->cx);
    e->i8 = LLVMInt8TypeInContext(e->cx);
    e->i32 = LLVMInt32TypeInContext(e->cx);
    e->i64 = LLVMInt64TypeInContext(e->cx);
    e->ptr = LLVMPointerTypeInContext(e->cx, 0);
    e->none = LLVMVoidTypeInContext(e->cx);
    LLVMTypeRef params[] = {e->ptr, e->ptr, e->i64, e->i64};
    e->kernel_type = LLVMFunctionType(e->none, params, 4, 0);
}

static void emitter_deinit(emitter *e)
{
    LLVMDisposeBuilder(e->b);
    LLVMDisposeModule(e->m);
    LLVMContextDispose(e->cx);
}

/* ---- functions ---- */

typedef struct {
    const plan_step *step;
    LLVMValueRef fn;
} made_map;

typedef struct {
    made_map *at;
    size_t n, cap;
} made_maps;

static LLVMValueRef map_of(emitter *e, made_maps *made, int32_t bucket, int32_t step)
{
    const plan_step *s = &e->job->p->bucket[bucket].step[step];
    for (size_t i = 0; i < made->n; i++)
        if (map_same(e->job->p, made->at[i].step, s))
            return made->at[i].fn;
    if (made->n == made->cap) {
        made->cap = made->cap ? 2 * made->cap : 16;
        made->at = realloc(made->at, made->cap * sizeof *made->at);
        if (!made->at)
            abort(); /* as LLVM does without memory */
    }
    char name[NAME_MAX_];
    snprintf(name, sizeof name, "map_%d_%d", bucket, step);
    LLVMValueRef fn = map_emit(e, s, name);
    LLVMSetLinkage(fn, LLVMInternalLinkage);
    made->at[made->n++] = (made_map){s, fn};
    return fn;
}

/* An array of what is not to be changed, local to the object. */
static LLVMValueRef array_of(const emitter *e, LLVMTypeRef type, LLVMValueRef *items, size_t n)
{
    LLVMValueRef data = LLVMConstArray2(type, items, n);
    LLVMValueRef g = LLVMAddGlobal(e->m, LLVMTypeOf(data), "");
    LLVMSetInitializer(g, data);
    LLVMSetGlobalConstant(g, 1);
    LLVMSetLinkage(g, LLVMInternalLinkage);
    return g;
}

static LLVMValueRef struct_of(const emitter *e, LLVMValueRef *fields, unsigned n)
{
    return LLVMConstStructInContext(e->cx, fields, n, 0);
}

static LLVMValueRef bucket_emit_maps(emitter *e, made_maps *made, int32_t bucket)
{
    const plan_bucket *b = &e->job->p->bucket[bucket];
    size_t n = (size_t)b->n_step;
    LLVMValueRef *fns = malloc((n + 1) * sizeof *fns);
    if (!fns)
        abort();
    for (int32_t i = 0; i < b->n_step; i++)
        fns[i] = map_can_emit(e->job->p, &b->step[i]) ? map_of(e, made, bucket, i)
                                                      : LLVMConstNull(e->ptr);
    LLVMValueRef all = array_of(e, e->ptr, fns, n);
    free(fns);
    return all;
}

/* ---- the table ---- */

static void emit_table(emitter *e)
{
    const plan *p = e->job->p;
    made_maps made = {0};
    LLVMValueRef *rows = malloc(((size_t)p->n_bucket + 1) * sizeof *rows);
    if (!rows)
        abort();
    for (int32_t i = 0; i < p->n_bucket; i++) {
        LLVMValueRef fields[] = {LLVMConstNull(e->ptr), LLVMConstNull(e->ptr)};
        if (e->job->bucket < 0 || e->job->bucket == i)
            fields[0] = bucket_emit_maps(e, &made, i);
        rows[i] = struct_of(e, fields, 2);
    }
    LLVMTypeRef types[] = {e->ptr, e->ptr};
    LLVMTypeRef row = LLVMStructTypeInContext(e->cx, types, 2, 0);
    LLVMValueRef table[] = {ir_i64(e, p->n_bucket), array_of(e, row, rows, (size_t)p->n_bucket)};
    LLVMValueRef all = struct_of(e, table, 2);
    char name[NAME_MAX_];
    snprintf(name, sizeof name, "%s%s", e->job->prefix ? e->job->prefix : "", CODE_SYMBOL);
    LLVMValueRef g = LLVMAddGlobal(e->m, LLVMTypeOf(all), name);
    LLVMSetInitializer(g, all);
    LLVMSetGlobalConstant(g, 1);
    free(rows);
    free(made.at);
}

/* ---- the whole ---- */

static weft_status finish(emitter *e)
{
    char *error = NULL;
    if (LLVMVerifyModule(e->m, LLVMReturnStatusAction, &error))
        return llvm_fail(e->dg, "the generated module is wrong", error);
    LLVMDisposeMessage(error);
    LLVMPassBuilderOptionsRef options = LLVMCreatePassBuilderOptions();
    LLVMErrorRef failed = LLVMRunPasses(e->m, "function(early-cse)", e->to.tm, options);
    LLVMDisposePassBuilderOptions(options);
    return failed ? llvm_fail_error(e->dg, "the generated module", failed) : WEFT_OK;
}

weft_status module_compile(weft_diag *dg, const code_job *job, code_form form, strbuf *out)
{
    emitter e = {.dg = dg, .job = job};
    WEFT_TRY(machine_open(dg, job, &e.to));
    emitter_init(&e);
    emit_table(&e);
    weft_status st = finish(&e);
    if (st == WEFT_OK)
        st = module_write(&e, form, out);
    emitter_deinit(&e);
    machine_close(&e.to);
    return st;
}
