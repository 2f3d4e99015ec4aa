/* check_cuda.c - kernels of cuda_kernels.def for the kernel checker, each run by a block of fibres. */
#include "tests/cuda/emulated.h"
#include "tests/kernels/check.h"

#include <stdio.h>
#include <string.h>
#include "kernels/cuda/flash_size.h"
#include "kernels/ref/dequant.h"

#define MANY INT64_MAX
#define DT_ANY DT_COUNT
static const kernel_row rows[] = {
#define CUDA_KERNEL(op_, type_, act_, least_, most_, symbol_, unit_, scratch_)                     \
    {.op = KOP_##op_,                                                                              \
     .type = DT_##type_,                                                                           \
     .layout = LAYOUT_STORED,                                                                      \
     .act = ACT_##act_,                                                                            \
     .least = least_,                                                                              \
     .most = most_,                                                                                \
     .symbol = #symbol_,                                                                           \
     .fn = emulated_##symbol_,                                                                     \
     .variant = VARIANT_c,                                                                         \
     .unit = KUNIT_##unit_,                                                                        \
     .scratch = KSCRATCH_##scratch_},
#include "kernels/cuda/cuda_kernels.def"
#undef CUDA_KERNEL
#ifndef CHECK_CUDA /* 384 fibres are slow at the many calls of test_attend_bits.c */
/* weft_flash's own ways, which no row of the table names */
#define TILES(act_, symbol_)                                                                       \
    {                                                                                              \
        .op = KOP_attend, .type = DT_COUNT, .layout = LAYOUT_STORED, .act = act_, .least = 65,     \
        .most = MANY, .symbol = #symbol_, .fn = emulated_##symbol_, .variant = VARIANT_c,          \
        .unit = KUNIT_QUERIES_FLASH, .scratch = KSCRATCH_CUDA_FLASH                                \
    }
    TILES(ACT_F32, k_attend_tiles_cuda),
    TILES(ACT_BF1, k_attend_tiles_round_cuda),
#undef TILES
#endif
};

enum { ROWS = sizeof rows / sizeof rows[0], ROWS_MAX = 256, SYMBOL_MAX = 48 };

/* Is it a row for weights of any type, whose cases are of its own? */
static bool is_of_types(const kernel_row *r)
{
    return r->type == DT_COUNT &&
           (r->op == KOP_linear || r->op == KOP_head_linear || r->op == KOP_experts);
}

/* Those are checked with all types, one after the other. */
const kernel_row *check_more_rows(int *out_n)
{
    static kernel_row all[ROWS_MAX];
    static char symbols[ROWS_MAX][SYMBOL_MAX];
    int n = 0;
    for (int i = 0; i < (int)ROWS; i++)
        for (dtype t = 0; t < DT_COUNT; t++) {
            if (is_of_types(&rows[i]) ? !dequant_has(t) : t > 0)
                continue;
            all[n] = rows[i];
            if (is_of_types(&rows[i])) {
                snprintf(symbols[n], SYMBOL_MAX, "%s(%s)", rows[i].symbol, dtype_row_of(t)->name);
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

static bool flash_bf16(const kcell *c)
{
    return flash_has(c) && c->tier[0].key == KFORM_BF16;
}

/* Rows of attention that are another row's code but for cells of some forms. Of a cell that flash attention does not cut into units of its
 * own, k_attend_flash_cuda is a call of k_attend_cuda with the same units, and what blocks of 384 threads do is not rounded.
 * k_attend_round_cuda is a call of k_attend_flash_cuda, which a few cases confirm. */
static const struct {
    const char *symbol;
    bool (*differs)(const kcell *c);
} only_for[] = {{"k_attend_flash_cuda", flash_cuts},
                {"k_attend_round_cuda", flash_bf16},
                {"k_attend_tiles_round_cuda", flash_cuts}};

bool check_leaves_out(const kernel_row *row, const check_case *k)
{
    for (size_t i = 0; i < sizeof only_for / sizeof only_for[0]; i++)
        if (strcmp(row->symbol, only_for[i].symbol) == 0)
            return !only_for[i].differs(k->k.cell);
    return false;
}

void emulated_fail(const char *what)
{
    check_fail(what);
}
