/* graph_impl.h - what the files graph_*.c share: pieces of the text form, places, folded layers. */
#ifndef WEFT_COMPILER_GRAPH_IMPL_H
#define WEFT_COMPILER_GRAPH_IMPL_H

#include "compiler/graph.h"

enum {
    GRAPH_TEXT_MAX = 256 << 20, /* bytes of graph text that are read */
    GRAPH_LOC_MAX = 4 << 20,    /* bytes of blank text that stand for the sources of places */
    GRAPH_INDEX_MAX = 1 << 24,  /* layers, output indices, tensors of a checkpoint */
    GRAPH_WINDOW_MAX = 1 << 30,
};

typedef struct graph_layers graph_layers;

/* Entries in the table that refs of this kind point into. */
size_t graph_ref_count(const graph *g, gref_kind kind);

/* graph_type without memory; false for a number, for nothing and for what is out of range. */
bool graph_type_get(const graph *g, gref r, gtype *out_type);

/* ---- pieces of the text form (graph_text.c) ---- */

/* A name as it is, or quoted where it is not made of words, dots and [numbers]. */
void gtext_name(strbuf *out, str name);
bool gtext_is_word(str s); /* letters, digits and _ */
bool gtext_is_bare(str s); /* words, dots and [numbers] */
void gtext_string(strbuf *out, str s);
void gtext_number(strbuf *out, double x); /* the shortest text that reads back as x */
void gtext_float(strbuf *out, float x);
void gtext_dims(strbuf *out, int rank, const int64_t *dim);
void gtext_type(strbuf *out, const graph *g, const gtype *t);
void gtext_ref(strbuf *out, const graph *g, gref r);
/* name = value, for an attribute that is present. */
void gtext_attr(strbuf *out, const graph *g, const attr_row *row, const gattr *a);
extern const char *const gtext_pairs[3]; /* "", "half", "interleaved" */

int64_t graph_weight_count(const gweight *w); /* numbers in it; -1 when they cannot be counted */
/* Strides of a weight that lies densely; false where its type has no such form for these sizes. */
bool graph_dense_strides(const gweight *w, int64_t *out_stride);
str graph_line_of(str name); /* the part behind the last dot: what `line` is unless the text says */

#endif
