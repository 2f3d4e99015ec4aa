/* kernels.h - the door of kernels/: one signature for every CPU kernel, and the table of them.
 *
 * A kernel is stateless: no allocation, no threads, no writable globals, and it cannot fail. It computes
 * units [begin, end) of a step; what a unit is stands in kernels.def. Any split of the units over
 * threads gives the same bits. `k` is shared by all threads of a step and is not written; `t` is the
 * calling thread's own.
 *
 * Activations are dense, row-major f32 (ids: i32). A weight operand keeps its stored type; its rows are
 * `pitch` bytes apart and each row is contiguous. */
#ifndef WEFT_KERNELS_KERNELS_H
#define WEFT_KERNELS_KERNELS_H

#include "runtime/base/dtype.h"

enum {
    K_IN_MAX = 6,
    K_OUT_MAX = 2,
    K_SIZES_MAX = 10,
    K_SCALARS_MAX = 4,
    K_WORDS_MAX = 4,
    K_AXES_MAX = 6
};

/* The rows of one call: any mix of prefill and decode rows of several sequences. Only data; a plan
 * never depends on it. Rows of one sequence stand in ascending position. */
typedef struct {
    int64_t n_tok;        /* T */
    int64_t n_out;        /* R */
    int64_t n_seq;        /* S: sequences that occur in this call */
    const int32_t *token; /* [n_tok] */
    const int32_t *pos;   /* [n_tok] */
    const int32_t *seq;   /* [n_tok]: an index into tables below */
    const int32_t *out;   /* [n_out]: the rows asked for, ascending */
    const int32_t *slot;  /* [n_tok]: adapter slot, or NULL where no session has any */
    const int32_t *const
        *pages;           /* [n_seq]: page numbers of a sequence, position / page_tok as index */
    const int32_t *first; /* [n_seq]: the first row of each sequence in this call */
    const int32_t *last;  /* [n_seq]: its last row */
} kbatch;

/* A state cell as a kernel sees it. Page p begins at base + p * page_bytes: first the keys (or rows) of
 * its page_tok tokens, then the values. Position i of a sequence is token i % page_tok of page
 * pages[i / page_tok]; a ring keeps position i in place i % ring. */
typedef struct {
    char *base;
    int64_t page_bytes;
    int64_t page_tok;
    int64_t heads, k, v; /* a latent row: heads 1, k its width, v the part that serves as value */
    bool latent;         /* one row per token; no separate values */
    dtype type;          /* of what is stored */
    int64_t ring;        /* rows kept, 0 for all */
} kcell;

/* One argument block for all kernels. Which fields an op reads is told in kernels.def. */
typedef struct {
    const void *in[K_IN_MAX];
    void *out[K_OUT_MAX];
    dtype type[K_IN_MAX];    /* of each input */
    int64_t pitch[K_IN_MAX]; /* bytes from row to row, of a weight */
    int64_t stride[K_IN_MAX]
                  [K_AXES_MAX]; /* element-wise ops: elements along each axis, 0 to stretch */
    int64_t n[K_SIZES_MAX];
    double f[K_SCALARS_MAX];
    int32_t word[K_WORDS_MAX];
    const kbatch *batch;
    const kcell *cell;
} kargs;

/* What a thread brings: its number among `count`, and memory of its own, `scratch_bytes` of it or more
 * where the kernel's row in kernels.def asks for some. */
typedef struct {
    int index, count;
    void *scratch;
    size_t scratch_bytes;
} kthread;

typedef void kernel_fn(const kargs *k, const kthread *t, int64_t begin, int64_t end);

typedef struct {
    const char *op;      /* as in dsl/ops.def */
    const char *variant; /* "ref", later "c", "neon", "avx2", ... */
    const char *symbol;  /* k_linear_ref */
    kernel_fn *fn;
    uint64_t needs;   /* CPU_ features, 0 for none */
    const char *unit; /* what one unit is, for people */
} kernel_row;

/* The table, in the order of kernels.def: from plain to fast. */
const kernel_row *kernel_rows(int *out_n);
const kernel_row *kernel_find(const char *op, const char *variant); /* NULL: no such row */
int kernel_index(const kernel_row *row);

/* Units of a step, from its sizes and batch; and the scratch bytes one thread needs for it. */
int64_t kernel_units(const kernel_row *row, const kargs *k);
size_t kernel_scratch(const kernel_row *row, const kargs *k);

#endif
