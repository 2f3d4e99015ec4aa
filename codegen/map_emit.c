/* map_emit.c - a map as a function: one loop over vectors, all instructions of the chain in registers.
 *
 * Sizes, strides, pitches and tiles are the step's, as numbers in the code; addresses and n[0] come from the arguments. Axes
 * that follow on each other in every input are one; along the last of them a run is computed vector by vector, what is
 * left at its end one by one. Both do the same to each element, so that its bits do not depend on where it is. */
#include "codegen/codegen_impl.h"

#include <stdlib.h>

/* How rows are walked: the axes that inputs disagree on, the last one the fastest. */
typedef struct {
    int n_axis;
    int64_t n[K_AXES_MAX], stride[K_IN_MAX][K_AXES_MAX];
} walk;

typedef struct {
    emitter *e;
    const plan_step *s;
    const kinstr *code;
    bool fused; /* the instructions of k_map_neon */
    walk w;
    bool used[K_IN_MAX], made[K_OUT_MAX];
    LLVMValueRef fn, in[K_IN_MAX], out[K_OUT_MAX]; /* of the arguments, then of a row */
    LLVMValueRef
        flat[K_IN_MAX];      /* of a run: the number of an input that stays the same; else NULL */
    LLVMValueRef begin, end; /* of columns */
} maker;

bool map_can_emit(const plan *p, const plan_step *s)
{
    const plan_kernel *k = plan_kernel_of(p, s);
    return k->op == KOP_map && !k->reference;
}

static bool is_fused(const plan *p, const plan_step *s)
{
    return strcmp(plan_kernel_of(p, s)->name, "k_map_neon") == 0;
}

static bool code_same(const kinstr *a, const kinstr *b, int32_t n)
{
    for (int32_t i = 0; i < n; i++)
        if (a[i].op != b[i].op || a[i].to != b[i].to ||
            memcmp(a[i].at, b[i].at, sizeof a[i].at) != 0 ||
            memcmp(a[i].f, b[i].f, sizeof a[i].f) != 0)
            return false;
    return true;
}

bool map_same(const plan *p, const plan_step *a, const plan_step *b)
{
    return a->n_code == b->n_code && code_same(p->code + a->code, p->code + b->code, a->n_code) &&
           a->tile == b->tile && is_fused(p, a) == is_fused(p, b) &&
           memcmp(a->n + 1, b->n + 1, sizeof a->n - sizeof a->n[0]) == 0 &&
           memcmp(a->word, b->word, sizeof a->word) == 0 &&
           memcmp(a->stride, b->stride, sizeof a->stride) == 0 &&
           memcmp(a->out_pitch, b->out_pitch, sizeof a->out_pitch) == 0;
}

/* ---- axes ---- */

/* Whether axis `axis` of the step goes on where the last one of the walk ends, in every input. */
static bool axes_join(const maker *m, int axis)
{
    int last = m->w.n_axis - 1;
    for (int i = 0; i < K_IN_MAX; i++)
        if (m->used[i] &&
            m->w.stride[i][last] != m->s->stride[i][axis] * m->s->size.map.dim[axis - 1])
            return false;
    return true;
}

static void walk_make(maker *m)
{
    walk *w = &m->w;
    for (int axis = 1; axis <= m->s->choice.map.axes; axis++) {
        int64_t n = m->s->size.map.dim[axis - 1];
        if (n == 1)
            continue;
        if (w->n_axis > 0 && axes_join(m, axis))
            w->n[w->n_axis - 1] *= n;
        else
            w->n[w->n_axis++] = n;
        for (int i = 0; i < K_IN_MAX; i++)
            w->stride[i][w->n_axis - 1] = m->s->stride[i][axis];
    }
    if (w->n_axis == 0)
        w->n[w->n_axis++] = 1; /* of stride 0 */
}

/* ---- loops ---- */

typedef struct {
    LLVMBasicBlockRef head, body, end;
    LLVMValueRef i; /* in the body */
} loop;

/* for (i = from; i + step <= to; i += step): the builder is in the body then. */
static loop loop_begin(const emitter *e, LLVMValueRef from, LLVMValueRef to, int64_t step)
{
    loop l = {.head = ir_block(e, "head"), .body = ir_block(e, "body"), .end = ir_block(e, "end")};
    LLVMBasicBlockRef before = LLVMGetInsertBlock(e->b);
    LLVMBuildBr(e->b, l.head);
    LLVMPositionBuilderAtEnd(e->b, l.head);
    l.i = LLVMBuildPhi(e->b, e->i64, "i");
    LLVMAddIncoming(l.i, &from, &before, 1);
    LLVMValueRef next = LLVMBuildNSWAdd(e->b, l.i, ir_i64(e, step), "");
    LLVMBuildCondBr(e->b, LLVMBuildICmp(e->b, LLVMIntSLE, next, to, ""), l.body, l.end);
    LLVMPositionBuilderAtEnd(e->b, l.body);
    return l;
}

