/* check.h - a case for a kernel, and what cases are made of; check.c runs them against `ref`.
 *
 * For every row of kernels.def that is not `ref`, check.c asks the op's maker for case 0, 1, 2, .. and runs
 * each: once whole, which is compared with the reference, then in pieces, by columns in tiles of several
 * sizes, in rows with gaps between them and in place, all of which must give the same bits as the
 * first. Memory comes with guard bytes on both sides and lives until the case is done.
 *
 * Memory that is not an input has other contents in every run: guard bytes, scratch, results before they are
 * written, and what a maker says is unused (below). Zeros, quiet and signalling NaN and infinities of all float
 * types are among them, and the bits must stay the same: no result depends on memory that nobody wrote. */
#ifndef WEFT_TESTS_KERNELS_CHECK_H
#define WEFT_TESTS_KERNELS_CHECK_H

#include "kernels/kernels.h"

typedef struct check check;

/* One result of a case: rows of width elements. */
typedef struct {
    dtype type; /* F32, I32, or U8: bytes, where the row's pitch is its width */
    int64_t rows, width;
    /* [rows, width]: how far an element may be off, absolutely; NULL: not at all. A reference that is
     * not finite asks for one that is not finite. */
    const float *bound;
    bool strict;      /* a NaN for a NaN, and an infinity for the same, where it has a bound */
    bool fixed_pitch; /* out_pitch is the width: what lies between rows belongs to the result */
} check_out;

typedef struct {
    char shape[128]; /* for people */
    kargs ref, k;    /* all but the results' addresses and pitches, and tile; for `ref`, no gaps */
    check_out out[K_OUT_MAX];
    int64_t cols, grain; /* in tile mode: columns, and what a tile is a multiple of; 0: has none */
    bool inplace;        /* the result may overwrite input 0; both are dense */
    /* append, convert: the result is the memory of a tier of the cell, so many bytes; k.cell is copied, that base replaced. */
    size_t cell_bytes;
    int cell_tier;
    double bytes, flops; /* of a bench: read and computed */
} check_case;

/* Fills *out (zeroed) with case i; false: there are fewer. */
typedef bool check_maker(check *c, const kernel_row *row, int i, check_case *out);

typedef struct {
    kop op;
    check_maker *make;
    check_maker *bench; /* real shapes, to be timed; NULL: none */
} check_op;

/* The ops of each file, ended by one without make; check.c lists them. */
extern const check_op check_ops_contract[];
extern const check_op check_ops_map[];
extern const check_op check_ops_rows[];
extern const check_op check_ops_cell[];
extern const check_op check_ops_lora[];

/* More kernels than those of kernels.def: a program that has some defines this. */
const kernel_row *check_more_rows(int *out_n);
/* Does another row of the program run this case with the same code and sizes? Then it is left out. A program whose rows share code
 * defines this. */
bool check_leaves_out(const kernel_row *row, const check_case *k);
/* A fault of the kernel that is being run, besides those that check.c finds. */
void check_fail(const char *what);
bool check_times(void); /* are kernels timed, not checked? */

/* Memory for a case, `skew` bytes off an alignment of 64, filled with noise. */
void *check_alloc(check *c, size_t bytes, size_t skew);

/* Memory inside inputs that a kernel may read but must not depend on: what lies behind `used` bytes of each row, some
 * bytes, and all that is not the same in `again`, which held the complement of p before both were written. */
void check_unused_gaps(check *c, const void *p, int64_t rows, int64_t pitch, int64_t used);
void check_unused(check *c, const void *p, size_t bytes);
void check_unused_unwritten(check *c, const void *p, const void *again, size_t bytes);
/* The complement of p's bytes, in new memory. */
void *check_complement(check *c, const void *p, size_t bytes);

uint32_t check_rand(check *c);             /* 32 random bits */
int64_t check_below(check *c, int64_t n);  /* 0 .. n - 1 */
float check_number(check *c);              /* -1 .. 1 */
float *check_numbers(check *c, int64_t n); /* so many of those */
int32_t *check_ids(check *c, int64_t n, int64_t below);
kbatch *check_batch(check *c, const kbatch *counts); /* with these counts, all else 0 */

/* Rows of random weights at an odd address, with a few bytes between rows; where check_packs, as cards have them: at a multiple
 * of 16, with none. */
bool check_packs(void);
void *check_weights(check *c, dtype t, int64_t rows, int64_t n, int64_t *out_pitch);
/* Rows as the kernel's layout wants them; the reference has them as stored. */
const void *check_interleaved(check *c, const kernel_row *row, dtype t, const void *stored,
                              int64_t pitch, int64_t m, int64_t n, int64_t *out_pitch);

/* Makes the block of a weight that begins at p stand for a NaN or infinities, if its type can. */
void check_spoil_block(check *c, dtype t, void *p);

/* Rows of x quantised as `act` asks, with x replaced by what the quantised rows stand for; ACT_F32: x. */
const void *check_quantized(check *c, kact act, float *x, int64_t rows, int64_t n,
                            int64_t *out_pitch);

#endif
