/* checkpoint.h - a model_file as binding asks it: keys, tensors and small constants.
 *
 * It borrows the model_file and remembers which keys were asked for (W0410, compiler/unread.c). */
#ifndef WEFT_DSL_CHECKPOINT_H
#define WEFT_DSL_CHECKPOINT_H

#include "runtime/base/vec.h"
#include "runtime/formats/model_file.h"

typedef struct {
    const model_file *file;
    arena *a;
    bool gguf;        /* or Hugging Face */
    const char *path; /* for messages */
    str prefix;       /* of GGUF keys, for messages: "llama." */
    VEC(str) read;    /* keys that the model file named and that are there */
} checkpoint;

void checkpoint_init(checkpoint *cp, arena *a, const model_file *mf);
void checkpoint_deinit(checkpoint *cp);

/* By its name in a model file; NULL: it is absent. */
const value *checkpoint_key(checkpoint *cp, str name);
/* NULL: there is none of that name, or none with so few axes that a graph can hold it. */
const model_tensor *checkpoint_tensor(const checkpoint *cp, str name);
int checkpoint_tensor_id(const checkpoint *cp, const model_tensor *t);
/* The tensor's elements as numbers; false if they cannot be read. For small constants only. */
bool checkpoint_read(const checkpoint *cp, int id, double *out, int64_t n);

#endif
