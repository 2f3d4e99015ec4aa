/* bucket_emit.c - a bucket as a function that runs it, as runtime/exec/plan_code.h asks.
 *
 * Items with the same kernels and the same places of tiles share their functions, whatever layer they are of: only the
 * numbers of their steps differ, and those are an argument. So code is as long as one layer and a list of calls:
 *
 *     chain_N(th, args, begin, end)                 the steps of an item, over a range of units
 *     alone_..(th, args, units, most, chain)        an item with one thread; false: the call was cancelled
 *     shared_..(th, args, units, number, chain)     an item among threads
 *     bucket_N(run, index, count)                   calls those, item by item
 *
 * All of this is glue, some microseconds of a call: LLVM is told not to spend time on it. */
#include "codegen/codegen_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include "runtime/exec/plan_code.h"

enum { TILE_ELEM_BYTES = 4 };

/* The function of an item. */
typedef struct {
    const plan_item *item;
    int32_t bucket;
    LLVMValueRef chain;
} item_code;

struct bucket_codes {
    item_code *at;
    size_t n, cap;
    LLVMValueRef alone[2], shared[2]; /* for all items; [1]: of those that each thread computes */
};

typedef struct {
    emitter *e;
    const plan_bucket *b;
    kernel_code *step_fn; /* gives a step's own function, NULL: its kernel's */
    void *ctx;
    int32_t bucket;
} maker;

/* ---- types ---- */

static LLVMTypeRef chain_type(const emitter *e)
{
    LLVMTypeRef params[] = {e->ptr, e->ptr, e->i64, e->i64};
    return LLVMFunctionType(e->none, params, 4, 0);
}

static LLVMTypeRef alone_type(const emitter *e)
{
    LLVMTypeRef params[] = {e->ptr, e->ptr, e->i64, e->i64, e->ptr};
    return LLVMFunctionType(e->i1, params, 5, 0);
}

static LLVMTypeRef shared_type(const emitter *e)
{
    LLVMTypeRef params[] = {e->ptr, e->ptr, e->i64, e->i32, e->ptr};
    return LLVMFunctionType(e->none, params, 5, 0);
}

static LLVMValueRef call(const emitter *e, LLVMTypeRef type, LLVMValueRef fn, LLVMValueRef *args,
                         unsigned n)
{
    return LLVMBuildCall2(e->b, type, fn, args, n, "");
}

/* A function of another object. */
static LLVMValueRef outside(const emitter *e, const char *name, LLVMTypeRef type)
{
    LLVMValueRef fn = LLVMGetNamedFunction(e->m, name);
    return fn ? fn : LLVMAddFunction(e->m, name, type);
}

/* Does a helper answer yes? C's bool is a byte. */
static LLVMValueRef ask(const emitter *e, const char *name, LLVMTypeRef *types, LLVMValueRef *args,
                        unsigned n)
{
    LLVMTypeRef type = LLVMFunctionType(e->i8, types, n, 0);
    LLVMValueRef answer = call(e, type, outside(e, name, type), args, n);
    return LLVMBuildICmp(e->b, LLVMIntNE, answer, LLVMConstNull(e->i8), "");
}

static LLVMValueRef ask_leaves(const emitter *e, LLVMValueRef th)
{
    return ask(e, "code_leaves", (LLVMTypeRef[]){e->ptr}, &th, 1);
}

/* ---- functions ---- */

static const char *const op_names[KOP_COUNT] = {
#define KARGS(...)
#define KOP(op, ...) #op,
#include "kernels/kernel_ops.def"
#undef KARGS
#undef KOP
};

static void add_attribute(const emitter *e, LLVMValueRef fn, const char *name)
{
    unsigned kind = LLVMGetEnumAttributeKindForName(name, strlen(name));
    LLVMAddAttributeAtIndex(fn, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
                            LLVMCreateEnumAttribute(e->cx, kind, 0));
}

static LLVMValueRef function_begin(emitter *e, const char *name, LLVMTypeRef type, weft_loc loc)
{
    LLVMValueRef fn = LLVMAddFunction(e->m, name, type);
    LLVMSetLinkage(fn, LLVMInternalLinkage);
    add_attribute(e, fn, "noinline");
    add_attribute(e, fn, "optnone");
    LLVMPositionBuilderAtEnd(e->b, LLVMAppendBasicBlockInContext(e->cx, fn, "entry"));
    debug_function(e, fn, loc);
    return fn;
}

