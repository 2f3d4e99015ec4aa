/* graph_layout.h - places for the boxes of a view, in ranks from top to bottom.
 *
 * The usual four steps: ranks by longest path, a chain of points for every edge that passes ranks,
 * an order within each rank with few crossings, then positions that keep chains straight. */
#ifndef WEFT_COMPILER_GRAPH_LAYOUT_H
#define WEFT_COMPILER_GRAPH_LAYOUT_H

#include "compiler/graph_view.h"

/* What stands in a rank: a box, or a point that an edge passes through. */
typedef struct {
    int box;       /* -1: a point */
    int rank, pos; /* pos: its place in the rank, from the left */
    double x, w;   /* centre and width */
} spot;

typedef struct {
    double y, h;  /* top edge and height */
    int first, n; /* its spots: layout.order[first ..] */
} rank_row;

typedef struct {
    int rank_min, rank_max; /* -1: the section has no boxes */
} section_span;

typedef struct {
    VEC(spot) spots; /* those of boxes first, by the number of the box */
    int *edge_first; /* [edges + 1]: where each edge's points begin in spots */
    int *order;      /* spots, rank by rank */
    rank_row *ranks;
    int n_rank;
    section_span *spans; /* [sections] */
    double *box_h;       /* [boxes] */
    double width, height;
} layout;

enum { LAYOUT_POINTS_MAX = 20000 };

/* Text has a fixed pitch, so that widths are known without a font. */
#define LAYOUT_TITLE_PX 12.0
#define LAYOUT_TEXT_PX 11.0
#define LAYOUT_PITCH 0.602 /* of the size */
#define LAYOUT_LINE_PX 15.0
#define LAYOUT_PAD_PX 8.0

/* False when edges would pass too many ranks to be drawn. Lives in a, but for what layout_deinit
 * frees. */
bool layout_init(layout *l, arena *a, const view *v);
void layout_deinit(layout *l);

bool layout_flat(const view_box *b); /* are its two lines written as one? */
/* Where result `port` leaves a box: the distance from its centre. */
double layout_port(const view_box *b, int port, double w);

#endif
