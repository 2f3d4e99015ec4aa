/* kernel_ops.h - kernel_ops.def as types: the ops of kernels, their arguments by name, and what is known of them. */
#ifndef WEFT_KERNELS_KERNEL_OPS_H
#define WEFT_KERNELS_KERNEL_OPS_H

#include "kernels/kfn.h"
#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    K_IN_MAX = 8,
    K_OUT_MAX = 2,
    K_SIZES_MAX = 10,
    K_SCALARS_MAX = 4,
    K_WORDS_MAX = 4,
    K_AXES_MAX = 6
};

typedef enum {
#define KARGS(...)
#define KOP(op, ...) KOP_##op,
#include "kernels/kernel_ops.def"
#undef KARGS
#undef KOP
    KOP_COUNT
} kop;

/* n[], word[] and f[] of a step by their names. */
#define KARGS_LIST(...) __VA_ARGS__
#define KOP(...)
typedef union {
#define KARGS(args, sizes, choices, scalars)                                                       \
    struct {                                                                                       \
        int64_t KARGS_LIST sizes;                                                                  \
    } args;
#include "kernels/kernel_ops.def"
#undef KARGS
} ksizes;

typedef union {
#define KARGS(args, sizes, choices, scalars)                                                       \
    struct {                                                                                       \
        int32_t KARGS_LIST choices;                                                                \
    } args;
#include "kernels/kernel_ops.def"
#undef KARGS
} kchoices;

typedef union {
#define KARGS(args, sizes, choices, scalars)                                                       \
    struct {                                                                                       \
        double KARGS_LIST scalars;                                                                 \
    } args;
#include "kernels/kernel_ops.def"
#undef KARGS
} kscalars;
#undef KOP

static_assert(sizeof(ksizes) <= K_SIZES_MAX * sizeof(int64_t), "K_SIZES_MAX");
static_assert(sizeof(kchoices) <= K_WORDS_MAX * sizeof(int32_t), "K_WORDS_MAX");
static_assert(sizeof(kscalars) <= K_SCALARS_MAX * sizeof(double), "K_SCALARS_MAX");

/* The values of choices. */
enum { ROPE_HALF = 1, ROPE_INTERLEAVED }; /* order: elements i and i + pairs, or 2 i and 2 i + 1 */
/* part: all of attention; or, of kernels that split it (kernel_splits), the states of up to 16 stretches of positions [rows,
 * heads, states], and the step that takes those in place of q and merges them. */
enum { ATTEND_WHOLE, ATTEND_STATES, ATTEND_MERGE };
enum { GELU_ERF, GELU_TANH, GELU_QUICK };                                       /* form */
enum { CLAMP_LO = 1, CLAMP_HI = 2 };                                            /* bounds: a sum */
enum { ROUTE_SOFTMAX, ROUTE_SIGMOID, ROUTE_SQRT_SOFTPLUS, ROUTE_SOFTMAX_TOPK }; /* score */
enum {
    LORA_OF_ALL,
    LORA_OF_ASKED,
    LORA_OF_SEQS
};                              /* rows: of the call, those asked for, one for each sequence */
enum { ROUTE_TOP2, ROUTE_MAX }; /* group_score */

/* Where a unit of some columns of all rows may end. */
typedef enum { KCUT_NO, KCUT_ANY, KCUT_VECTOR, KCUT_BLOCK } kcut;

/* A size of an op: an index into n[], or these. */
enum { KSIZE_NONE = -2, KSIZE_ONE = -1 };

typedef struct {
    const char *name;
    int8_t n_in, n_out; /* at most; n_out -1: one or more */
    int8_t weight;      /* the operand whose type chooses the kernel, or -1 */
    int8_t x_vectors, x_width;
    int8_t y_vectors;
    int8_t col_vectors, col_width;
    kcut cut;
    bool in_place;
} kop_row;

const kop_row *kop_row_of(kop op);
const char *kop_name(kop op);
kop kop_find(const char *name); /* KOP_COUNT if there is none */

/* A size of a step with sizes n. */
K_FN int64_t kop_size(const int64_t *n, int8_t at)
{
    return at >= 0 ? n[at] : at == KSIZE_ONE ? 1 : 0;
}

#endif
