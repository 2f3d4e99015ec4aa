/* kernel_table.c - kernels.def, classes.def and variants.def as data: the rows, what each asks of its caller, and
 * which of them a machine gets. */
#include "kernels/kernel_decls.h"

#include <stddef.h>
#include <string.h>
#include "kernels/c/attend_size.h"
#include "kernels/c/attend_panels_size.h"
#include "kernels/neon/linear_float_panel.h"
#include "kernels/neon/panel_size.h"
#include "kernels/x86/panel_size.h"
#include "runtime/base/cpu.h"

/* The words of the unit and scratch columns. A scratch of 0 and up is an index into the sizes. */
enum { ROW, HEAD, GROUP, QUAD, QUERIES };
enum {
    NONE = -1,
    CELL = -2,
    SCORES = -3,
    REGS = -4,
    ANGLES = -5,
    ATTEND = -6,
    ROWS8 = -16,
    ROWS8_EXPERTS = -17,
    COPY = -7,
    ATTEND_TILES = -8,
    TILES = -20,
    TILES_EXPERTS = -21
};

typedef struct {
    int unit, scratch;
} kernel_ask;

#define KERNEL(op, variant, unit, scratch) {unit, scratch},
#define KERNEL_OF(op, type, act, rows, variant, unit, scratch) {unit, scratch},
#define KERNEL_AT(op, type, layout, act, rows, variant, unit, scratch) {unit, scratch},
static const kernel_ask asks[] = {
#include "kernels/kernels.def"
};
#undef KERNEL
#undef KERNEL_OF
#undef KERNEL_AT

