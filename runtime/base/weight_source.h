/* weight_source.h - where the bytes of weights come from: a model file, a file of the weight cache, or what a built
 * program carries. A source is an instance of a kind; a kind is a table of functions.
 *
 * It lies in base, below runtime/formats, so that model files can be sources and the executor needs to know of no file.
 * A source never changes, so several threads may read it. Its owner keeps it until nobody uses its bytes any more. */
#ifndef WEFT_RUNTIME_BASE_WEIGHT_SOURCE_H
#define WEFT_RUNTIME_BASE_WEIGHT_SOURCE_H

#include "runtime/base/diag.h"
#include "runtime/base/dtype.h"
#include "runtime/base/str.h"

/* Stands for a model or for something made of it; what goes into it is said where it is made. */
typedef struct {
    uint64_t lo, hi;
} model_hash;

static inline bool model_hash_equal(model_hash a, model_hash b)
{
    return a.lo == b.lo && a.hi == b.hi;
}

typedef struct {
    str name; /* for messages */
    dtype type;
    size_t bytes;
    const void *data; /* in memory or mapped, at any address */
} weight_tensor;

typedef struct weight_source weight_source;

typedef struct {
    size_t (*count)(const weight_source *s); /* plans call tensors by their numbers */
    weight_tensor (*tensor)(const weight_source *s, size_t i); /* i < count */
    /* Of the model and its weights, wherever they are: state files belong to it. */
    model_hash (*identity)(const weight_source *s);
    /* Of the bytes as they lie on this machine: what is made of them and kept on disk is named by it.
     * False, or no function: nothing can be, as for a model in memory. */
    bool (*stamp)(const weight_source *s, model_hash *out);
    /* W1012 if bytes are gone since it was opened: what was read then may be zeros. */
    weft_status (*check)(weft_diag *dg, const weight_source *s);
    /* Most of it has been read for the last time: its pages may leave this process's memory. NULL: they stay. */
    void (*let_go)(const weight_source *s);
} weight_source_kind;

/* The beginning of what a kind keeps of a source. */
struct weight_source {
    const weight_source_kind *kind;
    const char *path; /* of its first file, for people; "": none */
    bool guarded;     /* its user wants to survive files that become shorter (map_guard.h) */
};

#endif
