/* dtype.h - how the numbers of a tensor are stored: names, numbers in files, block sizes.
 *
 * The rows are in dtype.def. Plain data, safe to use from any thread. */
#ifndef WEFT_RUNTIME_BASE_DTYPE_H
#define WEFT_RUNTIME_BASE_DTYPE_H

#include "runtime/base/str.h"

typedef enum {
#define DTYPE(name, ggml, hf, elems, bytes, weight) DT_##name,
#include "runtime/base/dtype.def"
#undef DTYPE
    DT_COUNT
} dtype;

typedef struct {
    const char *name;
    int ggml;       /* -1: no such type in GGUF */
    const char *hf; /* NULL: no such type in safetensors */
    int64_t elems;  /* numbers per block */
    size_t bytes;   /* per block */
    bool is_weight; /* Weft computes with weights stored like this */
} dtype_row;

const dtype_row *dtype_row_of(dtype t);

/* The type with this number in a GGUF file, or this name (upper case) anywhere or in a safetensors
 * header; false if there is none. */
bool dtype_from_ggml(uint32_t number, dtype *out_t) WEFT_MUST_USE;
bool dtype_from_name(str name, dtype *out_t) WEFT_MUST_USE;
bool dtype_from_hf(str name, dtype *out_t) WEFT_MUST_USE;

/* Bytes of n numbers, n >= 0; false if n is not a whole number of blocks or the size overflows. */
bool dtype_bytes(dtype t, int64_t n, size_t *out_bytes) WEFT_MUST_USE;

#endif
