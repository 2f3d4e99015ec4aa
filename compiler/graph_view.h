/* graph_view.h - what a picture of a graph shows, before anything is drawn.
 *
 * One layer of each distinct kind and what stands outside layers become boxes; every stretch of
 * layers that an earlier one stands for becomes a single box. Weights, constants and inputs that
 * many nodes read are words inside the boxes, not boxes. Lives in the arena it was made in. */
#ifndef WEFT_COMPILER_GRAPH_VIEW_H
#define WEFT_COMPILER_GRAPH_VIEW_H

#include "compiler/graph_impl.h"

typedef enum {
    LOOK_CONTRACTION,
    LOOK_NORM,
    LOOK_ATTENTION,
    LOOK_STATE,
    LOOK_ROWWISE,
    LOOK_ELEMENTWISE,
    LOOK_GATHER,
    LOOK_VIEW,
    LOOK_END, /* inputs and outputs */
    LOOK_FOLDED,
    LOOK_COUNT
} box_look;

typedef struct {
    const char *name, *fill, *line; /* name NULL: not in the legend */
} look_row;
extern const look_row look_rows[LOOK_COUNT];

enum { BOX_LINES_MAX = 8, VIEW_BOXES_MAX = 1500 };

typedef struct {
    box_look look;
    int node;    /* -1: an input, an output or folded layers */
    int section; /* into view.sections */
    int n_out;
    str line[BOX_LINES_MAX]; /* the first is what it is called */
    int n_line;
} view_box;

typedef struct {
    int from, to; /* boxes; from stands before to */
    int port;     /* which result of `from` */
    str type;     /* of the value */
    bool cell, ids;
} view_edge;

typedef struct {
    int layer; /* -1: outside layers, or folded ones */
    str title; /* "layer 0" */
} view_section;

typedef struct {
    const graph *g;
    bool too_large;      /* more than VIEW_BOXES_MAX boxes: then there are none */
    VEC(view_box) boxes; /* in an order that respects edges */
    VEC(view_edge) edges;
    VEC(view_section) sections; /* from top to bottom */
} view;

void view_init(view *v, arena *a, const graph *g);
void view_deinit(view *v);

#endif
