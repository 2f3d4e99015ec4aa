/* ref_case.h - the recorded cases of ref_cases.txt, and a checked run of one kernel.
 *
 * The file is made by make_ref_cases.py. A line begins with a word; numbers follow the colon:
 *
 *   case OP NAME                         a kernel and its kargs, up to `end`
 *   n | f | word COUNT : numbers         the fields of kargs
 *   stride I COUNT : numbers             of input I
 *   code OP TO : 3 registers, 2 numbers  the next instruction of a map
 *   pitch : 2 numbers                    bytes from row to row of input 0 and of the result
 *   in I f32|i32 COUNT : numbers         an activation
 *   weight I TYPE ROWS WIDTH : numbers   stored as TYPE with rows a bit apart, at an odd address
 *   table I TYPE E M WIDTH : numbers     E addresses of such matrices
 *   rows N_TOK COUNT : numbers           the batch of a take_rows
 *   inplace                              the result may overwrite input 0
 *   out I f32|i32|bytes COUNT : numbers  what must come out; a byte of -1 may be anything
 *
 *   attend NAME                          an attention over sequences, up to `end`
 *   shape H HEADS K V LATENT WINDOW CHUNK ROWS SEQS
 *   scale SCALE SOFTCAP
 *   keys | values S f32 COUNT : numbers  all rows of sequence S, those of the call included
 *   seq | pos ROWS : numbers             the rows of the call
 *   q | sinks | slopes | out 0 f32 COUNT : numbers
 *
 * What is read lives in the arena given. */
#ifndef WEFT_TESTS_KERNELS_REF_CASE_H
#define WEFT_TESTS_KERNELS_REF_CASE_H

#include <stdio.h>
#include "kernels/kernels.h"
#include "runtime/base/arena.h"

typedef enum { OUT_F32, OUT_I32, OUT_BYTES } ref_kind;

typedef struct {
    ref_kind kind;
    int64_t n;
    const double *want;
} ref_out;

typedef struct {
    char op[32], name[64];
    kargs k;         /* all but the results' addresses */
    kinstr code[16]; /* k.code of a map */
    bool inplace;
    int n_out;
    ref_out out[K_OUT_MAX];
} ref_case;

enum { ATTEND_SEQ_MAX = 4 };

typedef struct {
    char name[64];
    int64_t heads, cell_heads, k, v, window, chunk, n_row, n_seq;
    bool latent;
    double scale, softcap;
    int64_t len[ATTEND_SEQ_MAX]; /* of each sequence, after the call */
    const float *keys[ATTEND_SEQ_MAX], *values[ATTEND_SEQ_MAX];
    const int32_t *seq, *pos;
    const float *q, *sinks, *slopes;
    ref_out out;
} attend_case;

FILE *ref_cases_open(void);
/* The next case of its kind, false at the end of the file. */
bool ref_case_next(FILE *f, arena *a, ref_case *out_case);
bool attend_case_next(FILE *f, arena *a, attend_case *out_case);

/* Runs the kernel with guarded results and scratch, once in one piece and then in other splits of
 * the units, which must give the same bits; compares with what is wanted. With inplace, once more
 * with the result over input 0. */
void run_checked(const char *what, const kernel_row *row, const kargs *k, const ref_out *out,
                 int n_out, bool inplace);

#endif
