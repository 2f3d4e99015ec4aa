/* cuda_rows.c - cuda_kernels.def as data, and which of its rows a step gets. */
#include "kernels/cuda/cuda_rows.h"

#include <string.h>

#define MANY INT64_MAX
#define DT_ANY DT_COUNT
const kernel_row cuda_row_table[] = {
#define CUDA_KERNEL(op_, type_, act_, least_, most_, symbol_, unit_, scratch_)                     \
    {.op = KOP_##op_,                                                                              \
     .type = DT_##type_,                                                                           \
     .layout = LAYOUT_STORED,                                                                      \
     .act = ACT_##act_,                                                                            \
     .least = least_,                                                                              \
     .most = most_,                                                                                \
     .symbol = #symbol_,                                                                           \
     .variant = VARIANT_c,                                                                         \
     .unit = KUNIT_##unit_,                                                                        \
     .scratch = KSCRATCH_##scratch_},
#include "kernels/cuda/cuda_kernels.def"
#undef CUDA_KERNEL
};

const int32_t cuda_row_count = (int32_t)(sizeof cuda_row_table / sizeof cuda_row_table[0]);

static bool rounds_more(kact act, cuda_rounding most)
{
    return most == CUDA_ROUNDS_NOTHING
               ? act_rounds(act)
               : most == CUDA_ROUNDS_NEAR && act_rounds(act) && !act_rounds_near(act);
}

const kernel_row *cuda_row_select(kop op, dtype type, int64_t n_row, cuda_rounding most,
                                  bool any_rows)
{
    for (int32_t i = cuda_row_count - 1; i >= 0; i--) {
        const kernel_row *r = &cuda_row_table[i];
        if (r->op == op && (r->type == DT_COUNT || r->type == type) && kernel_takes(r, n_row) &&
            !rounds_more(r->act, most) && !(any_rows && r->most < MANY))
            return r;
    }
    return NULL;
}

const kernel_row *cuda_row_find(const char *symbol)
{
    for (int32_t i = 0; i < cuda_row_count; i++)
        if (strcmp(cuda_row_table[i].symbol, symbol) == 0)
            return &cuda_row_table[i];
    return NULL;
}

bool cuda_row_is_light(const kernel_row *r)
{
    static const char *const light[] = {
#define CUDA_LIGHT(symbol) #symbol,
#include "kernels/cuda/cuda_light.def"
#undef CUDA_LIGHT
    };
    for (size_t i = 0; i < sizeof light / sizeof *light; i++)
        if (strcmp(r->symbol, light[i]) == 0)
            return true;
    return false;
}
