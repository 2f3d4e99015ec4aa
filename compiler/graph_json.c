/* graph_json.c - a graph as one JSON object, with everything the text form has.
 *
 * A type is {"type": "f" or "i32", "dims": [..], "pairs"} or {"cell": name}; an operand is
 * {"value": 7}, {"weight": name}, {"const": 0}, {"cell": name}, {"input": name}, {"number": x} or
 * null. A place is {"file", "line", "column"} or null. What passes decide (map, chain or recompute, values of a
 * node; form and keep of a cell) is there only once they did. */
#include "compiler/graph_impl.h"

#include "runtime/base/json_write.h"

static void put_loc(json_writer *w, weft_loc loc)
{
    json_key(w, "loc");
    if (!loc.src) {
        json_null(w);
        return;
    }
    source_place at = source_find(loc.src, loc.begin);
    json_open(w, '{');
    json_key_str(w, "file", str_of(loc.src->name));
    json_key_int(w, "line", at.line);
    json_key_int(w, "column", at.column);
    json_close(w, '}');
}

static void put_layer(json_writer *w, int layer)
{
    json_key(w, "layer");
    if (layer < 0)
        json_null(w);
    else
        json_int(w, layer);
}

static void put_dims(json_writer *w, const char *key, int rank, const int64_t *dim)
{
    json_key(w, key);
    json_open(w, '[');
    for (int i = 0; i < rank; i++) {
        if (dim[i] < 0 && dim[i] >= GRAPH_S)
            json_str(w, str_of(gtext_symbols[GRAPH_T - dim[i]]));
        else
            json_int(w, dim[i]);
    }
    json_close(w, ']');
}

static void put_pairs(json_writer *w, int pairs)
{
    json_key(w, "pairs");
    if (pairs > 0)
        json_str(w, str_of(gtext_pairs[pairs]));
    else
        json_null(w);
}

/* The fields of a type, into an object that is open. */
static void put_type(json_writer *w, const graph *g, const gtype *t)
{
    if (t->cell >= 0) {
        json_key_str(w, "cell", g->cells.at[t->cell].name);
        return;
    }
    json_key_str(w, "type", t->ids ? STR("i32") : STR("f"));
    put_dims(w, "dims", t->rank, t->dim);
    put_pairs(w, t->pairs);
}

static void put_ref(json_writer *w, const graph *g, gref r)
{
    if (r.kind == REF_NONE) {
        json_null(w);
        return;
    }
    json_open(w, '{');
    switch (r.kind) {
    case REF_NONE:
        break;
    case REF_VALUE:
        json_key_int(w, "value", r.id);
        break;
    case REF_WEIGHT:
        json_key_str(w, "weight", g->weights.at[r.id].name);
        break;
    case REF_CONST:
        json_key_int(w, "const", r.id);
        break;
    case REF_CELL:
        json_key_str(w, "cell", g->cells.at[r.id].name);
        break;
    case REF_INPUT:
        json_key_str(w, "input", g->inputs.at[r.id].name);
        break;
    case REF_NUMBER:
        json_key_double(w, "number", r.number);
        break;
    }
    json_close(w, '}');
}

/* ---- tables ---- */

static void put_pieces(json_writer *w, const char *key, const gpiece *piece, int n)
{
    json_key(w, key);
    json_open(w, '[');
    for (int i = 0; piece && i < n; i++) {
        json_open(w, '{');
        json_key_int(w, "tensor", piece[i].tensor);
        json_key_int(w, "offset", piece[i].offset);
        json_key_int(w, "rows", piece[i].rows);
        json_close(w, '}');
    }
    json_close(w, ']');
}

static void put_weight(json_writer *w, const gweight *x)
{
    json_open(w, '{');
    json_key_str(w, "name", x->name);
    json_key_str(w, "line", x->line);
    put_layer(w, x->layer);
    json_key_str(w, "type", str_of(dtype_row_of(x->type)->name));
    put_dims(w, "dims", x->rank, x->dim);
    put_dims(w, "strides", x->rank, x->stride);
    put_pairs(w, x->pairs);
    put_pieces(w, "pieces", x->piece, x->n_piece);
    if (x->scales)
        put_pieces(w, "scales", x->scales, x->n_piece);
    json_key_bool(w, "computed", x->computed != NULL);
    json_key_bool(w, "lora", x->lora);
    put_loc(w, x->loc);
    json_close(w, '}');
}

static void put_const(json_writer *w, const gconst *c)
{
    json_open(w, '{');
    json_key_str(w, "kind", c->table ? STR("rope_table") : STR("vector"));
    json_key(w, "factor");
    if (c->table)
        json_double(w, c->factor);
    else
        json_null(w);
    json_key(w, "data");
    json_open(w, '[');
    for (int64_t i = 0; i < c->n; i++)
        json_double(w, c->data[i]);
    json_close(w, ']');
    json_close(w, '}');
}

