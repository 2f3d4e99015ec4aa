/* kernel_case.h - arguments for a kernel at a real shape, with weights that no cache holds.
 *
 * A model reads each of its weights once for a token, so a matrix that is measured again and again must not
 * stay in a cache: there are as many copies as fill COLD_BYTES, which take turns. Matrices that are larger
 * than that, or take too many operations, are cut to fewer columns of the result; the rate is the same. */
#ifndef WEFT_BENCH_KERNEL_CASE_H
#define WEFT_BENCH_KERNEL_CASE_H

#include "bench/shape_list.h"
#include "kernels/kernels.h"

enum { CASE_COPIES_MAX = 1024, CASE_BLOCKS_MAX = 32 };

typedef struct {
    size_t cold_bytes; /* of weights or state that take turns */
    double flops_max;  /* of one call */
} case_limits;

typedef struct {
    char shape[64]; /* for people, with the number of rows */
    kargs k;
    double bytes, flops;               /* read from memory, computed; flops 0: moves numbers only */
    int n_copy;                        /* 0: none take turns */
    const void *copy[CASE_COPIES_MAX]; /* of in[1] */
    kcell cell[CASE_COPIES_MAX];       /* or of the cell, where it has one */
    void *block[CASE_BLOCKS_MAX];      /* what was allocated */
    int n_block;
} kernel_case;

/* Fill *out for `rows` rows of a call; false if the kernel has no such shape: another op, a number of rows that is
 * not its own, rows that are not whole blocks. Ends the process if there is no memory. */
bool kernel_case_make(const kernel_row *row, const shape_entry *s, int64_t rows,
                      const case_limits *limits, kernel_case *out);
/* Use copy i % n_copy from here on. */
void kernel_case_turn(kernel_case *c, int i);
void kernel_case_free(kernel_case *c);

/* Is it an op that cases can be made for, with as many sizes as that takes? */
bool kernel_case_knows(const shape_entry *s);

#endif
