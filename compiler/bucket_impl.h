/* bucket_impl.h - what the stages that make a bucket of a plan share.
 *
 * Steps are made first, over values instead of memory: an operand in SPACE_ARENA has the number of its
 * value as id. Then items are put into phases, and last every value gets its place. */
#ifndef WEFT_COMPILER_BUCKET_IMPL_H
#define WEFT_COMPILER_BUCKET_IMPL_H

#include "compiler/lower_impl.h"

/* A value of the graph, or what a quantize step made of one. */
typedef struct {
    int step;          /* that makes it; -1: none in this bucket */
    int64_t rows;      /* of pitch, at most */
    int64_t row_bytes; /* from row to row without gaps */
    bool output;       /* of the plan */
    /* bucket_memory.c */
    plan_space space;
    int64_t offset, pitch;
    int32_t begin, end; /* when it is needed: phases of an arena value, steps of one in a thread */
} bvalue;

typedef struct {
    plan_step s;
    int32_t item;
    int32_t chain;  /* 0: none */
    bool recompute; /* may be computed by each thread */
} bstep;

typedef struct {
    bool per_thread;
    int32_t phase;
    int32_t n_step, step[CHAIN_STEPS_MAX]; /* in order */
    int64_t cols, tile, grain;
    int64_t cost; /* for the order within a phase */
} bitem;

/* The items that touched a cell last, -1: none. */
typedef struct {
    int32_t write[2]; /* keys, values */
    int32_t read;
} bcell;

typedef struct {
    lower *lo;
    arena *a; /* of this bucket's making */
    VEC(bstep) steps;
    VEC(bvalue) values;
    VEC(bitem) items;
    VEC(plan_edge) edges;
    VEC(bcell) cells;
    VEC(int32_t) waits;  /* items that the step at hand waits for */
    int32_t *map;        /* [graph nodes]: the number of its map; 0: a step of its own */
    int32_t *node_order; /* [n_order]: nodes that become steps; of a map, its last */
    int32_t n_order;
    int32_t *root;                 /* [graph values]: the value that a view shows */
    int32_t *chain_at;             /* [chains]: the item, or -1 */
    int32_t *quantized[ACT_COUNT]; /* [graph values]: the quantised value, or -1 */
    int32_t *order;                /* items by phase, once scheduled */
    int32_t n_phase;
} bucket;

/* Maps, and the order of the live nodes. bucket_order.c */
void bucket_order(bucket *b);
/* Steps for all live nodes. bucket_steps.c */
weft_status bucket_steps(bucket *b) WEFT_MUST_USE;
/* The item made last of those that s waits for; -1: none. bucket_edges.c */
int32_t bucket_last_wait(bucket *b, const plan_step *s);
/* Step s is part of this item, which waits for what it reads. */
void bucket_add_waits(bucket *b, const plan_step *s, int32_t item);
/* Items, their phases and their order. bucket_schedule.c */
void bucket_schedule(bucket *b);
/* A place for every value, and the finished bucket. bucket_memory.c */
weft_status bucket_place(bucket *b, plan_bucket *out) WEFT_MUST_USE;

/* lower_map.c: one step for the element-wise nodes [n] of a map, in their order. In a chain of `cols` columns
 * (0: none) a row of the step is what has that many. False: it cannot be one step. */
bool lower_map(lower *lo, const gnode *const *nodes, int n, const bool *is_read, int64_t cols,
               plan_step *s, weft_status *out_status);

/* How far operand t moves along each axis of the result r; false if it does not fit. lower_step.c */
bool lower_strides(int64_t *stride, const gtype *t, const gtype *r);

static inline kop bucket_op(const bucket *b, const plan_step *s)
{
    return lower_kernel_of(b->lo, s)->op;
}

static inline bool bucket_merges(const bucket *b, const plan_step *s)
{
    return bucket_op(b, s) == KOP_attend && s->choice.attend.part == ATTEND_MERGE;
}

#endif
