/* graph.h - a model as straight-line SSA: one node per op, layers unrolled, every value typed.
 *
 * After binding only T, R and S are symbols. A graph and everything in it lives in one arena; passes
 * rewrite it in place. dsl/ builds it; compiler/ and codegen/ rewrite and lower it; the runtime sees plans only.
 * This header and graph.c are a library of their own (weft_graph), below dsl/; of dsl/ they take only the table of ops. */
#ifndef WEFT_COMPILER_GRAPH_H
#define WEFT_COMPILER_GRAPH_H

#include "dsl/ops.h"
#include "kernels/kform.h"
#include "runtime/base/arena.h"
#include "runtime/base/diag.h"
#include "runtime/base/dtype.h"
#include "runtime/base/vec.h"

enum { GRAPH_RANK_MAX = 6, GRAPH_T = -1, GRAPH_R = -2, GRAPH_S = -3 };

/* A value's type; a dimension below zero is T, R or S. A state cell as a value has cell >= 0. */
typedef struct {
    bool ids; /* i32, not f */
    int rank;
    int64_t dim[GRAPH_RANK_MAX]; /* slowest first */
    int cell;                    /* -1 for a tensor */
    int pairs;                   /* 0 none, 1 half, 2 interleaved: the order on the last axis */
} gtype;

typedef enum {
    REF_NONE,
    REF_VALUE,
    REF_WEIGHT,
    REF_CONST,
    REF_CELL,
    REF_INPUT,
    REF_NUMBER
} gref_kind;

/* An operand: %7, @blk[3].q_proj, #2, $kv[3], tokens, 0.125; REF_NONE where an optional one is absent. */
typedef struct {
    gref_kind kind;
    int id;        /* into the table of its kind */
    double number; /* REF_NUMBER */
} gref;

typedef enum { GATTR_NONE, GATTR_INT, GATTR_FLOAT, GATTR_BOOL, GATTR_WORD, GATTR_REF } gattr_kind;

typedef struct {
    gattr_kind kind; /* NONE: absent, the default holds */
    int64_t integer; /* INT, BOOL */
    double number;   /* FLOAT */
    str word;        /* WORD */
    gref ref;        /* REF: a vector */
} gattr;

typedef struct {
    op_code op;
    int layer;    /* -1 outside layers */
    weft_loc loc; /* the .weft text it came from */
    int n_in;
    gref in[OP_OPERANDS_MAX];
    gattr attr[OP_ATTRS_MAX]; /* in the order of attrs.def */
    int first, n_out;         /* its values are first .. first + n_out - 1 */
    /* What passes decide; 0 and false until then. */
    int map;    /* nodes of the same number are one element-wise expression */
    int chain;  /* nodes of the same number are computed in one go, tile by tile */
    int values; /* of an append, whose chain writes its keys: the chain that writes its values */
    bool recompute; /* of a chain: prepares what it reads, and may be done again by every thread */
} gnode;

typedef struct {
    int tensor;     /* in the checkpoint's directory */
    int64_t offset; /* bytes into it */
    int64_t rows;   /* how much of axis 0 it holds */
} gpiece;

/* A stored operand: the checkpoint's tensor after its transforms. Axis 0 is made of n_piece parts
 * (experts stored apart, joined tensors); within a part axis i advances stride[i] bytes. Blocks of a
 * quantised type lie along the last axis, whose stride is then 0. */
typedef struct {
    str name; /* blk[3].q_proj, blk[3].q_proj.bias */
    str line; /* q_proj: the name of the weight's line */
    weft_loc loc;
    int layer;
    dtype type;
    int rank;
    int64_t dim[GRAPH_RANK_MAX];
    int64_t stride[GRAPH_RANK_MAX];
    int n_piece;
    const gpiece *piece;
    const gpiece *scales;  /* MXFP4_HF: the second tensor, piece by piece; NULL otherwise */
    const float *computed; /* the values an element map (`=>`) gave, dense; NULL: there was none */
    int pairs;             /* as in gtype */
    bool lora;             /* an adapter may attach here */
    str whole;             /* of a part with lora: the weight that it was cut from; else empty */
    int64_t whole_row;     /* and the row of that which is its first */
} gweight;