/* `next` is what i becomes; the builder is behind the loop then. */
static void loop_end(const emitter *e, const loop *l, LLVMValueRef next)
{
    LLVMBasicBlockRef last = LLVMGetInsertBlock(e->b);
    LLVMAddIncoming(l->i, &next, &last, 1);
    LLVMBuildBr(e->b, l->head);
    LLVMPositionBuilderAtEnd(e->b, l->end);
}

/* ---- elements ---- */

static LLVMTypeRef lanes_type(const emitter *e, int lanes)
{
    return lanes == 1 ? e->f32 : LLVMVectorType(e->f32, (unsigned)lanes);
}

static LLVMValueRef splat(const emitter *e, LLVMValueRef x, int lanes)
{
    if (lanes == 1)
        return x;
    LLVMTypeRef type = lanes_type(e, lanes);
    LLVMValueRef zero = LLVMConstInt(e->i32, 0, 0);
    LLVMValueRef one = LLVMBuildInsertElement(e->b, LLVMGetPoison(type), x, zero, "");
    return LLVMBuildShuffleVector(e->b, one, LLVMGetPoison(type),
                                  LLVMConstNull(LLVMVectorType(e->i32, (unsigned)lanes)), "");
}

static LLVMValueRef load_f32(const emitter *e, LLVMTypeRef type, LLVMValueRef p)
{
    LLVMValueRef x = LLVMBuildLoad2(e->b, type, p, "");
    LLVMSetAlignment(x, sizeof(float));
    return x;
}

/* Elements i and on of a run of input k. */
static LLVMValueRef load_lanes(const maker *m, int k, LLVMValueRef i, int lanes)
{
    const emitter *e = m->e;
    int64_t stride = m->w.stride[k][m->w.n_axis - 1] * (int64_t)sizeof(float);
    if (m->flat[k])
        return splat(e, m->flat[k], lanes);
    LLVMValueRef p = ir_at(e, m->in[k], ir_mul(e, i, stride));
    if (lanes == 1 || stride == (int64_t)sizeof(float))
        return load_f32(e, lanes_type(e, lanes), p);
    LLVMValueRef x = LLVMGetPoison(lanes_type(e, lanes));
    for (int lane = 0; lane < lanes; lane++) {
        LLVMValueRef one = load_f32(e, e->f32, ir_field(e, p, (size_t)(lane * stride)));
        LLVMValueRef at = LLVMConstInt(e->i32, (unsigned)lane, 0);
        x = LLVMBuildInsertElement(e->b, x, one, at, "");
    }
    return x;
}

static void store_lanes(const maker *m, int k, LLVMValueRef i, LLVMValueRef x)
{
    LLVMValueRef p = ir_at(m->e, m->out[k], ir_mul(m->e, i, sizeof(float)));
    LLVMSetAlignment(LLVMBuildStore(m->e->b, x, p), sizeof(float));
}

/* The chain for `lanes` elements. */
static void emit_elements(const maker *m, LLVMValueRef i, int lanes)
{
    LLVMValueRef reg[MAP_REGS_MAX];
    for (int k = 0; k < MAP_REGS_MAX; k++)
        reg[k] = LLVMConstNull(lanes_type(m->e, lanes));
    for (const kinstr *c = m->code; c < m->code + m->s->n_code; c++) {
        if (c->op == MAP_load)
            reg[c->to] = load_lanes(m, c->at[0], i, lanes);
        else if (c->op == MAP_store)
            store_lanes(m, c->to, i, reg[c->at[0]]);
        else if (c->op == MAP_number)
            reg[c->to] = splat(m->e, LLVMConstReal(m->e->f32, (double)c->f[0]), lanes);
        else
            reg[c->to] = math_emit(m->e, m->fused, c, reg[c->at[0]], reg[c->at[1]], reg[c->at[2]]);
    }
}

/* ---- runs and rows ---- */

/* Does every run end with a whole vector? */
static bool runs_are_whole(const maker *m)
{
    int64_t lanes = m->e->to.lanes, n = m->w.n[m->w.n_axis - 1];
    return n % lanes == 0 && m->s->tile % lanes == 0;
}

/* Elements [from, to) of the last axis. */
static void emit_run(maker *m, LLVMValueRef from, LLVMValueRef to)
{
    const emitter *e = m->e;
    int lanes = e->to.lanes, last = m->w.n_axis - 1;
    for (int k = 0; k < K_IN_MAX; k++)
        m->flat[k] = m->used[k] && m->w.stride[k][last] == 0 ? load_f32(e, e->f32, m->in[k]) : NULL;
    if (m->w.n[last] >= lanes) {
        loop l = loop_begin(e, from, to, lanes);
        emit_elements(m, l.i, lanes);
        loop_end(e, &l, LLVMBuildNSWAdd(e->b, l.i, ir_i64(e, lanes), ""));
        from = l.i;
    }
    if (runs_are_whole(m))
        return;
    loop l = loop_begin(e, from, to, 1);
    emit_elements(m, l.i, 1);
    loop_end(e, &l, LLVMBuildNSWAdd(e->b, l.i, ir_i64(e, 1), ""));
}

