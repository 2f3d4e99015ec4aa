/* graph_read.h - the state of reading graph text, shared by graph_read*.c. */
#ifndef WEFT_COMPILER_GRAPH_READ_H
#define WEFT_COMPILER_GRAPH_READ_H

#include "compiler/graph_impl.h"
#include "compiler/graph_scan.h"

/* Names to numbers, an open-addressing table. */
typedef struct {
    struct name_slot *at;
    size_t n, cap;
} name_table;

bool name_add(name_table *t, str name, int id); /* false if it is there already */
int name_find(const name_table *t, str name);   /* -1 if it is not */
void name_free(name_table *t);

typedef struct {
    str shown;
    source *src; /* filled in by read_places */
} read_file_row;

typedef struct {
    uint32_t line, column;
} read_place;

typedef struct {
    scan s;
    graph *g;
    name_table weights, cells, inputs;
    VEC(double) numbers; /* scratch */
    VEC(gpiece) pieces;  /* scratch */
    VEC(read_file_row) files;
    VEC(read_place) places; /* until read_places, a location's begin is its number here */
    VEC(size_t) node_at;    /* where each node stands in the text */
} reader;

weft_status read_named(reader *r, const name_table *names, const char *what,
                       int *out_id) WEFT_MUST_USE;
weft_status read_type(reader *r, gtype *out_type) WEFT_MUST_USE;

/* graph_read_node.c */
weft_status read_node(reader *r) WEFT_MUST_USE;
weft_status read_value(reader *r, int *out_value) WEFT_MUST_USE;
weft_status read_layer(reader *r, int *out_layer) WEFT_MUST_USE;

/* graph_read_place.c: files, loc(file:line:column), and the blank texts that places point into. */
weft_status read_file(reader *r) WEFT_MUST_USE;
weft_status read_loc(reader *r, weft_loc *out_loc) WEFT_MUST_USE;
weft_status read_places(reader *r) WEFT_MUST_USE;

#endif
