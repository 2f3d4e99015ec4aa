/* kernels.h - the public header of kernels/: one signature for every CPU kernel, and the table of them.
 *
 * A kernel is stateless: no allocation, no threads, no writable globals, and it cannot fail. It computes
 * units [begin, end) of a step; what a unit is stands in kernels.def. Any split of the units over
 * threads gives the same bits. `k` is not written; `t` is the calling thread's own.
 *
 * Activations are row-major f32 (ids: i32), or quantised for integer dot products as act.h says. A weight
 * operand keeps its stored type. Rows of either are `pitch` bytes apart and each row is contiguous;
 * reference kernels are given activations whose rows have no gaps. */
#ifndef WEFT_KERNELS_KERNELS_H
#define WEFT_KERNELS_KERNELS_H

#include "kernels/act.h"
#include "kernels/kcell.h"
#include "kernels/kernel_ops.h"
#include "kernels/layout.h"
#include "kernels/lora.h"
#include "runtime/base/dtype.h"

/* The rows of one call: any mix of prefill and decode rows of several sequences. Only data; a plan
 * never depends on it. Rows of one sequence stand in ascending position.
 *
 * One block without pointers, so that a device takes it with one copy of kbatch_bytes: after the counts
 * the arrays of kbatch_part, n_tok numbers of room each; then `last` of each table; then for each table
 * and sequence [n_table][n_seq] a record: the range of its entries that this call has to make from those
 * of the table before (op convert), and n_page entries, of which number i is the page of positions
 * i * page_tok and on, or -1 where the table has none. Cells that keep different windows or tiers have
 * different tables. */
typedef struct {
    int64_t n_tok; /* T */
    int64_t n_out; /* R */
    int64_t n_seq; /* S: sequences that occur in this call */
    int64_t n_table, n_page;
    int32_t data[K_ANY_LENGTH];
} kbatch;

typedef enum {
    KBATCH_TOKEN, /* [n_tok] */
    KBATCH_POS,   /* [n_tok] */
    KBATCH_SEQ,   /* [n_tok]: the sequence's number in this call */
    KBATCH_SLOT,  /* [n_tok]: the number of the mix of adapters; 0: none */
    KBATCH_OUT,   /* [n_out]: the rows asked for, ascending */
    KBATCH_FIRST, /* [n_seq]: the first row of each sequence in this call */
    KBATCH_LAST,  /* [n_seq]: its last row */
    KBATCH_PARTS
} kbatch_part;

K_FN const int32_t *kbatch_at(const kbatch *b, kbatch_part part)
{
    return b->data + part * b->n_tok;
}

/* The same to be filled. */
K_FN int32_t *kbatch_room(kbatch *b, kbatch_part part)
{
    return b->data + part * b->n_tok;
}

enum { KBATCH_RANGE = 2 }; /* of a record, in front of its entries: convert [begin, end) */

/* Where things stand in data. */
K_FN int64_t kbatch_last_at(const kbatch *b, int64_t table)
{
    return KBATCH_PARTS * b->n_tok + table;
}

K_FN int64_t kbatch_pages_at(const kbatch *b, int64_t table, int64_t seq)
{
    return KBATCH_PARTS * b->n_tok + b->n_table +
           (table * b->n_seq + seq) * (KBATCH_RANGE + b->n_page) + KBATCH_RANGE;
}

/* Of the tier whose table it is: a page whose youngest token is at least so far behind a row is in a coarser one for that
 * row. INT32_MAX: there is none. */
K_FN int32_t kbatch_last(const kbatch *b, int64_t table)
{
    return b->data[kbatch_last_at(b, table)];
}

/* The page table of sequence `seq` of the call; and the entries [0] to [1] that are to be converted. */
K_FN const int32_t *kbatch_pages(const kbatch *b, int64_t table, int64_t seq)
{
    return b->data + kbatch_pages_at(b, table, seq);
}

K_FN const int32_t *kbatch_convert(const kbatch *b, int64_t table, int64_t seq)
{
    return kbatch_pages(b, table, seq) - KBATCH_RANGE;
}

/* The same to be filled. */
K_FN int32_t *kbatch_pages_room(kbatch *b, int64_t table, int64_t seq)
{
    return b->data + kbatch_pages_at(b, table, seq);
}

/* All of a batch with these counts, in bytes. */
K_FN size_t kbatch_bytes(const kbatch *b)
{
    return sizeof *b + (size_t)(kbatch_pages_at(b, b->n_table, 0) - KBATCH_RANGE) * sizeof *b->data;
}

/* What a table is before anybody fills it: of one tier, nothing to convert, no pages. */
K_FN void kbatch_pages_clear(kbatch *b)
{
    for (int64_t t = 0; t < b->n_table; t++) {
        b->data[kbatch_last_at(b, t)] = INT32_MAX;
        for (int64_t s = 0; s < b->n_seq; s++) {
            int32_t *pages = kbatch_pages_room(b, t, s);
            pages[-2] = pages[-1] = 0;
            for (int64_t i = 0; i < b->n_page; i++)
                pages[i] = -1;
        }
    }
}