#define UNIT_ROW "row"
#define UNIT_HEAD "head"
#define UNIT_GROUP "group"
#define UNIT_QUAD "4 rows"
#define UNIT_QUERIES "block of queries"
#define DT_ANY DT_COUNT
#define KERNEL(op, variant, unit, scratch)                                                         \
    {KOP_##op,                                                                                     \
     DT_ANY,                                                                                       \
     LAYOUT_STORED,                                                                                \
     ACT_F32,                                                                                      \
     CLASS_ANY,                                                                                    \
     VARIANT_##variant,                                                                            \
     "k_" #op "_" #variant,                                                                        \
     k_##op##_##variant,                                                                           \
     UNIT_##unit},
#define KERNEL_OF(op, type, act, rows, variant, unit, scratch)                                     \
    {KOP_##op,                                                                                     \
     DT_##type,                                                                                    \
     LAYOUT_STORED,                                                                                \
     ACT_##act,                                                                                    \
     CLASS_##rows,                                                                                 \
     VARIANT_##variant,                                                                            \
     "k_" #op "_" #type "_" #variant,                                                              \
     k_##op##_##type##_##variant,                                                                  \
     UNIT_##unit},
#define KERNEL_AT(op, type, layout, act, rows, variant, unit, scratch)                             \
    {KOP_##op,                                                                                     \
     DT_##type,                                                                                    \
     LAYOUT_##layout,                                                                              \
     ACT_##act,                                                                                    \
     CLASS_##rows,                                                                                 \
     VARIANT_##variant,                                                                            \
     "k_" #op "_" #type "_" #rows "_" #variant,                                                    \
     k_##op##_##type##_##rows##_##variant,                                                         \
     UNIT_##unit},
static const kernel_row rows[] = {
#include "kernels/kernels.def"
};
#undef KERNEL
#undef KERNEL_OF
#undef KERNEL_AT

enum { N_ROW = (int)(sizeof rows / sizeof rows[0]) };

static const struct {
    const char *name;
    int64_t least, most;
} classes[CLASS_COUNT] = {
#define CLASS(name, least, most) {#name, least, most},
#include "kernels/classes.def"
#undef CLASS
};

const char *kclass_name(kclass c)
{
    return classes[c].name;
}

bool kclass_takes(kclass c, int64_t n_row)
{
    return n_row >= classes[c].least && n_row <= classes[c].most;
}

/* The sizes of an op with the words that are no size before them, so that offsets are their indices. */
#define KOP(...)
typedef union {
#define KARGS(args, sizes, choices, scalars)                                                       \
    struct {                                                                                       \
        int64_t none, one;                                                                         \
        struct {                                                                                   \
            int64_t KARGS_LIST sizes;                                                              \
        };                                                                                         \
    } args;
#include "kernels/kernel_ops.def"
#undef KARGS
#undef KOP
} size_words;
#define AT(args, size)                                                                             \
    (int8_t)((int)(offsetof(size_words, args.size) / sizeof(int64_t)) + KSIZE_NONE)

static const kop_row ops[KOP_COUNT] = {
#define KARGS(...)
#define KOP(op, args, in, out, weight, x_vectors, x_width, y_vectors, vectors, width, cut,         \
            in_place, operands)                                                                    \
    {#op,                                                                                          \
     in,                                                                                           \
     out,                                                                                          \
     weight,                                                                                       \
     AT(args, x_vectors),                                                                          \
     AT(args, x_width),                                                                            \
     AT(args, y_vectors),                                                                          \
     AT(args, vectors),                                                                            \
     AT(args, width),                                                                              \
     KCUT_##cut,                                                                                   \
     in_place},
#include "kernels/kernel_ops.def"
#undef KARGS
#undef KOP
};

const kop_row *kop_row_of(kop op)
{
    return &ops[op];
}

const char *kop_name(kop op)
{
    return ops[op].name;
}

kop kop_find(const char *name)
{
    kop op = 0;
    while (op < KOP_COUNT && strcmp(ops[op].name, name) != 0)
        op++;
    return op;
}

enum { EXACT, ROUNDS };

static const struct {
    const char *name;
    int rounding;
    uint32_t needs;
} variants[VARIANT_COUNT] = {
#define VARIANT(name, rounding, needs) {#name, rounding, needs},
#include "kernels/variants.def"
#undef VARIANT
};

const char *kvariant_name(kvariant v)
{
    return variants[v].name;
}

uint32_t kvariant_needs(kvariant v)
{
    return variants[v].needs;
}

bool kvariant_runs(kvariant v)
{
    return (variants[v].needs & ~cpu_features()) == 0;
}

kvariant kvariant_best(void)
{
    kvariant v = VARIANT_COUNT - 1;
    while (!kvariant_runs(v) || variants[v].rounding == ROUNDS)
        v--;
    return v;
}

kvariant kvariant_rounding(void)
{
    for (kvariant v = VARIANT_COUNT; v-- > 0;)
        if (kvariant_runs(v) && variants[v].rounding == ROUNDS)
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

const kernel_row *kernel_rows(int *out_n)
{
    *out_n = N_ROW;
    return rows;
}

static const kernel_row *last_row(kop op, dtype type, klayout layout, int64_t n_row, kvariant best,
                                  bool exact)
{
    for (int i = N_ROW - 1; i >= 0; i--) {
        const kernel_row *r = &rows[i];
        if ((r->variant == VARIANT_ref) == (best == VARIANT_ref) && r->variant <= best &&
            r->layout == layout && (r->type == DT_COUNT || r->type == type) &&
            !(exact && act_rounds(r->act)) && kclass_takes(r->rows, n_row) && r->op == op &&
            kvariant_runs(r->variant))
            return r;
    }
    return NULL;
}

const kernel_row *kernel_select_as(kop op, dtype type, klayout layout, int64_t n_row, kvariant best)
{
    return last_row(op, type, layout, n_row, best, false);
}

const kernel_row *kernel_select_exact(kop op, dtype type, klayout layout, int64_t n_row,
                                      kvariant best)
{
    return last_row(op, type, layout, n_row, best, true);
}

const kernel_row *kernel_select(kop op, dtype type, int64_t n_row, kvariant best)
{
    return kernel_select_as(op, type, LAYOUT_STORED, n_row, best);
}

/* Kernels are others only from where a class begins. */
static klayout best_layout(kop op, dtype type, kvariant best, bool exact)
{
    for (klayout l = LAYOUT_COUNT - 1; l > LAYOUT_STORED; l--) {
        bool any = layout_has(l, type);
        for (kclass c = 0; c < CLASS_COUNT && any; c++)
            any = last_row(op, type, l, classes[c].least, best, exact) != NULL;
        if (any)
            return l;
    }
    return LAYOUT_STORED;
}

klayout kernel_layout(kop op, dtype type, kvariant best)
{
    return best_layout(op, type, best, false);
}

klayout kernel_layout_exact(kop op, dtype type, kvariant best)
{
    return best_layout(op, type, best, true);
}

const kernel_row *kernel_find(kop op, const char *variant)
{
    for (int i = 0; i < N_ROW; i++)
        if (rows[i].op == op && strcmp(kvariant_name(rows[i].variant), variant) == 0)
            return &rows[i];
    return NULL;
}

const kernel_row *kernel_by_symbol(const char *symbol)
{
    for (int i = 0; i < N_ROW; i++)
        if (strcmp(rows[i].symbol, symbol) == 0)
            return &rows[i];
    return NULL;
}

int kernel_index(const kernel_row *row)
{
    WEFT_ASSERT(row >= rows && row < rows + N_ROW);
    return (int)(row - rows);
}

bool kernel_splits(const kernel_row *row)
{
    return asks[kernel_index(row)].unit == QUERIES;
}

int64_t kernel_state_elems(int64_t v)
{
    return ATTEND_STRETCHES * attend_state_floats(v);
}

int64_t kernel_units(const kernel_row *row, const kargs *k)
{
    if (k->tile > 0)
        return k->n[0] > 0 ? (k->cols + k->tile - 1) / k->tile : 0;
    switch (asks[kernel_index(row)].unit) {
    case HEAD:
        return k->n[0] * k->n[1];
    case GROUP:
        return k->n[0] * k->cell->heads;
    case QUERIES:
        return attend_panels_units(k);
    case QUAD:
        return (k->n[0] + 3) / 4;
    default:
        return k->n[0];
    }
}

size_t kernel_scratch(const kernel_row *row, const kargs *k)
{
    int scratch = asks[kernel_index(row)].scratch;
    switch (scratch) {
    case NONE:
        return 0;
    case CELL:
        return (size_t)k->cell->v * sizeof(double) +
               (size_t)(k->cell->k + k->cell->v) * sizeof(float);
    case SCORES:
        return (size_t)(2 * k->n[1] + k->n[3]) * sizeof(double);
    case REGS:
        return MAP_REGS_MAX * MAP_REG_ELEMS * sizeof(float);
    case ANGLES:
        return (size_t)(2 * k->n[3]) * sizeof(float);
    case ATTEND_TILES:
        return attend_panels_bytes(k);
    case COPY:
        return PANEL_BYTES;
    case ROWS8:
        return ROWS8_PANEL_BYTES;
    case ROWS8_EXPERTS:
        return ROWS8_EXPERTS_BYTES;
    case TILES:
        return TILES_BYTES;
    case TILES_EXPERTS:
        return TILES_EXPERTS_BYTES;
    case ATTEND:
        return attend_bytes(k);
    default:
        return (size_t)k->n[scratch] * sizeof(float);
    }
}
