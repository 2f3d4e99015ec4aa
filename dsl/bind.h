/* bind.h - binding: what the checker calls when it runs with a checkpoint; private to dsl/.
 *
 *   bind_param.c    parameters find their keys
 *   bind_weight.c   weight lines find their tensors
 *   bind_cover.c    tensors that no line claims
 *   bind_other.c    names in the other format
 *   bind_emit.c     typed calls become nodes, cells and outputs of the graph
 *   bind_suggest.c  the nearest key or tensor for a name that the checkpoint lacks
 *
 * sema.bind is NULL without a checkpoint; then sizes stay symbols and none of this runs. Binding evaluates
 * the expressions of the file with the checker that called it. */
#ifndef WEFT_DSL_BIND_H
#define WEFT_DSL_BIND_H

#include "dsl/sema.h"

struct binding {
    sema *s;
    checkpoint *cp;
    origin from;              /* the checkpoint's format */
    graph *g;                 /* NULL: only match lines are evaluated */
    model_settings *settings; /* with a graph */
    other_names *others;      /* NULL: not wanted */
    arena *home;              /* of settings and other names */
    int64_t context;          /* of the session; 0: the trained one */
    sym *session_context;
    scope *model_names;
    unsigned char *claimed;        /* a byte for each tensor */
    const ast *table;              /* the section of weights being bound */
    VEC(str) ignores;              /* patterns of this model's `ignore` lines */
    VEC(const double *) constants; /* data of the graph's constants, as the checker has it */
    int rows_input;                /* of `rows` in the graph, -1 before its first use */
    size_t n_failed;               /* diagnostics before this file */
};

void bind_init(binding *b, sema *s, checkpoint *cp);
void bind_deinit(binding *b);
/* There was an error, and what is found now may rest on what it left behind. False without a checkpoint. */
bool bind_spoilt(const binding *b);

/* ---- settings ---- */

val bind_param(binding *b, const ast *n, int64_t layer); /* layer -1: not a list */
void bind_declared(binding *b, const ast *n, val v);     /* a parameter of the model itself */
/* key(name): false where it is absent. */
bool bind_key(binding *b, str name, val *out);
void bind_context_asked(binding *b, const sym *y); /* y was read: is it session.context? */

/* ---- weights ---- */

/* A weight line finds its tensors: 1 bound, 0 absent, -1 reported. */
int bind_weight(binding *b, weight *w, bool has_bias);
/* A false `when` with a fallback: its tensors count as claimed. */
void bind_set_aside(binding *b, const weight *w);
void bind_alias(binding *b, weight *w, const weight *other);
val bind_constant(binding *b, const weight *w); /* a stored vector as a constant */
void bind_ignore(binding *b, const ast *line);  /* keeps its patterns for bind_coverage */
void bind_coverage(binding *b, const ast *model);

/* ---- the graph ---- */

void emit_op(binding *b, op_call *c);
void emit_output(binding *b, const ast *n, val v, const poly *rows, int index);
gref emit_weight(binding *b, const weight *w, bool bias);
gref emit_constant(binding *b, val v);
bool emitted_constant(const binding *b, const double *data);
gref emit_input(binding *b, str name, const tensor_type *t);
void emit_cell(binding *b, cell *cl, cell_slot *slot); /* with its sizes for this layer */

/* ---- between the files of binding ---- */

val value_to_val(sema *s, const value *v);
bool val_to_value(sema *s, val v, value *out); /* false for what is no plain value */
/* What the maps behind a key (`=>`) make of a value. */
val bind_adapted(sema *s, const ast *key, val v);
str bind_text(sema *s, const ast *n); /* a string with its {names} filled in; empty if not known */
/* Of the bindings of a line, those for the checkpoint's format, or for the other. */
const ast *bind_lines(const ast *list, origin o);
bool weight_names_index(const ast *key, const ast *index); /* a tensor for each index */
void other_arch(binding *b, const ast *body);
void other_param(binding *b, const ast *n, int64_t layer, val v);
void other_weights(binding *b, const weight *w);
/* A note with the nearest name that the checkpoint has, if any is near. What was wanted comes with all names
 * that were tried; a tensor that a line of the table names is not offered. */
void suggest_key(binding *b, const str *want, size_t n_want);
void suggest_tensor(binding *b, const str *want, size_t n_want);

#endif
