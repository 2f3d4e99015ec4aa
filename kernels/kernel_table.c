/* kernel_table.c - kernels.def as data: the rows, and what each asks of its caller. */
#include "kernels/kernel_decls.h"

#include <string.h>
#include "runtime/base/cpu.h"

/* The words of the unit and scratch columns. A scratch of 0 and up is an index into the sizes. */
enum { ROW, HEAD };
enum { NONE = -1, CELL = -2, SCORES = -3 };

typedef struct {
    int unit, scratch;
} kernel_ask;

#define KERNEL(op, variant, unit, scratch, needs) {unit, scratch},
static const kernel_ask asks[] = {
#include "kernels/kernels.def"
};
#undef KERNEL

#define UNIT_ROW "row"
#define UNIT_HEAD "head"
#define KERNEL(op, variant, unit, scratch, needs)                                                  \
    {#op, #variant, "k_" #op "_" #variant, k_##op##_##variant, needs, UNIT_##unit},
static const kernel_row rows[] = {
#include "kernels/kernels.def"
};
#undef KERNEL

enum { N_ROW = (int)(sizeof rows / sizeof rows[0]) };

const kernel_row *kernel_rows(int *out_n)
{
    *out_n = N_ROW;
    return rows;
}

const kernel_row *kernel_find(const char *op, const char *variant)
{
    for (int i = 0; i < N_ROW; i++)
        if (strcmp(rows[i].op, op) == 0 && strcmp(rows[i].variant, variant) == 0)
            return &rows[i];
    return NULL;
}

int kernel_index(const kernel_row *row)
{
    WEFT_ASSERT(row >= rows && row < rows + N_ROW);
    return (int)(row - rows);
}

int64_t kernel_units(const kernel_row *row, const kargs *k)
{
    return asks[kernel_index(row)].unit == HEAD ? k->n[0] * k->n[1] : k->n[0];
}

size_t kernel_scratch(const kernel_row *row, const kargs *k)
{
    int scratch = asks[kernel_index(row)].scratch;
    if (scratch == NONE)
        return 0;
    if (scratch == CELL)
        return (size_t)k->cell->v * sizeof(double) +
               (size_t)(k->cell->k + k->cell->v) * sizeof(float);
    if (scratch == SCORES)
        return (size_t)(2 * k->n[1] + k->n[3]) * sizeof(double);
    return (size_t)k->n[scratch] * sizeof(float);
}
