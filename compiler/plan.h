/* plan.h - what the compiler hands to every executor: data only, no pointers into the compiler.
 *
 * A plan is made for one target and one bucket of T. Every operand is (space, id, offset); a loader
 * resolves spaces to addresses once. What changes between calls is data in the batch, never a step.
 * A plan lives in the arena it was made in, and its locations need their sources. It never changes,
 * so any number of sessions may share it. */
#ifndef WEFT_COMPILER_PLAN_H
#define WEFT_COMPILER_PLAN_H

#include "kernels/kernels.h"
#include "runtime/base/source.h"

enum { PLAN_ALIGN = 64 }; /* of everything the plan lays out, in bytes */

typedef enum {
    SPACE_NONE,
    SPACE_WEIGHT, /* id: a weight of the plan */
    SPACE_CONST,  /* offset into the plan's constants */
    SPACE_ARENA,  /* offset into the session's activations */
    SPACE_IO,     /* id: plan_io */
} plan_space;

typedef enum { IO_TOKENS, IO_POS, IO_ROWS, IO_COUNT } plan_io;

typedef struct {
    plan_space space;
    dtype type;
    int32_t id;
    int64_t offset; /* bytes */
} plan_operand;

/* How many rows there are: all tokens, the rows asked for, the sequences, or a fixed number. */
typedef enum { ROWS_T, ROWS_R, ROWS_S, ROWS_FIXED } plan_rows;

/* What a step moves and computes. A multiplication, an addition and a function such as exp count one
 * flop each. */
typedef struct {
    int64_t call_bytes;           /* weights and constants, read whole by every call */
    int64_t row_bytes, row_flops; /* for each row: its activations, and weights chosen by it */
    int64_t key_bytes, key_flops; /* attend: for each row and each position that it sees */
} plan_cost;

typedef struct {
    int32_t kernel; /* index into kernel_rows */
    int32_t op;     /* op_code, for reports */
    plan_operand in[K_IN_MAX], out[K_OUT_MAX];
    int32_t n_in, n_out;
    /* n[0] is set at each call: the rows there are, times per_row; with ROWS_FIXED it stays. */
    plan_rows rows;
    int64_t per_row;
    /* The kernel's other arguments. */
    int64_t pitch[K_IN_MAX];
    int64_t stride[K_IN_MAX][K_AXES_MAX];
    int64_t n[K_SIZES_MAX];
    double f[K_SCALARS_MAX];
    int32_t word[K_WORDS_MAX];
    int32_t cell; /* -1, or the cell it reads or writes */
    int32_t phase;
    int32_t layer; /* -1 outside layers */
    int32_t node;  /* of the graph it came from */
    weft_loc loc;
    plan_cost cost;
} plan_step;

/* How a weight comes into memory. */
typedef enum {
    WEIGHT_MAPPED, /* in place in the checkpoint; its rows are contiguous and evenly pitched */
    WEIGHT_COPIED, /* moved, converted or computed once when loaded: rows without gaps */
} plan_weight_mode;

typedef struct {
    int32_t tensor; /* in the checkpoint's directory */
    int64_t offset; /* bytes */
    int64_t rows;   /* how much of axis 0 it holds */
} plan_piece;

/* A stored tensor as kernels read it. Axis 0 is made of the pieces; within one, axis i advances
 * stride[i] bytes, and a last axis of blocks has stride 0. */
typedef struct {
    const char *name;
    plan_weight_mode mode;
    dtype stored, type; /* in the checkpoint, and once loaded */
    int32_t rank;
    int64_t dim[K_AXES_MAX], stride[K_AXES_MAX];
    int64_t rows, pitch; /* once loaded: the axes before the last as one, and bytes between rows */
    int64_t n_table;     /* 0: operands get the first row's address; else a table of this many
                            addresses, one for each index of axis 0 */
    int32_t n_piece;
    const plan_piece *piece, *scales; /* scales: the second tensor of MXFP4_HF, else NULL */
    const float *computed;            /* its values, where the model maps them; else NULL */
    size_t bytes;                     /* its rows once loaded, without gaps */
} plan_weight;

typedef struct {
    const char *name;
    bool latent;         /* one row of k for each token, whose first v serve as value; heads is 1 */
    int64_t heads, k, v; /* for each token: keys [heads, k], values [heads, v] */
    int64_t window;      /* the widest of all that read it; 0: some see everything */
} plan_cell;

typedef struct {
    const char *name;
    int32_t index; /* -1 without one */
    plan_rows rows;
    plan_operand from;
    int64_t width; /* elements per row */
    int64_t n_row; /* ROWS_FIXED: how many */
} plan_output;

typedef struct plan {
    const char *model, *entry;
    int64_t n_tok_max; /* the bucket: T at most */
    int64_t n_out_max, n_seq_max;
    int64_t n_vocab; /* token ids are below this; 0: no step looks one up */
    int64_t n_pos;   /* positions are below this; 0: no step looks one up */
    int32_t n_step, n_weight, n_cell, n_output, n_phase;
    const plan_step *step;
    const plan_weight *weight;
    const plan_cell *cell;
    const plan_output *output;
    const void *consts;
    size_t const_bytes, arena_bytes;
    size_t copied_bytes; /* of all COPIED weights, each begun at PLAN_ALIGN */
    size_t table_bytes;  /* of all tables of addresses, each begun at PLAN_ALIGN */
    size_t mapped_bytes; /* of all MAPPED weights */
} plan;

#endif