static void put_cell(json_writer *w, const gcell *c)
{
    const cell_row *row = &cell_rows(&(int){0})[c->kind];
    json_open(w, '{');
    json_key_str(w, "name", c->name);
    json_key_str(w, "kind", str_of(row->name));
    str word;
    for (int i = 0; (word = word_at(row->arguments, i)).n; i++) {
        char name[32];
        snprintf(name, sizeof name, STR_FMT, STR_ARG(word));
        json_key_int(w, name, c->arg[i]);
    }
    json_key(w, "window");
    if (c->window > 0)
        json_int(w, c->window);
    else
        json_null(w);
    if (c->layout != CELL_UNDECIDED)
        json_key_str(w, "layout", str_of(gtext_layouts[c->layout]));
    if (c->layout == CELL_RING)
        json_key_int(w, "keep", c->keep);
    put_loc(w, c->loc);
    json_close(w, '}');
}

/* ---- nodes ---- */

static void put_attr(json_writer *w, const graph *g, const gattr *a)
{
    switch (a->kind) {
    case GATTR_NONE:
        json_null(w);
        break;
    case GATTR_INT:
        json_int(w, a->integer);
        break;
    case GATTR_FLOAT:
        json_double(w, a->number);
        break;
    case GATTR_BOOL:
        json_bool(w, a->integer != 0);
        break;
    case GATTR_WORD:
        json_str(w, a->word);
        break;
    case GATTR_REF:
        put_ref(w, g, a->ref);
        break;
    }
}

static void put_node(json_writer *w, const graph *g, const gnode *n)
{
    json_open(w, '{');
    json_key_str(w, "op", str_of(op_row_of(n->op)->name));
    json_key(w, "in");
    json_open(w, '[');
    for (int i = 0; i < n->n_in; i++)
        put_ref(w, g, n->in[i]);
    json_close(w, ']');
    json_key(w, "attrs");
    json_open(w, '{');
    int n_attr;
    const attr_row *rows = op_attrs(n->op, &n_attr);
    for (int i = 0; i < n_attr; i++) {
        if (n->attr[i].kind == GATTR_NONE)
            continue;
        json_key(w, rows[i].name);
        put_attr(w, g, &n->attr[i]);
    }
    json_close(w, '}');
    json_key(w, "out");
    json_open(w, '[');
    for (int i = 0; i < n->n_out; i++) {
        json_open(w, '{');
        json_key_int(w, "value", n->first + i);
        put_type(w, g, &g->values.at[n->first + i].type);
        json_close(w, '}');
    }
    json_close(w, ']');
    if (n->map > 0)
        json_key_int(w, "map", n->map);
    if (n->chain > 0)
        json_key_int(w, n->recompute ? "recompute" : "chain", n->chain);
    if (n->values > 0)
        json_key_int(w, "values", n->values);
    put_layer(w, n->layer);
    put_loc(w, n->loc);
    json_close(w, '}');
}

static void put_output(json_writer *w, const goutput *o)
{
    json_open(w, '{');
    json_key_str(w, "name", o->name);
    json_key(w, "index");
    if (o->index < 0)
        json_null(w);
    else
        json_int(w, o->index);
    json_key_int(w, "value", o->value);
    put_loc(w, o->loc);
    json_close(w, '}');
}

void graph_json(const graph *g, strbuf *out)
{
    json_writer w = {.out = out};
    json_open(&w, '{');
    json_key_str(&w, "model", g->model);
    json_key_str(&w, "entry", g->entry);
    json_key(&w, "inputs");
    json_open(&w, '[');
    for (size_t i = 0; i < g->inputs.n; i++) {
        json_open(&w, '{');
        json_key_str(&w, "name", g->inputs.at[i].name);
        put_type(&w, g, &g->inputs.at[i].type);
        json_close(&w, '}');
    }
    json_close(&w, ']');
    json_key(&w, "consts");
    json_open(&w, '[');
    for (size_t i = 0; i < g->consts.n; i++)
        put_const(&w, &g->consts.at[i]);
    json_close(&w, ']');
    json_key(&w, "weights");
    json_open(&w, '[');
    for (size_t i = 0; i < g->weights.n; i++)
        put_weight(&w, &g->weights.at[i]);
    json_close(&w, ']');
    json_key(&w, "cells");
    json_open(&w, '[');
    for (size_t i = 0; i < g->cells.n; i++)
        put_cell(&w, &g->cells.at[i]);
    json_close(&w, ']');
    json_key(&w, "nodes");
    json_open(&w, '[');
    for (size_t i = 0; i < g->nodes.n; i++)
        put_node(&w, g, &g->nodes.at[i]);
    json_close(&w, ']');
    json_key(&w, "outputs");
    json_open(&w, '[');
    for (size_t i = 0; i < g->outputs.n; i++)
        put_output(&w, &g->outputs.at[i]);
    json_close(&w, ']');
    json_close(&w, '}');
}
