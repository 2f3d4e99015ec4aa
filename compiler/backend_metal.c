/* backend_metal.c - Metal GPUs as a back end: the kernels of kernels/metal/metal_kernels.def.
 *
 * What threads are to the processor, threadgroups are here: with few rows they run chains, and with one they compute for
 * themselves what prepares these, as threads do. Values of a threadgroup lie in the GPU's memory, so that a tile may be larger
 * than threadgroup memory; it should stay in a core's cache. */
#include "compiler/backend.h"

#include "kernels/metal/metal_rows.h"

static void describe(const kernel_row *row, plan_kernel *out)
{
    *out = (plan_kernel){.name = row->symbol,
                         .op = row->op,
                         .type = row->type,
                         .layout = row->layout,
                         .act = row->act,
                         .unit = row->unit,
                         .row = metal_row_index(row)};
}

/* The faster kernels of attention take other ways with pages of other lengths, which sessions of a model may have: where bits have to
 * be the same in all of them it is the plain one. */
static const kernel_row *choose_row(const kernel_want *w)
{
    if (w->op == KOP_attend && w->any_rows)
        return metal_row_find("k_attend_metal");
    return metal_row_select(w->op, w->type, w->rows, w->exact || w->type == DT_BF16, w->any_rows);
}

static bool metal_select(const backend *be, const kernel_want *w, plan_kernel *out)
{
    const kernel_row *row = w->layout == LAYOUT_STORED ? choose_row(w) : NULL;
    (void)be;
    if (row)
        describe(row, out);
    return row != NULL;
}

static bool metal_find(const backend *be, const char *name, plan_kernel *out)
{
    const kernel_row *row = metal_row_find(name);
    (void)be;
    if (row)
        describe(row, out);
    return row != NULL;
}

static klayout metal_layout(const backend *be, kop op, dtype type, bool exact)
{
    (void)be, (void)op, (void)type, (void)exact;
    return LAYOUT_STORED;
}

static size_t metal_scratch(const backend *be, const plan_kernel *k, const kargs *args)
{
    (void)be;
    return kernel_scratch(&metal_row_table[k->row], args);
}

static int64_t metal_units(const backend *be, const plan_kernel *k, const kargs *args)
{
    (void)be;
    return kernel_units(&metal_row_table[k->row], args);
}

enum {
    FEW_ROWS = 16,         /* of calls that have chains */
    TILE_BYTES = 64 * 1024 /* of a threadgroup's values: several of them share a core's cache */
};

const backend *backend_metal(void)
{
    static const backend metal = {
        .name = "metal",
        .arch = KARCH_METAL,
        .level = "apple7", /* the first GPUs with simdgroup_matrix: those of M1 and A14 */
        .fuses = true,
        .map_inputs = K_IN_MAX,
        .map_results = K_OUT_MAX,
        .map_registers = MAP_REGS_MAX,
        .chain_steps = CHAIN_STEPS_MAX,
        .chain_rows = FEW_ROWS,
        .recompute_elems = {32768, 0},
        .tile_rows = FEW_ROWS,
        .tile_cols = {8, 64},
        .tile_bytes = TILE_BYTES,
        .tile_bytes_max = TILE_BYTES,
        .whole_rows = FEW_ROWS,
        .whole_cols = {64, 64, 32}, /* else linears have fewer units than there are threadgroups */
        .split_units = 64,          /* about as many as GPUs have threadgroups */
        .split_positions = 513, /* up to there a threadgroup is as quick as several and merging */
        .vector_bytes = METAL_VECTOR_BYTES,
        .select = metal_select,
        .find = metal_find,
        .layout = metal_layout,
        .scratch = metal_scratch,
        .units = metal_units};
    return &metal;
}
