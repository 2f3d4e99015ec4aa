/* compiler.h - the public header of compiler/: a checkpoint and a model file into a graph.
 *
 * A bound_model owns its graph, the text of its model file and what the parameters turned out to be; it
 * borrows the model_file, which must outlive it. Nothing here reads tensor data, but for small constants
 * such as rope factors. */
#ifndef WEFT_COMPILER_COMPILER_H
#define WEFT_COMPILER_COMPILER_H

#include "dsl/elaborate.h"

typedef struct bound_model bound_model;

typedef struct {
    const char
        *arch; /* a .weft file to use; NULL: the checkpoint's own (weft.graph), else the library */
    const char *entry; /* NULL: decode */
    int64_t context;   /* of the session; 0: the trained one */
    bool others;       /* gather the names in the other format, too */
    bool sites;        /* gather the names of adapter sites, too */
    /* The same checkpoint, bound before with the same arch: its text needs no choosing and checking. NULL: none. */
    const bound_model *like;
} bind_options;

/* A text that describes models, and which of them a checkpoint is. */
typedef struct {
    const source *src;
    str model;     /* empty: its only one */
    bool std_only; /* it came with the checkpoint: it may import std and nothing else */
    bool checked;  /* for every size, now or when Weft was built */
} arch_text;

struct bound_model {
    arena *a;
    const model_file *file;
    arch_text text;
    graph *graph;
    model_settings settings;
    other_names others; /* with `others`: what all this is called in the other format */
    site_names sites;   /* with `sites`: what adapters may call its weights */
};

/* Choose the model file, bind it, build its graph. W0801: no model matches; W0802: two match equally; all
 * that LANGUAGE.md says of binding. opt may be NULL. */
weft_status model_bind(weft_diag *dg, const model_file *mf, const bind_options *opt,
                       bound_model **out_bm) WEFT_MUST_USE;
void bound_model_destroy(bound_model *bm); /* NULL is fine */
/* The context that the model was trained for; false if its model file reads none. */
bool bound_model_context(const bound_model *bm, int64_t *out);
/* Warn (W1413) of a context that is longer than that, unless the checkpoint's rope scaling reaches as far or the
 * model is bound anew for every context. */
void bound_model_check_context(weft_diag *dg, const bound_model *bm, int64_t context);
/* A parameter by its name in the model file; NULL, or false, if there is none of that name (and an integer). */
const value *bound_model_param(const bound_model *bm, const char *name);
bool bound_model_int(const bound_model *bm, const char *name, int64_t *out);

/* The text that fits a checkpoint, without binding it: --arch, weft.graph or the library. out_f: the same, parsed. */
weft_status arch_choose(weft_diag *dg, const model_file *mf, const char *arch, arena *a,
                        arch_text *out, dsl_file **out_f) WEFT_MUST_USE;

#endif