typedef struct {
    int64_t n;
    const double *data;
    bool table; /* a rope table; factor multiplies cos and sin */
    double factor;
} gconst;

/* How a cell's rows lie in memory: in pages of a fixed number of tokens, all of a sequence in one page, or
 * in pages of which those behind the window are given back. A pass decides. */
typedef enum { CELL_UNDECIDED, CELL_PAGED, CELL_CONTIGUOUS, CELL_RING } cell_layout;

typedef struct {
    str name; /* kv[3] */
    cell_code kind;
    int64_t arg[3]; /* in the order of kinds.def: heads k v; dim v; ... */
    int64_t window; /* the widest of all attends that read it; 0: some see everything */
    weft_loc loc;
    cell_layout layout;
    int64_t keep; /* CELL_RING: rows behind a sequence's end that stay */
    bool bounded; /* what it stores is never coarser than `coarsest` */
    kform coarsest;
    int64_t pin; /* its first so many tokens stay in the finest tier */
} gcell;

typedef struct {
    str name;  /* logits, hidden, resid */
    int index; /* resid[3]: 3; -1 without one */
    int value; /* what it gives: [T, ..], [R, ..] or [S, ..] */
    weft_loc loc;
} goutput;

typedef struct {
    gtype type;
    int node;
} gvalue;

typedef struct {
    str name; /* tokens, pos, h, rows */
    gtype type;
} ginput;

typedef struct graph {
    arena *a;
    str model;        /* llama */
    str entry;        /* decode */
    VEC(gnode) nodes; /* in an order that respects uses */
    VEC(gvalue) values;
    VEC(gweight) weights;
    VEC(gconst) consts;
    VEC(gcell) cells;
    VEC(ginput) inputs;
    VEC(goutput) outputs;
} graph;

graph *graph_create(void); /* with an arena of its own */
void graph_destroy(graph *g);

/* Append to a table and return the number there; texts and arrays are copied into the graph's arena. A node's
 * results get the given types, and its number is that of its first value. */
int graph_add(graph *g, const gnode *n, const gtype *types, int n_out);
int graph_add_weight(graph *g, const gweight *w);
int graph_add_const(graph *g, const gconst *c);
int graph_add_cell(graph *g, const gcell *c);
int graph_add_input(graph *g, str name, const gtype *type);
void graph_add_output(graph *g, const goutput *o);
gweight gweight_copy(arena *a, const gweight *w);
/* The type of a value, weight, const, cell or input; NULL for a number and for nothing. That of a
 * weight, const or cell is made on the spot, in the graph's arena; graph_type_get takes no memory. */
const gtype *graph_type(const graph *g, gref r);
bool graph_type_get(const graph *g, gref r, gtype *out_type);

/* Is every operand defined before use and of its op's kind, every type consistent? Says what is wrong
 * in out (may be NULL). For debug builds and for graphs read from text. */
bool graph_verify(const graph *g, strbuf *out);

/* Are they made of the same bytes of a checkpoint, in the same way? */
bool graph_weights_share(const gweight *a, const gweight *b);
/* The same model, tables, values and nodes? Places are equal when file name, line and column are. */
bool graph_equal(const graph *a, const graph *b);

/* The text form (compiler/README.md). With fold, layers equal up to their number are printed once
 * ("layers 1..31 as layer 0") and long tables are shortened; without, it parses back to an equal graph. */
void graph_print(const graph *g, bool fold, strbuf *out);
weft_status graph_parse(weft_diag *dg, const source *src, graph **out_g) WEFT_MUST_USE;
void graph_json(const graph *g, strbuf *out);
/* One layer and what stands before and after it, for `dot`; and drawn as a picture by ourselves. */
void graph_dot(const graph *g, strbuf *out);
void graph_svg(const graph *g, strbuf *out);

#endif
