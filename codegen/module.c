/* module.c - a job as a module: the functions of its buckets, and the table that names them. */
#include "codegen/codegen_impl.h"

#include <llvm-c/Analysis.h>
#include <llvm-c/Transforms/PassBuilder.h>
#include <stdio.h>
#include <stdlib.h>
#include "runtime/exec/plan_code.h"

enum { NAME_MAX_ = 96 };

weft_status emitter_open(emitter *e)
{
    WEFT_TRY(machine_open(e->dg, e->job, &e->to));
    e->cx = LLVMContextCreate();
    e->heard.dg = e->dg;
    llvm_listen(e->cx, &e->heard);
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
    return WEFT_OK;
}

void emitter_close(emitter *e)
{
    LLVMDisposeBuilder(e->b);
    LLVMDisposeModule(e->m);
    LLVMContextDispose(e->cx);
    machine_close(&e->to);
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

LLVMValueRef module_constant(const emitter *e, LLVMValueRef data, const char *name)
{
    LLVMValueRef g = LLVMAddGlobal(e->m, LLVMTypeOf(data), name ? name : "");
    LLVMSetInitializer(g, data);
    LLVMSetGlobalConstant(g, 1);
    if (!name)
        LLVMSetLinkage(g, LLVMInternalLinkage);
    return g;
}

static LLVMValueRef array_of(const emitter *e, LLVMTypeRef type, LLVMValueRef *items, size_t n)
{
    return module_constant(e, LLVMConstArray2(type, items, n), NULL);
}

static LLVMValueRef struct_of(const emitter *e, LLVMValueRef *fields, unsigned n)
{
    return LLVMConstStructInContext(e->cx, fields, n, 0);
}

/* [n_step]: the functions of its maps, NULL for other steps. */
static LLVMValueRef *bucket_maps(emitter *e, made_maps *made, int32_t bucket)
{
    const plan_bucket *b = &e->job->p->bucket[bucket];
    LLVMValueRef *fns = calloc((size_t)b->n_step + 1, sizeof *fns);
    if (!fns)
        abort();
    for (int32_t i = 0; i < b->n_step; i++)
        if (map_can_emit(e->job->p, &b->step[i]))
            fns[i] = map_of(e, made, bucket, i);
    return fns;
}

static LLVMValueRef maps_table(const emitter *e, LLVMValueRef *fns, size_t n)
{
    LLVMValueRef *items = calloc(n + 1, sizeof *items);
    if (!items)
        abort();
    for (size_t i = 0; i < n; i++)
        items[i] = fns[i] ? fns[i] : LLVMConstNull(e->ptr);
    LLVMValueRef all = array_of(e, e->ptr, items, n);
    free(items);
    return all;
}

/* ---- the table ---- */

_Static_assert(sizeof(code_bucket) == 2 * sizeof(void *), "code_bucket is written as two pointers");
_Static_assert(sizeof(plan_code) == 2 * sizeof(void *), "plan_code as a number and a pointer");

static LLVMValueRef step_function(void *ctx, int32_t bucket, int32_t step)
{
    LLVMValueRef **maps = ctx;
    return maps[bucket][step];
}

static bool wanted(const emitter *e, int32_t bucket)
{
    return e->job->bucket < 0 || e->job->bucket == bucket;
}

static bool has_function(const emitter *e, const plan_bucket *b)
{
    return b->n_item > 0 && (!e->job->few_rows || b->n_tok_max <= K_ROWS_FEW);
}

/* Maps first: functions of buckets call them. */
static void emit_buckets(emitter *e, LLVMValueRef **maps, LLVMValueRef *rows)
{
    const plan *p = e->job->p;
    made_maps made = {0};
    bucket_codes *codes = NULL;
    for (int32_t i = 0; i < p->n_bucket; i++)
        if (wanted(e, i))
            maps[i] = bucket_maps(e, &made, i);
    for (int32_t i = 0; i < p->n_bucket; i++) {
        LLVMValueRef fields[] = {LLVMConstNull(e->ptr), LLVMConstNull(e->ptr)};
        if (wanted(e, i)) {
            fields[0] = maps_table(e, maps[i], (size_t)p->bucket[i].n_step);
            if (has_function(e, &p->bucket[i]))
                fields[1] = bucket_emit(e, &codes, i, step_function, maps);
        }
        rows[i] = struct_of(e, fields, 2);
    }
    bucket_codes_free(codes);
    free(made.at);
}

static void emit_table(emitter *e)
{
    const plan *p = e->job->p;
    size_t n = (size_t)p->n_bucket;
    LLVMValueRef *rows = calloc(n + 1, sizeof *rows), **maps = calloc(n + 1, sizeof *maps);
    if (!rows || !maps)
        abort();
    emit_buckets(e, maps, rows);
    LLVMTypeRef types[] = {e->ptr, e->ptr};
    LLVMTypeRef row = LLVMStructTypeInContext(e->cx, types, 2, 0);
    LLVMValueRef table[] = {ir_i64(e, p->n_bucket), array_of(e, row, rows, n)};
    char name[NAME_MAX_];
    snprintf(name, sizeof name, "%s%s", e->job->prefix ? e->job->prefix : "", CODE_SYMBOL);
    module_constant(e, struct_of(e, table, 2), name);
    for (size_t i = 0; i < n; i++)
        free(maps[i]);
    free(maps);
    free(rows);
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

weft_status emitter_write(emitter *e, code_form form, strbuf *out)
{
    WEFT_TRY(finish(e));
    return module_write(e, form, out);
}

weft_status module_compile(weft_diag *dg, const code_job *job, code_form form, strbuf *out)
{
    emitter e = {.dg = dg, .job = job};
    WEFT_TRY(emitter_open(&e));
    debug_begin(&e);
    emit_table(&e);
    debug_end(&e);
    weft_status st = emitter_write(&e, form, out);
    emitter_close(&e);
    return st;
}
