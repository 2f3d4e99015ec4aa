/* safetensors_write.h - writes tensors as one .safetensors file, made as it goes if need be. */
#ifndef WEFT_RUNTIME_FORMATS_SAFETENSORS_WRITE_H
#define WEFT_RUNTIME_FORMATS_SAFETENSORS_WRITE_H

#include "runtime/base/diag.h"
#include "runtime/base/dtype.h"
#include "runtime/formats/out_file.h"
#include "runtime/formats/value.h"

typedef struct {
    const char *name; /* UTF-8, unique among the items, not "__metadata__" */
    dtype type;       /* one with a name in safetensors */
    int rank;
    const int64_t *shape; /* [rank], slowest first */
    const void *data;     /* NULL: made by fill, see below */
} safetensors_item;

/* metadata is NULL or an object of strings. The file appears under its name only when it is
 * complete; W1004 or W1002 if it cannot be. Wider types come first, so that all are aligned. */
weft_status safetensors_write(weft_diag *dg, const char *path, const safetensors_item *items,
                              size_t n, const value *metadata) WEFT_MUST_USE;

/* Puts the bytes of items[i], which has no data, in as many pieces as it likes. */
typedef weft_status safetensors_fill(weft_diag *dg, out_file *to, size_t i, void *ctx);
/* The same with data that is made when its turn comes; what fill returns is passed on. */
weft_status safetensors_write_with(weft_diag *dg, const char *path, const safetensors_item *items,
                                   size_t n, const value *metadata, safetensors_fill *fill,
                                   void *ctx) WEFT_MUST_USE;

#endif