/* A chain is named after what it computes, for people who look at a profile: chain_linear_rope_append_0_12. */
static void chain_name(const maker *m, const plan_item *it, char *name, size_t room)
{
    size_t n = (size_t)snprintf(name, room, "chain");
    for (int32_t i = 0; i < it->n_step && n < room - 40; i++)
        n += (size_t)snprintf(
            name + n, room - n, "_%s",
            op_names[plan_kernel_of(m->e->job->p, &m->b->step[it->first + i])->op]);
    snprintf(name + n, room - n, "_%d_%d", m->bucket, (int)(it - m->b->item));
}

/* Where a thread's tile begins in memory, such that column numbers of the whole are right. */
static void place_tiles(const maker *m, const plan_step *s, LLVMValueRef block, LLVMValueRef args,
                        LLVMValueRef begin)
{
    const emitter *e = m->e;
    for (int i = 0; i < K_IN_MAX + s->n_out; i++) {
        bool in = i < K_IN_MAX;
        const plan_operand *o = in ? &s->in[i] : &s->out[i - K_IN_MAX];
        if (o->space != SPACE_TILE)
            continue;
        size_t field = in ? offsetof(kargs, in) + (size_t)i * sizeof(void *)
                          : offsetof(kargs, out) + (size_t)(i - K_IN_MAX) * sizeof(void *);
        LLVMValueRef back = LLVMBuildNeg(e->b, ir_mul(e, begin, s->tile * TILE_ELEM_BYTES), "");
        LLVMValueRef at = ir_at(e, ir_field(e, block, (size_t)o->offset), back);
        LLVMBuildStore(e->b, at, ir_field(e, args, field));
    }
}

static bool has_tiles(const plan_step *s)
{
    bool any = false;
    for (int i = 0; i < K_IN_MAX; i++)
        any |= s->in[i].space == SPACE_TILE;
    for (int i = 0; i < s->n_out; i++)
        any |= s->out[i].space == SPACE_TILE;
    return any;
}

static LLVMValueRef emit_chain(const maker *m, const plan_item *it)
{
    emitter *e = m->e;
    char name[160];
    chain_name(m, it, name, sizeof name);
    LLVMValueRef fn = function_begin(e, name, chain_type(e), m->b->step[it->first].loc);
    LLVMValueRef th = LLVMGetParam(fn, 0), args = LLVMGetParam(fn, 1);
    LLVMValueRef begin = LLVMGetParam(fn, 2), end = LLVMGetParam(fn, 3);
    LLVMValueRef block = ir_load(e, e->ptr, th, offsetof(code_thread, block));
    for (int32_t i = 0; i < it->n_step; i++) {
        const plan_step *s = &m->b->step[it->first + i];
        debug_line(e, s->loc);
        LLVMValueRef own = ir_load(e, e->ptr, args, (size_t)i * sizeof(void *));
        if (has_tiles(s))
            place_tiles(m, s, block, own, begin);
        LLVMValueRef kernel = m->step_fn(m->ctx, m->bucket, it->first + i);
        if (!kernel)
            kernel = outside(e, plan_kernel_of(e->job->p, s)->name, e->kernel_type);
        LLVMValueRef t = ir_field(e, th, offsetof(code_thread, t));
        call(e, e->kernel_type, kernel, (LLVMValueRef[]){own, t, begin, end}, 4);
    }
    LLVMBuildRetVoid(e->b);
    debug_function_end(e);
    return fn;
}

static void call_chain(emitter *e, LLVMValueRef fn, LLVMValueRef begin, LLVMValueRef end)
{
    LLVMValueRef args[] = {LLVMGetParam(fn, 0), LLVMGetParam(fn, 1), begin, end};
    call(e, chain_type(e), LLVMGetParam(fn, 4), args, 4);
}

