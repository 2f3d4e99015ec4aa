/* tensors.h - the weights of an image, as a source of bytes (runtime/base/weight_source.h).
 *
 * The part `tensors` of an image says what lies in its weights: a row of 64 bytes for each, then their names.
 *
 *     count u64, identity u64 u64 (of the model), zeros up to 64
 *     row: type u32, name bytes u32, name offset u64 (behind the rows), offset u64 (in the weights), bytes u64, sum u64, zeros
 *
 * Tensors lie at multiples of 64, in their order, zeros between them. Each is as kernels read it, interleaved ones too; the
 * plans know their shapes. */
#ifndef WEFT_RUNTIME_PROGRAM_TENSORS_H
#define WEFT_RUNTIME_PROGRAM_TENSORS_H

#include "runtime/base/weight_source.h"
#include "runtime/program/image.h"

enum { TENSORS_HEAD_BYTES = 64, TENSORS_ROW_BYTES = 64, TENSORS_MAX = 1 << 20 };

typedef struct {
    str name;
    dtype type;
    uint64_t offset, bytes, sum;
} image_tensor;

/* A source; all of it borrows from the bytes of the image. */
typedef struct {
    weight_source base;
    const char *name;           /* of the program, for messages */
    const unsigned char *table; /* the part of tensors */
    uint64_t n;
    const unsigned char *weights;
    uint64_t weights_bytes;
    model_hash identity;
    int guard; /* of map_guard.h; -1: none */
} image_source;

/* `table` is the part of tensors, its sum checked; weights: [weights_bytes], wherever they are. W1701. */
weft_status image_source_open(weft_diag *dg, const char *name, const image_part *table,
                              const void *weights, uint64_t weights_bytes,
                              image_source *out) WEFT_MUST_USE;
image_tensor image_source_tensor(const image_source *s, uint64_t i); /* i < n */
/* All bytes of the weights against the sums of their tensors. W1701 names the first that was changed. */
weft_status image_source_check(weft_diag *dg, const image_source *s) WEFT_MUST_USE;

/* For writers: where a tensor goes that follows something that ends at `at`; and the part of tensors. */
uint64_t image_tensor_place(uint64_t at);
void image_tensors_write(const image_tensor *tensors, uint64_t n, model_hash identity, strbuf *out);

#endif