/* An instruction of a map: registers hold the values of some elements of a row. The ops are the
 * rows of map.def. */
typedef struct {
    uint8_t op;    /* MAP_ */
    uint8_t to;    /* register; of a store the output */
    uint8_t at[3]; /* registers; of a load the input */
    float f[2];    /* a constant; the bounds of a clamp */
} kinstr;

typedef enum {
#define MAP(name, ...) MAP_##name,
#include "kernels/map.def"
#undef MAP
    MAP_COUNT
} kmap_op;

enum { MAP_REGS_MAX = 16, MAP_REG_ELEMS = 256 }; /* of a register, at a time */

/* One argument block for all kernels. Which fields an op reads stands in kernel_ops.def. */
typedef struct {
    const void *in[K_IN_MAX];
    void *out[K_OUT_MAX];
    dtype type[K_IN_MAX];    /* of each input */
    int64_t pitch[K_IN_MAX]; /* bytes from row to row */
    int64_t out_pitch[K_OUT_MAX];
    int64_t stride[K_IN_MAX]
                  [K_AXES_MAX]; /* element-wise ops: elements along each axis, 0 to stretch */
    union {
        int64_t n[K_SIZES_MAX];
        ksizes size;
    };
    union {
        double f[K_SCALARS_MAX];
        kscalars scalar;
    };
    union {
        int32_t word[K_WORDS_MAX];
        kchoices choice;
    };
    /* tile > 0: a unit is `tile` of the `cols` columns of every row, the last one perhaps fewer. An
     * operand whose columns are those of the result is addressed by the same column numbers. */
    int64_t cols, tile;
    const kinstr *code; /* of a map */
    int64_t n_code;
    const kbatch *batch;
    const kcell *cell;
    const klora *lora; /* the session's adapters; NULL: it has none */
} kargs;

/* What units [begin, end) cover of a step with `width` columns: some rows whole, or some columns of
 * all rows. */
typedef struct {
    int64_t row, row_end, col, col_end;
} kpart;

K_FN kpart kpart_of(const kargs *k, int64_t width, int64_t begin, int64_t end)
{
    kpart p = {begin, end, 0, width};
    if (k->tile == 0)
        return p;
    p.row = 0;
    p.row_end = k->n[0];
    p.col = begin * k->tile;
    p.col_end = end * k->tile < width ? end * k->tile : width;
    return p;
}

/* The page table of row `row` for a tier of a cell. */
K_FN const int32_t *kcell_pages(const kcell *c, int tier, const kbatch *b, int64_t row)
{
    return kbatch_pages(b, c->table + tier, kbatch_at(b, KBATCH_SEQ)[row]);
}

/* What a thread brings: its number among `count`, and memory of its own, aligned to ACT_ALIGN, `scratch_bytes` of it or more
 * where the kernel's row in kernels.def asks for some. */
typedef struct {
    int index, count;
    void *scratch;
    size_t scratch_bytes;
} kthread;

typedef void kernel_fn(const kargs *k, const kthread *t, int64_t begin, int64_t end);

/* What processors are built for. Tables name the kernels of all; those of another one than this have no function here. */
typedef enum {
    KARCH_X86_64,
    KARCH_AARCH64,
    KARCH_OTHER,
    KARCH_CUDA,
    KARCH_METAL,
    KARCH_COUNT
} karch;

#if defined(__x86_64__)
#define KARCH_HERE KARCH_X86_64
#elif defined(__aarch64__)
#define KARCH_HERE KARCH_AARCH64
#else
#define KARCH_HERE KARCH_OTHER
#endif

/* Which kernels a machine may use: the variants of variants.def up to one of them. */
typedef enum {
#define VARIANT(name, ...) VARIANT_##name,
#include "kernels/variants.def"
#undef VARIANT
    VARIANT_COUNT
} kvariant;

/* What one unit of a kernel is, where it has no tiles. */
typedef enum {
    KUNIT_ROW,
    KUNIT_HEAD,
    KUNIT_GROUP,
    KUNIT_QUAD,
    KUNIT_PAGE,
    KUNIT_QUERIES,
    KUNIT_QUERIES_COPIED,
    KUNIT_QUERIES_CUDA,
    KUNIT_QUERIES_FEW,
    KUNIT_RANKS,
    KUNIT_SQUARE,
    KUNIT_SQUARE_EXPERT,
    KUNIT_QUERIES_FLASH,
    KUNIT_QUERIES_METAL,
    KUNIT_SQUARE_METAL
} kunit;

/* May attention with kernels of this unit be two steps, the second of which merges what the first has of stretches of
 * positions (kernels.def)? */
