/* kernel_ops.c - kernel_ops.def as data; and the words of kernels.def: the units of a step, and its scratch. */
#include "kernels/kernels.h"

#include <stddef.h>
#include <string.h>
#include "kernels/c/attend_panels_size.h"
#include "kernels/c/attend_size.h"
#include "kernels/c/panel_size.h"
#include "kernels/cuda/attend_few_size.h"
#include "kernels/cuda/dot_size.h"
#include "kernels/cuda/few_size.h"
#include "kernels/cuda/flash_size.h"
#include "kernels/cuda/mma_size.h"
#include "kernels/cuda/ring_size.h"
#include "kernels/lora_rows.h"
#include "kernels/metal/attend_metal_size.h"
#include "kernels/metal/linear_metal_size.h"
#include "kernels/neon/rows8_size.h"
#include "kernels/x86/tiles_size.h"

/* ---- ops ---- */

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

/* ---- units ---- */

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

static int64_t units_queries(const kargs *k)
{
    return attend_panels_units(k, ATTEND_MANY_READ);
}

static int64_t units_queries_copied(const kargs *k)
{
    return attend_panels_units(k, ATTEND_MANY_COPIED);
}

static int64_t units_queries_cuda(const kargs *k)
{
    return cuda_attend_units(k);
}

static int64_t units_queries_few(const kargs *k)
{
    return few_attend_units(k);
}

static int64_t units_square(const kargs *k)
{
    return (k->size.linear.rows + MMA_ROWS - 1) / MMA_ROWS *
           ((k->size.linear.out + MMA_COLS - 1) / MMA_COLS);
}

static int64_t units_square_expert(const kargs *k)
{
    return cuda_expert_units(k);
}

static int64_t units_queries_flash(const kargs *k)
{
    return flash_units(k);
}

static int64_t units_queries_metal(const kargs *k)
{
    return metal_attend_units(k);
}

static int64_t units_square_metal(const kargs *k)
{
    return (k->size.linear.rows + METAL_SQUARE_ROWS - 1) / METAL_SQUARE_ROWS *
           ((k->size.linear.out + METAL_SQUARE_COLS - 1) / METAL_SQUARE_COLS);
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
    [KUNIT_QUERIES] = {"block of queries", units_queries},
    [KUNIT_QUERIES_COPIED] = {"block of queries", units_queries_copied},
    [KUNIT_QUERIES_CUDA] = {"block of queries", units_queries_cuda},
    [KUNIT_QUERIES_FEW] = {"block of queries", units_queries_few},
    [KUNIT_RANKS] = {"4 rows of A", lora_units},
    [KUNIT_SQUARE] = {"square of the result", units_square},
    [KUNIT_SQUARE_EXPERT] = {"square of an expert", units_square_expert},
    [KUNIT_QUERIES_FLASH] = {"block of queries", units_queries_flash},
    [KUNIT_QUERIES_METAL] = {"block of queries", units_queries_metal},
    [KUNIT_SQUARE_METAL] = {"square of the result", units_square_metal},
};

const char *kunit_name(kunit u)
{
    return units[u].name;
}

/* ---- scratch ---- */

#define SCRATCH(word, bytes)                                                                       \
    static size_t scratch_##word(const kargs *k)                                                   \
    {                                                                                              \
        (void)k;                                                                                   \
        return (size_t)(bytes);                                                                    \
    }
#include "kernels/scratch.def"
#undef SCRATCH

static size_t (*const scratches[])(const kargs *k) = {
#define SCRATCH(word, bytes) scratch_##word,
#include "kernels/scratch.def"
#undef SCRATCH
};

/* ---- both, of a kernel ---- */

bool kernel_splits(const kernel_row *row)
{
    return kunit_splits(row->unit);
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
    return scratches[row->scratch](k);
}
