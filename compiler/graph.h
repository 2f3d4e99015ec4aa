/* graph.h - a model as straight-line SSA: one node per op, layers unrolled, every value typed.
 *
 * After binding only T, R and S are symbols. A graph and everything in it lives in one arena; passes
 * rewrite it in place. Open inside compiler/ and codegen/; the runtime sees plans only. */
#ifndef WEFT_COMPILER_GRAPH_H
#define WEFT_COMPILER_GRAPH_H

#include "dsl/dsl.h"
#include "dsl/elaborate.h"
#include "dsl/ops.h"
#include "runtime/base/dtype.h"
#include "runtime/base/vec.h"

enum { GRAPH_RANK_MAX = 6, GRAPH_T = -1, GRAPH_R = -2, GRAPH_S = -3 };

/* The parts of a graph are those the elaborator hands over; dsl/elaborate.h tells their fields. */
typedef dsl_type gtype;
typedef dsl_ref gref;
typedef dsl_ref_kind gref_kind;
typedef dsl_attr_kind gattr_kind;
typedef dsl_attr gattr;
typedef dsl_node gnode;
typedef dsl_piece gpiece;
typedef dsl_weight gweight;
typedef dsl_const gconst;
typedef dsl_cell gcell;
typedef dsl_output goutput;

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

/* Append a node; its results get the given types. Returns the first value's number. */
int graph_add(graph *g, const gnode *n, const gtype *types, int n_out);
/* The type of a value, weight, const, cell or input; NULL for a number and for nothing. That of a
 * weight, const or cell is made on the spot, in the graph's arena; graph_type_get takes no memory. */
const gtype *graph_type(const graph *g, gref r);
bool graph_type_get(const graph *g, gref r, gtype *out_type);

/* Is every operand defined before use and of its op's kind, every type consistent? Says what is wrong
 * in out (may be NULL). For debug builds and for graphs read from text. */
bool graph_verify(const graph *g, strbuf *out);

/* The same model, tables, values and nodes? Places are equal when file name, line and column are. */
bool graph_equal(const graph *a, const graph *b);

/* The text form (compiler/README.md). With fold, layers equal up to their number are told once
 * ("layers 1..31 as layer 0") and long tables are shortened; without, it parses back to an equal graph. */
void graph_print(const graph *g, bool fold, strbuf *out);
weft_status graph_parse(weft_diag *dg, const source *src, graph **out_g) WEFT_MUST_USE;
void graph_json(const graph *g, strbuf *out);
/* One layer and what stands before and after it, for `dot`; and drawn as a picture by ourselves. */
void graph_dot(const graph *g, strbuf *out);
void graph_svg(const graph *g, strbuf *out);

#endif
