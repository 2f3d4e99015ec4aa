/* plan.h - what the compiler hands to every executor: data only, no pointers into the compiler.
 *
 * A plan is made for one target and one bucket of T. Every operand is (space, id, offset); a loader
 * resolves spaces to addresses once. What changes between calls is data in the batch, never a step. */
#ifndef WEFT_COMPILER_PLAN_H
#define WEFT_COMPILER_PLAN_H

#include "kernels/kernels.h"
#include "runtime/base/source.h"

typedef enum {
    SPACE_NONE,
    SPACE_WEIGHT, /* id: a weight of the plan */
    SPACE_CONST,  /* offset into the plan's constants */
    SPACE_ARENA,  /* offset into the session's activations */
    SPACE_STATE,  /* id: a cell of the plan */
    SPACE_IO,     /* id: plan_io */
} plan_space;

typedef enum { IO_TOKENS, IO_POS, IO_ROWS, IO_HIDDEN, IO_COUNT } plan_io;

typedef struct {
    plan_space space;
    dtype type;
    int32_t id;
    int64_t offset; /* bytes */
} plan_operand;

/* How many rows a step has: all tokens, the rows asked for, the sequences, or a fixed number. */
typedef enum { ROWS_T, ROWS_R, ROWS_S, ROWS_FIXED } plan_rows;

typedef struct {
    int32_t kernel; /* index into kernel_rows */
    int32_t op;     /* op_code, for reports */
    plan_operand in[K_IN_MAX], out[K_OUT_MAX];
    int32_t n_in, n_out;
    plan_rows rows;
    /* The kernel's arguments, where n[0] is set from `rows` at each call. */
    int64_t pitch[K_IN_MAX];
    int64_t stride[K_IN_MAX][K_AXES_MAX];
    int64_t n[K_SIZES_MAX];
    double f[K_SCALARS_MAX];
    int32_t word[K_WORDS_MAX];
    int32_t cell;  /* -1, or the cell it reads or writes */
    int32_t phase;
    int32_t layer; /* -1 outside layers */
    int32_t node;  /* of the graph it came from */
    weft_loc loc;
    int64_t bytes, flops; /* per row of T */
} plan_step;

/* How a weight comes into memory. */
typedef enum {
    WEIGHT_MAPPED, /* in place in the checkpoint: one piece, rows contiguous */
    WEIGHT_TABLE,  /* the operand is a table of addresses, one for each index of axis 0 */
    WEIGHT_COPIED, /* moved or computed once when loaded; counted in copied_bytes */
} plan_weight_mode;

typedef struct {
    int32_t tensor; /* in the checkpoint's directory */
    int64_t offset;
} plan_piece;

typedef struct {
    const char *name;
    plan_weight_mode mode;
    dtype type;
    int32_t rank;
    int64_t dim[K_AXES_MAX], stride[K_AXES_MAX];
    int64_t pitch; /* bytes from row to row once loaded */
    int32_t n_piece;
    const plan_piece *piece, *scales;
    const float *computed;
    size_t bytes; /* read by one use of all of it */
} plan_weight;

typedef struct {
    const char *name;
    bool latent;
    int64_t heads, k, v, window;
} plan_cell;

typedef struct {
    const char *name;
    int32_t index;
    plan_rows rows;
    plan_operand from;
    int64_t width; /* floats per row */
} plan_output;

typedef struct plan {
    int64_t n_tok_max; /* the bucket: T at most */
    int64_t n_out_max, n_seq_max;
    int32_t n_step, n_weight, n_cell, n_output, n_phase;
    const plan_step *step;
    const plan_weight *weight;
    const plan_cell *cell;
    const plan_output *output;
    const void *consts;
    size_t const_bytes, arena_bytes, copied_bytes, scratch_bytes;
} plan;

#endif
