/* bind_impl.h - a binding, and the calls between the files bind_*.c. */
#ifndef WEFT_DSL_BIND_IMPL_H
#define WEFT_DSL_BIND_IMPL_H

#include "dsl/bind.h"

struct binding {
    sema *s;
    checkpoint *cp;
    origin from;              /* the checkpoint's format */
    graph *g;                 /* NULL: only match lines are evaluated */
    model_settings *settings; /* with a graph */
    other_names *others;      /* NULL: not wanted */
    site_names *sites;        /* NULL: not wanted */
    arena *home;              /* of settings, other names and sites */
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

val value_to_val(sema *s, const value *v);
bool val_to_value(sema *s, val v, value *out); /* false for what is no plain value */
/* What the maps behind a key (`=>`) make of a value. */
val bind_adapted(sema *s, const ast *key, val v);
str bind_text(sema *s, const ast *n); /* a string with its {names} filled in; empty if not known */
/* Of the bindings of a line, those for the checkpoint's format, or for the other. */
const ast *bind_lines(const ast *list, origin o);
bool weight_names_index(const ast *key, const ast *index); /* a tensor for each index */
/* W0505 for tensors that no weight line claims. */
void bind_coverage(binding *b, const ast *model);
/* As suggest_key; a tensor that a line of the table names is not offered. */
void suggest_tensor(binding *b, const str *want, size_t n_want);
void other_arch(binding *b, const ast *body);
void other_param(binding *b, const ast *n, int64_t layer, val v);
void other_weights(binding *b, const weight *w);
void bind_sites(binding *b, const weight *w);

#endif
