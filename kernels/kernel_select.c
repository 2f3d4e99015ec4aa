/* kernel_select.c - variants.def as data, and which kernels a machine gets, or a level of any. */
#include "kernels/kernels.h"

#include <string.h>
#include "runtime/base/cpu.h"

enum { EXACT, ROUNDS };

static const struct {
    const char *name;
    karch arch;
    int rounding;
    uint32_t needs;
} variants[VARIANT_COUNT] = {
#define KARCH_ANY KARCH_COUNT
#define VARIANT(name, arch, rounding, needs) {#name, KARCH_##arch, rounding, needs},
#include "kernels/variants.def"
#undef VARIANT
};

static const char *const archs[KARCH_COUNT] = {"x86_64", "aarch64", "other", "cuda", "metal"};

const char *karch_name(karch a)
{
    return archs[a];
}

karch karch_find(const char *name)
{
    karch a = 0;
    while (a < KARCH_COUNT && strcmp(archs[a], name) != 0)
        a++;
    return a;
}

const char *kvariant_name(kvariant v)
{
    return variants[v].name;
}

uint32_t kvariant_needs(kvariant v)
{
    return variants[v].needs;
}

bool kvariant_on(kvariant v, karch a)
{
    return variants[v].arch == KARCH_ANY || variants[v].arch == a;
}

bool kvariant_rounds(kvariant v)
{
    return variants[v].rounding == ROUNDS;
}

bool klevel_has(klevel level, kvariant v)
{
    return (variants[v].needs & ~level.features) == 0;
}

bool kvariant_runs(kvariant v)
{
    return klevel_has(klevel_here(v), v);
}

kvariant kvariant_best(void)
{
    kvariant v = VARIANT_COUNT - 1;
    while (!kvariant_runs(v) || kvariant_rounds(v))
        v--;
    return v;
}

kvariant kvariant_rounding(void)
{
    for (kvariant v = VARIANT_COUNT; v-- > 0;)
        if (kvariant_runs(v) && kvariant_rounds(v))
            return v;
    return VARIANT_COUNT;
}

kvariant kvariant_find(const char *name)
{
    for (kvariant v = 0; v < VARIANT_COUNT; v++)
        if (strcmp(variants[v].name, name) == 0 && kvariant_runs(v))
            return v;
    return VARIANT_COUNT;
}

bool kernel_runs(const kernel_row *row)
{
    return row->fn && kvariant_runs(row->variant);
}

const kernel_row *kernel_rows(int *out_n)
{
    *out_n = kernel_row_count;
    return kernel_row_table;
}

bool kernel_takes(const kernel_row *row, int64_t n_row)
{
    return n_row >= row->least && n_row <= row->most;
}

klevel klevel_here(kvariant best)
{
    return (klevel){best, cpu_features()};
}

klevel klevel_of(kvariant v)
{
    return (klevel){v, variants[v].needs};
}

const kernel_row *kernel_select_at(klevel level, kop op, dtype type, klayout layout, int64_t n_row,
                                   bool exact)
{
    for (int i = kernel_row_count - 1; i >= 0; i--) {
        const kernel_row *r = &kernel_row_table[i];
        if ((r->variant == VARIANT_ref) == (level.best == VARIANT_ref) &&
            r->variant <= level.best && r->layout == layout &&
            (r->type == DT_COUNT || r->type == type) && !(exact && act_rounds(r->act)) &&
            kernel_takes(r, n_row) && r->op == op && klevel_has(level, r->variant))
            return r;
    }
    return NULL;
}

const kernel_row *kernel_select_as(kop op, dtype type, klayout layout, int64_t n_row, kvariant best)
{
    return kernel_select_at(klevel_here(best), op, type, layout, n_row, false);
}

const kernel_row *kernel_select(kop op, dtype type, int64_t n_row, kvariant best)
{
    return kernel_select_as(op, type, LAYOUT_STORED, n_row, best);
}

/* What one number of rows lacks begins at 1 or behind the most of some row. */
bool kernel_reads_at(klevel level, kop op, dtype type, klayout l, bool exact)
{
    bool all = layout_has(l, type) && kernel_select_at(level, op, type, l, 1, exact) != NULL;
    for (int i = 0; i < kernel_row_count && all; i++) {
        const kernel_row *r = &kernel_row_table[i];
        if (r->op == op && r->layout == l && r->type == type && r->most < INT64_MAX)
            all = kernel_select_at(level, op, type, l, r->most + 1, exact) != NULL;
    }
    return all;
}

/* Do the kernels of a level read this layout faster than weights as stored? Those of `c` and `avx2` are there for programs that were built
 * for better processors and carry weights so; they win nothing that interleaving is worth. A lookup takes what a product wants. */
static bool gains(klevel level, kop op, dtype type, klayout l, bool exact)
{
    kvariant v = kernel_select_at(level, op, type, l, 1, exact)->variant;
    return op != KOP_embed && v != VARIANT_c && v != VARIANT_avx2;
}

klayout kernel_layout_at(klevel level, kop op, dtype type, bool exact)
{
    klayout l = LAYOUT_COUNT - 1;
    while (l > LAYOUT_STORED &&
           !(kernel_reads_at(level, op, type, l, exact) && gains(level, op, type, l, exact)))
        l--;
    return l;
}

klayout kernel_layout(kop op, dtype type, kvariant best)
{
    return kernel_layout_at(klevel_here(best), op, type, false);
}

const kernel_row *kernel_find(kop op, const char *variant)
{
    for (int i = 0; i < kernel_row_count; i++)
        if (kernel_row_table[i].op == op &&
            strcmp(kvariant_name(kernel_row_table[i].variant), variant) == 0)
            return &kernel_row_table[i];
    return NULL;
}

const kernel_row *kernel_by_symbol(const char *symbol)
{
    for (int i = 0; i < kernel_row_count; i++)
        if (strcmp(kernel_row_table[i].symbol, symbol) == 0)
            return &kernel_row_table[i];
    return NULL;
}

int kernel_index(const kernel_row *row)
{
    WEFT_ASSERT(row >= kernel_row_table && row < kernel_row_table + kernel_row_count);
    return (int)(row - kernel_row_table);
}
