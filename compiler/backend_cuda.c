/* backend_cuda.c - CUDA cards as a back end: the kernels of kernels/cuda/cuda_kernels.def.
 *
 * What threads are to the processor, blocks are here: with few rows they run chains, and with one they compute for themselves
 * what prepares these, as threads do. With many rows a tile does not fit into a block's memory: an item is one step, or steps of
 * whole rows. */
#include "compiler/backend.h"

#include <string.h>
#include "kernels/cuda/cuda_rows.h"
#include "kernels/cuda/few_size.h"
#include "kernels/cuda/phase.h"

static void describe(const kernel_row *row, plan_kernel *out)
{
    *out = (plan_kernel){.name = row->symbol,
                         .op = row->op,
                         .type = row->type,
                         .layout = row->layout,
                         .act = row->act,
                         .unit = row->unit,
                         .row = (int32_t)(row - cuda_row_table)};
}

/* F32 weights are multiplied with activations as they are. With several rows those for BF16 and F16 weights are two bf16, as one f16 or
 * better (kernels/cuda/README.md), unless the back end is asked for all of their bits, or for fewer. */
static cuda_rounding rounding_of(const backend *be, const kernel_want *w)
{
    const bool halves = w->type == DT_BF16 || w->type == DT_F16;
    if (w->exact || w->type == DT_F32 || (halves && be == backend_cuda_exact()))
        return CUDA_ROUNDS_NOTHING;
    return halves && be != backend_cuda_rounding() ? CUDA_ROUNDS_NEAR : CUDA_ROUNDS_ANY;
}

/* Attention of many rows rounds queries and weights where linears of BF16 round activations. */
static const kernel_row *row_rounding(const kernel_row *row)
{
    return row && strcmp(row->symbol, "k_attend_flash_cuda") == 0
               ? cuda_row_find("k_attend_round_cuda")
               : row;
}

static bool cuda_select(const backend *be, const kernel_want *w, plan_kernel *out)
{
    const kernel_row *row =
        w->layout == LAYOUT_STORED
            ? cuda_row_select(w->op, w->type, w->rows, rounding_of(be, w), w->any_rows)
            : NULL;
    if (be == backend_cuda_rounding() && !w->exact)
        row = row_rounding(row);
    if (row)
        describe(row, out);
    return row != NULL;
}

static bool cuda_find(const backend *be, const char *name, plan_kernel *out)
{
    (void)be;
    const kernel_row *row = cuda_row_find(name);
    if (row)
        describe(row, out);
    return row != NULL;
}

static klayout cuda_layout(const backend *be, kop op, dtype type, bool exact)
{
    (void)be, (void)op, (void)type, (void)exact;
    return LAYOUT_STORED;
}

static size_t cuda_scratch(const backend *be, const plan_kernel *k, const kargs *args)
{
    (void)be;
    return kernel_scratch(&cuda_row_table[k->row], args);
}

static int64_t cuda_units(const backend *be, const plan_kernel *k, const kargs *args)
{
    (void)be;
    return kernel_units(&cuda_row_table[k->row], args);
}

/* What a block has and the tables of phases have to be in shared memory, 227 KB of it on the cards that this is measured for, of
 * which the kernel itself has some. */
enum { SHARED_BYTES = 227 * 1024 };
_Static_assert(FEW_BLOCK_BYTES + PACKS_BYTES + CUDA_OWN_BYTES <= SHARED_BYTES,
               "linears of few rows have their weights in shared memory");

static const backend levels[] = {
#define LEVEL(level_)                                                                              \
    {.name = "cuda",                                                                               \
     .arch = KARCH_CUDA,                                                                           \
     .level = level_,                                                                              \
     .fuses = true,                                                                                \
     .map_inputs = K_IN_MAX,                                                                       \
     .map_results = K_OUT_MAX,                                                                     \
     .map_registers = MAP_REGS_MAX,                                                                \
     .chain_steps = CHAIN_STEPS_MAX,                                                               \
     .chain_rows = FEW_CALL_MAX,                                                                   \
     .launches = true,                                                                             \
     .recompute_elems = {32768, 0}, /* blocks have their memory for weights */                     \
     .tile_rows = FEW_CALL_MAX,                                                                    \
     .tile_cols = {8, 64},                                                                         \
     .tile_bytes = FEW_TILE_BYTES,                                                                 \
     .tile_bytes_max = FEW_TILE_BYTES,                                                             \
     .tile_bytes_few = FEW_TILE_BYTES / 2, /* what is left is for a copy of the batch */           \
     .whole_rows = FEW_N,                                                                          \
     .whole_cols = {32, 64, 32}, /* else linears have fewer units than there are blocks */         \
     .split_units = 128,         /* about as many as cards have blocks */                          \
     .split_positions = 513,     /* up to there a block is as quick as others and merging */       \
     .merge_positions = 8193,    /* 16 stretches of all heads are more than a gate */              \
     .walk_elems = 256 * 1024,   /* 8 us at what a block reads, if it has to alone */              \
     .select = cuda_select,                                                                        \
     .find = cuda_find,                                                                            \
     .layout = cuda_layout,                                                                        \
     .scratch = cuda_scratch,                                                                      \
     .units = cuda_units},
    LEVEL("sm_80") LEVEL("sm_80_bf16") LEVEL("sm_80_exact")
#undef LEVEL
};

const backend *backend_cuda(void)
{
    return &levels[0];
}

const backend *backend_cuda_rounding(void)
{
    return &levels[1];
}

const backend *backend_cuda_exact(void)
{
    return &levels[2];
}
