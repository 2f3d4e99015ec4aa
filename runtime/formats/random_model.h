/* random_model.h - a checkpoint made up on the spot: the tensors of a known model, filled with noise.
 *
 *     random_model *rm;
 *     WEFT_TRY(random_model_create(dg, "llama-1b:Q4_K_M", 2, &rm));
 *     model_file_open_memory(dg, random_model_data(rm), random_model_bytes(rm), "llama-1b:Q4_K_M", &mf);
 *
 * It is a GGUF file in memory, without a tokenizer. The numbers are random but sane: a linear keeps the
 * size of what it is given, so that nothing overflows on the way through the layers. Speed does not
 * depend on what weights say, which is what it is for. */
#ifndef WEFT_RUNTIME_FORMATS_RANDOM_MODEL_H
#define WEFT_RUNTIME_FORMATS_RANDOM_MODEL_H

#include "runtime/base/diag.h"

typedef struct random_model random_model;

/* spec is SHAPE:TYPE: a row of shapes.def and a storage type, Q4_K_M and the like for a mix of them, in
 * either case. Rows that are not whole blocks take a type with smaller blocks. threads fill the memory;
 * 0: none does, all weights are zero and take no memory until they are read. W1903: spec names nothing
 * known. W0902: it does not fit into memory. */
weft_status random_model_create(weft_diag *dg, const char *spec, int threads,
                                random_model **out_rm) WEFT_MUST_USE;
void random_model_destroy(random_model *rm); /* NULL is fine */

const void *random_model_data(const random_model *rm);
size_t random_model_bytes(const random_model *rm);

/* The names of all shapes, and of all types; NULL past the last. */
const char *random_model_shape(size_t i);
const char *random_model_type(size_t i);

#endif
