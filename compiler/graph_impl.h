/* graph_impl.h - what the files graph_*.c share: pieces of the text form, places, folded layers. */
#ifndef WEFT_COMPILER_GRAPH_IMPL_H
#define WEFT_COMPILER_GRAPH_IMPL_H

#include "compiler/graph.h"

/* What a text may make a graph grow to. */
enum {
    GRAPH_TEXT_MAX = 64 << 20, /* bytes that are read */
    GRAPH_LOC_MAX = 4 << 20,   /* bytes of blank text that stand for the files of places */
    GRAPH_ROWS_MAX = 1 << 18,  /* nodes, and rows of any table but that of values */
    GRAPH_VALUES_MAX = 1 << 20,
    GRAPH_LAYERS_MAX = 1 << 16,
    GRAPH_FILES_MAX = 65, /* a model file and its imports (DSL_IMPORTS_MAX) */
};

/* Entries in the table that refs of this kind point into. */
size_t graph_ref_count(const graph *g, gref_kind kind);

/* graph_verify, with the node at fault or -1. */
bool graph_verify_at(const graph *g, strbuf *out, int *out_node);
/* What is wrong with the marks of a graph whose nodes are legal, and where; NULL if nothing. */
const char *graph_marks_fault(const graph *g, int *out_node);
/* What is wrong with the types of a node whose operands are of the right kinds; NULL if nothing. */
const char *graph_shape_fault(const graph *g, const gnode *n);
/* The highest number of a map and of a chain; 0: there is none. */
int graph_maps(const graph *g);
int graph_chains(const graph *g);

/* ---- what counts as the same (graph_equal.c) ---- */

/* Numbers are compared as the text form keeps them: all NaNs are one, and -0 is not 0. */
bool graph_ref_equal(gref a, gref b);
bool graph_attr_equal(const gattr *a, const gattr *b);
bool graph_type_equal(const gtype *a, const gtype *b);
bool graph_dims_equal(const gtype *a, const gtype *b); /* only these of two types */
bool graph_loc_equal(weft_loc a, weft_loc b);          /* file name, line and column */

/* ---- pieces of the text form (graph_text.c) ---- */

/* A name as it is, or quoted where it is not made of words, dots and [numbers]. */
void gtext_name(strbuf *out, str name);
bool gtext_is_word(str s); /* letters, digits and _ */
static inline bool gtext_is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
static inline bool gtext_is_digit(char c)
{
    return c >= '0' && c <= '9';
}
void gtext_string(strbuf *out, str s);
void gtext_number(strbuf *out, double x); /* the shortest text that reads back as x */
void gtext_float(strbuf *out, float x);
void gtext_dims(strbuf *out, int rank, const int64_t *dim);
void gtext_type(strbuf *out, const graph *g, const gtype *t);
void gtext_ref(strbuf *out, const graph *g, gref r);
/* name = value, for an attribute that is present. */
void gtext_attr(strbuf *out, const graph *g, const attr_row *row, const gattr *a);
/* What passes decided of a node: " map 2 chain 4", " recompute 4"; nothing until then. */
void gtext_marks(strbuf *out, const gnode *n);
extern const char *const gtext_symbols[3]; /* "T", "R", "S": the sizes -1, -2, -3 */
extern const char *const gtext_pairs[3];   /* "", "half", "interleaved" */
extern const char *const gtext_layouts[4]; /* "", "paged", "contiguous", "ring" */

int64_t graph_weight_count(const gweight *w); /* numbers in it; -1 when they cannot be counted */
/* Strides of a weight that lies densely; false where its type has no such form for these sizes. */
bool graph_dense_strides(const gweight *w, int64_t *out_stride);
int64_t graph_piece_rows(const gweight *w); /* of axis 0, when all pieces hold equally much */
str graph_line_of(str name); /* the part behind the last dot: what `line` is unless the text says */

/* ---- who reads a value (graph_uses.c) ---- */

typedef struct {
    int *first;   /* [values + 1]: where each value's readers begin in `node` */
    int *node;    /* numbers of nodes, ascending; one that reads a value twice stands once */
    bool *output; /* [values]: it is an output of the graph */
    int *
        cell_before; /* [nodes]: the last node before it that touches the same cell, for which it waits; -1: none */
} graph_uses;

graph_uses graph_uses_of(arena *a, const graph *g);
/* The values a node reads, as operands and in attributes, into out; returns how many. */
enum { NODE_READS_MAX = OP_OPERANDS_MAX + OP_ATTRS_MAX };
int graph_reads(const gnode *n, int *out);
int graph_cell_of(const graph *g, const gnode *n); /* that it reads or writes; -1: none */

/* ---- folding (graph_fold.c) ---- */

/* The layers of a graph, and which of them are equal up to their number: the same ops, attributes
 * and places, operands that stand in the same relation, weights of the same line, type and shape. */
typedef struct {
    int n;        /* one past the highest layer */
    int *first;   /* [n + 1]: where each layer's nodes begin in `node` */
    int *node;    /* node numbers, layer by layer */
    int *place;   /* [nodes]: position within the layer; 0 outside layers */
    int *like;    /* [n]: the earliest layer equal to this one; itself if there is none earlier */
    int *cell_in; /* [cells]: the first layer with a node that uses the cell, -1 for none */
} graph_layers;

/* Lives in a. Unless storage is set, weights may differ in how they are stored (type, pieces). */
graph_layers *graph_fold(arena *a, const graph *g, bool storage);
bool graph_folded(const graph_layers *ls, int layer); /* is it printed with an earlier one? */
/* "layers 1..31 as layer 0": those of from .. end - 1 that are like this one, itself left out; false
 * if none is. */
bool graph_fold_list(const graph_layers *ls, int like, int from, int end, strbuf *out);
/* Is this output of a folded layer also an output of the layer that stands for it? */
bool graph_fold_output(const graph_layers *ls, const graph *g, const goutput *o);

#endif
