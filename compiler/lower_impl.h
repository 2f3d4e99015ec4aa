/* lower_impl.h - what the files that lower a graph share. */
#ifndef WEFT_COMPILER_LOWER_IMPL_H
#define WEFT_COMPILER_LOWER_IMPL_H

#include "compiler/plan_make.h"

/* No axis is longer, so that the product of any two lengths fits. */
#define DIM_MAX ((int64_t)INT32_MAX)

/* How an operator reads a weight. */
typedef enum {
    READ_ROWS,   /* rows in their stored type, `pitch` bytes apart */
    READ_TABLE,  /* the address of such rows for each index of axis 0 */
    READ_F32,    /* f32 without gaps */
    READ_ROWS8,  /* rows interleaved by eight (kernels/layout.h) */
    READ_TABLE8, /* the address of such rows for each index of axis 0 */
    READ_COUNT
} weight_read;

typedef struct lower {
    weft_diag *dg;
    const graph *g;
    const target *t;
    arena *a; /* the plan's */
    plan *p;
    kpolicy tiers;               /* of the target */
    int64_t n_tok, n_out, n_seq; /* rows at most, in the bucket at hand */
    int part;            /* split: which of its results the step at hand makes; 0 elsewhere */
    bool *live;          /* [values]: something reads it */
    plan_operand *value; /* [values]: where each is; SPACE_NONE: nothing made it yet */
    int64_t *const_at;   /* [consts]: offset in the plan's constants, or -1 */
    int32_t *cell_of;    /* [cells]: number in the plan, or -1 */
    int32_t *weight_of;  /* [weights][READ_COUNT]: number in the plan, or -1 */
    klayout layout;      /* of the weight of the contraction at hand */
    VEC(plan_kernel) kernels;
    VEC(plan_step) steps;
    VEC(plan_weight) weights;
    VEC(plan_cell) cells;
    VEC(plan_output) outputs;
    VEC(plan_site) sites;
    VEC(plan_operand) places; /* of the outputs */
    VEC(kinstr) code;
    VEC(float) consts;
} lower;

/* ---- lower_ref.c ---- */

/* Fill lo for g and t; its memory besides the vectors comes from scratch. */
void lower_init(lower *lo, weft_diag *dg, const graph *g, const target *t, arena *a,
                arena *scratch);
void lower_deinit(lower *lo);
/* W0201 for a wanted output that g does not have, W1406 for a target that cannot be. */
weft_status lower_check(weft_diag *dg, const graph *g, const target *t) WEFT_MUST_USE;
bool lower_wants(const target *t, const goutput *o);
/* Mark what the wanted outputs and the state need. */
void lower_mark_live(lower *lo);
bool lower_node_is_live(const lower *lo, const gnode *n);
/* The plan's outputs, without their places. */
weft_status lower_outputs(lower *lo) WEFT_MUST_USE;
/* Hand the shared tables to the plan. */
void lower_finish(lower *lo);

/* ---- the stages of back ends ---- */

/* One bucket, a step for each node. lower_ref.c */
weft_status lower_reference(lower *lo) WEFT_MUST_USE;
/* The CPU's: a bucket for 1, 2, 4, .. rows, of items in phases. bucket_make.c */
weft_status lower_buckets(lower *lo) WEFT_MUST_USE;

/* Copy a vector of lo into the plan's arena. */
#define LOWER_KEEP(lo, vec)                                                                        \
    memcpy(arena_alloc_array((lo)->a, (lo)->vec.n, sizeof *(lo)->vec.at),                          \
           (lo)->vec.n ? (const void *)(lo)->vec.at : "", (lo)->vec.n * sizeof *(lo)->vec.at)

/* ---- lower_weight.c ---- */

/* The weight in this form, added to the plan when it is not there yet. */
weft_status lower_weight(lower *lo, const gnode *n, int id, weight_read read,
                         int32_t *out_weight) WEFT_MUST_USE;

/* ---- lower_step.c ---- */

/* What an operator is to kernels; KOP_COUNT: they have none for it. */
kop lower_kop(op_code op);
/* The layout that the kernels for a node want its weight in. */
klayout lower_layout(const target *t, const graph *g, const gnode *n);

/* The kernel of the plan that this is, added when it is not there yet; and that of a step. */
int32_t lower_kernel(lower *lo, const plan_kernel *k);
static inline const plan_kernel *lower_kernel_of(const lower *lo, const plan_step *s)
{
    return &lo->kernels.at[s->kernel];
}

/* Fill in step s for its node: kernel arguments, operands, cost. Its results have their places. */
weft_status lower_step(lower *lo, const gnode *n, plan_step *s) WEFT_MUST_USE;
/* Scratch that one thread needs for a step. */
size_t lower_scratch(const lower *lo, const plan_step *s);

/* ---- lower_lora.c ---- */

weft_status lower_lora_down(lower *lo, const gnode *n, plan_step *s) WEFT_MUST_USE;
weft_status lower_lora_up(lower *lo, const gnode *n, plan_step *s) WEFT_MUST_USE;

/* ---- lower_operand.c ---- */

/* Inputs that another part of the model gives (plan_parts.h): their names begin with this, which those of model files cannot. Where
 * each is in the arena of a plan, and what all take. */
#define LOWER_HANDED "%"
bool lower_input_is_handed(const ginput *in);
int64_t lower_input_offset(const graph *g, const plan *p, int id);

plan_rows lower_rows_of(const gtype *t);
int64_t lower_rows_max(const lower *lo, const gtype *t);
int64_t lower_span(const gtype *t, int from, int to);
int64_t lower_last_dim(const gtype *t);
int64_t lower_row_elems(const gtype *t);
int64_t lower_row_vectors(const gtype *t);
const gtype *lower_type_of(const lower *lo, const gnode *n, int i);
const gtype *lower_result_type(const lower *lo, const gnode *n, int i);
bool lower_is_given(const gnode *n, int i);
bool lower_attr_is_given(const gnode *n, const char *name);
int64_t lower_attr_int(const gnode *n, const char *name, int64_t otherwise);
double lower_attr_float(const gnode *n, const char *name, double otherwise);
int lower_attr_word(const gnode *n, const char *name, int otherwise);
int64_t lower_weight_bytes(const lower *lo, int32_t id);
weft_status lower_use(lower *lo, const gnode *n, plan_step *s, int i, gref r, weight_read read);
weft_status lower_use_in(lower *lo, const gnode *n, plan_step *s, int i, int operand,
                         weight_read read);
weft_status lower_use_attr(lower *lo, const gnode *n, plan_step *s, int i, const char *name);
weft_status lower_use_cell(lower *lo, const gnode *n, plan_step *s, int i);
void lower_count_rows(const lower *lo, plan_step *s, const gtype *t, int64_t per_row);
weft_status lower_check_ids(lower *lo, const gnode *n, int operand, int64_t count);
weft_status lower_expect(lower *lo, const gnode *n, const char *what, int64_t is, int64_t wants);
weft_status lower_expect_row(lower *lo, const gnode *n, const plan_step *s, const gtype *t,
                             int64_t elems);
weft_status lower_expect_result(lower *lo, const gnode *n, const plan_step *s, int i,
                                int64_t elems);
weft_status lower_expect_rank(lower *lo, const gnode *n, int i, int rank);
weft_status lower_expect_weight(lower *lo, const gnode *n, int i, int64_t elems);
weft_status lower_expect_vector(lower *lo, const gnode *n, const char *attr, int64_t elems);

/* In which form kernels take norms, biases and the like. */
weight_read lower_vector_read(const lower *lo);

#endif