/* With one thread: ranges of at most `most` units, one after the other. What every thread computes is one range. */
static LLVMValueRef emit_alone(emitter *e, bool own)
{
    LLVMValueRef fn =
        function_begin(e, own ? "alone_own" : "alone_ranges", alone_type(e), WEFT_NOWHERE);
    LLVMValueRef units = LLVMGetParam(fn, 2), most = LLVMGetParam(fn, 3);
    LLVMBasicBlockRef before = LLVMGetInsertBlock(e->b), head = ir_block(e, "head");
    LLVMBasicBlockRef body = ir_block(e, "body"), work = ir_block(e, "work");
    LLVMBasicBlockRef done = ir_block(e, "done"), left = ir_block(e, "left");
    LLVMBuildBr(e->b, head);
    LLVMPositionBuilderAtEnd(e->b, head);
    LLVMValueRef begin = LLVMBuildPhi(e->b, e->i64, "begin"), zero = ir_i64(e, 0);
    LLVMAddIncoming(begin, &zero, &before, 1);
    LLVMBuildCondBr(e->b, LLVMBuildICmp(e->b, LLVMIntSLT, begin, units, ""), body, done);
    LLVMPositionBuilderAtEnd(e->b, body);
    LLVMBuildCondBr(e->b, ask_leaves(e, LLVMGetParam(fn, 0)), left, work);
    LLVMPositionBuilderAtEnd(e->b, work);
    LLVMValueRef end = units;
    if (!own) {
        LLVMValueRef rest = LLVMBuildSub(e->b, units, begin, "");
        LLVMValueRef last = LLVMBuildICmp(e->b, LLVMIntSLT, rest, most, "");
        end = LLVMBuildSelect(e->b, last, units, LLVMBuildAdd(e->b, begin, most, ""), "");
    }
    call_chain(e, fn, begin, end);
    LLVMAddIncoming(begin, &end, &work, 1);
    LLVMBuildBr(e->b, head);
    LLVMPositionBuilderAtEnd(e->b, left);
    LLVMBuildRet(e->b, LLVMConstInt(e->i1, 0, 0));
    LLVMPositionBuilderAtEnd(e->b, done);
    LLVMBuildRet(e->b, LLVMConstInt(e->i1, 1, 0));
    debug_function_end(e);
    return fn;
}

/* What every thread computes for itself, whole. */
static void emit_shared_own(emitter *e, LLVMValueRef fn)
{
    LLVMBasicBlockRef some = ir_block(e, "some"), work = ir_block(e, "work"),
                      done = ir_block(e, "done");
    LLVMValueRef units = LLVMGetParam(fn, 2);
    LLVMValueRef any = LLVMBuildICmp(e->b, LLVMIntSGT, units, ir_i64(e, 0), "");
    LLVMBuildCondBr(e->b, any, some, done);
    LLVMPositionBuilderAtEnd(e->b, some);
    LLVMBuildCondBr(e->b, ask_leaves(e, LLVMGetParam(fn, 0)), done, work);
    LLVMPositionBuilderAtEnd(e->b, work);
    call_chain(e, fn, ir_i64(e, 0), units);
    LLVMBuildBr(e->b, done);
    LLVMPositionBuilderAtEnd(e->b, done);
}

/* Ranges, as long as there are some to claim. */
static void emit_shared_ranges(emitter *e, LLVMValueRef fn)
{
    LLVMTypeRef type = LLVMArrayType2(e->i64, sizeof(code_range) / sizeof(int64_t));
    LLVMValueRef range = LLVMBuildAlloca(e->b, type, "range");
    LLVMBasicBlockRef head = ir_block(e, "head"), work = ir_block(e, "work"),
                      done = ir_block(e, "done");
    for (size_t at = 0; at < sizeof(code_range); at += sizeof(int64_t))
        LLVMBuildStore(e->b, ir_i64(e, 0), ir_field(e, range, at));
    LLVMBuildBr(e->b, head);
    LLVMPositionBuilderAtEnd(e->b, head);
    LLVMTypeRef types[] = {e->ptr, e->i32, e->ptr};
    LLVMValueRef args[] = {LLVMGetParam(fn, 0), LLVMGetParam(fn, 3), range};
    LLVMBuildCondBr(e->b, ask(e, "code_claim", types, args, 3), work, done);
    LLVMPositionBuilderAtEnd(e->b, work);
    call_chain(e, fn, ir_load(e, e->i64, range, offsetof(code_range, begin)),
               ir_load(e, e->i64, range, offsetof(code_range, end)));
    LLVMBuildBr(e->b, head);
    LLVMPositionBuilderAtEnd(e->b, done);
}

