/* graph_json.c - a graph as one JSON object, with everything the text form has.
 *
 * A type is {"type": "f" or "i32", "dims": [..], "pairs"} or {"cell": name}; an operand is
 * {"value": 7}, {"weight": name}, {"const": 0}, {"cell": name}, {"input": name}, {"number": x} or
 * null. A place is {"file", "line", "column"} or null. What passes decide (map, chain or recompute, values of a
 * node; form and keep of a cell) is there only once they did. */
#include "compiler/graph_impl.h"

#include "runtime/base/json_write.h"
#include <math.h>

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

static void put_dims(json_writer *w, const char *key, int rank, const int64_t *dim)
{
    json_key_open(w, key, '[');
    for (int i = 0; i < rank; i++) {
        if (dim[i] < 0 && dim[i] >= GRAPH_S)
            json_str(w, str_of(gtext_symbols[GRAPH_T - dim[i]]));
        else
            json_int(w, dim[i]);
    }
    json_close(w, ']');
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
    json_key_text(w, "pairs", t->pairs > 0 ? gtext_pairs[t->pairs] : NULL);
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
    json_key_open(w, key, '[');
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
    json_key_index(w, "layer", x->layer);
    json_key_text(w, "type", dtype_row_of(x->type)->name);
    put_dims(w, "dims", x->rank, x->dim);
    put_dims(w, "strides", x->rank, x->stride);
    json_key_text(w, "pairs", x->pairs > 0 ? gtext_pairs[x->pairs] : NULL);
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
    json_key_double(w, "factor", c->table ? c->factor : NAN); /* NaN: null */
    json_key_open(w, "data", '[');
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
    json_key_index(w, "window", c->window > 0 ? c->window : -1);
    if (c->layout != CELL_UNDECIDED)
        json_key_str(w, "layout", str_of(gtext_layouts[c->layout]));
    if (c->layout == CELL_RING)
        json_key_int(w, "keep", c->keep);
    if (c->bounded)
        json_key_text(w, "coarsest", kform_name(c->coarsest));
    if (c->pin)
        json_key_int(w, "pin", c->pin);
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
    json_key_open(w, "in", '[');
    for (int i = 0; i < n->n_in; i++)
        put_ref(w, g, n->in[i]);
    json_close(w, ']');
    json_key_open(w, "attrs", '{');
    int n_attr;
    const attr_row *rows = op_attrs(n->op, &n_attr);
    for (int i = 0; i < n_attr; i++) {
        if (n->attr[i].kind == GATTR_NONE)
            continue;
        json_key(w, rows[i].name);
        put_attr(w, g, &n->attr[i]);
    }
    json_close(w, '}');
    json_key_open(w, "out", '[');
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
    json_key_index(w, "layer", n->layer);
    put_loc(w, n->loc);
    json_close(w, '}');
}

static void put_output(json_writer *w, const goutput *o)
{
    json_open(w, '{');
    json_key_str(w, "name", o->name);
    json_key_index(w, "index", o->index);
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
    json_key_open(&w, "inputs", '[');
    for (size_t i = 0; i < g->inputs.n; i++) {
        json_open(&w, '{');
        json_key_str(&w, "name", g->inputs.at[i].name);
        put_type(&w, g, &g->inputs.at[i].type);
        json_close(&w, '}');
    }
    json_close(&w, ']');
    json_key_open(&w, "consts", '[');
    for (size_t i = 0; i < g->consts.n; i++)
        put_const(&w, &g->consts.at[i]);
    json_close(&w, ']');
    json_key_open(&w, "weights", '[');
    for (size_t i = 0; i < g->weights.n; i++)
        put_weight(&w, &g->weights.at[i]);
    json_close(&w, ']');
    json_key_open(&w, "cells", '[');
    for (size_t i = 0; i < g->cells.n; i++)
        put_cell(&w, &g->cells.at[i]);
    json_close(&w, ']');
    json_key_open(&w, "nodes", '[');
    for (size_t i = 0; i < g->nodes.n; i++)
        put_node(&w, g, &g->nodes.at[i]);
    json_close(&w, ']');
    json_key_open(&w, "outputs", '[');
    for (size_t i = 0; i < g->outputs.n; i++)
        put_output(&w, &g->outputs.at[i]);
    json_close(&w, ']');
    json_close(&w, '}');
}