static LLVMValueRef smaller(const emitter *e, LLVMValueRef a, LLVMValueRef b)
{
    return LLVMBuildSelect(e->b, LLVMBuildICmp(e->b, LLVMIntSLT, a, b, ""), a, b, "");
}

/* Where the runs begin whose number along all axes but the last is `at`. */
static LLVMValueRef run_offset(const maker *m, int k, LLVMValueRef at)
{
    const emitter *e = m->e;
    LLVMValueRef sum = ir_i64(e, 0);
    for (int axis = m->w.n_axis - 2; axis >= 0; axis--) {
        LLVMValueRef n = ir_i64(e, m->w.n[axis]);
        LLVMValueRef i = axis ? LLVMBuildURem(e->b, at, n, "") : at;
        int64_t bytes = m->w.stride[k][axis] * (int64_t)sizeof(float);
        sum = LLVMBuildAdd(e->b, sum, ir_mul(e, i, bytes), "");
        at = LLVMBuildUDiv(e->b, at, n, "");
    }
    return sum;
}

/* Columns [begin, end) of a row, run by run. */
static void emit_runs(maker *m)
{
    const emitter *e = m->e;
    maker row = *m;
    LLVMValueRef n = ir_i64(e, m->w.n[m->w.n_axis - 1]);
    loop l = loop_begin(e, m->begin, m->end, 1);
    LLVMValueRef from = LLVMBuildURem(e->b, l.i, n, ""), at = LLVMBuildUDiv(e->b, l.i, n, "");
    LLVMValueRef first = LLVMBuildSub(e->b, l.i, from, "");
    LLVMValueRef to = smaller(e, n, LLVMBuildSub(e->b, m->end, first, ""));
    for (int k = 0; k < K_IN_MAX; k++)
        if (m->used[k])
            row.in[k] = ir_at(e, m->in[k], run_offset(m, k, at));
    for (int k = 0; k < K_OUT_MAX; k++)
        if (m->made[k])
            row.out[k] = ir_at(e, m->out[k], ir_mul(e, first, sizeof(float)));
    emit_run(&row, from, to);
    loop_end(e, &l, LLVMBuildAdd(e->b, first, to, ""));
}

static void emit_row(const maker *m, LLVMValueRef row)
{
    const emitter *e = m->e;
    maker r = *m;
    for (int k = 0; k < K_IN_MAX; k++)
        if (m->used[k])
            r.in[k] =
                ir_at(e, m->in[k], ir_mul(e, row, m->s->stride[k][0] * (int64_t)sizeof(float)));
    for (int k = 0; k < K_OUT_MAX; k++)
        if (m->made[k])
            r.out[k] = ir_at(e, m->out[k], ir_mul(e, row, m->s->out_pitch[k]));
    if (m->w.n_axis == 1)
        emit_run(&r, m->begin, m->end);
    else
        emit_runs(&r);
}

/* As kpart_of: some rows whole, or some columns of all rows. */
static void emit_rows(maker *m)
{
    const emitter *e = m->e;
    LLVMValueRef k = LLVMGetParam(m->fn, 0), row = LLVMGetParam(m->fn, 2);
    LLVMValueRef row_end = LLVMGetParam(m->fn, 3), width = ir_i64(e, m->s->size.map.elems);
    m->begin = ir_i64(e, 0);
    m->end = width;
    if (m->s->tile > 0) {
        m->begin = ir_mul(e, row, m->s->tile);
        m->end = smaller(e, ir_mul(e, row_end, m->s->tile), width);
        row = ir_i64(e, 0);
        row_end = ir_load(e, e->i64, k, offsetof(kargs, n));
    }
    for (int i = 0; i < K_IN_MAX; i++)
        if (m->used[i])
            m->in[i] = ir_load(e, e->ptr, k, offsetof(kargs, in) + (size_t)i * sizeof(void *));
    for (int i = 0; i < K_OUT_MAX; i++)
        if (m->made[i])
            m->out[i] = ir_load(e, e->ptr, k, offsetof(kargs, out) + (size_t)i * sizeof(void *));
    loop l = loop_begin(e, row, row_end, 1);
    emit_row(m, l.i);
    loop_end(e, &l, LLVMBuildNSWAdd(e->b, l.i, ir_i64(e, 1), ""));
    LLVMBuildRetVoid(e->b);
}

LLVMValueRef map_emit(emitter *e, const plan_step *s, const char *name)
{
    maker m = {.e = e, .s = s, .code = e->job->p->code + s->code, .fused = is_fused(e->job->p, s)};
    for (const kinstr *c = m.code; c < m.code + s->n_code; c++) {
        if (c->op == MAP_load)
            m.used[c->at[0]] = true;
        else if (c->op == MAP_store)
            m.made[c->to] = true;
    }
    walk_make(&m);
    m.fn = LLVMAddFunction(e->m, name, e->kernel_type);
    LLVMPositionBuilderAtEnd(e->b, LLVMAppendBasicBlockInContext(e->cx, m.fn, "entry"));
    debug_function(e, m.fn, s->loc);
    emit_rows(&m);
    debug_function_end(e);
    return m.fn;
}
