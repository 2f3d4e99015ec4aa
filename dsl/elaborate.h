/* elaborate.h - a model file with a checkpoint at hand; with dsl.h the public header of dsl/.
 *
 * The checker that proves a file for every size runs again with numbers: parameters are read, loops
 * unroll, conditions fold, every weight finds its tensor, and every call becomes a node of the graph. */
#ifndef WEFT_DSL_ELABORATE_H
#define WEFT_DSL_ELABORATE_H

#include "compiler/graph.h"
#include "dsl/checkpoint.h"
#include "dsl/dsl.h"

typedef struct {
    str name;
    int64_t layer; /* -1: not a list */
    value v;
} model_param;

/* What a model file made of the checkpoint's keys. */
typedef struct {
    VEC(model_param) params;
    int64_t context;    /* that the model was trained for; 0: the file does not say */
    bool context_asked; /* session.context was read: with another one the graph may be another */
} model_settings;

/* What a setting and a weight are called in the other format, for converting. */
typedef struct {
    str key;       /* as model files write it: "block_count", "/general.name" */
    int64_t layer; /* -1: not a list */
    value v;       /* what has to stand there to be read as it is here */
} other_key;

typedef struct {
    const gweight *weight; /* as it is bound here */
    str name;  /* of the tensor there; empty: there is no tensor that is just this weight */
    int pairs; /* its pair order there, as in gtype */
    int64_t run, turned; /* of every `run` rows the first `turned` are in that order */
    int64_t first, rows; /* it is these rows of the tensor; rows 0: all of it */
} other_weight;

typedef struct {
    str arch;
    VEC(other_key) keys;
    VEC(other_weight) weights;
} other_names;

/* What an adapter may call a weight: a name that its line has, in either format, and the transforms that make the weight
 * of the tensors of that name. */
typedef struct {
    transform_code code; /* pairs, rows, take, reshape, join, transpose */
    int n_arg;
    int64_t arg
        [GRAPH_RANK_MAX]; /* as written, none of a join; the order of pairs as in gtype; -1: not known */
} site_step;

typedef struct {
    str weight;   /* of the graph: blk[3].q_proj */
    bool gguf;    /* else Hugging Face */
    bool raw;     /* the name is complete, without .weight */
    bool mapped;  /* its elements go through a function (=>) */
    bool stacked; /* a tensor for each index of axis 0; otherwise several are joined */
    kind_code kind;
    int n_step;
    const site_step *step;
    size_t n_tensor;
    const str *tensor; /* without .weight */
} site_name;

typedef VEC(site_name) site_names;

/* How well a file's models fit a checkpoint of this architecture: 0 not at all, 1 by name, 2 by name and
 * a true condition. out_model is the best one's name, a view into the source. */
int dsl_match(weft_diag *dg, dsl_file *f, checkpoint *cp, str arch, str *out_model);

typedef struct {
    str model;           /* empty: the only one in the file */
    str entry;           /* empty: decode */
    int64_t context;     /* session.context; 0: the trained one */
    bool checked;        /* sema_check has passed this file */
    arena *home;         /* texts of settings and names live here */
    other_names *others; /* filled with the names in the other format; NULL: not wanted */
    site_names *sites;   /* filled with the names of adapter sites in both; NULL: not wanted */
} elaborate_options;

/* Check the file, bind it to the checkpoint, add the entry to the graph g. Every tensor must be claimed
 * (W0505). */
weft_status dsl_elaborate(weft_diag *dg, dsl_file *f, const elaborate_options *opt, checkpoint *cp,
                          graph *g, model_settings *out_settings) WEFT_MUST_USE;

#endif
