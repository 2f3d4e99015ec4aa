/* api_open.h - models from files: from a checkpoint to a plan, the one way of the library and of all verbs.
 *
 * api_source and api_wanted say what is wanted; weft_model and api_plan own what was opened. No tensor is read. */
#ifndef WEFT_RUNTIME_API_API_OPEN_H
#define WEFT_RUNTIME_API_API_OPEN_H

#include "compiler/compiler.h"
#include "compiler/plan_make.h"
#include "compiler/plan_parts.h"
#include "runtime/api/api_model.h"

typedef struct random_model random_model;

/* Where a model comes from: the first of path, random and data that is set, else the descriptor. */
typedef struct {
    const char *path;
    const char *random; /* SHAPE:TYPE, made up in memory */
    int fillers;        /* threads that fill `random` with numbers; 0: it is not to be run */
    const void *data;   /* [bytes] */
    size_t bytes;
    int fd;
    const char *name; /* of data or fd, for messages */
    model_file_options file;
    bind_options bind;
} api_source;

/* A model of the kind that model files are. */
typedef struct {
    weft_model base;
    random_model *made; /* the memory of `random`; else NULL */
    model_file *file;
    bound_model *bound;
    int64_t bound_for; /* tokens of context; 0: not known */
} api_file;

/* m comes from api_model_open or one of weft_model_open. */
static inline const api_file *api_file_of(const weft_model *m)
{
    return (const api_file *)(const void *)m;
}

weft_status api_model_open(weft_diag *dg, const api_source *from,
                           weft_model **out_model) WEFT_MUST_USE;

/* How w is compiled; context and threads are set. W1602, W1603. */
weft_status api_target(weft_diag *dg, const api_wanted *w, target *out) WEFT_MUST_USE;

#endif
