/* metal_rows.c - metal_kernels.def as data, and which of its rows a step gets. */
#include "kernels/metal/metal_rows.h"

#include <string.h>

#define MANY INT64_MAX
#define DT_ANY DT_COUNT
const kernel_row metal_row_table[] = {
#define METAL_KERNEL(op_, type_, act_, least_, most_, symbol_, unit_, scratch_, shared_)           \
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
#include "kernels/metal/metal_kernels.def"
#undef METAL_KERNEL
};

static const uint32_t shared[] = {
#define METAL_KERNEL(op_, type_, act_, least_, most_, symbol_, unit_, scratch_, shared_)           \
    METAL_SHARED_##shared_,
#include "kernels/metal/metal_kernels.def"
#undef METAL_KERNEL
};

const int32_t metal_row_count = (int32_t)(sizeof metal_row_table / sizeof metal_row_table[0]);
static_assert(sizeof shared / sizeof shared[0] <= 32 * METAL_MASK_WORDS, "a bit for each row");
static_assert(METAL_SHARED_ATTEND <= METAL_SHARED_MAX && METAL_SHARED_TILES <= METAL_SHARED_MAX,
              "threadgroup memory");

/* What shaders read as the host wrote it (words.msl). */
static_assert(sizeof(kinstr) == 16 && offsetof(kinstr, f) == 8, "kinstr");
static_assert(offsetof(kbatch, data) == 40 && offsetof(klora, data) == 40, "kbatch, klora");
static_assert(sizeof(kmix) == 4 + 8 * K_MIX_MAX, "kmix");
static_assert(sizeof(ksample) == 64 && offsetof(ksample, reach) == 40 &&
                  offsetof(ksample, greedy) == 56,
              "ksample");
static_assert(sizeof(ksampled) == 24, "ksampled");
static_assert(sizeof(metal_tier) == 24 && sizeof(metal_cell) == 4 * 24 + 32, "metal_cell");
static_assert(sizeof(metal_step) == 8 * (K_IN_MAX + K_OUT_MAX + 2) + 24, "metal_step");
static_assert(sizeof(metal_run) == 8 * 8 + 8, "metal_run");

const kernel_row *metal_row_select(kop op, dtype type, int64_t n_row, bool exact, bool any_rows)
{
    for (int32_t i = metal_row_count - 1; i >= 0; i--) {
        const kernel_row *r = &metal_row_table[i];
        if (r->op == op && (r->type == DT_COUNT || r->type == type) && kernel_takes(r, n_row) &&
            !(exact && act_rounds(r->act)) && !(any_rows && (r->least > 1 || r->most < MANY)))
            return r;
    }
    return NULL;
}

const kernel_row *metal_row_find(const char *symbol)
{
    for (int32_t i = 0; i < metal_row_count; i++)
        if (strcmp(metal_row_table[i].symbol, symbol) == 0)
            return &metal_row_table[i];
    return NULL;
}

int32_t metal_row_index(const kernel_row *r)
{
    return (int32_t)(r - metal_row_table);
}

uint32_t metal_row_shared(const kernel_row *r)
{
    return shared[metal_row_index(r)];
}