static LLVMValueRef emit_shared(emitter *e, bool own)
{
    LLVMValueRef fn =
        function_begin(e, own ? "shared_own" : "shared_ranges", shared_type(e), WEFT_NOWHERE);
    if (own)
        emit_shared_own(e, fn);
    else
        emit_shared_ranges(e, fn);
    LLVMBuildRetVoid(e->b);
    debug_function_end(e);
    return fn;
}

static bucket_codes *codes_create(emitter *e)
{
    bucket_codes *codes = calloc(1, sizeof *codes);
    if (!codes)
        abort(); /* as LLVM does without memory */
    for (int own = 0; own < 2; own++) {
        codes->alone[own] = emit_alone(e, own);
        codes->shared[own] = emit_shared(e, own);
    }
    return codes;
}

/* ---- items that are alike ---- */

static bool operand_same(const plan_operand *a, const plan_operand *b)
{
    return (a->space == SPACE_TILE) == (b->space == SPACE_TILE) &&
           (a->space != SPACE_TILE || a->offset == b->offset);
}

static bool step_same(const maker *m, int32_t bucket, const plan_step *a, const plan_step *b)
{
    bool same = a->kernel == b->kernel && a->tile == b->tile && a->n_out == b->n_out &&
                a->loc.src == b->loc.src && a->loc.begin == b->loc.begin;
    const plan_bucket *of = &m->e->job->p->bucket[bucket];
    same = same && m->step_fn(m->ctx, bucket, (int32_t)(a - of->step)) ==
                       m->step_fn(m->ctx, m->bucket, (int32_t)(b - m->b->step));
    for (int i = 0; i < K_IN_MAX && same; i++)
        same = operand_same(&a->in[i], &b->in[i]);
    for (int i = 0; i < a->n_out && same; i++)
        same = operand_same(&a->out[i], &b->out[i]);
    return same;
}

static bool item_same(const maker *m, const item_code *c, const plan_item *it)
{
    const plan_step *of = m->e->job->p->bucket[c->bucket].step;
    bool same = c->item->per_thread == it->per_thread && c->item->n_step == it->n_step;
    for (int32_t i = 0; i < it->n_step && same; i++)
        same = step_same(m, c->bucket, &of[c->item->first + i], &m->b->step[it->first + i]);
    return same;
}

static item_code item_of(const maker *m, bucket_codes *codes, const plan_item *it)
{
    for (size_t i = 0; i < codes->n; i++)
        if (item_same(m, &codes->at[i], it))
            return codes->at[i];
    item_code c = {.item = it, .bucket = m->bucket};
    c.chain = emit_chain(m, it);
    if (codes->n == codes->cap) {
        codes->cap = codes->cap ? 2 * codes->cap : 32;
        codes->at = realloc(codes->at, codes->cap * sizeof *codes->at);
        if (!codes->at)
            abort(); /* as LLVM does without memory */
    }
    codes->at[codes->n++] = c;
    return c;
}

/* ---- the bucket ---- */

typedef struct {
    const bucket_codes *codes;
    const item_code *items; /* [n_item] */
    LLVMValueRef th, args, units, most;
} bucket_values;

static LLVMValueRef args_at(const maker *m, const bucket_values *v, const plan_item *it)
{
    return ir_field(m->e, v->args, (size_t)it->first * sizeof(void *));
}

static LLVMValueRef of_item(const maker *m, LLVMValueRef table, int32_t item)
{
    return ir_load(m->e, m->e->i64, table, (size_t)item * sizeof(int64_t));
}

static void emit_all_alone(const maker *m, const bucket_values *v)
{
    emitter *e = m->e;
    LLVMBasicBlockRef left = ir_block(e, "left");
    for (int32_t i = 0; i < m->b->n_item; i++) {
        const plan_item *it = &m->b->item[i];
        LLVMBasicBlockRef next = ir_block(e, "next");
        LLVMValueRef args[] = {v->th, args_at(m, v, it), of_item(m, v->units, i),
                               of_item(m, v->most, i), v->items[i].chain};
        debug_line(e, m->b->step[it->first].loc);
        LLVMValueRef goes_on = call(e, alone_type(e), v->codes->alone[it->per_thread], args, 5);
        LLVMBuildCondBr(e->b, goes_on, next, left);
        LLVMPositionBuilderAtEnd(e->b, next);
    }
    LLVMBuildRetVoid(e->b);
    LLVMPositionBuilderAtEnd(e->b, left);
    LLVMBuildRetVoid(e->b);
}

