/* bind.h - binding: all that the checker calls when it runs with a checkpoint; private to dsl/.
 *
 *   bind_param.c    parameters find their keys
 *   bind_weight.c   weight lines find their tensors
 *   bind_cover.c    tensors that no line claims
 *   bind_other.c    names in the other format
 *   bind_sites.c    names of adapter sites in both
 *   bind_emit.c     typed calls become nodes, cells and outputs of the graph
 *   bind_suggest.c  the nearest key or tensor for a name that the checkpoint lacks
 *
 * sema.bind is NULL without a checkpoint; then sizes stay symbols and none of this runs, but emit_* may be
 * called. Binding evaluates the expressions of the file with the checker that called it. */
#ifndef WEFT_DSL_BIND_H
#define WEFT_DSL_BIND_H

#include "dsl/sema.h"

const char *bind_path(const binding *b); /* of the checkpoint, for messages */
/* There was an error, and what is found now may rest on what it left behind. False without a checkpoint. */
bool bind_spoilt(const binding *b);

/* ---- settings ---- */

val bind_param(binding *b, const ast *n, int64_t layer); /* layer -1: not a list */
void bind_declared(binding *b, const ast *n, val v);     /* a parameter of the model itself */
/* key(name): false where it is absent. */
bool bind_key(binding *b, str name, val *out);
void bind_context_asked(binding *b, const sym *y); /* y was read: is it session.context? */

/* ---- weights ---- */

void bind_table(binding *b,
                const ast *table); /* the section whose lines follow; NULL: it is over */
/* A weight line finds its tensors: 1 bound, 0 absent, -1 reported. */
int bind_weight(binding *b, weight *w, bool has_bias);
/* A false `when` with a fallback: its tensors count as claimed. */
void bind_set_aside(binding *b, const weight *w);
void bind_alias(binding *b, weight *w, const weight *other);
val bind_constant(binding *b, const weight *w); /* a stored vector as a constant */
void bind_ignore(binding *b, const ast *line);  /* keeps its patterns for coverage */

/* ---- the graph ---- */

void emit_op(binding *b, op_call *c);
void emit_output(binding *b, const ast *n, val v, const poly *rows, int index);
gref emit_weight(binding *b, const weight *w, bool bias);
gref emit_constant(binding *b, val v);
bool emitted_constant(const binding *b, const double *data);
gref emit_input(binding *b, str name, const tensor_type *t);
void emit_cell(binding *b, cell *cl, cell_slot *slot); /* with its sizes for this layer */

/* A note with the nearest key that the checkpoint has, if any is near; want: all names that were tried. */
void suggest_key(binding *b, const str *want, size_t n_want);

#endif
