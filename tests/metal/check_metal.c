/* check_metal.c - kernels of metal_kernels.def for the kernel checker, each run by a threadgroup of fibres.
 *
 * Every call is a phase of one item of one step, made as a session makes them (runtime/exec): so the interpreter in phase.metal is
 * checked with them. */
#include "kernels/metal/metal_rows.h"
#include "tests/kernels/check.h"
#include "tests/metal/lanes.h"

#ifdef METAL_RACE
#include <malloc.h>
#include <unistd.h>
#endif
#include <stdio.h>
#include <stdlib.h>
#include "kernels/ref/dequant.h"

/* ---- a call ---- */

static uint64_t address(const void *p)
{
    return (uint64_t)(uintptr_t)p;
}

static metal_shape shape_of(const kargs *k, int32_t row)
{
    metal_shape s = {.cols = (int32_t)k->cols,
                     .tile = (int32_t)k->tile,
                     .n_code = (int32_t)k->n_code,
                     .row = row};
    for (int i = 0; i < K_SIZES_MAX; i++)
        s.size.n[i] = (int32_t)k->n[i];
    for (int i = 0; i < K_WORDS_MAX; i++)
        s.choice.word[i] = k->word[i];
    for (int i = 0; i < K_SCALARS_MAX; i++)
        s.scalar.f[i] = (float)k->f[i];
    for (int i = 0; i < K_IN_MAX; i++) {
        s.type[i] = (int32_t)k->type[i];
        s.pitch[i] = (int32_t)k->pitch[i];
        for (int a = 0; a < K_AXES_MAX; a++)
            s.stride[i][a] = (int32_t)k->stride[i][a];
    }
    for (int i = 0; i < K_OUT_MAX; i++)
        s.out_pitch[i] = (int32_t)k->out_pitch[i];
    return s;
}

static metal_cell cell_of(const kcell *c)
{
    metal_cell m = {.n_tier = c->n_tier,
                    .table = c->table,
                    .page_tok = (int32_t)c->page_tok,
                    .pinned = (int32_t)c->pinned,
                    .heads = (int32_t)c->heads,
                    .k = (int32_t)c->k,
                    .v = (int32_t)c->v,
                    .latent = c->latent};
    for (int i = 0; i < c->n_tier; i++)
        m.tier[i] = (metal_tier){.base = address(c->tier[i].base),
                                 .page_bytes = c->tier[i].page_bytes,
                                 .key = (int32_t)c->tier[i].key,
                                 .value = (int32_t)c->tier[i].value};
    return m;
}

static metal_step step_of(const kargs *k, const metal_cell *cell)
{
    metal_step s = {
        .rows = (int32_t)k->n[0], .code = address(k->code), .cell = k->cell ? address(cell) : 0};
    for (int i = 0; i < K_IN_MAX; i++) {
        s.in[i] = address(k->in[i]);
        if (((uint64_t)k->pitch[i] | s.in[i]) % 16 == 0)
            s.aligned |= (uint32_t)1 << i;
    }
    for (int i = 0; i < K_OUT_MAX; i++) {
        s.out[i] = address(k->out[i]);
        if (((uint64_t)k->out_pitch[i] | s.out[i]) % 16 == 0)
            s.aligned |= (uint32_t)1 << (K_IN_MAX + i);
    }
    return s;
}

/* The tables of a call. */
static struct {
    metal_shape shape;
    metal_cell cell;
    metal_step step;
    metal_item item;
    metal_phase phase;
    metal_run run;
} call;

#ifdef METAL_RACE
/* Race mode has to know all memory that kernels touch: malloc takes it from where the program's data ends. */
__attribute__((constructor)) static void memory_know(void)
{
    mallopt(M_MMAP_THRESHOLD, 1 << 30);
    mallopt(M_TRIM_THRESHOLD, -1);
    lanes_memory_add(sbrk(0), (size_t)256 << 20, "memory of the checker");
    lanes_memory_add(&call, sizeof call, "tables of the call");
}
#endif

static const shader_library *shaders(void)
{
    static const shader_library *library;
    static char error[LANES_ERROR_MAX];
    const char *other = getenv("WEFT_METAL_SHADERS"); /* for missed.py */
    if (!library)
        library = lanes_open(other ? other : METAL_SHADERS, error);
    if (!library) {
        fprintf(stderr, "%s\n", error);
        exit(1);
    }
    return library;
}