static void emit_all_shared(const maker *m, const bucket_values *v)
{
    emitter *e = m->e;
    for (int32_t first = 0, end; first < m->b->n_item; first = end) {
        for (end = first; end < m->b->n_item && m->b->item[end].phase == m->b->item[first].phase;)
            end++;
        LLVMBasicBlockRef work = ir_block(e, "work"), next = ir_block(e, "next");
        LLVMTypeRef types[] = {e->ptr, e->i32, e->i32};
        LLVMValueRef span[] = {v->th, LLVMConstInt(e->i32, (unsigned)first, 0),
                               LLVMConstInt(e->i32, (unsigned)end, 0)};
        debug_line(e, m->b->step[m->b->item[first].first].loc);
        LLVMBuildCondBr(e->b, ask(e, "code_phase", types, span, 3), work, next);
        LLVMPositionBuilderAtEnd(e->b, work);
        for (int32_t i = first; i < end; i++) {
            LLVMValueRef args[] = {v->th, args_at(m, v, &m->b->item[i]), of_item(m, v->units, i),
                                   LLVMConstInt(e->i32, (unsigned)i, 0), v->items[i].chain};
            debug_line(e, m->b->step[m->b->item[i].first].loc);
            call(e, shared_type(e), v->codes->shared[m->b->item[i].per_thread], args, 5);
        }
        LLVMBuildBr(e->b, next);
        LLVMPositionBuilderAtEnd(e->b, next);
    }
    LLVMBuildRetVoid(e->b);
}

static void emit_body(const maker *m, const bucket_codes *codes, const item_code *items,
                      LLVMValueRef fn)
{
    emitter *e = m->e;
    LLVMValueRef run = LLVMGetParam(fn, 0), index = LLVMGetParam(fn, 1);
    LLVMBasicBlockRef alone = ir_block(e, "alone"), shared = ir_block(e, "shared");
    LLVMValueRef threads = ir_load(e, e->ptr, run, offsetof(code_run, thread));
    LLVMValueRef wide = LLVMBuildSExt(e->b, index, e->i64, "");
    bucket_values v = {.codes = codes,
                       .items = items,
                       .th = ir_at(e, threads, ir_mul(e, wide, sizeof(code_thread)))};
    v.args = ir_load(e, e->ptr, v.th, offsetof(code_thread, args));
    v.units = ir_load(e, e->ptr, run, offsetof(code_run, units));
    v.most = ir_load(e, e->ptr, run, offsetof(code_run, most));
    LLVMValueRef one = LLVMConstInt(e->i32, 1, 0);
    LLVMValueRef single = LLVMBuildICmp(e->b, LLVMIntEQ, LLVMGetParam(fn, 2), one, "");
    LLVMBuildCondBr(e->b, single, alone, shared);
    LLVMPositionBuilderAtEnd(e->b, alone);
    emit_all_alone(m, &v);
    LLVMPositionBuilderAtEnd(e->b, shared);
    emit_all_shared(m, &v);
}

LLVMValueRef bucket_emit(emitter *e, bucket_codes **codes, int32_t bucket, kernel_code *step_fn,
                         void *ctx)
{
    const plan_bucket *b = &e->job->p->bucket[bucket];
    maker m = {.e = e, .b = b, .step_fn = step_fn, .ctx = ctx, .bucket = bucket};
    item_code *items = calloc((size_t)b->n_item + 1, sizeof *items);
    if (!items)
        abort();
    if (!*codes)
        *codes = codes_create(e);
    for (int32_t i = 0; i < b->n_item; i++)
        items[i] = item_of(&m, *codes, &b->item[i]);
    char name[64];
    LLVMTypeRef params[] = {e->ptr, e->i32, e->i32};
    snprintf(name, sizeof name, "bucket_%d", (int)b->n_tok_max);
    LLVMValueRef fn = function_begin(e, name, LLVMFunctionType(e->none, params, 3, 0),
                                     b->n_step ? b->step[0].loc : WEFT_NOWHERE);
    emit_body(&m, *codes, items, fn);
    debug_function_end(e);
    free(items);
    return fn;
}

void bucket_codes_free(bucket_codes *codes)
{
    if (codes)
        free(codes->at);
    free(codes);
}
