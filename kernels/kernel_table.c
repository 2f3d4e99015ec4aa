/* kernel_table.c - kernel_ops.def, kernels.def and variants.def as data, and which kernels a machine gets. */
#include "kernels/kernel_decls.h"

#include <stddef.h>
#include <string.h>
#include "kernels/c/attend_size.h"
#include "kernels/c/attend_panels_size.h"
#include "kernels/c/panel_size.h"
#include "kernels/lora_rows.h"
#include "kernels/neon/rows8_size.h"
#include "kernels/x86/tiles_size.h"
#include "runtime/base/cpu.h"

/* ---- the words of kernels.def ---- */

static int64_t units_row(const kargs *k)
{
    return k->n[0];
}

static int64_t units_head(const kargs *k)
{
    return k->n[0] * k->n[1]; /* attend and head_linear */
}

static int64_t units_group(const kargs *k)
{
    return k->n[0] * k->cell->heads;
}

static int64_t units_quad(const kargs *k)
{
    return (k->n[0] + 3) / 4;
}

/* Pages that the call has to make, of all sequences. */
static int64_t units_page(const kargs *k)
{
    int64_t n = 0;
    for (int64_t s = 0; s < k->batch->n_seq; s++) {
        const int32_t *range = kbatch_convert(k->batch, k->cell->table + k->size.convert.tier, s);
        n += range[1] - range[0];
    }
    return n * k->cell->heads;
}

bool kunit_varies(kunit u)
{
    return u == KUNIT_PAGE;
}

static const struct {
    const char *name;
    int64_t (*count)(const kargs *k);
} units[] = {
    [KUNIT_ROW] = {"row", units_row},
    [KUNIT_HEAD] = {"head", units_head},
    [KUNIT_GROUP] = {"group", units_group},
    [KUNIT_QUAD] = {"4 rows", units_quad},
    [KUNIT_PAGE] = {"head of a page", units_page},
    [KUNIT_QUERIES] = {"block of queries", attend_panels_units},
    [KUNIT_RANKS] = {"4 rows of A", lora_units},
};

#define SCRATCH(word, bytes)                                                                       \
    static inline size_t scratch_##word(const kargs *k) /* not every architecture uses each */     \
    {                                                                                              \
        (void)k;                                                                                   \
        return (size_t)(bytes);                                                                    \
    }
SCRATCH(NONE, 0)
SCRATCH(LINEAR_IN, k->size.linear.in *(int64_t)sizeof(float)) /* a row of weights as f32 */
SCRATCH(EXPERT_IN, k->size.experts.in *(int64_t)sizeof(float))
SCRATCH(HEAD_IN, k->size.head_linear.in *(int64_t)sizeof(float))
SCRATCH(NORM_WIDTH, k->size.norm.width *(int64_t)sizeof(float))
SCRATCH(ANGLES, 2 * k->size.rope.pairs * (int64_t)sizeof(float))
SCRATCH(REGS, MAP_REGS_MAX *MAP_REG_ELEMS *(int64_t)sizeof(float))
SCRATCH(SCORES, (2 * k->size.route.experts + k->size.route.groups) * (int64_t)sizeof(double))
SCRATCH(CELL,
        k->cell->v *(int64_t)sizeof(double) + (k->cell->k + k->cell->v) * (int64_t)sizeof(float))
SCRATCH(ATTEND, attend_bytes(k))
SCRATCH(ATTEND_PANELS, attend_panels_bytes(k))
SCRATCH(PANEL, PANEL_BYTES)
SCRATCH(PANEL_EXPERTS, PANEL_EXPERTS_BYTES)
#if defined(__aarch64__)
SCRATCH(COPY, FLOAT_PANEL_BYTES)
#endif
#if defined(__x86_64__)
SCRATCH(TILES, TILES_BYTES)
SCRATCH(TILES_EXPERTS, TILES_EXPERTS_BYTES)
#endif

/* ---- the tables ---- */

#define DT_ANY DT_COUNT
#define KERNEL_ROW(op, type, layout, act, least, most, symbol, variant, unit, scratch)             \
    {KOP_##op, DT_##type, LAYOUT_##layout, ACT_##act,        least, most, VARIANT_##variant,       \
     #symbol,  symbol,    KUNIT_##unit,    scratch_##scratch},
static const kernel_row rows[] = {
#include "kernels/kernels.def"
};

enum { N_ROW = (int)(sizeof rows / sizeof rows[0]) };

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

bool kernel_takes(const kernel_row *row, int64_t n_row)
{
    return n_row >= row->least && n_row <= row->most;
}

const char *kunit_name(kunit u)
{
    return units[u].name;
}

static const kernel_row *last_row(kop op, dtype type, klayout layout, int64_t n_row, kvariant best,
                                  bool exact)
{
    for (int i = N_ROW - 1; i >= 0; i--) {
        const kernel_row *r = &rows[i];
        if ((r->variant == VARIANT_ref) == (best == VARIANT_ref) && r->variant <= best &&
            r->layout == layout && (r->type == DT_COUNT || r->type == type) &&
            !(exact && act_rounds(r->act)) && kernel_takes(r, n_row) && r->op == op &&
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

/* Is there a kernel for every number of rows? What one number lacks begins at 1 or behind the most of some row. */
static bool has_all(kop op, dtype type, klayout l, kvariant best, bool exact)
{
    bool all = last_row(op, type, l, 1, best, exact) != NULL;
    for (int i = 0; i < N_ROW && all; i++)
        if (rows[i].op == op && rows[i].layout == l && rows[i].type == type &&
            rows[i].most < INT64_MAX)
            all = last_row(op, type, l, rows[i].most + 1, best, exact) != NULL;
    return all;
}

static klayout best_layout(kop op, dtype type, kvariant best, bool exact)
{
    klayout l = LAYOUT_COUNT - 1;
    while (l > LAYOUT_STORED && !(layout_has(l, type) && has_all(op, type, l, best, exact)))
        l--;
    return l;
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
    return row->unit == KUNIT_QUERIES;
}

int64_t kernel_state_elems(int64_t v)
{
    return ATTEND_STRETCHES * attend_state_floats(v);
}

int64_t kernel_units(const kernel_row *row, const kargs *k)
{
    if (k->tile > 0)
        return k->n[0] > 0 ? (k->cols + k->tile - 1) / k->tile : 0;
    return units[row->unit].count(k);
}

size_t kernel_scratch(const kernel_row *row, const kargs *k)
{
    return row->scratch(k);
}