K_FN bool kunit_splits(kunit u)
{
    return u == KUNIT_QUERIES || u == KUNIT_QUERIES_COPIED || u == KUNIT_QUERIES_CUDA ||
           u == KUNIT_QUERIES_FEW || u == KUNIT_QUERIES_METAL;
}

/* Is a unit a square of the result, some rows by some columns? Then there are no tiles. */
K_FN bool kunit_is_square(kunit u)
{
    return u == KUNIT_SQUARE || u == KUNIT_SQUARE_EXPERT || u == KUNIT_SQUARE_METAL;
}

/* What scratch a thread needs, by the words of scratch.def. */
typedef enum {
#define SCRATCH(word, bytes) KSCRATCH_##word,
#include "kernels/scratch.def"
#undef SCRATCH
} kscratch;

/* Calls of more rows than these are computed by other kernels, and cut into other tiles, than those of few. */
enum { K_ROWS_FEW = 16 };

typedef struct {
    kop op;
    dtype type;          /* of the weight it reads; DT_COUNT: any */
    klayout layout;      /* and how its rows lie */
    kact act;            /* how it wants its first operand */
    int64_t least, most; /* rows of the calls it is chosen for */
    const char *symbol;  /* k_linear_Q8_0_c */
    kernel_fn *fn;       /* NULL: of another architecture */
    kvariant variant;
    kunit unit;
    kscratch scratch;
} kernel_row;

/* The table, in the order of kernels.def: from plain to fast. Of another program it may have fewer rows (kernel_rows.c). */
extern const kernel_row kernel_row_table[];
extern const int32_t kernel_row_count;
const kernel_row *kernel_rows(int *out_n);
bool kernel_runs(const kernel_row *row); /* on this processor */
bool kernel_takes(const kernel_row *row, int64_t n_row);
const char *kunit_name(kunit u);    /* for people */
bool kunit_varies(kunit u);         /* do calls with as many rows have other numbers of them? */
const char *karch_name(karch a);    /* "x86_64" */
karch karch_find(const char *name); /* KARCH_COUNT if there is none such */
const char *kvariant_name(kvariant v);
bool kvariant_on(kvariant v, karch a); /* is it one of that architecture's? */
bool kvariant_rounds(kvariant v);      /* does it round activations for BF16 weights to bf16? */
uint32_t kvariant_needs(kvariant v);   /* CPU_ features */
/* The best variant that this processor can run and that does not round; and by its name, VARIANT_COUNT if there is none such
 * or the processor lacks what it needs. */
kvariant kvariant_best(void);
/* The best one that rounds activations for BF16 weights to bf16; VARIANT_COUNT if this processor can run none. */
kvariant kvariant_rounding(void);
kvariant kvariant_find(const char *name);
bool kvariant_runs(kvariant v); /* on this processor */

/* What a kernel is chosen for: variants up to `best` whose needs are among `features` (CPU_). */
typedef struct {
    kvariant best;
    uint32_t features;
} klevel;

klevel klevel_here(kvariant best); /* with the features of this processor */
klevel klevel_of(kvariant v);      /* with those that the variant needs, wherever it may run */
bool klevel_has(klevel level, kvariant v);

/* The last row of an op for weights of this type and layout and n_row rows that a level may use; `ref` rows only where its
 * best is VARIANT_ref. exact: among kernels that do not round activations (act_rounds), of which every op that multiplies
 * with weights has one for any type as stored. NULL: there is none. */
const kernel_row *kernel_select_at(klevel level, kop op, dtype type, klayout layout, int64_t n_row,
                                   bool exact);
/* Are there kernels for weights that lie so, for any number of rows? */
bool kernel_reads_at(klevel level, kop op, dtype type, klayout layout, bool exact);
/* The layout that these want, where they take any number of rows; else as stored. */
klayout kernel_layout_at(klevel level, kop op, dtype type, bool exact);
/* Both on this processor, where rounding is fine; and for weights as they are stored. */
const kernel_row *kernel_select_as(kop op, dtype type, klayout layout, int64_t n_row,
                                   kvariant best);
klayout kernel_layout(kop op, dtype type, kvariant best);
const kernel_row *kernel_select(kop op, dtype type, int64_t n_row, kvariant best);
const kernel_row *kernel_find(kop op, const char *variant); /* the first such row, or NULL */
const kernel_row *kernel_by_symbol(const char *symbol);     /* or NULL */
int kernel_index(const kernel_row *row);

bool kernel_splits(const kernel_row *row); /* kunit_splits */
/* The states of stretches of a row are so many f32 for each query head. */
int64_t kernel_state_elems(int64_t v);

/* Units of a step, from its sizes and batch; and the scratch bytes one thread needs for it. */
int64_t kernel_units(const kernel_row *row, const kargs *k);
size_t kernel_scratch(const kernel_row *row, const kargs *k);

#endif