/* One threadgroup; its threads are run in one order after the other. */
static void dispatch(const metal_mask *mask, uint32_t shared_bytes)
{
    static char error[LANES_ERROR_MAX];
    static unsigned turn;
    const lanes_constant rows[] = {
        {METAL_CONSTANT_ROWS_LOW, sizeof mask->word[0], &mask->word[0]},
        {METAL_CONSTANT_ROWS_HIGH, sizeof mask->word[1], &mask->word[1]}};
    lanes_dispatch d = {.library = shaders(),
                        .kernel = "weft_phase",
                        .constant = rows,
                        .n_constant = METAL_MASK_WORDS,
                        .groups = {1},
                        .threads = {METAL_BLOCK},
                        .order = (fibre_order)(turn++ % FIBRES_ORDERS)};
    d.buffer[METAL_BUFFER_RUN] = (lanes_binding){&call.run, sizeof call.run};
    d.shared_bytes[METAL_THREADGROUP_SHARED] = shared_bytes;
    if (!lanes_run(&d, error))
        check_fail(error);
    lanes_order_all();
}

/* Units [begin, end) of a step of kernel number `row`: the line begins before the item's own units, so that they are what one
 * threadgroup has of it. */
static void run(int32_t row, const kargs *k, const kthread *t, int64_t begin, int64_t end)
{
    call.shape = shape_of(k, row);
    call.cell = k->cell ? cell_of(k->cell) : (metal_cell){0};
    call.step = step_of(k, &call.cell);
    call.item = (metal_item){.n_step = 1, .units = (int32_t)end, .at = (int32_t)-begin};
    call.phase = (metal_phase){.n_item = 1, .units = (int32_t)(end - begin)};
    call.run = (metal_run){.shape = address(&call.shape),
                           .step = address(&call.step),
                           .item = address(&call.item),
                           .phase = address(&call.phase),
                           .batch = address(k->batch),
                           .lora = address(k->lora),
                           .blocks = address(t->scratch),
                           .block_bytes = (uint32_t)t->scratch_bytes};
    const metal_mask mask = metal_mask_with((metal_mask){{0}}, row);
    dispatch(&mask, metal_row_shared(&metal_row_table[row]));
}

/* ---- rows ---- */

enum {
#define METAL_KERNEL(op, type, act, least, most, symbol, ...) ROW_##symbol,
#include "kernels/metal/metal_kernels.def"
#undef METAL_KERNEL
    ROWS
};

#define METAL_KERNEL(op, type, act, least, most, symbol, ...)                                      \
    static void run_##symbol(const kargs *k, const kthread *t, int64_t begin, int64_t end)         \
    {                                                                                              \
        run(ROW_##symbol, k, t, begin, end);                                                       \
    }
#include "kernels/metal/metal_kernels.def"
#undef METAL_KERNEL

static kernel_fn *const functions[ROWS] = {
#define METAL_KERNEL(op, type, act, least, most, symbol, ...) run_##symbol,
#include "kernels/metal/metal_kernels.def"
#undef METAL_KERNEL
};

enum { ROWS_MAX = 256, SYMBOL_MAX = 48 };

/* Is it a row for weights of any type, whose cases are of its own? Those are checked with all types, one after the other. */
static bool is_of_types(const kernel_row *r)
{
    return r->type == DT_COUNT &&
           (r->op == KOP_linear || r->op == KOP_head_linear || r->op == KOP_experts);
}

/* Has another row, for weights of type t, the same calls? Then that is what plans take. And what numbers of each type are is checked
 * with linears of any number of rows: other kernels do with some types. */
static bool is_left_out(const kernel_row *r, dtype t)
{
    if ((r->least > 1 || r->op != KOP_linear) && t != DT_F32 && t != DT_Q5_1 && t != DT_Q3_K)
        return true;
    for (const kernel_row *o = metal_row_table; o < metal_row_table + metal_row_count; o++)
        if (o->op == r->op && o->type == t && o->least == r->least && o->most == r->most)
            return true;
    return false;
}

const kernel_row *check_more_rows(int *out_n)
{
    static kernel_row all[ROWS_MAX];
    static char symbols[ROWS_MAX][SYMBOL_MAX];
    int n = 0;
    for (int i = 0; i < ROWS; i++)
        for (dtype t = 0; t < DT_COUNT; t++) {
            const kernel_row *r = &metal_row_table[i];
            if (is_of_types(r) ? !dequant_has(t) || is_left_out(r, t) : t > 0)
                continue;
            all[n] = *r;
            all[n].fn = functions[i];
            if (is_of_types(r)) {
                snprintf(symbols[n], SYMBOL_MAX, "%s(%s)", r->symbol, dtype_row_of(t)->name);
                all[n].symbol = symbols[n];
                all[n].type = t;
            }
            n++;
        }
    *out_n = n;
    return all;
}

bool check_packs(void)
{
    return true;
}
