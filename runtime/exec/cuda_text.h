/* cuda_text.h - what phase.cu includes to run the steps of one bucket alone: a function for each of its shapes.
 *
 * All that is the same in every call is a number in the text: sizes, pitches, types, choices, scalars, tiles, how a cell's
 * pages lie, which operands there are, where a block's own values are; with at most one row, the number of rows too. The compiler
 * then leaves out what this plan never does. Addresses come from the step, and so do the sizes of linears. Steps that have the same
 * text are one shape, as those of all layers are, as a rule. */
#ifndef WEFT_RUNTIME_EXEC_CUDA_TEXT_H
#define WEFT_RUNTIME_EXEC_CUDA_TEXT_H

#include "compiler/plan.h"
#include "runtime/base/arena.h"
#include "runtime/exec/exec_steps.h"

/* A step as it was loaded. */
typedef struct {
    const kargs *k;     /* of a call with the most rows */
    const char *symbol; /* its kernel */
    const plan_step *of;
    const exec_spaces *own;
    const kcell *cell;  /* that can be looked at; NULL: it has none */
    const kinstr *code; /* the same, [n_code] */
    bool map, linear;   /* is it one? */
    bool streams;       /* a linear whose weights may come through the ring, */
    bool blocks;        /* in pieces that begin anywhere (ring_size.h), */
    int sheets;         /* or in sheets, for so many instructions (few_size.h), or 0 */
    bool lora, one_row; /* are there adapters? has no call more than one row? */
    bool makes_x;       /* a norm of what such linears multiply as floats */
    bool late;          /* it meets the gate of its phase by itself (gate_cuda.cuh) */
    const kargs *then;  /* what quantises the result of a norm in the same step; or NULL */
} cuda_text_step;

typedef struct {
    strbuf text; /* of the functions */
    arena *a;    /* the caller's */
    struct {
        str body;
    } * shape;
    int32_t n_shape, room;
    bool blocks;   /* has a step such weights? */
    int sheets;    /* the same of sheets, with so many instructions */
    uint64_t late; /* which shapes are such; of those behind the first 64 none is */
} cuda_text;

/* Starts with {.a = ..}. The number of the step's shape, which is added where none is the same. */
int32_t cuda_text_add(cuda_text *t, const cuda_text_step *s);
/* The four steps of cuda_heads.c as one shape: q, key, keys and values, which are so many steps from the first on. `late`: as of
 * cuda_text_step. */
int32_t cuda_text_add_heads(cuda_text *t, const cuda_text_step *s, const int32_t *at, bool late);
/* A step that quantises as cuda_heads_cols says, so many columns of a row to a unit. */
int32_t cuda_text_add_cols(cuda_text *t, const cuda_text_step *s, int32_t cols);
/* The whole of the file, in t->text: behind all functions that which chooses among them, and the threads of a block. */
void cuda_text_end(cuda_text *t, int threads);

#endif
